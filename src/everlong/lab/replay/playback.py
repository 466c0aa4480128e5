"""One conversation under one policy: every request made, billed by the tariff, looked at, and asked what is in it.

What was lost and is needed now is read again, as an agent would: one request more, whose result is paid for as long as
it would stand. The policy does not hear of it, so that what it kept is not mixed with what was brought back.
"""

import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import lru_cache

from everlong.core import History, Json, JsonObject, Message
from everlong.lab.cases import Case
from everlong.lab.measures.presence import Sent, texts_of
from everlong.lab.replay.caches import Cache, Outgoing, shared
from everlong.lab.replay.courses import Beside, Course, Policy, Sending, Terms
from everlong.lab.replay.results import Paid, Played, ProbeOutcome
from everlong.lab.replay.sessions import Pauses, Session, moments_of
from everlong.lab.strategies.strategy import rendered
from everlong.wire import OPENAI_CHAT, Usage, problems

__all__ = ["SUMMARIES_KEEP", "Validity", "played"]

MOST_TOLD = 3
RESULTS, SYSTEM = ("tool", "function"), ("system", "developer")
FIRST: JsonObject = {"role": "user", "content": "…"}


@dataclass(slots=True)
class Validity:
    """Looks at the requests of one conversation in their order."""

    user_first: bool
    #: What was wrong before anyone touched it.
    known: frozenset[str] = frozenset()
    _before: History = ()
    #: Where each piece of the request before ends, and what is wrong with it.
    _pieces: list[tuple[int, tuple[str, ...]]] = field(default_factory=list)

    def refusals(self, messages: History) -> tuple[str, ...]:
        """What is wrong with it, a few kinds at most; () is valid."""
        return tuple(text for text in self.all_of(messages) if text not in self.known)[:MOST_TOLD]

    def all_of(self, messages: History) -> tuple[str, ...]:
        """Everything that is wrong with it, also what is known."""
        same = shared(self._before, messages)
        while self._pieces and self._pieces[-1][0] >= same:  # results may follow in the one that ends there
            self._pieces.pop()
        start = self._pieces[-1][0] if self._pieces else 0
        while start < len(messages):
            stop = _end_of_piece(messages, start)
            self._pieces.append((stop, _faults(messages[start:stop])))
            start = stop
        self._before = messages
        found = dict.fromkeys(text for _, faults in self._pieces for text in faults)
        return (*_about_the_first(messages, user_first=self.user_first), *found)


def _end_of_piece(messages: History, start: int) -> int:
    """Where the next message stands that does not begin with a result."""
    for at in range(start + 1, len(messages)):
        raws = rendered(messages[at])
        if raws and raws[0].get("role") not in RESULTS:
            return at
    return len(messages)


@lru_cache(maxsize=20_000)
def _faults(piece: History) -> tuple[str, ...]:
    body: list[Json] = [FIRST, *(raw for message in piece for raw in rendered(message))]
    return tuple(dict.fromkeys(problem.text for problem in problems(OPENAI_CHAT.name, {"messages": body})))


def _about_the_first(messages: History, *, user_first: bool) -> tuple[str, ...]:
    roles = (raw.get("role") for message in messages for raw in rendered(message))
    first = next(roles, None)
    if first is None:
        return ("there are no messages",)
    while first in SYSTEM:
        first = next(roles, None)
    if first is None:
        return ("nobody but the system speaks",)
    return (f"first message is from {first}, not from the user",) if user_first and first != "user" else ()


#: What Claude Code's own summaries kept of what was needed later, at 72 real compactions, by kind of string.
SUMMARIES_KEEP = {"path": 0.66, "identifier": 0.42, "code": 0.42, "edit_line": 0.10}
READING_OUTPUT = 80  # tokens: the call that reads again
LONGEST_READING = 8_000  # tokens of what is read again
NOTHING_SENT = Outgoing(messages=(), ends=(0,))


@dataclass(slots=True)
class _ReadAgain:
    """What was read again and still stands: its texts, their tokens that were sent before, and those that are new."""

    texts: list[str] = field(default_factory=list)
    sent: int = 0
    new: int = 0

    def has(self, wanted: tuple[str, ...]) -> bool:
        """Whether all of it stands in what was read again."""
        return all(any(one in text for text in self.texts) for one in wanted)

    def billed(self, usage: Usage) -> Usage:
        """A request's usage with them: read from the cache where the request itself is, written where it is."""
        read = self.sent if usage.cached else 0
        written = self.sent - read + self.new if usage.cached or usage.cache_written else 0
        more = Usage(
            prompt=usage.prompt + self.sent + self.new,
            cached=usage.cached + read,
            cache_written=usage.cache_written + written,
            output=usage.output,
        )
        self.sent, self.new = self.sent + self.new, 0
        return more


@dataclass(slots=True)
class _Run:
    """A conversation under way."""

    terms: Terms
    course: Course
    cache: Cache
    wholeness: Validity
    paid: list[Paid] = field(default_factory=list)
    again: _ReadAgain = field(default_factory=_ReadAgain)
    _before: History | None = None
    _outgoing: Outgoing = NOTHING_SENT

    def ask(self, at: int, moment: float) -> Sending:
        """What is sent now; what was called beside is paid for. A cut takes along what was read again."""
        sending = self.course.ask(moment)
        if sending.cut:
            self.again = _ReadAgain()
        self.summarise(at, sending.beside, moment)
        return sending

    def summarise(self, at: int, beside: Iterable[Beside], moment: float) -> None:
        """Pay for what was called beside the conversation."""
        for call in beside:
            front = 0 if call.alone else self.terms.front
            paid = Paid(at=at, kind="summary", output=call.output)
            self._bill(paid, self._sized(call.messages, call.marks, front), moment)

    def answer(self, at: int, sending: Sending, moment: float, answer: Message) -> None:
        """Send it for the next answer."""
        if sending.refused:  # nothing goes out; the conversation goes on, and what was sent last still counts
            self.paid.append(Paid(at=at, kind="answer", output=0, over=True, problems=(sending.refused,)))
            self.course.say((answer,))
            return
        before, self._before = self._before, sending.messages
        reset = before is not None and shared(before, sending.messages) < len(before)
        output = self.terms.counter.message(answer)
        paid = Paid(at=at, kind="answer", output=output, cut=sending.cut, reset=reset)
        self.course.heard(self._bill(paid, self._sized_for(sending), moment), answer)

    def read_again(self, at: int, sending: Sending, moment: float, text: str) -> None:
        """Send it for a call that reads a text again; it stands until the next cut."""
        self._bill(Paid(at=at, kind="reading", output=READING_OUTPUT), self._sized_for(sending), moment)
        self.again.texts.append(text)
        self.again.new += min(self.terms.counter.text(text), LONGEST_READING)

    def _sized_for(self, sending: Sending) -> Outgoing:
        return self._sized(sending.messages, sending.marks, self.terms.front)

    def _sized(self, messages: History, marks: tuple[int, ...] | None, front: int) -> Outgoing:
        """With the sizes of its messages; those of the request before are known."""
        before = self._outgoing
        same = shared(before.messages, messages)
        more = front - before.ends[0]
        ends = [end + more for end in before.ends[: same + 1]]
        for message in messages[same:]:
            ends.append(ends[-1] + self.terms.counter.message(message))
        self._outgoing = Outgoing(messages=messages, ends=ends, marks=marks)
        return self._outgoing

    def _bill(self, paid: Paid, sent: Outgoing, moment: float) -> Usage:
        """Write down what the provider makes of it, and give its own figures back."""
        usage = self.cache.take(sent, moment, paid.output)
        total = usage if paid.kind == "summary" else self.again.billed(usage)
        self.paid.append(
            replace(
                paid,
                prompt=total.prompt,
                read=total.cached,
                written=total.cache_written,
                dollars=self.terms.tariff.dollars(total),
                over=usage.prompt > self.terms.window,
                problems=self.wholeness.refusals(sent.messages),
            )
        )
        return usage


def played(session: Session, policy: Policy, terms: Terms, pauses: Pauses, *, reading: bool = True) -> Played:
    """Every request of the conversation under the policy."""
    user_first = terms.tariff.rules.kind == "marked"  # Anthropic's rule, and only Anthropic has marks
    known = frozenset(Validity(user_first).all_of(session.messages))
    run = _Run(terms, policy.begin(terms), Cache(terms.tariff.rules), Validity(user_first, known))
    asked: dict[int, list[Case]] = {}
    for case in session.cases:
        asked.setdefault(case.at, []).append(case)
    probes: list[ProbeOutcome] = []
    start, last = 0, (0, 0.0)
    for at, moment in zip(session.requests, moments_of(session, pauses, terms.tariff.rules.seconds), strict=True):
        run.course.say(session.messages[start:at])
        start = at + 1
        sending = run.ask(at, moment)
        for case in asked.get(at, ()):
            found = _probed(case, sending)
            probes.append(found)
            if reading and not (_known(case, found) or sending.refused or run.again.has(case.wanted)):
                run.read_again(at, sending, moment, _last_text(session, case))
        run.answer(at, sending, moment, session.messages[at])
        last = (at, moment)
    run.summarise(last[0], run.course.close(), last[1])
    return Played(
        session=session.told,
        policy=policy.name,
        window=terms.window,
        tariff=terms.tariff.name,
        paid=tuple(run.paid),
        probes=tuple(probes),
    )


def _probed(case: Case, sending: Sending) -> ProbeOutcome:
    sent = Sent(sending.messages)
    kept = all(map(sent.has, case.wanted))
    literal = kept and all(map(sent.has_verbatim, case.wanted))
    kind = dict(case.groups).get("kind", "")
    credit = SUMMARIES_KEEP.get(kind, 0.0) if sending.summarised else 0.0
    return ProbeOutcome(at=case.at, kind=kind, kept=kept, literal=literal, likely=1.0 if kept else credit)


def _known(case: Case, found: ProbeOutcome) -> bool:
    """Whether the agent needs not read it again: it is there, or a summary is likely to tell it.

    Of the strings that a summary keeps in so many of a hundred cases, so many are taken to be kept, always the same.
    """
    return found.kept or zlib.crc32(case.wanted[0].encode("utf-8", "replace")) % 100 < 100 * found.likely


def _last_text(session: Session, case: Case) -> str:
    """The text in which what is wanted stood last."""
    wanted = case.wanted[0]
    texts = (text for at in range(case.at - 1, -1, -1) for text in texts_of(session.messages[at]) if wanted in text)
    return next(texts, "")

"""Playback: one conversation under one policy. Every request is made, billed, checked and searched for its probes.

Lost text that is needed now is read again, as an agent would do: one more request, and its result is paid for as long
as it would stay in the conversation. The policy does not see it, so that what the policy kept is not mixed with what
was read again.
"""

import zlib
from collections.abc import Callable, Iterable
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

#: The share of strings that Claude Code's own summaries kept at 72 real compactions, by kind.
SUMMARIES_KEEP = {"path": 0.66, "identifier": 0.42, "code": 0.42, "edit_line": 0.10}
READING_OUTPUT = 80  # tokens of the call that reads a text again
LONGEST_READING = 8_000  # tokens of a text that is read again
NOTHING_SENT = Outgoing(messages=(), ends=(0,))


@dataclass(slots=True)
class _ReadAgain:
    """The texts that were read again and are still there, with their tokens: already sent, and still to send."""

    texts: list[str] = field(default_factory=list)
    sent: int = 0
    new: int = 0

    def has(self, wanted: tuple[str, ...]) -> bool:
        """Return whether all wanted texts are in what was read again."""
        return all(any(part in text for text in self.texts) for part in wanted)

    def billed(self, usage: Usage) -> Usage:
        """Return the usage of a request with these texts. They are cached if the request is."""
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
    """A conversation in progress: its policy, its cache, and what was paid so far."""

    terms: Terms
    messages: History
    course: Course
    cache: Cache
    validity: "Validity"
    paid: list[Paid] = field(default_factory=list)
    again: _ReadAgain = field(default_factory=_ReadAgain)
    _before: History | None = None
    _outgoing: Outgoing = NOTHING_SENT
    #: What the last cut could move, None before the first; what requests have gained since; and where the last one was
    #: sent.
    _movable: int | None = None
    _gained: int = 0
    _sent_at: int = 0

    def ask(self, at: int, moment: float) -> Sending:
        """Return what the policy sends, and pay for its other calls. A cut also drops what was read again."""
        sending = self.course.ask(moment)
        if sending.cut:
            self.again = _ReadAgain()
        self.summarise(at, sending.beside, moment)
        return sending

    def summarise(self, at: int, beside: Iterable[Beside], moment: float) -> None:
        """Pay for calls that were made outside the conversation."""
        for call in beside:
            front = 0 if call.alone else self.terms.front
            paid = Paid(at=at, kind="summary", output=call.output)
            self._bill(paid, self._sized(call.messages, call.marks, front), moment)

    def answer(self, at: int, sending: Sending, moment: float, answer: Message) -> None:
        """Send the request for the next answer."""
        if sending.refused:  # nothing is sent; the next request is compared with the last one that was sent
            self.paid.append(Paid(at=at, kind="answer", output=0, over=True, problems=(sending.refused,)))
            self.course.say((answer,))
            return
        before, self._before = self._before, sending.messages
        reset = before is not None and shared(before, sending.messages) < len(before)
        output = self.terms.counter.message(answer)
        new = self._renewed(at, early=sending.early) if sending.cut else None
        if not sending.cut:
            self._gained += self.terms.counter.messages(sending.messages[len(before or ()) :])
        self._sent_at = at
        paid = Paid(at=at, kind="answer", output=output, cut=sending.cut, reset=reset, new=new)
        self.course.receive(self._bill(paid, self._sized_for(sending), moment), answer)

    def _renewed(self, at: int, *, early: bool) -> float | None:
        """Return what requests gained since the last cut, as a share of what it could move; None for the first cut.

        What the policy itself adds, such as a recall for a question, is new as well. What comes after an early cut is
        new for the next one.
        """
        answer, since = self.messages[self._sent_at : self._sent_at + 1], self.messages[self._sent_at + 1 : at]
        later = self.terms.counter.messages(since)
        gained = self._gained + self.terms.counter.messages(answer) + (0 if early else later)
        before, self._movable = self._movable, self.terms.movable(self.messages[:at])
        self._gained = later if early else 0
        return None if before is None else gained / max(1, before)

    def read_again(self, at: int, sending: Sending, moment: float, text: str) -> None:
        """Send the request for a call that reads a text again. The text stays until the next cut."""
        self._bill(Paid(at=at, kind="reading", output=READING_OUTPUT), self._sized_for(sending), moment)
        self.again.texts.append(text)
        self.again.new += min(self.terms.counter.text(text), LONGEST_READING)

    def _sized_for(self, sending: Sending) -> Outgoing:
        return self._sized(sending.messages, sending.marks, self.terms.front)

    def _sized(self, messages: History, marks: tuple[int, ...] | None, front: int) -> Outgoing:
        """Return a request with the sizes of its messages; those of the previous request are known."""
        before = self._outgoing
        same = shared(before.messages, messages)
        more = front - before.ends[0]
        ends = [end + more for end in before.ends[: same + 1]]
        for message in messages[same:]:
            ends.append(ends[-1] + self.terms.counter.message(message))
        self._outgoing = Outgoing(messages=messages, ends=ends, marks=marks)
        return self._outgoing

    def _bill(self, paid: Paid, sent: Outgoing, moment: float) -> Usage:
        """Record what a request costs; return the usage that the provider reports for it alone."""
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
                problems=self.validity.refusals(sent.messages),
            )
        )
        return usage


def played(
    session: Session,
    policy: Policy,
    terms: Terms,
    pauses: Pauses,
    *,
    reading: bool = True,
    watch: Callable[[int, Sending], None] | None = None,
) -> Played:
    """Play a conversation under a policy; return every request and every probe.

    `watch` is called with every request and the number of messages before it.
    """
    user_first = terms.tariff.rules.kind == "marked"  # Anthropic's rule, and only Anthropic has marks
    known = frozenset(Validity(user_first).all_of(session.messages))
    run = _Run(terms, session.messages, policy.begin(terms), Cache(terms.tariff.rules), Validity(user_first, known))
    cases: dict[int, list[Case]] = {}
    for case in session.cases:
        cases.setdefault(case.at, []).append(case)
    probes: list[ProbeOutcome] = []
    start, last = 0, (0, 0.0)
    for at, moment in zip(session.requests, moments_of(session, pauses, terms.tariff.rules.seconds), strict=True):
        run.course.say(session.messages[start:at])
        start = at + 1
        sending = run.ask(at, moment)
        if watch is not None:
            watch(at, sending)
        for case in cases.get(at, ()):
            outcome = _probe(case, sending, run.again)
            probes.append(outcome)
            if reading and not (_is_known(case, outcome) or sending.refused):
                run.read_again(at, sending, moment, _last_text(session, case))
        run.answer(at, sending, moment, session.messages[at])
        last = (at, moment)
    run.summarise(last[0], run.course.close(), last[1])
    return Played(
        session=session.facts,
        policy=policy.name,
        window=terms.window,
        front=terms.front,
        tariff=terms.tariff.name,
        paid=tuple(run.paid),
        probes=tuple(probes),
    )


def _probe(case: Case, sending: Sending, again: _ReadAgain) -> ProbeOutcome:
    """Return whether the strings are in the request, or in text that was read again and is still there."""
    sent = Sent(sending.messages)
    back = again.has(case.wanted)
    kept = back or all(map(sent.has, case.wanted))
    literal = back or (kept and all(map(sent.has_verbatim, case.wanted)))
    kind = dict(case.groups).get("kind", "")
    credit = SUMMARIES_KEEP.get(kind, 0.0) if sending.summarised else 0.0
    return ProbeOutcome(at=case.at, kind=kind, kept=kept, literal=literal, likely=1.0 if kept else credit)


def _is_known(case: Case, outcome: ProbeOutcome) -> bool:
    """Return whether the agent need not read a string again: it is there, or a summary probably has it.

    If summaries keep 42 of 100 strings of a kind, 42 of 100 count as known, always the same ones.
    """
    return outcome.kept or zlib.crc32(case.wanted[0].encode("utf-8", "replace")) % 100 < 100 * outcome.likely


def _last_text(session: Session, case: Case) -> str:
    """Return the last text with the wanted string."""
    wanted = case.wanted[0]
    texts = (text for at in range(case.at - 1, -1, -1) for text in texts_of(session.messages[at]) if wanted in text)
    return next(texts, "")


# --- what a provider would refuse ----------------------------------------------------------------

MOST_REPORTED = 3  # kinds of faults of one request
RESULTS, SYSTEM = ("tool", "function"), ("system", "developer")
FIRST: JsonObject = {"role": "user", "content": "…"}


@dataclass(slots=True)
class Validity:
    """Finds what a provider would refuse in the requests of one conversation, besides their length.

    Most requests extend the previous one, so each is checked from where it differs. A *piece* is a message with the
    results that follow it: its problems show without the others. Whether the user speaks first, which only Anthropic
    demands, is checked separately.
    """

    user_first: bool
    #: Problems of the conversation itself, which are not reported.
    known: frozenset[str] = frozenset()
    _before: History = ()
    #: Where each piece of the previous request ends, and its problems.
    _pieces: list[tuple[int, tuple[str, ...]]] = field(default_factory=list)

    def refusals(self, messages: History) -> tuple[str, ...]:
        """Return the problems of a request, at most a few kinds; () if it is valid."""
        return tuple(text for text in self.all_of(messages) if text not in self.known)[:MOST_REPORTED]

    def all_of(self, messages: History) -> tuple[str, ...]:
        """Return all problems of a request, including known ones."""
        same = shared(self._before, messages)
        while self._pieces and self._pieces[-1][0] >= same:  # results may follow the piece that ends there
            self._pieces.pop()
        start = self._pieces[-1][0] if self._pieces else 0
        while start < len(messages):
            stop = _end_of_piece(messages, start)
            self._pieces.append((stop, _faults(messages[start:stop])))
            start = stop
        self._before = messages
        texts = dict.fromkeys(text for _, faults in self._pieces for text in faults)
        return (*_first_faults(messages, user_first=self.user_first), *texts)


def _end_of_piece(messages: History, start: int) -> int:
    """Return where the next message starts that is not a tool result."""
    for at in range(start + 1, len(messages)):
        raws = rendered(messages[at])
        if raws and raws[0].get("role") not in RESULTS:
            return at
    return len(messages)


@lru_cache(maxsize=20_000)
def _faults(piece: History) -> tuple[str, ...]:
    body: list[Json] = [FIRST, *(raw for message in piece for raw in rendered(message))]
    return tuple(dict.fromkeys(problem.text for problem in problems(OPENAI_CHAT.name, {"messages": body})))


def _first_faults(messages: History, *, user_first: bool) -> tuple[str, ...]:
    roles = (raw.get("role") for message in messages for raw in rendered(message))
    first = next(roles, None)
    if first is None:
        return ("there are no messages",)
    while first in SYSTEM:
        first = next(roles, None)
    if first is None:
        return ("there are only system messages",)
    return (f"first message is from {first}, not from the user",) if user_first and first != "user" else ()

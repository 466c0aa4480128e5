"""Policies to compare with, in a few lines each: those that keep what they did, and those that do it anew each time.

All of them cut between steps (a call and its results) and keep the system text. Sizes are shares of the budget: what
a request may take with the front.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from everlong.core import History, Message, Role, Text, head_length, steps_of
from everlong.errors import BudgetImpossible
from everlong.lab.replay.caches import shared
from everlong.lab.replay.courses import Beside, Sending, Terms
from everlong.lab.strategies.baselines import CLEARED, ends_of, old_before, with_results
from everlong.lab.strategies.strategy import Strategy, counter
from everlong.wire import Usage

__all__ = ["ClearResults", "DropRounds", "KeepWhole", "Marks", "SelectEachTurn", "Summarise", "TrimResults"]

SUMMARY_TOKENS = 2_800  # what Claude Code's own summaries take
INSTRUCTION = Message(
    Role.USER, (Text("Summarise the conversation so far, so that the work can go on from it. " * 12),)
)
SUMMARY_TEXT = "summary "  # one token in most vocabularies
ATTEMPTS, LESS = 5, 0.97  # to make a strategy fit that counts otherwise, and how much less it is given than reckoned
KEPT_RESULTS = 3  # at the end, where old ones are cleared


@dataclass(frozen=True, slots=True)
class Marks:
    """At `high` of the budget a cut is due, and it goes down to `low`; when the cache is cold, from `cold` on."""

    high: float
    low: float
    cold: float | None = None


@dataclass(slots=True)
class _Conversation:
    """What every policy here knows: the terms, and the conversation so far."""

    terms: Terms
    said: list[Message] = field(default_factory=list)

    def say(self, messages: History) -> None:
        """Remember it."""
        self.said.extend(messages)

    def heard(self, usage: Usage, answer: Message) -> None:  # noqa: ARG002 - what was reported is not looked at
        """Remember the answer."""
        self.say((answer,))

    def close(self) -> tuple[Beside, ...]:
        """Nothing is held."""
        return ()

    def size(self, messages: History) -> int:
        """Tokens with the front."""
        return self.terms.front + self.terms.counter.messages(messages)


@dataclass(slots=True)
class KeepWhole(_Conversation):
    """Everything, always: to a model with room for it."""

    def ask(self, moment: float) -> Sending:  # noqa: ARG002 - time changes nothing
        """All of it."""
        return Sending(messages=tuple(self.said))


@dataclass(slots=True)
class SelectEachTurn(_Conversation):
    """A strategy that selects anew for every request.

    Strategies count as the lab does. Where the replay counts for a model with another vocabulary, they are given as
    many of their own tokens as the room is worth, by both counts of the conversation so far; and less, if what they
    choose is then still too much.
    """

    strategy: Strategy | None = None
    _select: Callable[[History, int], History] | None = None
    _before: History = ()

    def ask(self, moment: float) -> Sending:  # noqa: ARG002
        """What it selects of all that was said."""
        try:
            chosen = self._chosen(tuple(self.said))
        except BudgetImpossible as error:
            return Sending(refused=str(error))
        before, self._before = self._before, chosen
        return Sending(messages=chosen, cut=shared(before, chosen) < len(before))

    def _chosen(self, said: History) -> History:
        assert self.strategy is not None
        if self._select is None:
            self._select = self.strategy.begin()
        own, theirs = self.terms.counter, counter()
        room = budget = self.terms.budget - self.terms.front
        if own.vocabulary == theirs.vocabulary:
            return self._select(said, budget)
        budget = int(room * theirs.messages(said) / max(1, own.messages(said)))
        chosen = self._select(said, budget)
        for _ in range(ATTEMPTS):
            size = own.messages(chosen)
            if size <= room:
                break
            budget = int(LESS * budget * room / size)
            chosen = self._select(said, budget)
        return chosen


@dataclass(slots=True)
class DropRounds(_Conversation):
    """Whole steps are dropped in batches, oldest first."""

    marks: Marks = Marks(0.95, 0.5)
    _start: int = -1
    _last: float | None = None

    def ask(self, moment: float) -> Sending:
        """The system text and what has not been dropped yet."""
        said = tuple(self.said)
        head = head_length(said)
        start = max(self._start, head)
        size = self.size((*said[:head], *said[start:]))
        high = self.marks.high
        if self.marks.cold is not None and self._last is not None:
            cold = moment - self._last > self.terms.tariff.rules.seconds
            high = self.marks.cold if cold else high
        self._last = moment
        if size > high * self.terms.budget:
            room = int(self.marks.low * self.terms.budget) - self.terms.front
            start = max(start, newest_from(said, room, self.terms))
        cut = start > max(self._start, head)
        self._start = start
        return Sending(messages=(*said[:head], *said[start:]), cut=cut)


@dataclass(slots=True)
class ClearResults(_Conversation):
    """From `high` of the budget on all tool results but the newest are replaced by a line, with every request anew.

    What is still too much is cut to the newest steps that fit.
    """

    high: float = 0.5
    _sent: History = ()

    def ask(self, moment: float) -> Sending:  # noqa: ARG002
        """What stands, cleared if it is too much."""
        said = tuple(self.said)
        if self.size(said) > self.high * self.terms.budget:
            results = [at for at, message in enumerate(said) if message.results]
            old = set(results[:-KEPT_RESULTS])
            said = tuple(with_results(m, lambda _: CLEARED) if at in old else m for at, m in enumerate(said))
        if self.size(said) > self.terms.budget:
            start = newest_from(said, self.terms.budget - self.terms.front, self.terms)
            said = (*said[: head_length(said)], *said[start:])
        cut, self._sent = said[: len(self._sent)] != self._sent, said
        return Sending(messages=said, cut=cut)


@dataclass(slots=True)
class TrimResults(_Conversation):
    """Old tool results are cut to their ends in batches, then whole steps dropped if that is not enough.

    With `each_turn` every result is cut as soon as it is old, and only the dropping comes in batches.
    """

    marks: Marks = Marks(0.85, 0.5)
    each_turn: bool = False
    _start: int = -1
    _short: dict[int, Message] = field(default_factory=dict)

    def ask(self, moment: float) -> Sending:  # noqa: ARG002
        """What stands, brought down if it is too much."""
        said = tuple(self.said)
        head = head_length(said)
        old = old_before(said)
        start = max(self._start, head)
        short = len(self._short)
        if self.each_turn:
            self._shorten(range(start, old), 0)
        size = self.size(self._standing(head, start))
        if size > self.marks.high * self.terms.budget:
            low = self.marks.low * self.terms.budget
            size -= self._shorten(range(start, old), int(size - low))
            if size > low:
                kept = tuple(self._short.get(at, message) for at, message in enumerate(said))
                start = max(start, newest_from(kept, int(low) - self.terms.front, self.terms))
        cut = len(self._short) > short or start > max(self._start, head)
        self._start = start
        return Sending(messages=self._standing(head, start), cut=cut)

    def _standing(self, head: int, start: int) -> History:
        places = (*range(head), *range(start, len(self.said)))
        return tuple(self._short.get(at, self.said[at]) for at in places)

    def _shorten(self, places: range, wanted: int) -> int:
        """Cut old results, oldest first, until so many tokens are saved; all of them if none are named."""
        saved = 0
        for at in places:
            if wanted and saved >= wanted:
                break
            whole = self.said[at]
            short = with_results(whole, ends_of) if whole.results and at not in self._short else whole
            if short != whole:
                saved += self.terms.counter.message(whole) - self.terms.counter.message(short)
                self._short[at] = short
        return saved


@dataclass(slots=True)
class Summarise(_Conversation):
    """At the high mark a summary of everything, asked on the cached prefix, and the newest steps behind it.

    The summary is a word said over and over, as long as those of Claude Code: what a model would have kept in it is
    credited by kind, and nothing is found in it. `cap` is the most tokens that a result may take when it comes;
    `limit` is a high mark in tokens.
    """

    high: float = 0.95
    tail: int = 10_000
    cap: int = 0
    limit: int = 0
    _start: int = -1
    _written: int = 0

    def say(self, messages: History) -> None:
        """Remember it, long results cut."""
        self.said.extend(_capped(message, self.cap) if self.cap else message for message in messages)

    def ask(self, moment: float) -> Sending:  # noqa: ARG002
        """System text, summary, and what came after it."""
        said = tuple(self.said)
        head = head_length(said)
        start = max(self._start, head)
        standing = self._standing(said, head, start)
        most = self.limit or self.high * self.terms.budget
        if self.size(standing) <= most:
            return Sending(messages=standing, summarised=self._written > 0)
        asked = Beside(messages=(*standing, INSTRUCTION), output=SUMMARY_TOKENS)
        self._written += 1
        self._start = max(start, newest_from(said, self.tail, self.terms))
        return Sending(messages=self._standing(said, head, self._start), cut=True, beside=(asked,), summarised=True)

    def _standing(self, said: History, head: int, start: int) -> History:
        return (*said[:head], *(_summary(self._written) if self._written else ()), *said[start:])


def newest_from(said: History, room: int, terms: Terms) -> int:
    """Where the newest steps begin that fit the room with the system text, none left out; the last always stays."""
    count = terms.counter.message
    head = head_length(said)
    left = room - sum(map(count, said[:head]))
    start = len(said)
    for step in reversed(steps_of(said)):
        left -= sum(map(count, said[step.start : step.stop]))
        if step.start < head or (left < 0 and start < len(said)):
            break
        start = step.start
    return start


def _summary(number: int) -> History:
    return (Message(Role.USER, (Text(f"[{number}] {SUMMARY_TEXT * SUMMARY_TOKENS}"),)),)


def _capped(message: Message, tokens: int) -> Message:
    most = 4 * tokens  # characters, about
    return with_results(message, lambda text: text if len(text) <= most else f"{text[:most]}\n[…]")

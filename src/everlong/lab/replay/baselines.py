"""Policies for comparison, in a few lines each: some keep their cuts, others cut again for every request.

All of them cut between steps (a call and its results) and keep the system text. Sizes are shares of the budget, which
includes the prompt overhead.
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

SUMMARY_TOKENS = 2_800  # the size of Claude Code's own summaries
INSTRUCTION = Message(
    Role.USER, (Text("Summarise the conversation so far, so that the work can go on from it. " * 12),)
)
SUMMARY_TEXT = "summary "  # one token in most vocabularies
ATTEMPTS, LESS = 5, 0.97  # attempts to fit a strategy that counts differently; the share of the budget that it gets
KEPT_RESULTS = 3  # at the end, if old ones are cleared


@dataclass(frozen=True, slots=True)
class Marks:
    """Shares of the budget: a cut is due at `high` and goes down to `low`; with a cold cache it is due at `cold`."""

    high: float
    low: float
    cold: float | None = None


@dataclass(slots=True)
class _Conversation:
    """What every policy here has: the terms, and the conversation so far."""

    terms: Terms
    messages: list[Message] = field(default_factory=list)

    def say(self, messages: History) -> None:
        """Remember the messages."""
        self.messages.extend(messages)

    def receive(self, usage: Usage, answer: Message) -> None:  # noqa: ARG002 - usage is ignored
        """Remember the answer."""
        self.say((answer,))

    def close(self) -> tuple[Beside, ...]:
        """Return no calls: none were made."""
        return ()

    def size(self, messages: History) -> int:
        """Return the tokens of a request with these messages, the prompt overhead included."""
        return self.terms.front + self.terms.counter.messages(messages)


@dataclass(slots=True)
class KeepWhole(_Conversation):
    """Always send everything: for a model with a large enough window."""

    def ask(self, moment: float) -> Sending:  # noqa: ARG002 - time changes nothing
        """Return all messages."""
        return Sending(messages=tuple(self.messages))


@dataclass(slots=True)
class SelectEachTurn(_Conversation):
    """Select again for every request, by a strategy of the lab.

    Strategies use the lab's counter. If the replay counts for a model with another vocabulary, the budget is converted
    by both counts of the conversation so far, and lowered if the selection is still too large.
    """

    strategy: Strategy | None = None
    _select: Callable[[History, int], History] | None = None
    _before: History = ()

    def ask(self, moment: float) -> Sending:  # noqa: ARG002
        """Return the strategy's selection of all messages."""
        try:
            chosen = self._chosen(tuple(self.messages))
        except BudgetImpossible as error:
            return Sending(refused=str(error))
        before, self._before = self._before, chosen
        return Sending(messages=chosen, cut=shared(before, chosen) < len(before))

    def _chosen(self, messages: History) -> History:
        assert self.strategy is not None
        if self._select is None:
            self._select = self.strategy.begin()
        own, theirs = self.terms.counter, counter()
        room = budget = self.terms.budget - self.terms.front
        if own.vocabulary == theirs.vocabulary:
            return self._select(messages, budget)
        budget = int(room * theirs.messages(messages) / max(1, own.messages(messages)))
        chosen = self._select(messages, budget)
        for _ in range(ATTEMPTS):
            size = own.messages(chosen)
            if size <= room:
                break
            budget = int(LESS * budget * room / size)
            chosen = self._select(messages, budget)
        return chosen


@dataclass(slots=True)
class DropRounds(_Conversation):
    """Drop whole steps in batches, oldest first."""

    marks: Marks = Marks(0.95, 0.5)
    _start: int = -1
    _last: float | None = None

    def ask(self, moment: float) -> Sending:
        """Return the system text and the steps that were not dropped."""
        messages = tuple(self.messages)
        head = head_length(messages)
        start = max(self._start, head)
        size = self.size((*messages[:head], *messages[start:]))
        high = self.marks.high
        if self.marks.cold is not None and self._last is not None:
            cold = moment - self._last > self.terms.tariff.rules.seconds
            high = self.marks.cold if cold else high
        self._last = moment
        if size > high * self.terms.budget:
            room = int(self.marks.low * self.terms.budget) - self.terms.front
            start = max(start, newest_from(messages, room, self.terms))
        cut = start > max(self._start, head)
        self._start = start
        return Sending(messages=(*messages[:head], *messages[start:]), cut=cut)


@dataclass(slots=True)
class ClearResults(_Conversation):
    """From `high` of the budget on, replace all tool results but the newest with a line, again for every request.

    If that is still too much, keep only the newest steps that fit.
    """

    high: float = 0.5
    _sent: History = ()

    def ask(self, moment: float) -> Sending:  # noqa: ARG002
        """Return the messages, with old results cleared if they are too long."""
        messages = tuple(self.messages)
        if self.size(messages) > self.high * self.terms.budget:
            results = [at for at, message in enumerate(messages) if message.results]
            old = set(results[:-KEPT_RESULTS])
            messages = tuple(with_results(m, lambda _: CLEARED) if at in old else m for at, m in enumerate(messages))
        if self.size(messages) > self.terms.budget:
            start = newest_from(messages, self.terms.budget - self.terms.front, self.terms)
            messages = (*messages[: head_length(messages)], *messages[start:])
        cut, self._sent = messages[: len(self._sent)] != self._sent, messages
        return Sending(messages=messages, cut=cut)


@dataclass(slots=True)
class TrimResults(_Conversation):
    """Cut old tool results to their ends in batches; drop whole steps if that is not enough.

    With `each_turn`, every result is cut as soon as it is old, and only steps are dropped in batches.
    """

    marks: Marks = Marks(0.85, 0.5)
    each_turn: bool = False
    _start: int = -1
    _short: dict[int, Message] = field(default_factory=dict)

    def ask(self, moment: float) -> Sending:  # noqa: ARG002
        """Return the messages, shortened if they are too long."""
        messages = tuple(self.messages)
        head = head_length(messages)
        old = old_before(messages)
        start = max(self._start, head)
        short = len(self._short)
        if self.each_turn:
            self._shorten(range(start, old), 0)
        size = self.size(self._current(head, start))
        if size > self.marks.high * self.terms.budget:
            low = self.marks.low * self.terms.budget
            size -= self._shorten(range(start, old), int(size - low))
            if size > low:
                kept = tuple(self._short.get(at, message) for at, message in enumerate(messages))
                start = max(start, newest_from(kept, int(low) - self.terms.front, self.terms))
        cut = len(self._short) > short or start > max(self._start, head)
        self._start = start
        return Sending(messages=self._current(head, start), cut=cut)

    def _current(self, head: int, start: int) -> History:
        places = (*range(head), *range(start, len(self.messages)))
        return tuple(self._short.get(at, self.messages[at]) for at in places)

    def _shorten(self, places: range, wanted: int) -> int:
        """Cut old results, oldest first, until `wanted` tokens are saved; all if it is 0. Returns the saved tokens."""
        saved = 0
        for at in places:
            if wanted and saved >= wanted:
                break
            whole = self.messages[at]
            short = with_results(whole, ends_of) if whole.results and at not in self._short else whole
            if short != whole:
                saved += self.terms.counter.message(whole) - self.terms.counter.message(short)
                self._short[at] = short
        return saved


@dataclass(slots=True)
class Summarise(_Conversation):
    """At the threshold, ask for a summary of everything on the cached prefix; then send it and the newest steps.

    The summary repeats one word, and is as long as a summary of Claude Code: no probe is found in it, and what a model
    would have kept is credited by kind. `cap` is the most tokens of a result on arrival; `limit` is a threshold in
    tokens.
    """

    high: float = 0.95
    tail: int = 10_000
    cap: int = 0
    limit: int = 0
    _start: int = -1
    _written: int = 0

    def say(self, messages: History) -> None:
        """Remember the messages, with long results cut."""
        self.messages.extend(_capped(message, self.cap) if self.cap else message for message in messages)

    def ask(self, moment: float) -> Sending:  # noqa: ARG002
        """Return the system text, the summary, and what came after it."""
        messages = tuple(self.messages)
        head = head_length(messages)
        start = max(self._start, head)
        standing = self._current(messages, head, start)
        most = self.limit or self.high * self.terms.budget
        if self.size(standing) <= most:
            return Sending(messages=standing, summarised=self._written > 0)
        call = Beside(messages=(*standing, INSTRUCTION), output=SUMMARY_TOKENS)
        self._written += 1
        self._start = max(start, newest_from(messages, self.tail, self.terms))
        return Sending(messages=self._current(messages, head, self._start), cut=True, beside=(call,), summarised=True)

    def _current(self, messages: History, head: int, start: int) -> History:
        return (*messages[:head], *(_summary(self._written) if self._written else ()), *messages[start:])


def newest_from(messages: History, room: int, terms: Terms) -> int:
    """Return where the newest steps start that fit with the system text, without gaps. The last step always stays."""
    count = terms.counter.message
    head = head_length(messages)
    left = room - sum(map(count, messages[:head]))
    start = len(messages)
    for step in reversed(steps_of(messages)):
        left -= sum(map(count, messages[step.start : step.stop]))
        if step.start < head or (left < 0 and start < len(messages)):
            break
        start = step.start
    return start


def _summary(number: int) -> History:
    return (Message(Role.USER, (Text(f"[{number}] {SUMMARY_TEXT * SUMMARY_TOKENS}"),)),)


def _capped(message: Message, tokens: int) -> Message:
    most = 4 * tokens  # approximate characters
    return with_results(message, lambda text: text if len(text) <= most else f"{text[:most]}\n[…]")

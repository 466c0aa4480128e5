"""What a provider's prompt cache makes of a row of requests: how much is read from it, how much is written.

Two kinds. *Automatic*: the longest beginning that an earlier request had too, in whole steps. *Marked*: only what ends
at a mark of an earlier request, found again from a mark of this one by looking a few blocks back. Both forget after a
while, and each use begins that while anew for what was used. A message is the smallest thing that is matched.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Literal

from everlong.core import History
from everlong.wire import Usage

__all__ = ["Cache", "Outgoing", "Rules", "shared"]

REMEMBERED = 24  # requests that no later one begins with: what stood before each cut, and what was asked beside
LOOKED_BACK = 20  # blocks before a mark in which an earlier mark is found


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How a provider caches. `least` tokens are the shortest beginning, `step` what it grows by; `seconds` its life."""

    kind: Literal["automatic", "marked", "none"]
    least: int = 1_024
    step: int = 1
    seconds: float = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """A request as a cache sees it: what stands in front of every one, in tokens, then messages.

    `ends` are the tokens up to the end of the front and of each message. `marks` are how many messages stand before
    each mark; 0 is the mark behind the front. None: a mark behind every message.
    """

    messages: History
    ends: Sequence[int]
    marks: tuple[int, ...] | None = None

    @property
    def tokens(self) -> int:
        """All of it."""
        return self.ends[-1]

    @classmethod
    def of(
        cls, front: int, messages: History, sizes: Sequence[int], marks: tuple[int, ...] | None = None
    ) -> "Outgoing":
        """From the size of each message."""
        return cls(messages=messages, ends=tuple(accumulate(sizes, initial=front)), marks=marks)


@dataclass(slots=True)
class _Entry:
    sent: Outgoing
    #: number of messages -> until when the beginning of so many is known
    until: dict[int, float]


@dataclass(slots=True)
class Cache:
    """One conversation's part of a provider's cache."""

    rules: Rules
    _kept: list[_Entry] = field(default_factory=list)

    def take(self, sent: Outgoing, moment: float, output: int = 0) -> Usage:
        """The usage that the provider reports for a request at that moment (seconds); it is remembered."""
        if self.rules.kind == "none":
            return Usage(prompt=sent.tokens, output=output)
        found = self._found(sent, moment)
        read = sent.ends[found] if found >= 0 else 0
        read -= read % self.rules.step
        if read < self.rules.least:
            read = 0
        return Usage(prompt=sent.tokens, cached=read, cache_written=self._remember(sent, moment, read), output=output)

    def _found(self, sent: Outgoing, moment: float) -> int:
        """The longest beginning that is still known, in messages; -1 if not even the front is. It lives on."""
        best = -1
        for kept in self._kept:
            if kept.sent.ends[0] != sent.ends[0]:
                continue
            same = shared(kept.sent.messages, sent.messages)
            reaches = {self._reach(known, same, sent) for known, until in kept.until.items() if until >= moment} - {-1}
            kept.until |= dict.fromkeys(reaches, moment + self.rules.seconds)
            best = max(best, *reaches, -1)
        return best

    def _reach(self, known: int, same: int, sent: Outgoing) -> int:
        """How many messages of what is known help this request; -1 if none and not the front either."""
        if self.rules.kind == "automatic" or sent.marks is None:
            return min(known, same)
        return known if known <= same and _seen_from(known, sent) else -1

    def _remember(self, sent: Outgoing, moment: float, read: int) -> int:
        """Keep the request; the tokens that were written to the cache."""
        everywhere = self.rules.kind == "automatic" or sent.marks is None
        marks = (len(sent.messages),) if everywhere else sent.marks or ()
        known = [mark for mark in marks if sent.ends[mark] >= self.rules.least]
        if not known:
            return 0
        until = dict.fromkeys(known, moment + self.rules.seconds)
        others = []
        for kept in self._kept:
            if not _extends(sent, kept.sent):
                others.append(kept)
            elif not everywhere:  # where it ended is a beginning of this one, too
                until = {mark: time for mark, time in kept.until.items() if time >= moment} | until
        self._kept = [*others, _Entry(sent, until)][-REMEMBERED:]
        return max(0, sent.ends[max(known)] - read)


def shared(one: History, other: History) -> int:
    """How many messages both begin with."""
    for at, (a, b) in enumerate(zip(one, other, strict=False)):
        if a is not b and a != b:
            return at
    return min(len(one), len(other))


def _extends(sent: Outgoing, before: Outgoing) -> bool:
    """Whether a request begins with all of one before it."""
    if sent.ends[0] != before.ends[0]:
        return False
    return shared(before.messages, sent.messages) == len(before.messages)


def _seen_from(known: int, sent: Outgoing) -> bool:
    """Whether a mark of the request stands so close behind that what ended there is found."""
    for mark in sent.marks or ():
        if known == mark:
            return True
        if known < mark and sum(len(message.parts) for message in sent.messages[known:mark]) < LOOKED_BACK:
            return True
    return False

"""A provider's prompt cache: how much of each request it reads, and how much it writes.

There are two kinds. *Automatic*: the longest prefix in common with an earlier request, in whole steps. *Marked*: only
prefixes that end at a mark of an earlier request, found from a mark of this one by looking a few blocks back. Both drop
a prefix some time after its last use. A message is the smallest unit that is matched.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Literal

from everlong.core import History
from everlong.wire import Usage

__all__ = ["Cache", "Outgoing", "Rules", "shared"]

REMEMBERED = 24  # requests that no later one extends: those before a cut, and calls for summaries
LOOKED_BACK = 20  # blocks before a mark that are searched for an earlier mark


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How a provider caches. `least` is the shortest prefix in tokens, `step` its growth, `seconds` its lifetime."""

    kind: Literal["automatic", "marked", "none"]
    least: int = 1_024
    step: int = 1
    seconds: float = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """A request as a cache sees it: the prompt overhead in tokens, then messages.

    `ends` are the tokens up to the end of the overhead and of each message. `marks` are the numbers of messages before
    each mark; 0 is the mark after the overhead. None means a mark after every message.
    """

    messages: History
    ends: Sequence[int]
    marks: tuple[int, ...] | None = None

    @property
    def tokens(self) -> int:
        """Return the tokens of the whole request."""
        return self.ends[-1]

    @classmethod
    def of(
        cls, front: int, messages: History, sizes: Sequence[int], marks: tuple[int, ...] | None = None
    ) -> "Outgoing":
        """Return a request from the size of each message."""
        return cls(messages=messages, ends=tuple(accumulate(sizes, initial=front)), marks=marks)


@dataclass(slots=True)
class _Entry:
    sent: Outgoing
    #: number of messages -> until when the prefix with that many is cached
    until: dict[int, float]


@dataclass(slots=True)
class Cache:
    """One conversation's part of a provider's cache."""

    rules: Rules
    _entries: list[_Entry] = field(default_factory=list)

    def take(self, sent: Outgoing, moment: float, output: int = 0) -> Usage:
        """Remember a request at that moment (in seconds); return the usage that the provider reports for it."""
        if self.rules.kind == "none":
            return Usage(prompt=sent.tokens, output=output)
        known = self._known_prefix(sent, moment)
        read = sent.ends[known] if known >= 0 else 0
        read -= read % self.rules.step
        if read < self.rules.least:
            read = 0
        return Usage(prompt=sent.tokens, cached=read, cache_written=self._remember(sent, moment, read), output=output)

    def _known_prefix(self, sent: Outgoing, moment: float) -> int:
        """Return the longest cached prefix in messages, and renew it; -1 if not even the overhead is cached."""
        best = -1
        for entry in self._entries:
            if entry.sent.ends[0] != sent.ends[0]:
                continue
            same = shared(entry.sent.messages, sent.messages)
            reaches = {self._reach(known, same, sent) for known, until in entry.until.items() if until >= moment} - {-1}
            entry.until |= dict.fromkeys(reaches, moment + self.rules.seconds)
            best = max(best, *reaches, -1)
        return best

    def _reach(self, known: int, same: int, sent: Outgoing) -> int:
        """Return how many messages of a cached prefix this request can use; -1 if not even the overhead."""
        if self.rules.kind == "automatic" or sent.marks is None:
            return min(known, same)
        return known if known <= same and _seen_from(known, sent) else -1

    def _remember(self, sent: Outgoing, moment: float, read: int) -> int:
        """Keep the request; return the tokens that were written to the cache."""
        everywhere = self.rules.kind == "automatic" or sent.marks is None
        marks = (len(sent.messages),) if everywhere else sent.marks or ()
        known = [mark for mark in marks if sent.ends[mark] >= self.rules.least]
        if not known:
            return 0
        until = dict.fromkeys(known, moment + self.rules.seconds)
        others = []
        for entry in self._entries:
            if not _extends(sent, entry.sent):
                others.append(entry)
            elif not everywhere:  # its marks are ends of prefixes of this request too
                until = {mark: time for mark, time in entry.until.items() if time >= moment} | until
        self._entries = [*others, _Entry(sent, until)][-REMEMBERED:]
        return max(0, sent.ends[max(known)] - read)


def shared(one: History, other: History) -> int:
    """Return the number of common leading messages."""
    for at, (a, b) in enumerate(zip(one, other, strict=False)):
        if a is not b and a != b:
            return at
    return min(len(one), len(other))


def _extends(sent: Outgoing, before: Outgoing) -> bool:
    """Return whether a request begins with all of an earlier one."""
    if sent.ends[0] != before.ends[0]:
        return False
    return shared(before.messages, sent.messages) == len(before.messages)


def _seen_from(known: int, sent: Outgoing) -> bool:
    """Return whether a mark of the request is close enough after a cached prefix to find it."""
    for mark in sent.marks or ():
        if known == mark:
            return True
        if known < mark and sum(len(message.parts) for message in sent.messages[known:mark]) < LOOKED_BACK:
            return True
    return False

"""Compaction points: how an append-only log becomes the view that is sent.

A log only grows. A compaction appends a `Point`; undoing it appends a `Withdrawal`; what was brought back
for a question is a `Recalled`. Positions in the log are the only identity here. The view is the leading
system text, what the newest point that still stands left in place of what it covers, and every message
after, with what was recalled since at its place. An `Edit` says what one step did to one message, and why.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from everlong.core.encoding import Ref
from everlong.core.messages import History, Message
from everlong.core.rounds import head_length

__all__ = ["Action", "Edit", "Entry", "Log", "Point", "Recalled", "Withdrawal", "messages_from", "newest_point", "view"]


class Action(StrEnum):
    """What happened to the message or part."""

    SHORTEN = "shorten"  # said with fewer words: a trim, a table, a stub
    DROP = "drop"  # not sent at all
    INSERT = "insert"  # ours: a summary, excerpts, names, a recalled block
    REPAIR = "repair"  # changed so that the provider accepts it


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """One change. `at` is the index in the history that was given; `part` None means the whole message."""

    at: int
    step: str
    action: Action
    reason: str
    before: int
    after: int
    part: int | None = None
    ref: Ref | None = None

    @property
    def saved(self) -> int:
        """Tokens that no longer have to be sent."""
        return self.before - self.after


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """Everything in the log before position `boundary`, system text aside, is said by `summary` from here on."""

    boundary: int
    summary: History
    tokens_before: int = 0
    tokens_after: int = 0
    reason: str = ""
    focus: str = ""
    #: The summary that a model wrote of what is covered, as `summarize` keeps it; "" if none did.
    account: str = ""
    #: The model it was made for, and the tokens its messages could take then.
    model: str = ""
    limit: int = 0
    #: What was done to the covered messages, `at` being positions in the log.
    edits: tuple[Edit, ...] = ()


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """The point at log position `point` no longer counts."""

    point: int


@dataclass(frozen=True, slots=True)
class Recalled:
    """A message of ours that stands right before log position `before`, until the next point."""

    before: int
    message: Message


Entry: TypeAlias = Message | Point | Recalled | Withdrawal
Log: TypeAlias = tuple[Entry, ...]


def newest_point(log: Sequence[Entry]) -> tuple[int, Point] | None:
    """The newest point that was not withdrawn, with its position."""
    withdrawn = {entry.point for entry in log if isinstance(entry, Withdrawal)}
    for at in range(len(log) - 1, -1, -1):
        entry = log[at]
        if isinstance(entry, Point) and at not in withdrawn:
            return at, entry
    return None


def messages_from(entries: Sequence[tuple[int, Entry]], start: int, point: int = -1) -> History:
    """The messages from log position `start` on, what was recalled after the point at position `point` at its place.

    A point that leaves the view as it is has what was recalled again behind it; without that point it stands once.
    """
    recalled: dict[int, dict[Message, None]] = {}
    for at, entry in entries:
        if isinstance(entry, Recalled) and at > point:
            recalled.setdefault(entry.before, {})[entry.message] = None
    messages: list[Message] = []
    for at, entry in entries:
        if at < start:
            continue
        messages.extend(recalled.get(at, ()))
        if isinstance(entry, Message):
            messages.append(entry)
    return tuple(messages)


def view(log: Sequence[Entry]) -> History:
    """The view of a log: the messages to be sent.

    Example: system, user, assistant, user, Point(boundary=3, summary=S) -> system, S, user
    """
    entries = list(enumerate(log))
    newest = newest_point(log)
    if newest is None:
        return messages_from(entries, 0)
    head = head_length(tuple(entry for entry in log if isinstance(entry, Message)))
    covered = max(head, newest[1].boundary)
    leading = tuple(entry for entry in log[:covered] if isinstance(entry, Message))[:head]
    return leading + newest[1].summary + messages_from(entries, covered, newest[0])

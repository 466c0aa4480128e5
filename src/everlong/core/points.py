"""Compaction points: how an append-only log becomes the view that is sent.

A log only grows. A compaction appends a `Point`, and undoing it appends a `Withdrawal`. Text that is brought back for a
question is appended as a `Recalled`. Deleting messages appends a `Removal`, and restoring them a `Restoration`; readers
see `Gone` in place of deleted entries. Entries are identified by their position in the log. The view consists of the
leading system text, what the newest point in force left in place of the messages it covers, and every message after it,
with recalled text in its place. An `Edit` says what one step did to one message, and why.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import takewhile
from typing import TypeAlias

from everlong.core.encoding import Ref
from everlong.core.messages import History, Message, Role

__all__ = [
    "Action",
    "Edit",
    "Entry",
    "Figures",
    "Gone",
    "Log",
    "Point",
    "Recalled",
    "Removal",
    "Restoration",
    "Withdrawal",
    "leads",
    "messages_from",
    "newest_point",
    "view",
    "visible",
]


class Action(StrEnum):
    """What an edit did to a message or part: "shorten", "drop", "insert" or "repair"."""

    SHORTEN = "shorten"  # replaced by something shorter: a trim, a table, a stub
    DROP = "drop"  # not sent at all
    INSERT = "insert"  # added by us: a summary, excerpts, names, recalled text
    REPAIR = "repair"  # changed so that the provider accepts it


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """One change to a message, with its reason.

    - `at`: the index of the message in the history; `part`: the index of the part, or None for the whole message.
    - `step`: the step that made the change; `action`: what it did; `reason`: why, in words.
    - `before`, `after`: the tokens before and after.
    - `ref`: the reference under which the original can be recalled.
    """

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
        """The tokens that the edit saves."""
        return self.before - self.after


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What a compaction did, in figures that never change after it happened.

    - `messages`: the messages before its boundary, without system text.
    - `kept`, `shortened`: how many of them are sent unchanged and shortened. The others are no longer sent.
    - `before`, `after`: the tokens of the whole request as the provider counts them.
    """

    messages: int
    kept: int = 0
    shortened: int = 0
    before: int
    after: int

    @property
    def left_out(self) -> int:
        """How many of the messages are no longer sent."""
        return self.messages - self.kept - self.shortened


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A compaction point: `summary` replaces everything in the log before position `boundary` except system text.

    - `tokens_before`, `tokens_after`: the tokens of the messages in the view, by our own count.
    - `reason`, `focus`: why the compaction was made, and what the user asked it to focus on.
    - `account`: the summary by a model, as `everlong.summarize` stores it; "" if there is none.
    - `model`, `limit`: the model it was made for, and the most tokens its messages could have.
    - `edits`: what was done to the covered messages; `at` is a position in the log.
    - `figures`: the figures to show; None if another program or an earlier version made the point.
    """

    boundary: int
    summary: History
    tokens_before: int = 0
    tokens_after: int = 0
    reason: str = ""
    focus: str = ""
    account: str = ""
    model: str = ""
    limit: int = 0
    edits: tuple[Edit, ...] = ()
    figures: Figures | None = None

    @property
    def sizes(self) -> tuple[int, int]:
        """The tokens before and after, to show to users."""
        figures = self.figures
        return (self.tokens_before, self.tokens_after) if figures is None else (figures.before, figures.after)


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """The undoing of the point at log position `point`."""

    point: int


@dataclass(frozen=True, slots=True)
class Recalled:
    """A message that was brought back. It stands before log position `before` until the next compaction point."""

    before: int
    message: Message


@dataclass(frozen=True, slots=True)
class Removal:
    """The deletion of the entries at these log positions: messages, and the points and recalls that cover them."""

    orders: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Restoration:
    """The undoing of the removal at log position `removal`."""

    removal: int


@dataclass(frozen=True, slots=True)
class Gone:
    """A placeholder for a removed or erased entry, so that all others keep their positions."""


Entry: TypeAlias = Message | Point | Recalled | Withdrawal | Removal | Restoration | Gone
Log: TypeAlias = tuple[Entry, ...]


def visible(log: Sequence[Entry]) -> Log:
    """Return the log as it is read, with removed entries replaced by `Gone`."""
    restored = {entry.removal for entry in log if isinstance(entry, Restoration)}
    removals = (entry for at, entry in enumerate(log) if isinstance(entry, Removal) and at not in restored)
    removed = {order for removal in removals for order in removal.orders}
    return tuple(Gone() if at in removed else entry for at, entry in enumerate(log))


def newest_point(log: Sequence[Entry]) -> tuple[int, Point] | None:
    """Return the position and value of the newest point that was not withdrawn; None if there is none."""
    withdrawn = {entry.point for entry in log if isinstance(entry, Withdrawal)}
    for at in range(len(log) - 1, -1, -1):
        entry = log[at]
        if isinstance(entry, Point) and at not in withdrawn:
            return at, entry
    return None


def messages_from(entries: Sequence[tuple[int, Entry]], start: int, point: int | None = None) -> History:
    """Return the messages from log position `start` on, with what was recalled after the point at position `point`.

    Without a point, all messages are returned and nothing is recalled. A point that leaves the view unchanged is
    followed by copies of the recalled text; each is returned once.
    """
    recalled: dict[int, dict[Message, None]] = {}
    for at, entry in entries:
        if isinstance(entry, Recalled) and point is not None and at > point:
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
    """Return the view of a log: the messages to send.

    Example: system, user, assistant, user, Point(boundary=3, summary=S) -> system, S, user
    """
    log = visible(log)
    entries = list(enumerate(log))
    newest = newest_point(log)
    if newest is None:
        return messages_from(entries, 0)
    head = list(takewhile(leads, log))
    covered = max(len(head), newest[1].boundary)
    leading = tuple(entry for entry in head if isinstance(entry, Message))
    return leading + newest[1].summary + messages_from(entries, covered, newest[0])


def leads(entry: Entry) -> bool:
    """Return whether an entry can come before the conversation: system text, or a removed entry."""
    return isinstance(entry, Gone) or (isinstance(entry, Message) and entry.role is Role.SYSTEM)

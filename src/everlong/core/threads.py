"""Threads as a store returns them. Values only.

A thread is an append-only log of entries. The `order` of a row is its position in the log; it never changes, and points
and withdrawals refer to rows only by it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from itertools import takewhile

from everlong.core.messages import History, JsonText, Message
from everlong.core.points import Entry, Point, leads, messages_from, newest_point

__all__ = ["Hit", "Opened", "Pin", "Row", "Thread", "opened", "system_rows"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Thread:
    """A thread, without its messages. Settings and metadata are JSON objects.

    `length` counts rows and `messages` the messages that can be read; removed ones do not count.
    """

    id: str
    owner: str = ""
    title: str = ""
    created: datetime
    updated: datetime
    archived: bool = False
    length: int = 0
    messages: int = 0
    #: The number of compactions, and of those that neither a withdrawal nor a removal undid.
    points: int = 0
    standing: int = 0
    #: The thread this one branched off, and how many of its rows it shares; ("", 0) if none.
    parent: tuple[str, int] = ("", 0)
    settings: JsonText = "{}"
    metadata: JsonText = "{}"


@dataclass(frozen=True, slots=True)
class Row:
    """One entry of a thread. `id` is unique in the thread; `time` is when the entry was appended."""

    order: int
    id: str
    time: datetime
    entry: Entry


@dataclass(frozen=True, slots=True)
class Pin:
    """A pin: it keeps the message at `order` in every view, or its own `text` if `order` is None."""

    id: str
    order: int | None
    text: str = ""


@dataclass(frozen=True, slots=True)
class Opened:
    """An opened thread: only the rows that its view is made from, however long the thread is.

    `head` is the leading system text, `point` the newest compaction point in force, and `rows` everything after its
    boundary: messages, points and withdrawals.
    """

    thread: Thread
    head: tuple[Row, ...]
    point: Row | None
    rows: tuple[Row, ...]
    pins: tuple[Pin, ...] = ()

    @property
    def messages(self) -> History:
        """The view: system text, what the point left in place of the messages it covers, and all messages after it."""
        newest = None if self.point is None else self.point.order
        after = messages_from([(row.order, row.entry) for row in self.rows], 0, newest)
        head = tuple(row.entry for row in self.head if isinstance(row.entry, Message))
        summary = self.point.entry.summary if self.point and isinstance(self.point.entry, Point) else ()
        return (*head, *summary, *after)


@dataclass(frozen=True, slots=True)
class Hit:
    """A message that a search found, with the rows around it, in order."""

    thread: str
    row: Row
    score: float
    around: tuple[Row, ...] = ()


def opened(thread: Thread, rows: tuple[Row, ...], pins: tuple[Pin, ...] = ()) -> Opened:
    """Open a thread from all of its rows."""
    newest = newest_point(tuple(row.entry for row in rows))
    head = tuple(takewhile(lambda row: leads(row.entry), rows))
    point = None if newest is None else rows[newest[0]]
    start = len(head) if newest is None else max(len(head), newest[1].boundary)
    return Opened(thread, system_rows(head), point, rows[start:], pins)


def system_rows(rows: Iterable[Row]) -> tuple[Row, ...]:
    """Return the system text among the leading rows."""
    return tuple(row for row in rows if isinstance(row.entry, Message))

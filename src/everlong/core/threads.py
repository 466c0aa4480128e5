"""Threads as a store returns them. Values only.

A thread is an append-only log of entries; the order of a row is its position there, fixed when it is
appended, and the only thing that points and withdrawals refer to.
"""

from dataclasses import dataclass
from datetime import datetime

from everlong.core.messages import History, JsonText, Message
from everlong.core.points import Entry, Point, messages_from, newest_point
from everlong.core.rounds import head_length

__all__ = ["Hit", "Opened", "Pin", "Row", "Thread", "opened"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Thread:
    """What is known of a thread without reading it. `length` counts rows; settings and metadata are JSON objects."""

    id: str
    owner: str = ""
    title: str = ""
    created: datetime
    updated: datetime
    archived: bool = False
    length: int = 0
    messages: int = 0
    #: Compactions that were made, and those of them that no withdrawal took back.
    points: int = 0
    standing: int = 0
    #: The thread this one branched off, and how many of its rows it shares; ("", 0) if none.
    parent: tuple[str, int] = ("", 0)
    settings: JsonText = "{}"
    metadata: JsonText = "{}"


@dataclass(frozen=True, slots=True)
class Row:
    """One entry of a thread. `id` names it in its thread for the outside world; `time` is when it was appended."""

    order: int
    id: str
    time: datetime
    entry: Entry


@dataclass(frozen=True, slots=True)
class Pin:
    """A pin: the message at `order` stays in every view, or a text of its own if that is None."""

    id: str
    order: int | None
    text: str = ""


@dataclass(frozen=True, slots=True)
class Opened:
    """The parts of a thread that its view is made of, however long the thread is.

    `head` are the rows of the leading system text, `point` the newest compaction that stands, `rows` what follows
    its boundary: messages, and points and withdrawals among them.
    """

    thread: Thread
    head: tuple[Row, ...]
    point: Row | None
    rows: tuple[Row, ...]
    pins: tuple[Pin, ...] = ()

    @property
    def messages(self) -> History:
        """The view: system text, what the point left in place of what it covers, every message after."""
        newest = -1 if self.point is None else self.point.order
        after = messages_from([(row.order, row.entry) for row in self.rows], 0, newest)
        head = tuple(row.entry for row in self.head if isinstance(row.entry, Message))
        summary = self.point.entry.summary if self.point and isinstance(self.point.entry, Point) else ()
        return (*head, *summary, *after)


@dataclass(frozen=True, slots=True)
class Hit:
    """A message that a search found, with the rows around it and its own, in order."""

    thread: str
    row: Row
    score: float
    around: tuple[Row, ...] = ()


def opened(thread: Thread, rows: tuple[Row, ...], pins: tuple[Pin, ...] = ()) -> Opened:
    """Open a thread whose rows are all at hand."""
    log = tuple(row.entry for row in rows)
    newest = newest_point(log)
    leading = 0
    while leading < len(log) and isinstance(log[leading], Message):
        leading += 1
    head = head_length(tuple(entry for entry in log[:leading] if isinstance(entry, Message)))
    point = None if newest is None else rows[newest[0]]
    start = head if newest is None else max(head, newest[1].boundary)
    return Opened(thread, rows[:head], point, rows[start:], pins)

"""The raw history of a thread: its log as far back as a compaction looks, unchanged.

A long thread is not read to its beginning. Within the horizon every message is there; before it, only the task, the
pinned messages and what the oldest point inside the horizon left. Older text is found by search.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from everlong.core import (
    History,
    Message,
    Opened,
    Pin,
    Point,
    Role,
    Row,
    Text,
    ToolCall,
    ToolResult,
    head_length,
    task_index,
)
from everlong.engine.contracts import Threads
from everlong.relevance import Index

__all__ = ["HORIZON", "LEFT_BEFORE", "Horizon", "RawHistory", "pinned_texts", "raw_history"]

LEFT_BEFORE = -1  # the order of a message that is not a row of the thread: a point left it, or we added it
TASK_LOOK = 64  # rows at the beginning of a thread that may contain its task
SAME_BEGINNING = 40  # characters by which a shortened task is recognised


@dataclass(frozen=True, slots=True)
class Horizon:
    """How far back the raw history goes: the newest messages that have this many characters.

    The first look takes this many messages; each further one takes twice as many, until the horizon or the beginning of
    the thread is reached.
    """

    characters: int
    messages: int


#: About a million tokens: more than any window a compaction is made for.
HORIZON = Horizon(characters=4_000_000, messages=500)


@dataclass(frozen=True, slots=True)
class RawHistory:
    """Messages of a thread, unchanged, each with its order in the thread or LEFT_BEFORE if it is ours.

    `length` counts the rows that were read. `pins` are the indexes of messages that must stay.
    """

    history: History
    orders: tuple[int, ...]
    length: int
    characters: int
    pins: frozenset[int] = frozenset()
    #: Everything that left the window so far; grows with each compaction.
    index: Index = field(default_factory=Index, compare=False)

    def with_background(self, pins: tuple[Pin, ...], messages: History = ()) -> "RawHistory":
        """Return it with pinned texts and our own messages after the system text, and with all pins marked."""
        ours = (*pinned_texts(pins), *messages)
        head = head_length(self.history)
        orders = (*self.orders[:head], *(LEFT_BEFORE for _ in ours), *self.orders[head:])
        pinned = {pin.order for pin in pins if pin.order is not None}
        marked = frozenset(at for at, order in enumerate(orders) if order in pinned)
        return replace(
            self,
            history=(*self.history[:head], *ours, *self.history[head:]),
            orders=orders,
            pins=marked | frozenset(range(head, head + len(ours))),
        )

    def with_summary(self, message: Message) -> "RawHistory":
        """Return it with a summary directly after the system text. A summary that is not system text is pinned."""
        head = head_length(self.history)
        pins = {pin + 1 if pin >= head else pin for pin in self.pins}
        if message.role is not Role.SYSTEM:
            pins.add(head)
        return replace(
            self,
            history=(*self.history[:head], message, *self.history[head:]),
            orders=(*self.orders[:head], LEFT_BEFORE, *self.orders[head:]),
            pins=frozenset(pins),
        )


def pinned_texts(pins: tuple[Pin, ...]) -> History:
    """Return the pins that are not messages of the thread, each as a message."""
    return tuple(Message(Role.USER, (Text(pin.text),)) for pin in pins if pin.order is None)


def raw_history(
    threads: Threads, opened: Opened, known: RawHistory | None = None, horizon: Horizon = HORIZON
) -> RawHistory:
    """Return the raw history up to the rows that `opened` has; only rows that are not `known` are read.

    At most the horizon of the thread is read. If that is not all, the history begins with the task and with what the
    oldest point inside the horizon left; older text is found by search. At twice the horizon, the history is read again
    from a later point.
    """
    if known is None:
        return _read(threads, opened, horizon)
    if known.length < opened.thread.length:
        known = _grown(known, tuple(threads.read(opened.thread.id, known.length, opened.thread.length)))
    return known if known.characters <= 2 * horizon.characters else _read(threads, opened, horizon)


def _read(threads: Threads, opened: Opened, horizon: Horizon) -> RawHistory:
    name, length = opened.thread.id, opened.thread.length
    rows, complete = _newest_rows(threads, name, opened, horizon)
    left: History = ()
    if not complete and rows:
        point = _oldest_point(threads, name, rows[0].order)
        if point is not None:
            left = point.summary[1:] if point.account else point.summary  # the newest summary is added elsewhere
            rows = [row for row in rows if row.order >= point.boundary]
    before = rows[0].order if rows else length
    pinned = _pinned_before(threads, opened, before)
    task = [] if complete else _task_before(threads, name, before, pinned)
    left = _without_task(left, task)
    rows = [*pinned, *rows]
    messages = _messages(rows)
    return RawHistory(
        (*_messages(opened.head), *_messages(task), *left, *messages),
        (*(row.order for row in (*opened.head, *task)), *(LEFT_BEFORE for _ in left), *(row.order for row in rows)),
        length,
        sum(map(_characters, messages)),
    )


def _grown(raw: RawHistory, rows: tuple[Row, ...]) -> RawHistory:
    new = tuple(row for row in rows if row.order >= raw.length and isinstance(row.entry, Message))
    messages = _messages(new)
    return replace(
        raw,
        history=raw.history + messages,
        orders=raw.orders + tuple(row.order for row in new),
        length=max((row.order + 1 for row in rows), default=raw.length),
        characters=raw.characters + sum(map(_characters, messages)),
    )


def _newest_rows(threads: Threads, name: str, opened: Opened, horizon: Horizon) -> tuple[list[Row], bool]:
    """Return the newest messages that fill the horizon, without the system head, and whether they are all there are."""
    head = {row.order for row in opened.head}
    wanted = horizon.messages
    while True:
        newest = threads.last(name, wanted)
        rows = [row for row in newest if row.order < opened.thread.length]
        complete = len(rows) >= opened.thread.messages or len(newest) < wanted  # some may have been removed meanwhile
        if complete or sum(map(_characters, _messages(rows))) > horizon.characters:
            return [row for row in rows if row.order not in head], complete
        wanted *= 2


def _pinned_before(threads: Threads, opened: Opened, order: int) -> list[Row]:
    """Pinned messages that lie further back than the horizon."""
    head = {row.order for row in opened.head}
    pinned = sorted({pin.order for pin in opened.pins if pin.order is not None and pin.order < order} - head)
    return [row for at in pinned for row in threads.read(opened.thread.id, at, at + 1)]


def _task_before(threads: Threads, name: str, order: int, pinned: list[Row]) -> list[Row]:
    """Return the row of the task, if it comes before that order and is not pinned."""
    rows = [row for row in threads.read(name, 0, min(order, TASK_LOOK)) if isinstance(row.entry, Message)]
    at = task_index(_messages(rows))
    return [rows[at]] if at is not None and rows[at] not in pinned else []


def _without_task(left: History, task: list[Row]) -> History:
    """Return what a point left without the task, which is there in full; the point may have only its beginning."""
    at = task_index(left)
    if at is None or not task or not isinstance(task[0].entry, Message):
        return left
    same = left[at].text[:SAME_BEGINNING] == task[0].entry.text[:SAME_BEGINNING]
    return (*left[:at], *left[at + 1 :]) if same else left


def _oldest_point(threads: Threads, name: str, order: int) -> Point | None:
    """Return the first point in force whose boundary is at or after this order."""
    for row, stands in threads.points(name):
        if stands and isinstance(row.entry, Point) and row.entry.boundary >= order:
            return row.entry
    return None


def _messages(rows: Sequence[Row]) -> History:
    return tuple(row.entry for row in rows if isinstance(row.entry, Message))


def _characters(message: Message) -> int:
    total = 0
    for part in message.parts:
        if isinstance(part, Text):
            total += len(part.text)
        elif isinstance(part, ToolCall):
            total += len(part.arguments)
        elif isinstance(part, ToolResult):
            total += len(part.text)
    return total

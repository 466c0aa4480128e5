"""What is kept of a thread in memory between two calls, so that a turn costs its news.

Everything here can be made anew from the store at any time, and gives the same bytes then.
"""

from collections import OrderedDict
from dataclasses import dataclass, replace
from datetime import datetime
from threading import Lock, RLock

from everlong.core import History, Message, Opened, Pin, Point, Role, Row, Text, Withdrawal, said_from
from everlong.engine.measuring import Anchor
from everlong.engine.past import LEFT_BEFORE, Past
from everlong.engine.threads import Threads
from everlong.engine.view import View

__all__ = ["Live", "Lives", "left_by", "pinned_texts", "refreshed"]

KEPT = 64  # threads; the one used longest ago is let go
LOCKS = 256


@dataclass(frozen=True, slots=True)
class Live:
    """A thread as it was last seen. `view` is what was last sent, made for what `made_for` says."""

    opened: Opened
    view: View | None = None
    made_for: tuple[str, ...] = ()
    past: Past | None = None
    anchor: Anchor | None = None
    called: datetime | None = None
    #: Pinned messages that lie before the boundary.
    held: tuple[Row, ...] = ()

    @property
    def front(self) -> History:
        """What stands before every message since the boundary: head, what is pinned, what the newest point left."""
        point = self.opened.point
        left = point.entry.summary if point is not None and isinstance(point.entry, Point) else ()
        head = tuple(row.entry for row in self.opened.head if isinstance(row.entry, Message))
        held = (row.entry for row in self.held if isinstance(row.entry, Message) and row.entry not in left)
        return (*head, *pinned_texts(self.opened.pins), *held, *left)

    @property
    def since(self) -> History:
        """Every message since the boundary, and what was recalled."""
        newest = -1 if self.opened.point is None else self.opened.point.order
        return said_from([(row.order, row.entry) for row in self.opened.rows], 0, newest)

    @property
    def orders(self) -> tuple[int, ...]:
        """For each message of `front` and `since` its order in the thread, LEFT_BEFORE for what is ours."""
        known = {id(row.entry): row.order for row in (*self.opened.head, *self.held, *self.opened.rows)}
        return tuple(known.get(id(message), LEFT_BEFORE) for message in (*self.front, *self.since))

    @property
    def undone(self) -> bool:
        """Whether the last thing that happened to the view was an undo: then only what must be is cut."""
        for row in reversed(self.opened.rows):
            if isinstance(row.entry, Withdrawal):
                return True
            if isinstance(row.entry, Point):
                return False
        return False


def pinned_texts(pins: tuple[Pin, ...]) -> History:
    """Pins that are no message of the thread, each as one."""
    return tuple(Message(Role.USER, (Text(pin.text),)) for pin in pins if pin.order is None)


def left_by(row: Row) -> tuple[int, History] | None:
    """What a point left, and from where on: a point that keeps a summary beside a cut has the same as that cut."""
    return (row.entry.boundary, row.entry.summary) if isinstance(row.entry, Point) else None


def refreshed(threads: Threads, thread: str, live: Live | None) -> Live:
    """The thread as it is now; only what is new is read, unless the newest point changed."""
    known = threads.thread(thread)
    pins = threads.pins(thread)
    if live is None or known.length < live.opened.thread.length or known.created != live.opened.thread.created:
        return _holding(threads, Live(threads.open(thread)))
    if pins != live.opened.pins:
        live = _holding(threads, Live(replace(live.opened, pins=pins), called=live.called))
    if known.length == live.opened.thread.length:
        return replace(live, opened=replace(live.opened, thread=known))
    new = tuple(threads.read(thread, live.opened.thread.length, known.length))
    if any(isinstance(row.entry, Point | Withdrawal) for row in new):
        return _holding(threads, Live(threads.open(thread, known.length), past=live.past, called=live.called))
    return replace(live, opened=replace(_extended(live.opened, new), thread=known))


def _holding(threads: Threads, live: Live) -> Live:
    """With the pinned messages that the newest point covers: they stand in every view, however late the pin came."""
    opened = live.opened
    if opened.point is None or not isinstance(opened.point.entry, Point):
        return live
    covered = {pin.order for pin in opened.pins if pin.order is not None and pin.order < opened.point.entry.boundary}
    orders = sorted(covered - {row.order for row in opened.head})
    return replace(live, held=tuple(row for at in orders for row in threads.read(opened.thread.id, at, at + 1)))


def _extended(opened: Opened, new: tuple[Row, ...]) -> Opened:
    head, rows = opened.head, opened.rows
    if not rows and opened.point is None:  # the system text may still be coming
        leading = 0
        while leading < len(new) and isinstance(new[leading].entry, Message) and _is_system(new[leading]):
            leading += 1
        head, new_rows = (*head, *new[:leading]), new[leading:]
    else:
        new_rows = new
    messages = sum(isinstance(row.entry, Message) for row in new)
    thread = replace(opened.thread, length=opened.thread.length + len(new), messages=opened.thread.messages + messages)
    return replace(opened, thread=thread, head=head, rows=(*rows, *new_rows))


def _is_system(row: Row) -> bool:
    return isinstance(row.entry, Message) and row.entry.role is Role.SYSTEM


class Lives:
    """The threads in memory. Whoever changes one holds its lock: one thing at a time happens to a thread."""

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._lives: OrderedDict[str, Live] = OrderedDict()
        self._locks = tuple(RLock() for _ in range(LOCKS))
        self._mine = Lock()

    def lock(self, thread: str) -> RLock:
        """The lock of a thread; a few threads share one."""
        return self._locks[hash(thread) % LOCKS]

    def get(self, thread: str) -> Live | None:
        """What is known, if anything."""
        with self._mine:
            return self._lives.get(thread)

    def put(self, thread: str, live: Live) -> None:
        """Keep it; the thread used longest ago makes room."""
        with self._mine:
            self._lives[thread] = live
            self._lives.move_to_end(thread)
            while len(self._lives) > self._kept:
                self._lives.popitem(last=False)

    def drop(self, thread: str) -> None:
        """Let go of a thread."""
        with self._mine:
            self._lives.pop(thread, None)

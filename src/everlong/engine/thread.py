"""What is kept of a thread in memory between two calls, so that a turn costs its news.

Everything here can be made anew from the store at any time, and gives the same bytes then.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import takewhile
from threading import Lock, RLock

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
    Withdrawal,
    said_from,
)
from everlong.engine.budget import Anchor, Sizes, sizes_of
from everlong.engine.contracts import Call, Threads
from everlong.engine.events import Journal, Observer, new_id, now
from everlong.engine.settings import DEFAULT_SETTINGS, Settings
from everlong.engine.view import View, Wish
from everlong.errors import InputError
from everlong.relevance import Index
from everlong.summarize import Summary, as_message, decode_summary, written
from everlong.tokens import Counter
from everlong.windows import Registry

__all__ = [
    "HORIZON",
    "LEFT_BEFORE",
    "MOST_TOKENS",
    "UNBOUNDED",
    "Live",
    "Lives",
    "Means",
    "Past",
    "Work",
    "account_in",
    "account_message",
    "account_of",
    "left_by",
    "newest_cut",
    "past_of",
    "pinned_texts",
    "reaching",
    "refreshed",
    "summary_limit",
    "work_on",
]

HORIZON = 4_000_000  # characters, about a million tokens: more than any window a cut is made for
FIRST_LOOK = 500  # messages; doubled until the horizon or the beginning is reached
LEFT_BEFORE = -1  # the order of a message that a point left


@dataclass(frozen=True, slots=True)
class Past:
    """Messages and for each its order in the thread, LEFT_BEFORE for what a point left. `length` counts rows read."""

    history: History
    orders: tuple[int, ...]
    length: int
    characters: int
    #: Everything that left the window so far; grows with each cut.
    index: Index = field(default_factory=Index, compare=False)


def past_of(threads: Threads, opened: Opened) -> Past:
    """The raw past of a thread up to the rows that `opened` knows."""
    name, length = opened.thread.id, opened.thread.length
    head = _said(opened.head)
    rows, complete = _newest_rows(threads, name, opened)
    left: History = ()
    if not complete and rows:
        point = _oldest_point(threads, name, rows[0].order)
        if point is not None:
            left = point.summary[1:] if point.account else point.summary  # the newest summary stands by itself
            rows = [row for row in rows if row.order >= point.boundary]
    rows = [*_pinned_before(threads, opened, rows[0].order if rows else length), *rows]
    said = _said(tuple(rows))
    return Past(
        (*head, *left, *said),
        (*(row.order for row in opened.head), *(LEFT_BEFORE for _ in left), *(row.order for row in rows)),
        length,
        sum(map(_characters, said)),
    )


def reaching(threads: Threads, past: Past | None, opened: Opened) -> Past:
    """The past up to the rows that `opened` knows; of what was known before only the news is read.

    At twice the horizon it is read anew, from a later point on.
    """
    if past is None:
        return past_of(threads, opened)
    if past.length < opened.thread.length:
        past = _grown(past, tuple(threads.read(opened.thread.id, past.length, opened.thread.length)))
    return past if past.characters <= 2 * HORIZON else past_of(threads, opened)


def _grown(past: Past, rows: tuple[Row, ...]) -> Past:
    new = tuple(row for row in rows if row.order >= past.length and isinstance(row.entry, Message))
    said = _said(new)
    return replace(
        past,
        history=past.history + said,
        orders=past.orders + tuple(row.order for row in new),
        length=max((row.order + 1 for row in rows), default=past.length),
        characters=past.characters + sum(map(_characters, said)),
    )


def _newest_rows(threads: Threads, name: str, opened: Opened) -> tuple[list[Row], bool]:
    """The newest messages that fill the horizon, system head aside, and whether these are all."""
    head = {row.order for row in opened.head}
    wanted = FIRST_LOOK
    while True:
        found = [row for row in threads.last(name, wanted) if row.order < opened.thread.length]
        complete = len(found) >= opened.thread.messages
        if complete or sum(_characters(row.entry) for row in found if isinstance(row.entry, Message)) > HORIZON:
            return [row for row in found if row.order not in head], complete
        wanted *= 2


def _pinned_before(threads: Threads, opened: Opened, order: int) -> list[Row]:
    """Pinned messages that lie further back than the horizon."""
    head = {row.order for row in opened.head}
    pinned = sorted({pin.order for pin in opened.pins if pin.order is not None and pin.order < order} - head)
    return [row for at in pinned for row in threads.read(opened.thread.id, at, at + 1)]


def _oldest_point(threads: Threads, name: str, order: int) -> Point | None:
    """The first standing point whose boundary lies at or after this order."""
    for row, stands in threads.points(name):
        if stands and isinstance(row.entry, Point) and row.entry.boundary >= order:
            return row.entry
    return None


def _said(rows: tuple[Row, ...]) -> History:
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


def newest_cut(threads: Threads, thread: str) -> list[Row]:
    """The rows of the newest cut that stands, the newest first: its point, and one that keeps a summary beside it."""
    standing = [row for row, stands in threads.points(thread) if stands]
    return list(takewhile(lambda row: left_by(row) == left_by(standing[-1]), reversed(standing)))


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


MOST_TOKENS = 2_000  # of a summary, whatever the window
SHARE = 0.12  # of the room


def summary_limit(room: int) -> int:
    """The tokens that a summary may take in a window of that room."""
    return max(1, min(MOST_TOKENS, int(room * SHARE)))


def account_in(row: Row | None) -> Summary | None:
    """The summary that a point carries, if it carries one."""
    if row is None or not isinstance(row.entry, Point) or not row.entry.account:
        return None
    try:
        return decode_summary(row.entry.account)
    except InputError:  # of a version that we cannot read; its words stand in the point all the same
        return None


def account_of(threads: Threads, thread: str, newest: Row | None = None) -> Summary | None:
    """The newest summary of a thread that was not withdrawn; every cut carries it on, so `newest` has it if any has."""
    if (summary := account_in(newest)) is not None:
        return summary
    for row, stands in reversed(threads.points(thread)):
        summary = account_in(row) if stands else None
        if summary is not None:
            return summary
    return None


def account_message(summary: Summary, counter: Counter, limit: int) -> Message:
    """The summary as it is sent: background, within `limit` tokens, frame included."""
    frame = counter.message(as_message("", summary.language))
    return as_message(written(summary, counter=counter, limit=max(1, limit - frame)), summary.language)


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """Handed to everything the engine does. `registry` None is the bundled one."""

    threads: Threads
    settings: Settings = DEFAULT_SETTINGS
    registry: Registry | None = None
    clock: Callable[[], datetime] = now
    new_id: Callable[[], str] = new_id
    observers: Sequence[Observer] = ()
    lives: Lives = field(default_factory=Lives)

    def journal(self, thread: str) -> Journal:
        """A journal of what happens to the thread now."""
        return Journal(self.threads, thread, observers=self.observers, clock=self.clock, new_id=self.new_id)


UNBOUNDED = 1 << 60


@dataclass(slots=True)
class Work:
    """One preparation under way."""

    means: Means
    thread: str
    call: Call
    settings: Settings
    journal: Journal
    turn: str
    live: Live
    sizes: Sizes
    #: For a view made anew of the raw past: the order of each message of its history in the thread.
    orders: tuple[int, ...] = ()

    def wish(self, *, limit: int = UNBOUNDED, target: int = UNBOUNDED) -> Wish:
        """What a view is asked for."""
        return Wish(
            counter=self.sizes.counter,
            limit=limit,
            target=target,
            preset=self.sizes.preset,
            window=self.sizes.window.context,
            fmt=self.call.fmt,
            recall=self.call.recall_tool,
        )

    def past(self) -> Past:
        """The raw past, up to what is known of the thread."""
        past = reaching(self.means.threads, self.live.past, self.live.opened)
        self.live = replace(self.live, past=past)
        return past

    def refresh(self) -> None:
        """Read what is new in the thread."""
        self.live = refreshed(self.means.threads, self.thread, self.live)


def work_on(means: Means, live: Live, call: Call, journal: Journal, turn: str) -> Work:
    """Work on a thread as it was just seen, with the sizes of the call. Whoever asks holds the thread's lock."""
    thread = live.opened.thread
    settings = means.settings.for_thread(thread.settings)
    sizes = sizes_of(means.threads, settings, call, anchor=live.anchor, registry=means.registry)
    return Work(means, thread.id, call, settings, journal, turn, live, sizes)

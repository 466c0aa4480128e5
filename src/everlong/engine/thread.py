"""The state of a thread while the engine works on it, and the context of one call.

`ThreadState` is what is kept of a thread in memory between two calls, so that a turn costs its news; it can be read
again from the store at any time and gives the same bytes then. `RawHistory` is the log as far back as a compaction
looks. `EngineContext` is what all calls share, `CallContext` one call on one thread while the thread's lock is held.
"""

from collections import Counter as Tally, OrderedDict
from collections.abc import Callable, Mapping, Sequence
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
    Protection,
    Role,
    Row,
    Text,
    ToolCall,
    ToolResult,
    Withdrawal,
    head_length,
    messages_from,
    protected,
    task_index,
)
from everlong.engine.budget import Anchor, CallBudget, budget_of, counter_for
from everlong.engine.contracts import Call, Threads
from everlong.engine.events import Journal, Observer, new_id, now
from everlong.engine.settings import DEFAULT_SETTINGS, Settings
from everlong.engine.view import UNBOUNDED, View, ViewOptions
from everlong.errors import InputError
from everlong.relevance import Index
from everlong.summarize import Summary, as_message, decode_summary, written
from everlong.tokens import Counter
from everlong.windows import Registry

__all__ = [
    "HORIZON",
    "LEFT_BEFORE",
    "CallContext",
    "EngineContext",
    "RawHistory",
    "ThreadState",
    "ThreadStates",
    "fixed_parts",
    "left_by",
    "newest_compaction",
    "newest_summary",
    "pinned_texts",
    "raw_history",
    "refreshed",
    "summary_in",
    "summary_limit",
    "summary_message",
    "work_on",
]

KEPT = 64  # threads; the one used longest ago is dropped
LOCKS = 256
HORIZON = 4_000_000  # characters, about a million tokens: more than any window a compaction is made for
TASK_LOOK = 64  # rows at the beginning of a thread in which its task is looked for
SAME_BEGINNING = 40  # characters by which a shortened task is known
MOVABLE = frozenset({Role.ASSISTANT, Role.TOOL})  # roles whose messages a compaction can move
FIRST_LOOK = 500  # messages; doubled until the horizon or the beginning is reached
LEFT_BEFORE = -1  # the order of a message that a point left
MOST_TOKENS = 2_000  # of a summary, whatever the window
SUMMARY_SHARE = 0.12  # of the movable part


@dataclass(frozen=True, slots=True)
class RawHistory:
    """Messages of a thread as they were said, and for each its order there, LEFT_BEFORE for what is ours.

    `length` counts the rows that were read. `pins` are the messages that must stay.
    """

    history: History
    orders: tuple[int, ...]
    length: int
    characters: int
    pins: frozenset[int] = frozenset()
    #: Everything that left the window so far; grows with each compaction.
    index: Index = field(default_factory=Index, compare=False)

    def with_background(self, pins: tuple[Pin, ...], messages: History = ()) -> "RawHistory":
        """Return it with pinned texts and messages of ours behind the system text, and everything pinned marked."""
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
        """Return it with a summary right behind the system text; one that is not system text must not be left out."""
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


@dataclass(frozen=True, slots=True)
class ThreadState:
    """A thread as it was last seen. `view` is what was last sent, made for what `made_for` says."""

    opened: Opened
    view: View | None = None
    made_for: tuple[str, ...] = ()
    #: For a view assembled again from the raw history: the order of each message of its history in the thread.
    assembled: tuple[int, ...] = ()
    raw: RawHistory | None = None
    anchor: Anchor | None = None
    called_at: datetime | None = None
    #: Pinned messages that lie before the boundary of the newest point.
    pinned: tuple[Row, ...] = ()
    #: What no compaction moves, for a model and preset; None if it has to be found out again.
    fixed: tuple[str, Mapping[Protection, int]] | None = None
    #: Whether the user was told that the prompt leaves little to move.
    told_narrow: bool = False

    @property
    def prefix(self) -> History:
        """What stands before every message since the boundary: head, what is pinned, what the newest point left."""
        point = self.opened.point
        left = point.entry.summary if point is not None and isinstance(point.entry, Point) else ()
        head = tuple(row.entry for row in self.opened.head if isinstance(row.entry, Message))
        pinned = (row.entry for row in self.pinned if isinstance(row.entry, Message) and row.entry not in left)
        return (*head, *pinned_texts(self.opened.pins), *pinned, *left)

    @property
    def since(self) -> History:
        """Every message since the boundary, and what was recalled."""
        newest = -1 if self.opened.point is None else self.opened.point.order
        return messages_from([(row.order, row.entry) for row in self.opened.rows], 0, newest)

    @property
    def orders(self) -> tuple[int, ...]:
        """For each message of `prefix` and `since` its order in the thread, LEFT_BEFORE for what is ours."""
        known = {id(row.entry): row.order for row in (*self.opened.head, *self.pinned, *self.opened.rows)}
        return tuple(known.get(id(message), LEFT_BEFORE) for message in (*self.prefix, *self.since))

    @property
    def view_orders(self) -> tuple[int, ...]:
        """For each message of the history that the view was made of, its order in the thread."""
        return self.assembled or self.orders

    def new_tokens(self, tokens: int) -> int | None:
        """Return how many tokens of a view of so many are new since the newest compaction; None if there was none."""
        point = self.opened.point
        return tokens - point.entry.tokens_after if point is not None and isinstance(point.entry, Point) else None

    @property
    def undone(self) -> bool:
        """Whether the last thing that happened to the view was an undo: then only unavoidable compactions are made."""
        for row in reversed(self.opened.rows):
            if isinstance(row.entry, Withdrawal):
                return True
            if isinstance(row.entry, Point):
                return False
        return False


class ThreadStates:
    """The threads in memory. Whoever changes one holds its lock: one thing at a time happens to a thread."""

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._states: OrderedDict[str, ThreadState] = OrderedDict()
        self._locks = tuple(RLock() for _ in range(LOCKS))
        self._mine = Lock()

    def lock(self, thread: str) -> RLock:
        """Return the lock of a thread; a few threads share one."""
        return self._locks[hash(thread) % LOCKS]

    def get(self, thread: str) -> ThreadState | None:
        """Return what is known of a thread, if anything."""
        with self._mine:
            return self._states.get(thread)

    def put(self, thread: str, state: ThreadState) -> None:
        """Keep a state; the thread used longest ago makes room."""
        with self._mine:
            self._states[thread] = state
            self._states.move_to_end(thread)
            while len(self._states) > self._kept:
                self._states.popitem(last=False)

    def drop(self, thread: str) -> None:
        """Drop a thread."""
        with self._mine:
            self._states.pop(thread, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineContext:
    """What all calls of an engine share: store, settings, clock, observers, threads in memory.

    `registry` None is the bundled one.
    """

    threads: Threads
    settings: Settings = DEFAULT_SETTINGS
    registry: Registry | None = None
    clock: Callable[[], datetime] = now
    new_id: Callable[[], str] = new_id
    observers: Sequence[Observer] = ()
    states: ThreadStates = field(default_factory=ThreadStates)

    def journal(self, thread: str) -> Journal:
        """Return a journal of what happens to the thread now."""
        return Journal(self.threads, thread, observers=self.observers, clock=self.clock, new_id=self.new_id)

    def state(self, thread: str) -> ThreadState:
        """Return the thread as it is now. Raises NoThread."""
        return refreshed(self.threads, thread, self.states.get(thread))

    def settings_of(self, thread: str) -> Settings:
        """Return the settings in force for a thread. Raises NoThread."""
        return self.settings.for_thread(self.threads.thread(thread).settings)


@dataclass(slots=True)
class CallContext:
    """One call on one thread, while the thread's lock is held. `turn` is the event that the others belong to."""

    engine: EngineContext
    call: Call
    settings: Settings
    journal: Journal
    turn: str
    state: ThreadState
    budget: CallBudget
    #: For a view assembled again from the raw history: the order of each message of its history in the thread.
    orders: tuple[int, ...] = ()

    @property
    def thread(self) -> str:
        """The id of the thread."""
        return self.state.opened.thread.id

    @property
    def length(self) -> int:
        """How many rows of the thread are known."""
        return self.state.opened.thread.length

    def view_options(self, *, limit: int = UNBOUNDED, target: int = UNBOUNDED) -> ViewOptions:
        """Return what a view for this call is made for."""
        return ViewOptions(
            counter=self.budget.counter,
            limit=limit,
            target=target,
            preset=self.budget.preset,
            window=self.budget.window.context,
            fmt=self.call.fmt,
            recall=self.call.recall_tool,
            reply=self.budget.parts.reply,
        )

    def raw_history(self) -> RawHistory:
        """Read the raw history, up to what is known of the thread, and keep it."""
        raw = raw_history(self.engine.threads, self.state.opened, self.state.raw)
        self.state = replace(self.state, raw=raw)
        return raw

    def refresh(self) -> None:
        """Read what is new in the thread."""
        self.state = refreshed(self.engine.threads, self.thread, self.state)

    def remember(self, view: View, made_for: tuple[str, ...]) -> None:
        """Remember the view that is sent now, for the next call."""
        state = replace(self.state, view=view, made_for=made_for, assembled=self.orders, called_at=self.engine.clock())
        self.engine.states.put(self.thread, state)


def work_on(engine: EngineContext, state: ThreadState, call: Call, journal: Journal, turn: str) -> CallContext:
    """Return the context of a call on a thread as it was just seen. The caller holds the thread's lock.

    Raises BudgetImpossible where reply and tools leave nothing for messages.
    """
    settings = engine.settings.for_thread(state.opened.thread.settings)
    known_for = f"{call.model} {settings.rules.name}"
    if state.fixed is None or state.fixed[0] != known_for:
        parts = fixed_parts(state, counter_for(call.model), keeps_task=settings.rules.keeps_task)
        state = replace(state, fixed=(known_for, parts))
    fixed = {} if state.fixed is None else state.fixed[1]
    budget = budget_of(engine.threads, settings, call, fixed=fixed, anchor=state.anchor, registry=engine.registry)
    return CallContext(engine, call, settings, journal, turn, state, budget)


def fixed_parts(state: ThreadState, counter: Counter, *, keeps_task: bool) -> Mapping[Protection, int]:
    """Return the tokens of the messages that no compaction moves, by why they stay. Unread results will be read."""
    messages = (*state.prefix, *state.since)
    pinned = {id(row.entry) for row in state.pinned}
    orders = {pin.order for pin in state.opened.pins}
    pinned |= {id(row.entry) for row in state.opened.rows if row.order in orders}
    texts = len(pinned_texts(state.opened.pins))
    head = len(state.opened.head)
    pins = {*range(head, head + texts), *(at for at, message in enumerate(messages) if id(message) in pinned)}
    sizes: Tally[Protection] = Tally()
    for at, why in protected(messages, frozenset(pins), keeps_task=keeps_task).items():
        sizes[why] += counter.message(messages[at])
    sizes.pop(Protection.UNREAD, None)
    return sizes


# --- reading the state ---------------------------------------------------------------------------------------------


def refreshed(threads: Threads, thread: str, state: ThreadState | None) -> ThreadState:
    """Return the thread as it is now; only what is new is read, unless the newest point changed."""
    known = threads.thread(thread)
    pins = threads.pins(thread)
    if state is None or known.length < state.opened.thread.length or known.created != state.opened.thread.created:
        return _with_pinned(threads, ThreadState(threads.open(thread)))
    if pins != state.opened.pins:
        repinned = ThreadState(
            replace(state.opened, pins=pins), called_at=state.called_at, told_narrow=state.told_narrow
        )
        state = _with_pinned(threads, repinned)
    if known.length == state.opened.thread.length:
        return replace(state, opened=replace(state.opened, thread=known))
    new = tuple(threads.read(thread, state.opened.thread.length, known.length))
    if any(isinstance(row.entry, Point | Withdrawal) for row in new):
        reopened = ThreadState(
            threads.open(thread, known.length),
            raw=state.raw,
            called_at=state.called_at,
            told_narrow=state.told_narrow,
        )
        return _with_pinned(threads, reopened)
    # What the model and its tools say is movable; what users and systems say may not be.
    moved = all(isinstance(row.entry, Message) and row.entry.role in MOVABLE for row in new)
    fixed = state.fixed if moved else None
    return replace(state, opened=replace(_extended(state.opened, new), thread=known), fixed=fixed)


def _with_pinned(threads: Threads, state: ThreadState) -> ThreadState:
    """Add the pinned messages that the newest point covers: every view holds them, however late they were pinned."""
    opened = state.opened
    if opened.point is None or not isinstance(opened.point.entry, Point):
        return state
    covered = {pin.order for pin in opened.pins if pin.order is not None and pin.order < opened.point.entry.boundary}
    orders = sorted(covered - {row.order for row in opened.head})
    return replace(state, pinned=tuple(row for at in orders for row in threads.read(opened.thread.id, at, at + 1)))


def _extended(opened: Opened, new: tuple[Row, ...]) -> Opened:
    """What was opened with new rows, no points among them; system text at the very beginning belongs to the head."""
    head, rows = opened.head, opened.rows
    leading = 0
    if not rows and opened.point is None:  # the system text may still be coming
        while leading < len(new) and _is_system(new[leading]):
            leading += 1
    return replace(opened, head=(*head, *new[:leading]), rows=(*rows, *new[leading:]))


def _is_system(row: Row) -> bool:
    return isinstance(row.entry, Message) and row.entry.role is Role.SYSTEM


def pinned_texts(pins: tuple[Pin, ...]) -> History:
    """Return the pins that are not messages of the thread, each as a message."""
    return tuple(Message(Role.USER, (Text(pin.text),)) for pin in pins if pin.order is None)


def left_by(row: Row) -> tuple[int, History] | None:
    """Return what a point left, and from where on; the same for a point that only keeps a summary beside it."""
    return (row.entry.boundary, row.entry.summary) if isinstance(row.entry, Point) else None


def newest_compaction(threads: Threads, thread: str) -> list[Row]:
    """Return the rows of the newest compaction in force, newest first: its point, and one with a summary beside."""
    standing = [row for row, stands in threads.points(thread) if stands]
    return list(takewhile(lambda row: left_by(row) == left_by(standing[-1]), reversed(standing)))


# --- the raw history -------------------------------------------------------------------------------------------------


def raw_history(threads: Threads, opened: Opened, known: RawHistory | None = None) -> RawHistory:
    """Return the raw history up to the rows that `opened` knows; only what is not known yet is read.

    However long a thread is, no more than a horizon of it is read. Where that is not all, the history begins with
    the task and what the oldest point inside the horizon left; older text is found by search. At twice the horizon it
    is read again, from a later point on.
    """
    if known is None:
        return _read_raw(threads, opened)
    if known.length < opened.thread.length:
        known = _grown(known, tuple(threads.read(opened.thread.id, known.length, opened.thread.length)))
    return known if known.characters <= 2 * HORIZON else _read_raw(threads, opened)


def _read_raw(threads: Threads, opened: Opened) -> RawHistory:
    name, length = opened.thread.id, opened.thread.length
    rows, complete = _newest_rows(threads, name, opened)
    left: History = ()
    if not complete and rows:
        point = _oldest_point(threads, name, rows[0].order)
        if point is not None:
            left = point.summary[1:] if point.account else point.summary  # the newest summary stands by itself
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


def _newest_rows(threads: Threads, name: str, opened: Opened) -> tuple[list[Row], bool]:
    """The newest messages that fill the horizon, system head aside, and whether these are all."""
    head = {row.order for row in opened.head}
    wanted = FIRST_LOOK
    while True:
        rows = [row for row in threads.last(name, wanted) if row.order < opened.thread.length]
        complete = len(rows) >= opened.thread.messages
        if complete or sum(map(_characters, _messages(rows))) > HORIZON:
            return [row for row in rows if row.order not in head], complete
        wanted *= 2


def _pinned_before(threads: Threads, opened: Opened, order: int) -> list[Row]:
    """Pinned messages that lie further back than the horizon."""
    head = {row.order for row in opened.head}
    pinned = sorted({pin.order for pin in opened.pins if pin.order is not None and pin.order < order} - head)
    return [row for at in pinned for row in threads.read(opened.thread.id, at, at + 1)]


def _task_before(threads: Threads, name: str, order: int, pinned: list[Row]) -> list[Row]:
    """The row of the task, if it lies before that order and is not there as a pin."""
    rows = [row for row in threads.read(name, 0, min(order, TASK_LOOK)) if isinstance(row.entry, Message)]
    at = task_index(_messages(rows))
    return [rows[at]] if at is not None and rows[at] not in pinned else []


def _without_task(left: History, task: list[Row]) -> History:
    """What a point left, without the task: it is there as it was said, and may have been left with its beginning."""
    at = task_index(left)
    if at is None or not task or not isinstance(task[0].entry, Message):
        return left
    same = left[at].text[:SAME_BEGINNING] == task[0].entry.text[:SAME_BEGINNING]
    return (*left[:at], *left[at + 1 :]) if same else left


def _oldest_point(threads: Threads, name: str, order: int) -> Point | None:
    """The first point in force whose boundary lies at or after this order."""
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


# --- the summary of a thread
# -------------------------------------------------------------------------------------------


def summary_limit(budget: int) -> int:
    """Return the tokens that a summary may take if a compaction can move `budget`."""
    return max(1, min(MOST_TOKENS, int(budget * SUMMARY_SHARE)))


def summary_in(row: Row | None) -> Summary | None:
    """Return the summary that a point carries, if it carries one."""
    if row is None or not isinstance(row.entry, Point) or not row.entry.account:
        return None
    try:
        return decode_summary(row.entry.account)
    except InputError:  # of a version that we cannot read; its words stand in the point all the same
        return None


def newest_summary(threads: Threads, thread: str, newest: Row | None = None) -> Summary | None:
    """Return the newest summary of a thread that was not withdrawn.

    Every compaction carries it on: if the point `newest` is given and has one, it is that.
    """
    if (summary := summary_in(newest)) is not None:
        return summary
    for row, stands in reversed(threads.points(thread)):
        summary = summary_in(row) if stands else None
        if summary is not None:
            return summary
    return None


def summary_message(summary: Summary, counter: Counter, limit: int) -> Message:
    """Return the summary as it is sent: background, within `limit` tokens, frame included."""
    frame = counter.message(as_message("", summary.language))
    return as_message(written(summary, counter=counter, limit=max(1, limit - frame)), summary.language)

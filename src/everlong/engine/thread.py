"""The state of a thread while the engine works on it, and the context of one call.

`ThreadState` is what stays in memory between two calls, so that a turn costs only its new messages; read again from the
store, it gives the same bytes. `EngineContext` is what all calls share, `CallContext` one call on one thread while the
thread's lock is held.
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
    Point,
    Protection,
    Removal,
    Restoration,
    Role,
    Row,
    Withdrawal,
    messages_from,
    protected,
)
from everlong.engine.budget import Anchor, CallBudget, budget_of, counter_for
from everlong.engine.contracts import Call, Threads, Vectors
from everlong.engine.events import Journal, Observer, new_id, now
from everlong.engine.raw_history import HORIZON, LEFT_BEFORE, Horizon, RawHistory, pinned_texts, raw_history
from everlong.engine.settings import DEFAULT_SETTINGS, Settings
from everlong.engine.view import UNBOUNDED, View, ViewOptions
from everlong.errors import InputError
from everlong.summarize import Summary, as_message, decode_summary, written
from everlong.tokens import Counter
from everlong.windows import Registry

__all__ = [
    "CallContext",
    "EngineContext",
    "ThreadState",
    "ThreadStates",
    "fixed_parts",
    "left_by",
    "newest_compaction",
    "newest_summary",
    "refreshed",
    "summary_in",
    "summary_limit",
    "summary_message",
    "work_on",
]

KEPT = 64  # threads in memory; beyond that, the one stored longest ago is dropped
LOCKS = 256
MOVABLE = frozenset({Role.ASSISTANT, Role.TOOL})  # roles whose messages a compaction can move
MOST_TOKENS = 2_000  # of a summary, whatever the window
SUMMARY_SHARE = 0.12  # of the movable part


@dataclass(frozen=True, slots=True)
class ThreadState:
    """A thread as it was last read. `view` is what was last sent, for the format, preset and model in `made_for`."""

    opened: Opened
    view: View | None = None
    made_for: tuple[str, ...] = ()
    #: For a view assembled from the raw history: the order in the thread of each message of that history.
    assembled: tuple[int, ...] = ()
    raw: RawHistory | None = None
    anchor: Anchor | None = None
    called_at: datetime | None = None
    #: Pinned messages before the boundary of the newest point.
    pinned: tuple[Row, ...] = ()
    #: The tokens that no compaction moves, for a model and preset; None if they have to be computed again.
    fixed: tuple[str, Mapping[Protection, int]] | None = None
    #: Whether the user has been warned that the prompt leaves little to move.
    narrow_reported: bool = False

    @property
    def prefix(self) -> History:
        """What comes before the messages since the boundary: head, pins, what the newest point left."""
        point = self.opened.point
        left = point.entry.summary if point is not None and isinstance(point.entry, Point) else ()
        head = tuple(row.entry for row in self.opened.head if isinstance(row.entry, Message))
        pinned = (row.entry for row in self.pinned if isinstance(row.entry, Message) and row.entry not in left)
        return (*head, *pinned_texts(self.opened.pins), *pinned, *left)

    @property
    def since(self) -> History:
        """Every message since the boundary, and the recalled ones."""
        newest = None if self.opened.point is None else self.opened.point.order
        return messages_from([(row.order, row.entry) for row in self.opened.rows], 0, newest)

    @property
    def orders(self) -> tuple[int, ...]:
        """For each message of `prefix` and `since`, its order in the thread; LEFT_BEFORE for our own."""
        known = {id(row.entry): row.order for row in (*self.opened.head, *self.pinned, *self.opened.rows)}
        return tuple(known.get(id(message), LEFT_BEFORE) for message in (*self.prefix, *self.since))

    @property
    def view_orders(self) -> tuple[int, ...]:
        """For each message of the history that the view was made of, its order in the thread."""
        return self.assembled or self.orders

    def new_tokens(self, tokens: int) -> int | None:
        """Return how many of a view's tokens are new since the newest compaction; None if there was none."""
        point = self.opened.point
        return tokens - point.entry.tokens_after if point is not None and isinstance(point.entry, Point) else None

    @property
    def undone(self) -> bool:
        """Whether the newest change of the view was an undo: then only unavoidable compactions are made."""
        for row in reversed(self.opened.rows):
            if isinstance(row.entry, Withdrawal):
                return True
            if isinstance(row.entry, Point):
                return False
        return False


class ThreadStates:
    """The threads in memory. Hold a thread's lock while you change it."""

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
        """Keep a state; if there are too many, drop the one that was stored longest ago."""
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

    A `registry` of None means the bundled one.
    """

    threads: Threads
    settings: Settings = DEFAULT_SETTINGS
    registry: Registry | None = None
    clock: Callable[[], datetime] = now
    new_id: Callable[[], str] = new_id
    observers: Sequence[Observer] = ()
    states: ThreadStates = field(default_factory=ThreadStates)
    #: The budgets for messages of calls, by kind; see `histories.sizes`.
    rooms: dict[object, object] = field(default_factory=dict, init=False, repr=False, compare=False)
    #: Vectors for search by meaning; None if the setting `semantic` is off.
    vectors: Vectors | None = None
    #: How far back a compaction looks.
    horizon: Horizon = HORIZON

    def journal(self, thread: str) -> Journal:
        """Return a journal for what happens to the thread now."""
        return Journal(self.threads, thread, observers=self.observers, clock=self.clock, new_id=self.new_id)

    def state(self, thread: str) -> ThreadState:
        """Return the thread as it is now. Raises NoThread."""
        return refreshed(self.threads, thread, self.states.get(thread))

    def raw_history(self, state: ThreadState) -> RawHistory:
        """Return the raw history of a thread up to the rows that are known; only what is new is read."""
        return raw_history(self.threads, state.opened, state.raw, self.horizon)

    def settings_of(self, thread: str) -> Settings:
        """Return the settings that apply to a thread. Raises NoThread."""
        return self.settings.for_thread(self.threads.thread(thread).settings)


@dataclass(slots=True)
class CallContext:
    """One call on one thread, while the thread's lock is held. `turn` is the event that all others belong to."""

    engine: EngineContext
    call: Call
    settings: Settings
    journal: Journal
    turn: str
    state: ThreadState
    budget: CallBudget
    #: For a view assembled from the raw history: the order in the thread of each message of that history.
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
        """Return the options of a view for this call."""
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
        """Read the raw history, up to the rows that are known, and keep it."""
        raw = self.engine.raw_history(self.state)
        self.state = replace(self.state, raw=raw)
        return raw

    def refresh(self) -> None:
        """Read the new rows of the thread."""
        self.state = refreshed(self.engine.threads, self.thread, self.state)

    def remember(self, view: View, made_for: tuple[str, ...]) -> None:
        """Remember the view that is sent now, for the next call."""
        state = replace(self.state, view=view, made_for=made_for, assembled=self.orders, called_at=self.engine.clock())
        self.engine.states.put(self.thread, state)


def work_on(engine: EngineContext, state: ThreadState, call: Call, journal: Journal, turn: str) -> CallContext:
    """Return the context of a call on a thread in this state. The caller holds the thread's lock.

    Raises BudgetImpossible if reply and tools leave nothing for messages.
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
    """Return the tokens that no compaction moves, by the reason why they stay; unread results do not count."""
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
    """Return the thread as it is now. Only new rows are read, unless the newest point has changed."""
    known = threads.thread(thread)
    pins = threads.pins(thread)
    if state is None or known.length < state.opened.thread.length or known.created != state.opened.thread.created:
        return _with_pinned(threads, ThreadState(threads.open(thread)))
    if pins != state.opened.pins:
        repinned = ThreadState(
            replace(state.opened, pins=pins), called_at=state.called_at, narrow_reported=state.narrow_reported
        )
        state = _with_pinned(threads, repinned)
    if known.length == state.opened.thread.length:
        return replace(state, opened=replace(state.opened, thread=known))
    new = tuple(threads.read(thread, state.opened.thread.length, known.length))
    if any(isinstance(row.entry, Point | Withdrawal | Removal | Restoration) for row in new):
        same = not any(isinstance(row.entry, Removal | Restoration) for row in new)
        reopened = ThreadState(
            threads.open(thread, known.length),
            raw=state.raw if same else None,
            called_at=state.called_at,
            narrow_reported=state.narrow_reported,
        )
        return _with_pinned(threads, reopened)
    # Messages of the model and its tools are movable; messages of users and system text may not be.
    moved = all(isinstance(row.entry, Message) and row.entry.role in MOVABLE for row in new)
    fixed = state.fixed if moved else None
    return replace(state, opened=replace(_extended(state.opened, new), thread=known), fixed=fixed)


def _with_pinned(threads: Threads, state: ThreadState) -> ThreadState:
    """Add the pinned messages that the newest point covers: every view has them, however late they were pinned."""
    opened = state.opened
    if opened.point is None or not isinstance(opened.point.entry, Point):
        return state
    covered = {pin.order for pin in opened.pins if pin.order is not None and pin.order < opened.point.entry.boundary}
    orders = sorted(covered - {row.order for row in opened.head})
    return replace(state, pinned=tuple(row for at in orders for row in threads.read(opened.thread.id, at, at + 1)))


def _extended(opened: Opened, new: tuple[Row, ...]) -> Opened:
    """Return the opened thread with new rows that contain no points; leading system text belongs to the head."""
    head, rows = opened.head, opened.rows
    leading = 0
    if not rows and opened.point is None:  # more system text may follow
        while leading < len(new) and _is_system(new[leading]):
            leading += 1
    return replace(opened, head=(*head, *new[:leading]), rows=(*rows, *new[leading:]))


def _is_system(row: Row) -> bool:
    return isinstance(row.entry, Message) and row.entry.role is Role.SYSTEM


def left_by(row: Row) -> tuple[int, History] | None:
    """Return what a point left, and its boundary; equal for a point that only adds a summary."""
    return (row.entry.boundary, row.entry.summary) if isinstance(row.entry, Point) else None


def newest_compaction(threads: Threads, thread: str) -> list[Row]:
    """Return the rows of the newest compaction in force, newest first: the points that add a summary, then its own."""
    standing = [row for row, stands in threads.points(thread) if stands]
    return list(takewhile(lambda row: left_by(row) == left_by(standing[-1]), reversed(standing)))


# --- the summary of a thread -----------------------------------------------------------------------------------------


def summary_limit(budget: int) -> int:
    """Return the tokens that a summary may take if a compaction can move `budget`."""
    return max(1, min(MOST_TOKENS, int(budget * SUMMARY_SHARE)))


def summary_in(row: Row | None) -> Summary | None:
    """Return the summary that a point carries, or None."""
    if row is None or not isinstance(row.entry, Point) or not row.entry.account:
        return None
    try:
        return decode_summary(row.entry.account)
    except InputError:  # written by a version that we cannot read; its text is in the point anyway
        return None


def newest_summary(threads: Threads, thread: str, newest: Row | None = None) -> Summary | None:
    """Return the newest summary of a thread that is in force.

    Every compaction carries the summary along: if the point `newest` has one, it is that one.
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

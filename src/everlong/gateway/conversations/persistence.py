"""What outlives a request and a process: marks of conversations, notes, and threads in front of the store.

A mark is what the engine added to a conversation, and where. Clients resend what was said, not what was left out of
it; if the same messages come again, in another process or in a branch, the mark applies again. Positions in a
mark are numbers of units (system text aside), positions in a thread are orders of rows. `keep` says what is stored:
marks and notes (`edits`), whole conversations too (`text`), or only what is learned of models (`nothing`).
"""

import json
import logging
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from threading import Lock
from typing import Any, cast

from everlong.core import OUTCOMES, Edit, Event, EventKind, History, JsonText, Point, Recalled, Row, Withdrawal
from everlong.engine import Threads
from everlong.errors import EverlongError, InputError
from everlong.gateway.config import Keep
from everlong.store import MemoryThreads, decode_entry, encode_entry, kind_of
from everlong.summarize import decode_summary, encode_summary

__all__ = [
    "Mark",
    "MemoryFirstThreads",
    "StateStore",
    "decoded_mark",
    "encoded_mark",
    "entry_at",
    "marks_in",
    "standing_marks",
]


@dataclass(frozen=True, slots=True)
class Mark:
    """A compaction point or a recalled block. It is about the first `upto` units, and was made when there were `at`."""

    at: int
    upto: int
    entry: Point | Recalled


def marks_in(rows: Sequence[Row], starts: Sequence[int]) -> list[Mark]:
    """Return the marks in the rows of a thread, oldest first, without withdrawn ones. `starts` is where units begin."""
    withdrawn = {row.entry.point for row in rows if isinstance(row.entry, Withdrawal)}
    marks = []
    for row in rows:
        at = bisect_left(starts, row.order)
        match row.entry:
            case Point(boundary=boundary) if row.order not in withdrawn:
                point = _numbered(row.entry, starts)
                upto = max(bisect_left(starts, boundary), _summarised_units(point))
                marks.append(Mark(at, upto, point))
            case Recalled(before, message):
                number = bisect_left(starts, before)
                marks.append(Mark(at, number + 1, Recalled(number, message)))
            case _:
                pass
    return marks


def standing_marks(marks: Sequence[Mark], shared: int, units: int) -> list[Mark]:
    """Return the marks that apply to the first `shared` units: the newest point, and what was recalled after it.

    `marks` are oldest first. If several points apply, the one that covers most counts. A point that covers all
    `units` of a request does not apply: the client went back before it, and its last message must be sent.
    """
    true = [mark for mark in marks if mark.upto <= shared]
    points = [at for at, mark in enumerate(true) if isinstance(mark.entry, Point) and mark.upto < units]
    if not points:
        return []
    newest = max(points, key=lambda at: (true[at].upto, at))
    return [true[newest], *(mark for mark in true[newest + 1 :] if isinstance(mark.entry, Recalled))]


def entry_at(mark: Mark, starts: Sequence[int], end: int) -> Point | Recalled:
    """Return the entry with orders of a thread in which units begin at `starts` and the next row is number `end`."""

    def order(number: int) -> int:
        return starts[number] if number < len(starts) else end

    match mark.entry:
        case Recalled(before, message):
            return Recalled(order(before), message)
        case Point() as point:
            edits = tuple(_moved(edit, order(edit.at)) for edit in point.edits)
            return replace(point, boundary=order(point.boundary), account=_covering(point.account, order), edits=edits)


def encoded_mark(mark: Mark) -> JsonText:
    """Return a mark as it is stored."""
    fields = {"at": mark.at, "upto": mark.upto, "kind": int(kind_of(mark.entry)), "entry": encode_entry(mark.entry)}
    return json.dumps(fields, ensure_ascii=False)


def decoded_mark(text: JsonText) -> Mark | None:
    """Return the mark that was stored; None if we cannot read its version."""
    try:
        fields = cast("dict[str, Any]", json.loads(text))
        entry = decode_entry(fields["kind"], fields["entry"])
        return Mark(fields["at"], fields["upto"], entry) if isinstance(entry, Point | Recalled) else None
    except (EverlongError, ValueError, KeyError, TypeError):
        return None


def _numbered(point: Point, starts: Sequence[int]) -> Point:
    """A point with numbers of units in place of orders, without edits of system text or of text of ours."""

    def number(order: int) -> int:
        return bisect_right(starts, order) - 1

    edits = tuple(_moved(edit, number(edit.at)) for edit in point.edits if number(edit.at) >= 0)
    boundary = bisect_left(starts, point.boundary)
    account = _covering(point.account, lambda order: bisect_left(starts, order))
    return replace(point, boundary=boundary, account=account, edits=edits)


def _summarised_units(point: Point) -> int:
    """How many units its summary covers; some of them may still be sent as they are."""
    if not point.account:
        return 0
    covers: int = decode_summary(point.account).covers
    return covers


def _moved(edit: Edit, at: int) -> Edit:
    return edit if edit.at == at else replace(edit, at=at)


def _covering(account: str, moved: Any) -> str:
    """The summary that a point carries, with its end moved too."""
    if not account:
        return ""
    try:
        summary = decode_summary(account)
    except InputError:
        return ""
    return encode_summary(replace(summary, covers=moved(summary.covers)))


log = logging.getLogger("everlong.gateway")

#: The prefix of our kinds of facts; what is learned of models has kinds of its own and stays.
OURS = "gateway/"
#: The kinds that are in use, and the newest mark of each; a store forgets by kind.
KINDS, NEWEST = "gateway/kinds", "gateway/newest"
LISTED_EVERY = timedelta(hours=1)
MOST_LISTED = 10_000  # kinds that are known to be listed


def _utc_now() -> datetime:
    return datetime.now(UTC)


class StateStore:
    """The store behind the gateway. Reads happen at once, writes one after the other in the background.

    Everything is under the scope of a client's key and is deleted after a time. A store that fails is reported in the
    log and costs nobody an answer.
    """

    def __init__(
        self,
        store: Threads,
        *,
        keep: Keep = "edits",
        retention: timedelta = timedelta(days=7),
        clock: Callable[[], datetime] = _utc_now,
        near: bool = True,
    ) -> None:
        self.store = store
        self.keep: Keep = keep
        self._retention = retention
        self._clock = clock
        #: Whether reading takes no time: a file or memory, no server.
        self.near = near
        self._listed: dict[str, datetime] = {}
        self._writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="everlong-keeping")
        self._left = 0  # writes that are not made yet
        self._mine = Lock()

    def marks(self, scope: str, root: str) -> list[tuple[str, Mark]]:
        """Return the marks of conversations that begin alike, with the digests of their units; oldest first."""
        if self.keep == "nothing":
            return []
        try:
            kept = self.store.facts(_kind("marks", scope, root))
        except EverlongError as error:
            self._failed(error)
            return []
        marks = [(key.partition("/")[2], decoded_mark(value)) for key, value in sorted(kept.items())]
        return [(digest, mark) for digest, mark in marks if mark is not None]

    def newest_mark(self, scope: str, root: str) -> str:
        """Return the name of the mark that was stored last, by any process; "" if there is none."""
        kept = None if self.keep == "nothing" else self.fact(NEWEST, _kind("marks", scope, root))
        return "" if kept is None else str(json.loads(kept))

    def keep_mark(self, scope: str, root: str, digest: str, mark: Mark) -> str:
        """Store a mark and return its name. Marks are read again in the order of their making."""
        name = f"{mark.at:012d}-{self._clock().timestamp():020.6f}/{digest}"
        if self.keep != "nothing":
            kind = _kind("marks", scope, root)
            self.later(lambda: self._keep(kind, name, encoded_mark(mark)))
            self.later(lambda: self.store.keep_fact(NEWEST, kind, json.dumps(name)))
        return name

    def note(self, what: str, scope: str, name: str) -> JsonText | None:
        """Return the note that was stored under a name for this client."""
        return None if self.keep == "nothing" else self.fact(_kind(what, scope), name)

    def keep_note(self, what: str, scope: str, name: str, value: JsonText) -> None:
        """Store a note under a name for this client."""
        if self.keep != "nothing":
            self.later(lambda: self._keep(_kind(what, scope), name, value))

    def notes(self, what: str, scope: str) -> dict[str, JsonText]:
        """Return all notes that were stored for this client, by name."""
        return {} if self.keep == "nothing" else self.store.facts(_kind(what, scope))

    def fact(self, kind: str, key: str) -> JsonText | None:
        """Return what the store has under that name."""
        try:
            return self.store.fact(kind, key)
        except EverlongError as error:
            self._failed(error)
            return None

    def keep_fact(self, kind: str, key: str, value: JsonText) -> None:
        """Store a fact, later."""
        self.later(lambda: self.store.keep_fact(kind, key, value))

    def later(self, write: Callable[[], object]) -> None:
        """Write when everything before is written."""
        self._count(1)
        try:
            self._writer.submit(self._try, write)
        except RuntimeError:  # an answer that was still under way when everything was closed
            self._count(-1)
            log.warning("the gateway's store: closed before all was written")

    def sweep(self) -> None:
        """Delete what is older than it may get."""
        self.later(lambda: self._sweep(self._clock() - self._retention))

    def flush(self) -> None:
        """Wait until everything is written, also what the writing itself adds."""
        while self._left:
            done: Future[None] = self._writer.submit(lambda: None)
            done.result()

    def close(self) -> None:
        """Write what is left, then close the store."""
        self.flush()
        self._writer.shutdown(wait=True)
        self.store.close()

    def _try(self, write: Callable[[], object]) -> None:
        try:
            write()
        except EverlongError as error:
            self._failed(error)
        finally:
            self._count(-1)

    def _count(self, more: int) -> None:
        with self._mine:
            self._left += more

    def _failed(self, error: EverlongError) -> None:
        log.warning("the gateway's store: %s", error)

    def _keep(self, kind: str, name: str, value: JsonText) -> None:
        """Store a fact of a kind that is listed, so that it is found when its time has come."""
        now = self._clock()
        listed = self._listed.get(kind)
        if listed is None or not timedelta() <= now - listed < LISTED_EVERY:
            self.store.keep_fact(KINDS, kind, "true")
            if len(self._listed) >= MOST_LISTED:
                self._listed.clear()
            self._listed[kind] = now
        self.store.keep_fact(kind, name, value)

    def _sweep(self, before: datetime) -> None:
        for kind in (*self.store.facts(KINDS), NEWEST):
            self.store.drop_facts(kind, before)
        # Everything of a kind that was listed so long ago is deleted by now.
        self.store.drop_facts(KINDS, before - 2 * LISTED_EVERY)
        for thread in self.store.threads(archived=None):
            if thread.owner.startswith(OURS) and thread.updated < before:
                self.store.remove(thread.id)


def _kind(what: str, *under: str) -> str:
    return OURS + "/".join((what, *under))


OF_SUMMARIES = frozenset(kind for kind in EventKind if kind.value.startswith("summary."))
FRESH = 30.0  # seconds for which a fact of the store behind is taken as it is
MOST_READ = 4_096  # facts of the store behind that are held; clients name models as they like


class MemoryFirstThreads(MemoryThreads):
    """Threads in memory in front of the store: made from what clients send, dropped to save memory.

    Windows and calibrations that calls teach are read from the store behind, once in a while, and written to it later:
    nothing here waits for a disk before an answer begins. Events go to observers and are not stored.
    """

    def __init__(self, state_store: StateStore, ticks: Callable[[], float]) -> None:
        super().__init__()
        self._state_store = state_store
        self._ticks = ticks
        self._read: OrderedDict[tuple[str, str], tuple[float, JsonText | None]] = OrderedDict()
        self._reading = Lock()
        self._turns: dict[str, set[str]] = {}
        #: Called with every event of a thread, after it was recorded. They must not wait.
        self.listeners: list[Callable[[str, Event], None]] = []

    def fact(self, kind: str, key: str) -> JsonText | None:
        """Return what was learned, here or by another process."""
        now = self._ticks()
        with self._reading:
            known = self._read.get((kind, key))
        if known is not None and now - known[0] < FRESH:
            return known[1]
        found = self._state_store.fact(kind, key)
        self._hold(kind, key, found)
        return found

    def keep_fact(self, kind: str, key: str, value: JsonText) -> None:
        """Hold a fact here at once, and store it behind soon."""
        self._hold(kind, key, value)
        self._state_store.keep_fact(kind, key, value)

    def record(self, thread: str, events: Sequence[Event]) -> None:
        """Hold the events that show whether something is under way; observers got the others."""
        super().record(thread, [event for event in events if event.kind in OF_SUMMARIES])
        with self._reading:
            for event in events:
                if event.kind is EventKind.TURN_STARTED:
                    self._turns.setdefault(thread, set()).add(event.id)
                elif event.kind in OUTCOMES[EventKind.TURN_STARTED] and thread in self._turns:
                    self._turns[thread].discard(event.parent)
        for event in events:
            for listener in self.listeners:
                listener(thread, event)

    def under_way(self, thread: str) -> bool:
        """Whether a turn or a summary of the thread has begun and not ended."""
        with self._reading:
            if self._turns.get(thread):
                return True
        return bool(self.unfinished(thread))

    def renew(self, thread: str, messages: History, start: int = 0) -> None:
        """Replace rows by as many messages: the client sends them again with each request, and wrote others now."""
        with self._held() as memory:
            stored = memory.threads[thread]
            renewed = [replace(row, entry=said) for row, said in zip(stored.rows[start:], messages, strict=False)]
            stored.rows[start : start + len(renewed)] = renewed
            stored.forget_words(start)

    def remove(self, thread: str) -> None:
        """Drop a thread."""
        with self._reading:
            self._turns.pop(thread, None)
        super().remove(thread)

    def _hold(self, kind: str, key: str, value: JsonText | None) -> None:
        with self._reading:
            self._read[kind, key] = (self._ticks(), value)
            self._read.move_to_end((kind, key))
            while len(self._read) > MOST_READ:
                self._read.popitem(last=False)

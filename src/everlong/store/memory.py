"""Threads kept in memory: the plainest store that meets the contract, and the measure of all others.

Everything is gone when the process ends. For tests, for trying things out, and for programs that keep
conversations themselves.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from types import TracebackType
from typing import Self
from uuid import uuid4

from everlong.core.events import STARTS, Event, starts
from everlong.core.messages import JsonText, Message
from everlong.core.points import Entry, Point, Withdrawal
from everlong.core.threads import Hit, Opened, Pin, Row, Thread, opened
from everlong.errors import NoThread, StoreError, ThreadChanged, ThreadExists
from everlong.store.bodies import check_entries, original_of
from everlong.store.memory_search import Words, best, words_in

__all__ = ["MemoryThreads"]


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(slots=True)
class _Kept:
    """One thread and all that belongs to it. Lists only ever grow, pins aside."""

    thread: Thread
    rows: list[Row] = field(default_factory=list)
    orders: dict[str, int] = field(default_factory=dict)
    words: dict[int, Words] = field(default_factory=dict)
    pins: list[Pin] = field(default_factory=list)
    events: dict[str, Event] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)

    def add(self, row: Row) -> None:
        self.rows.append(row)
        self.orders[row.id] = row.order
        if isinstance(row.entry, Message):
            self.words[row.order] = words_in(row.entry)


class MemoryThreads:
    """The contract `Threads`, in memory."""

    def __init__(self, *, clock: Callable[[], datetime] = _now) -> None:
        self._clock = clock
        self._lock = threading.RLock()
        self._kept: dict[str, _Kept] = {}
        self._counts: dict[tuple[str, str], int] = {}
        self._facts: dict[tuple[str, str], JsonText] = {}

    # Threads

    def create(self, thread: str, *, owner: str = "", title: str = "", metadata: JsonText = "{}") -> Thread:
        """A new, empty thread."""
        with self._lock:
            now = self._clock()
            made = Thread(id=thread, owner=owner, title=title, created=now, updated=now, metadata=metadata)
            return self._new(_Kept(made)).thread

    def thread(self, thread: str) -> Thread:
        """What is known of a thread."""
        with self._lock:
            return self._of(thread).thread

    def threads(
        self, *, owner: str | None = None, archived: bool | None = False, limit: int | None = None, skip: int = 0
    ) -> list[Thread]:
        """Threads, the latest changed first."""
        with self._lock:
            chosen = [
                kept.thread
                for kept in self._kept.values()
                if owner in (None, kept.thread.owner) and archived in (None, kept.thread.archived)
            ]
        chosen.sort(key=lambda one: one.updated, reverse=True)
        return chosen[skip : None if limit is None else skip + limit]

    def change(
        self,
        thread: str,
        *,
        title: str | None = None,
        archived: bool | None = None,
        settings: JsonText | None = None,
        metadata: JsonText | None = None,
    ) -> Thread:
        """Rename, archive, set."""
        with self._lock:
            kept = self._of(thread)
            old = kept.thread
            kept.thread = replace(
                old,
                title=old.title if title is None else title,
                archived=old.archived if archived is None else archived,
                settings=old.settings if settings is None else settings,
                metadata=old.metadata if metadata is None else metadata,
                updated=self._clock(),
            )
            return kept.thread

    def branch(self, thread: str, order: int, new: str, *, title: str = "") -> Thread:
        """A new thread that starts with the first `order` rows of this one."""
        with self._lock:
            kept = self._of(thread)
            if not 0 <= order <= len(kept.rows):
                raise StoreError(f"thread {thread!r} has {len(kept.rows)} rows; it cannot branch at {order}")
            now = self._clock()
            made = replace(
                kept.thread, id=new, title=title, created=now, updated=now, archived=False, parent=(thread, order)
            )
            branch = self._new(_Kept(made, pins=_pins_before(kept.pins, order)))
            for row in kept.rows[:order]:
                branch.add(row)
            branch.thread = _counted(branch)
            return branch.thread

    # The log

    def append(
        self, thread: str, entries: Sequence[Entry], *, ids: Sequence[str] | None = None, expected: int | None = None
    ) -> tuple[Row, ...]:
        """Add entries, all or none; entries whose id is there give the row that is there."""
        with self._lock:
            kept = self._of(thread)
            names = [uuid4().hex for _ in entries] if ids is None else list(ids)
            if len(names) != len(entries) or len(set(names)) != len(names):
                raise StoreError(f"thread {thread!r}: {len(entries)} entries need as many different ids")
            new = [(name, entry) for name, entry in zip(names, entries, strict=True) if name not in kept.orders]
            if new and expected not in (None, len(kept.rows)):
                raise ThreadChanged(f"thread {thread!r} has {len(kept.rows)} rows, not {expected}: read it again")
            now = self._clock()
            added = [Row(order, name, now, entry) for order, (name, entry) in enumerate(new, start=len(kept.rows))]
            check_entries(thread, added, [row.order for row in kept.rows if isinstance(row.entry, Point)])
            for row in added:
                kept.add(row)
            if added:
                kept.thread = replace(_counted(kept), updated=now)
            return tuple(kept.rows[kept.orders[name]] for name in names)

    def read(self, thread: str, start: int = 0, stop: int | None = None) -> Iterator[Row]:
        """The rows from `start` to `stop`."""
        with self._lock:
            return iter(self._of(thread).rows[max(0, start) : stop])

    def last(self, thread: str, messages: int) -> list[Row]:
        """The rows of the last so many messages, oldest first."""
        with self._lock:
            kept = self._of(thread)
            orders = sorted(kept.words)[-messages:] if messages > 0 else []
            return [kept.rows[order] for order in orders]

    def row(self, thread: str, name: str) -> Row | None:
        """The row whose id is `name`."""
        with self._lock:
            kept = self._of(thread)
            return kept.rows[kept.orders[name]] if name in kept.orders else None

    def open(self, thread: str, before: int | None = None) -> Opened:
        """What the view is made of, now or when the thread had only `before` rows."""
        with self._lock:
            kept = self._of(thread)
            pins = kept.pins if before is None else _pins_before(kept.pins, before)
            return opened(kept.thread, tuple(kept.rows[: None if before is None else max(0, before)]), tuple(pins))

    def points(self, thread: str) -> list[tuple[Row, bool]]:
        """Every compaction point, oldest first, and whether it stands."""
        with self._lock:
            rows = self._of(thread).rows
            withdrawn = {row.entry.point for row in rows if isinstance(row.entry, Withdrawal)}
            return [(row, row.order not in withdrawn) for row in rows if isinstance(row.entry, Point)]

    # Pins

    def pin(self, thread: str, order: int | None, text: str = "") -> Pin:
        """Keep a message, or a text, in every view."""
        with self._lock:
            kept = self._of(thread)
            if order is None and not text:
                raise StoreError("a pin needs a message or a text")
            if order is not None and order not in kept.words:
                raise StoreError(f"thread {thread!r} has no message {order} to pin")
            wanted = Pin(uuid4().hex, order, text if order is None else "")
            for pin in kept.pins:
                if (pin.order, pin.text) == (wanted.order, wanted.text):
                    return pin
            kept.pins.append(wanted)
            return wanted

    def unpin(self, thread: str, pin: str) -> None:
        """Let it go."""
        with self._lock:
            kept = self._of(thread)
            kept.pins = [one for one in kept.pins if one.id != pin]

    def pins(self, thread: str) -> tuple[Pin, ...]:
        """The pins, in the order they were made."""
        with self._lock:
            return tuple(self._of(thread).pins)

    # Events

    def record(self, thread: str, events: Sequence[Event]) -> None:
        """Keep events, in order."""
        with self._lock:
            kept = self._of(thread)
            new: dict[str, Event] = {}
            ended: set[str] = set()
            for event in events:
                if event.id in kept.events or event.id in new:
                    continue
                if event.kind in STARTS:
                    if event.parent in kept.ended | ended:
                        raise StoreError(f"thread {thread!r}: event {event.parent!r} has an outcome already")
                    ended.add(event.parent)
                new[event.id] = event
            kept.events |= new
            kept.ended |= ended

    def events(self, thread: str, *, after: str = "", kinds: Sequence[str] = ()) -> list[Event]:
        """The events in the order they were recorded."""
        with self._lock:
            kept = self._of(thread)
            recorded = list(kept.events.values())
            first = list(kept.events).index(after) + 1 if after in kept.events else 0
            return [event for event in recorded[first:] if not kinds or event.kind in kinds]

    def unfinished(self, thread: str) -> list[Event]:
        """Starts without an outcome."""
        with self._lock:
            kept = self._of(thread)
            return [event for event in kept.events.values() if starts(event.kind) and event.id not in kept.ended]

    # Finding what left the window

    def original(self, thread: str, ref: str) -> bytes | None:
        """The bytes of a message or part by its reference."""
        with self._lock:
            rows = list(self._of(thread).rows)
        found = (original_of(row.entry, ref) for row in rows)
        return next((content for content in found if content is not None), None)

    def search(
        self, query: str, *, thread: str | None = None, owner: str | None = None, limit: int = 10, around: int = 1
    ) -> list[Hit]:
        """Messages that answer a query, best first."""
        with self._lock:
            within = [self._of(thread)] if thread is not None else list(self._kept.values())
            chosen = [kept for kept in within if owner in (None, kept.thread.owner)]
            places = {(kept.thread.id, order): words for kept in chosen for order, words in kept.words.items()}
            hits = []
            for (name, order), score in best(query, places, limit):
                rows = self._of(name).rows
                near = tuple(rows[max(0, order - around) : order + around + 1])
                hits.append(Hit(name, rows[order], score, near))
            return hits

    # What was learned

    def counts(self, vocabulary: str, refs: Sequence[str]) -> dict[str, int]:
        """Token counts that were kept, by message reference."""
        with self._lock:
            found = ((ref, self._counts.get((vocabulary, ref))) for ref in refs)
            return {ref: tokens for ref, tokens in found if tokens is not None}

    def keep_counts(self, vocabulary: str, counts: Mapping[str, int]) -> None:
        """Keep token counts."""
        with self._lock:
            self._counts |= {(vocabulary, ref): tokens for ref, tokens in counts.items()}

    def fact(self, kind: str, key: str) -> JsonText | None:
        """What was learned under that name."""
        with self._lock:
            return self._facts.get((kind, key))

    def keep_fact(self, kind: str, key: str, value: JsonText) -> None:
        """Keep it; the newest counts."""
        with self._lock:
            self._facts[kind, key] = value

    def facts(self, kind: str) -> dict[str, JsonText]:
        """All of one kind, by key."""
        with self._lock:
            return {key: value for (of, key), value in self._facts.items() if of == kind}

    def close(self) -> None:
        """Nothing to let go of."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        self.close()

    def _of(self, thread: str) -> _Kept:
        if thread not in self._kept:
            raise NoThread(f"there is no thread {thread!r}")
        return self._kept[thread]

    def _new(self, kept: _Kept) -> _Kept:
        if kept.thread.id in self._kept:
            raise ThreadExists(f"there is a thread {kept.thread.id!r} already")
        self._kept[kept.thread.id] = kept
        return kept


def _counted(kept: _Kept) -> Thread:
    points = sum(isinstance(row.entry, Point) for row in kept.rows)
    return replace(kept.thread, length=len(kept.rows), messages=len(kept.words), points=points)


def _pins_before(pins: Sequence[Pin], order: int) -> list[Pin]:
    return [pin for pin in pins if pin.order is None or pin.order < order]

"""Threads in memory: the simplest store that meets the contract. Tests compare the other stores with it.

Everything is lost when the process ends. For tests, experiments, and programs that store conversations themselves.
"""

import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from itertools import islice
from types import TracebackType
from typing import Self, TypeAlias

from everlong.core import (
    STARTS,
    Entry,
    Event,
    EventKind,
    Gone,
    Hit,
    JsonText,
    Message,
    Opened,
    Pin,
    Point,
    Removal,
    Restoration,
    Row,
    Thread,
    Withdrawal,
    opened,
    starts,
)
from everlong.errors import NoThread, StoreError, ThreadExists
from everlong.store import rules
from everlong.store.bodies import kind_of, original_of
from everlong.store.erasure import Erasure, erasure_of
from everlong.store.rules import Clock, as_utc, in_utc, utc_now
from everlong.store.terms import found_by, query_terms, rarity, worth

__all__ = ["Memory", "MemoryThreads"]

#: A thread and the order of a message in it.
Place: TypeAlias = tuple[str, int]


@dataclass(frozen=True, slots=True)
class _Words:
    """How often each term occurs in a message, and all terms together."""

    terms: Mapping[str, float]
    length: float


@dataclass(slots=True)
class _StoredThread:
    """One thread and everything that belongs to it. Lists only grow, except pins, unless something is erased.

    `rows` are as they were appended; `removed` has the rows that are not shown, each with its removal.
    """

    thread: Thread
    rows: list[Row] = field(default_factory=list)
    orders: dict[str, int] = field(default_factory=dict)
    messages: list[int] = field(default_factory=list)
    points: list[int] = field(default_factory=list)
    withdrawn: set[int] = field(default_factory=set)
    removed: dict[int, int] = field(default_factory=dict)
    words: dict[int, _Words] = field(default_factory=dict)
    pins: list[Pin] = field(default_factory=list)
    events: dict[str, Event] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)
    #: By model and order.
    vectors: dict[tuple[str, int], bytes] = field(default_factory=dict)

    def is_message(self, order: int) -> bool:
        return 0 <= order < len(self.rows) and isinstance(self.shown(order).entry, Message)

    def shown(self, order: int) -> Row:
        """Return the row; a mark if it was removed."""
        row = self.rows[order]
        return replace(row, entry=Gone()) if order in self.removed else row

    def between(self, start: int, stop: int) -> list[Row]:
        """Return these rows, with marks in place of removed ones."""
        return [self.shown(order) for order in range(max(0, start), min(stop, len(self.rows)))]

    def shown_points(self) -> list[int]:
        """The orders of the compactions that are not removed."""
        return [order for order in self.points if isinstance(self.shown(order).entry, Point)]

    def shown_pins(self) -> tuple[Pin, ...]:
        """The pins, except those of removed messages."""
        return tuple(pin for pin in self.pins if pin.order not in self.removed)

    def kind_of(self, event: str) -> EventKind | None:
        return self.events[event].kind if event in self.events else None

    def add(self, rows: Sequence[Row], updated: datetime) -> None:
        for row in rows:
            self.rows.append(row)
            self.orders[row.id] = row.order
            match row.entry:
                case Message():
                    self.messages.append(row.order)
                case Point():
                    self.points.append(row.order)
                case Withdrawal(point):
                    self.withdrawn.add(point)
                case Removal(orders):
                    self.removed |= dict.fromkeys(orders, row.order)
                case Restoration(removal):
                    self.removed = {order: by for order, by in self.removed.items() if by != removal}
                case _:
                    pass
        standing = [order for order in self.shown_points() if order not in self.withdrawn]
        self.thread = replace(
            self.thread,
            length=len(self.rows),
            messages=sum(order not in self.removed for order in self.messages) if self.removed else len(self.messages),
            points=len(self.points),
            standing=len(standing),
            updated=updated,
        )

    def erase(self, erasure: Erasure) -> None:
        """Erase rows and everything known about them; a mark stays in their place."""
        orders = frozenset(erasure.orders)
        for order in orders:
            self.rows[order] = replace(self.rows[order], entry=Gone())
            self.words.pop(order, None)
            self.removed.pop(order, None)
        self.messages = [order for order in self.messages if order not in orders]
        self.pins = [pin for pin in self.pins if pin.order not in orders]
        self.vectors = {key: vector for key, vector in self.vectors.items() if key[1] not in orders}
        for event in list(erasure.scrubbed(self.events.values())):
            self.events[event.id] = event

    def all_words(self) -> dict[int, _Words]:
        """The words of each message; words of messages since the last search are computed now."""
        for order in self.messages[len(self.words) :]:
            entry = self.rows[order].entry
            if isinstance(entry, Message):
                terms = found_by(entry)
                self.words[order] = _Words(terms, sum(terms.values()))
        return {order: words for order, words in self.words.items() if order not in self.removed}

    def forget_words(self, start: int) -> None:
        """Drop the words of the messages from this order on; the next search computes them again."""
        self.words = {order: words for order, words in self.words.items() if order < start}


@dataclass(slots=True)
class Memory:
    """The data of stores in memory. Several stores may share it, as other stores share a file."""

    lock: threading.RLock = field(default_factory=threading.RLock)
    threads: dict[str, _StoredThread] = field(default_factory=dict)
    counts: dict[tuple[str, str], int] = field(default_factory=dict)
    #: By kind and key: the value, and when it was stored.
    facts: dict[str, dict[str, tuple[JsonText, datetime]]] = field(default_factory=dict)


class MemoryThreads:
    """A store in memory. Everything is lost when the program ends."""

    def __init__(self, memory: Memory | None = None, *, clock: Clock = utc_now) -> None:
        self._clock = in_utc(clock)
        self._memory = Memory() if memory is None else memory
        self._closed = False

    @property
    def warnings(self) -> tuple[str, ...]:
        """Always empty: data in memory cannot be damaged."""
        return ()

    # Threads

    def create(
        self, thread: str, *, owner: str = "", title: str = "", metadata: JsonText = "{}", at: datetime | None = None
    ) -> Thread:
        """Create an empty thread."""
        rules.check_objects(metadata=metadata)
        with self._held():
            now = rules.moment_of(self._clock, at)
            made = Thread(id=thread, owner=owner, title=title, created=now, updated=now, metadata=metadata)
            return self._new(_StoredThread(made)).thread

    def thread(self, thread: str) -> Thread:
        """Return a thread without its log."""
        with self._held():
            return self._of(thread).thread

    def threads(
        self, *, owner: str | None = None, archived: bool | None = False, limit: int | None = None, skip: int = 0
    ) -> list[Thread]:
        """List threads, most recently changed first."""
        with self._held() as memory:
            chosen = [
                stored.thread
                for stored in memory.threads.values()
                if owner in (None, stored.thread.owner) and archived in (None, stored.thread.archived)
            ]
        chosen.sort(key=lambda thread: thread.updated, reverse=True)
        return chosen[max(0, skip) :][: rules.at_most(limit)]

    def change(
        self,
        thread: str,
        *,
        title: str | None = None,
        archived: bool | None = None,
        settings: JsonText | None = None,
        metadata: JsonText | None = None,
        at: datetime | None = None,
    ) -> Thread:
        """Change title, archive flag, settings or metadata; values that are None stay."""
        rules.check_objects(settings=settings, metadata=metadata)
        with self._held():
            stored = self._of(thread)
            old = stored.thread
            stored.thread = replace(
                old,
                title=old.title if title is None else title,
                archived=old.archived if archived is None else archived,
                settings=old.settings if settings is None else settings,
                metadata=old.metadata if metadata is None else metadata,
                updated=rules.moment_of(self._clock, at),
            )
            return stored.thread

    def branch(self, thread: str, order: int, new: str, *, title: str = "", at: datetime | None = None) -> Thread:
        """Create a thread that starts with the first `order` rows of this one."""
        with self._held():
            stored = self._of(thread)
            rules.check_branch(thread, len(stored.rows), order)
            now = rules.moment_of(self._clock, at)
            made = replace(stored.thread, id=new, title=title, created=now, updated=now, parent=(thread, order))
            made = replace(made, archived=False, length=0, messages=0, points=0, standing=0)
            branch = self._new(_StoredThread(made, pins=list(rules.pins_before(stored.shown_pins(), order))))
            branch.add(stored.between(0, order), now)
            return branch.thread

    def remove(self, thread: str) -> None:
        """Remove a thread with everything that belongs to it."""
        with self._held() as memory:
            self._of(thread)
            del memory.threads[thread]

    # The log

    def append(
        self,
        thread: str,
        entries: Sequence[Entry],
        *,
        ids: Sequence[str] | None = None,
        expected: int | None = None,
        at: datetime | None = None,
    ) -> tuple[Row, ...]:
        """Append entries, all or none. An entry whose id exists is not added again: its row is returned."""
        with self._held():
            stored = self._of(thread)
            names = rules.row_names(thread, entries, ids)
            new = [(name, entry) for name, entry in zip(names, entries, strict=True) if name not in stored.orders]
            clock = partial(rules.moment_of, self._clock, at, stored.thread.updated)
            added = rules.added_rows(thread, len(stored.rows), expected, new, clock)
            kinds = {at: kind_of(stored.shown(at).entry) for at in rules.referred_by(added) if at < len(stored.rows)}
            rules.check_entries(thread, added, kinds)
            if added:
                stored.add(added, added[0].time)
            return tuple(stored.shown(stored.orders[name]) for name in names)

    def read(self, thread: str, start: int = 0, stop: int | None = None) -> Iterator[Row]:
        """Iterate over the rows from `start` to `stop`."""
        with self._held():
            rows = self._of(thread).between(start, rules.at_most(stop))
        return self._one_by_one(rows)

    def _one_by_one(self, rows: Sequence[Row]) -> Iterator[Row]:
        for row in rows:
            with self._held():
                pass  # a store that was closed meanwhile returns nothing more
            yield row

    def last(self, thread: str, messages: int) -> list[Row]:
        """Return the rows of the last `messages` messages, oldest first."""
        with self._held():
            stored = self._of(thread)
            kept = (order for order in reversed(stored.messages) if order not in stored.removed)
            orders = islice(kept, rules.at_most(messages))
            return [stored.rows[order] for order in orders][::-1]

    def row(self, thread: str, name: str) -> Row | None:
        """Return the row with that id, or None."""
        with self._held():
            stored = self._of(thread)
            return stored.shown(stored.orders[name]) if name in stored.orders else None

    def open(self, thread: str, before: int | None = None) -> Opened:
        """Return the parts of a view, as of now or as of the time when the thread had only `before` rows."""
        with self._held():
            stored = self._of(thread)
            rows = tuple(stored.between(0, rules.at_most(before)))
            return opened(stored.thread, rows, rules.pins_before(stored.shown_pins(), before))

    def points(self, thread: str) -> list[tuple[Row, bool]]:
        """Return every compaction point, oldest first, and whether it is still in force."""
        with self._held():
            stored = self._of(thread)
            return [(stored.rows[order], order not in stored.withdrawn) for order in stored.shown_points()]

    def erase(self, thread: str, orders: Sequence[int]) -> dict[str, tuple[int, ...]]:
        """Erase messages and everything that mentions them, here and in the threads that share them."""
        with self._held() as memory:
            stored = self._of(thread)
            erasure = erasure_of(thread, stored.rows, orders, stored.removed)
            erased: dict[str, tuple[int, ...]] = {}
            sharing = self._sharing(stored, erasure)
            for name, one in {thread: erasure, **sharing}.items():
                within = memory.threads[name]
                if one.shown:
                    now = self._clock()
                    row = Row(len(within.rows), rules.new_name(), now, one.removal)
                    within.add([row], now)
                within.erase(one)
                within.add([], within.thread.updated)
                erased |= {name: one.orders} if one.rows else {}
            refs = {ref for one in (erasure, *sharing.values()) for ref in one.refs}
            memory.counts = {key: tokens for key, tokens in memory.counts.items() if key[1] not in refs}
            return erased

    def _sharing(self, stored: _StoredThread, erasure: Erasure) -> dict[str, Erasure]:
        """Return what is erased from the other threads that contain one of these messages."""
        messages = [row for row in erasure.rows if isinstance(row.entry, Message)]
        shared: dict[str, Erasure] = {}
        for name, other in self._memory.threads.items():
            same = [row.order for row in messages if row.order < len(other.rows) and other.rows[row.order] == row]
            if same and other is not stored and other.thread.owner == stored.thread.owner:
                shared[name] = erasure_of(name, other.rows, same, other.removed)
        return shared

    # Pins

    def pin(self, thread: str, order: int | None, text: str = "") -> Pin:
        """Pin a message or a text, so that it stays in every view."""
        with self._held():
            stored = self._of(thread)
            wanted = rules.new_pin(order, text)
            if order is not None and not stored.is_message(order):
                raise StoreError(f"thread {thread!r} has no message {order} to pin")
            same = rules.same_pin(stored.shown_pins(), wanted)
            if same is None:
                stored.pins.append(wanted)
            return same or wanted

    def unpin(self, thread: str, pin: str) -> None:
        """Remove a pin."""
        with self._held():
            stored = self._of(thread)
            stored.pins = [known for known in stored.pins if known.id != pin]

    def pins(self, thread: str) -> tuple[Pin, ...]:
        """Return the pins in the order they were made."""
        with self._held():
            return self._of(thread).shown_pins()

    # Events

    def record(self, thread: str, events: Sequence[Event]) -> None:
        """Record events, in order."""
        with self._held():
            stored = self._of(thread)
            for event in rules.new_events(thread, events, stored.kind_of, stored.ended.__contains__):
                stored.events[event.id] = event
                if event.kind in STARTS:
                    stored.ended.add(event.parent)

    def events(self, thread: str, *, after: str = "", kinds: Sequence[str] = ()) -> list[Event]:
        """Return the events in the order they were recorded."""
        with self._held():
            stored = self._of(thread)
            recorded = list(stored.events.values())
            first = list(stored.events).index(after) + 1 if after in stored.events else 0
            return [event for event in recorded[first:] if not kinds or event.kind in kinds]

    def unfinished(self, thread: str) -> list[Event]:
        """Return the starts that have no outcome yet."""
        with self._held():
            stored = self._of(thread)
            return [event for event in stored.events.values() if starts(event.kind) and event.id not in stored.ended]

    # Finding what left the window

    def original(self, thread: str, ref: str) -> bytes | None:
        """Return the bytes of the message or part that a reference names, or None."""
        with self._held():
            rows = self._of(thread).between(0, rules.MOST)
        contents = (original_of(row.entry, ref) for row in rows)
        return next((content for content in contents if content is not None), None)

    def search(
        self, query: str, *, thread: str | None = None, owner: str | None = None, limit: int = 10, around: int = 1
    ) -> list[Hit]:
        """Find messages that answer a query, best first."""
        with self._held() as memory:
            within = [self._of(thread)] if thread is not None else list(memory.threads.values())
            chosen = [stored for stored in within if owner in (None, stored.thread.owner)]
            places = {
                (stored.thread.id, order): words for stored in chosen for order, words in stored.all_words().items()
            }
            hits = []
            for (name, order), score in _best(query, places, rules.at_most(limit)):
                found = self._of(name)
                near = found.between(order - max(0, around), order + max(0, around) + 1)
                hits.append(Hit(name, found.rows[order], score, tuple(near)))
            return hits

    # What was learned

    def counts(self, vocabulary: str, refs: Sequence[str]) -> dict[str, int]:
        """Return the stored token counts, by message reference."""
        with self._held() as memory:
            counts = ((ref, memory.counts.get((vocabulary, ref))) for ref in refs)
            return {ref: tokens for ref, tokens in counts if tokens is not None}

    def keep_counts(self, vocabulary: str, counts: Mapping[str, int]) -> None:
        """Keep token counts."""
        with self._held() as memory:
            memory.counts |= {(vocabulary, ref): tokens for ref, tokens in counts.items()}

    def vectors(self, thread: str, model: str, start: int = 0, stop: int | None = None) -> dict[int, bytes]:
        """Return the stored vectors of messages, by their order."""
        with self._held():
            orders, kept = range(max(0, start), rules.at_most(stop)), self._of(thread).vectors
            return {order: vector for (name, order), vector in kept.items() if name == model and order in orders}

    def keep_vectors(self, thread: str, model: str, vectors: Mapping[int, bytes]) -> None:
        """Keep vectors of messages."""
        with self._held():
            stored = self._of(thread)
            stored.vectors |= {(model, at): vector for at, vector in vectors.items() if stored.is_message(at)}

    def fact(self, kind: str, key: str) -> JsonText | None:
        """Return the fact of that kind and key, or None."""
        with self._held() as memory:
            value, _ = memory.facts.get(kind, {}).get(key, (None, None))
            return value

    def keep_fact(self, kind: str, key: str, value: JsonText) -> None:
        """Keep a fact, replacing an older one."""
        with self._held() as memory:
            memory.facts.setdefault(kind, {})[key] = (value, self._clock())

    def keep_facts(self, kind: str, values: Mapping[str, JsonText]) -> None:
        """Keep several facts of a kind."""
        with self._held() as memory:
            now = self._clock()
            memory.facts.setdefault(kind, {}).update({key: (value, now) for key, value in values.items()})

    def change_fact(self, kind: str, key: str, change: Callable[[JsonText | None], JsonText | None]) -> JsonText | None:
        """Read, change and store a fact as one step; return the new value."""
        with self._held():
            before = self.fact(kind, key)
            after = change(before)
            if after is None:
                self.drop_fact(kind, key)
            elif after != before:
                self.keep_fact(kind, key, after)
            return after

    def facts(self, kind: str) -> dict[str, JsonText]:
        """Return all facts of a kind, by key."""
        with self._held() as memory:
            return {key: value for key, (value, _) in memory.facts.get(kind, {}).items()}

    def drop_fact(self, kind: str, key: str) -> None:
        """Drop one fact; one that does not exist is not an error."""
        with self._held() as memory:
            memory.facts.get(kind, {}).pop(key, None)

    def drop_facts(self, kind: str, before: datetime) -> int:
        """Drop the facts of a kind that were last stored before that time; return how many."""
        with self._held() as memory:
            facts = memory.facts.get(kind, {})
            old = [key for key, (_, time) in facts.items() if time < as_utc(before)]
            for key in old:
                del facts[key]
            return len(old)

    def close(self) -> None:
        """Close the store; its memory lives as long as it is referenced."""
        self._closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        self.close()

    @contextmanager
    def _held(self) -> Iterator[Memory]:
        """Return the memory, for the exclusive use of this thread of execution."""
        with self._memory.lock:
            if self._closed:
                raise StoreError("the store was closed")
            yield self._memory

    def _of(self, thread: str) -> _StoredThread:
        if thread not in self._memory.threads:
            raise NoThread(f"there is no thread {thread!r}")
        return self._memory.threads[thread]

    def _new(self, stored: _StoredThread) -> _StoredThread:
        if stored.thread.id in self._memory.threads:
            raise ThreadExists(f"thread {stored.thread.id!r} already exists")
        self._memory.threads[stored.thread.id] = stored
        return stored


def _best(query: str, places: Mapping[Place, _Words], limit: int) -> list[tuple[Place, float]]:
    """The places whose messages answer a query and their BM25 scores, best first."""
    terms = query_terms(query)
    if not terms or not places or limit <= 0:
        return []
    average = max(1.0, sum(words.length for words in places.values()) / len(places))
    scores: defaultdict[Place, float] = defaultdict(float)
    for term, weight in terms.items():
        holding = {place: words for place, words in places.items() if term in words.terms}
        rare = weight * rarity(len(places), len(holding))
        for place, words in holding.items():
            scores[place] += rare * worth(words.terms[term], words.length, average)
    return sorted(scores.items(), key=lambda item: -item[1])[:limit]

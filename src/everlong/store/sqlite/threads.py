"""The contract `Threads` on a SQLite file: each method is one transaction."""

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Self

from everlong.core import Entry, Event, Hit, JsonText, Opened, Pin, Row, Thread
from everlong.store import rules
from everlong.store.rules import WAIT, Clock, as_utc, in_utc, utc_now
from everlong.store.sqlite import catalog, erasure, log, records, removal, search
from everlong.store.sqlite.catalog import StoredThread
from everlong.store.sqlite.connections import Connections, Link
from everlong.store.sqlite.schema import kept_text, kept_time
from everlong.store.terms import query_terms

__all__ = ["SqliteThreads"]

READ_AT_ONCE = 32  # rows that `read` holds in memory


class SqliteThreads:
    """A store in one file, which is created if missing. Any number of processes and threads may use it at once."""

    def __init__(self, path: str | PathLike[str], *, clock: Clock = utc_now, wait: float = WAIT) -> None:
        self._clock = in_utc(clock)
        self._connections = Connections(Path(path), wait)
        self._connections.check()

    @property
    def warnings(self) -> tuple[str, ...]:
        """What could not be read since the store was opened, by place. It is logged too."""
        return self._connections.damage.warnings

    # Threads

    def create(
        self, thread: str, *, owner: str = "", title: str = "", metadata: JsonText = "{}", at: datetime | None = None
    ) -> Thread:
        """Create an empty thread."""
        rules.check_objects(metadata=metadata)
        now = rules.moment_of(self._clock, at)
        made = Thread(id=thread, owner=owner, title=title, created=now, updated=now, metadata=metadata)
        return self._connections.write(lambda db: catalog.add_thread(db, made).thread)

    def thread(self, thread: str) -> Thread:
        """Return a thread without its log."""
        return self._connections.read(lambda db: catalog.get_thread(db, thread).thread)

    def threads(
        self, *, owner: str | None = None, archived: bool | None = False, limit: int | None = None, skip: int = 0
    ) -> list[Thread]:
        """List threads, most recently changed first."""
        return self._connections.read(
            lambda db: catalog.list_threads(db, owner, archived, rules.at_most(limit), rules.at_most(skip))
        )

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
        texts = {"title": title, "settings": settings, "metadata": metadata}
        fields: dict[str, str | bytes | int] = {
            name: kept_text(text) for name, text in texts.items() if text is not None
        }
        if archived is not None:
            fields["archived"] = archived

        def work(db: Link) -> Thread:
            stored = catalog.get_thread(db, thread)
            now = rules.moment_of(self._clock, at)
            catalog.change_thread(db, stored.number, {**fields, "updated": kept_time(now)})
            return catalog.get_thread(db, thread).thread

        return self._connections.write(work)

    def branch(self, thread: str, order: int, new: str, *, title: str = "", at: datetime | None = None) -> Thread:
        """Create a thread that starts with the first `order` rows of this one; the two share the bodies."""

        def work(db: Link) -> Thread:
            stored = catalog.get_thread(db, thread)
            rules.check_branch(thread, stored.thread.length, order)
            now = rules.moment_of(self._clock, at)
            messages, points = log.counted(db, stored.number, order)
            made = replace(stored.thread, id=new, title=title, created=now, updated=now, parent=(thread, order))
            made = replace(made, archived=False, length=order, messages=messages, points=points)
            branch = catalog.add_thread(db, made)
            log.copy_rows(db, stored.number, branch.number, order)
            log.copy_pins(db, stored.number, branch.number, order)
            return catalog.get_thread(db, new).thread

        return self._connections.write(work)

    def remove(self, thread: str) -> None:
        """Remove a thread with everything that only it uses. Other writers wait only for the last step."""
        stored = self._connections.read(lambda db: catalog.get_thread(db, thread))
        known: removal.Terms = {}
        for first in range(0, stored.thread.length, READ_AT_ONCE):
            batch = partial(removal.terms_between, stored=stored, start=first, stop=first + READ_AT_ONCE)
            known |= self._connections.read(batch)
        self._connections.write(lambda db: removal.remove_thread(db, stored, known))

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
        names = rules.row_names(thread, entries, ids)
        ready = {name: log.prepared(entry) for name, entry in zip(names, entries, strict=True)}

        def work(db: Link) -> tuple[Row, ...]:
            stored = catalog.get_thread(db, thread)
            known = {} if ids is None else log.positions_of(db, stored.number, names)
            new = [name for name in names if name not in known]
            named = ((name, ready[name].entry) for name in new)
            clock = partial(rules.moment_of, self._clock, at, stored.thread.updated)
            added = rules.added_rows(thread, stored.thread.length, expected, named, clock)
            log.add_rows(db, stored, added, [ready[name] for name in new])
            rows = {row.id: row for row in added}
            rows |= {name: log.row_at(db, stored.number, at) for name, at in known.items()}
            return tuple(rows[name] for name in names)

        return self._connections.write(work)

    def read(self, thread: str, start: int = 0, stop: int | None = None) -> Iterator[Row]:
        """Iterate over the rows from `start` to `stop`, a few at a time; rows added meanwhile are not included."""
        stored = self._connections.read(lambda db: catalog.get_thread(db, thread))
        end = min(rules.at_most(stop), stored.thread.length)
        return self._read(stored, max(0, start), end)

    def _read(self, stored: StoredThread, start: int, stop: int) -> Iterator[Row]:
        for first in range(start, stop, READ_AT_ONCE):
            yield from self._rows(stored, first, min(stop, first + READ_AT_ONCE))

    def _rows(self, stored: StoredThread, start: int, stop: int) -> list[Row]:
        def work(db: Link) -> list[Row]:
            catalog.check_same(db, stored)
            return list(log.rows_between(db, stored.number, start, stop))

        return self._connections.read(work)

    def last(self, thread: str, messages: int) -> list[Row]:
        """Return the rows of the last `messages` messages, oldest first."""
        return self._connections.read(
            lambda db: log.last_messages(db, catalog.get_thread(db, thread).number, rules.at_most(messages))
        )

    def row(self, thread: str, name: str) -> Row | None:
        """Return the row with that id, or None."""

        def work(db: Link) -> Row | None:
            number = catalog.get_thread(db, thread).number
            known = log.positions_of(db, number, [name])
            return log.row_at(db, number, known[name]) if name in known else None

        return self._connections.read(work)

    def open(self, thread: str, before: int | None = None) -> Opened:
        """Return the parts of a view, as of now or as of the time when the thread had only `before` rows."""

        def work(db: Link) -> Opened:
            stored = catalog.get_thread(db, thread)
            stop = min(rules.at_most(before), stored.thread.length)
            return log.open_at(db, stored, stop, log.pins_of(db, stored.number, before))

        return self._connections.read(work)

    def points(self, thread: str) -> list[tuple[Row, bool]]:
        """Return every compaction point, oldest first, and whether it is still in force."""
        return self._connections.read(lambda db: log.point_rows(db, catalog.get_thread(db, thread).number))

    def erase(self, thread: str, orders: Sequence[int]) -> dict[str, tuple[int, ...]]:
        """Erase messages and everything that mentions them, here and in threads that share them; rewrite the file."""
        erased = self._connections.write(
            lambda db: erasure.erase(db, catalog.get_thread(db, thread), orders, self._clock())
        )
        self._connections.rewrite()
        return erased

    # Pins

    def pin(self, thread: str, order: int | None, text: str = "") -> Pin:
        """Pin a message or a text, so that it stays in every view."""
        return self._connections.write(lambda db: log.pin(db, catalog.get_thread(db, thread), order, text))

    def unpin(self, thread: str, pin: str) -> None:
        """Remove a pin."""
        self._connections.write(lambda db: log.unpin(db, catalog.get_thread(db, thread).number, pin))

    def pins(self, thread: str) -> tuple[Pin, ...]:
        """Return the pins in the order they were made."""
        return self._connections.read(lambda db: log.pins_of(db, catalog.get_thread(db, thread).number))

    # Events

    def record(self, thread: str, events: Sequence[Event]) -> None:
        """Record events, in order."""
        self._connections.write(lambda db: records.record(db, catalog.get_thread(db, thread), events))

    def events(self, thread: str, *, after: str = "", kinds: Sequence[str] = ()) -> list[Event]:
        """Return the events in the order they were recorded."""
        return self._connections.read(
            lambda db: records.events_after(db, catalog.get_thread(db, thread).number, after, kinds)
        )

    def unfinished(self, thread: str) -> list[Event]:
        """Return the starts that have no outcome yet."""
        return self._connections.read(lambda db: records.unfinished(db, catalog.get_thread(db, thread).number))

    # Finding what left the window

    def original(self, thread: str, ref: str) -> bytes | None:
        """Return the bytes of the message or part that a reference names, or None."""
        return self._connections.read(lambda db: log.original(db, catalog.get_thread(db, thread).number, ref))

    def search(
        self, query: str, *, thread: str | None = None, owner: str | None = None, limit: int = 10, around: int = 1
    ) -> list[Hit]:
        """Find messages that answer a query, best first."""
        terms = query_terms(query)

        def work(db: Link) -> list[Hit]:
            number, owners = catalog.search_scope(db, thread, owner)
            most = rules.at_most(limit)
            places = [place for one in owners for place in search.best(db, one, number, terms, most)] if most else []
            best = heapq.nsmallest(most, places, key=lambda place: -place.score)
            return [log.hit_at(db, place, rules.at_most(around)) for place in best]

        return self._connections.read(work)

    # What was learned

    def counts(self, vocabulary: str, refs: Sequence[str]) -> dict[str, int]:
        """Return the stored token counts, by message reference."""
        return self._connections.read(lambda db: records.counts(db, vocabulary, refs))

    def keep_counts(self, vocabulary: str, counts: Mapping[str, int]) -> None:
        """Keep token counts."""
        self._connections.write(lambda db: records.keep_counts(db, vocabulary, counts))

    def vectors(self, thread: str, model: str, start: int = 0, stop: int | None = None) -> dict[int, bytes]:
        """Return the stored vectors of messages, by their order."""
        first, last = max(0, start), rules.at_most(stop)
        return self._connections.read(
            lambda db: records.vectors(db, catalog.get_thread(db, thread).number, model, first, last)
        )

    def keep_vectors(self, thread: str, model: str, vectors: Mapping[int, bytes]) -> None:
        """Keep vectors of messages."""
        self._connections.write(
            lambda db: records.keep_vectors(db, catalog.get_thread(db, thread).number, model, vectors)
        )

    def fact(self, kind: str, key: str) -> JsonText | None:
        """Return the fact of that kind and key, or None."""
        return self._connections.read(lambda db: records.fact(db, kind, key))

    def keep_fact(self, kind: str, key: str, value: JsonText) -> None:
        """Keep a fact, replacing an older one."""
        self._connections.write(lambda db: records.keep_fact(db, kind, key, value, self._clock()))

    def keep_facts(self, kind: str, values: Mapping[str, JsonText]) -> None:
        """Keep several facts of a kind, all or none."""
        self._connections.write(lambda db: records.keep_facts(db, kind, values, self._clock()))

    def change_fact(self, kind: str, key: str, change: Callable[[JsonText | None], JsonText | None]) -> JsonText | None:
        """Read, change and store a fact as one step; return the new value."""
        return self._connections.write(lambda db: records.change_fact(db, kind, key, change, self._clock()))

    def facts(self, kind: str) -> dict[str, JsonText]:
        """Return all facts of a kind, by key."""
        return self._connections.read(lambda db: records.facts(db, kind))

    def drop_fact(self, kind: str, key: str) -> None:
        """Drop one fact; one that does not exist is not an error."""
        self._connections.write(lambda db: records.drop_fact(db, kind, key))

    def drop_facts(self, kind: str, before: datetime) -> int:
        """Drop the facts of a kind that were last stored before that time; return how many."""
        return self._connections.write(lambda db: records.drop_facts(db, kind, as_utc(before)))

    def close(self) -> None:
        """Close the store."""
        self._connections.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        self.close()

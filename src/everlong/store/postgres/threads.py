"""The contract `Threads` on a Postgres database: each method is one piece of work that may be repeated.

Many processes on many machines write to the same threads. An append locks the row of its thread, which makes the order.
Work that is repeated after a lost connection finds what it has done before by its ids.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from types import TracebackType
from typing import Self
from uuid import uuid4

from everlong.core import Entry, Event, Gone, Hit, JsonText, Opened, Pin, Row, Thread, bytes_of
from everlong.store import rules
from everlong.store.bodies import EntryKind, original_of
from everlong.store.postgres import erasure, log, records, removal
from everlong.store.postgres.connections import Connections, Link
from everlong.store.postgres.notices import PostgresNotices
from everlong.store.postgres.rows import ROW_COLUMNS, page, prepare, rows_of
from everlong.store.postgres.schema import THREAD_COLUMNS, migrate, name_key, thread_of
from everlong.store.postgres.search import scope_of_owner, scope_of_thread, search
from everlong.store.rules import WAIT, Clock, as_utc, in_utc, utc_now
from everlong.store.terms import query_terms

__all__ = ["PostgresThreads"]


class PostgresThreads:
    """A store in a Postgres database.

    A process opens at most `connections` connections. It waits `wait` seconds for a thread that another writer holds,
    and `patience` seconds for a server that restarts; then it raises StoreBusy or StoreError.
    """

    def __init__(
        self,
        url: str,
        *,
        clock: Clock = utc_now,
        connections: int = 10,
        wait: float = WAIT,
        patience: float = 60.0,
    ) -> None:
        self._clock = in_utc(clock)
        self._url = url
        self._database = Connections(url, migrate, most=connections, wait=wait, patience=patience)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What could not be read since the store was opened, by place. It is logged too."""
        return self._database.damage.warnings

    def notices(self) -> PostgresNotices:
        """Return a channel for notifying other processes on this database."""
        return PostgresNotices(self._url)

    # Threads

    def create(
        self, thread: str, *, owner: str = "", title: str = "", metadata: JsonText = "{}", at: datetime | None = None
    ) -> Thread:
        """Create an empty thread."""
        rules.check_objects(metadata=metadata)
        call, now = uuid4(), rules.moment_of(self._clock, at)
        new = Thread(id=thread, owner=owner, title=title, created=now, updated=now, metadata=metadata)
        return self._database.run(lambda link: log.create(link, new, call)[0].thread)

    def thread(self, thread: str) -> Thread:
        """Return a thread without its log."""
        return self._database.read(lambda link: log.get_thread(link, thread).thread)

    def threads(
        self, *, owner: str | None = None, archived: bool | None = False, limit: int | None = None, skip: int = 0
    ) -> list[Thread]:
        """List threads, most recently changed first."""
        values = {"owner": None if owner is None else name_key(owner), "archived": archived}
        rows = self._database.read(
            lambda link: link.execute(
                f"SELECT {THREAD_COLUMNS} FROM everlong.threads WHERE (%(owner)s::bytea IS NULL OR"
                " sha256(owner) = %(owner)s) AND (%(archived)s::boolean IS NULL OR archived = %(archived)s)"
                " ORDER BY updated DESC, number LIMIT %(limit)s OFFSET %(skip)s",
                {**values, "limit": rules.at_most(limit), "skip": rules.at_most(skip)},
            ).fetchall()
        )
        listed = (thread_of(columns, self._database.damage) for columns in rows)
        return [thread for thread in listed if thread is not None]

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
        texts = [None if text is None else bytes_of(text) for text in (title, settings, metadata)]

        def work(link: Link) -> Thread:
            number = log.get_thread(link, thread, locked=True).number
            link.execute(
                "UPDATE everlong.threads SET title = coalesce(%s, title), settings = coalesce(%s, settings),"
                " metadata = coalesce(%s, metadata), archived = coalesce(%s, archived), updated = %s WHERE number = %s",
                (*texts, archived, rules.moment_of(self._clock, at), number),
            )
            return log.get_thread(link, thread).thread

        return self._database.run(work)

    def branch(self, thread: str, order: int, new: str, *, title: str = "", at: datetime | None = None) -> Thread:
        """Create a thread of the same owner that starts with the first `order` rows of this one."""
        call, now = uuid4(), rules.moment_of(self._clock, at)
        old = self.thread(thread)
        made = Thread(
            id=new,
            owner=old.owner,
            title=title,
            created=now,
            updated=now,
            parent=(thread, order),
            settings=old.settings,
            metadata=old.metadata,
        )
        return self._database.run(lambda link: log.branch(link, thread, order, made, call))

    def remove(self, thread: str) -> None:
        """Remove a thread with everything that only it uses."""
        number = self._database.read(lambda link: log.get_thread(link, thread).number)
        self._database.run(lambda link: removal.remove_thread(link, number))

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
        """Append entries, all or none; they are durable when this returns.

        For an id that exists, its row is returned.
        """
        names = rules.row_names(thread, entries, ids)
        new = dict(zip(names, map(prepare, entries), strict=True))
        moment = partial(rules.moment_of, self._clock, at)
        return self._database.run(lambda link: log.append(link, thread, new, expected, moment))

    def read(self, thread: str, start: int = 0, stop: int | None = None) -> Iterator[Row]:
        """Iterate over the rows from `start` to `stop`, a page at a time."""
        stored = self._database.read(lambda link: log.get_thread(link, thread))
        length = stored.thread.length
        return self._pages(stored.number, max(0, start), min(rules.at_most(stop), length))

    def last(self, thread: str, messages: int) -> list[Row]:
        """Return the rows of the last `messages` messages, oldest first."""

        def work(link: Link) -> list[Row]:
            columns = link.execute(
                f"SELECT {ROW_COLUMNS} FROM everlong.rows WHERE thread = %s AND kind = %s AND removed IS NULL"
                " ORDER BY place DESC LIMIT %s",
                (log.get_thread(link, thread).number, EntryKind.MESSAGE, rules.at_most(messages)),
            )
            return rows_of(link, columns)[::-1]

        return self._database.read(work)

    def row(self, thread: str, name: str) -> Row | None:
        """Return the row with that id, or None."""
        return self._database.read(lambda link: log.row_named(link, thread, name))

    def open(self, thread: str, before: int | None = None) -> Opened:
        """Return the parts of a view, as of now or as of the time when the thread had only `before` rows."""
        return self._database.read(lambda link: log.open_at(link, thread, before))

    def points(self, thread: str) -> list[tuple[Row, bool]]:
        """Return every compaction point, oldest first, and whether it is still in force."""
        return self._database.read(lambda link: log.points_of(link, thread))

    def erase(self, thread: str, orders: Sequence[int]) -> dict[str, tuple[int, ...]]:
        """Erase messages and everything that mentions them, here and in the threads that share them."""
        return self._database.run(lambda link: erasure.erase(link, thread, orders, self._clock()))

    # Pins

    def pin(self, thread: str, order: int | None, text: str = "") -> Pin:
        """Pin a message or a text, so that it stays in every view."""
        wanted = rules.new_pin(order, text)
        return self._database.run(lambda link: log.pin(link, thread, wanted))

    def unpin(self, thread: str, pin: str) -> None:
        """Remove a pin."""

        def work(link: Link) -> None:
            number = log.get_thread(link, thread, locked=True).number
            link.execute("DELETE FROM everlong.pins WHERE thread = %s AND id = %s", (number, bytes_of(pin)))

        self._database.run(work)

    def pins(self, thread: str) -> tuple[Pin, ...]:
        """Return the pins in the order they were made."""
        return self._database.read(lambda link: log.pins_of(link, log.get_thread(link, thread).number))

    # Events

    def record(self, thread: str, events: Sequence[Event]) -> None:
        """Record events, in order. Raises StoreError for a second outcome of one start."""
        self._database.run(lambda link: records.record(link, thread, events))

    def events(self, thread: str, *, after: str = "", kinds: Sequence[str] = ()) -> list[Event]:
        """Return the events in the order they were recorded."""
        return self._database.read(lambda link: records.events_after(link, thread, after, kinds))

    def unfinished(self, thread: str) -> list[Event]:
        """Return the starts that have no outcome yet."""
        return self._database.read(lambda link: records.unfinished(link, thread))

    # Finding what left the window

    def original(self, thread: str, ref: str) -> bytes | None:
        """Return the bytes of the message or part that a reference names, or None."""

        def work(link: Link) -> list[Row]:
            number = log.get_thread(link, thread).number
            columns = link.execute(
                f"SELECT {ROW_COLUMNS} FROM everlong.refs JOIN everlong.rows USING (thread, place)"
                " WHERE thread = %s AND ref = %s",
                (number, bytes_of(ref)),
            )
            found = rows_of(link, columns)
            if not found or not isinstance(found[0].entry, Gone):
                return found
            # That row was removed, but a later row may have the same content.
            later = "SELECT {} FROM everlong.rows WHERE thread = %s AND place > %s AND removed IS NULL ORDER BY place"
            return rows_of(link, link.execute(later.format(ROW_COLUMNS), (number, found[0].order)))

        contents = (original_of(row.entry, ref) for row in self._database.read(work))
        return next((content for content in contents if content is not None), None)

    def search(
        self, query: str, *, thread: str | None = None, owner: str | None = None, limit: int = 10, around: int = 1
    ) -> list[Hit]:
        """Find messages that answer a query, best first."""
        terms, most, near = query_terms(query), rules.at_most(limit), rules.at_most(around)

        def work(link: Link) -> list[Hit]:
            if thread is None:
                return search(link, scope_of_owner(link, owner), terms, limit=most, around=near)
            within = log.get_thread(link, thread)
            if owner not in (None, within.thread.owner):
                return []
            return search(link, scope_of_thread(link, within.number), terms, limit=most, around=near)

        return self._database.read(work)

    # What was learned

    def counts(self, vocabulary: str, refs: Sequence[str]) -> dict[str, int]:
        """Return the stored token counts, by message reference."""
        return self._database.read(lambda link: records.counts(link, vocabulary, refs))

    def keep_counts(self, vocabulary: str, counts: Mapping[str, int]) -> None:
        """Keep token counts."""
        self._database.run(lambda link: records.keep_counts(link, vocabulary, counts))

    def vectors(self, thread: str, model: str, start: int = 0, stop: int | None = None) -> dict[int, bytes]:
        """Return the stored vectors of messages, by their order."""
        first, last = max(0, start), rules.at_most(stop)
        return self._database.read(
            lambda link: records.vectors(link, log.get_thread(link, thread).number, model, first, last)
        )

    def keep_vectors(self, thread: str, model: str, vectors: Mapping[int, bytes]) -> None:
        """Keep vectors of messages."""
        self._database.run(lambda link: records.keep_vectors(link, log.get_thread(link, thread).number, model, vectors))

    def fact(self, kind: str, key: str) -> JsonText | None:
        """Return the fact of that kind and key, or None."""
        return self._database.read(lambda link: records.fact(link, kind, key))

    def keep_fact(self, kind: str, key: str, value: JsonText) -> None:
        """Keep a fact, replacing an older one."""
        self._database.run(lambda link: records.keep_fact(link, kind, key, value, self._clock()))

    def keep_facts(self, kind: str, values: Mapping[str, JsonText]) -> None:
        """Keep several facts of a kind, all or none."""
        self._database.run(lambda link: records.keep_facts(link, kind, values, self._clock()))

    def change_fact(self, kind: str, key: str, change: Callable[[JsonText | None], JsonText | None]) -> JsonText | None:
        """Read, change and store a fact as one step; return the new value."""
        once = records.Change(change)
        return self._database.run(lambda link: records.change_fact(link, kind, key, once, self._clock()))

    def facts(self, kind: str) -> dict[str, JsonText]:
        """Return all facts of a kind, by key."""
        return self._database.read(lambda link: records.facts(link, kind))

    def drop_fact(self, kind: str, key: str) -> None:
        """Drop one fact; one that does not exist is not an error."""
        self._database.run(lambda link: records.drop_fact(link, kind, key))

    def drop_facts(self, kind: str, before: datetime) -> int:
        """Drop the facts of a kind that were last stored before that time; return how many."""
        return self._database.run(lambda link: records.drop_facts(link, kind, as_utc(before)))

    def close(self) -> None:
        """Close every connection; a second call does nothing."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        self.close()

    def _pages(self, number: int, start: int, stop: int) -> Iterator[Row]:
        while start < stop:
            rows = self._database.read(partial(page, thread=number, start=start, stop=stop))
            yield from rows
            start = rows[-1].order + 1

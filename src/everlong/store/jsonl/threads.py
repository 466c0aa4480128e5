"""The contract `Threads` on nanobot's session files."""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Self

from everlong.core import Entry, Event, Hit, JsonText, Opened, Pin, Row, Thread, starts, system_rows
from everlong.errors import StoreError, ThreadExists
from everlong.store import rules
from everlong.store.bodies import EntryKind
from everlong.store.damage import is_readable
from everlong.store.jsonl import files, search
from everlong.store.jsonl.erasure import Erasures
from everlong.store.jsonl.events import EventLog
from everlong.store.jsonl.files import finish_removal, remove_files, write_new_file
from everlong.store.jsonl.folder import SessionFolder
from everlong.store.jsonl.index import IndexRow, Session
from everlong.store.jsonl.learned import Learned
from everlong.store.jsonl.lines import as_bytes
from everlong.store.jsonl.log import add_rows, copied_rows, put_header, with_newest_summary
from everlong.store.jsonl.metadata import Header, StoredPin, header_fields, titled
from everlong.store.rules import WAIT, Clock, as_utc, in_utc, utc_now

__all__ = ["JsonlThreads"]

LEARNED = ".everlong-learned.db"
AT_ONCE = 64  # rows that `read` holds in memory
MOST_EVENT_LOGS = 64  # files whose events are kept in memory


class JsonlThreads:
    """A store in a folder of nanobot sessions. `wait` is how many seconds a second writer waits."""

    def __init__(self, folder: str | PathLike[str], *, clock: Clock = utc_now, wait: float = WAIT) -> None:
        self._clock = in_utc(clock)
        self._folder = SessionFolder(Path(folder), wait)
        try:
            with self._folder.lock.held():
                self._learned = Learned(self._folder.path / LEARNED)
        except StoreError:
            self._folder.index.close()
            raise
        self._erasures = Erasures(self._folder, self._learned)
        with self._folder.lock.held():
            self._erasures.finish()
        #: By file and creation time: a thread that was removed and created again has other events.
        self._events: OrderedDict[tuple[str, datetime], EventLog] = OrderedDict()

    @property
    def warnings(self) -> tuple[str, ...]:
        """The problems found in the files since the store was opened, by place. They are logged too."""
        return self._folder.damage.warnings

    # Threads

    def create(
        self, thread: str, *, owner: str = "", title: str = "", metadata: JsonText = "{}", at: datetime | None = None
    ) -> Thread:
        """Create an empty thread."""
        rules.check_objects(metadata=metadata)
        now = rules.moment_of(self._clock, at)
        header = Header(key=thread, created=now, updated=now, owner=owner, metadata=metadata)
        return self._create(titled(header, title), [])

    def thread(self, thread: str) -> Thread:
        """Return a thread without its log."""
        return self._thread(self._folder.session(thread))

    def threads(
        self, *, owner: str | None = None, archived: bool | None = False, limit: int | None = None, skip: int = 0
    ) -> list[Thread]:
        """List threads, most recently changed first. Files that are new or changed are indexed first."""
        self._folder.refresh()
        where = "WHERE (? IS NULL OR owner = ?) AND (? IS NULL OR archived = ?)"
        clause = f"{where} ORDER BY updated DESC, session LIMIT ? OFFSET ?"
        values = (owner, owner, archived, archived, rules.at_most(limit), rules.at_most(skip))
        return [self._thread(session) for session in self._folder.index.sessions(clause, values)]

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
        with self._folder.writing(thread) as session:
            header = self._folder.header(session)
            changed = replace(
                header,
                archived=header.archived if archived is None else archived,
                settings=header.settings if settings is None else settings,
                metadata=header.metadata if metadata is None else metadata,
                updated=rules.moment_of(self._clock, at),
            )
            put_header(self._folder, session, changed if title is None else titled(changed, title))
            return self._thread(session)

    def branch(self, thread: str, order: int, new: str, *, title: str = "", at: datetime | None = None) -> Thread:
        """Create a thread of the same owner that starts with the first `order` rows of this one."""
        with self._folder.lock.held():
            session = self._folder.session(thread)
            rules.check_branch(thread, session.length, order)
            now = rules.moment_of(self._clock, at)
            old = self._folder.header(session)
            shown = self._folder.index.rows(session.session, "AND removed IS NULL AND ord < ?", (order,))
            copied = {row.id for row in shown}
            pins = tuple(pin for pin in old.pins if pin.row is None or pin.row in copied)
            header = replace(old, key=new, created=now, updated=now, archived=False, parent=(thread, order), pins=pins)
            header = titled(replace(header, summary="", consolidated=0, own_ref=""), title)
            self._create(header, copied_rows(self._folder, session, order))
            with self._folder.writing(new) as made:
                if made.points:
                    put_header(self._folder, made, with_newest_summary(self._folder, made, self._folder.header(made)))
                return self._thread(made)

    def remove(self, thread: str) -> None:
        """Remove a thread with its files; a branch is a separate file."""
        with self._folder.lock.held():
            self._folder.session(thread)
            while (session := self._folder.find(thread)) is not None:  # older programs may have left a second file
                remove_files(self._folder.file(session))
                with self._folder.index.writing():
                    self._folder.index.forget(session.file)
            self._learned.forget_session(thread)

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
        """Append entries, all or none; they are durable when this returns."""
        with self._folder.writing(thread) as session:
            wanted = rules.row_names(thread, entries, ids)
            placed = [] if ids is None else [self._folder.index.named(session.session, name) for name in wanted]
            known = {row.id: row for row in self._rows(session, [row for row in placed if row is not None])}
            new = [(name, entry) for name, entry in zip(wanted, entries, strict=True) if name not in known]
            clock = partial(rules.moment_of, self._clock, at, datetime.fromisoformat(session.updated))
            rows = rules.added_rows(thread, session.length, expected, new, clock)
            rules.check_entries(thread, rows, self._kinds(session, rules.referred_by(rows)))
            if rows:
                add_rows(self._folder, session, rows, rows[0].time)
            known |= {row.id: row for row in rows}
            return tuple(known[name] for name in wanted)

    def read(self, thread: str, start: int = 0, stop: int | None = None) -> Iterator[Row]:
        """Iterate over the rows from `start` to `stop`, a few at a time."""
        length = self._folder.session(thread).length
        return self._read(thread, rules.at_most(start), min(rules.at_most(stop), length))

    def last(self, thread: str, messages: int) -> list[Row]:
        """Return the rows of the last `messages` messages, oldest first."""
        clause = "AND kind = 0 AND removed IS NULL ORDER BY ord DESC LIMIT ?"
        return self._folder.reading(thread, clause, (rules.at_most(messages),))[::-1]

    def row(self, thread: str, name: str) -> Row | None:
        """Return the row with that id, or None."""
        return next(iter(self._folder.reading(thread, "AND id = ?", (name,))), None)

    def open(self, thread: str, before: int | None = None) -> Opened:
        """Return the parts of a view, as of now or as of the time when the thread had only `before` rows."""
        session = self._folder.session(thread)
        opened = self._open(thread, session, before)
        while (now := self._folder.session(thread)).generation != session.generation:  # nanobot rewrote it meanwhile
            session, opened = now, self._open(thread, now, before)
        return opened

    def points(self, thread: str) -> list[tuple[Row, bool]]:
        """Return every compaction point, oldest first, and whether it is still in force."""
        rows = self._folder.reading(thread, "AND kind = 1 AND removed IS NULL ORDER BY ord")
        session = self._folder.session(thread)
        standing = self._folder.index.rows(session.session, "AND kind = 1 AND withdrawn IS NULL")
        orders = {point.ord for point in standing}
        return [(row, row.order in orders and is_readable(row)) for row in rows]

    def erase(self, thread: str, orders: Sequence[int]) -> dict[str, tuple[int, ...]]:
        """Erase messages and everything that mentions them, here and in files that share them; all are rewritten."""
        with self._folder.lock.held():
            self._folder.session(thread)
            erased = self._erasures.erase(thread, orders, self._clock())
            self._events.clear()
            return erased

    # Pins

    def pin(self, thread: str, order: int | None, text: str = "") -> Pin:
        """Pin a message or a text, so that it stays in every view."""
        wanted = rules.new_pin(order, text)
        with self._folder.writing(thread) as session:
            exists = order is not None and 0 <= order < session.length
            row = self._folder.index.at(session.session, order) if exists and order is not None else None
            if order is not None and (row is None or row.gone or row.kind != EntryKind.MESSAGE):
                raise StoreError(f"thread {thread!r} has no message {order} to pin")
            same = rules.same_pin(self._pins(session), wanted)
            if same is None:
                pin = StoredPin(wanted.id, row.id if row else None, wanted.text)
                pins = (*self._folder.header(session).pins, pin)
                put_header(self._folder, session, self._pinned(session, pins))
            return same or wanted

    def unpin(self, thread: str, pin: str) -> None:
        """Remove a pin."""
        with self._folder.writing(thread) as session:
            header = self._folder.header(session)
            left = tuple(known for known in header.pins if known.id != pin)
            if left != header.pins:
                put_header(self._folder, session, self._pinned(session, left))

    def pins(self, thread: str) -> tuple[Pin, ...]:
        """Return the pins in the order they were made."""
        return self._pins(self._folder.session(thread))

    # Events

    def record(self, thread: str, events: Sequence[Event]) -> None:
        """Record events, in order."""
        with self._folder.lock.held():
            self._log(thread).add(thread, events)

    def events(self, thread: str, *, after: str = "", kinds: Sequence[str] = ()) -> list[Event]:
        """Return the events in the order they were recorded."""
        with self._folder.lock.held():
            recorded = dict(self._log(thread).events)
        first = list(recorded).index(after) + 1 if after in recorded else 0
        return [event for event in list(recorded.values())[first:] if not kinds or event.kind in kinds]

    def unfinished(self, thread: str) -> list[Event]:
        """Return the starts that have no outcome yet."""
        with self._folder.lock.held():
            log = self._log(thread)
            return [event for event in log.events.values() if starts(event.kind) and event.id not in log.ended]

    # Finding what left the window

    def original(self, thread: str, ref: str) -> bytes | None:
        """Return the bytes of the message or part that a reference names, or None."""
        return search.original(self._folder, thread, ref)

    def search(
        self, query: str, *, thread: str | None = None, owner: str | None = None, limit: int = 10, around: int = 1
    ) -> list[Hit]:
        """Find messages that answer a query, best first."""
        return search.search(
            self._folder, query, search.Scope(thread, owner), rules.at_most(limit), rules.at_most(around)
        )

    # What was learned

    def counts(self, vocabulary: str, refs: Sequence[str]) -> dict[str, int]:
        """Return the stored token counts, by message reference."""
        return self._learned.counts(vocabulary, refs)

    def keep_counts(self, vocabulary: str, counts: Mapping[str, int]) -> None:
        """Keep token counts."""
        self._learned.keep_counts(vocabulary, counts)

    def vectors(self, thread: str, model: str, start: int = 0, stop: int | None = None) -> dict[int, bytes]:
        """Return the stored vectors of messages, by their order."""
        kept = self._learned.vectors(thread, model) if (orders := self._orders(thread)) else {}
        within = range(max(0, start), rules.at_most(stop))
        return {orders[row]: vector for row, vector in kept.items() if row in orders and orders[row] in within}

    def keep_vectors(self, thread: str, model: str, vectors: Mapping[int, bytes]) -> None:
        """Keep vectors of messages."""
        with self._folder.lock.held():  # nothing can be erased meanwhile
            names = {order: row for row, order in self._orders(thread).items()}
            known = {names[order]: vector for order, vector in vectors.items() if order in names}
            self._learned.keep_vectors(thread, model, known)

    def _orders(self, thread: str) -> dict[str, int]:
        """The order of each message, by the name of its row."""
        session = self._folder.session(thread)
        rows = self._folder.index.rows(session.session, "AND kind = ? AND removed IS NULL", (int(EntryKind.MESSAGE),))
        return {row.id: row.ord for row in rows}

    def fact(self, kind: str, key: str) -> JsonText | None:
        """Return the fact of that kind and key, or None."""
        return self._learned.fact(kind, key)

    def keep_fact(self, kind: str, key: str, value: JsonText) -> None:
        """Keep a fact, replacing an older one."""
        self._learned.keep_fact(kind, key, value, self._clock())

    def keep_facts(self, kind: str, values: Mapping[str, JsonText]) -> None:
        """Keep several facts of a kind, all or none."""
        self._learned.keep_facts(kind, values, self._clock())

    def change_fact(self, kind: str, key: str, change: Callable[[JsonText | None], JsonText | None]) -> JsonText | None:
        """Read, change and store a fact as one step; return the new value."""
        return self._learned.change_fact(kind, key, change, self._clock())

    def facts(self, kind: str) -> dict[str, JsonText]:
        """Return all facts of a kind, by key."""
        return self._learned.facts(kind)

    def drop_fact(self, kind: str, key: str) -> None:
        """Drop one fact; one that does not exist is not an error."""
        self._learned.drop_fact(kind, key)

    def drop_facts(self, kind: str, before: datetime) -> int:
        """Drop the facts of a kind that were last stored before that time; return how many."""
        return self._learned.drop_facts(kind, as_utc(before))

    def close(self) -> None:
        """Close the store."""
        self._folder.index.close()
        self._learned.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        self.close()

    def _create(self, header: Header, rows: Sequence[bytes] | Iterator[bytes]) -> Thread:
        with self._folder.lock.held():
            if self._folder.find(header.key) is not None:
                raise ThreadExists(f"thread {header.key!r} already exists")
            path = self._folder.free_file(header.key)
            finish_removal(path)
            write_new_file(path, [as_bytes(header_fields(header))], rows)
            return self._thread(self._folder.session(header.key))

    def _open(self, thread: str, session: Session, before: int | None, below: int | None = None) -> Opened:
        """Open a thread with its newest point; with `below`, with an older one, because later ones cannot be read."""
        end = min(rules.at_most(before), session.length)
        head = min(end, self._folder.index.head(session.session))
        point = self._folder.index.newest_point(session.session, end, below)
        start = head if point is None else max(head, point.target or 0)
        clause = "AND (ord < ? OR ord = ? OR (ord >= ? AND ord < ?)) ORDER BY ord"
        shown = self._folder.reading(thread, clause, (head, -1 if point is None else point.ord, start, end))
        at_point = [row for row in shown if point is not None and row.order == point.ord]
        if at_point and not is_readable(at_point[0]):
            return self._open(thread, session, before, at_point[0].order)
        return Opened(
            self._thread(session),
            system_rows(row for row in shown if row.order < head),
            at_point[0] if at_point else None,
            tuple(row for row in shown if start <= row.order < end),
            rules.pins_before(self._pins(session), before),
        )

    def _read(self, thread: str, first: int, end: int) -> Iterator[Row]:
        while first < end:
            stop = min(first + AT_ONCE, end)
            rows = self._folder.reading(thread, "AND ord >= ? AND ord < ? ORDER BY ord", (first, stop))
            yield from rows
            first = stop

    def _kinds(self, session: Session, orders: Sequence[int]) -> dict[int, EntryKind]:
        """Return the kinds of the rows at these orders; removed rows count as GONE."""
        rows = [self._folder.index.at(session.session, order) for order in orders]
        return {row.ord: EntryKind.GONE if row.gone else EntryKind(row.kind) for row in rows if row is not None}

    def _rows(self, session: Session, placed: Sequence[IndexRow]) -> list[Row]:
        return self._folder.rows(session, placed) or [] if placed else []

    def _thread(self, session: Session) -> Thread:
        header, damage = self._folder.header(session), self._folder.damage
        return Thread(
            id=session.name,
            owner=header.owner,
            title=header.title,
            created=header.created,
            updated=datetime.fromisoformat(session.updated),
            archived=header.archived,
            length=session.length,
            messages=session.messages,
            points=session.points,
            standing=session.standing,
            parent=header.parent,
            settings=damage.json_object(header.settings, session.name, "settings"),
            metadata=damage.json_object(header.shown_metadata, session.name, "metadata"),
        )

    def _pinned(self, session: Session, pins: tuple[StoredPin, ...]) -> Header:
        """The header with other pins. The thread's time of change stays."""
        return replace(self._folder.header(session), pins=pins, updated=datetime.fromisoformat(session.updated))

    def _pins(self, session: Session) -> tuple[Pin, ...]:
        pins: list[Pin] = []
        for pin in self._folder.header(session).pins:
            row = None if pin.row is None else self._folder.index.named(session.session, pin.row)
            if pin.row is None or (row is not None and not row.gone):
                pins.append(Pin(pin.id, row.ord if row else None, pin.text))
        return tuple(pins)

    def _log(self, thread: str) -> EventLog:
        """Return the event log of a thread, up to date."""
        session = self._folder.session(thread)
        beside = files.events_beside(self._folder.file(session))
        made = (session.file, self._folder.header(session).created)
        log = self._events.setdefault(made, EventLog(beside, self._folder.damage))
        self._events.move_to_end(made)
        while len(self._events) > MOST_EVENT_LOGS:
            self._events.popitem(last=False)
        log.read()
        return log

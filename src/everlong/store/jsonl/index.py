"""The index of a session folder: the place of each row, and what lists and searches need.

A small database, derived from the session files: an index of another version, or a damaged one, is thrown away and
rebuilt. It is written only while the folder's lock is held; readers need no lock. In a folder that cannot be written,
it is made in memory each time.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path

from everlong.core import Role, bytes_of
from everlong.store.bodies import EntryKind, text_of_bytes
from everlong.store.jsonl.lines import is_whole
from everlong.store.sqlite_file import Database, explained, is_read_only

__all__ = ["SCHEMA", "VERSION", "Index", "IndexRow", "Session"]

VERSION = 3

SCHEMA = """
CREATE TABLE sessions (
    session INTEGER PRIMARY KEY,
    file TEXT NOT NULL UNIQUE,
    key BLOB NOT NULL,
    inode INTEGER NOT NULL DEFAULT 0,
    mtime INTEGER NOT NULL DEFAULT 0,
    size INTEGER NOT NULL DEFAULT 0,      -- bytes of the file that are indexed
    lines INTEGER NOT NULL DEFAULT 0,     -- lines of the file up to there
    said INTEGER NOT NULL DEFAULT 0,      -- lines that nanobot counts as messages
    stamp INTEGER NOT NULL DEFAULT -1,    -- where in the file its time of change stands; -1: cannot be set in place
    generation INTEGER NOT NULL DEFAULT 0, -- grows when rows moved
    ended INTEGER NOT NULL DEFAULT 1,     -- whether the file ends with a line feed
    stale INTEGER NOT NULL DEFAULT 0,     -- whether the file lacks the metadata that counts
    first TEXT NOT NULL DEFAULT '',       -- the first metadata line
    header TEXT NOT NULL DEFAULT '',      -- the metadata that counts
    owner TEXT NOT NULL DEFAULT '',
    archived INTEGER NOT NULL DEFAULT 0,
    updated TEXT NOT NULL DEFAULT '',
    length INTEGER NOT NULL DEFAULT 0,
    messages INTEGER NOT NULL DEFAULT 0,
    points INTEGER NOT NULL DEFAULT 0,
    standing INTEGER NOT NULL DEFAULT 0,  -- points that no row withdrew
    words INTEGER NOT NULL DEFAULT 0,     -- rows that search and references know
    weight REAL NOT NULL DEFAULT 0       -- and how many words they have
);
CREATE INDEX sessions_by_key ON sessions (key);
CREATE INDEX sessions_by_time ON sessions (updated);
CREATE TABLE rows (
    session INTEGER NOT NULL,
    ord INTEGER NOT NULL,
    id TEXT NOT NULL,
    kind INTEGER NOT NULL,
    role TEXT NOT NULL,
    time TEXT NOT NULL,
    place INTEGER NOT NULL,               -- offset in the file; -1: nanobot's own summary, not a row of the file yet
    size INTEGER NOT NULL,
    print BLOB NOT NULL,
    said INTEGER NOT NULL,                -- which of nanobot's messages it is
    target INTEGER,                       -- the row that it refers to
    withdrawn INTEGER,                    -- the row that withdrew this point
    removes TEXT NOT NULL DEFAULT '',     -- the rows that a removal names, by their orders
    removed INTEGER,                      -- the removal in force that names this row
    PRIMARY KEY (session, ord)
) WITHOUT ROWID;
CREATE UNIQUE INDEX rows_by_id ON rows (session, id);
CREATE INDEX rows_of_note ON rows (session, kind, ord) WHERE kind > 0;
CREATE TABLE refs (session INTEGER NOT NULL, ref TEXT NOT NULL, ord INTEGER NOT NULL,
    PRIMARY KEY (session, ref, ord)) WITHOUT ROWID;
CREATE TABLE postings (term TEXT NOT NULL, session INTEGER NOT NULL, ord INTEGER NOT NULL, weight REAL NOT NULL,
    length REAL NOT NULL, PRIMARY KEY (term, session, ord)) WITHOUT ROWID;
"""


@dataclass(slots=True, kw_only=True)
class Session:
    """A session in the index: the columns of `sessions`. The key is bytes, since any text may be a key."""

    session: int
    file: str
    key: bytes
    inode: int = 0
    mtime: int = 0
    size: int = 0
    lines: int = 0
    said: int = 0
    stamp: int = -1
    generation: int = 0
    ended: int = 1
    stale: int = 0
    first: str = ""
    header: str = ""
    owner: str = ""
    archived: int = 0
    updated: str = ""
    length: int = 0
    messages: int = 0
    points: int = 0
    standing: int = 0
    words: int = 0
    weight: float = 0

    @property
    def name(self) -> str:
        """The session's key."""
        return text_of_bytes(self.key)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexRow:
    """A row in the index: its place in the file, and what it is. The columns of `rows`."""

    ord: int
    id: str
    kind: int
    role: str
    time: str
    place: int
    size: int
    print: bytes
    said: int
    target: int | None = None
    withdrawn: int | None = None
    removes: str = ""
    removed: int | None = None

    @property
    def gone(self) -> bool:
        """Whether the row can no longer be read."""
        return self.removed is not None or self.kind == EntryKind.GONE

    @property
    def orders(self) -> tuple[int, ...]:
        """The rows that a removal names."""
        return tuple(map(int, self.removes.split()))


SESSION_COLUMNS = tuple(field.name for field in fields(Session))
ROW_COLUMNS = tuple(field.name for field in fields(IndexRow))
_ROWS = f"SELECT {', '.join(ROW_COLUMNS)} FROM rows WHERE session = ?"
_SESSIONS = f"SELECT {', '.join(SESSION_COLUMNS)} FROM sessions"
_MARKS = ", ".join("?" * (len(ROW_COLUMNS) + 1))


class Index:
    """The database. Every call may come from any thread."""

    def __init__(self, path: Path) -> None:
        try:
            self._database = Database(path, _prepare)
        except sqlite3.OperationalError as error:
            if not is_read_only(error):
                raise explained(path, error) from error
            self._database = Database(path, _prepare, kept=False)
        except sqlite3.DatabaseError:  # not a database, or damaged: the session files have everything
            for suffix in ("", "-wal", "-shm"):
                path.with_name(path.name + suffix).unlink(missing_ok=True)
            self._database = Database(path, _prepare)

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def rewrite(self) -> None:
        """Rewrite the file, so that no page still contains deleted data."""
        self._database.rewrite()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """A transaction: everything inside is stored, or nothing."""
        with self._database.writing():
            yield

    def ask(self, query: str, values: Sequence[object] = ()) -> list[tuple[object, ...]]:
        """Return the rows that a query selects."""
        with self._database.working() as connection:
            return connection.execute(query, _bound(values)).fetchall()

    def do(self, statement: str, values: Iterable[Sequence[object]]) -> None:
        """Execute a statement for each of the values."""
        with self._database.working() as connection:
            connection.executemany(statement, map(_bound, values))

    def learn(
        self, refs: Iterable[tuple[int, str, int]], postings: Iterable[tuple[str, int, int, float, float]]
    ) -> None:
        """Keep references (session, ref, order) and terms (term, session, order, weight, length of the message)."""
        with self._database.working() as connection:
            connection.executemany("INSERT OR IGNORE INTO refs VALUES (?, ?, ?)", refs)
            # Sorted like the table, so that each page is read once. Terms contain no lone surrogates, so they can be
            # sorted.
            connection.executemany("INSERT OR IGNORE INTO postings VALUES (?, ?, ?, ?, ?)", sorted(postings))

    # Sessions

    def sessions(self, rest: str = "", values: Sequence[object] = ()) -> list[Session]:
        """Return the sessions that a WHERE or ORDER clause selects."""
        return [
            Session(**dict(zip(SESSION_COLUMNS, row, strict=True)))  # type: ignore[arg-type]
            for row in self.ask(f"{_SESSIONS} {rest}", values)
        ]

    def session_of(self, file: str) -> Session | None:
        """Return the session in a file, or None if it is not known."""
        return next(iter(self.sessions("WHERE file = ?", (file,))), None)

    def new_session(self, file: str, key: str) -> Session:
        """Add a file that was not known."""
        name = bytes_of(key)
        with self._database.working() as connection:
            made = connection.execute("INSERT INTO sessions (file, key) VALUES (?, ?)", _bound((file, name)))
            return Session(session=made.lastrowid or 0, file=file, key=name)

    def keep(self, session: Session) -> None:
        """Store what is known of a session now."""
        columns = SESSION_COLUMNS[1:]
        values = [getattr(session, name) for name in columns]
        assignments = ", ".join(f"{name} = ?" for name in columns)
        self.do(f"UPDATE sessions SET {assignments} WHERE session = ?", [(*values, session.session)])

    def states(self) -> dict[str, tuple[int, int, int]]:
        """Return inode, time of change and size of each file when it was indexed."""
        files = self.ask("SELECT file, inode, mtime, size FROM sessions")
        return {file: (inode, mtime, size) for file, inode, mtime, size in files}  # type: ignore[misc]

    def forget(self, file: str) -> None:
        """Drop a file that is gone."""
        for table in ("rows", "refs", "postings", "sessions"):
            self.do(f"DELETE FROM {table} WHERE session = (SELECT session FROM sessions WHERE file = ?)", [(file,)])

    # Rows

    def rows(self, session: int, rest: str = "", values: Sequence[object] = ()) -> list[IndexRow]:
        """Return the rows that a clause selects."""
        columns = (dict(zip(ROW_COLUMNS, row, strict=True)) for row in self.ask(f"{_ROWS} {rest}", (session, *values)))
        return [IndexRow(**{**row, "id": _text(row["id"])}) for row in columns]  # type: ignore[arg-type]

    def at(self, session: int, order: int) -> IndexRow | None:
        """Return the row of that order, or None."""
        return next(iter(self.rows(session, "AND ord = ?", (order,))), None)

    def named(self, session: int, name: str) -> IndexRow | None:
        """Return the row of that id, or None."""
        return next(iter(self.rows(session, "AND id = ?", (name,))), None)

    def add(self, session: Session, rows: Iterable[IndexRow]) -> None:
        """Add rows. A withdrawal marks its point as withdrawn, a removal marks the rows that it names as removed."""
        for row in rows:
            self.do(
                f"INSERT INTO rows (session, {', '.join(ROW_COLUMNS)}) VALUES ({_MARKS})",
                [(session.session, *(getattr(row, name) for name in ROW_COLUMNS))],
            )
            match row.kind:
                case EntryKind.WITHDRAWAL:
                    withdrawn = "UPDATE rows SET withdrawn = ? WHERE session = ? AND ord = ? AND withdrawn IS NULL"
                    self.do(withdrawn, [(row.ord, session.session, row.target)])
                case EntryKind.REMOVAL:
                    self._remove(session.session, row)
                case EntryKind.RESTORATION:
                    self._restore(session, row.target)
                case _:
                    continue

    def _remove(self, session: int, removal: IndexRow) -> None:
        """Mark the rows that a removal names; no search finds them."""
        places = [(session, order) for order in removal.orders]
        self.do("DELETE FROM postings WHERE session = ? AND ord = ?", places)
        mark = "UPDATE rows SET removed = ? WHERE session = ? AND ord = ? AND removed IS NULL AND kind IN (0, 1, 3)"
        self.do(mark, [(removal.ord, *place) for place in places])

    def _restore(self, session: Session, removal: int | None) -> None:
        """Remove the marks of a removal; words from the first restored row on are indexed again at the next search."""
        back = self.rows(session.session, "AND removed = ? ORDER BY ord LIMIT 1", (removal,))
        self.do("UPDATE rows SET removed = NULL WHERE session = ? AND removed = ?", [(session.session, removal)])
        if back:
            self.forget_words(session, back[0].ord)

    def forget_words(self, session: Session, order: int) -> None:
        """Drop the words of the rows from that order on; the next search indexes them again."""
        known, session.words = session.words, min(session.words, order)
        session.weight *= session.words / max(1, known)
        self.do("DELETE FROM postings WHERE session = ? AND ord >= ?", [(session.session, order)])

    def cut(self, session: Session, order: int) -> None:
        """Drop the rows from that order on, because the file has changed."""
        number = session.session
        changed = self.rows(number, "AND kind IN (4, 5) AND kind > 0 AND ord >= ?", (order,))
        self.forget_words(session, 0 if changed else order)
        for table in ("rows", "refs"):
            self.do(f"DELETE FROM {table} WHERE session = ? AND ord >= ?", [(number, order)])
        self.do("UPDATE rows SET withdrawn = NULL WHERE session = ? AND withdrawn >= ?", [(number, order)])
        if changed:  # undo what the dropped rows removed or restored
            self.do("UPDATE rows SET removed = NULL WHERE session = ?", [(number,)])
            left = self.rows(number, "AND kind IN (4, 5) AND kind > 0 ORDER BY ord")
            restored = {row.target for row in left if row.kind == EntryKind.RESTORATION}
            for row in left:
                if row.kind == EntryKind.REMOVAL and row.ord not in restored:
                    self._remove(number, row)

    def count(self, session: Session, start: int) -> None:
        """Add the rows from `start` on to the counts of the session."""
        query = "SELECT kind, count(*) FROM rows WHERE session = ? AND ord >= ? GROUP BY kind"
        counts = {int(str(kind)): int(str(number)) for kind, number in self.ask(query, (session.session, start))}
        session.length += sum(counts.values())
        session.messages += counts.get(EntryKind.MESSAGE, 0)
        session.points += counts.get(EntryKind.POINT, 0)
        if counts.keys() & {EntryKind.REMOVAL, EntryKind.RESTORATION}:
            query = "SELECT count(*) FROM rows WHERE session = ? AND kind = 0 AND removed IS NULL"
            ((session.messages,),) = self.ask(query, (session.session,))  # type: ignore[assignment]
        self._count_standing(session)

    def _count_standing(self, session: Session) -> None:
        standing = "kind > 0 AND kind = 1 AND withdrawn IS NULL AND removed IS NULL"
        query = f"SELECT count(*) FROM rows WHERE session = ? AND {standing}"
        ((session.standing,),) = self.ask(query, (session.session,))  # type: ignore[assignment]

    def own_summary(self, session: Session) -> IndexRow | None:
        """Return the last row if it is nanobot's own summary, which is not a row of the file yet."""
        last = self.at(session.session, session.length - 1)
        return last if last is not None and last.place < 0 else None

    def forget_own_summary(self, session: Session) -> None:
        """Drop that row."""
        if (row := self.own_summary(session)) is not None:
            self.cut(session, row.ord)
            session.length, session.points = session.length - 1, session.points - 1
            self._count_standing(session)

    def head(self, session: int) -> int:
        """Count the leading rows of system text, including removed rows among them."""
        clause = "AND NOT (kind = 0 AND role = ?) AND removed IS NULL AND kind <> 6 ORDER BY ord LIMIT 1"
        other = self.rows(session, clause, (Role.SYSTEM.value,))
        if other:
            return other[0].ord
        last = self.rows(session, "ORDER BY ord DESC LIMIT 1")
        return last[0].ord + 1 if last else 0

    def newest_point(self, session: int, before: int, below: int | None = None) -> IndexRow | None:
        """Return the newest point in force among the first `before` rows; with `below`, only points before that."""
        standing = "AND removed IS NULL AND (withdrawn IS NULL OR withdrawn >= ?)"
        clause = f"AND kind = 1 AND ord < ? {standing} ORDER BY ord DESC LIMIT 1"
        return next(iter(self.rows(session, clause, (before if below is None else below, before))), None)


def _bound(values: Sequence[object]) -> list[object]:
    """The values as the database accepts them: text with lone surrogates as bytes."""
    return [bytes_of(value) if isinstance(value, str) and not is_whole(value) else value for value in values]


def _text(value: object) -> str:
    return text_of_bytes(value) if isinstance(value, bytes) else str(value)


def _prepare(connection: sqlite3.Connection) -> None:
    """Make the tables of this version; throw away those of another. Called with the folder's lock held."""
    if connection.execute("PRAGMA user_version").fetchone()[0] == VERSION:
        return
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        for table in ("sessions", "rows", "refs", "postings"):
            connection.execute(f"DROP TABLE IF EXISTS {table}")
        for statement in SCHEMA.split(";\n"):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {VERSION}")

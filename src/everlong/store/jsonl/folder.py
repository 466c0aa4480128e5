"""A folder of session files with its lock and its index.

A session is always returned as its file is now: a file that changed since it was indexed is indexed again first.
"""

import json
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from everlong.core import Entry, Gone, Point, Removal, Row, bytes_of
from everlong.errors import InputError, NoThread, StoreError, WireError
from everlong.store.damage import Damage, StoredRow
from everlong.store.jsonl import files
from everlong.store.jsonl.files import as_store_errors, finish_removals, set_aside, undo_write
from everlong.store.jsonl.index import Index, IndexRow, Session
from everlong.store.jsonl.indexer import EPOCH, catch_up
from everlong.store.jsonl.lines import fingerprint, parse_entry, referring
from everlong.store.jsonl.lock import FolderLock
from everlong.store.jsonl.metadata import Header, stored_header
from everlong.store.private import close_to_others, is_open_to_others, make_folder
from everlong.summarize import foreign_account
from everlong.wire import summary_message

__all__ = ["SessionFolder"]

INDEX = ".everlong-index.db"
NANOBOT = "nanobot"  # the reason of a point that nanobot made


class SessionFolder:
    """The sessions of one folder. `damage` has the problems found in the files since it was opened."""

    def __init__(self, folder: Path, wait: float) -> None:
        with as_store_errors(folder):
            self.path = files.session_folder(folder)
        self.lock = FolderLock(self.path, wait)
        self.damage = Damage()
        try:
            make_folder(self.path)
        except OSError as error:
            raise StoreError(f"{self.path} cannot store sessions: {error.strerror}") from error
        if not self.path.is_dir():
            raise InputError(f"{self.path}: it is a file, not a folder")
        files.close_folder(self.path)
        with self.lock.held():
            finish_removals(self.path)
            self.index = Index(self.path / INDEX)

    def file(self, session: Session) -> Path:
        """The session's file."""
        return self.path / session.file

    # Finding

    def session(self, key: str) -> Session:
        """Return the session of that key, as its file is now. Raises NoThread."""
        session = self.find(key)
        if session is None:
            raise NoThread(f"there is no thread {key!r}")
        return session

    @contextmanager
    def writing(self, key: str) -> Iterator[Session]:
        """Return the session, locked against other readers and writers; its figures are stored at the end."""
        with self.lock.held():
            session = self.session(key)
            with as_store_errors(self.file(session)):
                before = self.file(session).stat()
            try:
                with self.index.writing():
                    yield session
                    self.index.keep(session)
            except StoreError:
                # All or nothing, even if the disk accepts only one of the two writes.
                undo_write(self.file(session), before, session.size)
                raise

    def free_file(self, key: str) -> Path:
        """The file of a new session: its usual name, or its hash if that is taken (some systems treat Aa as aa)."""
        usual = self.path / files.usual_name(key)
        return self.path / files.hashed_name(key) if usual.exists() else usual

    def refresh(self) -> None:
        """Index every new or changed file, and drop every file that is gone."""
        known = self.index.states()
        changed: list[str] = []
        with as_store_errors(self.path), os.scandir(self.path) as entries:
            for entry in entries:
                if files.is_session(entry.name):
                    current = entry.stat(follow_symlinks=False)
                    state = (current.st_ino, current.st_mtime_ns, current.st_size)
                    if known.pop(entry.name, None) != state and stat.S_ISREG(current.st_mode):
                        changed.append(entry.name)
        for name in changed:
            self._try_to_index(name)
        for name in known:
            with self.lock.held(), self.index.writing():
                self.index.forget(name)

    # Reading

    def rows(self, session: Session, placed: Sequence[IndexRow], *, as_read: bool = True) -> list[Row] | None:
        """Read the rows at these places; None if the file was replaced since the index was read.

        Without `as_read`, removed rows are returned as they were appended.
        """
        rows: list[Row] = []
        path = self.file(session)
        try:
            opened = path.open("rb")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StoreError(f"{path}: {error.strerror}") from error
        with as_store_errors(path), opened as file:
            if os.fstat(file.fileno()).st_ino != session.inode:
                return None
            for item in placed:
                if item.gone and as_read:
                    entry: Entry = Gone()
                elif item.place < 0:
                    entry = _own_point(self.header(session), item)
                else:
                    file.seek(item.place)
                    found = _entry(file.read(item.size), item)
                    if found is None:
                        rows.append(self._unreadable(session, item))
                        continue
                    entry = found
                rows.append(Row(item.ord, item.id, datetime.fromisoformat(item.time), entry))
        return rows

    def _unreadable(self, session: Session, item: IndexRow) -> Row:
        """Return a replacement for a row whose bytes no longer match the index, though the file looks the same."""
        time = datetime.fromisoformat(item.time)
        stored = StoredRow(order=item.ord, id=item.id, time=time, kind=item.kind, body=None, target=item.target)
        return self.damage.row(lambda: session.name, stored, {})

    def header(self, session: Session) -> Header:
        """The current metadata."""
        return stored_header(session.header, session.name, EPOCH)

    def reading(self, key: str, clause: str, values: Sequence[object] = ()) -> list[Row]:
        """Read the rows of a session that a clause selects; read again if nanobot replaces the file meanwhile."""
        for _ in range(5):
            session = self.session(key)
            rows = self.rows(session, self.index.rows(session.session, clause, values))
            if rows is not None:
                return rows
        raise StoreError(f"thread {key!r} keeps being rewritten by another program; try again later")

    # Catching up

    def find(self, key: str) -> Session | None:
        """Return the session of that key, as its file is now, or None."""
        for session in self.index.sessions("WHERE key = ?", (bytes_of(key),)):
            current = self._current(session)
            if current is not None and current.name == key:
                return current
        for name in files.candidates(key):
            path = self.path / name
            if path.is_file() and not path.is_symlink():
                taken = self._index_file(name)
                if taken is not None and taken.name == key:
                    return taken
        return None

    def _current(self, session: Session) -> Session | None:
        try:
            state = self.file(session).stat()
        except FileNotFoundError:
            with self.lock.held(), self.index.writing():
                self.index.forget(session.file)
            return None
        except OSError as error:
            raise StoreError(f"{self.file(session)}: {error.strerror}") from error
        return session if _is_current(session, state) else self._index_file(session.file)

    def _try_to_index(self, name: str) -> None:
        try:
            self._index_file(name)
        except StoreError as error:
            self.damage.warn(f"{name} was skipped: {error}")

    def _index_file(self, name: str) -> Session | None:
        """Bring the index up to date with a file; None if the file is gone."""
        path = self.path / name
        with self.lock.held():
            try:
                file = path.open("rb")
            except FileNotFoundError:
                return None
            except OSError as error:
                raise StoreError(f"{path}: {error.strerror}") from error
            with as_store_errors(path), file, self.index.writing():
                session = self.index.session_of(name)
                state = os.fstat(file.fileno())
                if is_open_to_others(state):  # other programs open it with each save
                    close_to_others(path, quiet=True)
                if session is not None and _is_current(session, state):
                    return session
                if session is None:
                    session = self.index.new_session(name, files.key_by_name(name))
                self._read(session, path, whole=not self._only_grew(session, state, path))
                self.index.keep(session)
        return session

    def read_again(self, session: Session) -> None:
        """Index the file from its start. Called with the lock held, inside a transaction."""
        self._read(session, self.file(session), whole=True)

    def _read(self, session: Session, path: Path, *, whole: bool) -> None:
        with path.open("rb") as file:
            report = catch_up(self.index, session, file, whole=whole)
        for note in report.notes:
            self.damage.warn(f"{path.name}, {note}")
        if report.lost > 0:
            self.damage.warn(f"{path.name}: {report.lost} rows are no longer in the file; another program removed them")
        if report.faults:
            for warning in set_aside(path, session, report.faults):
                self.damage.warn(warning)
        session.key = bytes_of(self.header(session).key)
        state = path.stat()
        session.inode, session.mtime, session.size = state.st_ino, state.st_mtime_ns, state.st_size

    def _only_grew(self, session: Session, state: os.stat_result, path: Path) -> bool:
        """Whether the indexed part is unchanged and more was added after it."""
        if state.st_ino != session.inode or state.st_size <= session.size or not session.ended:
            return False
        last = self.index.rows(session.session, "AND place >= 0 ORDER BY ord DESC LIMIT 1")
        if not last:
            return False
        with path.open("rb") as file:
            file.seek(last[0].place)
            return fingerprint(file.readline()) == last[0].print


def _is_current(session: Session, state: os.stat_result) -> bool:
    return (session.inode, session.mtime, session.size) == (state.st_ino, state.st_mtime_ns, state.st_size)


def _entry(raw: bytes, placed: IndexRow) -> Entry | None:
    """The entry in these lines; None if they are not what was indexed."""
    try:
        lines = [json.loads(line.strip(b"\0 \t\r\n")) for line in raw.split(b"\n") if line.strip(b"\0 \t\r\n")]
        entry = parse_entry(lines) if lines and all(isinstance(line, dict) for line in lines) else None
    except (StoreError, WireError, ValueError, RecursionError):
        return None
    if isinstance(entry, Removal):
        return Removal(placed.orders)
    return entry if entry is None or placed.target is None else referring(entry, placed.target)


def _own_point(header: Header, placed: IndexRow) -> Point:
    """nanobot's own consolidation as a point."""
    boundary, text = placed.target or 0, header.foreign_summary
    account = foreign_account(text, boundary)
    return Point(boundary=boundary, summary=(summary_message(text),), reason=NANOBOT, account=account)

"""A folder of session files with its lock and its index: finding a session, and knowing that the index is right.

Whoever asks for a session gets it as its file is now: a file that changed since it was indexed is read again first.
"""

import json
import logging
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from everlong.core import Entry, Point, Row, bytes_of
from everlong.errors import NoThread, StoreError
from everlong.store.jsonl import files
from everlong.store.jsonl.files import finish_removals, in_words, set_aside, take_back
from everlong.store.jsonl.index import Index, Placed, Session
from everlong.store.jsonl.indexer import EPOCH, catch_up
from everlong.store.jsonl.lines import entry_in, fingerprint, referring
from everlong.store.jsonl.lock import FolderLock
from everlong.store.jsonl.metadata import Header, header_of
from everlong.wire import summary_message

__all__ = ["SessionFolder"]

INDEX = ".everlong-index.db"
NANOBOT = "nanobot"  # the reason of a point that nanobot made

logger = logging.getLogger("everlong.store")


class SessionFolder:
    """The files of one folder. `warnings` are all that was found wrong with them since it was opened."""

    def __init__(self, folder: Path, wait: float) -> None:
        self.path = files.session_folder(folder)
        self.lock = FolderLock(self.path, wait)
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"{self.path} cannot hold sessions: {error.strerror}") from error
        with self.lock.held():
            finish_removals(self.path)
            self.index = Index(self.path / INDEX)
        self.warnings: list[str] = []

    def file(self, session: Session) -> Path:
        """The session's file."""
        return self.path / session.file

    # Finding

    def session(self, key: str) -> Session:
        """The session of that key, as its file is now. Raises NoThread."""
        found = self.find(key)
        if found is None:
            raise NoThread(f"there is no thread {key!r}")
        return found

    @contextmanager
    def writing(self, key: str) -> Iterator[Session]:
        """The session, with nobody else reading or writing it; what is known of it is kept at the end."""
        with self.lock.held():
            session = self.session(key)
            with in_words(self.file(session)):
                before = self.file(session).stat()
            try:
                with self.index.writing():
                    yield session
                    self.index.keep(session)
            except StoreError:
                take_back(
                    self.file(session), before, session.size
                )  # all or nothing, also where the disk takes only one of the two
                raise

    def free_file(self, key: str) -> Path:
        """The file of a new session: its usual name, or by its hash where that is taken (as Aa takes aa's on some)."""
        usual = self.path / files.usual_name(key)
        return self.path / files.hashed_name(key) if usual.exists() else usual

    def refresh(self) -> None:
        """Take in every file that is new or changed, forget every one that is gone."""
        known = self.index.states()
        changed: list[str] = []
        with in_words(self.path), os.scandir(self.path) as entries:
            for entry in entries:
                if files.is_session(entry.name):
                    found = entry.stat(follow_symlinks=False)
                    state = known.pop(entry.name, None)
                    if stat.S_ISREG(found.st_mode) and state != (found.st_ino, found.st_mtime_ns, found.st_size):
                        changed.append(entry.name)
        for name in changed:
            self._try_to_take_in(name)
        for name in known:
            with self.lock.held(), self.index.writing():
                self.index.forget(name)

    # Reading

    def rows(self, session: Session, placed: Sequence[Placed]) -> list[Row] | None:
        """The rows that stand at these places; None if the file was replaced since the index was asked."""
        found: list[Row] = []
        path = self.file(session)
        try:
            opened = path.open("rb")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StoreError(f"{path}: {error.strerror}") from error
        with in_words(path), opened as file:
            if os.fstat(file.fileno()).st_ino != session.inode:
                return None
            for one in placed:
                if one.place < 0:
                    entry: Entry = _own_point(self.header(session), one)
                else:
                    file.seek(one.place)
                    entry = _entry(file.read(one.size), one)
                found.append(Row(one.ord, one.id, datetime.fromisoformat(one.time), entry))
        return found

    def header(self, session: Session) -> Header:
        """The metadata that counts."""
        return header_of(session.header, session.name, EPOCH)

    def reading(self, key: str, clause: str, values: Sequence[object] = ()) -> list[Row]:
        """The rows of a session that a clause chooses; once more if nanobot replaced the file meanwhile."""
        for _ in range(5):
            session = self.session(key)
            rows = self.rows(session, self.index.rows(session.session, clause, values))
            if rows is not None:
                return rows
        raise StoreError(f"thread {key!r} is being rewritten all the time; try again later")

    # Catching up

    def find(self, key: str) -> Session | None:
        """The session of that key, as its file is now; None if there is none."""
        for session in self.index.sessions("WHERE key = ?", (bytes_of(key),)):
            current = self._current(session)
            if current is not None and current.name == key:
                return current
        for name in files.candidates(key):
            path = self.path / name
            if path.is_file() and not path.is_symlink():
                taken = self._take_in(name)
                if taken is not None and taken.name == key:
                    return taken
        return None

    def _current(self, session: Session) -> Session | None:
        try:
            found = self.file(session).stat()
        except FileNotFoundError:
            with self.lock.held(), self.index.writing():
                self.index.forget(session.file)
            return None
        except OSError as error:
            raise StoreError(f"{self.file(session)}: {error.strerror}") from error
        return session if _is_current(session, found) else self._take_in(session.file)

    def _try_to_take_in(self, name: str) -> None:
        try:
            self._take_in(name)
        except StoreError as error:
            self._warn(f"{name} is left out: {error}")

    def _take_in(self, name: str) -> Session | None:
        """Bring the index up to a file; None if it went away."""
        path = self.path / name
        with self.lock.held():
            try:
                file = path.open("rb")
            except FileNotFoundError:
                return None
            except OSError as error:
                raise StoreError(f"{path}: {error.strerror}") from error
            with in_words(path), file, self.index.writing():
                session = self.index.session_of(name)
                found = os.fstat(file.fileno())
                if session is not None and _is_current(session, found):
                    return session
                if session is None:
                    session = self.index.new_session(name, files.key_by_name(name))
                self._read(session, path, whole=not self._only_grew(session, found, path))
                self.index.keep(session)
        return session

    def read_again(self, session: Session) -> None:
        """Take in the file from its start. Called with the lock held, inside a transaction."""
        self._read(session, self.file(session), whole=True)

    def _read(self, session: Session, path: Path, *, whole: bool) -> None:
        with path.open("rb") as file:
            caught = catch_up(self.index, session, file, whole=whole)
        for note in caught.notes:
            self._warn(f"{path.name}, {note}")
        if caught.lost > 0:
            self._warn(f"{path.name}: {caught.lost} rows are no longer in the file; another program removed them")
        if caught.faults:
            for warning in set_aside(path, session, caught.faults):
                self._warn(warning)
        session.key = bytes_of(self.header(session).key)
        found = path.stat()
        session.inode, session.mtime, session.size = found.st_ino, found.st_mtime_ns, found.st_size

    def _only_grew(self, session: Session, found: os.stat_result, path: Path) -> bool:
        """Whether what is indexed still stands there, with more behind it."""
        if found.st_ino != session.inode or found.st_size <= session.size or not session.ended:
            return False
        last = self.index.rows(session.session, "AND place >= 0 ORDER BY ord DESC LIMIT 1")
        if not last:
            return False
        with path.open("rb") as file:
            file.seek(last[0].place)
            return fingerprint(file.readline()) == last[0].print

    def _warn(self, warning: str) -> None:
        if warning not in self.warnings:  # what stays in a file is found each time it is read
            self.warnings.append(warning)
            logger.warning("%s", warning)


def _is_current(session: Session, found: os.stat_result) -> bool:
    return (session.inode, session.mtime, session.size) == (found.st_ino, found.st_mtime_ns, found.st_size)


def _entry(raw: bytes, placed: Placed) -> Entry:
    lines = [json.loads(line.strip(b"\0 \t\r\n")) for line in raw.split(b"\n") if line.strip(b"\0 \t\r\n")]
    entry = entry_in(lines)
    if entry is None:
        raise StoreError(f"row {placed.id!r} is no longer what it was")
    return entry if placed.target is None else referring(entry, placed.target)


def _own_point(header: Header, placed: Placed) -> Point:
    """nanobot's own consolidation as a point."""
    return Point(boundary=placed.target or 0, summary=(summary_message(header.foreign_summary),), reason=NANOBOT)

"""Connections to one SQLite file: one for each thread of each process.

This module owns transactions and the waiting for other writers: no other module of this engine begins or ends a
transaction. Work is a function of the connection; it is called again if another writer was in the way. A file that
cannot be written, because the disk is read-only or the folder belongs to somebody else, is opened for reading.
"""

import logging
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from everlong.errors import InputError, StoreBusy, StoreError
from everlong.store.damage import Damage
from everlong.store.private import make_database
from everlong.store.sqlite.schema import VERSION, migrate, show_as_newest, version_of
from everlong.store.sqlite_file import check_place, damaged, explained, is_busy, is_read_only

__all__ = ["Connections", "Link"]

Result = TypeVar("Result")

AT_ONCE = 1.0  # seconds that SQLite itself waits; then it is logged that somebody else holds the file
LONGEST_NAP = 0.05  # seconds between two attempts in cases where SQLite itself does not wait
LONGEST_QUEUE = 120.0  # seconds to wait if other writers finish meanwhile: the file is busy, not held
MEMORY = 16_000  # kB of pages that a connection caches
JOURNAL = 64_000_000  # bytes of the write-ahead log that stay on disk after a checkpoint

READING = "BEGIN"
UNDECODABLE = "Could not decode to UTF-8"  # how Python's error begins; it has no code

logger = logging.getLogger("everlong.store")
_all: "weakref.WeakSet[Connections]" = weakref.WeakSet()
#: Connections inherited through a fork belong to the parent: they are not used or closed, and so must not be collected.
_of_parents: list[object] = []


class Link(sqlite3.Connection):
    """A connection that knows where to report unreadable data."""

    damage: Damage


class Connections:
    """The connections of one store. `wait` is how many seconds a caller waits for a writer that does not finish."""

    def __init__(self, path: Path, wait: float) -> None:
        self._path = path
        self._wait = wait
        self.damage = Damage()
        self._closed = False
        self._start()
        _all.add(self)

    def check(self) -> None:
        """Open the file now, so that a wrong file is reported at once, and finish the erasures of a killed process."""
        with suppress(StoreError):
            self.rewrite()
        self.read(lambda _db: None)

    def read(self, work: Callable[[Link], Result]) -> Result:
        """Run the work on one state of the file, whatever others write meanwhile."""
        return self._carry_out(READING, work)

    def write(self, work: Callable[[Link], Result]) -> Result:
        """Run the work as the only writer. When this returns, everything is on disk; if it raises, nothing happened."""
        return self._carry_out("BEGIN IMMEDIATE", work)

    def rewrite(self) -> None:
        """If something was erased, rewrite the file without it and empty the write-ahead log."""
        if self.read(_is_erasing):
            self._patiently(self._rewrite_now)
            self.write(lambda db: db.execute("DELETE FROM erasing"))

    def _rewrite_now(self) -> None:
        db = self._connection()
        db.execute("VACUUM")
        ((busy, _, _),) = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        if busy:  # somebody is reading, so old pages would stay in the log
            raise _LogInUse

    def close(self) -> None:
        """Close every connection of this process."""
        self._closed = True
        with self._lock:
            for db in self._open.values():
                db.close()
            self._open.clear()

    def after_fork(self) -> None:
        """Start again without connections in a child process."""
        _of_parents.append(self._open)
        self._start()

    def _start(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[threading.Thread, Link] = {}

    def _carry_out(self, begin: str, work: Callable[[Link], Result]) -> Result:
        return self._patiently(lambda: self._attempt(begin, work))

    def _patiently(self, attempt: Callable[[], Result]) -> Result:
        waiting = _Waiting(self._path, self._wait)
        nap = 0.001
        while True:
            try:
                return attempt()
            except sqlite3.Error as error:
                if self._reads_bytes_instead(error):
                    continue
                if not is_busy(error):
                    raise explained(self._path, error) from error
                waiting.go_on(self._open.get(threading.current_thread()), error)
            except UnicodeDecodeError as error:  # SQLite's own message quotes a damaged name
                raise damaged(self._path) from error
            time.sleep(nap)
            nap = min(2 * nap, LONGEST_NAP)

    def _reads_bytes_instead(self, error: sqlite3.Error) -> bool:
        """If a text was not UTF-8, let the connection return such texts as bytes. Returns whether to try again."""
        db = self._open.get(threading.current_thread())
        if db is None or db.text_factory is not str or not str(error).startswith(UNDECODABLE):
            return False
        db.text_factory = _text_or_bytes
        return True

    def _attempt(self, begin: str, work: Callable[[Link], Result]) -> Result:
        db = self._connection()
        try:
            db.execute(begin)
            result = work(db)
            if begin != READING:  # a read has nothing to commit, and a commit may fail on a damaged page
                db.execute("COMMIT")
        finally:
            if db.in_transaction:
                db.execute("ROLLBACK")
        return result

    def _connection(self) -> Link:
        if self._closed:
            raise StoreError(f"{self._path} was closed")
        thread = threading.current_thread()
        db = self._open.get(thread)
        if db is None:
            db = self._connect()
            with self._lock:
                for ended in [other for other in self._open if not other.is_alive()]:
                    self._open.pop(ended).close()
                self._open[thread] = db
        return db

    def _connect(self) -> Link:
        check_place(self._path)
        with suppress(OSError):  # SQLite itself reports what is wrong with the path
            make_database(self._path)
        try:
            return self._link(str(self._path))
        except sqlite3.OperationalError as error:
            if not is_read_only(error) or not _has_data(self._path):
                raise
            log = self._path.with_name(self._path.name + "-wal")
            if _has_data(log):
                raise StoreError(
                    f"{self._path} is read-only and its newest rows are in {log.name}, which SQLite cannot read there:"
                    " copy both files to a folder where you can write, and open the copy"
                ) from error
        # With an empty log, the file has everything, and SQLite needs no files next to it.
        return self._link(f"{self._path.absolute().as_uri()}?mode=ro&immutable=1")

    def _link(self, place: str) -> Link:
        """Connect, and create or update the tables. A file that is read-only may keep those of an older version."""
        db: Link = sqlite3.connect(
            place,
            timeout=min(AT_ONCE, self._wait),
            isolation_level=None,
            check_same_thread=False,
            factory=Link,
            uri=place.startswith("file:"),
        )
        db.damage = self.damage
        try:
            # FULL: a commit reaches the disk, not only the operating system.
            db.execute("PRAGMA synchronous = FULL")
            db.execute(f"PRAGMA cache_size = -{MEMORY}")
            db.execute(f"PRAGMA journal_size_limit = {JOURNAL}")
            version = version_of(db, str(self._path))
            if version < VERSION:
                try:
                    _set_up(db, str(self._path))
                except sqlite3.OperationalError as error:
                    if not version or not is_read_only(error):
                        raise
                    show_as_newest(db, version)
        except (sqlite3.Error, StoreError, InputError, UnicodeDecodeError):
            db.close()
            raise
        return db


class _Waiting:
    """Waits for another writer, for a limited time, and logs that once."""

    def __init__(self, path: Path, wait: float) -> None:
        self._path, self._wait = path, wait
        self._began = self._held_since = time.monotonic()
        self._state: object = None
        self._logged = False

    def go_on(self, db: sqlite3.Connection | None, error: sqlite3.Error) -> None:
        """Return if waiting may still help; otherwise raise StoreBusy."""
        now, state = time.monotonic(), _state_of(db)
        if state != self._state:  # another writer has finished: the file is busy, not held
            self._held_since, self._state = now, state
        held = now - self._held_since
        if held >= self._wait or now - self._began >= LONGEST_QUEUE:
            raise StoreBusy(
                f"{self._path}: another program has been writing to it for {now - self._began:.0f} s; "
                "stop that program or try again later (?timeout=SECONDS after the store's name waits longer)"
            ) from error
        if held >= AT_ONCE / 2 and not self._logged:
            self._logged = True
            logger.info("%s: waiting for another program that writes to it", self._path)


def _state_of(db: sqlite3.Connection | None) -> object:
    """A value that changes when another connection has written; None if it cannot be read now."""
    with suppress(sqlite3.Error):
        return None if db is None else db.execute("PRAGMA data_version").fetchone()
    return None


def _text_or_bytes(data: bytes) -> str | bytes:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def _is_erasing(db: sqlite3.Connection) -> bool:
    """Whether something was erased and the file has not been rewritten yet. Older files do not have this table."""
    query = "SELECT 1 FROM sqlite_master WHERE name = 'erasing'"
    return db.execute(query).fetchone() is not None and db.execute("SELECT 1 FROM erasing").fetchone() is not None


class _LogInUse(sqlite3.OperationalError):
    """Somebody still reads pages of the write-ahead log, so it cannot be emptied."""

    sqlite_errorcode = sqlite3.SQLITE_BUSY


def _has_data(path: Path) -> bool:
    """Whether the file exists and is not empty."""
    with suppress(OSError):
        return path.is_file() and path.stat().st_size > 0
    return False


def _set_up(db: sqlite3.Connection, path: str) -> None:
    """Switch on write-ahead logging and create or update the tables. Other processes may be doing the same."""
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("BEGIN IMMEDIATE")
    try:
        migrate(db, path)
        db.execute("COMMIT")
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")


def _forked() -> None:
    for connections in list(_all):
        connections.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)

"""Connections to one SQLite file: one for each thread of each process.

Owns transactions and waiting for other writers: no other module of this engine begins or ends a transaction. Work is a
function of the connection. It is called again if another writer was in the way. A file that nobody may write here, on a
disk that is read-only or in a folder of somebody else, is opened for reading.
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
from everlong.store.sqlite.schema import VERSION, migrate, version_of
from everlong.store.sqlite_file import check_place, damaged, explained, is_busy, is_read_only

__all__ = ["Connections", "Link"]

Result = TypeVar("Result")

AT_ONCE = 1.0  # seconds that SQLite itself waits; then the person is told that somebody else holds the file
LONGEST_NAP = 0.05  # seconds between two attempts where SQLite itself does not wait
LONGEST_QUEUE = 120.0  # seconds to wait while others write and finish, so that the file is not held but busy
MEMORY = 16_000  # kB of pages that a connection caches
JOURNAL = 64_000_000  # bytes of the write-ahead log that stay on disk once it was written back

READING = "BEGIN"
UNDECODABLE = "Could not decode to UTF-8"  # how Python's error begins; it has no code

logger = logging.getLogger("everlong.store")
_all: "weakref.WeakSet[Connections]" = weakref.WeakSet()
#: Connections that came through a fork belong to the parent: not used, not closed, so not collected either.
_of_parents: list[object] = []


class Link(sqlite3.Connection):
    """A connection that knows where what cannot be read is told."""

    damage: Damage


class Connections:
    """The connections of one store. `wait` is how many seconds a caller may wait for a writer that does not end."""

    def __init__(self, path: Path, wait: float) -> None:
        self._path = path
        self._wait = wait
        self.damage = Damage()
        self._closed = False
        self._start()
        _all.add(self)

    def check(self) -> None:
        """Open the file now, so that a wrong file is reported at once."""
        self.read(lambda _db: None)

    def read(self, work: Callable[[Link], Result]) -> Result:
        """Do the work on one state of the file, whatever others write meanwhile."""
        return self._carry_out(READING, work)

    def write(self, work: Callable[[Link], Result]) -> Result:
        """Do the work as the only writer; all of it is on disk when this returns, or none of it happened."""
        return self._carry_out("BEGIN IMMEDIATE", work)

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
        waiting = _Waiting(self._path, self._wait)
        nap = 0.001
        while True:
            try:
                return self._attempt(begin, work)
            except sqlite3.Error as error:
                if self._reads_bytes_instead(error):
                    continue
                if not is_busy(error):
                    raise explained(self._path, error) from error
                waiting.go_on(self._open.get(threading.current_thread()), error)
            except UnicodeDecodeError as error:  # of SQLite's own message, which quotes a damaged name
                raise damaged(self._path) from error
            time.sleep(nap)
            nap = min(2 * nap, LONGEST_NAP)

    def _reads_bytes_instead(self, error: sqlite3.Error) -> bool:
        """Whether a text was not UTF-8 and the connection now returns such texts as bytes, so that others are read."""
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
            if begin != READING:  # nothing to keep; and a commit may fail on a page that only the index needs
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
        with suppress(OSError):  # SQLite says itself what is wrong with the place
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
                    " copy both files to a folder of yours and open the copy"
                ) from error
        # With an empty log the file says everything. SQLite then needs no files beside it.
        return self._link(f"{self._path.absolute().as_uri()}?mode=ro&immutable=1")

    def _link(self, place: str) -> Link:
        """Connect, and make or update the tables; a file that is read-only may have those of an older version."""
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
            # FULL: what was committed is on the disk, not only with the operating system.
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
        except (sqlite3.Error, StoreError, InputError, UnicodeDecodeError):
            db.close()
            raise
        return db


class _Waiting:
    """Waiting for another writer: bounded while it does not end, told to the person after a second."""

    def __init__(self, path: Path, wait: float) -> None:
        self._path, self._wait = path, wait
        self._began = self._held_since = time.monotonic()
        self._state: object = None
        self._told = False

    def go_on(self, db: sqlite3.Connection | None, error: sqlite3.Error) -> None:
        """Return if there is still hope. Raises StoreBusy."""
        now, state = time.monotonic(), _state_of(db)
        if state != self._state:  # somebody finished: the file is busy, not held
            self._held_since, self._state = now, state
        held = now - self._held_since
        if held >= self._wait or now - self._began >= LONGEST_QUEUE:
            raise StoreBusy(
                f"{self._path}: another program has been writing to it for {now - self._began:.0f} s; "
                "end that program or try again later (?timeout=SECONDS after the store's name waits longer)"
            ) from error
        if held >= AT_ONCE / 2 and not self._told:
            self._told = True
            logger.info("%s: waiting for another program that writes to it", self._path)


def _state_of(db: sqlite3.Connection | None) -> object:
    """A value that changes when another connection has written; None if that cannot be told now."""
    with suppress(sqlite3.Error):
        return None if db is None else db.execute("PRAGMA data_version").fetchone()
    return None


def _text_or_bytes(data: bytes) -> str | bytes:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def _has_data(path: Path) -> bool:
    """Whether a file is there with something in it."""
    with suppress(OSError):
        return path.is_file() and path.stat().st_size > 0
    return False


def _set_up(db: sqlite3.Connection, path: str) -> None:
    """Switch on write-ahead logging and make the tables of a new or older file. Others may be doing the same."""
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

"""Connections to one SQLite file: one for each thread of each process.

Owns transactions and waiting for other writers: no other module of this engine begins or ends a transaction. Work is a
function of the connection. It is called again if another writer was in the way.
"""

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
from everlong.store.sqlite.schema import VERSION, migrate, version_of
from everlong.store.sqlite_file import explained, is_busy

__all__ = ["Connections"]

Result = TypeVar("Result")

LONGEST_NAP = 0.05  # seconds between two attempts where SQLite itself does not wait
MEMORY = 16_000  # kB of pages that a connection caches
JOURNAL = 64_000_000  # bytes of the write-ahead log that stay on disk once it was written back

ONLY_MINE = 0o600  # a new file: conversations are private

_all: "weakref.WeakSet[Connections]" = weakref.WeakSet()
#: Connections that came through a fork belong to the parent: not used, not closed, so not collected either.
_of_parents: list[object] = []


class Connections:
    """The connections of one store. `wait` is how many seconds a caller may wait for other writers."""

    def __init__(self, path: Path, wait: float) -> None:
        self._path = path
        self._wait = wait
        self._closed = False
        self._start()
        _all.add(self)

    def check(self) -> None:
        """Open the file now, so that a wrong file is reported at once."""
        self.read(lambda _db: None)

    def read(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        """Do the work on one state of the file, whatever others write meanwhile."""
        return self._carry_out("BEGIN", work)

    def write(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
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
        self._open: dict[threading.Thread, sqlite3.Connection] = {}

    def _carry_out(self, begin: str, work: Callable[[sqlite3.Connection], Result]) -> Result:
        deadline = time.monotonic() + self._wait
        nap = 0.001
        while True:
            try:
                return self._attempt(begin, work)
            except sqlite3.Error as error:
                if not is_busy(error):
                    raise explained(self._path, error) from error
                if time.monotonic() >= deadline:
                    raise StoreBusy(
                        f"{self._path}: other programs have been writing to it for {self._wait:g} s"
                    ) from error
            time.sleep(nap)
            nap = min(2 * nap, LONGEST_NAP)

    def _attempt(self, begin: str, work: Callable[[sqlite3.Connection], Result]) -> Result:
        db = self._connection()
        try:
            db.execute(begin)
            result = work(db)
            db.execute("COMMIT")
        finally:
            if db.in_transaction:
                db.execute("ROLLBACK")
        return result

    def _connection(self) -> sqlite3.Connection:
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

    def _connect(self) -> sqlite3.Connection:
        if self._path.is_dir():
            raise InputError(f"{self._path} is a folder, not a SQLite file")
        with suppress(OSError):  # SQLite says itself what is wrong with the place
            self._path.touch(mode=ONLY_MINE, exist_ok=False)
        db = sqlite3.connect(self._path, timeout=self._wait, isolation_level=None, check_same_thread=False)
        try:
            # FULL: what was committed is on the disk, not only with the operating system.
            db.execute("PRAGMA synchronous = FULL")
            db.execute(f"PRAGMA cache_size = -{MEMORY}")
            db.execute(f"PRAGMA journal_size_limit = {JOURNAL}")
            if version_of(db, str(self._path)) < VERSION:
                _set_up(db, str(self._path))
        except (sqlite3.Error, StoreError, InputError):
            db.close()
            raise
        return db


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

"""What can be wrong with a SQLite file, in words that a person can act on; for every engine that keeps one."""

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from everlong.errors import InputError, StoreBusy, StoreError

__all__ = ["Database", "code_of", "explained", "is_busy"]

BUSY_CODES = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL})

#: SQLite's code -> what a person can do about it.
PROBLEMS = {
    sqlite3.SQLITE_READONLY: "it is read-only",
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_IOERR: "the disk does not take or give it (full, or failing)",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened or made there (folder missing, or no permission)",
    sqlite3.SQLITE_PERM: "no permission",
    sqlite3.SQLITE_CORRUPT: "the file is damaged; `sqlite3 FILE .recover` may save what is readable",
    sqlite3.SQLITE_TOOBIG: "one of the texts is larger than SQLite takes",
}


def code_of(error: sqlite3.Error) -> int:
    """SQLite's primary code of an error; Python's own have none, which is 0."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def is_busy(error: sqlite3.Error) -> bool:
    """Whether somebody else is at the file, and waiting may help."""
    return code_of(error) in BUSY_CODES


def explained(path: Path, error: sqlite3.Error) -> StoreError | InputError:
    """The error as one line that says what is wrong with the file."""
    code = code_of(error)
    if code == sqlite3.SQLITE_NOTADB:
        return InputError(f"{path} is not a SQLite database")
    if code in BUSY_CODES:
        return StoreBusy(f"{path}: others do not stop writing; try again later")
    return StoreError(f"{path}: {PROBLEMS.get(code, str(error))}")


LONGEST_WAIT = 30.0  # seconds to wait for another process
MEMORY = 32_000  # kB of pages that are kept at hand: with less, each new word is fetched from the file again


class Database:
    """The file, opened and with its tables made by `prepare`.

    Raises sqlite3.Error if that fails: the user of the file knows whether it may be thrown away.
    """

    def __init__(self, path: Path, prepare: Callable[[sqlite3.Connection], None]) -> None:
        self._path = path
        self._lock = threading.RLock()
        self._closed = False
        self._connection = sqlite3.connect(path, timeout=LONGEST_WAIT, isolation_level=None, check_same_thread=False)
        try:
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = NORMAL")
            self._connection.execute(f"PRAGMA cache_size = -{MEMORY}")
            prepare(self._connection)
        except (sqlite3.Error, StoreError):
            self._connection.close()
            raise

    def close(self) -> None:
        """Let go of the file; a second time does nothing."""
        with self._lock:
            self._closed = True
            self._connection.close()

    @contextmanager
    def working(self) -> Iterator[sqlite3.Connection]:
        """The connection, with no other thread at it. Raises StoreError for what goes wrong with the file."""
        with self._lock:
            if self._closed:
                raise StoreError(f"the store was closed ({self._path.parent})")
            try:
                yield self._connection
            except sqlite3.Error as error:
                raise explained(self._path, error) from error

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """All that is done inside, or nothing of it."""
        with self.working() as connection, connection:
            connection.execute("BEGIN IMMEDIATE")
            yield connection

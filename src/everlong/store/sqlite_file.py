"""SQLite files: their errors in words that a person can act on, and a file with a single connection.

Other modules own the tables; nothing here knows what is in the files.
"""

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from everlong.errors import InputError, StoreBusy, StoreError
from everlong.store.private import check_is_file, make_database

__all__ = ["Database", "check_place", "code_of", "damaged", "explained", "is_busy", "is_read_only"]

READ_ONLY_CODES = frozenset({sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM})
BUSY_CODES = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL})

#: SQLite's code -> what a person can do about it.
PROBLEMS = {
    sqlite3.SQLITE_READONLY: "it is read-only; to write to it, copy it to a folder where you can write",
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_IOERR: "the disk cannot be written or read (full, or failing)",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened or created there (folder missing, or no permission)",
    sqlite3.SQLITE_PERM: "no permission",
    sqlite3.SQLITE_CORRUPT: "the file is damaged; `sqlite3 FILE .recover` may recover what is readable",
    sqlite3.SQLITE_TOOBIG: "a text is larger than SQLite allows",
}


def code_of(error: sqlite3.Error) -> int:
    """SQLite's primary code of an error; 0 for the errors of Python's own module."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def is_busy(error: sqlite3.Error) -> bool:
    """Whether another writer holds the file, so that waiting may help."""
    return code_of(error) in BUSY_CODES


def is_read_only(error: sqlite3.Error) -> bool:
    """Whether the file, or one of those that SQLite creates next to it, cannot be written."""
    return code_of(error) in READ_ONLY_CODES


def explained(path: Path, error: sqlite3.Error) -> StoreError | InputError:
    """The error as one line that says what is wrong with the file."""
    code = code_of(error)
    if code == sqlite3.SQLITE_NOTADB:
        return InputError(f"{path} is not a SQLite database, or it is encrypted")
    if code in BUSY_CODES:
        return StoreBusy(f"{path}: other programs keep writing to it; try again later")
    # Python's error quotes a text that is not UTF-8; that part is left out.
    return StoreError(f"{path}: {PROBLEMS.get(code) or str(error).partition(' with text ')[0]}")


def damaged(path: Path) -> StoreError:
    """Return the error for a file that SQLite cannot read."""
    return StoreError(f"{path}: {PROBLEMS[sqlite3.SQLITE_CORRUPT]}")


def check_place(path: Path) -> None:
    """Raise InputError if the path is a folder, a pipe or a device; opening a pipe could wait forever."""
    try:
        check_is_file(path.stat())
    except (IsADirectoryError, BlockingIOError) as error:
        raise InputError(f"{path}: {error.strerror}") from None
    except OSError:
        return  # missing or not accessible: SQLite reports which


LONGEST_WAIT = 10.0  # seconds to wait for another process
MEMORY = 32_000  # kB of cached pages; with less, each new word is read from the file again


def _try_to_write(connection: sqlite3.Connection) -> None:
    """Raise sqlite3.OperationalError now if the file is read-only, not at the first write."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute(f"PRAGMA user_version = {version}")
    finally:
        connection.execute("ROLLBACK")


class Database:
    """A small SQLite file with one connection, used by one thread at a time; `prepare` creates its tables.

    If it is not `kept`, it is in memory, because its folder cannot be written.

    Open it while the folder's lock is held, so that two processes do not create it at once. Raises sqlite3.Error if
    that fails: the caller knows whether the file may be thrown away.
    """

    def __init__(self, path: Path, prepare: Callable[[sqlite3.Connection], None], *, kept: bool = True) -> None:
        self._path = path
        self._lock = threading.RLock()
        self._closed = False
        if kept:
            check_place(path)
            with suppress(OSError):  # SQLite itself reports what is wrong with the path
                make_database(path)
        place = path if kept else ":memory:"
        self._connection = sqlite3.connect(place, timeout=LONGEST_WAIT, isolation_level=None, check_same_thread=False)
        try:
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = NORMAL")
            self._connection.execute(f"PRAGMA cache_size = -{MEMORY}")
            prepare(self._connection)
            _try_to_write(self._connection)
        except (sqlite3.Error, StoreError):
            self._connection.close()
            raise

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        with self._lock:
            self._closed = True
            self._connection.close()

    def rewrite(self) -> None:
        """Rewrite the file, so that no page and no part of the write-ahead log has deleted data."""
        with self.working() as connection:
            connection.execute("VACUUM")
            ((busy, _, _),) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        if busy:
            raise StoreBusy(f"{self._path}: other programs keep reading it; try again later")

    @contextmanager
    def working(self) -> Iterator[sqlite3.Connection]:
        """Return the connection, for this thread alone. Raises StoreError if something is wrong with the file."""
        with self._lock:
            if self._closed:
                raise StoreError(f"the store was closed ({self._path.parent})")
            try:
                yield self._connection
            except sqlite3.Error as error:
                raise explained(self._path, error) from error

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction: everything inside is stored, or nothing."""
        with self.working() as connection, connection:
            connection.execute("BEGIN IMMEDIATE")
            yield connection

"""A small SQLite file beside the sessions: one connection, for one thread at a time, errors in our words.

The tables are their users'. A file is made while the folder's lock is held, so that two who begin do not meet in it.
"""

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from everlong.errors import StoreError
from everlong.store.sqlite_problems import explained

__all__ = ["Database"]

BUSY = 30.0  # seconds to wait for another process
MEMORY = 32_000  # kB of pages that are kept at hand: with less, each new word is fetched from the file again


class Database:
    """The file, opened and with its tables made by `prepare`.

    Raises sqlite3.Error if that fails: the user of the file knows whether it may be thrown away.
    """

    def __init__(self, path: Path, prepare: Callable[[sqlite3.Connection], None]) -> None:
        self._path = path
        self._lock = threading.RLock()
        self._closed = False
        self._connection = sqlite3.connect(path, timeout=BUSY, isolation_level=None, check_same_thread=False)
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

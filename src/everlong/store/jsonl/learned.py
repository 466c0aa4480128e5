"""What was learned, for all sessions of a folder: facts and token counts, in a small database of their own.

Texts are kept as bytes, since any text is a key.
"""

import sqlite3
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from everlong.core.messages import JsonText
from everlong.core.refs import bytes_of
from everlong.errors import StoreError
from everlong.store.bodies import text_of_bytes

__all__ = ["Learned"]

VERSION = 1
BUSY = 30.0  # seconds to wait for another process
AT_ONCE = 500  # names in one question

SCHEMA = (
    "CREATE TABLE IF NOT EXISTS facts (kind BLOB, key BLOB, value BLOB NOT NULL, PRIMARY KEY (kind, key))",
    "CREATE TABLE IF NOT EXISTS counts (vocabulary BLOB, ref BLOB, tokens INTEGER NOT NULL, "
    "PRIMARY KEY (vocabulary, ref)) WITHOUT ROWID",
)


class Learned:
    """The database. Every call may come from any thread."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(path, timeout=BUSY, isolation_level=None, check_same_thread=False)
        try:
            self._prepare(path)
        except sqlite3.DatabaseError as error:
            self._connection.close()
            raise StoreError(f"{path} cannot be read: {error}") from error

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._connection.close()

    def _prepare(self, path: Path) -> None:
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = NORMAL")
        version = self._connection.execute("PRAGMA user_version").fetchone()[0]
        if version > VERSION:
            self._connection.close()
            raise StoreError(f"{path.name} was written by a newer Everlong (version {version}, this reads {VERSION})")
        for statement in SCHEMA:
            self._connection.execute(statement)
        self._connection.execute(f"PRAGMA user_version = {VERSION}")

    def counts(self, vocabulary: str, refs: Sequence[str]) -> dict[str, int]:
        """Token counts that were kept."""
        found: dict[str, int] = {}
        with self._lock:
            for start in range(0, len(refs), AT_ONCE):
                some = [bytes_of(ref) for ref in refs[start : start + AT_ONCE]]
                query = f"SELECT ref, tokens FROM counts WHERE vocabulary = ? AND ref IN ({', '.join('?' * len(some))})"
                rows = self._connection.execute(query, (bytes_of(vocabulary), *some)).fetchall()
                found |= {text_of_bytes(ref): tokens for ref, tokens in rows}
        return found

    def keep_counts(self, vocabulary: str, counts: Mapping[str, int]) -> None:
        """Keep token counts."""
        rows = [(bytes_of(vocabulary), bytes_of(ref), tokens) for ref, tokens in counts.items()]
        with self._lock, self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.executemany("INSERT OR REPLACE INTO counts VALUES (?, ?, ?)", rows)

    def fact(self, kind: str, key: str) -> JsonText | None:
        """One fact."""
        return self.facts(kind).get(key)

    def keep_fact(self, kind: str, key: str, value: JsonText) -> None:
        """Keep a fact; the newest counts."""
        with self._lock:
            values = [bytes_of(text) for text in (kind, key, value)]
            self._connection.execute("INSERT OR REPLACE INTO facts VALUES (?, ?, ?)", values)

    def facts(self, kind: str) -> dict[str, JsonText]:
        """All facts of a kind."""
        with self._lock:
            query = "SELECT key, value FROM facts WHERE kind = ? ORDER BY key"
            found = self._connection.execute(query, (bytes_of(kind),)).fetchall()
            return {text_of_bytes(key): text_of_bytes(value) for key, value in found}

"""Facts and token counts for all sessions of a folder, in a small database of their own.

Texts are stored as bytes, since any text may be a key. In a folder that cannot be written nothing is known.
"""

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from functools import partial
from pathlib import Path

from everlong.core import JsonText, bytes_of
from everlong.errors import StoreError
from everlong.store.bodies import text_of_bytes
from everlong.store.sqlite_file import Database, explained, is_read_only

__all__ = ["Learned"]

AT_ONCE = 500  # references in one query

FIRST = (
    "CREATE TABLE IF NOT EXISTS facts (kind BLOB, key BLOB, value BLOB NOT NULL, PRIMARY KEY (kind, key))",
    "CREATE TABLE IF NOT EXISTS counts (vocabulary BLOB, ref BLOB, tokens INTEGER NOT NULL, "
    "PRIMARY KEY (vocabulary, ref)) WITHOUT ROWID",
)
#: When a fact was kept, in seconds since 1970; those that are there count as kept now.
TIMES = (
    "ALTER TABLE facts ADD COLUMN kept REAL NOT NULL DEFAULT 0",
    "UPDATE facts SET kept = strftime('%s', 'now')",
    "CREATE INDEX facts_by_time ON facts (kind, kept)",
)
#: What brings a file from each version to the next.
MIGRATIONS = (FIRST, TIMES)
VERSION = len(MIGRATIONS)


class Learned:
    """The database of facts and token counts. Every call may come from any thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._kept = True
        try:
            self._database = Database(path, partial(_prepare, path=path))
        except sqlite3.Error as error:
            if not is_read_only(error):
                raise explained(path, error) from error
            self._kept = False
            self._database = Database(path, partial(_prepare, path=path), kept=False)

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def counts(self, vocabulary: str, refs: Sequence[str]) -> dict[str, int]:
        """Return the token counts that are kept."""
        known: dict[str, int] = {}
        with self._database.working() as connection:
            for start in range(0, len(refs), AT_ONCE):
                some = [bytes_of(ref) for ref in refs[start : start + AT_ONCE]]
                query = f"SELECT ref, tokens FROM counts WHERE vocabulary = ? AND ref IN ({', '.join('?' * len(some))})"
                rows = connection.execute(query, (bytes_of(vocabulary), *some)).fetchall()
                known |= {text_of_bytes(ref): tokens for ref, tokens in rows}
        return known

    def keep_counts(self, vocabulary: str, counts: Mapping[str, int]) -> None:
        """Keep token counts."""
        rows = [(bytes_of(vocabulary), bytes_of(ref), tokens) for ref, tokens in counts.items()]
        with self._writing() as connection:
            connection.executemany("INSERT OR REPLACE INTO counts VALUES (?, ?, ?)", rows)

    def fact(self, kind: str, key: str) -> JsonText | None:
        """Return the fact of that kind and key, or None."""
        with self._database.working() as connection:
            query = "SELECT value FROM facts WHERE kind = ? AND key = ?"
            row = connection.execute(query, (bytes_of(kind), bytes_of(key))).fetchone()
            return None if row is None else text_of_bytes(row[0])

    def keep_fact(self, kind: str, key: str, value: JsonText, now: datetime) -> None:
        """Keep a fact; it replaces an older one."""
        values = (*(bytes_of(text) for text in (kind, key, value)), now.timestamp())
        with self._writing() as connection:
            connection.execute("INSERT OR REPLACE INTO facts (kind, key, value, kept) VALUES (?, ?, ?, ?)", values)

    def drop_facts(self, kind: str, before: datetime) -> int:
        """Drop the facts of a kind that were last kept before that time; return how many."""
        with self._writing() as connection:
            query = "DELETE FROM facts WHERE kind = ? AND kept < ?"
            return connection.execute(query, (bytes_of(kind), before.timestamp())).rowcount

    def _writing(self) -> AbstractContextManager[sqlite3.Connection]:
        if not self._kept:
            raise StoreError(f"{self._path}: it is read-only")
        return self._database.writing()

    def facts(self, kind: str) -> dict[str, JsonText]:
        """Return all facts of a kind, by key."""
        with self._database.working() as connection:
            query = "SELECT key, value FROM facts WHERE kind = ? ORDER BY key"
            rows = connection.execute(query, (bytes_of(kind),)).fetchall()
            return {text_of_bytes(key): text_of_bytes(value) for key, value in rows}


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > VERSION:
        raise StoreError(f"{path.name} was written by a newer Everlong (version {version}, this reads {VERSION})")
    if version == VERSION:
        return
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        for migration in MIGRATIONS[version:]:
            for statement in migration:
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {VERSION}")

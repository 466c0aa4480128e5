"""Facts, token counts and vectors for all sessions of a folder, in a small separate database.

Texts are stored as bytes, since any text may be a key. In a folder that cannot be written, the database is empty.
"""

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
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
#: When a fact was stored, in seconds since 1970; existing facts count as stored now.
TIMES = (
    "ALTER TABLE facts ADD COLUMN kept REAL NOT NULL DEFAULT 0",
    "UPDATE facts SET kept = strftime('%s', 'now')",
    "CREATE INDEX facts_by_time ON facts (kind, kept)",
)
#: Embeddings of messages, as float16, by session and row name.
VECTORS = (
    "CREATE TABLE IF NOT EXISTS vectors (session BLOB, row BLOB, model BLOB, vector BLOB NOT NULL, "
    "PRIMARY KEY (session, model, row))",
)
#: The migrations from each version to the next.
MIGRATIONS = (FIRST, TIMES, VECTORS)
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

    def vectors(self, session: str, model: str) -> dict[str, bytes]:
        """Return the vectors of a session that are kept, by the names of the rows."""
        with self._database.working() as connection:
            query = "SELECT row, vector FROM vectors WHERE session = ? AND model = ?"
            rows = connection.execute(query, (bytes_of(session), bytes_of(model))).fetchall()
            return {text_of_bytes(row): bytes(vector) for row, vector in rows}

    def keep_vectors(self, session: str, model: str, vectors: Mapping[str, bytes]) -> None:
        """Keep vectors, by the names of the rows."""
        rows = [(bytes_of(session), bytes_of(row), bytes_of(model), vector) for row, vector in vectors.items()]
        with self._writing() as connection:
            connection.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?, ?)", rows)

    def forget_session(self, session: str) -> None:
        """Drop the vectors of a removed session; in a folder that cannot be written there are none."""
        if self._kept:
            with self._writing() as connection:
                connection.execute("DELETE FROM vectors WHERE session = ?", (bytes_of(session),))

    def forget(self, refs: Iterable[str], rows: Iterable[tuple[str, str]]) -> None:
        """Delete token counts, and vectors by session and row, permanently."""
        with self._writing() as connection:
            connection.executemany("DELETE FROM counts WHERE ref = ?", ((bytes_of(ref),) for ref in refs))
            connection.executemany(
                "DELETE FROM vectors WHERE session = ? AND row = ?",
                ((bytes_of(session), bytes_of(row)) for session, row in rows),
            )
        self._database.rewrite()

    def fact(self, kind: str, key: str) -> JsonText | None:
        """Return the fact of that kind and key, or None."""
        with self._database.working() as connection:
            query = "SELECT value FROM facts WHERE kind = ? AND key = ?"
            row = connection.execute(query, (bytes_of(kind), bytes_of(key))).fetchone()
            return None if row is None else text_of_bytes(row[0])

    def keep_fact(self, kind: str, key: str, value: JsonText, now: datetime) -> None:
        """Keep a fact; it replaces an older one."""
        with self._writing() as connection:
            _keep_fact(connection, kind, key, value, now)

    def keep_facts(self, kind: str, values: Mapping[str, JsonText], now: datetime) -> None:
        """Keep several facts of a kind, all or none."""
        with self._writing() as connection:
            for key, value in values.items():
                _keep_fact(connection, kind, key, value, now)

    def change_fact(
        self, kind: str, key: str, change: Callable[[JsonText | None], JsonText | None], now: datetime
    ) -> JsonText | None:
        """Read, change and keep a fact as one step; return the new value."""
        with self._writing() as connection:
            before = self.fact(kind, key)
            after = change(before)
            if after is None:
                _drop_fact(connection, kind, key)
            elif after != before:
                _keep_fact(connection, kind, key, after, now)
            return after

    def drop_fact(self, kind: str, key: str) -> None:
        """Drop one fact; one that does not exist is not an error."""
        with self._writing() as connection:
            _drop_fact(connection, kind, key)

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


def _keep_fact(connection: sqlite3.Connection, kind: str, key: str, value: JsonText, now: datetime) -> None:
    values = (*(bytes_of(text) for text in (kind, key, value)), now.timestamp())
    connection.execute("INSERT OR REPLACE INTO facts (kind, key, value, kept) VALUES (?, ?, ?, ?)", values)


def _drop_fact(connection: sqlite3.Connection, kind: str, key: str) -> None:
    connection.execute("DELETE FROM facts WHERE kind = ? AND key = ?", (bytes_of(kind), bytes_of(key)))


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > VERSION:
        raise StoreError(f"{path.name} was written by a newer Everlong (version {version}, this one reads {VERSION})")
    if version == VERSION:
        return
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        for migration in MIGRATIONS[version:]:
            for statement in migration:
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {VERSION}")

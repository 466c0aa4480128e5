"""What was learned: token counts by message, windows and calibrations by name."""

import sqlite3
from collections.abc import Mapping, Sequence
from datetime import datetime

from everlong.store.sqlite.columns import kept_text, kept_time, text_from

__all__ = ["counts", "drop_facts", "fact", "facts", "keep_counts", "keep_fact"]

AT_ONCE = 500  # references asked for in one query


def counts(db: sqlite3.Connection, vocabulary: str, refs: Sequence[str]) -> dict[str, int]:
    """The counts that are known."""
    found: dict[str, int] = {}
    for start in range(0, len(refs), AT_ONCE):
        some = [kept_text(ref) for ref in refs[start : start + AT_ONCE]]
        marks = ", ".join("?" * len(some))
        rows = db.execute(
            f"SELECT ref, tokens FROM counts WHERE vocabulary = ? AND ref IN ({marks})", (kept_text(vocabulary), *some)
        )
        found |= {text_from(ref): tokens for ref, tokens in rows}
    return found


def keep_counts(db: sqlite3.Connection, vocabulary: str, known: Mapping[str, int]) -> None:
    """Keep counts; newer ones replace older ones."""
    db.executemany(
        "INSERT OR REPLACE INTO counts (vocabulary, ref, tokens) VALUES (?, ?, ?)",
        [(kept_text(vocabulary), kept_text(ref), tokens) for ref, tokens in known.items()],
    )


def fact(db: sqlite3.Connection, kind: str, name: str) -> str | None:
    """The value of that kind and name."""
    query = "SELECT value FROM facts WHERE kind = ? AND name = ?"
    row = db.execute(query, (kept_text(kind), kept_text(name))).fetchone()
    return None if row is None else text_from(row[0])


def keep_fact(db: sqlite3.Connection, kind: str, name: str, value: str, now: datetime) -> None:
    """Keep a value; the newest counts."""
    db.execute(
        """INSERT INTO facts (kind, name, value, kept) VALUES (?, ?, ?, ?)
        ON CONFLICT (kind, name) DO UPDATE SET value = excluded.value, kept = excluded.kept""",
        (kept_text(kind), kept_text(name), kept_text(value), kept_time(now)),
    )


def drop_facts(db: sqlite3.Connection, kind: str, before: datetime) -> int:
    """Forget what was last kept before that time; how many."""
    return db.execute("DELETE FROM facts WHERE kind = ? AND kept < ?", (kept_text(kind), kept_time(before))).rowcount


def facts(db: sqlite3.Connection, kind: str) -> dict[str, str]:
    """All of one kind."""
    rows = db.execute("SELECT name, value FROM facts WHERE kind = ? ORDER BY name", (kept_text(kind),))
    return {text_from(name): text_from(value) for name, value in rows}

"""The log of a thread: its rows with their bodies, large texts and references, and its pins.

Rows are only ever added; `removal` takes whole threads away. The costly work (encoding, hashing, terms) is done by
`prepared` before the store is locked.
"""

import re
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from everlong.core import Entry, Hit, Message, Opened, Pin, Role, Row, bytes_of
from everlong.errors import StoreError
from everlong.store.bodies import (
    Body,
    EntryKind,
    body_of,
    entry_of,
    large_texts_in,
    original_of,
    refs_of,
    text_of_bytes,
)
from everlong.store.rules import check_entries, new_pin, pins_before, same_pin, target_of, withdrawn_by
from everlong.store.sqlite import search
from everlong.store.sqlite.catalog import StoredThread
from everlong.store.sqlite.schema import kept_text, kept_time, text_from, time_from
from everlong.store.terms import found_by

__all__ = [
    "Prepared",
    "add_rows",
    "copy_pins",
    "copy_rows",
    "counted",
    "hit_at",
    "last_messages",
    "open_at",
    "original",
    "pin",
    "pins_of",
    "point_rows",
    "positions_of",
    "prepared",
    "row_at",
    "rows_between",
    "unpin",
]

SELECT = "SELECT position, name, time, kind, bodies.body FROM log JOIN bodies ON bodies.number = log.body"
REFERENCE = re.compile(r"[0-9a-f]{16}")
POINT, WITHDRAWAL, MESSAGE = int(EntryKind.POINT), int(EntryKind.WITHDRAWAL), int(EntryKind.MESSAGE)


@dataclass(frozen=True, slots=True)
class Prepared:
    """An entry with all that is stored of it."""

    entry: Entry
    body: Body
    refs: frozenset[str]
    terms: dict[str, float]


def prepared(entry: Entry) -> Prepared:
    """The entry, ready to be written."""
    return Prepared(entry, body_of(entry), refs_of(entry), found_by(entry) if isinstance(entry, Message) else {})


def add_rows(db: sqlite3.Connection, stored: StoredThread, rows: Sequence[Row], ready: Sequence[Prepared]) -> None:
    """Add rows at the end of a thread. Raises StoreError if one refers to a row that does not exist."""
    check_entries(stored.thread.id, rows, _withdrawable(db, stored.number, rows))
    for row, item in zip(rows, ready, strict=True):
        db.executemany(
            "INSERT OR IGNORE INTO texts (name, content) VALUES (?, ?)",
            ((name, bytes_of(text)) for name, text in item.body.large.items()),
        )
        body = db.execute("INSERT INTO bodies (body) VALUES (?)", (item.body.text,)).lastrowid
        db.execute(
            "INSERT INTO log (thread, position, name, time, kind, target, body) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                *(stored.number, row.order, kept_text(row.id), kept_time(row.time)),
                *(int(item.body.kind), target_of(row.entry), body),
            ),
        )
        db.executemany(
            "INSERT OR IGNORE INTO refs (thread, ref, position) VALUES (?, ?, ?)",
            ((stored.number, bytes.fromhex(ref), row.order) for ref in item.refs),
        )
        db.executemany("INSERT INTO text_uses (text, body) VALUES (?, ?)", ((name, body) for name in item.body.large))
        if body is not None and isinstance(row.entry, Message):
            search.add(db, stored.owner, body, item.terms)


def copy_rows(db: sqlite3.Connection, source: int, target: int, stop: int) -> None:
    """Give a new thread the first rows of another; the two share the bodies."""
    db.execute(
        """INSERT INTO log (thread, position, name, time, kind, target, body)
        SELECT ?, position, name, time, kind, target, body FROM log WHERE thread = ? AND position < ?""",
        (target, source, stop),
    )
    db.execute(
        "INSERT INTO refs (thread, ref, position) SELECT ?, ref, position FROM refs WHERE thread = ? AND position < ?",
        (target, source, stop),
    )


def positions_of(db: sqlite3.Connection, thread: int, names: Sequence[str]) -> dict[str, int]:
    """The positions of the rows of these names, as far as they exist."""
    positions = {}
    for name in names:
        row = db.execute("SELECT position FROM log WHERE thread = ? AND name = ?", (thread, kept_text(name))).fetchone()
        if row is not None:
            positions[name] = int(row[0])
    return positions


def rows_between(db: sqlite3.Connection, thread: int, start: int, stop: int) -> Iterator[Row]:
    """Iterate over the rows from `start` to `stop`."""
    columns = db.execute(
        f"{SELECT} WHERE thread = ? AND position >= ? AND position < ? ORDER BY position", (thread, start, stop)
    )
    return (_row(db, fields) for fields in columns)


def row_at(db: sqlite3.Connection, thread: int, position: int) -> Row:
    """Return the row at an existing position."""
    (row,) = rows_between(db, thread, position, position + 1)
    return row


def counted(db: sqlite3.Connection, thread: int, stop: int) -> tuple[int, int]:
    """Count the messages and the points before a position."""
    query = "SELECT count(*) FROM log WHERE thread = ? AND kind = ? AND position < ?"
    messages, points = (db.execute(query, (thread, kind, stop)).fetchone()[0] for kind in (MESSAGE, POINT))
    return messages, points


def last_messages(db: sqlite3.Connection, thread: int, count: int) -> list[Row]:
    """Return the rows of the last `count` messages, oldest first."""
    columns = db.execute(
        f"{SELECT} WHERE thread = ? AND kind = {MESSAGE} ORDER BY position DESC LIMIT ?", (thread, count)
    ).fetchall()
    return [_row(db, fields) for fields in reversed(columns)]


def point_rows(db: sqlite3.Connection, thread: int) -> list[tuple[Row, bool]]:
    """Return every point, and whether it still stands."""
    withdrawn = {
        target
        for (target,) in db.execute(f"SELECT target FROM log WHERE thread = ? AND kind = {WITHDRAWAL}", (thread,))
    }
    columns = db.execute(f"{SELECT} WHERE thread = ? AND kind = {POINT} ORDER BY position", (thread,)).fetchall()
    return [(_row(db, fields), fields[0] not in withdrawn) for fields in columns]


def open_at(db: sqlite3.Connection, stored: StoredThread, stop: int, pins: tuple[Pin, ...]) -> Opened:
    """Return what the view is made of when the thread has `stop` rows. Rows that a point covers are not read."""
    standing = db.execute(
        f"""SELECT position, target FROM log WHERE thread = :thread AND kind = {POINT} AND position < :stop
        AND position NOT IN (
            SELECT target FROM log WHERE thread = :thread AND kind = {WITHDRAWAL} AND position < :stop)
        ORDER BY position DESC LIMIT 1""",
        {"thread": stored.number, "stop": stop},
    ).fetchone()
    head = tuple(takewhile(_is_system, rows_between(db, stored.number, 0, stop)))
    point, boundary = None, 0
    if standing is not None:
        point, boundary = row_at(db, stored.number, standing[0]), standing[1]
    rows = tuple(rows_between(db, stored.number, max(len(head), boundary), stop))
    return Opened(stored.thread, head, point, rows, pins)


def original(db: sqlite3.Connection, thread: int, ref: str) -> bytes | None:
    """Return the bytes that a reference names, or None."""
    if not REFERENCE.fullmatch(ref):
        return None
    query = "SELECT position FROM refs WHERE thread = ? AND ref = ?"
    row = db.execute(query, (thread, bytes.fromhex(ref))).fetchone()
    return None if row is None else original_of(row_at(db, thread, row[0]).entry, ref)


def hit_at(db: sqlite3.Connection, place: search.Place, around: int) -> Hit:
    """The message at a place that a search found, with the rows around it."""
    (name,) = db.execute("SELECT name FROM threads WHERE number = ?", (place.thread,)).fetchone()
    rows = tuple(rows_between(db, place.thread, max(0, place.position - around), place.position + around + 1))
    return Hit(text_from(name), next(row for row in rows if row.order == place.position), place.score, rows)


def _row(db: sqlite3.Connection, fields: tuple[Any, ...]) -> Row:
    position, name, time, kind, body = fields
    large = {}
    for wanted in large_texts_in(body):
        content = db.execute("SELECT content FROM texts WHERE name = ?", (wanted,)).fetchone()
        if content is not None:
            large[wanted] = text_of_bytes(content[0])
    return Row(position, text_from(name), time_from(time), entry_of(kind, body, large))


def _is_system(row: Row) -> bool:
    return isinstance(row.entry, Message) and row.entry.role is Role.SYSTEM


def _withdrawable(db: sqlite3.Connection, thread: int, rows: Sequence[Row]) -> list[int]:
    """The positions that these rows withdraw, as far as points stand there."""
    query = f"SELECT 1 FROM log WHERE thread = ? AND kind = {POINT} AND position = ?"
    return [at for at in withdrawn_by(rows) if db.execute(query, (thread, at)).fetchone()]


def pin(db: sqlite3.Connection, stored: StoredThread, order: int | None, text: str) -> Pin:
    """Pin a row or a text. Returns the existing pin if there is one for the same."""
    wanted = new_pin(order, text)
    if order is not None and not (0 <= order < stored.thread.length and _is_message(db, stored.number, order)):
        raise StoreError(f"thread {stored.thread.id!r} has no message {order} to pin")
    same = same_pin(pins_of(db, stored.number), wanted)
    if same is None:
        db.execute(
            "INSERT INTO pins (thread, name, position, body) VALUES (?, ?, ?, ?)",
            (stored.number, wanted.id, wanted.order, kept_text(wanted.text)),
        )
    return same or wanted


def unpin(db: sqlite3.Connection, thread: int, pin: str) -> None:
    """Remove a pin."""
    db.execute("DELETE FROM pins WHERE thread = ? AND name = ?", (thread, kept_text(pin)))


def pins_of(db: sqlite3.Connection, thread: int, before: int | None = None) -> tuple[Pin, ...]:
    """Return the pins in the order they were made; with `before` only texts and pins of earlier rows."""
    rows = db.execute("SELECT name, position, body FROM pins WHERE thread = ? ORDER BY number", (thread,))
    pins = (Pin(text_from(name), position, text_from(body)) for name, position, body in rows)
    return pins_before(pins, before)


def copy_pins(db: sqlite3.Connection, source: int, target: int, stop: int) -> None:
    """Give a branch the pinned texts and the pins of the rows it has."""
    db.execute(
        """INSERT INTO pins (thread, name, position, body) SELECT ?, name, position, body FROM pins
        WHERE thread = ? AND (position IS NULL OR position < ?) ORDER BY number""",
        (target, source, stop),
    )


def _is_message(db: sqlite3.Connection, thread: int, order: int) -> bool:
    row = db.execute("SELECT kind FROM log WHERE thread = ? AND position = ?", (thread, order)).fetchone()
    return row is not None and row[0] == EntryKind.MESSAGE

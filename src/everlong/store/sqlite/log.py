"""The log of a thread: its rows with their bodies, large texts and references, and its pins.

Rows are only ever added; `removal` takes whole threads away. The costly work (encoding, hashing, terms) is done by
`prepared` before the store is locked.
"""

import re
import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from everlong.core import Entry, Hit, Message, Opened, Pin, Role, Row, bytes_of
from everlong.errors import StoreError
from everlong.store.bodies import Body, EntryKind, body_of, large_texts_in, original_of, refs_of, text_of_bytes
from everlong.store.damage import StoredRow, is_readable
from everlong.store.rules import check_entries, new_pin, pins_before, same_pin, target_of, withdrawn_by
from everlong.store.sqlite import search
from everlong.store.sqlite.catalog import StoredThread, name_of
from everlong.store.sqlite.connections import Link
from everlong.store.sqlite.schema import kept_text, kept_time, readable, text_from, time_from
from everlong.store.sqlite_file import code_of
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

COLUMNS = "log.thread, position, name, time, kind, target"
SELECT = f"SELECT {COLUMNS}, bodies.body FROM log LEFT JOIN bodies ON bodies.number = log.body"
AT_HEAD = 8  # rows that are read at once to find the end of the leading system text
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


def add_rows(db: Link, stored: StoredThread, rows: Sequence[Row], ready: Sequence[Prepared]) -> None:
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


def copy_rows(db: Link, source: int, target: int, stop: int) -> None:
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


def positions_of(db: Link, thread: int, names: Sequence[str]) -> dict[str, int]:
    """The positions of the rows of these names, as far as they exist."""
    positions = {}
    for name in names:
        row = db.execute("SELECT position FROM log WHERE thread = ? AND name = ?", (thread, kept_text(name))).fetchone()
        if row is not None:
            positions[name] = int(row[0])
    return positions


def rows_between(db: Link, thread: int, start: int, stop: int) -> list[Row]:
    """Return the rows from `start` to `stop`."""
    return _rows(db, "WHERE thread = ? AND position >= ? AND position < ? ORDER BY position", (thread, start, stop))


def row_at(db: Link, thread: int, position: int) -> Row:
    """Return the row at an existing position."""
    (row,) = rows_between(db, thread, position, position + 1)
    return row


def counted(db: Link, thread: int, stop: int) -> tuple[int, int]:
    """Count the messages and the points before a position."""
    query = "SELECT count(*) FROM log WHERE thread = ? AND kind = ? AND position < ?"
    messages, points = (db.execute(query, (thread, kind, stop)).fetchone()[0] for kind in (MESSAGE, POINT))
    return messages, points


def last_messages(db: Link, thread: int, count: int) -> list[Row]:
    """Return the rows of the last `count` messages, oldest first."""
    where = f"WHERE thread = ? AND kind = {MESSAGE} ORDER BY position DESC LIMIT ?"
    return _rows(db, where, (thread, count))[::-1]


def point_rows(db: Link, thread: int) -> list[tuple[Row, bool]]:
    """Return every point, and whether it still stands."""
    withdrawn = {
        target
        for (target,) in db.execute(f"SELECT target FROM log WHERE thread = ? AND kind = {WITHDRAWAL}", (thread,))
    }
    points = _rows(db, f"WHERE thread = ? AND kind = {POINT} ORDER BY position", (thread,))
    return [(row, row.order not in withdrawn and is_readable(row)) for row in points]


def open_at(db: Link, stored: StoredThread, stop: int, pins: tuple[Pin, ...]) -> Opened:
    """Return what the view is made of when the thread has `stop` rows. Rows that a point covers are not read."""
    standing = db.execute(
        f"""SELECT position, target FROM log WHERE thread = :thread AND kind = {POINT} AND position < :stop
        AND position NOT IN (
            SELECT target FROM log WHERE thread = :thread AND kind = {WITHDRAWAL} AND position < :stop)
        ORDER BY position DESC""",
        {"thread": stored.number, "stop": stop},
    )
    head = _head(db, stored.number, stop)
    points = ((row_at(db, stored.number, position), boundary) for position, boundary in standing)
    point, boundary = next((found for found in points if is_readable(found[0])), (None, 0))
    rows = tuple(rows_between(db, stored.number, max(len(head), boundary), stop))
    return Opened(stored.thread, head, point, rows, pins)


def _head(db: Link, thread: int, stop: int) -> tuple[Row, ...]:
    """The rows of the leading system text."""
    head: list[Row] = []
    for first in range(0, stop, AT_HEAD):
        some = rows_between(db, thread, first, min(stop, first + AT_HEAD))
        head += takewhile(_is_system, some)
        if len(head) < first + len(some):
            break
    return tuple(head)


def original(db: Link, thread: int, ref: str) -> bytes | None:
    """Return the bytes that a reference names, or None."""
    if not REFERENCE.fullmatch(ref):
        return None
    query = "SELECT position FROM refs WHERE thread = ? AND ref = ?"
    row = db.execute(query, (thread, bytes.fromhex(ref))).fetchone()
    return None if row is None else original_of(row_at(db, thread, row[0]).entry, ref)


def hit_at(db: Link, place: search.Place, around: int) -> Hit:
    """The message at a place that a search found, with the rows around it."""
    rows = tuple(rows_between(db, place.thread, max(0, place.position - around), place.position + around + 1))
    return Hit(name_of(db, place.thread), next(row for row in rows if row.order == place.position), place.score, rows)


def _rows(db: Link, where: str, values: tuple[int, ...]) -> list[Row]:
    """Read rows, also where a page of the file is damaged: then each body by itself."""
    try:
        columns = db.execute(f"{SELECT} {where}", values).fetchall()
    except sqlite3.DatabaseError as error:
        if code_of(error) != sqlite3.SQLITE_CORRUPT:
            raise
        places = db.execute(f"SELECT {COLUMNS}, log.body FROM log {where}", values).fetchall()
        columns = [(*place, _or_none(db, "SELECT body FROM bodies WHERE number = ?", body)) for *place, body in places]
    return [_row(db, fields) for fields in columns]


def _row(db: Link, fields: tuple[Any, ...]) -> Row:
    thread, position, name, time, kind, target, body = fields
    large: dict[str, str] = {}
    for wanted in large_texts_in(body) if isinstance(body, str) else ():
        content = _or_none(db, "SELECT content FROM texts WHERE name = ?", wanted)
        with suppress(UnicodeDecodeError):
            if isinstance(content, bytes):
                large[wanted] = text_of_bytes(content)
    stored = StoredRow(
        order=position,
        id=readable(text_from, name),
        time=readable(time_from, time),
        kind=kind,
        body=body,
        target=target,
    )
    return db.damage.row(lambda: name_of(db, thread), stored, large)


def _or_none(db: Link, query: str, value: int | str) -> object:
    """The one value that a query finds; None if there is none, or the page that holds it is damaged."""
    try:
        found = db.execute(query, (value,)).fetchone()
    except sqlite3.DatabaseError as error:
        if code_of(error) != sqlite3.SQLITE_CORRUPT:
            raise
        return None
    return None if found is None else found[0]


def _is_system(row: Row) -> bool:
    return isinstance(row.entry, Message) and row.entry.role is Role.SYSTEM


def _withdrawable(db: Link, thread: int, rows: Sequence[Row]) -> list[int]:
    """The positions that these rows withdraw, as far as points stand there."""
    query = f"SELECT 1 FROM log WHERE thread = ? AND kind = {POINT} AND position = ?"
    return [at for at in withdrawn_by(rows) if db.execute(query, (thread, at)).fetchone()]


def pin(db: Link, stored: StoredThread, order: int | None, text: str) -> Pin:
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


def unpin(db: Link, thread: int, pin: str) -> None:
    """Remove a pin."""
    db.execute("DELETE FROM pins WHERE thread = ? AND name = ?", (thread, kept_text(pin)))


def pins_of(db: Link, thread: int, before: int | None = None) -> tuple[Pin, ...]:
    """Return the pins in the order they were made; with `before` only texts and pins of earlier rows."""
    rows = db.execute("SELECT name, position, body FROM pins WHERE thread = ? ORDER BY number", (thread,))
    pins = (Pin(text_from(name), position, text_from(body)) for name, position, body in rows)
    return pins_before(pins, before)


def copy_pins(db: Link, source: int, target: int, stop: int) -> None:
    """Give a branch the pinned texts and the pins of the rows it has."""
    db.execute(
        """INSERT INTO pins (thread, name, position, body) SELECT ?, name, position, body FROM pins
        WHERE thread = ? AND (position IS NULL OR position < ?) ORDER BY number""",
        (target, source, stop),
    )


def _is_message(db: Link, thread: int, order: int) -> bool:
    row = db.execute("SELECT kind FROM log WHERE thread = ? AND position = ?", (thread, order)).fetchone()
    return row is not None and row[0] == EntryKind.MESSAGE

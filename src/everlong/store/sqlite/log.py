"""The log of a thread: its rows with their bodies, large texts and references, and its pins.

Rows are only ever added; only `removal` deletes whole threads, and `erasure` messages. A row that a removal names is
marked, and read as gone. `prepared` does the costly work (encoding, hashing, terms) before the store is locked.
"""

import re
import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from everlong.core import (
    Entry,
    Gone,
    Hit,
    Message,
    Opened,
    Pin,
    Point,
    Removal,
    Restoration,
    Row,
    bytes_of,
    leads,
    system_rows,
)
from everlong.errors import StoreError
from everlong.store.bodies import Body, EntryKind, body_of, large_texts_in, original_of, refs_of, text_of_bytes
from everlong.store.damage import StoredRow, is_readable
from everlong.store.rules import MOST, check_entries, new_pin, pins_before, referred_by, same_pin, target_of
from everlong.store.sqlite import search
from everlong.store.sqlite.catalog import StoredThread, change_thread, name_of
from everlong.store.sqlite.connections import Link
from everlong.store.sqlite.schema import kept_text, kept_time, readable, text_from, time_from
from everlong.store.sqlite_file import code_of
from everlong.store.terms import found_by

__all__ = [
    "Prepared",
    "add_rows",
    "body_number",
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
    "stored_rows",
    "unpin",
]

COLUMNS = "log.thread, position, name, time, kind, target, removed"
SELECT = f"SELECT {COLUMNS}, bodies.body FROM log LEFT JOIN bodies ON bodies.number = log.body"
AT_HEAD = 8  # rows that are read at once to find the end of the leading system text
REFERENCE = re.compile(r"[0-9a-f]{16}")
POINT, WITHDRAWAL, MESSAGE = int(EntryKind.POINT), int(EntryKind.WITHDRAWAL), int(EntryKind.MESSAGE)
GONE = int(EntryKind.GONE)
KINDS = frozenset(map(int, EntryKind))


@dataclass(frozen=True, slots=True)
class Prepared:
    """An entry with everything that is stored of it."""

    entry: Entry
    body: Body
    refs: frozenset[str]
    terms: dict[str, float]


def prepared(entry: Entry) -> Prepared:
    """Return the entry, ready to be written."""
    return Prepared(entry, body_of(entry), refs_of(entry), found_by(entry) if isinstance(entry, Message) else {})


def add_rows(db: Link, stored: StoredThread, rows: Sequence[Row], ready: Sequence[Prepared]) -> None:
    """Add rows at the end of a thread. Raises StoreError if one refers to a row that does not exist."""
    check_entries(stored.thread.id, rows, _kinds(db, stored.number, referred_by(rows)))
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
        _mark(db, stored.number, row)
    if rows:
        _count(db, stored, rows)


def _mark(db: Link, thread: int, row: Row) -> None:
    """Mark the rows that a removal names, or remove the marks for a restoration."""
    match row.entry:
        case Removal(orders):
            query = "UPDATE log SET removed = ? WHERE thread = ? AND position = ?"
            db.executemany(query, ((row.order, thread, order) for order in orders))
        case Restoration(removal):
            db.execute("UPDATE log SET removed = NULL WHERE thread = ? AND removed = ?", (thread, removal))
        case _:
            pass


def _count(db: Link, stored: StoredThread, added: Sequence[Row]) -> None:
    """Update the figures of a thread for the rows that were added."""
    thread = stored.thread
    messages = thread.messages + sum(isinstance(row.entry, Message) for row in added)
    if any(isinstance(row.entry, Removal | Restoration) for row in added):
        query = f"SELECT count(*) FROM log WHERE thread = ? AND kind = {MESSAGE} AND removed IS NULL"
        ((messages,),) = db.execute(query, (stored.number,))
    change_thread(
        db,
        stored.number,
        {
            "length": thread.length + len(added),
            "messages": messages,
            "points": thread.points + sum(isinstance(row.entry, Point) for row in added),
            "updated": kept_time(added[0].time),
        },
    )


def copy_rows(db: Link, source: int, target: int, stop: int) -> None:
    """Give a new thread the first rows of another; the two share the bodies. Removed rows are copied as marks."""
    db.execute(
        f"""INSERT INTO log (thread, position, name, time, kind, target, body)
        SELECT ?, position, name, time, iif(removed IS NULL, kind, {GONE}), iif(removed IS NULL, target, NULL),
        iif(removed IS NULL, body, 0) FROM log WHERE thread = ? AND position < ?""",
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


def rows_between(db: Link, thread: int, start: int, stop: int, *, as_read: bool = True) -> list[Row]:
    """Return the rows from `start` to `stop`. Without `as_read`, removed rows are as they were appended."""
    where = "WHERE thread = ? AND position >= ? AND position < ? ORDER BY position"
    return _rows(db, where, (thread, start, stop), as_read=as_read)


def stored_rows(db: Link, stored: StoredThread) -> list[Row]:
    """Return all rows of a thread as they were appended, including removed ones."""
    return rows_between(db, stored.number, 0, MOST, as_read=False)


def body_number(db: Link, thread: int, position: int) -> int:
    """The body of the row at an existing position."""
    ((body,),) = db.execute("SELECT body FROM log WHERE thread = ? AND position = ?", (thread, position))
    return int(body)


def row_at(db: Link, thread: int, position: int) -> Row:
    """Return the row at an existing position."""
    (row,) = rows_between(db, thread, position, position + 1)
    return row


def counted(db: Link, thread: int, stop: int) -> tuple[int, int]:
    """Count the messages and the points before a position."""
    query = "SELECT count(*) FROM log WHERE thread = ? AND kind = ? AND removed IS NULL AND position < ?"
    messages, points = (db.execute(query, (thread, kind, stop)).fetchone()[0] for kind in (MESSAGE, POINT))
    return messages, points


def last_messages(db: Link, thread: int, count: int) -> list[Row]:
    """Return the rows of the last `count` messages, oldest first."""
    where = f"WHERE thread = ? AND kind = {MESSAGE} AND removed IS NULL ORDER BY position DESC LIMIT ?"
    return _rows(db, where, (thread, count))[::-1]


def point_rows(db: Link, thread: int) -> list[tuple[Row, bool]]:
    """Return every point, and whether it is still in force."""
    withdrawn = {
        target
        for (target,) in db.execute(f"SELECT target FROM log WHERE thread = ? AND kind = {WITHDRAWAL}", (thread,))
    }
    points = _rows(db, f"WHERE thread = ? AND kind = {POINT} AND removed IS NULL ORDER BY position", (thread,))
    return [(row, row.order not in withdrawn and is_readable(row)) for row in points]


def open_at(db: Link, stored: StoredThread, stop: int, pins: tuple[Pin, ...]) -> Opened:
    """Return the parts of a view when the thread has `stop` rows. Rows that a point covers are not read."""
    standing = db.execute(
        f"""SELECT position, target FROM log WHERE thread = :thread AND kind = {POINT} AND position < :stop
        AND removed IS NULL AND position NOT IN (
            SELECT target FROM log WHERE thread = :thread AND kind = {WITHDRAWAL} AND position < :stop)
        ORDER BY position DESC""",
        {"thread": stored.number, "stop": stop},
    )
    head = _head(db, stored.number, stop)
    points = ((row_at(db, stored.number, position), boundary) for position, boundary in standing)
    point, boundary = next((found for found in points if is_readable(found[0])), (None, 0))
    rows = tuple(rows_between(db, stored.number, max(len(head), boundary), stop))
    return Opened(stored.thread, system_rows(head), point, rows, pins)


def _head(db: Link, thread: int, stop: int) -> tuple[Row, ...]:
    """The rows of the leading system text, including removed rows among them."""
    head: list[Row] = []
    for first in range(0, stop, AT_HEAD):
        some = rows_between(db, thread, first, min(stop, first + AT_HEAD))
        head += takewhile(lambda row: leads(row.entry), some)
        if len(head) < first + len(some):
            break
    return tuple(head)


def original(db: Link, thread: int, ref: str) -> bytes | None:
    """Return the bytes that a reference names, or None."""
    if not REFERENCE.fullmatch(ref):
        return None
    query = "SELECT position FROM refs WHERE thread = ? AND ref = ?"
    row = db.execute(query, (thread, bytes.fromhex(ref))).fetchone()
    if row is None:
        return None
    known = row_at(db, thread, row[0])
    if not isinstance(known.entry, Gone):
        return original_of(known.entry, ref)
    # That row was removed, but a later row may have the same content.
    rest = _rows(db, "WHERE thread = ? AND position > ? AND removed IS NULL ORDER BY position", (thread, row[0]))
    return next((content for later in rest if (content := original_of(later.entry, ref)) is not None), None)


def hit_at(db: Link, place: search.Place, around: int) -> Hit:
    """Return the message that a search found, with the rows around it."""
    rows = tuple(rows_between(db, place.thread, max(0, place.position - around), place.position + around + 1))
    return Hit(name_of(db, place.thread), next(row for row in rows if row.order == place.position), place.score, rows)


def _rows(db: Link, where: str, values: tuple[int, ...], *, as_read: bool = True) -> list[Row]:
    """Read rows. If a page of the file is damaged, each body is read by itself, so that the others can be read."""
    try:
        columns = db.execute(f"{SELECT} {where}", values).fetchall()
    except sqlite3.DatabaseError as error:
        if code_of(error) != sqlite3.SQLITE_CORRUPT:
            raise
        places = db.execute(f"SELECT {COLUMNS}, log.body FROM log {where}", values).fetchall()
        columns = [(*place, _or_none(db, "SELECT body FROM bodies WHERE number = ?", body)) for *place, body in places]
    return [_row(db, fields, as_read=as_read) for fields in columns]


def _row(db: Link, fields: tuple[Any, ...], *, as_read: bool) -> Row:
    thread, position, name, time, kind, target, removal, body = fields
    removed = kind == GONE or (as_read and removal is not None)
    large: dict[str, str] = {}
    for wanted in large_texts_in(body) if isinstance(body, str) and not removed else ():
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
        removed=removed,
    )
    return db.damage.row(lambda: name_of(db, thread), stored, large)


def _or_none(db: Link, query: str, value: int | str) -> object:
    """Return the value that a query finds; None if there is none, or if its page is damaged."""
    try:
        found = db.execute(query, (value,)).fetchone()
    except sqlite3.DatabaseError as error:
        if code_of(error) != sqlite3.SQLITE_CORRUPT:
            raise
        return None
    return None if found is None else found[0]


def _kinds(db: Link, thread: int, positions: Sequence[int]) -> dict[int, EntryKind]:
    """Return the kinds of the rows at these positions; removed rows count as GONE."""
    query = "SELECT kind, removed FROM log WHERE thread = ? AND position = ?"
    found = ((at, db.execute(query, (thread, at)).fetchone()) for at in positions)
    kinds = ((at, row[0] if row[1] is None else GONE) for at, row in found if row is not None)
    return {at: EntryKind(kind) for at, kind in kinds if kind in KINDS}


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
    """Return the pins in the order they were made; with `before`, only texts and pins of earlier rows."""
    rows = db.execute(
        """SELECT name, position, body FROM pins WHERE thread = :thread AND NOT EXISTS (SELECT 1 FROM log
        WHERE log.thread = :thread AND log.position = pins.position AND removed IS NOT NULL) ORDER BY number""",
        {"thread": thread},
    )
    pins = (Pin(text_from(name), position, text_from(body)) for name, position, body in rows)
    return pins_before(pins, before)


def copy_pins(db: Link, source: int, target: int, stop: int) -> None:
    """Give a branch the pinned texts and the pins of the rows it has."""
    db.execute(
        """INSERT INTO pins (thread, name, position, body) SELECT ?, name, position, body FROM pins
        WHERE thread = ? AND (position IS NULL OR position < ?) AND NOT EXISTS (SELECT 1 FROM log
        WHERE log.thread = pins.thread AND log.position = pins.position AND removed IS NOT NULL) ORDER BY number""",
        (target, source, stop),
    )


def _is_message(db: Link, thread: int, order: int) -> bool:
    return _kinds(db, thread, [order]).get(order) is EntryKind.MESSAGE

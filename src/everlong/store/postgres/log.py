"""The log of a thread and its pins. Writers take the lock of the thread's row, so that appends have one order."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import LiteralString
from uuid import UUID

from everlong.core import Message, Opened, Pin, Point, Role, Row, Thread, Withdrawal, bytes_of
from everlong.errors import NoThread, StoreError, ThreadExists
from everlong.store.bodies import EntryKind, text_of_bytes
from everlong.store.damage import is_readable
from everlong.store.postgres.connections import Link
from everlong.store.postgres.rows import ROW_COLUMNS, Prepared, page, rows_of, standing_point, write
from everlong.store.postgres.schema import THREAD_COLUMNS, name_key, thread_of
from everlong.store.rules import (
    added_rows,
    at_most,
    check_branch,
    check_entries,
    pins_before,
    same_pin,
    withdrawn_by,
)

__all__ = [
    "StoredThread",
    "append",
    "branch",
    "create",
    "get_thread",
    "open_at",
    "pin",
    "pins_of",
    "points_of",
    "row_named",
]


@dataclass(frozen=True, slots=True)
class StoredThread:
    """A thread with its number in the database, and how many of its rows are leading system text."""

    number: int
    head: int
    thread: Thread


def get_thread(link: Link, thread: str, *, locked: bool = False) -> StoredThread:
    """Return the thread; with `locked` nobody else appends to it before the transaction ends. Raises NoThread."""
    lock: LiteralString = " FOR UPDATE" if locked else ""
    columns = link.execute(
        f"SELECT number, head, {THREAD_COLUMNS} FROM everlong.threads WHERE sha256(id) = %s{lock}", (name_key(thread),)
    ).fetchone()
    if columns is None:
        raise NoThread(f"there is no thread {thread!r}")
    found = thread_of(columns[2:], link.damage)
    if found is None:
        raise StoreError(f"thread {thread!r} cannot be read: its row in the store is damaged")
    return StoredThread(columns[0], columns[1], found)


def create(link: Link, thread: Thread, call: UUID) -> tuple[StoredThread, bool]:
    """Create a thread; return it and whether it is new. Raises ThreadExists unless this very call made it before."""
    made = link.execute(
        "INSERT INTO everlong.threads (id, owner, title, created, updated, parent, shared, settings, metadata, made_by)"
        " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING RETURNING number",
        (
            *(bytes_of(text) for text in (thread.id, thread.owner, thread.title)),
            thread.created,
            thread.updated,
            bytes_of(thread.parent[0]),
            thread.parent[1],
            bytes_of(thread.settings),
            bytes_of(thread.metadata),
            call,
        ),
    ).fetchone()
    if made is not None:
        return StoredThread(made[0], 0, thread), True
    known = link.execute(
        "SELECT number FROM everlong.threads WHERE sha256(id) = %s AND made_by = %s", (name_key(thread.id), call)
    ).fetchone()
    if known is None:
        raise ThreadExists(f"there is a thread {thread.id!r} already")
    return get_thread(link, thread.id), False


def append(
    link: Link,
    thread: str,
    new: Mapping[str, Prepared],
    expected: int | None,
    moment: Callable[[datetime], datetime],
) -> tuple[Row, ...]:
    """Append the entries whose ids are new; return the rows of all, in the order of the ids.

    `moment` returns when that happens, given when the thread changed last.
    """
    stored = get_thread(link, thread, locked=True)
    known = {row.id: row for row in _by_ids(link, stored.number, list(new))}
    entries = ((name, item.entry) for name, item in new.items() if name not in known)
    added = added_rows(thread, stored.thread.length, expected, entries, lambda: moment(stored.thread.updated))
    check_entries(thread, added, _points_among(link, stored.number, withdrawn_by(added)))
    if added:
        words = write(link, stored.number, stored.thread.owner, {row: new[row.id] for row in added})
        link.execute(
            "UPDATE everlong.threads SET updated = %s, length = length + %s, messages = messages + %s,"
            " points = points + %s, head = %s, words = words + %s WHERE number = %s",
            (
                added[0].time,
                len(added),
                sum(isinstance(row.entry, Message) for row in added),
                sum(isinstance(row.entry, Point) for row in added),
                _head(stored, added),
                words,
                stored.number,
            ),
        )
    known |= {row.id: row for row in added}
    return tuple(known[name] for name in new)


def branch(link: Link, thread: str, order: int, new: Thread, call: UUID) -> Thread:
    """Create `new` with the first `order` rows of the thread and all that belongs to them."""
    source = get_thread(link, thread, locked=True)  # otherwise it may be removed while it is copied
    check_branch(thread, source.thread.length, order)
    made, is_new = create(link, new, call)
    if not is_new:
        return made.thread
    values = {"new": made.number, "old": source.number, "order": order}
    for statement in _COPIES:
        link.execute(statement, values)
    link.execute(_COUNT, {**values, "head": min(source.head, order)})
    return get_thread(link, new.id).thread


_COPIES: tuple[LiteralString, ...] = (
    "INSERT INTO everlong.rows (thread, place, id, time, kind, target, size, body) SELECT %(new)s, place, id, time,"
    " kind, target, size, body FROM everlong.rows WHERE thread = %(old)s AND place < %(order)s",
    "INSERT INTO everlong.refs SELECT %(new)s, ref, place FROM everlong.refs"
    " WHERE thread = %(old)s AND place < %(order)s",
    "INSERT INTO everlong.text_uses (thread, text, place) SELECT %(new)s, text, place FROM everlong.text_uses"
    " WHERE thread = %(old)s AND place < %(order)s",
    "INSERT INTO everlong.terms SELECT %(new)s, place, words, keys FROM everlong.terms"
    " WHERE thread = %(old)s AND place < %(order)s",
    "INSERT INTO everlong.pins (thread, id, place, content) SELECT %(new)s, id, place, content FROM everlong.pins"
    " WHERE thread = %(old)s AND (place IS NULL OR place < %(order)s) ORDER BY number",
)
_COUNT: LiteralString = (
    "UPDATE everlong.threads SET length = %(order)s, head = %(head)s, messages = counted.messages,"
    " points = counted.points, words = (SELECT coalesce(sum(words), 0) FROM everlong.terms WHERE thread = %(new)s)"
    " FROM (SELECT count(*) FILTER (WHERE kind = 0) AS messages, count(*) FILTER (WHERE kind = 1) AS points"
    " FROM everlong.rows WHERE thread = %(new)s) AS counted WHERE number = %(new)s"
)


def open_at(link: Link, thread: str, before: int | None) -> Opened:
    """Return what the view is made of. Rows added after the thread's length was read are ignored."""
    stored = get_thread(link, thread)
    length = min(at_most(before), stored.thread.length)
    point = standing_point(link, stored.number, length)
    head = min(stored.head, length)
    boundary = point.entry.boundary if point and isinstance(point.entry, Point) else 0
    return Opened(
        stored.thread,
        tuple(_between(link, stored.number, 0, head)),
        point,
        tuple(_between(link, stored.number, max(head, boundary), length)),
        pins_before(pins_of(link, stored.number), before),
    )


def points_of(link: Link, thread: str) -> list[tuple[Row, bool]]:
    """Return every point, oldest first, and whether it still stands."""
    number = get_thread(link, thread).number
    columns = link.execute(
        f"SELECT {ROW_COLUMNS} FROM everlong.rows WHERE thread = %s AND kind <> 0 AND kind = ANY(%s) ORDER BY place",
        (number, [EntryKind.POINT, EntryKind.WITHDRAWAL]),
    )
    rows = rows_of(link, columns)
    withdrawn = {row.entry.point for row in rows if isinstance(row.entry, Withdrawal)}
    points = (row for row in rows if isinstance(row.entry, Point))
    return [(row, row.order not in withdrawn and is_readable(row)) for row in points]


def pins_of(link: Link, number: int) -> tuple[Pin, ...]:
    """Return the pins of a thread in the order they were made."""
    rows = link.execute("SELECT id, place, content FROM everlong.pins WHERE thread = %s ORDER BY number", (number,))
    return tuple(Pin(text_of_bytes(name), place, text_of_bytes(text)) for name, place, text in rows)


def pin(link: Link, thread: str, wanted: Pin) -> Pin:
    """Pin a row or a text; return the existing pin for the same. Raises StoreError if there is no such message."""
    stored = get_thread(link, thread, locked=True)
    order = wanted.order
    if order is not None and not (0 <= order < stored.thread.length and _is_message(link, stored.number, order)):
        raise StoreError(f"thread {thread!r} has no message {wanted.order} to pin")
    known = same_pin(pins_of(link, stored.number), wanted)
    if known is None:
        link.execute(
            "INSERT INTO everlong.pins (thread, id, place, content) VALUES (%s, %s, %s, %s)",
            (stored.number, bytes_of(wanted.id), wanted.order, bytes_of(wanted.text)),
        )
    return known or wanted


def row_named(link: Link, thread: str, name: str) -> Row | None:
    """Return the row with that id, or None."""
    return next(iter(_by_ids(link, get_thread(link, thread).number, [name])), None)


def _is_message(link: Link, number: int, place: int) -> bool:
    rows = link.execute(
        "SELECT FROM everlong.rows WHERE thread = %s AND place = %s AND kind = %s", (number, place, EntryKind.MESSAGE)
    )
    return rows.fetchone() is not None


def _by_ids(link: Link, number: int, names: Sequence[str]) -> list[Row]:
    columns = link.execute(
        f"SELECT {ROW_COLUMNS} FROM everlong.rows WHERE thread = %s AND sha256(id) = ANY(%s)",
        (number, [name_key(name) for name in names]),
    )
    return rows_of(link, columns)


def _points_among(link: Link, number: int, orders: Sequence[int]) -> list[int]:
    """The orders of these rows that are points."""
    if not orders:
        return []
    rows = link.execute(
        "SELECT place FROM everlong.rows WHERE thread = %s AND place = ANY(%s::bigint[]) AND kind = %s",
        (number, list(orders), EntryKind.POINT),
    )
    return [place for (place,) in rows]


def _between(link: Link, number: int, start: int, stop: int) -> list[Row]:
    rows: list[Row] = []
    while start < stop:
        rows += page(link, number, start, stop)
        start = rows[-1].order + 1
    return rows


def _head(stored: StoredThread, added: Sequence[Row]) -> int:
    """How many leading rows are system text once these rows are added."""
    head = stored.head
    for row in added:
        if row.order != head or not isinstance(row.entry, Message) or row.entry.role is not Role.SYSTEM:
            break
        head += 1
    return head

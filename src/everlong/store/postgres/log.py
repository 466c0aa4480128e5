"""The log of a thread and its pins. Writers take the lock of the thread's row, so that appends have one order."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import LiteralString
from uuid import UUID

from everlong.core import (
    Message,
    Opened,
    Pin,
    Point,
    Removal,
    Restoration,
    Role,
    Row,
    Thread,
    Withdrawal,
    bytes_of,
    system_rows,
)
from everlong.errors import NoThread, StoreError, ThreadExists
from everlong.store.bodies import EntryKind, text_of_bytes
from everlong.store.damage import is_readable
from everlong.store.postgres.connections import Link
from everlong.store.postgres.rows import (
    ROW_COLUMNS,
    Prepared,
    keys_of_message,
    page,
    rows_of,
    standing_point,
    word_count,
    write,
)
from everlong.store.postgres.schema import THREAD_COLUMNS, name_key, thread_of
from everlong.store.rules import (
    added_rows,
    at_most,
    check_branch,
    check_entries,
    pins_before,
    referred_by,
    same_pin,
)
from everlong.store.terms import found_by

__all__ = [
    "StoredThread",
    "add_rows",
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
    """A thread with its number in the database, and how many leading rows are system text or gone."""

    number: int
    head: int
    thread: Thread


def get_thread(link: Link, thread: str, *, locked: bool = False) -> StoredThread:
    """Return the thread. With `locked`, nobody else appends to it before the transaction ends. Raises NoThread."""
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
    """Create a thread; return it and whether it is new. Raises ThreadExists unless this same call created it before."""
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
        raise ThreadExists(f"thread {thread.id!r} already exists")
    return get_thread(link, thread.id), False


def append(
    link: Link,
    thread: str,
    new: Mapping[str, Prepared],
    expected: int | None,
    moment: Callable[[datetime], datetime],
) -> tuple[Row, ...]:
    """Append the entries whose ids are new; return the rows of all, in the order of the ids.

    `moment` returns the time of the new rows, given the thread's last change.
    """
    stored = get_thread(link, thread, locked=True)
    known = {row.id: row for row in _by_ids(link, stored.number, list(new))}
    entries = ((name, item.entry) for name, item in new.items() if name not in known)
    added = added_rows(thread, stored.thread.length, expected, entries, lambda: moment(stored.thread.updated))
    check_entries(thread, added, _kinds(link, stored.number, referred_by(added)))
    if added:
        add_rows(link, stored, {row: new[row.id] for row in added})
    known |= {row.id: row for row in added}
    return tuple(known[name] for name in new)


def add_rows(link: Link, stored: StoredThread, added: Mapping[Row, Prepared]) -> None:
    """Write rows at the end of a thread, which the caller has locked, and bring its figures up to date."""
    rows = list(added)
    words = write(link, stored.number, stored.thread.owner, added)
    link.execute(
        "UPDATE everlong.threads SET updated = %s, length = length + %s, messages = messages + %s,"
        " points = points + %s, head = %s, words = words + %s WHERE number = %s",
        (
            rows[0].time,
            len(rows),
            sum(isinstance(row.entry, Message) for row in rows),
            sum(isinstance(row.entry, Point) for row in rows),
            _head(stored, rows),
            words,
            stored.number,
        ),
    )
    for row in rows:
        match row.entry:
            case Removal(orders):
                _hide(link, stored, row.order, orders)
            case Restoration(removal):
                _show(link, stored, removal)
            case _:
                continue
    if any(isinstance(row.entry, Removal | Restoration) for row in rows):
        link.execute(_COUNT_SHOWN, {"thread": stored.number, "system": SYSTEM_TEXT})


def _hide(link: Link, stored: StoredThread, removal: int, orders: Sequence[int]) -> None:
    """Mark the rows that a removal names. No search finds them."""
    places = (stored.number, list(orders))
    link.execute("UPDATE everlong.rows SET removed = %s WHERE thread = %s AND place = ANY(%s)", (removal, *places))
    link.execute("DELETE FROM everlong.terms WHERE thread = %s AND place = ANY(%s)", places)


def _show(link: Link, stored: StoredThread, removal: int) -> None:
    """Remove the marks of a removal, so that searches find its rows again."""
    back = rows_of(
        link,
        link.execute(
            f"SELECT {ROW_COLUMNS} FROM everlong.rows WHERE thread = %s AND removed = %s", (stored.number, removal)
        ),
        as_read=False,
    )
    link.execute("UPDATE everlong.rows SET removed = NULL WHERE thread = %s AND removed = %s", (stored.number, removal))
    for row in back:
        if isinstance(row.entry, Message):
            terms = found_by(row.entry)
            link.execute(
                "INSERT INTO everlong.terms VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING",
                (stored.number, row.order, word_count(terms), keys_of_message(stored.thread.owner, terms)),
            )


#: How the body of system text begins.
SYSTEM_TEXT = '{"role":"system"%'
_COUNT_SHOWN: LiteralString = (
    "UPDATE everlong.threads SET messages = (SELECT count(*) FROM everlong.rows WHERE thread = %(thread)s AND kind = 0"
    " AND rows.removed IS NULL), words = (SELECT coalesce(sum(words), 0) FROM everlong.terms"
    " WHERE thread = %(thread)s), head = coalesce((SELECT place FROM everlong.rows WHERE thread = %(thread)s"
    " AND rows.removed IS NULL AND kind <> 6 AND NOT (kind = 0 AND body LIKE %(system)s) ORDER BY place LIMIT 1),"
    " length) WHERE number = %(thread)s"
)


def branch(link: Link, thread: str, order: int, new: Thread, call: UUID) -> Thread:
    """Create `new` with the first `order` rows of the thread and everything that belongs to them."""
    source = get_thread(link, thread, locked=True)  # otherwise it could be removed while it is copied
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
    # Removed rows are copied as marks.
    "INSERT INTO everlong.rows (thread, place, id, time, kind, target, size, body) SELECT %(new)s, place, id, time,"
    " CASE WHEN removed IS NULL THEN kind ELSE 6 END, CASE WHEN removed IS NULL THEN target END,"
    " CASE WHEN removed IS NULL THEN size ELSE 2 END, CASE WHEN removed IS NULL THEN body ELSE '{}' END"
    " FROM everlong.rows WHERE thread = %(old)s AND place < %(order)s",
    "INSERT INTO everlong.refs SELECT %(new)s, ref, place FROM everlong.refs"
    " WHERE thread = %(old)s AND place < %(order)s",
    "INSERT INTO everlong.text_uses (thread, text, place) SELECT %(new)s, text, place FROM everlong.text_uses AS used"
    " WHERE thread = %(old)s AND place < %(order)s AND (NOT EXISTS (SELECT FROM everlong.rows WHERE"
    " rows.thread = used.thread AND rows.place = used.place AND removed IS NOT NULL) OR EXISTS (SELECT FROM"
    " everlong.rows WHERE rows.thread = used.thread AND rows.place < %(order)s AND removed IS NULL"
    " AND position(encode(used.text, 'hex') IN body) > 0))",
    "INSERT INTO everlong.terms SELECT %(new)s, place, words, keys FROM everlong.terms"
    " WHERE thread = %(old)s AND place < %(order)s",
    "INSERT INTO everlong.pins (thread, id, place, content) SELECT %(new)s, id, place, content FROM everlong.pins"
    " WHERE thread = %(old)s AND (place IS NULL OR place < %(order)s) AND NOT EXISTS (SELECT FROM everlong.rows"
    " WHERE rows.thread = pins.thread AND rows.place = pins.place AND removed IS NOT NULL) ORDER BY number",
)
_COUNT: LiteralString = (
    "UPDATE everlong.threads SET length = %(order)s, head = %(head)s, messages = counted.messages,"
    " points = counted.points, words = (SELECT coalesce(sum(words), 0) FROM everlong.terms WHERE thread = %(new)s)"
    " FROM (SELECT count(*) FILTER (WHERE kind = 0) AS messages, count(*) FILTER (WHERE kind = 1) AS points"
    " FROM everlong.rows WHERE thread = %(new)s) AS counted WHERE number = %(new)s"
)


def open_at(link: Link, thread: str, before: int | None) -> Opened:
    """Return the parts of a view. Rows that are added while it reads are ignored."""
    stored = get_thread(link, thread)
    length = min(at_most(before), stored.thread.length)
    point = standing_point(link, stored.number, length)
    head = min(stored.head, length)
    boundary = point.entry.boundary if point and isinstance(point.entry, Point) else 0
    return Opened(
        stored.thread,
        system_rows(_between(link, stored.number, 0, head)),
        point,
        tuple(_between(link, stored.number, max(head, boundary), length)),
        pins_before(pins_of(link, stored.number), before),
    )


def points_of(link: Link, thread: str) -> list[tuple[Row, bool]]:
    """Return every point, oldest first, and whether it is still in force."""
    number = get_thread(link, thread).number
    columns = link.execute(
        f"SELECT {ROW_COLUMNS} FROM everlong.rows WHERE thread = %s AND kind <> 0 AND kind = ANY(%s)"
        " AND removed IS NULL ORDER BY place",
        (number, [EntryKind.POINT, EntryKind.WITHDRAWAL]),
    )
    rows = rows_of(link, columns)
    withdrawn = {row.entry.point for row in rows if isinstance(row.entry, Withdrawal)}
    points = (row for row in rows if isinstance(row.entry, Point))
    return [(row, row.order not in withdrawn and is_readable(row)) for row in points]


def pins_of(link: Link, number: int) -> tuple[Pin, ...]:
    """Return the pins of a thread in the order they were made."""
    rows = link.execute(
        "SELECT id, place, content FROM everlong.pins WHERE thread = %s AND NOT EXISTS (SELECT FROM everlong.rows"
        " WHERE rows.thread = pins.thread AND rows.place = pins.place AND removed IS NOT NULL) ORDER BY number",
        (number,),
    )
    return tuple(Pin(text_of_bytes(name), place, text_of_bytes(text)) for name, place, text in rows)


def pin(link: Link, thread: str, wanted: Pin) -> Pin:
    """Pin a row or a text; return an existing pin of the same. Raises StoreError if there is no such message."""
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
    return _kinds(link, number, [place]).get(place) is EntryKind.MESSAGE


def _by_ids(link: Link, number: int, names: Sequence[str]) -> list[Row]:
    columns = link.execute(
        f"SELECT {ROW_COLUMNS} FROM everlong.rows WHERE thread = %s AND sha256(id) = ANY(%s)",
        (number, [name_key(name) for name in names]),
    )
    return rows_of(link, columns)


def _kinds(link: Link, number: int, places: Sequence[int]) -> dict[int, EntryKind]:
    """Return the kinds of the rows at these places; removed rows count as GONE."""
    if not places:
        return {}
    rows = link.execute(
        "SELECT place, CASE WHEN removed IS NULL THEN kind ELSE %s END FROM everlong.rows"
        " WHERE thread = %s AND place = ANY(%s::bigint[])",
        (int(EntryKind.GONE), number, list(places)),
    )
    return {place: EntryKind(kind) for place, kind in rows}


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

"""Rows of a log, read and written in the caller's transaction, with their large texts and search keys.

A search key is a 64-bit hash of the owner, the term and a level, so that one index serves all owners and none sees
another's. A message has the first key of every term it contains, the second if it contains much of the term, the third
if it contains very much. So the index alone says how much.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, LiteralString

from everlong.core import Entry, Message, Row, bytes_of
from everlong.errors import NoThread
from everlong.store.bodies import Body, EntryKind, body_of, large_texts_in, refs_of, text_of_bytes
from everlong.store.damage import StoredRow, is_readable
from everlong.store.postgres.connections import Link
from everlong.store.rules import target_of
from everlong.store.terms import found_by

__all__ = [
    "LEVELS",
    "ROW_COLUMNS",
    "TEXTS_LOCK",
    "Columns",
    "Prepared",
    "key_of",
    "keys_of_message",
    "page",
    "prepare",
    "rows_of",
    "standing_point",
    "stored_rows",
    "word_count",
    "write",
]

#: For each level, the least amount of a term in a message, and the amount that is assumed then.
LEVELS: tuple[tuple[float, float], ...] = ((0.0, 1.0), (2.0, 2.5), (5.0, 7.0))


def key_of(owner: str, term: str, level: int) -> int:
    """The key of an owner's term at a level."""
    personal = blake2b(bytes_of(owner), digest_size=16).digest()
    return _key(personal, term, level)


def keys_of_message(owner: str, terms: Mapping[str, float]) -> list[int]:
    """All keys that a message with these terms has."""
    personal = blake2b(bytes_of(owner), digest_size=16).digest()
    return [
        _key(personal, term, level)
        for term, held in terms.items()
        for level, (least, _) in enumerate(LEVELS)
        if held >= least
    ]


def word_count(terms: Mapping[str, float]) -> int:
    """The length of a message for ranking."""
    return round(sum(terms.values()))


def _key(personal: bytes, term: str, level: int) -> int:
    digest = blake2b(bytes_of(term), digest_size=8, key=personal, salt=bytes((level,))).digest()
    return int.from_bytes(digest, "little", signed=True)


ROW_COLUMNS: LiteralString = "thread, place, id, time, kind, target, removed, body"
Columns = Sequence[Any]

#: Shared by all writers of large texts, exclusive for a removal: otherwise a text could be deleted with its last thread
#: while another process adds it again.
TEXTS_LOCK = 0x65766573

GONE = "the thread was removed while it was read"
PAGE_ROWS = 200
PAGE_CHARACTERS = 4_000_000  # a page ends before it exceeds this, or after its first row


def rows_of(link: Link, found: Iterable[Columns], *, as_read: bool = True) -> list[Row]:
    """Read the rows in `ROW_COLUMNS`, their large texts put back. Raises NoThread if they were removed.

    Without `as_read`, removed rows are returned as they were appended.
    """
    columns = [(*rest, removed if as_read else None, body) for *rest, removed, body in found]
    names = {name for *_, removed, body in columns if removed is None for name in large_texts_in(body)}
    large: dict[str, str] = {}
    if names:
        texts = link.execute(
            "SELECT name, content FROM everlong.texts WHERE name = ANY(%s)", ([bytes.fromhex(name) for name in names],)
        )
        found_texts = {name.hex(): _text(content) for name, content in texts}
        _check_in_use(link, names - found_texts.keys())
        large = {name: text for name, text in found_texts.items() if text is not None}
    return [_row(link, fields, large) for fields in columns]


def _row(link: Link, fields: Columns, large: Mapping[str, str]) -> Row:
    thread, place, name, time, kind, target, removal, body = fields
    removed = removal is not None or kind == EntryKind.GONE
    stored = StoredRow(order=place, id=_text(name), time=time, kind=kind, body=body, target=target, removed=removed)
    return link.damage.row(lambda: _name_of(link, thread), stored, large)


def _text(column: bytes) -> str | None:
    """The text of a column; None if it is damaged."""
    try:
        return text_of_bytes(column)
    except UnicodeDecodeError:
        return None


def _name_of(link: Link, thread: int) -> str:
    """The name of a thread; its number if the name cannot be read."""
    found = link.execute("SELECT id FROM everlong.threads WHERE number = %s", (thread,)).fetchone()
    return (found and _text(found[0])) or f"number {thread}"


def _check_in_use(link: Link, missing: set[str]) -> None:
    """Raise NoThread if these texts are not in use: they were deleted with the last thread that used them."""
    if missing:
        query = "SELECT FROM everlong.text_uses WHERE text = ANY(%s)"
        if link.execute(query, ([bytes.fromhex(name) for name in missing],)).fetchone() is None:
            raise NoThread(GONE)


def page(link: Link, thread: int, start: int, stop: int) -> list[Row]:
    """Read one page of rows from `start` on.

    Raises NoThread if there are none: the caller knows that they existed, so the thread was removed meanwhile.
    """
    columns = link.execute(
        f"SELECT {ROW_COLUMNS} FROM (SELECT *, sum(size) OVER (ORDER BY place) AS total FROM ("
        "SELECT * FROM everlong.rows WHERE thread = %s AND place >= %s AND place < %s ORDER BY place LIMIT %s"
        ") AS few) AS summed WHERE total - size < %s ORDER BY place",
        (thread, start, stop, PAGE_ROWS, PAGE_CHARACTERS),
    )
    rows = rows_of(link, columns)
    if not rows:
        raise NoThread(GONE)
    return rows


def stored_rows(link: Link, thread: int) -> list[Row]:
    """All rows of a thread as they were appended, including removed ones."""
    query: LiteralString = f"SELECT {ROW_COLUMNS} FROM everlong.rows WHERE thread = %s ORDER BY place"
    return rows_of(link, link.execute(query, (thread,)), as_read=False)


def standing_point(link: Link, thread: int, before: int, *, newest: bool = True) -> Row | None:
    """The newest readable point in force among the first `before` rows."""
    found = link.execute(
        f"SELECT {ROW_COLUMNS} FROM everlong.rows AS points WHERE thread = %s AND kind = %s AND place < %s"
        " AND removed IS NULL"
        " AND NOT EXISTS (SELECT FROM everlong.rows AS gone WHERE gone.thread = points.thread AND gone.kind = %s"
        " AND gone.target = points.place AND gone.place < %s) ORDER BY place DESC LIMIT %s",
        (thread, EntryKind.POINT, before, EntryKind.WITHDRAWAL, before, 1 if newest else None),
    )
    points = rows_of(link, found)
    if newest and points and not is_readable(points[0]):
        return standing_point(link, thread, before, newest=False)
    return next(filter(is_readable, points), None)


@dataclass(frozen=True, slots=True)
class Prepared:
    """Everything that an entry adds to the tables, computed before anything is locked."""

    entry: Entry
    body: Body
    refs: tuple[bytes, ...]
    terms: Mapping[str, float] | None


def prepare(entry: Entry) -> Prepared:
    """Return the entry, ready to be written."""
    terms = found_by(entry) if isinstance(entry, Message) else None
    return Prepared(entry, body_of(entry), tuple(map(bytes_of, refs_of(entry))), terms)


def write(link: Link, thread: int, owner: str, rows: Mapping[Row, Prepared]) -> int:
    """Write new rows with their texts, references and search terms; return their word count.

    The caller holds the thread.
    """
    texts = {bytes.fromhex(name): bytes_of(text) for item in rows.values() for name, text in item.body.large.items()}
    refs = [(ref, row.order) for row, item in rows.items() for ref in item.refs]
    terms = [
        (thread, row.order, word_count(item.terms), keys_of_message(owner, item.terms))
        for row, item in rows.items()
        if item.terms is not None
    ]
    with link.pipeline(), link.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO everlong.rows (thread, place, id, time, kind, target, size, body)"
            " VALUES (%s, %s, %s, %s, %s, %s, %s, %s)",
            [_columns(thread, row, item.body) for row, item in rows.items()],
        )
        if texts:
            cursor.execute("SELECT pg_advisory_xact_lock_shared(%s)", (TEXTS_LOCK,))
            cursor.executemany(  # always in the same order, so that two writers cannot deadlock
                "INSERT INTO everlong.texts VALUES (%s, %s) ON CONFLICT DO NOTHING", sorted(texts.items())
            )
            cursor.executemany(
                "INSERT INTO everlong.text_uses (thread, text, place) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING",
                [(thread, bytes.fromhex(name), row.order) for row, item in rows.items() for name in item.body.large],
            )
        cursor.execute(
            "INSERT INTO everlong.refs SELECT %s, ref, min(place) FROM unnest(%s::bytea[], %s::integer[])"
            " AS new (ref, place) GROUP BY ref ON CONFLICT DO NOTHING",
            (thread, [ref for ref, _ in refs], [place for _, place in refs]),
        )
        if terms:
            cursor.executemany("INSERT INTO everlong.terms VALUES (%s, %s, %s, %s)", terms)
    return sum(words for _, _, words, _ in terms)


def _columns(thread: int, row: Row, body: Body) -> Columns:
    size = len(body.text) + sum(map(len, body.large.values()))
    return (thread, row.order, bytes_of(row.id), row.time, body.kind, target_of(row.entry), size, body.text)

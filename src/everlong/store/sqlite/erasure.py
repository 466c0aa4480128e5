"""Erase messages for privacy. Only this module and `removal` delete appended rows in this store.

The bodies are deleted, with everything that mentions them, in every thread that shares them; a mark stays in each
place. Afterwards the file is rewritten (`Connections.rewrite`), so that no page of it or of the write-ahead log
contains the text. A row in `erasing` records that this is due, for the next process if this one is killed.
"""

from collections.abc import Sequence
from datetime import datetime

from everlong.core import Message, Row
from everlong.store.bodies import EntryKind, encode_event, refs_of
from everlong.store.damage import is_readable
from everlong.store.erasure import Erasure, erasure_of
from everlong.store.rules import new_name
from everlong.store.sqlite import catalog, log, records, search
from everlong.store.sqlite.catalog import StoredThread
from everlong.store.sqlite.connections import Link
from everlong.store.sqlite.schema import kept_text, kept_time
from everlong.store.terms import found_by

__all__ = ["erase"]

GONE = int(EntryKind.GONE)


def erase(db: Link, stored: StoredThread, orders: Sequence[int], now: datetime) -> dict[str, tuple[int, ...]]:
    """Erase messages and return the erased orders, by thread."""
    erasure = _erasure_in(db, stored, orders)
    going = [(stored, erasure), *_shared_with(db, stored, erasure)]
    erased: dict[str, tuple[int, ...]] = {}
    for one, its in going:
        if its.rows:
            _append_removal(db, one, its, now)
            _take_away(db, one, its)
            erased[one.thread.id] = its.orders
    db.executemany("DELETE FROM counts WHERE ref = ?", {(kept_text(ref),) for _, its in going for ref in its.refs})
    if erased:
        db.execute("INSERT INTO words (words) VALUES ('optimize')")  # really deletes the terms from the index
        db.execute("INSERT INTO erasing (since) VALUES (?)", (kept_time(now),))
    return erased


def _erasure_in(db: Link, stored: StoredThread, orders: Sequence[int]) -> Erasure:
    rows = log.stored_rows(db, stored)
    removed = db.execute("SELECT position FROM log WHERE thread = ? AND removed IS NOT NULL", (stored.number,))
    return erasure_of(stored.thread.id, rows, orders, [position for (position,) in removed])


def _shared_with(db: Link, stored: StoredThread, erasure: Erasure) -> list[tuple[StoredThread, Erasure]]:
    """Return the other threads that contain one of these messages, and what is erased from each."""
    shared: dict[int, list[int]] = {}
    for row in erasure.rows:
        if isinstance(row.entry, Message):
            others = db.execute(
                """SELECT other.thread, other.position FROM log JOIN log AS other ON other.body = log.body
                WHERE log.thread = :thread AND log.position = :position AND other.thread <> :thread""",
                {"thread": stored.number, "position": row.order},
            )
            for thread, position in others.fetchall():
                shared.setdefault(thread, []).append(position)
    found = [(catalog.get_thread(db, catalog.name_of(db, thread)), orders) for thread, orders in shared.items()]
    return [(one, _erasure_in(db, one, orders)) for one, orders in found]


def _append_removal(db: Link, stored: StoredThread, erasure: Erasure, now: datetime) -> None:
    """Append the removal that informs readers of the thread."""
    if erasure.shown:
        row = Row(stored.thread.length, new_name(), now, erasure.removal)
        log.add_rows(db, stored, [row], [log.prepared(row.entry)])


def _take_away(db: Link, stored: StoredThread, erasure: Erasure) -> None:
    number, places = stored.number, [(stored.number, order) for order in erasure.orders]
    bodies = {row.order: log.body_number(db, number, row.order) for row in erasure.rows}
    db.executemany(
        f"UPDATE log SET kind = {GONE}, target = NULL, body = 0, removed = NULL WHERE thread = ? AND position = ?",
        places,
    )
    db.executemany("DELETE FROM pins WHERE thread = ? AND position = ?", places)
    db.executemany("DELETE FROM refs WHERE thread = ? AND position = ?", places)
    db.executemany("DELETE FROM vectors WHERE thread = ? AND position = ?", places)
    _refer_again(db, stored, erasure)
    for event in erasure.scrubbed(records.events_after(db, number, "", ())):
        values = (encode_event(event), number, kept_text(event.id))
        db.execute("UPDATE events SET body = ? WHERE thread = ? AND name = ?", values)
    for row in erasure.rows:
        _drop_body(db, stored.owner, bodies[row.order], row)


def _refer_again(db: Link, stored: StoredThread, erasure: Erasure) -> None:
    """Keep the reference of a text that also occurs elsewhere in the thread."""
    rest = ((row.order, refs_of(row.entry) & erasure.refs) for row in log.stored_rows(db, stored))
    db.executemany(
        "INSERT OR IGNORE INTO refs (thread, ref, position) VALUES (?, ?, ?)",
        [(stored.number, bytes.fromhex(ref), order) for order, refs in rest for ref in refs],
    )


def _drop_body(db: Link, owner: int, body: int, row: Row) -> None:
    """Delete a body that no thread uses any more, with its terms and large texts."""
    if db.execute("SELECT 1 FROM log WHERE body = ?", (body,)).fetchone():
        return
    if isinstance(row.entry, Message) and is_readable(row):
        search.take_out(db, owner, body, found_by(row.entry))
    names = [(name,) for (name,) in db.execute("SELECT text FROM text_uses WHERE body = ?", (body,))]
    db.execute("DELETE FROM bodies WHERE number = ?", (body,))
    db.executemany("DELETE FROM text_uses WHERE body = ?", [(body,)] if names else [])
    db.executemany("DELETE FROM texts WHERE name = ?1 AND NOT EXISTS (SELECT 1 FROM text_uses WHERE text = ?1)", names)

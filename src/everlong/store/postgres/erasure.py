"""Erase messages for privacy. Only this module and `removal` delete appended rows in this store.

The bodies are deleted, with everything that mentions them, in every thread of the owner that shares them; a mark stays
in each place. The server's pages may still contain the old rows until VACUUM clears them.
"""

from collections.abc import Sequence
from datetime import datetime

from everlong.core import Message, Row, bytes_of
from everlong.store.bodies import EntryKind, encode_event, large_texts_in, refs_of
from everlong.store.erasure import Erasure, erasure_of
from everlong.store.postgres.connections import Link
from everlong.store.postgres.log import StoredThread, add_rows, get_thread
from everlong.store.postgres.records import events_of
from everlong.store.postgres.rows import TEXTS_LOCK, prepare, stored_rows
from everlong.store.postgres.schema import name_key
from everlong.store.rules import new_name

__all__ = ["erase"]

GONE = int(EntryKind.GONE)


def erase(link: Link, thread: str, orders: Sequence[int], now: datetime) -> dict[str, tuple[int, ...]]:
    """Erase messages and return the erased orders, by thread."""
    erasure = _erasure_in(link, get_thread(link, thread), orders)
    going = {thread: erasure} | _shared_with(link, thread, erasure)
    erased: dict[str, tuple[int, ...]] = {}
    for name in sorted(going):  # always in the same order, so that two erasures cannot deadlock
        stored = get_thread(link, name, locked=True)
        its = _erasure_in(link, stored, [row.order for row in going[name].rows if isinstance(row.entry, Message)])
        if its.rows:
            if its.shown:
                row = Row(stored.thread.length, new_name(), now, its.removal)
                add_rows(link, stored, {row: prepare(row.entry)})
            _take_away(link, stored.number, its)
            erased[name] = its.orders
    refs = {bytes_of(ref) for one in going.values() for ref in one.refs}
    link.execute("DELETE FROM everlong.counts WHERE ref = ANY(%s)", (list(refs),))
    return erased


def _erasure_in(link: Link, stored: StoredThread, orders: Sequence[int]) -> Erasure:
    query = "SELECT place FROM everlong.rows WHERE thread = %s AND removed IS NOT NULL"
    removed = [place for (place,) in link.execute(query, (stored.number,))]
    return erasure_of(stored.thread.id, stored_rows(link, stored.number), orders, removed)


def _shared_with(link: Link, thread: str, erasure: Erasure) -> dict[str, Erasure]:
    """Return the other threads that contain one of these messages, and what is erased from each.

    A branch copies its rows from its parent: order, name, time and body are the same.
    """
    stored = get_thread(link, thread)
    places = [row.order for row in erasure.rows if isinstance(row.entry, Message)]
    found = link.execute(
        "SELECT threads.id, others.place FROM everlong.rows JOIN everlong.rows AS others ON others.place = rows.place"
        " AND others.id = rows.id AND others.time = rows.time AND others.kind = rows.kind AND others.body = rows.body"
        " JOIN everlong.threads ON threads.number = others.thread WHERE rows.thread = %s AND rows.place = ANY(%s)"
        " AND others.thread <> rows.thread AND others.thread = ANY(SELECT number FROM everlong.threads"
        " WHERE sha256(owner) = %s)",
        (stored.number, places, name_key(stored.thread.owner)),
    ).fetchall()
    shared: dict[str, list[int]] = {}
    for name, place in found:
        shared.setdefault(bytes(name).decode("utf-8", "surrogatepass"), []).append(place)
    return {name: _erasure_in(link, get_thread(link, name), orders) for name, orders in shared.items()}


def _take_away(link: Link, number: int, erasure: Erasure) -> None:
    places = list(erasure.orders)
    bodies = link.execute(
        "SELECT body FROM everlong.rows WHERE thread = %s AND place = ANY(%s)", (number, places)
    ).fetchall()
    link.execute(
        "UPDATE everlong.rows SET kind = %s, target = NULL, removed = NULL, size = 2, body = '{}'"
        " WHERE thread = %s AND place = ANY(%s)",
        (GONE, number, places),
    )
    link.execute("DELETE FROM everlong.terms WHERE thread = %s AND place = ANY(%s)", (number, places))
    link.execute("DELETE FROM everlong.pins WHERE thread = %s AND place = ANY(%s)", (number, places))
    link.execute("DELETE FROM everlong.refs WHERE thread = %s AND place = ANY(%s)", (number, places))
    link.execute("DELETE FROM everlong.vectors WHERE thread = %s AND place = ANY(%s)", (number, places))
    _refer_again(link, number, erasure)
    for event in erasure.scrubbed(events_of(link, number)):
        link.execute(
            "UPDATE everlong.events SET body = %s WHERE thread = %s AND sha256(id) = %s",
            (encode_event(event), number, name_key(event.id)),
        )
    _drop_texts(link, number, {bytes.fromhex(name) for (body,) in bodies for name in large_texts_in(body)})


def _refer_again(link: Link, number: int, erasure: Erasure) -> None:
    """Keep the reference of a text that also occurs elsewhere in the thread."""
    for row in stored_rows(link, number):
        for ref in refs_of(row.entry) & erasure.refs:
            link.execute(
                "INSERT INTO everlong.refs VALUES (%s, %s, %s) ON CONFLICT DO NOTHING",
                (number, bytes_of(ref), row.order),
            )


def _drop_texts(link: Link, number: int, names: set[bytes]) -> None:
    """Delete the large texts that are no longer used."""
    if not names:
        return
    link.execute("SELECT pg_advisory_xact_lock(%s)", (TEXTS_LOCK,))
    kept = link.execute("SELECT body FROM everlong.rows WHERE thread = %s AND body LIKE '%%@text%%'", (number,))
    still = {bytes.fromhex(name) for (body,) in kept for name in large_texts_in(body)}
    link.execute("DELETE FROM everlong.text_uses WHERE thread = %s AND text = ANY(%s)", (number, list(names - still)))
    link.execute(
        "DELETE FROM everlong.texts WHERE name = ANY(%s)"
        " AND NOT EXISTS (SELECT FROM everlong.text_uses WHERE text = name)",
        (list(names - still),),
    )

"""Remove a thread, for retention and privacy. Nothing else in this store deletes whole threads.

Branches share bodies, and all threads share large texts: a body or text is deleted with the last thread that uses it.
The index keeps no texts, so the words of a message are computed again to delete them from it. A change in how texts are
split into words therefore needs a migration that rebuilds the index, which search needs as well.
"""

from collections.abc import Mapping
from typing import TypeAlias

from everlong.core import Message
from everlong.store.bodies import EntryKind, large_texts_in
from everlong.store.damage import is_readable
from everlong.store.sqlite import search
from everlong.store.sqlite.catalog import StoredThread, check_same
from everlong.store.sqlite.connections import Link
from everlong.store.sqlite.log import rows_between
from everlong.store.terms import found_by

__all__ = ["Terms", "remove_thread", "terms_between"]

#: From the position of a message to its search terms.
Terms: TypeAlias = dict[int, Mapping[str, float]]

#: The rows of a thread whose bodies no other thread shares.
OWN = """FROM log JOIN bodies ON bodies.number = log.body WHERE thread = :thread
    AND NOT EXISTS (SELECT 1 FROM log AS other WHERE other.body = log.body AND other.thread <> :thread)"""


def terms_between(db: Link, stored: StoredThread, start: int, stop: int) -> Terms:
    """The terms of some messages. This is most of the work, so it is done before other writers have to wait."""
    rows = rows_between(db, stored.number, start, stop, as_read=False)
    return {row.order: found_by(row.entry) for row in rows if isinstance(row.entry, Message) and is_readable(row)}


def _large_texts(db: Link, number: int, body: object) -> list[str]:
    """The large texts of a body, even if it cannot be read."""
    if isinstance(body, str):
        return large_texts_in(body)
    return [name for (name,) in db.execute("SELECT text FROM text_uses WHERE body = ?", (number,))]


def remove_thread(db: Link, stored: StoredThread, known: Terms) -> None:
    """Remove the thread and everything that only it uses. Terms in `known` need not be computed."""
    check_same(db, stored)
    own = db.execute(f"SELECT log.position, log.kind, bodies.number, bodies.body {OWN}", {"thread": stored.number})
    uses: set[tuple[str, int]] = set()
    gone: list[int] = []
    for position, kind, number, body in own.fetchall():
        if kind == EntryKind.MESSAGE:
            terms = known.get(position) or terms_between(db, stored, position, position + 1).get(position, {})
            search.take_out(db, stored.owner, number, terms)
        uses |= {(name, number) for name in _large_texts(db, number, body)}
        gone.append(number)
    for table in ("log", "refs", "pins", "events", "vectors"):
        db.execute(f"DELETE FROM {table} WHERE thread = ?", (stored.number,))
    db.executemany("DELETE FROM bodies WHERE number = ?", ((number,) for number in gone))
    db.executemany("DELETE FROM text_uses WHERE text = ? AND body = ?", uses)
    db.executemany(
        "DELETE FROM texts WHERE name = :name AND NOT EXISTS (SELECT 1 FROM text_uses WHERE text = :name)",
        [{"name": name} for name, _ in uses],
    )
    db.execute("DELETE FROM threads WHERE number = ?", (stored.number,))
    db.execute(
        "DELETE FROM owners WHERE number = :owner AND NOT EXISTS (SELECT 1 FROM threads WHERE owner = :owner)",
        {"owner": stored.owner},
    )

"""Remove a thread, for retention and privacy. Nothing else in this store deletes whole threads.

All threads share large texts: a text is deleted with the last thread that uses it.
"""

from typing import LiteralString

from everlong.store.postgres.connections import Link
from everlong.store.postgres.rows import TEXTS_LOCK

__all__ = ["remove_thread"]

#: The statements for everything that has a thread's number.
_PARTS: tuple[LiteralString, ...] = (
    "DELETE FROM everlong.rows WHERE thread = %s",
    "DELETE FROM everlong.refs WHERE thread = %s",
    "DELETE FROM everlong.terms WHERE thread = %s",
    "DELETE FROM everlong.pins WHERE thread = %s",
    "DELETE FROM everlong.events WHERE thread = %s",
    "DELETE FROM everlong.vectors WHERE thread = %s",
    "DELETE FROM everlong.threads WHERE number = %s",
)


def remove_thread(link: Link, number: int) -> None:
    """Remove the thread with that number, which is never used again, and the texts that only it uses.

    It is not an error if the thread is gone: another process, or an earlier attempt whose confirmation was lost,
    removed it.
    """
    if link.execute("SELECT FROM everlong.threads WHERE number = %s FOR UPDATE", (number,)).fetchone() is None:
        return
    for statement in _PARTS:
        link.execute(statement, (number,))
    link.execute("SELECT pg_advisory_xact_lock(%s)", (TEXTS_LOCK,))
    uses = link.execute("DELETE FROM everlong.text_uses WHERE thread = %s RETURNING text", (number,)).fetchall()
    link.execute(
        "DELETE FROM everlong.texts WHERE name = ANY(%s)"
        " AND NOT EXISTS (SELECT FROM everlong.text_uses WHERE text = name)",
        ([text for (text,) in uses],),
    )

"""Remove a thread: the only module of this engine that takes away what was appended, for retention and privacy.

All threads share large texts: a text goes with the last thread that uses it.
"""

from typing import LiteralString

from everlong.store.postgres.connections import Link
from everlong.store.postgres.rows import TEXTS_LOCK

__all__ = ["remove_thread"]

#: Everything that has a thread's number.
_PARTS: tuple[LiteralString, ...] = (
    "DELETE FROM everlong.rows WHERE thread = %s",
    "DELETE FROM everlong.refs WHERE thread = %s",
    "DELETE FROM everlong.terms WHERE thread = %s",
    "DELETE FROM everlong.pins WHERE thread = %s",
    "DELETE FROM everlong.events WHERE thread = %s",
    "DELETE FROM everlong.threads WHERE number = %s",
)


def remove_thread(link: Link, number: int) -> None:
    """Remove the thread of that number, which no other thread ever gets, and the texts that only it uses.

    A thread that is gone is no error: an earlier attempt whose answer was lost removed it, or another process did.
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

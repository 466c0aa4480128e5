"""The pins of a thread."""

import sqlite3

from everlong.core import Pin
from everlong.errors import StoreError
from everlong.store.bodies import EntryKind
from everlong.store.rules import new_pin, pins_before, same_pin
from everlong.store.sqlite.columns import kept_text, text_from
from everlong.store.sqlite.thread_rows import Found

__all__ = ["add", "copy", "listed", "remove"]


def add(db: sqlite3.Connection, there: Found, order: int | None, text: str) -> Pin:
    """A new pin, or the one that says the same."""
    wanted = new_pin(order, text)
    if order is not None and not (0 <= order < there.thread.length and _is_message(db, there.number, order)):
        raise StoreError(f"thread {there.thread.id!r} has no message {order} to pin")
    same = same_pin(listed(db, there.number), wanted)
    if same is None:
        db.execute(
            "INSERT INTO pins (thread, name, position, body) VALUES (?, ?, ?, ?)",
            (there.number, wanted.id, wanted.order, kept_text(wanted.text)),
        )
    return same or wanted


def remove(db: sqlite3.Connection, thread: int, pin: str) -> None:
    """Let a pin go."""
    db.execute("DELETE FROM pins WHERE thread = ? AND name = ?", (thread, kept_text(pin)))


def listed(db: sqlite3.Connection, thread: int, before: int | None = None) -> tuple[Pin, ...]:
    """The pins in the order they were made; with `before` only those of earlier rows, and texts."""
    rows = db.execute("SELECT name, position, body FROM pins WHERE thread = ? ORDER BY number", (thread,))
    pins = (Pin(text_from(name), position, text_from(body)) for name, position, body in rows)
    return pins_before(pins, before)


def copy(db: sqlite3.Connection, source: int, target: int, stop: int) -> None:
    """Give a branch the pins of the rows it has."""
    db.execute(
        """INSERT INTO pins (thread, name, position, body) SELECT ?, name, position, body FROM pins
        WHERE thread = ? AND (position IS NULL OR position < ?) ORDER BY number""",
        (target, source, stop),
    )


def _is_message(db: sqlite3.Connection, thread: int, order: int) -> bool:
    row = db.execute("SELECT kind FROM log WHERE thread = ? AND position = ?", (thread, order)).fetchone()
    return row is not None and row[0] == EntryKind.MESSAGE

"""The events of a thread: each start has one outcome at most."""

import sqlite3
from collections.abc import Sequence

from everlong.core import OUTCOMES, STARTS, Event, EventKind
from everlong.store.event_bodies import decode_event, encode_event
from everlong.store.rules import new_events
from everlong.store.sqlite.columns import kept_text
from everlong.store.sqlite.thread_rows import Found

__all__ = ["add", "listed", "unfinished"]


def add(db: sqlite3.Connection, there: Found, events: Sequence[Event]) -> None:
    """Keep events that are not there yet. Raises StoreError for an outcome without its start, or a second one."""
    number = there.number
    new = new_events(
        there.thread.id, events, lambda name: _kind(db, number, name), lambda name: _has_outcome(db, number, name)
    )
    db.executemany(
        "INSERT INTO events (thread, name, kind, parent, body) VALUES (?, ?, ?, ?, ?)",
        [
            (number, kept_text(event.id), event.kind.value, kept_text(event.parent), encode_event(event))
            for event in new
        ],
    )


def listed(db: sqlite3.Connection, thread: int, after: str, kinds: Sequence[str]) -> list[Event]:
    """The events after that of the given name, of the given kinds, in the order they came."""
    rows = db.execute(
        """SELECT kind, body FROM events WHERE thread = :thread AND number > ifnull(
            (SELECT number FROM events WHERE thread = :thread AND name = :after), 0) ORDER BY number""",
        {"thread": thread, "after": kept_text(after)},
    )
    wanted = frozenset(str(kind) for kind in kinds)
    return [decode_event(body) for kind, body in rows if not wanted or kind in wanted]


def unfinished(db: sqlite3.Connection, thread: int) -> list[Event]:
    """Starts without an outcome."""
    recorded = listed(db, thread, "", (*OUTCOMES, *STARTS))
    ended = {event.parent for event in recorded if event.kind in STARTS}
    return [event for event in recorded if event.kind in OUTCOMES and event.id not in ended]


def _kind(db: sqlite3.Connection, thread: int, name: str) -> EventKind | None:
    found = db.execute("SELECT kind FROM events WHERE thread = ? AND name = ?", (thread, kept_text(name))).fetchone()
    return None if found is None else EventKind(found[0])


def _has_outcome(db: sqlite3.Connection, thread: int, parent: str) -> bool:
    kinds = db.execute("SELECT kind FROM events WHERE thread = ? AND parent = ?", (thread, kept_text(parent)))
    return any(EventKind(kind) in STARTS for (kind,) in kinds)

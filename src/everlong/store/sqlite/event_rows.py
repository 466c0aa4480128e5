"""The events of a thread: each start has one outcome at most."""

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import fields
from datetime import datetime

from everlong.core.events import OUTCOMES, STARTS, Event, EventKind
from everlong.errors import StoreError
from everlong.store.sqlite.columns import kept_text
from everlong.store.sqlite.thread_rows import Found

__all__ = ["add", "listed", "unfinished"]

FIELDS = tuple(field.name for field in fields(Event))


def add(db: sqlite3.Connection, there: Found, events: Sequence[Event]) -> None:
    """Keep events that are not there yet. Raises StoreError for a second outcome of one start."""
    for event in events:
        key = (there.number, kept_text(event.id))
        if db.execute("SELECT 1 FROM events WHERE thread = ? AND name = ?", key).fetchone():
            continue
        if event.kind in STARTS and event.parent and _has_outcome(db, there.number, event.parent):
            raise StoreError(f"thread {there.thread.id!r}: event {event.parent!r} has an outcome already")
        db.execute(
            "INSERT INTO events (thread, name, kind, parent, body) VALUES (?, ?, ?, ?, ?)",
            (*key, event.kind.value, kept_text(event.parent), _encoded(event)),
        )


def listed(db: sqlite3.Connection, thread: int, after: str, kinds: Sequence[str]) -> list[Event]:
    """The events after that of the given name, of the given kinds, in the order they came."""
    rows = db.execute(
        """SELECT kind, body FROM events WHERE thread = :thread AND number > ifnull(
            (SELECT number FROM events WHERE thread = :thread AND name = :after), 0) ORDER BY number""",
        {"thread": thread, "after": kept_text(after)},
    )
    wanted = frozenset(str(kind) for kind in kinds)
    return [_decoded(body) for kind, body in rows if not wanted or kind in wanted]


def unfinished(db: sqlite3.Connection, thread: int) -> list[Event]:
    """Starts without an outcome."""
    recorded = listed(db, thread, "", (*OUTCOMES, *STARTS))
    ended = {event.parent for event in recorded if event.kind in STARTS}
    return [event for event in recorded if event.kind in OUTCOMES and event.id not in ended]


def _has_outcome(db: sqlite3.Connection, thread: int, parent: str) -> bool:
    kinds = db.execute("SELECT kind FROM events WHERE thread = ? AND parent = ?", (thread, kept_text(parent)))
    return any(EventKind(kind) in STARTS for (kind,) in kinds)


def _encoded(event: Event) -> str:
    values = {name: getattr(event, name) for name in FIELDS}
    values |= {"kind": event.kind.value, "time": event.time.isoformat()}
    return json.dumps({name: value for name, value in values.items() if value not in (None, "")}, separators=(",", ":"))


def _decoded(body: str) -> Event:
    values = json.loads(body)
    kind, time = EventKind(values.pop("kind")), datetime.fromisoformat(values.pop("time"))
    return Event(**{"id": "", **values}, kind=kind, time=time)

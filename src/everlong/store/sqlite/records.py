"""What is stored next to the log: the events of a thread, token counts by message, facts by kind and name."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from everlong.core import OUTCOMES, STARTS, Event, EventKind
from everlong.errors import StoreError
from everlong.store.bodies import EntryKind, decode_event, encode_event
from everlong.store.rules import MOST, new_events
from everlong.store.sqlite.catalog import StoredThread, name_of
from everlong.store.sqlite.connections import Link
from everlong.store.sqlite.schema import kept_text, kept_time, text_from

__all__ = [
    "change_fact",
    "counts",
    "drop_fact",
    "drop_facts",
    "events_after",
    "fact",
    "facts",
    "keep_counts",
    "keep_fact",
    "keep_facts",
    "keep_vectors",
    "record",
    "unfinished",
    "vectors",
]


def record(db: Link, stored: StoredThread, events: Sequence[Event]) -> None:
    """Record the events that are new. Raises StoreError for an outcome without its start, or a second outcome."""
    number = stored.number
    new = new_events(
        stored.thread.id, events, lambda name: _kind(db, number, name), lambda name: _has_outcome(db, number, name)
    )
    db.executemany(
        "INSERT INTO events (thread, name, kind, parent, body) VALUES (?, ?, ?, ?, ?)",
        [
            (number, kept_text(event.id), event.kind.value, kept_text(event.parent), encode_event(event))
            for event in new
        ],
    )


def events_after(db: Link, thread: int, after: str, kinds: Sequence[str]) -> list[Event]:
    """Return the events after the one with the given id, of the given kinds, in the order they came."""
    rows = db.execute(
        """SELECT number, kind, body FROM events WHERE thread = :thread AND number > ifnull(
            (SELECT number FROM events WHERE thread = :thread AND name = :after), 0) ORDER BY number""",
        {"thread": thread, "after": kept_text(after)},
    )
    wanted = frozenset(str(kind) for kind in kinds)
    events = (
        _event(db, thread, number, body) for number, kind, body in rows.fetchall() if not wanted or kind in wanted
    )
    return [event for event in events if event is not None]


def _event(db: Link, thread: int, number: int, body: object) -> Event | None:
    """The event in a body; None, and a warning, if it cannot be read."""
    try:
        if isinstance(body, str):
            return decode_event(body)
    except StoreError:
        pass
    db.damage.event(name_of(db, thread), number)
    return None


def unfinished(db: Link, thread: int) -> list[Event]:
    """Return the starts that have no outcome yet."""
    recorded = events_after(db, thread, "", (*OUTCOMES, *STARTS))
    ended = {event.parent for event in recorded if event.kind in STARTS}
    return [event for event in recorded if event.kind in OUTCOMES and event.id not in ended]


def _kind(db: Link, thread: int, name: str) -> EventKind | None:
    row = db.execute("SELECT kind FROM events WHERE thread = ? AND name = ?", (thread, kept_text(name))).fetchone()
    return None if row is None else EventKind(row[0])


def _has_outcome(db: Link, thread: int, parent: str) -> bool:
    kinds = db.execute("SELECT kind FROM events WHERE thread = ? AND parent = ?", (thread, kept_text(parent)))
    return any(EventKind(kind) in STARTS for (kind,) in kinds)


AT_ONCE = 500  # references in one query


def counts(db: Link, vocabulary: str, refs: Sequence[str]) -> dict[str, int]:
    """Return the token counts that are known."""
    known: dict[str, int] = {}
    for start in range(0, len(refs), AT_ONCE):
        some = [kept_text(ref) for ref in refs[start : start + AT_ONCE]]
        marks = ", ".join("?" * len(some))
        rows = db.execute(
            f"SELECT ref, tokens FROM counts WHERE vocabulary = ? AND ref IN ({marks})", (kept_text(vocabulary), *some)
        )
        known |= {text_from(ref): tokens for ref, tokens in rows}
    return known


def keep_counts(db: Link, vocabulary: str, known: Mapping[str, int]) -> None:
    """Keep token counts; newer ones replace older ones."""
    db.executemany(
        "INSERT OR REPLACE INTO counts (vocabulary, ref, tokens) VALUES (?, ?, ?)",
        [(kept_text(vocabulary), kept_text(ref), tokens) for ref, tokens in known.items()],
    )


def vectors(db: Link, thread: int, model: str, start: int, stop: int) -> dict[int, bytes]:
    """Return the vectors of messages by their position."""
    query = "SELECT position, vector FROM vectors WHERE thread = ? AND model = ? AND position >= ? AND position < ?"
    rows = db.execute(query, (thread, kept_text(model), start, min(stop, MOST)))
    return {position: bytes(vector) for position, vector in rows if isinstance(vector, bytes)}


def keep_vectors(db: Link, thread: int, model: str, known: Mapping[int, bytes]) -> None:
    """Keep the vectors of messages that exist."""
    db.executemany(
        """INSERT OR REPLACE INTO vectors (thread, position, model, vector)
        SELECT thread, position, ?1, ?2 FROM log
        WHERE thread = ?3 AND position = ?4 AND kind = ?5 AND removed IS NULL""",
        [
            (kept_text(model), vector, thread, order, int(EntryKind.MESSAGE))
            for order, vector in known.items()
            if 0 <= order < MOST
        ],
    )


def fact(db: Link, kind: str, name: str) -> str | None:
    """Return the fact of that kind and name, or None."""
    query = "SELECT value FROM facts WHERE kind = ? AND name = ?"
    row = db.execute(query, (kept_text(kind), kept_text(name))).fetchone()
    return None if row is None else text_from(row[0])


def keep_fact(db: Link, kind: str, name: str, value: str, now: datetime) -> None:
    """Keep a fact, replacing an older one."""
    db.execute(
        """INSERT INTO facts (kind, name, value, kept) VALUES (?, ?, ?, ?)
        ON CONFLICT (kind, name) DO UPDATE SET value = excluded.value, kept = excluded.kept""",
        (kept_text(kind), kept_text(name), kept_text(value), kept_time(now)),
    )


def keep_facts(db: Link, kind: str, values: Mapping[str, str], now: datetime) -> None:
    """Keep several facts of a kind."""
    for name, value in values.items():
        keep_fact(db, kind, name, value, now)


def change_fact(
    db: Link, kind: str, name: str, change: Callable[[str | None], str | None], now: datetime
) -> str | None:
    """Read, change and store a fact; return the new value. The transaction must be the only writer."""
    before = fact(db, kind, name)
    after = change(before)
    if after is None:
        drop_fact(db, kind, name)
    elif after != before:
        keep_fact(db, kind, name, after, now)
    return after


def drop_fact(db: Link, kind: str, name: str) -> None:
    """Drop one fact; one that does not exist is not an error."""
    db.execute("DELETE FROM facts WHERE kind = ? AND name = ?", (kept_text(kind), kept_text(name)))


def drop_facts(db: Link, kind: str, before: datetime) -> int:
    """Drop the facts of a kind that were last stored before that time; return how many."""
    return db.execute("DELETE FROM facts WHERE kind = ? AND kept < ?", (kept_text(kind), kept_time(before))).rowcount


def facts(db: Link, kind: str) -> dict[str, str]:
    """Return all facts of a kind."""
    rows = db.execute("SELECT name, value FROM facts WHERE kind = ? ORDER BY name", (kept_text(kind),))
    return {text_from(name): text_from(value) for name, value in rows}

"""What is stored next to the log: the events of a thread, token counts and facts."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import LiteralString

from everlong.core import OUTCOMES, STARTS, Event, EventKind, JsonText, bytes_of
from everlong.errors import StoreError
from everlong.store.bodies import EntryKind, decode_event, encode_event, text_of_bytes
from everlong.store.postgres.connections import Link
from everlong.store.postgres.log import get_thread
from everlong.store.postgres.schema import name_key
from everlong.store.rules import MOST, new_events

__all__ = [
    "Change",
    "change_fact",
    "counts",
    "drop_fact",
    "drop_facts",
    "events_after",
    "events_of",
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


def record(link: Link, thread: str, events: Sequence[Event]) -> None:
    """Record the events that are new, all or none. Raises StoreError for an outcome that is not allowed."""
    number = get_thread(link, thread, locked=True).number
    ended, recorded = _recorded(link, number, events)
    new = new_events(thread, events, recorded.get, ended.__contains__)
    if not new:
        return
    [(first,)] = link.execute(
        "UPDATE everlong.threads SET events = events + %s WHERE number = %s RETURNING events - %s",
        (len(new), number, len(new)),
    ).fetchall()
    with link.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO everlong.events (thread, place, id, kind, parent, body) VALUES (%s, %s, %s, %s, %s, %s)",
            [
                (
                    number,
                    place,
                    bytes_of(event.id),
                    event.kind.value,
                    bytes_of(event.parent) if event.kind in STARTS else None,
                    encode_event(event),
                )
                for place, event in enumerate(new, start=first)
            ],
        )


def events_after(link: Link, thread: str, after: str, kinds: Sequence[str]) -> list[Event]:
    """Return the events after the one with that id (from the start if there is none), of these kinds or of all."""
    number = get_thread(link, thread).number
    wanted = [kind.value for kind in EventKind if not kinds or kind in kinds]
    rows = link.execute(
        "SELECT place, body FROM everlong.events WHERE thread = %s AND kind = ANY(%s) AND place > coalesce("
        "(SELECT place FROM everlong.events WHERE thread = %s AND sha256(id) = %s), -1) ORDER BY place",
        (number, wanted, number, name_key(after)),
    )
    return _events(link, thread, rows)


def events_of(link: Link, number: int) -> list[Event]:
    """Return all events of a thread."""
    rows = link.execute("SELECT place, body FROM everlong.events WHERE thread = %s ORDER BY place", (number,))
    return _events(link, f"number {number}", rows)


def unfinished(link: Link, thread: str) -> list[Event]:
    """Return the starts that have no outcome yet."""
    number = get_thread(link, thread).number
    rows = link.execute(
        "SELECT place, body FROM everlong.events AS begun WHERE thread = %s AND kind = ANY(%s) AND NOT EXISTS"
        " (SELECT FROM everlong.events AS ended WHERE ended.thread = begun.thread AND ended.parent IS NOT NULL"
        " AND sha256(ended.parent) = sha256(begun.id)) ORDER BY place",
        (number, [kind.value for kind in OUTCOMES]),
    )
    return _events(link, thread, rows)


def _events(link: Link, thread: str, rows: Iterable[tuple[int, str]]) -> list[Event]:
    """The events in these bodies; an unreadable one is skipped with a warning."""
    events: list[Event] = []
    for place, body in rows:
        try:
            events.append(decode_event(body))
        except StoreError:
            link.damage.event(thread, place)
    return events


def _recorded(link: Link, number: int, events: Sequence[Event]) -> tuple[set[str], dict[str, EventKind]]:
    """Return which starts that these events end have ended already, and the kinds of recorded events by id."""
    parents = [event.parent for event in events if event.kind in STARTS]
    ended = link.execute(
        "SELECT parent FROM everlong.events WHERE thread = %s AND parent IS NOT NULL AND sha256(parent) = ANY(%s)",
        (number, [name_key(parent) for parent in parents]),
    ).fetchall()
    recorded = link.execute(
        "SELECT id, kind FROM everlong.events WHERE thread = %s AND sha256(id) = ANY(%s)",
        (number, [name_key(name) for name in (*parents, *(event.id for event in events))]),
    ).fetchall()
    return {text_of_bytes(name) for (name,) in ended}, {text_of_bytes(name): EventKind(kind) for name, kind in recorded}


def counts(link: Link, vocabulary: str, refs: Sequence[str]) -> dict[str, int]:
    """Return token counts by reference, as far as they are known."""
    rows = link.execute(
        "SELECT ref, tokens FROM everlong.counts WHERE vocabulary = %s AND ref = ANY(%s)",
        (bytes_of(vocabulary), [bytes_of(ref) for ref in refs]),
    )
    return {text_of_bytes(ref): tokens for ref, tokens in rows}


def keep_counts(link: Link, vocabulary: str, tokens: Mapping[str, int]) -> None:
    """Keep token counts. All writers use one order, so that two of them cannot deadlock."""
    rows = sorted((bytes_of(ref), count) for ref, count in tokens.items())
    link.execute(
        "INSERT INTO everlong.counts SELECT %s, ref, tokens FROM unnest(%s::bytea[], %s::integer[])"
        " AS new (ref, tokens) ON CONFLICT (vocabulary, ref) DO UPDATE SET tokens = excluded.tokens"
        " WHERE counts.tokens <> excluded.tokens",
        (bytes_of(vocabulary), [ref for ref, _ in rows], [count for _, count in rows]),
    )


def vectors(link: Link, number: int, model: str, start: int, stop: int) -> dict[int, bytes]:
    """Return the vectors of messages by their place."""
    rows = link.execute(
        "SELECT place, vector FROM everlong.vectors WHERE thread = %s AND model = %s AND place >= %s AND place < %s",
        (number, bytes_of(model), start, min(stop, MOST)),
    )
    return {place: bytes(vector) for place, vector in rows}


def keep_vectors(link: Link, number: int, model: str, known: Mapping[int, bytes]) -> None:
    """Keep vectors of existing messages. The thread is locked, so that nothing of it is erased meanwhile."""
    link.execute("SELECT FROM everlong.threads WHERE number = %s FOR UPDATE", (number,))
    kept = sorted((place, vector) for place, vector in known.items() if 0 <= place < MOST)
    link.execute(
        "INSERT INTO everlong.vectors (thread, place, model, vector)"
        " SELECT rows.thread, rows.place, %s, new.vector FROM unnest(%s::integer[], %s::bytea[]) AS new (place, vector)"
        " JOIN everlong.rows ON rows.thread = %s AND rows.place = new.place AND rows.kind = %s AND rows.removed IS NULL"
        " ON CONFLICT (thread, model, place) DO UPDATE SET vector = excluded.vector",
        (bytes_of(model), [place for place, _ in kept], [vector for _, vector in kept], number, int(EntryKind.MESSAGE)),
    )


def fact(link: Link, kind: str, key: str) -> JsonText | None:
    """Return the fact of that kind and key, or None."""
    row = link.execute(
        "SELECT value FROM everlong.facts WHERE sha256(kind) = %s AND sha256(key) = %s", (name_key(kind), name_key(key))
    ).fetchone()
    return None if row is None else text_of_bytes(row[0])


def keep_fact(link: Link, kind: str, key: str, value: JsonText, now: datetime) -> None:
    """Keep a fact, replacing an older one."""
    link.execute(
        "INSERT INTO everlong.facts (kind, key, value, kept) VALUES (%s, %s, %s, %s)"
        " ON CONFLICT (sha256(kind), sha256(key)) DO UPDATE SET value = excluded.value, kept = excluded.kept",
        (bytes_of(kind), bytes_of(key), bytes_of(value), now),
    )


def keep_facts(link: Link, kind: str, values: Mapping[str, JsonText], now: datetime) -> None:
    """Keep several facts of a kind. All writers use one order, so that two of them cannot deadlock."""
    rows = sorted((bytes_of(key), bytes_of(value)) for key, value in values.items())
    link.execute(
        "INSERT INTO everlong.facts (kind, key, value, kept)"
        " SELECT %s, key, value, %s FROM unnest(%s::bytea[], %s::bytea[]) AS new (key, value)"
        " ON CONFLICT (sha256(kind), sha256(key)) DO UPDATE SET value = excluded.value, kept = excluded.kept",
        (bytes_of(kind), now, [key for key, _ in rows], [value for _, value in rows]),
    )


@dataclass(slots=True)
class Change:
    """A change of a fact that takes effect once, even if it is repeated after a commit whose confirmation was lost."""

    change: Callable[[JsonText | None], JsonText | None]
    #: The transaction of the last attempt, and the value if it was committed.
    attempt: str = ""
    result: JsonText | None = None

    def is_made(self, link: Link) -> bool:
        """Return whether the last attempt was committed. The caller holds the lock that the attempt needed."""
        if not self.attempt:
            return False
        (state,) = link.execute("SELECT pg_xact_status(%s::xid8)", (self.attempt,)).fetchone() or (None,)
        return bool(state == "committed")


def change_fact(link: Link, kind: str, key: str, change: Change, now: datetime) -> JsonText | None:
    """Read, change and store a fact; return the new value.

    An existing fact is locked. A missing one is created by the first process; the others then read its value.
    """
    names = (name_key(kind), name_key(key))
    where: LiteralString = " WHERE sha256(kind) = %s AND sha256(key) = %s"
    while True:
        row = link.execute("SELECT value FROM everlong.facts" + where + " FOR UPDATE", names).fetchone()
        if change.is_made(link):
            return change.result
        before = None if row is None else text_of_bytes(row[0])
        after = change.change(before)
        if after == before:
            return after
        (attempt,) = link.execute("SELECT pg_current_xact_id()::text").fetchone() or ("",)
        if after is None:
            link.execute("DELETE FROM everlong.facts" + where, names)
        elif row is not None:
            link.execute("UPDATE everlong.facts SET value = %s, kept = %s" + where, (bytes_of(after), now, *names))
        elif not _insert_fact(link, kind, key, after, now):
            continue
        change.attempt, change.result = attempt, after
        return after


def _insert_fact(link: Link, kind: str, key: str, value: JsonText, now: datetime) -> bool:
    """Create a fact, waiting for another process that creates it; return False if that process succeeded."""
    query = "INSERT INTO everlong.facts (kind, key, value, kept) VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING"
    return link.execute(query, (bytes_of(kind), bytes_of(key), bytes_of(value), now)).rowcount == 1


def drop_fact(link: Link, kind: str, key: str) -> None:
    """Drop one fact; one that does not exist is not an error."""
    query = "DELETE FROM everlong.facts WHERE sha256(kind) = %s AND sha256(key) = %s"
    link.execute(query, (name_key(kind), name_key(key)))


def drop_facts(link: Link, kind: str, before: datetime) -> int:
    """Drop the facts of a kind that were last stored before that time; return how many."""
    query = "DELETE FROM everlong.facts WHERE sha256(kind) = %s AND kept < %s"
    return link.execute(query, (name_key(kind), before)).rowcount


def facts(link: Link, kind: str) -> dict[str, JsonText]:
    """Return all facts of a kind, by key."""
    rows = link.execute("SELECT key, value FROM everlong.facts WHERE sha256(kind) = %s", (name_key(kind),))
    return {text_of_bytes(key): text_of_bytes(value) for key, value in rows}

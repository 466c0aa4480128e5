"""What is stored beside the log: the events of a thread, token counts and facts."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from everlong.core import OUTCOMES, STARTS, Event, EventKind, JsonText, bytes_of
from everlong.errors import StoreError
from everlong.store.bodies import decode_event, encode_event, text_of_bytes
from everlong.store.postgres.connections import Link
from everlong.store.postgres.log import get_thread
from everlong.store.postgres.schema import name_key
from everlong.store.rules import new_events

__all__ = ["counts", "drop_facts", "events_after", "fact", "facts", "keep_counts", "keep_fact", "record", "unfinished"]


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
    """Return the events after the one of that id (from the start if there is none), of these kinds or all."""
    number = get_thread(link, thread).number
    wanted = [kind.value for kind in EventKind if not kinds or kind in kinds]
    rows = link.execute(
        "SELECT place, body FROM everlong.events WHERE thread = %s AND kind = ANY(%s) AND place > coalesce("
        "(SELECT place FROM everlong.events WHERE thread = %s AND sha256(id) = %s), -1) ORDER BY place",
        (number, wanted, number, name_key(after)),
    )
    return _events(link, thread, rows)


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
    """The events in these bodies; one that cannot be read costs itself alone."""
    events: list[Event] = []
    for place, body in rows:
        try:
            events.append(decode_event(body))
        except StoreError:
            link.damage.event(thread, place)
    return events


def _recorded(link: Link, number: int, events: Sequence[Event]) -> tuple[set[str], dict[str, EventKind]]:
    """The starts that these events end and that have ended already; and the kinds of recorded events, by id."""
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


def fact(link: Link, kind: str, key: str) -> JsonText | None:
    """Return the fact of that kind and key, or None."""
    row = link.execute(
        "SELECT value FROM everlong.facts WHERE sha256(kind) = %s AND sha256(key) = %s", (name_key(kind), name_key(key))
    ).fetchone()
    return None if row is None else text_of_bytes(row[0])


def keep_fact(link: Link, kind: str, key: str, value: JsonText, now: datetime) -> None:
    """Keep a fact; it replaces an older one."""
    link.execute(
        "INSERT INTO everlong.facts (kind, key, value, kept) VALUES (%s, %s, %s, %s)"
        " ON CONFLICT (sha256(kind), sha256(key)) DO UPDATE SET value = excluded.value, kept = excluded.kept",
        (bytes_of(kind), bytes_of(key), bytes_of(value), now),
    )


def drop_facts(link: Link, kind: str, before: datetime) -> int:
    """Drop the facts of a kind that were last kept before that time; return how many."""
    query = "DELETE FROM everlong.facts WHERE sha256(kind) = %s AND kept < %s"
    return link.execute(query, (name_key(kind), before)).rowcount


def facts(link: Link, kind: str) -> dict[str, JsonText]:
    """Return all facts of a kind, by key."""
    rows = link.execute("SELECT key, value FROM everlong.facts WHERE sha256(kind) = %s", (name_key(kind),))
    return {text_of_bytes(key): text_of_bytes(value) for key, value in rows}

"""Events beside a log: kept in the order they were recorded, one outcome for every start."""

from collections.abc import Sequence

from everlong.core import OUTCOMES, STARTS, Event, EventKind, bytes_of
from everlong.store.bodies import text_of_bytes
from everlong.store.event_bodies import decode_event, encode_event
from everlong.store.postgres.connections import Link
from everlong.store.postgres.log import known
from everlong.store.postgres.values import name_key
from everlong.store.rules import new_events

__all__ = ["events_after", "record", "unfinished"]


def record(link: Link, thread: str, events: Sequence[Event]) -> None:
    """Keep the events that are not there yet, all or none. Raises StoreError for an outcome that may not be."""
    number = known(link, thread, locked=True).number
    ended, there = _there(link, number, events)
    new = new_events(thread, events, there.get, ended.__contains__)
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
    """The events after the one of that id, if it is there, of these kinds or all."""
    number = known(link, thread).number
    wanted = [kind.value for kind in EventKind if not kinds or kind in kinds]
    found = link.execute(
        "SELECT body FROM everlong.events WHERE thread = %s AND kind = ANY(%s) AND place > coalesce((SELECT place"
        " FROM everlong.events WHERE thread = %s AND sha256(id) = %s), -1) ORDER BY place",
        (number, wanted, number, name_key(after)),
    )
    return [decode_event(body) for (body,) in found]


def unfinished(link: Link, thread: str) -> list[Event]:
    """Starts that no outcome names."""
    number = known(link, thread).number
    found = link.execute(
        "SELECT body FROM everlong.events AS begun WHERE thread = %s AND kind = ANY(%s) AND NOT EXISTS (SELECT FROM"
        " everlong.events AS ended WHERE ended.thread = begun.thread AND ended.parent IS NOT NULL"
        " AND sha256(ended.parent) = sha256(begun.id)) ORDER BY place",
        (number, [kind.value for kind in OUTCOMES]),
    )
    return [decode_event(body) for (body,) in found]


def _there(link: Link, number: int, events: Sequence[Event]) -> tuple[set[str], dict[str, EventKind]]:
    """Which of the starts that these events end have an outcome, and the kinds of all that they name, by id."""
    parents = [event.parent for event in events if event.kind in STARTS]
    ended = link.execute(
        "SELECT parent FROM everlong.events WHERE thread = %s AND parent IS NOT NULL AND sha256(parent) = ANY(%s)",
        (number, [name_key(parent) for parent in parents]),
    ).fetchall()
    there = link.execute(
        "SELECT id, kind FROM everlong.events WHERE thread = %s AND sha256(id) = ANY(%s)",
        (number, [name_key(name) for name in (*parents, *(event.id for event in events))]),
    ).fetchall()
    return {text_of_bytes(name) for (name,) in ended}, {text_of_bytes(name): EventKind(kind) for name, kind in there}

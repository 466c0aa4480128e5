"""What every store refuses, and how it takes what it is asked: said once, for all engines.

Pure. An engine hands in what it knows of a thread and gets back what to keep, or an error that says what is wrong.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from uuid import uuid4

from everlong.core import STARTS, Entry, Event, EventKind, JsonText, Pin, Point, Recalled, Row, Withdrawal
from everlong.errors import StoreError, ThreadChanged

__all__ = [
    "Clock",
    "added_rows",
    "as_utc",
    "at_most",
    "check_branch",
    "check_entries",
    "check_objects",
    "in_utc",
    "new_events",
    "new_pin",
    "pins_before",
    "row_names",
    "same_pin",
    "target_of",
    "utc_now",
    "withdrawn_by",
]

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """The machine's time."""
    return datetime.now(UTC)


def in_utc(clock: Clock) -> Clock:
    """The same clock in UTC."""
    return lambda: as_utc(clock())


def as_utc(time: datetime) -> datetime:
    """The same time in UTC; one without a zone is local time."""
    return time.astimezone(UTC)


MOST = 2**31 - 1  # rows, threads or hits that anybody asks for; databases count no further in one word


def at_most(limit: int | None) -> int:
    """How many are wanted. Example: None -> all there can be, -1 -> 0"""
    return MOST if limit is None else max(0, min(limit, MOST))


def check_objects(**texts: JsonText | None) -> None:
    """Raises StoreError unless each text that is given, settings or metadata, is a JSON object."""
    for name, text in texts.items():
        if text is None:
            continue
        try:
            value = json.loads(text)
        except (ValueError, TypeError, RecursionError) as error:
            raise StoreError(f"{name} must be a JSON object: {error}") from error
        if not isinstance(value, dict):
            raise StoreError(f"{name} must be a JSON object, not {type(value).__name__}")


def check_branch(thread: str, length: int, order: int) -> None:
    """Raises StoreError unless a thread of that length has so many rows to begin a branch with."""
    if not 0 <= order <= length:
        raise StoreError(f"thread {thread!r} has {length} rows; it cannot branch at {order}")


# Rows


def row_names(thread: str, entries: Sequence[Entry], ids: Sequence[str] | None) -> list[str]:
    """A name for each entry: the ids that are given, else new ones. Raises StoreError unless they name each once."""
    names = [uuid4().hex for _ in entries] if ids is None else list(ids)
    if len(names) != len(entries) or len(set(names)) != len(names):
        raise StoreError(f"thread {thread!r}: {len(entries)} entries need as many different ids")
    return names


def added_rows(
    thread: str, length: int, expected: int | None, new: Iterable[tuple[str, Entry]], clock: Clock
) -> list[Row]:
    """The named entries as the next rows of a thread. Raises ThreadChanged unless it has the expected length."""
    entries = list(new)
    if not entries:
        return []
    if expected not in (None, length):
        raise ThreadChanged(f"thread {thread!r} has {length} rows, not {expected}: read it again")
    now = clock()
    return [Row(order, name, now, entry) for order, (name, entry) in enumerate(entries, start=length)]


def check_entries(thread: str, rows: Iterable[Row], points: Iterable[int]) -> None:
    """Raises StoreError if a row to add refers to a row that is not there.

    `points` are the orders of the points that are there already. What is recalled may stand before the row that comes
    next.
    """
    known = set(points)
    for row in rows:
        match row.entry:
            case Point(boundary=boundary):
                if not 0 <= boundary <= row.order:
                    raise StoreError(f"thread {thread!r}: a point at {row.order} cannot cover {boundary} rows")
                known.add(row.order)
            case Withdrawal(point) if point not in known:
                raise StoreError(f"thread {thread!r}: there is no point {point} to withdraw")
            case Recalled(before=before) if not 0 <= before <= row.order + 1:
                raise StoreError(f"thread {thread!r}: nothing can be recalled before row {before} at {row.order}")
            case _:
                continue


def withdrawn_by(rows: Iterable[Row]) -> list[int]:
    """The orders of earlier rows that withdrawals among these name: what an engine looks up before `check_entries`."""
    named = ((row.order, row.entry.point) for row in rows if isinstance(row.entry, Withdrawal))
    return [point for order, point in named if 0 <= point < order]


def target_of(entry: Entry) -> int | None:
    """What an entry says of the log: a point its boundary, a withdrawal its point; None for others."""
    match entry:
        case Point(boundary=order) | Withdrawal(order):
            return order
        case _:
            return None


# Pins


def new_pin(order: int | None, text: str) -> Pin:
    """The pin that is asked for. Raises StoreError if it says nothing."""
    if order is None and not text:
        raise StoreError("a pin needs a message or a text")
    return Pin(uuid4().hex, order, text if order is None else "")


def same_pin(pins: Iterable[Pin], wanted: Pin) -> Pin | None:
    """The pin among these that says the same."""
    return next((pin for pin in pins if (pin.order, pin.text) == (wanted.order, wanted.text)), None)


def pins_before(pins: Iterable[Pin], order: int | None) -> tuple[Pin, ...]:
    """Pinned texts, and the pins of rows before that order; all if it is None."""
    return tuple(pin for pin in pins if order is None or pin.order is None or pin.order < order)


# Events


def new_events(
    thread: str,
    events: Iterable[Event],
    kind_of: Callable[[str], EventKind | None],
    has_outcome: Callable[[str], bool],
) -> list[Event]:
    """Those that are not there yet. Raises StoreError for an outcome without its start, or a second one.

    `kind_of` gives the kind of an event that is there, by its id; `has_outcome` says whether such a start is over.
    """
    new: dict[str, Event] = {}
    over: set[str] = set()
    for event in events:
        if event.id in new or kind_of(event.id) is not None:
            continue
        if event.kind in STARTS:
            begun = new[event.parent].kind if event.parent in new else kind_of(event.parent)
            if begun is not STARTS[event.kind]:
                start = STARTS[event.kind].value
                raise StoreError(f"thread {thread!r}: {event.kind.value} {event.id!r} ends no {start} that is there")
            if event.parent in over or has_outcome(event.parent):
                raise StoreError(f"thread {thread!r}: event {event.parent!r} has an outcome already")
            over.add(event.parent)
        new[event.id] = event
    return list(new.values())

"""The rules of the contract that every store engine follows: what it refuses, and what becomes of a call.

An engine passes in what it knows of a thread and gets back what to keep, or an error that says what is wrong. Nothing
here reads or writes. Times are kept in UTC, whatever zone a clock has.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from everlong.core import STARTS, Entry, Event, EventKind, JsonText, Pin, Point, Recalled, Row, Withdrawal
from everlong.errors import StoreError, ThreadChanged

__all__ = [
    "WAIT",
    "Clock",
    "added_rows",
    "as_utc",
    "at_most",
    "check_branch",
    "check_entries",
    "check_objects",
    "in_utc",
    "moment_of",
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

WAIT = 10.0  # seconds that a caller waits for another writer that does not end, before StoreBusy
MOST = 2**31 - 1  # rows, threads or hits that a caller may want; databases count no further in one word


def utc_now() -> datetime:
    """Return the machine's time."""
    return datetime.now(UTC)


def in_utc(clock: Clock) -> Clock:
    """The same clock in UTC."""
    return lambda: as_utc(clock())


def as_utc(time: datetime) -> datetime:
    """The same time in UTC; one without a zone is local time."""
    return time.astimezone(UTC)


def moment_of(clock: Clock, at: datetime | None, after: datetime | None = None) -> datetime:
    """When something happens: at the given time, else now. A given time is later than `after`, however little."""
    if at is None:
        return clock()
    return as_utc(at) if after is None else max(as_utc(at), after + timedelta(microseconds=1))


def at_most(limit: int | None) -> int:
    """The number that a limit allows. Example: None -> all there can be, -1 -> 0"""
    return MOST if limit is None else max(0, min(limit, MOST))


def check_objects(**texts: JsonText | None) -> None:
    """Raise StoreError unless each text that is given (settings, metadata) is a JSON object."""
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
    """Raise StoreError unless a thread of that length has `order` rows to begin a branch with."""
    if not 0 <= order <= length:
        raise StoreError(f"thread {thread!r} has {length} rows; it cannot branch at {order}")


# Rows


def row_names(thread: str, entries: Sequence[Entry], ids: Sequence[str] | None) -> list[str]:
    """A name for each entry: the given ids, else new ones. Raises StoreError unless there is one id for each entry."""
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
    """Raise StoreError if a row to add refers to a row that does not exist.

    `points` are the orders of the points in the thread. What is recalled may stand before the row that comes next.
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
    """The orders of earlier rows that these rows withdraw. An engine looks them up before `check_entries`."""
    named = ((row.order, row.entry.point) for row in rows if isinstance(row.entry, Withdrawal))
    return [point for order, point in named if 0 <= point < order]


def target_of(entry: Entry) -> int | None:
    """The position that an entry refers to: a point its boundary, a withdrawal its point; None for others."""
    match entry:
        case Point(boundary=order) | Withdrawal(order):
            return order
        case _:
            return None


# Pins


def new_pin(order: int | None, text: str) -> Pin:
    """A new pin of a row or of a text. Raises StoreError if neither is given."""
    if order is None and not text:
        raise StoreError("a pin needs a message or a text")
    return Pin(uuid4().hex, order, text if order is None else "")


def same_pin(pins: Iterable[Pin], wanted: Pin) -> Pin | None:
    """The pin among these that pins the same row or text."""
    return next((pin for pin in pins if (pin.order, pin.text) == (wanted.order, wanted.text)), None)


def pins_before(pins: Iterable[Pin], order: int | None) -> tuple[Pin, ...]:
    """Pinned texts, and the pins of rows before `order`; all pins if it is None."""
    return tuple(pin for pin in pins if order is None or pin.order is None or pin.order < order)


# Events


def new_events(
    thread: str,
    events: Iterable[Event],
    kind_of: Callable[[str], EventKind | None],
    has_outcome: Callable[[str], bool],
) -> list[Event]:
    """The events that are new. Raises StoreError for an outcome without its start, or a second outcome.

    `kind_of` returns the kind of a recorded event by its id; `has_outcome` says whether a recorded start has ended.
    """
    new: dict[str, Event] = {}
    ended: set[str] = set()
    for event in events:
        if event.id in new or kind_of(event.id) is not None:
            continue
        if event.kind in STARTS:
            begun = new[event.parent].kind if event.parent in new else kind_of(event.parent)
            if begun is not STARTS[event.kind]:
                start = STARTS[event.kind].value
                raise StoreError(f"thread {thread!r}: {event.kind.value} {event.id!r} ends no {start} of this thread")
            if event.parent in ended or has_outcome(event.parent):
                raise StoreError(f"thread {thread!r}: event {event.parent!r} has an outcome already")
            ended.add(event.parent)
        new[event.id] = event
    return list(new.values())

"""The rules of the contract that every store follows: what it refuses, and what a call does.

A store passes in what it knows of a thread and gets back what to store, or an error that says what is wrong. Nothing
here reads or writes. Times are stored in UTC, whatever the zone of the clock is.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from everlong.core import (
    STARTS,
    Entry,
    Event,
    EventKind,
    JsonText,
    Pin,
    Point,
    Recalled,
    Removal,
    Restoration,
    Row,
    Withdrawal,
)
from everlong.errors import StoreError, ThreadChanged
from everlong.store.bodies import EntryKind, kind_of

__all__ = [
    "MOST",
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
    "new_name",
    "new_pin",
    "pins_before",
    "referred_by",
    "row_names",
    "same_pin",
    "target_of",
    "utc_now",
]

Clock = Callable[[], datetime]

WAIT = 10.0  # seconds that a caller waits for another writer before StoreBusy
#: The kinds of rows that a removal can name.
REMOVABLE = frozenset({EntryKind.MESSAGE, EntryKind.POINT, EntryKind.RECALLED})
MOST = 2**31 - 1  # rows, threads or hits that a caller may request: what fits into a 32-bit integer


def utc_now() -> datetime:
    """Return the machine's time."""
    return datetime.now(UTC)


def in_utc(clock: Clock) -> Clock:
    """Return the same clock in UTC."""
    return lambda: as_utc(clock())


def as_utc(time: datetime) -> datetime:
    """Return the same time in UTC; a time without a zone is local time."""
    return time.astimezone(UTC)


def moment_of(clock: Clock, at: datetime | None, after: datetime | None = None) -> datetime:
    """Return the given time, else the current one. A given time is moved to after `after` if necessary."""
    if at is None:
        return clock()
    return as_utc(at) if after is None else max(as_utc(at), after + timedelta(microseconds=1))


def at_most(limit: int | None) -> int:
    """Return the number that a limit allows. Example: None -> MOST, -1 -> 0"""
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
        raise StoreError(f"thread {thread!r} cannot be branched at row {order}: it has {length} rows")


# Rows


def row_names(thread: str, entries: Sequence[Entry], ids: Sequence[str] | None) -> list[str]:
    """A name for each entry: the given ids, else new ones. Raises StoreError unless there is one id for each entry."""
    names = [new_name() for _ in entries] if ids is None else list(ids)
    if len(names) != len(entries) or len(set(names)) != len(names):
        raise StoreError(f"thread {thread!r}: {len(entries)} entries need the same number of different ids")
    return names


def new_name() -> str:
    """Return a name for a row that has none."""
    return uuid4().hex


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


def check_entries(thread: str, rows: Iterable[Row], kinds: Mapping[int, EntryKind]) -> None:
    """Raise StoreError if a new row refers to a row that does not exist or is gone.

    `kinds` has the kinds of the rows that `referred_by` names. A recalled block may be placed before the next row.
    """
    known = dict(kinds)
    for row in rows:
        known[row.order] = kind_of(row.entry)
        match row.entry:
            case Point(boundary=boundary):
                if not 0 <= boundary <= row.order:
                    raise StoreError(f"thread {thread!r}: a point at {row.order} cannot cover {boundary} rows")
            case Withdrawal(point) if known.get(point) is not EntryKind.POINT:
                raise StoreError(f"thread {thread!r}: there is no point {point} to withdraw")
            case Recalled(before=before) if not 0 <= before <= row.order + 1:
                raise StoreError(f"thread {thread!r}: nothing can be recalled before row {before} at {row.order}")
            case Removal(orders):
                for order in orders:
                    if known.get(order) not in REMOVABLE:
                        raise StoreError(f"thread {thread!r}: there is no message {order} to remove")
                    known[order] = EntryKind.GONE
            case Restoration(removal) if known.get(removal) is not EntryKind.REMOVAL:
                raise StoreError(f"thread {thread!r}: there is no removal {removal} to undo")
            case _:
                continue


def referred_by(rows: Iterable[Row]) -> list[int]:
    """The orders of earlier rows that these rows withdraw, remove or restore, for `check_entries`."""
    named: list[tuple[int, int]] = []
    for row in rows:
        match row.entry:
            case Withdrawal(order) | Restoration(order):
                named.append((row.order, order))
            case Removal(orders):
                named += [(row.order, order) for order in orders]
            case _:
                continue
    return [order for at, order in named if 0 <= order < at]


def target_of(entry: Entry) -> int | None:
    """Return the position that an entry refers to: the boundary of a point, the row that an undo undoes; else None."""
    match entry:
        case Point(boundary=order) | Withdrawal(order) | Restoration(order):
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
                raise StoreError(f"thread {thread!r}: {event.kind.value} {event.id!r} has no matching {start}")
            if event.parent in ended or has_outcome(event.parent):
                raise StoreError(f"thread {thread!r}: event {event.parent!r} already has an outcome")
            ended.add(event.parent)
        new[event.id] = event
    return list(new.values())

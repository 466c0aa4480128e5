"""The raw past of a thread, as far back as a cut looks: what excerpts are chosen from and tails are taken of.

However long a thread is, a cut reads no more than a horizon of it. Where that is not all, the past begins with
what the oldest point inside the horizon left; older text is found by search.
"""

from dataclasses import dataclass, field, replace

from everlong.core import History, Message, Opened, Point, Row, Text, ToolCall, ToolResult
from everlong.engine.threads import Threads
from everlong.relevance import Index

__all__ = ["HORIZON", "LEFT_BEFORE", "Past", "past_of", "reaching"]

HORIZON = 4_000_000  # characters, about a million tokens: more than any window a cut is made for
FIRST_LOOK = 500  # messages; doubled until the horizon or the beginning is reached
LEFT_BEFORE = -1  # the order of a message that a point left


@dataclass(frozen=True, slots=True)
class Past:
    """Messages and for each its order in the thread, LEFT_BEFORE for what a point left. `length` counts rows read."""

    history: History
    orders: tuple[int, ...]
    length: int
    characters: int
    #: Everything that left the window so far; grows with each cut.
    index: Index = field(default_factory=Index, compare=False)


def past_of(threads: Threads, opened: Opened) -> Past:
    """The raw past of a thread up to the rows that `opened` knows."""
    name, length = opened.thread.id, opened.thread.length
    head = _said(opened.head)
    rows, complete = _newest_rows(threads, name, opened)
    left: History = ()
    if not complete and rows:
        point = _oldest_point(threads, name, rows[0].order)
        if point is not None:
            left = point.summary[1:] if point.account else point.summary  # the newest summary stands by itself
            rows = [row for row in rows if row.order >= point.boundary]
    rows = [*_pinned_before(threads, opened, rows[0].order if rows else length), *rows]
    said = _said(tuple(rows))
    return Past(
        (*head, *left, *said),
        (*(row.order for row in opened.head), *(LEFT_BEFORE for _ in left), *(row.order for row in rows)),
        length,
        sum(map(_characters, said)),
    )


def reaching(threads: Threads, past: Past | None, opened: Opened) -> Past:
    """The past up to the rows that `opened` knows; of what was known before only the news is read.

    At twice the horizon it is read anew, from a later point on.
    """
    if past is None:
        return past_of(threads, opened)
    if past.length < opened.thread.length:
        past = _grown(past, tuple(threads.read(opened.thread.id, past.length, opened.thread.length)))
    return past if past.characters <= 2 * HORIZON else past_of(threads, opened)


def _grown(past: Past, rows: tuple[Row, ...]) -> Past:
    new = tuple(row for row in rows if row.order >= past.length and isinstance(row.entry, Message))
    said = _said(new)
    return replace(
        past,
        history=past.history + said,
        orders=past.orders + tuple(row.order for row in new),
        length=max((row.order + 1 for row in rows), default=past.length),
        characters=past.characters + sum(map(_characters, said)),
    )


def _newest_rows(threads: Threads, name: str, opened: Opened) -> tuple[list[Row], bool]:
    """The newest messages that fill the horizon, system head aside, and whether these are all."""
    head = {row.order for row in opened.head}
    wanted = FIRST_LOOK
    while True:
        found = [row for row in threads.last(name, wanted) if row.order < opened.thread.length]
        complete = len(found) >= opened.thread.messages
        if complete or sum(_characters(row.entry) for row in found if isinstance(row.entry, Message)) > HORIZON:
            return [row for row in found if row.order not in head], complete
        wanted *= 2


def _pinned_before(threads: Threads, opened: Opened, order: int) -> list[Row]:
    """Pinned messages that lie further back than the horizon."""
    head = {row.order for row in opened.head}
    pinned = sorted({pin.order for pin in opened.pins if pin.order is not None and pin.order < order} - head)
    return [row for at in pinned for row in threads.read(opened.thread.id, at, at + 1)]


def _oldest_point(threads: Threads, name: str, order: int) -> Point | None:
    """The first standing point whose boundary lies at or after this order."""
    for row, stands in threads.points(name):
        if stands and isinstance(row.entry, Point) and row.entry.boundary >= order:
            return row.entry
    return None


def _said(rows: tuple[Row, ...]) -> History:
    return tuple(row.entry for row in rows if isinstance(row.entry, Message))


def _characters(message: Message) -> int:
    total = 0
    for part in message.parts:
        if isinstance(part, Text):
            total += len(part.text)
        elif isinstance(part, ToolCall):
            total += len(part.arguments)
        elif isinstance(part, ToolResult):
            total += len(part.text)
    return total

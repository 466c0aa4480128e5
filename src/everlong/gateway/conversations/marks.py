"""What the engine added to a conversation, and where: so that it can be put back into the same conversation again.

Clients resend what was said, not what was left out of it. A cut or a recalled block belongs to the messages it speaks
of; wherever these come again, in another process or in a branch, it is true again. Positions in a mark are numbers of
units (system text aside), positions in a thread are orders of rows.
"""

import json
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from everlong.core import Edit, JsonText, Point, Recalled, Row, Withdrawal
from everlong.errors import EverlongError, InputError
from everlong.store import decode_entry, encode_entry, kind_of
from everlong.summarize import decode_summary, encode_summary

__all__ = ["Mark", "decoded_mark", "encoded_mark", "entry_at", "marks_in", "standing_marks"]


@dataclass(frozen=True, slots=True)
class Mark:
    """A point or a recalled block. It speaks of the first `upto` units, and was made when there were `at` of them."""

    at: int
    upto: int
    entry: Point | Recalled


def marks_in(rows: Sequence[Row], starts: Sequence[int]) -> list[Mark]:
    """The marks among the rows of a thread, oldest first; withdrawn ones are none. `starts` is where units begin."""
    withdrawn = {row.entry.point for row in rows if isinstance(row.entry, Withdrawal)}
    marks = []
    for row in rows:
        at = bisect_left(starts, row.order)
        match row.entry:
            case Point(boundary=boundary) if row.order not in withdrawn:
                point = _numbered(row.entry, starts)
                upto = max(bisect_left(starts, boundary), _told_of(point))
                marks.append(Mark(at, upto, point))
            case Recalled(before, message):
                number = bisect_left(starts, before)
                marks.append(Mark(at, number + 1, Recalled(number, message)))
            case _:
                pass
    return marks


def standing_marks(marks: Sequence[Mark], shared: int) -> list[Mark]:
    """Of marks, oldest first, those that count for who shares so many units: the newest point, what was recalled after.

    Of several points that are true the one that covers most stands.
    """
    true = [mark for mark in marks if mark.upto <= shared]
    points = [at for at, mark in enumerate(true) if isinstance(mark.entry, Point)]
    if not points:
        return []
    newest = max(points, key=lambda at: (true[at].upto, at))
    return [true[newest], *(mark for mark in true[newest + 1 :] if isinstance(mark.entry, Recalled))]


def entry_at(mark: Mark, starts: Sequence[int], end: int) -> Point | Recalled:
    """The entry with orders of a thread in which units begin at `starts` and the next row is number `end`."""

    def order(number: int) -> int:
        return starts[number] if number < len(starts) else end

    match mark.entry:
        case Recalled(before, message):
            return Recalled(order(before), message)
        case Point() as point:
            edits = tuple(_moved(edit, order(edit.at)) for edit in point.edits)
            return replace(point, boundary=order(point.boundary), account=_covering(point.account, order), edits=edits)


def encoded_mark(mark: Mark) -> JsonText:
    """A mark as it is kept."""
    said = {"at": mark.at, "upto": mark.upto, "kind": int(kind_of(mark.entry)), "entry": encode_entry(mark.entry)}
    return json.dumps(said, ensure_ascii=False)


def decoded_mark(text: JsonText) -> Mark | None:
    """The mark again; None where it is of a version that we cannot read."""
    try:
        said = cast("dict[str, Any]", json.loads(text))
        entry = decode_entry(said["kind"], said["entry"])
        return Mark(said["at"], said["upto"], entry) if isinstance(entry, Point | Recalled) else None
    except (EverlongError, ValueError, KeyError, TypeError):
        return None


def _numbered(point: Point, starts: Sequence[int]) -> Point:
    """A point with numbers of units in place of orders; what it did to system text or to text of ours is left out."""

    def number(order: int) -> int:
        return bisect_right(starts, order) - 1

    edits = tuple(_moved(edit, number(edit.at)) for edit in point.edits if number(edit.at) >= 0)
    boundary = bisect_left(starts, point.boundary)
    account = _covering(point.account, lambda order: bisect_left(starts, order))
    return replace(point, boundary=boundary, account=account, edits=edits)


def _told_of(point: Point) -> int:
    """How many units its summary tells of: those that are still sent as they are may be among them."""
    if not point.account:
        return 0
    covers: int = decode_summary(point.account).covers
    return covers


def _moved(edit: Edit, at: int) -> Edit:
    return edit if edit.at == at else replace(edit, at=at)


def _covering(account: str, moved: Any) -> str:
    """The summary that a point carries, with where it reaches moved too."""
    if not account:
        return ""
    try:
        summary = decode_summary(account)
    except InputError:
        return ""
    return encode_summary(replace(summary, covers=moved(summary.covers)))

"""Marks: what the engine added to a conversation, and where.

Clients resend the messages, but not what was left out of them. If the same messages come again, in another process or
in a branch, the mark applies again. Positions in a mark are numbers of units (without system text); positions in a
thread are orders of rows.
"""

import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, cast
from uuid import uuid4

from everlong.core import Edit, History, JsonText, Point, Recalled, Row, Withdrawal
from everlong.errors import EverlongError, InputError
from everlong.store import decode_entry, encode_entry, kind_of
from everlong.summarize import decode_summary, encode_summary

__all__ = [
    "REPORTED",
    "Kind",
    "Listed",
    "Mark",
    "counting",
    "decoded_mark",
    "encoded_mark",
    "entry_at",
    "listed",
    "marks_in",
    "standing_marks",
    "standing_names",
    "with_own_messages",
]


@dataclass(frozen=True, slots=True)
class Mark:
    """A compaction point or a recalled block.

    It covers the first `upto` units and was made when there were `at` units.
    """

    at: int
    upto: int
    entry: Point | Recalled


WITHDRAWN = "-"  # prefix of the name of a withdrawn mark
REPORTED = "+"  # prefix of the name of a point that was made after an answer and that a request has reported


class Kind(StrEnum):
    """The kind of a mark, as encoded in its name."""

    POINT = "p"
    #: A point that carries a summary for later and changes no bytes: what was recalled before it stays in force.
    BESIDE = "s"
    RECALLED = "r"
    #: Names of earlier versions do not say it.
    UNKNOWN = ""


@dataclass(frozen=True, slots=True)
class Listed:
    """What the name of a stored mark says about it. The mark itself is read only when needed.

    `at` is how many units there were, `digest` the digest of the units it covers.
    """

    name: str
    at: int
    digest: str
    kind: Kind

    @classmethod
    def of(cls, name: str) -> "Listed":
        """Return what a name says about its mark."""
        made, _, digest = name.partition("/")
        at = made.lstrip(WITHDRAWN + REPORTED).partition("-")[0]
        kind = Kind(made[-1:]) if made[-1:] in {*Kind} else Kind.UNKNOWN
        return cls(name, int(at) if at.isdecimal() else 0, digest, kind)

    @property
    def point(self) -> bool:
        """Whether it is a compaction point."""
        return self.kind in (Kind.POINT, Kind.BESIDE)

    @property
    def withdrawn(self) -> "Listed":
        """The entry that withdraws it from the list."""
        return replace(self, name=WITHDRAWN + self.name)

    @property
    def reported(self) -> "Listed":
        """The entry that says that a request has reported it."""
        return replace(self, name=REPORTED + self.name)


def listed(mark: Mark, digest: str, time: float, *, beside: bool = False) -> Listed:
    """Return the name for storing a mark; `beside` means that the point changes no bytes."""
    kind = Kind.RECALLED if isinstance(mark.entry, Recalled) else Kind.BESIDE if beside else Kind.POINT
    return Listed.of(f"{mark.at:012d}-{time:020.6f}-{uuid4().hex[:8]}{kind}/{digest}")


def counting(names: Sequence[str]) -> tuple[Listed, ...]:
    """Return the marks in a list of names, without withdrawn ones, withdrawals and reports."""
    gone = {name.removeprefix(WITHDRAWN) for name in names if name.startswith(WITHDRAWN)}
    return tuple(Listed.of(name) for name in names if name not in gone and name[:1] not in (WITHDRAWN, REPORTED))


def standing_names(names: Sequence[Listed], digests: Mapping[str, int]) -> tuple[list[Listed], str]:
    """Return the marks that apply to a request: the newest point, and what was recalled after it.

    `names` are oldest first; `digests` maps the digest of each prefix to its number of units. See `standing_marks`. The
    second value is the name of the compaction behind the request's bytes; a summary stored next to it does not count.
    """
    true = [(digests[one.digest], one) for one in names if one.digest in digests]
    points = [at for at, (upto, one) in enumerate(true) if one.point and upto < len(digests)]
    if not points:
        return [], ""
    newest = max(points, key=lambda at: (true[at][0], at))
    since = max((at for at in points if at <= newest and true[at][1].kind is Kind.POINT), default=newest)
    standing = [true[newest][1], *(one for _, one in true[since + 1 :] if not one.point)]
    return standing, true[since][1].name


def marks_in(rows: Sequence[Row], starts: Sequence[int]) -> list[Mark]:
    """Return the marks in the rows of a thread, oldest first, without withdrawn ones.

    `starts` are the starts of units.
    """
    withdrawn = {row.entry.point for row in rows if isinstance(row.entry, Withdrawal)}
    marks = []
    for row in rows:
        at = bisect_left(starts, row.order)
        match row.entry:
            case Point(boundary=boundary) if row.order not in withdrawn:
                point = _numbered(row.entry, starts)
                upto = max(bisect_left(starts, boundary), _summarised_units(point))
                marks.append(Mark(at, upto, point))
            case Recalled(before, message):
                number = bisect_left(starts, before)  # the unit of the question; after a step there is none yet
                marks.append(Mark(at, min(number + 1, at), Recalled(number, message)))
            case _:
                pass
    return marks


def standing_marks(marks: Sequence[Mark], shared: int, units: int) -> list[Mark]:
    """Return the marks that apply to the first `shared` units: the newest point, and what was recalled after it.

    `marks` are oldest first. If several points apply, the one that covers the most counts. A point that covers all
    `units` of a request does not apply: the client went back to a time before it, and its last message must be sent.
    """
    true = [mark for mark in marks if mark.upto <= shared]
    points = [at for at, mark in enumerate(true) if isinstance(mark.entry, Point) and mark.upto < units]
    if not points:
        return []
    newest = max(points, key=lambda at: (true[at].upto, at))
    return [true[newest], *(mark for mark in true[newest + 1 :] if isinstance(mark.entry, Recalled))]


def entry_at(mark: Mark, starts: Sequence[int], end: int) -> Point | Recalled:
    """Return the entry with orders of a thread; units begin at `starts` there, and the next row is number `end`."""

    def order(number: int) -> int:
        return starts[number] if number < len(starts) else end

    match mark.entry:
        case Recalled(before, message):
            return Recalled(order(before), message)
        case Point() as point:
            edits = tuple(_moved(edit, order(edit.at)) for edit in point.edits)
            return replace(point, boundary=order(point.boundary), account=_covering(point.account, order), edits=edits)


def with_own_messages(point: Point, said: Iterable[History]) -> Point:
    """Return the point with the client's own message objects where it kept them.

    These are forwarded as the client wrote them, wherever the point was made, because messages are recognised by
    identity.
    """
    own = {message: message for messages in said for message in messages}
    return replace(point, summary=tuple(own.get(message, message) for message in point.summary))


def encoded_mark(mark: Mark) -> JsonText:
    """Return a mark in its stored form."""
    fields = {"at": mark.at, "upto": mark.upto, "kind": int(kind_of(mark.entry)), "entry": encode_entry(mark.entry)}
    return json.dumps(fields, ensure_ascii=False)


def decoded_mark(text: JsonText) -> Mark | None:
    """Return a stored mark; None if we cannot read its version."""
    try:
        fields = cast("dict[str, Any]", json.loads(text))
        entry = decode_entry(fields["kind"], fields["entry"])
        return Mark(fields["at"], fields["upto"], entry) if isinstance(entry, Point | Recalled) else None
    except (EverlongError, ValueError, KeyError, TypeError):
        return None


def _numbered(point: Point, starts: Sequence[int]) -> Point:
    """Return a point with unit numbers instead of orders, without edits of system text or of our own text."""

    def number(order: int) -> int:
        return bisect_right(starts, order) - 1

    edits = tuple(_moved(edit, number(edit.at)) for edit in point.edits if number(edit.at) >= 0)
    boundary = bisect_left(starts, point.boundary)
    account = _covering(point.account, lambda order: bisect_left(starts, order))
    return replace(point, boundary=boundary, account=account, edits=edits)


def _summarised_units(point: Point) -> int:
    """Return how many units the point's summary covers; some of them may still be sent in full."""
    if not point.account:
        return 0
    covers: int = decode_summary(point.account).covers
    return covers


def _moved(edit: Edit, at: int) -> Edit:
    return edit if edit.at == at else replace(edit, at=at)


def _covering(account: str, moved: Any) -> str:
    """The summary of a point, with the end of what it covers converted too."""
    if not account:
        return ""
    try:
        summary = decode_summary(account)
    except InputError:
        return ""
    return encode_summary(replace(summary, covers=moved(summary.covers)))

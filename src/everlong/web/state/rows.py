"""Rows of a thread as the page reads them, each message with its status in the next request. Pure.

The status comes from the compactions in force and their edits, the newest first: the work grows with the compactions
of a thread, not with its messages.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Literal, TypeAlias, assert_never

from everlong.core import (
    Action,
    Edit,
    Gone,
    Image,
    Json,
    JsonObject,
    Message,
    Point,
    Reasoning,
    Recalled,
    Removal,
    Restoration,
    Role,
    Row,
    Text,
    ToolResult,
    Withdrawal,
    is_framed,
    message_ref,
    part_ref,
)
from everlong.engine import SUMMARY, left_by, summary_in
from everlong.summarize import for_people

__all__ = [
    "LONGEST",
    "Status",
    "Statuses",
    "figures_json",
    "full_text",
    "kept_json",
    "message_status",
    "row_json",
    "statuses_of",
]

IMPORTED = "by "  # how the reason of a compaction by another program begins
MOST_KEPT = 500  # messages left by a compaction that are shown
LONGEST = 20_000  # characters of one text; the whole is behind its reference
NO_FIGURES: JsonObject = dict.fromkeys(("messages", "kept", "shortened", "left_out", "tokens_before", "tokens_after"))
SAFE_PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")
#: How a message is sent: whole, shortened, left out, or covered by a summary.
Status: TypeAlias = Literal["whole", "shortened", "left out", "covered"]


@dataclass(frozen=True, slots=True)
class Statuses:
    """The effects of the compactions in force, by the order of messages."""

    #: The newest compaction applies to the rows before this order.
    boundary: int = 0
    #: The newest summary covers the rows before this order.
    covers: int = 0
    edits: dict[int, tuple[Edit, ...]] = field(default_factory=dict)
    #: Orders of the compactions in force, and of the newest.
    standing: frozenset[int] = frozenset()
    newest: int | None = None
    #: Rows before this order are replaced by a summary as a whole, without edits of their own.
    replaced: int = 0
    #: Orders of the points that only keep a summary for the next compaction. They do not change what is sent.
    beside: frozenset[int] = frozenset()

    def of(self, order: int) -> Status:
        """Return the status of the message at that order."""
        edits = self.edits.get(order, ())
        if any(edit.action is Action.DROP and edit.part is None for edit in edits):
            return "covered" if order < self.covers else "left out"
        if not edits and order < self.replaced:
            return "covered"
        return "shortened" if any(edit.action in (Action.SHORTEN, Action.DROP) for edit in edits) else "whole"

    def with_edits(self, edits: Sequence[Edit]) -> "Statuses":
        """Return the same with edits of messages that came after the newest compaction."""
        new = _edits_by_order(edit for edit in edits if edit.at >= self.boundary)
        return replace(self, edits={**self.edits, **new})


def statuses_of(points: Sequence[tuple[Row, bool]]) -> Statuses:
    """Return the statuses that follow from a thread's compactions, oldest first, each with whether it is in force."""
    standing = [row for row, stands in points if stands]
    beside = frozenset(
        row.order
        for (before, stood), (row, stands) in pairwise(points)
        if stood and stands and left_by(before) == left_by(row)
    )
    if not standing or not isinstance(standing[-1].entry, Point):
        return Statuses(beside=beside)
    edits: dict[int, tuple[Edit, ...]] = {}
    for row in reversed(standing):
        if isinstance(row.entry, Point):
            for order, row_edits in _edits_by_order(row.entry.edits).items():
                edits.setdefault(order, row_edits)
    newest = standing[-1].entry
    summaries = (summary_in(row) for row in reversed(standing))
    summary = next((account for account in summaries if account is not None), None)
    return Statuses(
        boundary=newest.boundary,
        covers=0 if summary is None else summary.covers,
        edits=edits,
        standing=frozenset(row.order for row in standing),
        newest=standing[-1].order,
        replaced=newest.boundary if newest.account and not newest.edits else 0,
        beside=beside,
    )


def _edits_by_order(edits: Iterable[Edit]) -> dict[int, tuple[Edit, ...]]:
    by_order: dict[int, tuple[Edit, ...]] = {}
    for edit in edits:
        if edit.action is not Action.INSERT:
            by_order[edit.at] = (*by_order.get(edit.at, ()), edit)
    return by_order


def message_status(order: int, message: Message, statuses: Statuses, pinned: frozenset[int]) -> Status:
    """Return the status of a message. Pinned and system messages are always sent whole."""
    return "whole" if order in pinned or message.role is Role.SYSTEM else statuses.of(order)


def row_json(row: Row, statuses: Statuses, pinned: frozenset[int] = frozenset()) -> JsonObject:
    """Return one row with its status in the next request."""
    shown: JsonObject = {
        "order": row.order,
        "id": row.id,
        "time": row.time.isoformat(),
        "kind": "message",
        "role": Role.USER.value,
        "text": "",
        "cut": False,
        "ref": "",
        "thinking": "",
        "images": [],
        "calls": [],
        "results": [],
        "pinned": row.order in pinned,
        "sent": "",
        "covers": None,
        "reason": "",
        "focus": "",
        **NO_FIGURES,
        "stands": True,
        "model": "",
        "ending": "",
        "versions": None,
    }
    match row.entry:
        case Message() as message:
            return shown | _message(message) | {"sent": message_status(row.order, message, statuses, pinned)}
        case Point() as point:
            fields = _point(row, point, beside=row.order in statuses.beside)
            return shown | fields | {"stands": row.order in statuses.standing}
        case Recalled(before=before, message=message):
            return shown | _message(message) | {"kind": "recalled", "covers": [before, before]}
        case Withdrawal(point=order):
            return shown | {"kind": "undo", "role": Role.SYSTEM.value, "covers": [order, order]}
        case Removal() | Restoration() | Gone():
            return shown | {"kind": "gone", "role": Role.SYSTEM.value}
        case _:
            assert_never(row.entry)


def _message(message: Message) -> JsonObject:
    text = message.text
    thoughts = "\n".join(part.text for part in message.parts if isinstance(part, Reasoning))
    long = next((part for part in message.parts if isinstance(part, Text) and len(part.text) > LONGEST), None)
    calls: list[Json] = [
        {"id": call.id, "name": call.name, "arguments": call.arguments[:LONGEST]} for call in message.calls
    ]
    return {
        "role": message.role.value,
        "text": text[:LONGEST],
        "cut": len(text) > LONGEST,
        "ref": "" if len(text) <= LONGEST else message_ref(message) if long is None else part_ref(long),
        "thinking": thoughts[:LONGEST],
        "images": [*_pictures(message)],
        "calls": calls,
        "results": [_result(result) for result in message.results],
        "model": message.model,
        "ending": message.ending,
    }


def _result(result: ToolResult) -> JsonObject:
    text = result.text
    images: list[Json] = [picture for part in result.content if isinstance(part, Image) for picture in _picture(part)]
    return {
        "call": result.call,
        "name": result.name,
        "text": text[:LONGEST],
        "cut": len(text) > LONGEST,
        "ref": part_ref(result),
        "failed": result.failed,
        "images": images,
    }


def _pictures(message: Message) -> Iterator[Json]:
    for part in message.parts:
        if isinstance(part, Image):
            yield from _picture(part)


def _picture(image: Image) -> Iterator[str]:
    """Yield the address of a picture that is safe to show: nothing that runs, such as SVG; from outside only https."""
    if image.data and image.media_type in SAFE_PICTURES:
        yield f"data:{image.media_type};base64,{image.data}"
    elif image.url.startswith("https://") or image.url.startswith(tuple(f"data:{kind}" for kind in SAFE_PICTURES)):
        yield image.url


def _point(row: Row, point: Point, *, beside: bool) -> JsonObject:
    """Return a compaction: its text, its figures, and the first and last order that it covers.

    One that only keeps a summary for the next compaction has no figures, because it does not change what is sent.
    """
    account = summary_in(row)
    summary = account is not None and (point.reason == SUMMARY or point.reason.startswith(IMPORTED))
    covered = account.covers if summary and account is not None else point.boundary
    if summary and account is not None:
        text = for_people(account, "" if beside or not point.summary else point.summary[0].text)
    else:
        text = "\n\n".join(_inside(message.text) for message in point.summary if is_framed(message.text))
    if summary and not text and point.summary:
        text = _inside(point.summary[0].text)
    return {
        "kind": "summary" if summary else "cut",
        "role": Role.SYSTEM.value,
        "text": text[:LONGEST],
        "cut": len(text) > LONGEST,
        "covers": [0, covered - 1] if covered else None,
        "reason": point.reason,
        "focus": point.focus,
        "author": "" if account is None or not summary else account.source,
        "waits": beside,
        **(NO_FIGURES if beside else figures_json(point)),
    }


def figures_json(point: Point) -> JsonObject:
    """Return the figures of a compaction as they were when it happened; null for those that an older one lacks."""
    before, after = point.sizes
    figures: JsonObject = {**NO_FIGURES, "tokens_before": before or None, "tokens_after": after or None}
    if point.figures is not None:
        figures |= {name: getattr(point.figures, name) for name in ("messages", "kept", "shortened", "left_out")}
    return figures


def kept_json(point: Point) -> list[Json]:
    """Return what a compaction left in place of the messages that it covers, in the order it is sent in.

    `ours` are a summary, excerpts and names; the others are messages of the thread, whole or shortened.
    """
    return [
        {
            "role": message.role.value,
            "ours": is_framed(message.text),
            "text": (_inside(message.text) if is_framed(message.text) else full_text(message))[:LONGEST],
        }
        for message in point.summary[:MOST_KEPT]
    ]


def _inside(text: str) -> str:
    """Return the text inside one of our frames, without its tags and the notice to the model."""
    if not is_framed(text):
        return text
    inside = "\n".join(text.strip().splitlines()[1:-1])
    return inside.partition("\n\n")[2] or inside


def full_text(message: Message) -> str:
    """Return all texts of a message, its calls and results included, for a person who wants to compare."""
    texts = [message.text]
    texts += [f"{call.name}({call.arguments})" for call in message.calls]
    texts += [result.text for result in message.results]
    return "\n\n".join(filter(None, texts))

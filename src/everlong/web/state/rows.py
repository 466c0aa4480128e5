"""Rows of a thread as the page reads them. Pure: what became of a message is handed in."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias, assert_never

from everlong.compress import part_ref
from everlong.core import (
    Action,
    Edit,
    Image,
    Json,
    JsonObject,
    Message,
    Point,
    Reasoning,
    Recalled,
    Role,
    Row,
    Text,
    ToolResult,
    Withdrawal,
    message_ref,
)
from everlong.engine import SUMMARY, account_in
from everlong.summarize import is_framed

__all__ = ["LONGEST", "Status", "Statuses", "full_text", "row_json", "statuses_of"]

Status: TypeAlias = Literal["whole", "shortened", "left out", "covered"]


@dataclass(frozen=True, slots=True)
class Statuses:
    """What the standing points did. `covers`: rows before it are told of by the newest summary."""

    boundary: int = 0
    covers: int = 0
    edits: dict[int, tuple[Edit, ...]] = field(default_factory=dict)
    standing: frozenset[int] = frozenset()
    newest: int | None = None
    #: Rows before it are behind a summary that leaves nothing of them, as presets that cut anew for each request have.
    behind: int = 0

    def of(self, order: int) -> Status:
        """The fate of the message at that order."""
        told = self.edits.get(order, ())
        if any(edit.action is Action.DROP and edit.part is None for edit in told):
            return "covered" if order < self.covers else "left out"
        if not told and order < self.behind:
            return "covered"
        return "shortened" if any(edit.action in (Action.SHORTEN, Action.DROP) for edit in told) else "whole"

    def with_news(self, edits: Sequence[Edit]) -> "Statuses":
        """The same with what was done to messages after the boundary as they came."""
        news: dict[int, tuple[Edit, ...]] = {}
        for edit in edits:
            if edit.at >= self.boundary and edit.action is not Action.INSERT:
                news[edit.at] = (*news.get(edit.at, ()), edit)
        return replace(self, edits={**self.edits, **news})


def statuses_of(standing: Sequence[Row]) -> Statuses:
    """The fates by the points that stand, oldest first."""
    if not standing or not isinstance(standing[-1].entry, Point):
        return Statuses()
    edits: dict[int, tuple[Edit, ...]] = {}
    for row in reversed(standing):
        if isinstance(row.entry, Point):
            for order, told in _edits_by_order(row.entry.edits).items():
                edits.setdefault(order, told)
    newest = standing[-1].entry
    account = next((found for row in reversed(standing) if (found := account_in(row)) is not None), None)
    return Statuses(
        boundary=newest.boundary,
        covers=0 if account is None else account.covers,
        edits=edits,
        standing=frozenset(row.order for row in standing),
        newest=standing[-1].order,
        behind=newest.boundary if newest.account and not newest.edits else 0,
    )


def _edits_by_order(edits: Sequence[Edit]) -> dict[int, tuple[Edit, ...]]:
    found: dict[int, tuple[Edit, ...]] = {}
    for edit in edits:
        if edit.action is not Action.INSERT:
            found[edit.at] = (*found.get(edit.at, ()), edit)
    return found


LONGEST = 20_000  # characters of one text; the whole is behind its reference
SAFE_PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")


def row_json(row: Row, fates: Statuses, pinned: frozenset[int] = frozenset()) -> JsonObject:
    """One row, with what becomes of it in the next request."""
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
        "tokens_before": None,
        "tokens_after": None,
        "stands": True,
    }
    match row.entry:
        case Message() as message:
            kept = row.order in pinned or message.role is Role.SYSTEM
            return shown | _message(message) | {"sent": "whole" if kept else fates.of(row.order)}
        case Point() as point:
            return shown | _point(row, point) | {"stands": row.order in fates.standing}
        case Recalled(before=before, message=message):
            return shown | _message(message) | {"kind": "recalled", "covers": [before, before]}
        case Withdrawal(point=order):
            return shown | {"kind": "undo", "role": Role.SYSTEM.value, "covers": [order, order]}
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
    """An address that a page can show: nothing that runs, such as SVG, and no address but https."""
    if image.data and image.media_type in SAFE_PICTURES:
        yield f"data:{image.media_type};base64,{image.data}"
    elif image.url.startswith("https://") or image.url.startswith(tuple(f"data:{kind}" for kind in SAFE_PICTURES)):
        yield image.url


def _point(row: Row, point: Point) -> JsonObject:
    """A compaction: what stands now in place of what it covers, the first and the last order of that."""
    account = account_in(row)
    summary = point.reason == SUMMARY and account is not None
    covered = account.covers if summary and account is not None else point.boundary
    ours = [_inside(message.text) for message in point.summary if is_framed(message.text)]
    text = _inside(point.summary[0].text) if summary and point.summary else "\n\n".join(ours)
    return {
        "kind": "summary" if summary else "cut",
        "role": Role.SYSTEM.value,
        "text": text[:LONGEST],
        "cut": len(text) > LONGEST,
        "covers": [0, covered - 1] if covered else None,
        "reason": point.reason,
        "focus": point.focus,
        "tokens_before": point.tokens_before,
        "tokens_after": point.tokens_after,
    }


def _inside(text: str) -> str:
    """What stands between the tags of a frame of ours."""
    return "\n".join(text.strip().splitlines()[1:-1]) if is_framed(text) else text


def full_text(message: Message) -> str:
    """All that a message says, for a person who wants to compare."""
    said = [message.text]
    said += [f"{call.name}({call.arguments})" for call in message.calls]
    said += [result.text for result in message.results]
    return "\n\n".join(filter(None, said))

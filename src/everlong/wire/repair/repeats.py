"""Remove repeated items of OpenAI Responses.

The provider identifies items by id and refuses repeated ones. The second time, a call, a message or a result is sent
without its id; reasoning and passed-through items, which need their id, are not sent.
"""

from dataclasses import replace

from everlong.core import Image, JsonText, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from everlong.wire.fields import load, pack, unpack
from everlong.wire.formats.format import Rules
from everlong.wire.repair.draft import Draft, Note, Placed

__all__ = ["drop_repeats"]


def drop_repeats(draft: Draft, rules: Rules) -> Draft:
    """Remove repeated items, or their ids."""
    if not rules.items_once:
        return draft
    seen: set[str] = set()
    placed: list[Placed] = []
    notes: list[Note] = []
    for item in draft.placed:
        message = _first_time(item.message, seen) if item.message.origin == rules.fmt else item.message
        if message is item.message or message == item.message:
            placed.append(item)
            continue
        notes.append(Note(item.at, "an item that was sent before is not repeated"))
        if message.parts:
            placed.append(Placed(item.at, message))
    return draft.changed(placed, notes) if notes else draft


def _first_time(message: Message, seen: set[str]) -> Message:
    parts = tuple(part for part in (_once(part, seen) for part in message.parts) if part is not None)
    return replace(message, parts=parts, extra=_without_seen_id(message.extra, seen))


def _once(part: Part, seen: set[str]) -> Part | None:
    match part:
        case Opaque(body=body):
            block = load(body)
            return None if isinstance(block, dict) and _known(block.get("id"), seen) else part
        case Reasoning(extra=extra):
            return part if extra == _without_seen_id(extra, seen) else None
        case ToolCall(extra=extra) | ToolResult(extra=extra):
            return replace(part, extra=_without_seen_id(extra, seen))
        case Text(extra=extra) | Image(extra=extra):
            fields, shape = unpack(extra)
            head = shape.get("item")
            if not isinstance(head, str) or head == (kept := _without_seen_id(head, seen)):
                return part
            return replace(part, extra=pack(fields, **{**shape, "item": kept}))


def _without_seen_id(extra: JsonText, seen: set[str]) -> JsonText:
    fields, shape = unpack(extra)
    if not _known(fields.get("id"), seen):
        return extra
    del fields["id"]
    return pack(fields, **shape)


def _known(name: object, seen: set[str]) -> bool:
    if not isinstance(name, str) or not name:
        return False
    known = name in seen
    seen.add(name)
    return known

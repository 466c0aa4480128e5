"""Odd shapes that a format's own messages may carry, and that its provider refuses.

Parsers keep how a payload was written, so that it comes back byte for byte. Where that very way of
writing is what the provider refuses, the hint goes and the usual shape is written. The last resort is
`plain`: a message without anything that only its own format knows.
"""

import re
from collections.abc import Callable
from dataclasses import replace

from everlong.core import JsonText, Message, Opaque, Part, Reasoning, Role, Text, ToolCall, ToolResult
from everlong.wire.fields import load, pack, unpack
from everlong.wire.formats.format import Rules
from everlong.wire.formats.validation import strict_json
from everlong.wire.repair.draft import Change

__all__ = ["NOT_ITS_OWN", "plain", "usual_shapes"]

NOT_ITS_OWN = "sent without what only its own format knows"
NOT_IN_A_NAME = re.compile(r"[\s<|\\/>]")
ODD_CALL = "message.tool_calls"  # an entry among the calls of OpenAI chat that is no call


def usual_shapes(message: Message, rules: Rules) -> Change | None:
    """The fix: messages of the provider's own format, written in the usual way."""
    if message.origin != rules.fmt:
        return None
    known = WRITERS[rules.fmt](message)
    return None if known == message else Change((known,), ("it was written in a way that is not accepted",))


def plain(message: Message, _rules: Rules) -> Change | None:
    """The last resort: words, pictures, calls and results alone."""
    if not message.origin:
        return None
    parts = tuple(_plain_part(part) for part in message.parts if not isinstance(part, Opaque | Reasoning))
    return Change((replace(message, parts=parts, origin="", extra=""),), (NOT_ITS_OWN,))


def _plain_part(part: Part) -> Part:
    if isinstance(part, Opaque):
        return part
    if isinstance(part, ToolResult):
        content = tuple(replace(inner, extra="") for inner in part.content if not isinstance(inner, Opaque))
        return replace(part, content=content, extra="")
    return replace(part, extra="")


def _without(extra: JsonText, *, hints: tuple[str, ...] = (), fields: tuple[str, ...] = ()) -> JsonText:
    """What is carried, less some of it; the same text if none of it was there."""
    if not extra:
        return extra
    carried, shape = unpack(extra)
    if not any(key in shape for key in hints) and not any(key in carried for key in fields):
        return extra
    kept = {key: value for key, value in carried.items() if key not in fields}
    return pack(kept, **{key: hint for key, hint in shape.items() if key not in hints})


# --- OpenAI chat ---------------------------------------------------------------------------------


def _chat(message: Message) -> Message:
    fields, shape = unpack(message.extra)
    refused = tuple(key for key in ("tool_calls", "function_call", "name") if fields.get(key) is not None)
    bare = ("content",) if shape.get("content") in ("bare", "empty") else ()
    old = ("role", "missing") if message.role is Role.TOOL else ()
    return replace(
        message,
        parts=tuple(_chat_part(part) for part in message.parts if not _unsendable(part)),
        name=NOT_IN_A_NAME.sub("_", message.name),
        extra=_without(message.extra, hints=(*bare, *old), fields=refused),
    )


def _unsendable(part: Part) -> bool:
    """Entries that are no calls, and sealed thinking whose seal is damaged."""
    if isinstance(part, Reasoning) and part.signature:
        return not _is_json(part.signature)
    return isinstance(part, Opaque) and part.kind == ODD_CALL


def _chat_part(part: Part) -> Part:
    match part:
        case ToolCall(extra=extra):
            shape = unpack(extra)[1]
            inner = shape.get("inner")
            odd = isinstance(inner, str) and "arguments" in unpack(inner)[1]
            return replace(part, extra=_without(extra, hints=("legacy", "inner") if odd or "legacy" in shape else ()))
        case Opaque(kind, body) if not kind.startswith("message."):
            block = load(body)
            words = block if isinstance(block, str) else body
            return part if isinstance(block, dict) and isinstance(block.get("type"), str) else Text(words)
        case _:
            return part


def _is_json(text: str) -> bool:
    try:
        strict_json(text)
    except ValueError:
        return False
    return True


# --- the others ----------------------------------------------------------------------------------


def _responses(message: Message) -> Message:
    spoken = "output_text" if message.role is Role.ASSISTANT else "input_text"
    return message.with_parts(tuple(_responses_part(part, spoken) for part in message.parts))


def _responses_part(part: Part, spoken: str) -> Part:
    match part:
        case Text(extra=extra) if str(unpack(extra)[0].get("type", spoken)) not in (spoken, "refusal"):
            return replace(part, extra=_without(extra, fields=("type",)))
        case ToolCall(extra=extra) if "kind" not in unpack(extra)[1]:
            return replace(part, extra=_without(extra, hints=("arguments",)))
        case ToolResult(extra=extra) if "kind" not in unpack(extra)[1]:
            odd = unpack(extra)[1].get("content") not in (None, "blocks")
            return replace(part, extra=_without(extra, hints=("content",) if odd else ()))
        case _:
            return part


def _anthropic(message: Message) -> Message:
    parts = (
        replace(part, extra=_without(part.extra, hints=("input",))) if isinstance(part, ToolCall) else part
        for part in message.parts
    )
    return message.with_parts(tuple(parts))


def _gemini(message: Message) -> Message:
    return message.with_parts(tuple(_gemini_part(part) for part in message.parts))


def _gemini_part(part: Part) -> Part:
    """A response that was no object is written as text."""
    if isinstance(part, ToolResult) and unpack(part.extra)[1].get("json") == "value":
        return replace(part, extra=_without(part.extra, hints=("json",)))
    return part


WRITERS: dict[str, Callable[[Message], Message]] = {
    "anthropic": _anthropic,
    "gemini": _gemini,
    "openai-chat": _chat,
    "openai-responses": _responses,
}

"""The messages of a Chatbox session, and how one of them becomes several.

    {"id": …, "role": "assistant", "contentParts": [{"type": "text", …}, {"type": "tool-call", "args", "result", …}]}

Chatbox keeps a whole run of the model, calls with their results and the words between them, in one message; so does
the `Message` here (`chatbox_runs` makes it fit to be sent). Before there were `contentParts` a message had its words
in `content`.
"""

from collections.abc import Sequence
from typing import assert_never, cast

from everlong.core import (
    CallId,
    Image,
    Json,
    JsonObject,
    Message,
    Opaque,
    Part,
    Reasoning,
    Role,
    Text,
    ToolCall,
    ToolResult,
)
from everlong.errors import WireError
from everlong.wire.fields import dump, load, opaque, opaque_body, pack, unpack
from everlong.wire.formats.translation import arguments_object, image_note
from everlong.wire.sessions.records import as_object, time_of

__all__ = ["FORMAT", "parse", "render"]

FORMAT = "chatbox"
ROLES = {role.value: role for role in Role}
FINISHED = {"result": False, "error": True}  # states of a call that was answered, and whether it failed


def parse(raw: Json, where: str = "") -> Message:
    """One message of the session, calls and results side by side in it."""
    fields = as_object(raw, fmt=FORMAT, where=where)
    role = ROLES.get(str(fields.pop("role", None)))
    if role is None:
        raise WireError(f"unknown role {cast(JsonObject, raw).get('role')!r}", fmt=FORMAT, where=where)
    parts, form = _content_in(fields)
    return Message(role, parts, time=time_of(fields.get("timestamp")), origin=FORMAT, extra=pack(fields, content=form))


def render(message: Message) -> JsonObject:
    """The message again."""
    fields, hints = unpack(message.extra) if message.origin == FORMAT else ({}, {})
    out = {"role": message.role.value} | fields
    match hints.get("content"), message.parts:
        case "words", (Text(text, ""),):
            return out | {"content": text}
        case "none", ():
            return out
        case _:
            return out | {"contentParts": _blocks_out(message.parts, own=message.origin == FORMAT)}


# --- content -----------------------------------------------------------------------------------


def _content_in(fields: JsonObject) -> tuple[tuple[Part, ...], str | None]:
    blocks, words = fields.get("contentParts"), fields.get("content")
    if isinstance(words, str) and not blocks:
        del fields["content"]
        return (Text(words),), "words"
    if not isinstance(blocks, list):
        return (), "none"
    del fields["contentParts"]
    return tuple(part for block in blocks for part in _block_in(block)), None


def _block_in(block: Json) -> tuple[Part, ...]:
    if not isinstance(block, dict):
        return (opaque(block),)
    fields = dict(block)
    match fields.pop("type", None), fields:
        case "text", {"text": str(text)}:
            del fields["text"]
            return (Text(text, pack(fields)),)
        case "reasoning", {"text": str(text)}:
            del fields["text"]
            return (Reasoning(text, extra=pack(fields)),)
        case "image", {"url": str(url)} if url:
            del fields["url"]
            return (Image(url=url, extra=pack(fields)),)
        case "tool-call", {"toolCallId": str(call), "toolName": str(name)}:
            return _call_in(CallId(call), name, fields)
    return (opaque(block),)


def _call_in(call: CallId, name: str, fields: JsonObject) -> tuple[Part, ...]:
    del fields["toolCallId"], fields["toolName"]
    failed = FINISHED.get(str(fields.get("state")))
    results: tuple[Part, ...] = ()
    if failed is not None:
        content, form = _result_in(fields)
        results = (ToolResult(call, content, name=name, failed=failed, extra=pack({}, result=form)),)
    given = None if "args" in fields else "none"
    return (ToolCall(call, name, dump(fields.pop("args", {})), pack(fields, args=given)), *results)


def _blocks_out(parts: Sequence[Part], *, own: bool) -> list[Json]:
    """The blocks, each result in the block of the call right before it."""
    blocks: list[Json] = []
    before: Part | None = None
    for part in parts:
        if isinstance(part, ToolResult) and isinstance(before, ToolCall) and before.id == part.call:
            blocks[-1] = _call_out(before, part, own=own)
        else:
            blocks.append(_block_out(part, own=own))
        before = part
    return blocks


def _block_out(part: Part, *, own: bool) -> Json:
    match part:
        case Opaque():
            return opaque_body(part)
        case ToolCall():
            return _call_out(part, None, own=own)
        case ToolResult():
            return _call_out(ToolCall(part.call, part.name, "{}"), part, own=own)
        case Text(text, extra):
            return {"type": "text", "text": text, **unpack(extra if own else "")[0]}
        case Reasoning(text, _, extra):
            return {"type": "reasoning", "text": text, **unpack(extra if own else "")[0]}
        case Image(url=url, extra=extra):
            if not url:
                return {"type": "text", "text": image_note(part)}
            return {"type": "image", "url": url, **unpack(extra if own else "")[0]}
        case _:
            assert_never(part)


def _call_out(call: ToolCall, result: ToolResult | None, *, own: bool) -> JsonObject:
    fields, hints = unpack(call.extra if own else "")
    out: JsonObject = {"type": "tool-call", "toolCallId": call.id, "toolName": call.name}
    if hints.get("args") != "none":
        out["args"] = _value(call.arguments)
    if result is None:
        return {"state": "call"} | out | fields
    state = "error" if result.failed else "result"
    form = unpack(result.extra if own else "")[1].get("result")
    answer: JsonObject = {} if form == "none" and not result.content else {"result": _result_out(result, form)}
    return out | fields | {"state": state} | answer


def _result_in(fields: JsonObject) -> tuple[tuple[Text, ...], str | None]:
    if "result" not in fields:
        return (), "none"
    result = fields.pop("result")
    return ((Text(result),), None) if isinstance(result, str) else ((Text(dump(result)),), "value")


def _result_out(result: ToolResult, form: Json) -> Json:
    """The value again where it still is one; the words of a shortened one."""
    if form != "value":
        return result.text
    try:
        return load(result.text)
    except ValueError:
        return result.text


def _value(arguments: str) -> Json:
    try:
        return load(arguments)
    except ValueError:
        return arguments_object(arguments)

"""Haystack: `ChatMessage`, one object per message, read and written in its own dict form.

For sealed reasoning, the provider's data is kept as the signature, whole or not at all. A file is passed through.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any, cast

from haystack.dataclasses import ChatMessage

from everlong.core import (
    CallId,
    Image,
    Json,
    JsonObject,
    Message,
    Opaque,
    Part,
    Reasoning,
    ResultPart,
    Role,
    Text,
    ToolCall,
    ToolResult,
)
from everlong.wire.fields import dump, load, pack, unpack
from everlong.wire.formats.translation import arguments_object
from everlong.wire.libraries.library import Library, Unit

__all__ = ["LIBRARY"]

NAME = "haystack"


def read(items: Sequence[ChatMessage]) -> list[Unit[ChatMessage]]:
    """Return each object with its message."""
    return [Unit((item,), (_message(_plain(item.to_dict())),)) for item in items]


def write(messages: Sequence[Message]) -> list[ChatMessage]:
    """Return objects for these messages."""
    return [ChatMessage.from_dict(cast(dict[str, Any], body)) for body in _bodies(messages)]


LIBRARY: Library[ChatMessage] = Library(name=NAME, packages=("haystack",), read=read, write=write)


def _plain(body: dict[str, Any]) -> JsonObject:
    """Return a body as JSON. Values in an application's metadata that are not JSON become text."""
    return cast(JsonObject, json.loads(json.dumps(body, default=str)))


# Reading


def _message(body: JsonObject) -> Message:
    parts = tuple(map(_part, cast(list[JsonObject], body["content"])))
    meta = cast(JsonObject, body.get("meta") or {})
    name = body.get("name")
    extra = pack({"meta": meta} if meta else {}, name="" if name == "" else None)
    return Message(
        Role(cast(str, body["role"])), parts, name=name if isinstance(name, str) else "", origin=NAME, extra=extra
    )


def _part(block: JsonObject) -> Part:
    match block:
        case {"tool_call": dict(call)}:
            return _call(call)
        case {"tool_call_result": dict(result)}:
            origin = cast(JsonObject, result["origin"])
            content = result["result"]
            words: list[JsonObject] = [{"text": content}]
            blocks = words if isinstance(content, str) else cast(list[JsonObject], content)
            return ToolResult(
                CallId(cast(str, origin.get("id") or "")),
                tuple(cast(ResultPart, _part(inner)) for inner in blocks),
                name=cast(str, origin["tool_name"]),
                failed=bool(result["error"]),
                extra=pack({"origin": origin}, result="text" if isinstance(content, str) else "list"),
            )
        case {"reasoning": {"reasoning_text": str(text), "extra": extra}}:
            return Reasoning(text, dump(extra) if extra else "")
        case {"text": str(text)}:
            return Text(text)
        case {"image": {"base64_image": str(data), "mime_type": str(media_type), **rest}}:
            detail = rest.get("detail")
            return Image(
                data, media_type, detail=detail if isinstance(detail, str) else "", extra=pack(cast(JsonObject, rest))
            )
    return Opaque(next(iter(block)), dump(block))


def _call(call: JsonObject) -> ToolCall:
    given = call.get("id")
    name, fields = cast(str, call["tool_name"]), call.get("extra")
    extra = pack({"extra": fields} if fields is not None else {}, id=None if isinstance(given, str) else "none")
    return ToolCall(CallId(given if isinstance(given, str) else ""), name, dump(call["arguments"]), extra)


# Writing


def _bodies(messages: Sequence[Message]) -> Iterator[JsonObject]:
    calls = {call.id: _call_out(call, own=False) for message in messages for call in message.calls}
    for message in messages:
        if message.origin == NAME:
            fields, shape = unpack(message.extra)
            yield {
                "role": message.role.value,
                "content": [block for part in message.parts if (block := _block(part, calls, own=True)) is not None],
                "name": message.name or shape.get("name"),
                "meta": fields.get("meta", {}),
            }
            continue
        # Some providers accept only one result per message, and no text next to it.
        results = [part for part in message.parts if isinstance(part, ToolResult)]
        words = [part for part in message.parts if not isinstance(part, ToolResult)]
        for result in results:
            yield {"role": "tool", "content": [_result_out(result, calls, own=False)]}
        blocks: list[Json] = [block for part in words if (block := _block(part, calls, own=False)) is not None]
        if blocks or not results:
            role = Role.USER if message.role is Role.TOOL else message.role
            yield {"role": role.value, "content": blocks or [{"text": ""}], "name": message.name or None}


def _block(part: Part, calls: dict[CallId, JsonObject], *, own: bool) -> Json:
    match part:
        case Text(text):
            return {"text": text}
        case Reasoning(text, signature):
            return {"reasoning": {"reasoning_text": text, "extra": load(signature) if own and signature else {}}}
        case ToolCall():
            return {"tool_call": _call_out(part, own=own)}
        case ToolResult():
            return _result_out(part, calls, own=own)
        case Image(data, media_type, url, detail) if not url:
            fields = unpack(part.extra)[0] if own else {"detail": detail or None, "validation": False}
            return {"image": {**fields, "base64_image": data, "mime_type": media_type}}
        case Opaque(_, body) if own:
            return load(body)
    return None


def _call_out(call: ToolCall, *, own: bool) -> JsonObject:
    fields, shape = unpack(call.extra if own else "")
    body: JsonObject = {"tool_name": call.name, "arguments": arguments_object(call.arguments)}
    return {**body, "id": None if shape.get("id") == "none" else call.id, **fields}


def _result_out(result: ToolResult, calls: dict[CallId, JsonObject], *, own: bool) -> JsonObject:
    fields, shape = unpack(result.extra if own else "")
    unknown: JsonObject = {"tool_name": result.name, "arguments": {}, "id": result.call}
    words = all(isinstance(part, Text) for part in result.content)
    content: Json = (
        result.text
        if words and shape.get("result", "text") == "text"
        else [block for part in result.content if (block := _block(part, calls, own=own)) is not None]
    )
    origin = fields.get("origin", calls.get(result.call, unknown))
    return {"tool_call_result": {"result": content, "origin": origin, "error": result.failed}}

"""LlamaIndex: `ChatMessage`, a role and a list of blocks.

    ChatMessage(role="tool", blocks=[TextBlock(…)], additional_kwargs={"tool_call_id": "call_1"})

Calls are blocks; older integrations have them only in `additional_kwargs`, newer ones repeat them there. A result is a
message with the role `tool`, with the id of its call in `additional_kwargs`. SDK objects in `additional_kwargs` are
written as their JSON, as LlamaIndex's own stores do.
"""

import base64
import json
from collections.abc import Callable, Sequence
from io import IOBase
from typing import Any, cast

from llama_index.core.base.llms.types import (
    ChatMessage,
    ContentBlock,
    ImageBlock,
    MessageRole,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)
from pydantic import BaseModel, TypeAdapter, ValidationError

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
from everlong.wire.libraries.library import Library, Unit

__all__ = ["LIBRARY"]

NAME = "llama-index"
ROLES = {
    MessageRole.SYSTEM: Role.SYSTEM,
    MessageRole.DEVELOPER: Role.SYSTEM,
    MessageRole.USER: Role.USER,
    MessageRole.ASSISTANT: Role.ASSISTANT,
    MessageRole.CHATBOT: Role.ASSISTANT,
    MessageRole.MODEL: Role.ASSISTANT,
    MessageRole.TOOL: Role.TOOL,
    MessageRole.FUNCTION: Role.TOOL,
}
#: LlamaIndex's usual name for each role.
USUAL = {role.value: MessageRole(role.value) for role in Role}
CALL_FIELDS = ("tool_call_id", "call_id")
BLOCK: TypeAdapter[Any] = TypeAdapter(ContentBlock)


def read(items: Sequence[Any]) -> list[Unit[Any]]:
    """Return a unit for each message."""
    return [Unit((item,), (_message_in(item),)) for item in items]


def write(messages: Sequence[Message]) -> list[Any]:
    """Return `ChatMessage` objects; a message with several results becomes several."""
    return [item for message in messages for item in _items_out(message)]


# --- reading ---------------------------------------------------------------------------------------


def _message_in(item: Any) -> Message:
    role, kwargs = ROLES[item.role], cast(JsonObject, _plain(item.additional_kwargs))
    kind = None if item.role == USUAL[role.value] else item.role.value
    if role is Role.TOOL:
        return _result_in(item, kwargs, kind)
    parts: list[Part] = [_part_in(block) for block in item.blocks]
    calls = _said(parts)
    repeated: Json = None
    if not calls:
        parts += _calls_in(kwargs)
    elif "tool_calls" in kwargs:  # repeated calls: written back only if the calls are unchanged
        repeated = {"calls": calls, "field": kwargs.pop("tool_calls")}
    return Message(role, tuple(parts), origin=NAME, extra=pack(kwargs, role=kind, repeated=repeated))


def _said(parts: Sequence[Part]) -> list[Json]:
    """Return the calls among the parts, for comparison."""
    return [[part.id, part.name, part.arguments] for part in parts if isinstance(part, ToolCall)]


def _result_in(item: Any, kwargs: JsonObject, kind: str | None) -> Message:
    field = next((field for field in CALL_FIELDS if isinstance(kwargs.get(field), str)), None)
    name = kwargs.get("name")
    call = cast(str, kwargs.pop(field)) if field else f"function:{name}" if name else ""
    content = tuple(_content_in(block) for block in item.blocks)
    result = ToolResult(CallId(call), content, name=name if isinstance(name, str) else "")
    return Message(Role.TOOL, (result,), origin=NAME, extra=pack(kwargs, role=kind, call=field or "none"))


def _content_in(block: Any) -> ResultPart:
    part = _part_in(block)
    return part if isinstance(part, Text | Image | Opaque) else _opaque_in(block)


def _part_in(block: Any) -> Part:
    reader = READERS.get(type(block), _opaque_in)
    return reader(block)


def _text_in(block: Any) -> Text:
    return Text(block.text)


def _image_in(block: Any) -> Image:
    data = block.image
    if isinstance(data, IOBase):
        data = base64.b64encode(cast(bytes, block.resolve_image().read()))
    kept: JsonObject = {} if block.path is None else {"path": str(block.path)}
    kept |= {field: "" for field in ("image_mimetype", "detail") if getattr(block, field) == ""}
    return Image(
        data=(data or b"").decode("ascii", "replace"),
        media_type=block.image_mimetype or "",
        url="" if block.url is None else str(block.url),
        detail=block.detail or "",
        extra=pack(kept),
    )


def _thinking_in(block: Any) -> Reasoning:
    more = cast(JsonObject, _plain(block.additional_information))
    signature = more.get("signature")
    if signature and isinstance(signature, str):
        del more["signature"]
    else:
        signature = ""
    shape = pack(more, tokens=block.num_tokens, silent=block.content is None or None)
    return Reasoning(block.content or "", signature, shape)


def _call_in(block: Any) -> ToolCall:
    said = block.tool_kwargs
    arguments = said if isinstance(said, str) else dump(_plain(said))
    return ToolCall(
        CallId(block.tool_call_id or ""),
        block.tool_name,
        arguments,
        pack({}, text=isinstance(said, str) or None, nameless=block.tool_call_id is None or None),
    )


def _opaque_in(block: Any) -> Opaque:
    return Opaque(block.block_type, block.model_dump_json())


def _calls_in(kwargs: JsonObject) -> list[Part]:
    """Remove and return the calls that are only in `additional_kwargs`. A list with anything else stays."""
    listed, old = kwargs.get("tool_calls"), kwargs.get("function_call")
    calls = [_listed_call(entry) for entry in listed] if isinstance(listed, list) else []
    if calls and None not in calls:
        del kwargs["tool_calls"]
        return [call for call in calls if call is not None]
    if isinstance(old, dict) and isinstance(old.get("name"), str) and isinstance(old.get("arguments"), str):
        del kwargs["function_call"]
        name, arguments = cast(str, old.pop("name")), cast(str, old.pop("arguments"))
        return [ToolCall(CallId(f"function:{name}"), name, arguments, pack(old, place="function_call"))]
    return []


def _listed_call(entry: Json) -> ToolCall | None:
    if not isinstance(entry, dict) or not isinstance(entry.get("function"), dict):
        return None
    fields, inner = dict(entry), dict(cast(JsonObject, entry["function"]))
    call, name, arguments = fields.pop("id", None), inner.pop("name", None), inner.pop("arguments", None)
    if not isinstance(call, str) or not isinstance(name, str) or not isinstance(arguments, str):
        return None
    return ToolCall(CallId(call), name, arguments, pack(fields | {"function": inner}, place="tool_calls"))


def _plain(value: Any) -> Json:
    """Return a value of any type as JSON."""
    if isinstance(value, dict):
        return {str(key): _plain(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(member) for member in value]
    if isinstance(value, BaseModel):
        return cast(Json, value.model_dump(mode="json"))
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value if value is None or isinstance(value, str | int | float) else str(value)


# --- writing ---------------------------------------------------------------------------------------


def _items_out(message: Message) -> list[Any]:
    ours = message.origin == NAME
    kwargs, shape = unpack(message.extra) if ours else ({}, {})
    role = MessageRole(cast(str, shape.get("role", message.role.value)))
    items = [_result_out(result, role, kwargs, shape, ours) for result in message.results]
    rest = [part for part in message.parts if not isinstance(part, ToolResult)]
    if message.role is Role.TOOL:
        return items + ([_message_out(MessageRole.USER, rest, {}, ours)] if rest or not items else [])
    repeated = cast(JsonObject, shape.get("repeated", {}))
    if repeated and repeated["calls"] == _said(rest):
        kwargs["tool_calls"] = repeated["field"]
    return [_message_out(role, rest, kwargs, ours), *items]


def _message_out(role: MessageRole, parts: Sequence[Part], kwargs: JsonObject, ours: bool) -> Any:
    more: dict[str, Any] = dict(kwargs)
    calls = [part for part in parts if isinstance(part, ToolCall)]
    elsewhere = [call for call in calls if ours and "place" in unpack(call.extra)[1]]
    for call in elsewhere:
        fields, shape = unpack(call.extra)
        if shape["place"] == "function_call":
            more["function_call"] = fields | {"name": call.name, "arguments": call.arguments}
        else:
            inner = cast(JsonObject, fields.pop("function", {}))
            said = {"id": call.id, **fields, "function": {**inner, "name": call.name, "arguments": call.arguments}}
            more.setdefault("tool_calls", []).append(said)
    blocks = [block for part in parts if part not in elsewhere for block in _blocks_out(part, ours)]
    return ChatMessage(role=role, blocks=blocks, additional_kwargs=more)


def _result_out(result: ToolResult, role: MessageRole, kwargs: JsonObject, shape: JsonObject, ours: bool) -> Any:
    field = cast(str, shape.get("call", CALL_FIELDS[0]))
    more = kwargs if field == "none" else {**kwargs, field: result.call}
    if result.name and not ours:
        more = {**more, "name": result.name}
    blocks = [block for part in result.content for block in _blocks_out(part, ours)]
    return ChatMessage(role=role, blocks=blocks, additional_kwargs=dict(more))


def _blocks_out(part: Part, ours: bool) -> list[Any]:
    match part:
        case Text():
            return [TextBlock(text=part.text)]
        case Image():
            return [_image_out(part, ours)]
        case Reasoning():
            return [_thinking_out(part, ours)]
        case ToolCall():
            return [_call_out(part, ours)]
        case Opaque() if ours:
            return _opaque_out(part)
        case _:
            return []


def _image_out(part: Image, ours: bool) -> Any:
    fields = unpack(part.extra)[0] if ours else {}
    said = {"image_mimetype": part.media_type, "detail": part.detail, "url": part.url, "image": part.data.encode()}
    said = {field: value for field, value in said.items() if value}
    try:
        return ImageBlock(**fields | said)
    except ValidationError:  # its file is gone; LlamaIndex reports that when it is sent
        return ImageBlock(**said)


def _thinking_out(part: Reasoning, ours: bool) -> Any:
    more, shape = unpack(part.extra) if ours else ({}, {})
    if part.signature:
        more = {**more, "signature": part.signature}
    content = None if "silent" in shape and not part.text else part.text
    return ThinkingBlock(content=content, num_tokens=shape.get("tokens"), additional_information=more)


def _call_out(part: ToolCall, ours: bool) -> Any:
    shape = unpack(part.extra)[1] if ours else {}
    said: Any = part.arguments
    if "text" not in shape:
        try:
            loaded = load(part.arguments)
        except json.JSONDecodeError:
            loaded = None
        said = loaded if isinstance(loaded, dict) else said
    call = None if "nameless" in shape and not part.id else part.id
    return ToolCallBlock(tool_call_id=call, tool_name=part.name, tool_kwargs=said)


def _opaque_out(part: Opaque) -> list[Any]:
    try:
        return [BLOCK.validate_json(part.body)]
    except ValidationError:  # a block of a newer version, or its file is gone
        return []


READERS: dict[type, Callable[[Any], Part]] = {
    TextBlock: _text_in,
    ImageBlock: _image_in,
    ThinkingBlock: _thinking_in,
    ToolCallBlock: _call_in,
}
LIBRARY: Library[Any] = Library(name=NAME, packages=("llama_index",), read=read, write=write)

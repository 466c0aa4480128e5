"""smolagents: `ChatMessage`, a role and a list of elements.

    ChatMessage(role=MessageRole.TOOL_RESPONSE, content=[{"type": "text", "text": "Observation:\\n…"}])

It sends calls as assistant text and results as user text, so they are read as such. The `tool_calls` of a message are
never sent, but kept. `raw`, the provider's own answer, belongs to the original object: a changed message has none.
"""

import base64
from collections.abc import Sequence
from io import BytesIO
from typing import Any, cast

from PIL import Image as Pictures  # type: ignore[import-not-found]
from smolagents.models import ChatMessage, ChatMessageToolCall, ChatMessageToolCallFunction, MessageRole
from smolagents.monitoring import TokenUsage
from smolagents.utils import encode_image_base64

from everlong.core import Image, Json, JsonObject, Message, Opaque, Part, Role, Text, ToolResult
from everlong.wire.fields import opaque, opaque_body, pack, unpack
from everlong.wire.libraries.library import Library, Unit

__all__ = ["LIBRARY"]

NAME = "smolagents"
ROLES = {
    MessageRole.SYSTEM: Role.SYSTEM,
    MessageRole.USER: Role.USER,
    MessageRole.ASSISTANT: Role.ASSISTANT,
    MessageRole.TOOL_CALL: Role.ASSISTANT,
    MessageRole.TOOL_RESPONSE: Role.USER,
}
OUTWARD = {Role.TOOL: MessageRole.TOOL_RESPONSE} | {role: MessageRole(role.value) for role in Role if role != "tool"}
DATA_URL = "data:"


def read(items: Sequence[Any]) -> list[Unit[Any]]:
    """Return a unit for each message."""
    return [Unit((item,), (_message_in(item),)) for item in items]


def write(messages: Sequence[Message]) -> list[Any]:
    """Return the messages as `ChatMessage` objects."""
    return [_message_out(message) for message in messages]


# --- reading ---------------------------------------------------------------------------------------


def _message_in(item: Any) -> Message:
    role = MessageRole(item.role)
    form = "text" if isinstance(item.content, str) else "none" if item.content is None else None
    elements = item.content if form is None else [{"type": "text", "text": item.content}] if form == "text" else []
    usage = None if item.token_usage is None else [item.token_usage.input_tokens, item.token_usage.output_tokens]
    calls = None if item.tool_calls is None else [_call_in(call) for call in item.tool_calls]
    kind = None if OUTWARD[ROLES[role]] == role else role.value
    extra = pack({}, role=kind, content=form, usage=usage, calls=calls)
    return Message(ROLES[role], tuple(_part_in(element) for element in elements), origin=NAME, extra=extra)


def _call_in(call: Any) -> Json:
    function = call.function
    arguments = {"name": function.name, "arguments": function.arguments, "description": function.description}
    return {"id": call.id, "type": call.type, "function": arguments}


def _part_in(element: dict[str, Any]) -> Part:
    fields = dict(element)
    kind = fields.pop("type", None)
    if kind == "text" and isinstance(fields.get("text"), str):
        return Text(fields.pop("text"), pack(fields))
    if kind == "image" and isinstance(fields.get("image"), Pictures.Image):
        return Image(data=encode_image_base64(fields.pop("image")), media_type="image/png", extra=pack(fields))
    if kind == "image_url" and isinstance(fields.get("image_url"), dict):
        return _linked_in(fields)
    return opaque(element)


def _linked_in(fields: dict[str, Any]) -> Part:
    inner = dict(fields.pop("image_url"))
    url, detail = inner.pop("url", ""), inner.pop("detail", "")
    extra = pack(fields, linked=inner)
    head, comma, data = url.partition(";base64,")
    if comma and head.startswith(DATA_URL):
        return Image(data=data, media_type=head.removeprefix(DATA_URL), detail=detail, extra=extra)
    return Image(url=url, detail=detail, extra=extra)


# --- writing ---------------------------------------------------------------------------------------


def _message_out(message: Message) -> Any:
    ours = message.origin == NAME
    shape = unpack(message.extra)[1] if ours else {}
    elements: Any = [element for part in message.parts for element in _elements_out(part, ours)]
    form = shape.get("content")
    if form == "none" and not elements:
        elements = None
    elif form == "text" and all(element.keys() == {"type", "text"} for element in elements):
        elements = "\n".join(element["text"] for element in elements)
    usage = cast(list[int] | None, shape.get("usage"))
    calls = cast(list[dict[str, Any]] | None, shape.get("calls"))
    return ChatMessage(
        role=MessageRole(shape["role"]) if "role" in shape else OUTWARD[message.role],
        content=elements,
        tool_calls=None if calls is None else [_call_out(call) for call in calls],
        token_usage=None if usage is None else TokenUsage(*usage),
    )


def _elements_out(part: Part, ours: bool) -> list[dict[str, Any]]:
    match part:
        case Text():
            return [{"type": "text", "text": part.text, **(unpack(part.extra)[0] if ours else {})}]
        case Image():
            return [_image_out(part, ours)]
        case ToolResult():
            return [{"type": "text", "text": part.text}]
        case Opaque() if ours:
            return [cast(dict[str, Any], opaque_body(part))]
        case _:
            return []


def _image_out(part: Image, ours: bool) -> dict[str, Any]:
    fields, shape = unpack(part.extra) if ours else ({}, {})
    if part.data and "linked" not in shape:
        return {"type": "image", "image": Pictures.open(BytesIO(base64.b64decode(part.data))), **fields}
    url = f"{DATA_URL}{part.media_type};base64,{part.data}" if part.data else part.url
    inner = {
        "url": url,
        **({"detail": part.detail} if part.detail else {}),
        **cast(JsonObject, shape.get("linked", {})),
    }
    return {"type": "image_url", "image_url": inner, **fields}


def _call_out(call: dict[str, Any]) -> Any:
    return ChatMessageToolCall(ChatMessageToolCallFunction(**call["function"]), call["id"], call["type"])


LIBRARY: Library[Any] = Library(name=NAME, packages=("smolagents",), read=read, write=write)

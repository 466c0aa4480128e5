"""Microsoft's Agent Framework: `Message` with its contents.

    Message("assistant", [Content.from_function_call("c1", "read", arguments='{"path": "a.md"}')])

A message is read as the dict that it serializes to. So `raw_representation` and the diagnostics of failures, which the
framework does not store, are not kept either; an unchanged message still has both. The framework's own notes on a
message (where it came from, whether it is compacted) are left out, so that a message stays equal to itself.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, cast

from everlong.core import (
    CallId,
    Image,
    Json,
    JsonObject,
    JsonText,
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
from everlong.errors import WireError
from everlong.wire.fields import dump, load, opaque, pack, unpack
from everlong.wire.formats.translation import DATA_URL, inline_image
from everlong.wire.libraries.library import Library, Unit

__all__ = ["LIBRARY", "read_row", "write_row"]

NAME = "agent-framework"
ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT, "system": Role.SYSTEM, "tool": Role.TOOL}
#: The beginning of the framework's own notes among the properties: `_attribution`, `_group`, `_excluded`, …
NOTE = "_"
PROPERTIES = "additional_properties"
#: The id that the framework gives a message without one when it numbers its list.
NUMBERED = re.compile(r"msg_\d+")
#: The field of a failure after serialization.
FAILED = "exception"


def read(items: Sequence[Any]) -> list[Unit[Any]]:
    """Return each message as a separate unit."""
    return [Unit((item,), (read_row(_row_of(item, at)),)) for at, item in enumerate(items)]


def write(messages: Sequence[Message]) -> list[Any]:
    """Return new messages of the framework."""
    from agent_framework import Message as FrameworkMessage  # noqa: PLC0415 - reading works without the framework

    return [FrameworkMessage.from_dict(write_row(message)) for message in messages]


def _row_of(item: Any, at: int) -> JsonObject:
    serialize = getattr(item, "to_dict", None)
    if serialize is None:
        raise WireError(f"a message cannot be a {type(item).__name__}", fmt=NAME, where=f"messages[{at}]")
    return cast(JsonObject, serialize())


def read_row(row: JsonObject) -> Message:
    """Read the message in a dict that `to_dict` wrote."""
    fields = dict(row)
    fields.pop("type", None)
    said = str(fields.pop("role", ""))
    contents = fields.pop("contents", [])
    name = fields.pop("author_name", None)
    role = ROLES.get(said, Role.SYSTEM if said == "developer" else Role.USER)
    parts = tuple(_content_in(content) for content in cast("list[JsonObject]", contents))
    fields[PROPERTIES] = _without_notes(fields.get(PROPERTIES))
    if NUMBERED.fullmatch(str(fields.get("message_id"))):
        del fields["message_id"]
    extra = pack({key: value for key, value in fields.items() if value}, role=None if said == role else said)
    return Message(role, parts, name=name if isinstance(name, str) else "", origin=NAME, extra=extra)


def write_row(message: Message) -> JsonObject:
    """Return the dict that `from_dict` reads."""
    own = message.origin == NAME
    fields, shape = unpack(message.extra if own else "")
    contents = [written for written in (_content_out(part, own=own) for part in message.parts) if written is not None]
    row: JsonObject = {"role": shape.get("role", str(message.role)), "contents": cast(Json, contents), **fields}
    return {**row, "author_name": message.name} if message.name else row


def _without_notes(properties: Json) -> JsonObject:
    if not isinstance(properties, dict):
        return {}
    return {name: value for name, value in properties.items() if not name.startswith(NOTE)}


# --- contents ----------------------------------------------------------------------------------


def _content_in(raw: JsonObject) -> Part:
    reader = READERS.get(str(raw.get("type")))
    part = reader(dict(raw)) if reader is not None else None
    return opaque(raw) if part is None else part


def _rest(fields: JsonObject, *read_keys: str, **shape: Json) -> JsonText:
    """Return what was not read, without empty properties, which every content has."""
    rest = {key: value for key, value in fields.items() if key not in ("type", *read_keys)}
    if not rest.get(PROPERTIES):
        rest.pop(PROPERTIES, None)
    return pack(rest, **shape)


def _text_in(fields: JsonObject) -> Part | None:
    text = fields.get("text")
    return Text(text, _rest(fields, "text")) if isinstance(text, str) else None


def _thought_in(fields: JsonObject) -> Part | None:
    text, sealed = fields.get("text"), fields.get("protected_data")
    shape = None if isinstance(text, str) else "absent"
    return Reasoning(
        text if isinstance(text, str) else "",
        sealed if isinstance(sealed, str) else "",
        _rest(fields, "text", "protected_data", text=shape),
    )


def _picture_in(fields: JsonObject) -> Image | None:
    """Read `data` and `uri`: a data URL or an address; None if it is not an image."""
    uri, media = fields.get("uri"), fields.get("media_type")
    if not isinstance(uri, str) or not isinstance(media, str) or not media.startswith("image/"):
        return None
    inline = DATA_URL.fullmatch(uri)
    kind = cast(str, fields["type"])
    if inline and inline[1] == media:
        extra = _rest(fields, "uri", "media_type", kind=None if kind == "data" else kind)
        return Image(data=inline[2], media_type=media, extra=extra)
    return Image(url=uri, media_type=media, extra=_rest(fields, "uri", "media_type", kind=kind))


def _call_in(fields: JsonObject) -> Part | None:
    call, name, arguments = fields.get("call_id"), fields.get("name"), fields.get("arguments")
    if not isinstance(call, str) or not isinstance(name, str):
        return None
    form = None if isinstance(arguments, str) else "absent" if arguments is None else "value"
    text = arguments if isinstance(arguments, str) else dump({} if arguments is None else arguments)
    return ToolCall(CallId(call), name, text, _rest(fields, "call_id", "name", "arguments", arguments=form))


def _result_in(fields: JsonObject) -> Part | None:
    """Read the items of a result. `result` repeats their text; results of older versions have only that."""
    call, items, result = fields.get("call_id"), fields.get("items"), fields.get("result")
    if not isinstance(call, str):
        return None
    failed = bool(fields.get(FAILED))
    if not isinstance(items, list):
        form = "text" if isinstance(result, str) else "absent" if result is None else "value"
        text = result if isinstance(result, str) else "" if result is None else dump(result)
        extra = _rest(fields, "call_id", "result", result=form)
        return ToolResult(CallId(call), (Text(text),) if text else (), failed=failed, extra=extra)
    parts = tuple(_result_part_in(item) for item in items)
    words = _words(parts)
    odd: Json = None if result == words else [words, *([result] if "result" in fields else [])]
    return ToolResult(CallId(call), parts, failed=failed, extra=_rest(fields, "call_id", "items", "result", odd=odd))


def _result_part_in(raw: Json) -> ResultPart:
    part = _content_in(raw) if isinstance(raw, dict) else None
    return part if isinstance(part, Text | Image) else opaque(raw)


def _words(parts: Sequence[ResultPart]) -> str:
    """Return the text of `result`, as the framework makes it from the items."""
    return "\n".join(part.text for part in parts if isinstance(part, Text) and part.text)


READERS: dict[str, Callable[[JsonObject], Part | None]] = {
    "text": _text_in,
    "text_reasoning": _thought_in,
    "data": _picture_in,
    "uri": _picture_in,
    "function_call": _call_in,
    "function_result": _result_in,
}


# --- writing contents --------------------------------------------------------------------------


def _content_out(part: Part, *, own: bool) -> JsonObject | None:
    match part:
        case Text(text, extra):
            return {"type": "text", "text": text, **unpack(extra if own else "")[0]} if own or text.strip() else None
        case Image():
            return _picture_out(part, own=own)
        case ToolCall():
            return _call_out(part, own=own)
        case ToolResult():
            return _result_out(part, own=own)
        case Reasoning():
            return _thought_out(part) if own else None
        case Opaque():
            return cast(JsonObject, load(part.body)) if own else None


def _picture_out(image: Image, *, own: bool) -> JsonObject:
    rest, shape = unpack(image.extra if own else "")
    inline = inline_image(image)
    if inline is not None and not image.url:
        uri, kind = f"data:{inline[0]};base64,{inline[1]}", "data"
    else:
        uri, kind = image.url, "data" if inline is not None else "uri"
    media = image.media_type or (inline[0] if inline is not None else "image/png")
    return {"type": shape.get("kind", kind), "uri": uri, "media_type": media, **rest}


def _thought_out(part: Reasoning) -> JsonObject:
    rest, shape = unpack(part.extra)
    out: JsonObject = {"type": "text_reasoning"}
    if part.text or shape.get("text") != "absent":
        out["text"] = part.text
    return {**out, **({"protected_data": part.signature} if part.signature else {}), **rest}


def _call_out(call: ToolCall, *, own: bool) -> JsonObject:
    rest, shape = unpack(call.extra if own else "")
    out: JsonObject = {"type": "function_call", "call_id": call.id, "name": call.name}
    form = shape.get("arguments")
    if form != "absent" or call.arguments != "{}":
        out["arguments"] = _value(call.arguments) if form == "value" else call.arguments
    return out | rest


def _result_out(result: ToolResult, *, own: bool) -> JsonObject:
    rest, shape = unpack(result.extra if own else "")
    out: JsonObject = {"type": "function_result", "call_id": result.call}
    form = shape.get("result")
    if form is not None and all(isinstance(part, Text) for part in result.content):
        value = _value(result.text) if form == "value" else result.text
        return out | rest | ({} if form == "absent" and not value else {"result": value})
    items = [item for item in (_content_out(part, own=own) for part in result.content) if item is not None]
    words = _words(result.content)
    match shape.get("odd"):
        case [said, *other] if said == words:  # `result` differed from the items' text, and the items are unchanged
            return {**out, **({"result": other[0]} if other else {}), "items": cast(Json, items), **rest}
        case _:
            return {**out, "result": words, "items": cast(Json, items), **rest}


def _value(text: JsonText) -> Json:
    try:
        return load(text)
    except (ValueError, RecursionError):  # shortened since it was read
        return text


LIBRARY: Library[Any] = Library(name=NAME, packages=("agent_framework",), read=read, write=write)

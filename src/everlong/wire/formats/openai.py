"""Content, images and arguments in the shapes that both of OpenAI's formats use.

Content is a string, a list of blocks, one bare block, null, or missing; arguments are JSON text, a value, or the free
text of a custom tool. Each reader returns the parts and a hint; its writer turns these back into the same JSON. This
module knows no messages or items.
"""

import re
from collections.abc import Callable, Sequence
from typing import assert_never, cast

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
    ref_of,
)
from everlong.errors import WireError
from everlong.wire.document import Document
from everlong.wire.fields import dump, load, opaque, pack, unpack
from everlong.wire.formats.translation import image_note

__all__ = [
    "adopt",
    "arguments_in",
    "arguments_out",
    "at",
    "body_fields",
    "content_in",
    "content_out",
    "image_from",
    "image_url",
    "missing",
    "settings_of",
    "settle",
    "take_list",
    "take_text",
    "take_tools",
    "text_in",
    "text_out",
]

TEXT_TYPES = ("text", "input_text", "output_text", "summary_text", "reasoning_text")
DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+);base64,(.*)", re.DOTALL)


# --- fields --------------------------------------------------------------------------------------


def at(where: str, key: str) -> str:
    """Return the place of a field, for errors. Example: at("messages[3]", "role") -> "messages[3].role" """
    return f"{where}.{key}" if where else key


def take_text(fields: JsonObject, key: str) -> str:
    """Remove and return the string under `key`. An empty or odd value stays, and "" is returned."""
    value = fields.get(key)
    if isinstance(value, str) and value:
        del fields[key]
        return value
    return ""


def missing(raw: JsonObject, *keys: str) -> Json:
    """Return the hint that some of these usual keys were missing; None if none was."""
    return [key for key in keys if key not in raw] or None


def settle(written: JsonObject, fields: JsonObject, shape: JsonObject) -> JsonObject:
    """Write one object again. A field for which we have no value keeps what was read, or stays missing.

    Example: settle({"id": "", "name": "f"}, {"id": 5}, {}) -> {"name": "f", "id": 5}
    """
    held = {*fields, *cast("list[str]", shape.get("missing", []))}
    out = {key: value for key, value in written.items() if key not in held or (value and key != "type")}
    return out | {key: value for key, value in fields.items() if key not in out}


# --- content -------------------------------------------------------------------------------------


def content_in(
    fields: JsonObject, key: str, block_in: Callable[[JsonObject], ResultPart]
) -> tuple[list[ResultPart], str]:
    """Remove the content under `key`, and return its parts and its form.

    Forms: string, blocks, bare (one block without a list); without parts: empty, null, absent.
    """
    if key not in fields:
        return [], "absent"
    content = fields.pop(key)
    if content is None:
        return [], "null"
    if isinstance(content, str):
        return [Text(content)], "string"
    if content == []:
        return [], "empty"
    if isinstance(content, list):
        return [block_in(block) if isinstance(block, dict) else opaque(block) for block in content], "blocks"
    return [block_in(content) if isinstance(content, dict) else opaque(content)], "bare"


def content_out(
    key: str, parts: Sequence[ResultPart], form: Json, block_out: Callable[[ResultPart], Json]
) -> JsonObject:
    """Return the field again. Parts that no longer fit their form become blocks; if no part is left, it is ""."""
    if not parts:
        empty: dict[Json, JsonObject] = {"absent": {}, "null": {key: None}, "empty": {key: []}}
        return empty.get(form, {key: ""})
    only = parts[0] if len(parts) == 1 else None
    if only is not None and form == "bare":
        return {key: block_out(only)}
    if isinstance(only, Text) and not only.extra and form != "blocks":
        return {key: only.text}
    return {key: [block_out(part) for part in parts]}


def text_in(block: JsonObject, usual: str) -> Text | None:
    """Read a block of text or a refusal; None for any other block. `usual` is the type that needs no hint."""
    fields = dict(block)
    kind = fields.get("type")
    key = "refusal" if kind == "refusal" else "text"
    text = fields.pop(key, None)
    if not isinstance(text, str) or not isinstance(kind, str) or kind not in (*TEXT_TYPES, "refusal"):
        return None
    if kind == usual:
        del fields["type"]
    return Text(text, pack(fields))


def text_out(part: Text, usual: str) -> JsonObject:
    """Return the block of a text."""
    fields, _ = unpack(part.extra)
    key = "refusal" if fields.get("type") == "refusal" else "text"
    return settle({"type": usual, key: part.text}, fields, {})


def image_from(url: str, detail: str, extra: JsonText) -> Image:
    """Return the image for a URL. Base64 data in a data URL is extracted."""
    inline = DATA_URL.fullmatch(url)
    if inline:
        return Image(data=inline[2], media_type=inline[1], detail=detail, extra=extra)
    return Image(url=url, detail=detail, extra=extra)


def image_url(image: Image) -> str:
    """Return the URL of an image.

    Example: Image(data="aGk=", media_type="image/png") -> "data:image/png;base64,aGk="
    """
    return image.url or f"data:{image.media_type};base64,{image.data}"


# --- arguments -----------------------------------------------------------------------------------


def arguments_in(fields: JsonObject, key: str, *, free: bool = False) -> tuple[JsonText, str | None]:
    """Remove the arguments, and return them as JSON text with their form if that was not a string.

    The free text of a custom tool becomes an object, so that arguments are always JSON.
    Example: arguments_in({"input": "ls"}, "input", free=True) -> '{"input":"ls"}', None
    """
    if key not in fields:
        return "{}", "absent"
    value = fields.pop(key)
    if value is None:
        return "{}", "null"
    if isinstance(value, str):
        return (dump({"input": value}) if free else value), None
    return dump(value), "value"


def arguments_out(key: str, arguments: JsonText, form: Json, *, free: bool = False) -> JsonObject:
    """Return the field again. Changed arguments are written in a form that can express them."""
    if arguments == "{}" and form in ("absent", "null"):
        return {} if form == "absent" else {key: None}
    if form != "value" and not free:
        return {key: arguments}
    try:
        value = load(arguments)
    except ValueError:
        return {key: arguments}
    if form == "value":
        return {key: value}
    words = value.get("input") if isinstance(value, dict) else None
    return {key: words if isinstance(words, str) else arguments}


def body_fields(raw: Json, key: str, fmt: str) -> JsonObject:
    """Return the fields of a body; a plain list is a body with nothing else."""
    if isinstance(raw, list):
        return {key: raw}
    if isinstance(raw, dict):
        return dict(raw)
    raise WireError(f"a request must be an object or a list, not {type(raw).__name__}", fmt=fmt)


def take_list(fields: JsonObject, key: str, fmt: str) -> list[Json]:
    """Remove and return the list under `key`."""
    if key not in fields:
        raise WireError(f"no {key}", fmt=fmt, where=key)
    found = fields.pop(key)
    if not isinstance(found, list):
        raise WireError(f"{key} must be a list, not {type(found).__name__}", fmt=fmt, where=key)
    return found


def take_tools(fields: JsonObject) -> tuple[JsonText, ...]:
    """Remove and return the tool schemas. Anything but a non-empty list stays."""
    tools = fields.get("tools")
    if not isinstance(tools, list) or not tools:
        return ()
    del fields["tools"]
    return tuple(dump(tool) for tool in tools)


def settings_of(document: Document, fmt: str) -> tuple[JsonObject, JsonObject]:
    """Return all fields of the body except the messages, and the hints; from another format, only the model."""
    if document.fmt != fmt:
        return ({"model": document.model} if document.model else {}), {}
    fields, shape = unpack(document.extra)
    written: JsonObject = {"model": document.model} if document.model else {}
    if document.tools:
        written["tools"] = [load(tool) for tool in document.tools]
    return settle(written, fields, {}), shape


ACCEPTED_NAME = re.compile(r"[^\s<|\\/>]+")
REACHABLE = ("http://", "https://", "data:")


def adopt(message: Message, longest_id: int) -> Message:
    """Return a message of another format without its format's own fields and parts; it may have no parts left."""
    parts = [adopted for part in message.parts for adopted in _adopted(part, message.role, longest_id)]
    return Message(message.role, tuple(parts), name=_adopted_name(message.name))


def _adopted(part: Part, role: Role, longest_id: int) -> tuple[Part, ...]:
    match part:
        case Text(text) if not text.strip():
            return ()
        case Text() | Image() | Opaque():
            return _adopted_content(part, pictures=role in (Role.USER, Role.TOOL))
        case ToolCall(call, name, arguments):
            return (ToolCall(_call_id(call, longest_id), name, arguments),)
        case ToolResult(call, content, name, failed):
            kept = tuple(inner for block in content for inner in _adopted_content(block, pictures=True))
            return (ToolResult(_call_id(call, longest_id), kept, _adopted_name(name), failed),)
        case Reasoning(text, signature):
            return () if signature else (Reasoning(text),)
        case _:
            assert_never(part)


def _adopted_content(part: ResultPart, *, pictures: bool) -> tuple[ResultPart, ...]:
    match part:
        case Text(text):
            return (Text(text),) if text else ()
        case Image(data, media_type, url, detail):
            shown = pictures and (data or url.startswith(REACHABLE))
            return (Image(data, media_type, url, detail) if shown else Text(image_note(part)),)
        case Opaque():
            return ()
        case _:
            assert_never(part)


def _call_id(call: CallId, longest: int) -> CallId:
    """Return an id of an accepted length, the same for a call and its result."""
    return call if len(call) <= longest else CallId(f"call_{ref_of(call)}")


def _adopted_name(name: str) -> str:
    return name if ACCEPTED_NAME.fullmatch(name) else ""

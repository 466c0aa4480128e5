"""The content blocks of Anthropic Messages.

    text, image, tool_use, tool_result, thinking, redacted_thinking; every other block is carried along

A block of our own format comes back as it was. A part of another origin is translated; reasoning and
opaque parts of another origin, and blank text, which the provider rejects, are left out.
"""

import re
from collections.abc import Callable, Sequence
from typing import assert_never, cast

from everlong.core import (
    CallId,
    Image,
    Json,
    JsonObject,
    Opaque,
    Part,
    Reasoning,
    ResultPart,
    Text,
    ToolCall,
    ToolResult,
    ref_of,
)
from everlong.errors import WireError
from everlong.wire.fields import dump, opaque, opaque_body, pack, unpack
from everlong.wire.translation import arguments_object, image_note, inline_image, is_web_url

__all__ = ["FORMAT", "block_in", "blocks_out", "valid_id"]

FORMAT = "anthropic"

IMAGE_TYPES = frozenset({"image/gif", "image/jpeg", "image/png", "image/webp"})
#: What identifies the picture in each kind of source.
IMAGE_SOURCES = {"url": "url", "file": "file_id"}
VALID_ID = re.compile(r"[a-zA-Z0-9_-]+")
NOT_IN_A_NAME = re.compile(r"[^a-zA-Z0-9_-]")
LONGEST_NAME = 128


def block_in(raw: Json, where: str) -> Part:
    """One block of a message's content."""
    kind = raw.get("type") if isinstance(raw, dict) else None
    if not isinstance(raw, dict) or not isinstance(kind, str):
        raise WireError("a content block is an object with a type", fmt=FORMAT, where=where)
    reader = READERS.get(kind)
    return opaque(raw) if reader is None else reader(raw, where)


def blocks_out(parts: Sequence[Part], *, own: bool, pictures: bool = True) -> list[Json]:
    """The blocks as they are sent, without the parts that are left out; pictures only where they may stand."""
    rendered = (_block_out(part, own=own, pictures=pictures) for part in parts)
    return [block for block in rendered if block is not None]


def _block_out(part: Part, *, own: bool, pictures: bool) -> Json:
    match part:
        case Text(text, extra):
            return {"type": "text", "text": text, **_carried(extra, own=own)} if own or text.strip() else None
        case Image():
            shown = own or pictures
            return _image_out(part, own=own) if shown else {"type": "text", "text": image_note(part)}
        case ToolCall():
            return _call_out(part, own=own)
        case ToolResult():
            return _result_out(part, own=own)
        case Reasoning():
            return _reasoning_out(part) if own else None
        case Opaque():
            return opaque_body(part) if own else None
        case _:
            assert_never(part)


def valid_id(call: CallId) -> CallId:
    """An id that the provider accepts: the same one where it can be."""
    return call if VALID_ID.fullmatch(call) else CallId(f"toolu_{ref_of(call)}")


def _valid_name(name: str) -> str:
    return NOT_IN_A_NAME.sub("_", name)[:LONGEST_NAME] or "tool"


def _carried(extra: str, *, own: bool) -> JsonObject:
    return unpack(extra if own else "")[0]


def _taken(fields: JsonObject, key: str, where: str) -> str:
    value = fields.pop(key, None)
    if not isinstance(value, str):
        raise WireError(f"{key} is a string, not {type(value).__name__}", fmt=FORMAT, where=where)
    return value


def _without_type(raw: JsonObject) -> JsonObject:
    return {key: value for key, value in raw.items() if key != "type"}


# --- text and images ---------------------------------------------------------------------------


def _text_in(raw: JsonObject, where: str) -> Text:
    fields = _without_type(raw)
    text = _taken(fields, "text", where)
    return Text(text, pack(fields))


def _image_in(raw: JsonObject, where: str) -> ResultPart:
    fields = _without_type(raw)
    source = fields.pop("source", None)
    if not isinstance(source, dict):
        raise WireError("the source of an image is an object", fmt=FORMAT, where=where)
    inner = _without_type(source)
    kind = source.get("type")
    if kind == "base64":
        data, media_type = _taken(inner, "data", where), _taken(inner, "media_type", where)
        return Image(data=data, media_type=media_type, extra=pack(fields, source=cast(Json, inner or None)))
    if isinstance(kind, str) and kind in IMAGE_SOURCES:
        name = _taken(inner, IMAGE_SOURCES[kind], where)
        return Image(url=name, extra=pack(fields, kind=kind, source=cast(Json, inner or None)))
    return opaque(raw)


def _image_out(image: Image, *, own: bool) -> JsonObject:
    fields, shape = unpack(image.extra if own else "")
    inline = inline_image(image)
    source: JsonObject
    if "kind" in shape:
        kind = cast(str, shape["kind"])
        source = {"type": kind, IMAGE_SOURCES[kind]: image.url}
    elif inline is not None and (own or inline[0] in IMAGE_TYPES):
        source = {"type": "base64", "media_type": inline[0], "data": inline[1]}
    elif is_web_url(image.url):
        source = {"type": "url", "url": image.url}
    else:
        return {"type": "text", "text": image_note(image)}
    return {"type": "image", "source": source | cast(JsonObject, shape.get("source", {})), **fields}


# --- calls and results -------------------------------------------------------------------------


def _call_in(raw: JsonObject, where: str) -> ToolCall:
    fields = _without_type(raw)
    call, name = _taken(fields, "id", where), _taken(fields, "name", where)
    arguments = fields.pop("input", {})
    odd: Json = [] if "input" not in raw else None if isinstance(arguments, dict) else [arguments]
    return ToolCall(CallId(call), name, dump(arguments), pack(fields, input=odd))


def _call_out(call: ToolCall, *, own: bool) -> JsonObject:
    fields, shape = unpack(call.extra if own else "")
    out: JsonObject = {"type": "tool_use", "id": call.id, "name": call.name}
    if not own:
        out |= {"id": valid_id(call.id), "name": _valid_name(call.name)}
    match shape.get("input"):
        case [] if call.arguments == "{}":
            return out | fields
        case [odd] if call.arguments == dump(odd):
            return out | {"input": odd} | fields
        case _:
            return out | {"input": arguments_object(call.arguments)} | fields


def _result_in(raw: JsonObject, where: str) -> ToolResult:
    fields = _without_type(raw)
    call = _taken(fields, "tool_use_id", where)
    flag = fields.pop("is_error", None)
    if flag is not None and not isinstance(flag, bool):
        raise WireError(f"is_error is true or false, not {flag!r}", fmt=FORMAT, where=where)
    written_flag = None if flag or "is_error" not in raw else "null" if flag is None else "false"
    content, form = _result_content_in(fields.pop("content", None), where)
    if content == () and "content" in raw:
        form = "null" if raw["content"] is None else "empty"
    return ToolResult(CallId(call), content, failed=bool(flag), extra=pack(fields, content=form, is_error=written_flag))


def _result_content_in(content: Json, where: str) -> tuple[tuple[ResultPart, ...], str | None]:
    match content:
        case None:
            return (), None
        case str():
            return (Text(content),), "string"
        case list():
            return tuple(_result_block_in(block, f"{where}.content[{at}]") for at, block in enumerate(content)), None
        case _:
            problem = f"the content of a result is text or blocks, not {type(content).__name__}"
            raise WireError(problem, fmt=FORMAT, where=where)


def _result_block_in(raw: Json, where: str) -> ResultPart:
    if not isinstance(raw, dict) or not isinstance(raw.get("type"), str):
        raise WireError("a content block is an object with a type", fmt=FORMAT, where=where)
    match raw["type"]:
        case "text":
            return _text_in(raw, where)
        case "image":
            return _image_in(raw, where)
        case _:
            return opaque(raw)


def _result_out(result: ToolResult, *, own: bool) -> JsonObject:
    fields, shape = unpack(result.extra if own else "")
    out: JsonObject = {"type": "tool_result", "tool_use_id": result.call if own else valid_id(result.call)}
    blank: dict[Json, Json] = {"null": None, "empty": []}
    form = shape.get("content")
    blocks = blocks_out(result.content, own=own)
    match result.content:
        case (Text(text, ""),) if form == "string":
            out["content"] = text
        case _ if blocks:
            out["content"] = blocks
        case _ if form in blank:
            out["content"] = blank[form]
    if result.failed:
        out["is_error"] = True
    elif "is_error" in shape:
        out["is_error"] = None if shape["is_error"] == "null" else False
    return out | fields


# --- thinking ----------------------------------------------------------------------------------


def _thinking_in(raw: JsonObject, where: str) -> Reasoning:
    fields = _without_type(raw)
    text = _taken(fields, "thinking", where)
    if "signature" not in fields:
        return Reasoning(text, extra=pack(fields, signature="absent"))
    return Reasoning(text, _taken(fields, "signature", where), pack(fields))


def _redacted_in(raw: JsonObject, where: str) -> Reasoning:
    fields = _without_type(raw)
    data = _taken(fields, "data", where)
    return Reasoning("", data, pack(fields, redacted=True))


def _reasoning_out(part: Reasoning) -> JsonObject:
    fields, shape = unpack(part.extra)
    if shape.get("redacted"):
        return {"type": "redacted_thinking", "data": part.signature, **fields}
    signature: JsonObject = {} if shape.get("signature") == "absent" else {"signature": part.signature}
    return {"type": "thinking", "thinking": part.text, **signature, **fields}


READERS: dict[str, Callable[[JsonObject, str], Part]] = {
    "text": _text_in,
    "image": _image_in,
    "tool_use": _call_in,
    "tool_result": _result_in,
    "thinking": _thinking_in,
    "redacted_thinking": _redacted_in,
}

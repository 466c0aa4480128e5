"""Content of LangChain's messages: blocks of LangChain, OpenAI and Anthropic to parts and back.

The rest of a block, besides its text, image or thought, is kept, with the path to the place that was taken out. Values
that are not JSON (bytes, tuples, keys that are not text) get a form of their own.
"""

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, cast

from everlong.core import (
    CallId,
    Image,
    Json,
    JsonObject,
    JsonText,
    Opaque,
    Part,
    Reasoning,
    ResultPart,
    Text,
    ToolCall,
    ToolResult,
)
from everlong.wire.fields import dump, load, opaque, opaque_body, pack, unpack
from everlong.wire.formats.openai import image_from, image_url
from everlong.wire.formats.translation import arguments_object

__all__ = [
    "answer_block_in",
    "content_in",
    "content_out",
    "hinted",
    "live",
    "plain",
    "plain_block_in",
    "sayable",
    "user_block_in",
    "with_block",
]

#: How types of blocks contain an image: our fields, each with its path in the block.
Ways: TypeAlias = Mapping[str, tuple[str | int, ...]]
IMAGES: tuple[tuple[str, Ways], ...] = (
    ("image_url", {"url": ("image_url", "url")}),
    ("image_url", {"url": ("image_url",)}),
    ("input_image", {"url": ("image_url",)}),
    ("image", {"data": ("source", "data"), "media_type": ("source", "media_type")}),
    ("image", {"url": ("source", "url")}),
    ("image", {"url": ("source", "file_id")}),
    ("image", {"data": ("base64",), "media_type": ("mime_type",)}),
    ("image", {"data": ("data",), "media_type": ("mime_type",)}),
    ("image", {"url": ("url",)}),
    ("image", {"url": ("file_id",)}),
)
DETAIL = (("image_url", "detail"), ("detail",))
#: The same for thinking, whose text or signature may be missing.
THOUGHTS: tuple[tuple[str, Ways], ...] = (
    ("thinking", {"text": ("thinking",), "signature": ("signature",)}),
    ("redacted_thinking", {"signature": ("data",)}),
    ("reasoning", {"text": ("reasoning",), "signature": ("extras", "signature")}),
    ("reasoning", {"text": ("summary", 0, "text"), "signature": ("encrypted_content",)}),
    ("reasoning_content", {"text": ("reasoning_content", "text"), "signature": ("reasoning_content", "signature")}),
)


def content_in(content: str | Sequence[Any], block_in: Callable[[JsonObject], Part]) -> tuple[list[Part], Json]:
    """Return the parts of a content, and its form if it is not text."""
    if isinstance(content, str):
        return ([Text(content)] if content else []), None
    parts: list[Part] = []
    for block in content:
        if isinstance(block, str):
            parts.append(Text(block, pack({}, bare=True)))
            continue
        try:
            said = cast(JsonObject, plain(block))
        except TypeError:  # an object of this process
            said = {"type": "object", "object": repr(block)}
        parts.append(block_in(said))
    return parts, "blocks"


def content_out(parts: Sequence[Part], form: Json) -> Any:
    """Return the content as text if that is enough, otherwise as blocks."""
    spoken = [part for part in parts if not isinstance(part, ToolCall) or "block" in unpack(part.extra)[1]]
    if form is None and len(spoken) < 2 and all(isinstance(part, Text) and not part.extra for part in spoken):
        return "".join(cast(Text, part).text for part in spoken)
    return [live(_block_out(part)) for part in spoken]


def plain_block_in(block: JsonObject) -> ResultPart:
    """Read a block of text, an image, or anything else as an opaque part."""
    text = block.get("text")
    if block.get("type") == "text" and isinstance(text, str):
        return Text(text, pack({key: value for key, value in block.items() if key not in ("type", "text")}))
    for kind, ways in IMAGES:
        rest, found = _taken(block, kind, ways)
        if len(found) == len(ways):
            detail = next((words for way in DETAIL if (words := _at(block, way))), "")
            extra = pack(rest, ways=cast(Json, ways))
            return (
                image_from(found["url"], detail, extra)
                if "url" in found
                else Image(**found, detail=detail, extra=extra)
            )
    return opaque(block)


def answer_block_in(block: JsonObject) -> Part:
    """Read a block of an answer, which may be thinking."""
    kinds = [kind for kind, _ in THOUGHTS]
    for kind, ways in THOUGHTS:
        rest, found = _taken(block, kind, ways)
        if found:
            kept = {name: ways[name] for name in found}
            return Reasoning(found.get("text", ""), found.get("signature", ""), pack(rest, ways=cast(Json, kept)))
    return Reasoning("", "", pack(block)) if block.get("type") in kinds else plain_block_in(block)


def user_block_in(block: JsonObject) -> Part:
    """Read a block of the user, which may be a result in Anthropic's form."""
    call = block.get("tool_use_id")
    if block.get("type") != "tool_result" or not isinstance(call, str) or not call:
        return plain_block_in(block)
    content = block.get("content")
    filled = content if isinstance(content, str | list) and content else ""
    parts, form = content_in(filled, plain_block_in)
    taken = ("tool_use_id", "content") if filled else ("tool_use_id",)
    rest = {key: value for key, value in block.items() if key not in taken}
    held = cast("tuple[ResultPart, ...]", tuple(parts))
    return ToolResult(CallId(call), held, "", block.get("is_error") is True, pack(rest, content=form))


def _block_out(part: Part) -> Json:
    fields, shape = unpack("" if isinstance(part, Opaque) else part.extra)
    ways = cast(Ways, shape.get("ways", {}))
    match part:
        case Text(text):
            return text if "bare" in shape else {"type": "text", "text": text, **fields}
        case Image(data, media_type, url):
            if not ways:
                return {"type": "image", **({"url": url} if url else {"base64": data, "mime_type": media_type})}
            return _filled(fields, ways, {"url": image_url(part), "data": data, "media_type": media_type})
        case Reasoning(text, signature):
            return _filled(fields, ways, {"text": text, "signature": signature})
        case ToolCall():
            return _call_block(part)
        case ToolResult(call, content):
            held = content_out(content, shape.get("content"))
            return {**fields, "tool_use_id": call, **({"content": held} if held else {})}
        case Opaque():
            return opaque_body(part)


def _at(block: Json, way: Sequence[str | int]) -> str:
    """Return the text at a path; "" if there is none."""
    for step in way:
        inside = isinstance(block, list) and isinstance(step, int) and step < len(block)
        inside = inside or (isinstance(block, dict) and step in block)
        block = cast(Any, block)[step] if inside else None
    return block if isinstance(block, str) else ""


def _taken(block: JsonObject, kind: str, ways: Ways) -> tuple[JsonObject, dict[str, str]]:
    """Return the block without the texts at the paths, and these texts; none for a block of another type."""
    found = {name: text for name, way in ways.items() if (text := _at(block, way))} if block.get("type") == kind else {}
    rest = _filled(block, {name: ways[name] for name in found}, dict.fromkeys(found, None)) if found else block
    return rest, found


def _filled(fields: JsonObject, ways: Ways, values: Mapping[str, Json]) -> JsonObject:
    """Return a copy of the fields with the values set at the paths."""
    out = cast(JsonObject, load(dump(fields)))
    for name, (*inner, last) in ways.items():
        place: Any = out
        for step in inner:
            place = place[step]
        place[last] = values[name]
    return out


# --- blocks of calls ----------------------------------------------------------------------------------

#: The fields with a block's arguments, as a value or as JSON text. Anthropic's streams use the last.
ARGUMENTS = ("input", "args", "arguments", "partial_json")


def hinted(call: ToolCall, **hints: Json) -> ToolCall:
    """Return the call with more hints."""
    fields, shape = unpack(call.extra)
    return replace(call, extra=pack(fields, **shape | hints))


def with_block(call: ToolCall, block: JsonObject) -> ToolCall:
    """Return the call with its block as a hint, without the block's arguments if they equal the call's."""
    wanted = _json_of(call.arguments)
    for key in ARGUMENTS:
        rest: Json = {name: value for name, value in block.items() if name != key}
        held = block.get(key)
        if isinstance(held, str) and held and _json_of(held) == wanted:
            return replace(hinted(call, block=rest, text=key), arguments=held)
        if key in block and held == wanted:
            return hinted(call, block=rest, value=key)
    return hinted(call, block=block)


def _call_block(call: ToolCall) -> JsonObject:
    _, shape = unpack(call.extra)
    block = dict(cast(JsonObject, shape["block"]))
    if "text" in shape:
        block[cast(str, shape["text"])] = call.arguments
    elif "value" in shape:
        block[cast(str, shape["value"])] = arguments_object(call.arguments)
    block["call_id" if "call_id" in block else "id"] = call.id
    return block | ({"name": call.name} if "name" in block else {})


def _json_of(text: JsonText) -> Json:
    """Return the value of JSON text; the text itself if it is not JSON."""
    try:
        return load(text)
    except (ValueError, RecursionError):
        return text


# --- values that are not JSON -----------------------------------------------------------------------------

BYTES, ITEMS, TUPLE = "$bytes", "$items", "$tuple"


def plain(value: Any) -> Json:
    """Return the value as JSON, with sorted keys, because stores may reorder them. Raises TypeError for an object.

    Example: {"image": b"hi"} -> {"image": {"$bytes": "aGk="}}
    """
    match value:
        case None | bool() | int() | float() | str():
            return value
        case list():
            return [plain(inner) for inner in value]
        case tuple():
            return {TUPLE: [plain(inner) for inner in value]}
        case bytes():
            return {BYTES: base64.b64encode(value).decode()}
        case dict() if all(isinstance(key, str) and not key.startswith("$") for key in value):
            return {key: plain(value[key]) for key in sorted(value)}
        case dict():
            return {ITEMS: [[plain(key), plain(inner)] for key, inner in value.items()]}
        case _:
            raise TypeError(f"{type(value).__name__} is not JSON")


def live(value: Json) -> Any:
    """Return the value that `plain` encoded."""
    match value:
        case {"$bytes": str(text)}:
            return base64.b64decode(text)
        case {"$tuple": list(members)}:
            return tuple(map(live, members))
        case {"$items": list(members)}:
            return {live(cast("list[Json]", pair)[0]): live(cast("list[Json]", pair)[1]) for pair in members}
        case dict():
            return {key: live(inner) for key, inner in value.items()}
        case list():
            return [live(inner) for inner in value]
        case _:
            return value


def sayable(values: Mapping[str, Any]) -> JsonObject:
    """Return the values that can be JSON; a dict that contains objects without these."""
    said: JsonObject = {}
    for key, value in sorted(values.items()):
        try:
            said[key] = plain(value)
        except TypeError:
            if isinstance(value, dict) and all(isinstance(inner, str) for inner in value):
                said[key] = sayable(value)
    return said

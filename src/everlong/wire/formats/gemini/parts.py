"""The parts of Gemini contents.

    text, thought, functionCall, functionResponse, inlineData, fileData; every other part is passed through

Parts are written back in camelCase or snake_case, as they came. A part of another origin is translated; its reasoning,
opaque parts and blank text, which the provider rejects, are left out.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import assert_never, cast

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
from everlong.errors import WireError
from everlong.wire.fields import dump, load, opaque_body, pack, unpack
from everlong.wire.formats.pairs import written_id
from everlong.wire.formats.translation import arguments_object, image_note, inline_image, is_web_url

__all__ = ["NAME", "Callee", "callee_of", "part_in", "part_out", "result_out"]

NAME = "gemini"

#: Keys that describe a part, besides the one with its data.
ABOUT = ("thought", "thoughtSignature", "thought_signature", "videoMetadata", "video_metadata")
SIGNATURE = ("thoughtSignature", "thought_signature")
MEDIA_TYPE = ("mimeType", "mime_type")
FILE = ("fileUri", "file_uri")
IMAGE_TYPES = frozenset({"image/heic", "image/heif", "image/jpeg", "image/png", "image/webp"})
NOT_IN_A_NAME = re.compile(r"[^a-zA-Z0-9_.:-]")
NAME_START = re.compile(r"[a-zA-Z_]")
LONGEST_NAME = 64
TYPE_BY_ENDING = {"heic": "image/heic", "heif": "image/heif", "png": "image/png", "webp": "image/webp"}


@dataclass(frozen=True, slots=True)
class Callee:
    """What a result needs from its call: the function's name, the id it was sent with, if any, and its rank."""

    name: str
    id: str | None
    rank: int


def part_in(raw: Json, where: str) -> Part:
    """Read one part. A missing id is "" until the calls and results of a conversation are paired."""
    if not isinstance(raw, dict):
        raise WireError(f"a part must be an object, not {type(raw).__name__}", fmt=NAME, where=where)
    for key, reader in READERS.items():
        if raw.get(key) is not None:  # typed clients send every key, most of them null
            return reader(raw, key, where)
    return _carried_whole(raw)


def part_out(part: Part, *, own: bool) -> JsonObject | None:
    """Write a part that needs no other message; None if it is left out."""
    match part:
        case Text(text, extra):
            return {"text": text, **unpack(extra if own else "")[0]} if own or text.strip() else None
        case Image():
            return _image_out(part, own=own)
        case ToolCall():
            return _call_out(part, own=own)
        case ToolResult():
            return result_out(part, None, own=own)[0]
        case Reasoning():
            return _thought_out(part) if own else None
        case Opaque():
            return cast(JsonObject, opaque_body(part)) if own else None
        case _:
            assert_never(part)


def callee_of(call: ToolCall, rank: int, *, own: bool) -> Callee:
    """Return what the result of a call needs."""
    return Callee(call.name, written_id(call), rank) if own else Callee(_valid_name(call.name), None, rank)


def _valid_name(name: str) -> str:
    clean = NOT_IN_A_NAME.sub("_", name)
    return (clean if NAME_START.match(clean) else f"_{clean}")[:LONGEST_NAME]


def _carried_whole(raw: JsonObject) -> Opaque:
    kind = next((str(key) for key, value in raw.items() if value is not None and key not in ABOUT), "")
    return Opaque(kind, dump(raw))


def _inner(fields: JsonObject, key: str, where: str) -> JsonObject:
    value = fields.pop(key)
    if not isinstance(value, dict):
        raise WireError(f"{key} must be an object, not {type(value).__name__}", fmt=NAME, where=where)
    return dict(value)


def _taken(fields: JsonObject, spellings: tuple[str, ...]) -> tuple[str, str] | None:
    """Remove the first spelling that has non-empty text, and return both; None if there is none."""
    for key in spellings:
        value = fields.get(key)
        if isinstance(value, str) and value:
            del fields[key]
            return key, value
    return None


def _unless(spelling: str, usual: str) -> str | None:
    return None if spelling == usual else spelling


# --- text and thoughts -------------------------------------------------------------------------


def _text_in(raw: JsonObject, key: str, where: str) -> Part:
    fields = dict(raw)
    text = fields.pop(key)
    if not isinstance(text, str):
        raise WireError(f"text must be a string, not {type(text).__name__}", fmt=NAME, where=where)
    if fields.get("thought") is not True:
        return Text(text, pack(fields))
    del fields["thought"]
    spelling, signature = _taken(fields, SIGNATURE) or (SIGNATURE[0], "")
    return Reasoning(text, signature, pack(fields, signature=_unless(spelling, SIGNATURE[0])))


def _thought_out(part: Reasoning) -> JsonObject:
    fields, shape = unpack(part.extra)
    out: JsonObject = {"text": part.text, "thought": True}
    if part.signature:
        out[cast(str, shape.get("signature", SIGNATURE[0]))] = part.signature
    return out | fields


# --- images ------------------------------------------------------------------------------------


def _blob_in(raw: JsonObject, key: str, where: str) -> ResultPart:
    """Read `inlineData`: base64. Audio, video and documents are passed through."""
    fields = dict(raw)
    blob = _inner(fields, key, where)
    media, data = _taken(blob, MEDIA_TYPE), blob.pop("data", None)
    if media is None or not media[1].startswith("image/") or not isinstance(data, str):
        return _carried_whole(raw)
    shape: JsonObject = {"key": _unless(key, "inlineData"), "media": _unless(media[0], MEDIA_TYPE[0])}
    return Image(data=data, media_type=media[1], extra=pack(fields, **shape, inner=cast(Json, blob or None)))


def _file_in(raw: JsonObject, key: str, where: str) -> ResultPart:
    """Read `fileData`: the address of a file."""
    fields = dict(raw)
    file = _inner(fields, key, where)
    media, uri = _taken(file, MEDIA_TYPE), _taken(file, FILE)
    if media is None or not media[1].startswith("image/") or uri is None:
        return _carried_whole(raw)
    shape: JsonObject = {"key": key, "file": uri[0], "media": _unless(media[0], MEDIA_TYPE[0])}
    return Image(media_type=media[1], url=uri[1], extra=pack(fields, **shape, inner=cast(Json, file or None)))


def _image_out(image: Image, *, own: bool) -> JsonObject:
    fields, shape = unpack(image.extra if own else "")
    media = cast(str, shape.get("media", MEDIA_TYPE[0]))
    inline = inline_image(image)
    inner: JsonObject
    if "file" in shape:
        key, inner = "fileData", {media: image.media_type, cast(str, shape["file"]): image.url}
    elif inline is not None and (own or inline[0] in IMAGE_TYPES):
        key, inner = "inlineData", {media: inline[0], "data": inline[1]}
    elif is_web_url(image.url):
        key, inner = "fileData", {media: image.media_type or _type_of(image.url), FILE[0]: image.url}
    else:
        return {"text": image_note(image)}
    return {cast(str, shape.get("key", key)): inner | cast(JsonObject, shape.get("inner", {})), **fields}


def _type_of(url: str) -> str:
    """Return the media type of a URL by its extension: the provider requires a type, and nothing else tells it."""
    ending = url.split("?")[0].rpartition(".")[2].lower()
    return TYPE_BY_ENDING.get(ending, "image/jpeg")


# --- calls and results -------------------------------------------------------------------------


def _name_and_id(inner: JsonObject, key: str, where: str) -> tuple[str, str, JsonObject]:
    """Remove and return the name and id of a call or a response, with the hint of how the id was written."""
    name = inner.pop("name", None)
    if not isinstance(name, str) or not name:
        raise WireError(f"{key} needs a name", fmt=NAME, where=where)
    call = inner.get("id")
    if not isinstance(call, str):
        return name, "", {"id": "absent"}
    del inner["id"]
    return name, call, {} if call else {"written": ""}


def _call_in(raw: JsonObject, key: str, where: str) -> ToolCall:
    fields = dict(raw)
    inner = _inner(fields, key, where)
    name, call, shape = _name_and_id(inner, key, where)
    arguments = inner.get("args")
    if arguments is None:
        shape["args"] = []
    else:
        del inner["args"]
        shape["args"] = None if isinstance(arguments, dict) else [arguments]
    shape |= {"key": _unless(key, "functionCall"), "inner": inner or None}
    return ToolCall(CallId(call), name, dump({} if arguments is None else arguments), pack(fields, **shape))


def _call_out(call: ToolCall, *, own: bool) -> JsonObject:
    # The id of another provider's call is not sent, because not every endpoint knows the field.
    fields, shape = unpack(call.extra if own else "")
    inner: JsonObject = {"name": call.name if own else _valid_name(call.name)}
    written = written_id(call) if own else None
    if written is not None:
        inner["id"] = written
    match shape.get("args"):
        case [] if call.arguments == "{}":
            pass
        case [odd] if call.arguments == dump(odd):
            inner["args"] = odd
        case _:
            inner["args"] = arguments_object(call.arguments)
    return {cast(str, shape.get("key", "functionCall")): inner | cast(JsonObject, shape.get("inner", {})), **fields}


def _result_in(raw: JsonObject, key: str, where: str) -> ToolResult:
    fields = dict(raw)
    inner = _inner(fields, key, where)
    name, call, shape = _name_and_id(inner, key, where)
    content, failed = _response_in(inner, shape)
    nested = inner.get("parts")
    if isinstance(nested, list):
        del inner["parts"]
        shape["parts"] = True
        content += tuple(_nested_in(part, f"{where}.parts[{at}]") for at, part in enumerate(nested))
    shape |= {"key": _unless(key, "functionResponse"), "inner": inner or None}
    return ToolResult(CallId(call), content, name=name, failed=failed, extra=pack(fields, **shape))


def _response_in(inner: JsonObject, shape: JsonObject) -> tuple[tuple[ResultPart, ...], bool]:
    """Return the text of a response (its only string, or its JSON), and whether it failed.

    Example: {"output": "ok"} -> "ok";  {"error": "no"} -> "no", failed;  {"a": 1} -> '{"a":1}'
    """
    response = inner.get("response")
    if response is None:
        shape["response"] = "absent"
        return (), False
    del inner["response"]
    failed = isinstance(response, dict) and set(response) == {"error"}
    if isinstance(response, dict) and len(response) == 1:
        (key, only), *_ = response.items()
        if isinstance(only, str):
            shape["wrap"] = key
            return (Text(only),), failed
    shape["response"] = "object" if isinstance(response, dict) else "value"
    return (Text(dump(response)),), failed


def _nested_in(raw: Json, where: str) -> ResultPart:
    part = part_in(raw, where)
    return part if isinstance(part, Image | Opaque) else _carried_whole(cast(JsonObject, raw))


def result_out(result: ToolResult, callee: Callee | None, *, own: bool) -> list[JsonObject]:
    """Write a response, followed by the images of a result from another format."""
    fields, shape = unpack(result.extra if own else "")
    inner: JsonObject = {"name": _answered_name(result, callee, own=own)}
    written = _answered_id(result, shape, callee, own=own)
    if written is not None:
        inner["id"] = written
    response = _response_out(result, shape)
    if response is not None:
        inner["response"] = response
    rest = [part_out(part, own=own) for part in result.content if not isinstance(part, Text)]
    pictures = [part for part in rest if part is not None]
    if own and (pictures or "parts" in shape):
        inner["parts"] = cast(Json, pictures)
    inner |= cast(JsonObject, shape.get("inner", {}))
    return [{cast(str, shape.get("key", "functionResponse")): inner, **fields}, *([] if own else pictures)]


def _answered_name(result: ToolResult, callee: Callee | None, *, own: bool) -> str:
    if own and result.name:
        return result.name
    return callee.name if callee else _valid_name(result.name)


def _answered_id(result: ToolResult, shape: JsonObject, callee: Callee | None, *, own: bool) -> str | None:
    """Return the id as it was written; for a new result, the id its call was sent with."""
    if "id" in shape or "written" in shape:
        return written_id(result)
    if callee is not None:
        return callee.id
    return result.call if own else None


def _response_out(result: ToolResult, shape: JsonObject) -> Json:
    form = shape.get("response")
    if "wrap" in shape:
        return {cast(str, shape["wrap"]): result.text}
    if form == "absent" and not result.text:
        return None
    value = _value(result.text) if form in ("object", "value") else None
    if isinstance(value, dict) or (value is not None and form == "value"):
        return value
    return {"error" if result.failed else "output": result.text}


def _value(text: JsonText) -> Json:
    try:
        return load(text)
    except (ValueError, RecursionError):  # shortened since it was read
        return None


READERS: dict[str, Callable[[JsonObject, str, str], Part]] = {
    "functionCall": _call_in,
    "function_call": _call_in,
    "functionResponse": _result_in,
    "function_response": _result_in,
    "inlineData": _blob_in,
    "inline_data": _blob_in,
    "fileData": _file_in,
    "file_data": _file_in,
    "text": _text_in,
}

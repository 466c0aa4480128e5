"""Strands: messages in the form of Bedrock's Converse API.

    {"role": "user", "content": [{"toolResult": {"toolUseId": "t1", "status": "success", "content": [{"text": "ok"}]}}]}

Text, images, thinking, calls and results are read; every other block (documents, cache points, citations, guarded
content, audio, video, sealed thinking) is passed through. Bytes are written as base64 under a special key, so that
everything is JSON. System text has its own field there; in a list, it is a message with the role "system".
"""

from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any, TypeAlias, cast

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
from everlong.wire.fields import dump, load, pack, shown, unpack
from everlong.wire.formats import ANTHROPIC
from everlong.wire.formats.translation import arguments_object, image_note, inline_image
from everlong.wire.libraries.library import Library, Unit

__all__ = ["LIBRARY"]

NAME = "strands"
#: A message or a block of Strands: a plain dict that may contain bytes.
Block: TypeAlias = dict[str, Any]

ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT, "system": Role.SYSTEM}
VOICES = {Role.USER: "user", Role.ASSISTANT: "assistant", Role.SYSTEM: "system", Role.TOOL: "user"}
IMAGE_FORMATS = frozenset({"png", "jpeg", "gif", "webp"})
#: The only key of an object that encodes bytes, and of one that wraps a dict with such a key of its own.
BYTES, KEPT = "$bytes", "$kept"


def read(items: Sequence[Block]) -> list[Unit[Block]]:
    """Return each message as a separate unit."""
    return [Unit((item,), (_message_in(item, at),)) for at, item in enumerate(items)]


def write(messages: Sequence[Message]) -> list[Block]:
    """Return new messages. A message without anything that can be written is left out."""
    return [written for written in map(_message_out, messages) if written is not None]


# --- messages ----------------------------------------------------------------------------------


def _message_in(raw: Any, at: int) -> Message:
    where = f"messages[{at}]"
    if not isinstance(raw, dict):
        raise WireError(f"a message must be a dict, not {type(raw).__name__}", fmt=NAME, where=where)
    fields = dict(raw)
    said, content = fields.pop("role", None), fields.pop("content", None)
    if said not in ROLES:
        raise WireError(f"unknown role {shown(said)}", fmt=NAME, where=where)
    if not isinstance(content, list):
        raise WireError(f"content must be a list, not {type(content).__name__}", fmt=NAME, where=where)
    parts = tuple(_block_in(block, f"{where}.content[{index}]") for index, block in enumerate(content))
    role = ROLES[said]
    if role is Role.USER and any(isinstance(part, ToolResult) for part in parts):
        role = Role.TOOL
    return Message(role, parts, origin=NAME, extra=pack(_as_object(fields)))


def _message_out(message: Message) -> Block | None:
    own = message.origin == NAME
    blocks = [_block_out(part, own=own) for part in message.parts]
    content = [block for block in blocks if block is not None]
    if not content and (message.parts or not own):
        return None
    return {"role": VOICES[message.role], "content": content, **_carried(message.extra, own=own)[0]}


def _carried(extra: JsonText, *, own: bool) -> tuple[Block, JsonObject]:
    """Return the kept fields, with their bytes decoded, and the hints."""
    fields, shape = unpack(extra if own else "")
    return {name: _from_json(value) for name, value in fields.items()}, shape


# --- bytes as JSON -----------------------------------------------------------------------------


def _to_json(value: Any) -> Json:
    match value:
        case bytes():
            return {BYTES: b64encode(value).decode()}
        case list() | tuple():
            return [_to_json(inner) for inner in value]
        case dict():
            fields = {key: _to_json(inner) for key, inner in value.items()}
            return {KEPT: fields} if len(fields) == 1 and not fields.keys().isdisjoint({BYTES, KEPT}) else fields
        case _:
            return cast(Json, value)


def _from_json(value: Json) -> Any:
    if isinstance(value, list):
        return [_from_json(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    match list(value.items()):
        case [("$bytes", str() as encoded)]:
            return b64decode(encoded)
        case [("$kept", dict() as fields)]:
            return {key: _from_json(inner) for key, inner in fields.items()}
        case _:
            return {key: _from_json(inner) for key, inner in value.items()}


def _as_object(fields: Mapping[Any, Any]) -> JsonObject:
    return {name: _to_json(value) for name, value in fields.items()}


# --- blocks ------------------------------------------------------------------------------------


def _block_in(raw: Any, where: str) -> Part:
    if not isinstance(raw, dict):
        raise WireError(f"a block must be a dict, not {type(raw).__name__}", fmt=NAME, where=where)
    for key, reader in READERS.items():
        if key in raw:
            rest = {name: value for name, value in raw.items() if name != key}
            part = reader(raw[key], rest)
            if part is not None:
                return part
    return _opaque_in(raw)


def _opaque_in(raw: Block) -> Opaque:
    return Opaque(next(iter(raw), ""), dump(_to_json(raw)))


def _text_in(value: Any, rest: Block) -> Part | None:
    return Text(value, pack(_as_object(rest))) if isinstance(value, str) else None


def _image_in(value: Any, rest: Block) -> Image | None:
    """Read `image`: bytes, or a location in S3; None for anything else."""
    match value:
        case {"format": str() as form, "source": {"bytes": bytes() as data}} if len(value["source"]) == 1:
            extra = _with_inner(rest, value, ("format", "source"))
            return Image(data=b64encode(data).decode(), media_type=f"image/{form}", extra=extra)
        case {"format": str() as form, "source": {"location": {"uri": str() as uri, **place}}} if (
            len(value["source"]) == 1
        ):
            extra = _with_inner(rest, value, ("format", "source"), place=_as_object(place))
            return Image(url=uri, media_type=f"image/{form}", extra=extra)
        case _:
            return None


def _thought_in(value: Any, rest: Block) -> Part | None:
    match value:
        case {"reasoningText": {"text": str() as text, **more}}:
            signed = more.pop("signature", None)
            signature = signed if isinstance(signed, str) else ""
            shape: JsonObject = {"more": _as_object(more) or None}
            if not signature and "signature" in value["reasoningText"]:
                shape["unsigned"] = [_to_json(signed)]
            return Reasoning(text, signature, _with_inner(rest, value, ("reasoningText",), **shape))
        case _:
            return None


def _call_in(value: Any, rest: Block) -> Part | None:
    match value:
        case {"toolUseId": str() as call, "name": str() as name, "input": arguments}:
            return ToolCall(
                CallId(call),
                name,
                dump(_to_json(arguments)),
                _with_inner(rest, value, ("toolUseId", "name", "input")),
            )
        case _:
            return None


def _result_in(value: Any, rest: Block) -> Part | None:
    match value:
        case {"toolUseId": str() as call, "content": list() as content}:
            status = value.get("status")
            usual = status in ("success", "error")
            extra = _with_inner(
                rest,
                value,
                ("toolUseId", "content", "status") if usual else ("toolUseId", "content"),
                status=None if usual else "other",
            )
            parts = tuple(map(_result_part_in, content))
            return ToolResult(CallId(call), parts, failed=status == "error", extra=extra)
        case _:
            return None


def _result_part_in(raw: Any) -> ResultPart:
    if not isinstance(raw, dict):
        return Opaque(type(raw).__name__, dump(_to_json(raw)))
    match raw:
        case {"text": str() as text}:
            return Text(text, pack(_as_object({name: value for name, value in raw.items() if name != "text"})))
        case {"json": value} if len(raw) == 1:
            return Text(dump(_to_json(value)), pack({}, json=True))
        case {"image": value, **rest}:
            return _image_in(value, rest) or _opaque_in(raw)
        case _:
            return _opaque_in(raw)


def _with_inner(rest: Block, value: Block, read_keys: tuple[str, ...], **shape: Json) -> JsonText:
    """Return `extra` for a block: the fields next to it, and those inside it that were not read."""
    inner = {name: _to_json(other) for name, other in value.items() if name not in read_keys}
    return pack(_as_object(rest), inner=inner or None, **shape)


READERS: dict[str, Callable[[Any, Block], Part | None]] = {
    "text": _text_in,
    "toolUse": _call_in,
    "toolResult": _result_in,
    "image": _image_in,
    "reasoningContent": _thought_in,
}


# --- writing blocks ----------------------------------------------------------------------------


def _block_out(part: Part, *, own: bool) -> Block | None:
    match part:
        case Text(text, extra):
            return {"text": text, **_carried(extra, own=own)[0]} if own or text.strip() else None
        case Image():
            return _image_out(part, own=own)
        case ToolCall():
            return _call_out(part, own=own)
        case ToolResult():
            return _result_out(part, own=own)
        case Reasoning():
            return _thought_out(part) if own else None
        case Opaque():
            return cast(Block, _from_json(load(part.body))) if own else None


def _inner_of(shape: JsonObject) -> Block:
    return cast(Block, _from_json(shape.get("inner", {})))


def _image_out(image: Image, *, own: bool) -> Block:
    rest, shape = _carried(image.extra, own=own)
    form = image.media_type.removeprefix("image/")
    if "place" in shape:
        place = {"uri": image.url, **cast(Block, _from_json(shape["place"]))}
        return {"image": {"format": form, "source": {"location": place}, **_inner_of(shape)}, **rest}
    if own and not image.url:
        return {"image": {"format": form, "source": {"bytes": b64decode(image.data)}, **_inner_of(shape)}, **rest}
    media, data = inline_image(image) or ("", "")
    form = media.removeprefix("image/").replace("jpg", "jpeg")
    if form not in IMAGE_FORMATS:
        return {"text": image_note(image)}
    return {"image": {"format": form, "source": {"bytes": b64decode(data)}}}


def _thought_out(part: Reasoning) -> Block:
    rest, shape = _carried(part.extra, own=True)
    said: Block = {"text": part.text, **cast(Block, _from_json(shape.get("more", {})))}
    if part.signature:
        said["signature"] = part.signature
    elif "unsigned" in shape:
        (said["signature"],) = cast("list[Any]", _from_json(shape["unsigned"]))
    return {"reasoningContent": {"reasoningText": said, **_inner_of(shape)}, **rest}


def _call_out(call: ToolCall, *, own: bool) -> Block:
    rest, shape = _carried(call.extra, own=own)
    try:
        arguments = _from_json(load(call.arguments)) if own else arguments_object(call.arguments)
    except ValueError:  # shortened since it was read
        arguments = arguments_object(call.arguments)
    return {"toolUse": {"toolUseId": call.id, "name": call.name, "input": arguments, **_inner_of(shape)}, **rest}


def _result_out(result: ToolResult, *, own: bool) -> Block:
    rest, shape = _carried(result.extra, own=own)
    content = [block for block in (_result_part_out(part, own=own) for part in result.content) if block is not None]
    fields: Block = {"toolUseId": result.call, "content": content}
    if shape.get("status") != "other" or result.failed:
        fields["status"] = "error" if result.failed else "success"
    return {"toolResult": {**_inner_of(shape), **fields}, **rest}


def _result_part_out(part: ResultPart, *, own: bool) -> Block | None:
    if isinstance(part, Text) and own:
        rest, shape = _carried(part.extra, own=True)
        value = _json_value(part.text) if shape.get("json") else None
        return {"text": part.text, **rest} if value is None else {"json": _from_json(value[0])}
    return _block_out(part, own=own)


def _json_value(text: str) -> list[Json] | None:
    try:
        return [load(text)]
    except (ValueError, RecursionError):  # shortened since it was read
        return None


def join(items: list[Block]) -> list[Block]:
    """Return the messages with neighbours of one role joined, as Bedrock requires."""
    runs = [list(run) for _, run in groupby(items, key=lambda item: item["role"])]
    return [run[0] if len(run) == 1 else _joined(run) for run in runs]


def _joined(run: list[Block]) -> Block:
    return {"role": run[0]["role"], "content": [block for message in run for block in message["content"]]}


LIBRARY: Library[Block] = Library(
    name=NAME, packages=("strands",), read=read, write=write, fmt=ANTHROPIC.name, join=join
)

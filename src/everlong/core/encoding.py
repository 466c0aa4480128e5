"""Encode messages as stable text and decode them again. Stores keep this text, and references are hashes of it.

The text is our own compact JSON, independent of any provider. Empty fields are left out and keys have a fixed order, so
equal values give equal bytes. Lone surrogates survive as JSON escapes. The reference of a message ignores its `model`
and `ending`.
"""

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from hashlib import blake2b
from typing import NewType, assert_never

from everlong.core.json_pieces import LARGE, write_json
from everlong.core.messages import (
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
from everlong.errors import WireError

__all__ = [
    "Ref",
    "bytes_of",
    "decode",
    "encode",
    "encode_all",
    "message_ref",
    "original_in",
    "part_content",
    "part_ref",
    "ref_of",
]

FORMAT = "everlong"
MANY = 1_000  # parts; a message with more is encoded in pieces


def encode(message: Message, *, marks: bool = True) -> str:
    """Return a message as one line of JSON. Without `marks` (`model`, `ending`), equal messages give equal lines."""
    if _is_large(message.parts):
        return b"".join(write_json(_fields(message, marks=marks), _write)).decode("ascii")
    return json.dumps(_fields(message, marks=marks), separators=(",", ":"))


def _fields(message: Message, *, marks: bool) -> JsonObject:
    fields: JsonObject = {"role": message.role.value, "parts": [_part_out(part) for part in message.parts]}
    if message.time is not None:
        fields["time"] = message.time.isoformat()
    fields |= _filled(name=message.name, origin=message.origin, extra=message.extra)
    return fields | _filled(model=message.model, ending=message.ending) if marks else fields


def _write(value: Json) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode("ascii")


def _is_large(parts: Sequence[Part]) -> bool:
    """Whether encoding these parts at once would block other threads for too long."""
    if len(parts) > MANY:
        return True
    for part in parts:
        if isinstance(part, Text | Reasoning):
            if len(part.text) > LARGE:
                return True
        elif isinstance(part, ToolResult):
            if _is_large(part.content):
                return True
        elif len(part_content(part)) > LARGE:
            return True
    return False


def encode_all(messages: Sequence[Message]) -> str:
    """Return several messages as JSON, one per line."""
    return "\n".join(encode(message) for message in messages)


def decode(line: str) -> Message:
    """Read what `encode` wrote."""
    try:
        fields = json.loads(line)
        time = fields.get("time")
        return Message(
            role=Role(fields["role"]),
            parts=tuple(_part_in(part) for part in fields["parts"]),
            name=fields.get("name", ""),
            time=None if time is None else datetime.fromisoformat(time),
            origin=fields.get("origin", ""),
            extra=fields.get("extra", ""),
            model=fields.get("model", ""),
            ending=fields.get("ending", ""),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise WireError(f"not a message: {error}", fmt=FORMAT) from error


def _filled(**fields: str) -> dict[str, Json]:
    return {key: value for key, value in fields.items() if value}


def _part_out(part: Part) -> Json:
    match part:
        case Text(text, extra):
            return {"type": "text", "text": text, **_filled(extra=extra)}
        case Image(data, media_type, url, detail, extra):
            return {"type": "image", **_filled(data=data, media_type=media_type, url=url, detail=detail, extra=extra)}
        case ToolCall(call, name, arguments, extra):
            return {"type": "call", "id": call, "name": name, "arguments": arguments, **_filled(extra=extra)}
        case ToolResult(call, content, name, failed, extra):
            fields: JsonObject = {"type": "result", "call": call, "content": [_part_out(inner) for inner in content]}
            if failed:
                fields["failed"] = True
            return fields | _filled(name=name, extra=extra)
        case Reasoning(text, signature, extra):
            return {"type": "reasoning", "text": text, **_filled(signature=signature, extra=extra)}
        case Opaque(kind, body):
            return {"type": "opaque", "kind": kind, "body": body}
        case _:
            assert_never(part)


def _part_in(fields: dict[str, str]) -> Part:
    if fields["type"] == "call":
        call, name, arguments = (_text(fields, key) for key in ("id", "name", "arguments"))
        return ToolCall(CallId(call), name, arguments, fields.get("extra", ""))
    if fields["type"] == "reasoning":
        return Reasoning(_text(fields, "text"), fields.get("signature", ""), fields.get("extra", ""))
    if fields["type"] == "result":
        return ToolResult(
            CallId(_text(fields, "call")),
            tuple(_result_part_in(inner) for inner in fields["content"]),  # type: ignore[arg-type]
            fields.get("name", ""),
            bool(fields.get("failed", False)),
            fields.get("extra", ""),
        )
    return _result_part_in(fields)


def _result_part_in(fields: dict[str, str]) -> ResultPart:
    match fields["type"]:
        case "text":
            return Text(_text(fields, "text"), fields.get("extra", ""))
        case "image":
            return Image(**{key: value for key, value in fields.items() if key != "type"})
        case "opaque":
            return Opaque(_text(fields, "kind"), _text(fields, "body"))
        case kind:
            raise ValueError(f"unknown part {kind!r}")


def _text(fields: dict[str, str], key: str) -> str:
    """Return the text under a key. Raises TypeError for other types, which would otherwise fail much later."""
    text = fields[key]
    if not isinstance(text, str):
        raise TypeError("not a text")
    return text


Ref = NewType("Ref", str)

DIGEST_BYTES = 8  # 64 bits: one chance in a million of a clash at six million pieces in one store


def bytes_of(text: str) -> bytes:
    """Return the bytes of a text for hashing and storing. Lone surrogates survive."""
    return text.encode("utf-8", "surrogatepass")


def ref_of(content: str | bytes) -> Ref:
    """Return the reference of a text or of bytes: 16 hex digits. Example: ref_of("") -> e4a6a0577479b2b4"""
    data = bytes_of(content) if isinstance(content, str) else content
    return Ref(blake2b(data, digest_size=DIGEST_BYTES).hexdigest())


def message_ref(message: Message) -> Ref:
    """Return the reference of a whole message."""
    if not _is_large(message.parts):
        return ref_of(encode(message, marks=False))
    digest = blake2b(digest_size=DIGEST_BYTES)
    for piece in write_json(_fields(message, marks=False), _write):
        digest.update(piece)
    return Ref(digest.hexdigest())


def part_content(part: Part) -> str:
    """Return the original content that a reference to this part returns."""
    match part:
        case Text(text) | Reasoning(text):
            return text
        case ToolCall(arguments=arguments):
            return arguments
        case ToolResult():
            return part.text
        case Image(data, _, url):
            return data or url
        case Opaque(body=body):
            return body


def part_ref(part: Part) -> Ref:
    """Return the reference of a part's content."""
    return ref_of(part_content(part))


def original_in(message: Message, part: int | None, ref: str) -> bytes | None:
    """Return the content that the reference names, in the message or in the given part; None if there is none."""
    for content in _contents(message, part):
        if ref_of(content) == Ref(ref):
            return bytes_of(content)
    return None


def _contents(message: Message, part: int | None) -> Iterator[str]:
    if part is not None and part < len(message.parts):
        whole = message.parts[part]
        yield part_content(whole)
        if isinstance(whole, ToolResult):
            yield from map(part_content, whole.content)
    yield encode(message, marks=False)

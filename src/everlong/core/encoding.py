"""One stable text for every message, and back: what stores keep and hashes are taken of.

The text is our own compact JSON, independent of any provider: empty fields are left out, keys have
one order, so equal values give equal bytes. Lone surrogates survive (JSON escapes).
A reference is a hash of these bytes.
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
MANY = 1_000  # parts of a message


def encode(message: Message) -> str:
    """The message as one line of JSON."""
    if _is_large(message.parts):
        return b"".join(write_json(_fields(message), _write)).decode("ascii")
    return json.dumps(_fields(message), separators=(",", ":"))


def _fields(message: Message) -> JsonObject:
    fields: JsonObject = {"role": message.role.value, "parts": [_part_out(part) for part in message.parts]}
    if message.time is not None:
        fields["time"] = message.time.isoformat()
    return fields | _filled(name=message.name, origin=message.origin, extra=message.extra)


def _write(value: Json) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode("ascii")


def _is_large(parts: Sequence[Part]) -> bool:
    """Whether writing them takes so long that others would wait."""
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
    """Several messages, one a line."""
    return "\n".join(encode(message) for message in messages)


def decode(line: str) -> Message:
    """What `encode` wrote."""
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
    """The text under a key. Raises TypeError for anything else, which would only be noticed later."""
    text = fields[key]
    if not isinstance(text, str):
        raise TypeError("not a text")
    return text


Ref = NewType("Ref", str)

DIGEST_BYTES = 8  # 64 bits: one chance in a million of a clash at six million pieces in one store


def bytes_of(text: str) -> bytes:
    """The bytes a text is hashed and returned as; lone surrogates survive."""
    return text.encode("utf-8", "surrogatepass")


def ref_of(content: str | bytes) -> Ref:
    """The reference of a text or of bytes, 16 hex digits. Example: ref_of("") gives e4a6a0577479b2b4."""
    data = bytes_of(content) if isinstance(content, str) else content
    return Ref(blake2b(data, digest_size=DIGEST_BYTES).hexdigest())


def message_ref(message: Message) -> Ref:
    """The reference of a whole message."""
    if not _is_large(message.parts):
        return ref_of(encode(message))
    digest = blake2b(digest_size=DIGEST_BYTES)
    for piece in write_json(_fields(message), _write):
        digest.update(piece)
    return Ref(digest.hexdigest())


def part_content(part: Part) -> str:
    """The original content that a reference to this part returns."""
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
    """The reference of a part's content."""
    return ref_of(part_content(part))


def original_in(message: Message, part: int | None, ref: str) -> bytes | None:
    """Return the content of the message, of that part of it or inside it, that the reference names; None if none is."""
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
    yield encode(message)

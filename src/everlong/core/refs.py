"""References: the name of a piece of content is the hash of its bytes.

The same bytes have the same reference on every machine and in every thread; a reference can be
checked against what it returns.
"""

from collections.abc import Iterator
from hashlib import blake2b
from typing import NewType

from everlong.core.encoding import encode
from everlong.core.messages import Image, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult

__all__ = ["Ref", "bytes_of", "message_ref", "original_in", "part_content", "part_ref", "ref_of"]

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
    return ref_of(encode(message))


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

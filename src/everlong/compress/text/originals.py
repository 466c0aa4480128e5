"""What a reference returns: the bytes that stood there before the edit."""

from collections.abc import Iterator

from everlong.core import Message, Ref, ToolResult, bytes_of, encode, part_content, ref_of

__all__ = ["original_in"]


def original_in(message: Message, part: int | None, ref: str) -> bytes | None:
    """The content of the message, of that part of it or inside it, that the reference names; None if none is."""
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

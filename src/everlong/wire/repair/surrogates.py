"""Halves of surrogate pairs become U+FFFD, wherever a message keeps text.

Two halves that belong together are joined. Signed thinking cannot be changed: it goes as a whole.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import assert_never

from everlong.core import CallId, Image, Message, Opaque, Part, Reasoning, ResultPart, Text, ToolCall, ToolResult
from everlong.wire.fields import dump, load
from everlong.wire.formats.format import Rules
from everlong.wire.formats.validation import has_surrogate
from everlong.wire.repair.draft import Change

__all__ = ["clean_json", "clean_surrogates", "clean_text"]

ESCAPED = re.compile(r"\\u[dD][89a-fA-F]")


def clean_text(text: str) -> str:
    """The text as UTF-8 can write it. Example: "a\\ud83d" -> "a\\ufffd" """
    if not has_surrogate(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def clean_json(text: str) -> str:
    """JSON text without halves, also where they are written as escapes; untouched if there are none."""
    text = clean_text(text)
    if not ESCAPED.search(text):
        return text
    try:
        written = dump(load(text))
    except (ValueError, RecursionError):
        return text
    return clean_text(written) if has_surrogate(written) else text


def clean_surrogates(message: Message, _rules: Rules) -> Change | None:
    """The fix: every text of the message."""
    if not any(map(_dirty, _texts(message))):
        return None
    parts = [_clean_part(part) for part in message.parts if not _is_sealed(part)]
    whole = replace(message, parts=tuple(parts), name=clean_text(message.name), extra=clean_json(message.extra))
    return Change((whole,), ("half a surrogate pair cannot be sent; replaced by U+FFFD",))


def _dirty(text: str) -> bool:
    return has_surrogate(text) or (bool(ESCAPED.search(text)) and clean_json(text) != text)


def _is_sealed(part: Part) -> bool:
    return isinstance(part, Reasoning) and bool(part.signature) and any(map(_dirty, _part_texts(part)))


def _texts(message: Message) -> Iterator[str]:
    yield message.name
    yield message.extra
    for part in message.parts:
        yield from _part_texts(part)


def _part_texts(part: Part) -> Iterator[str]:
    match part:
        case Text(text, extra):
            yield from (text, extra)
        case Image(data, media_type, url, detail, extra):
            yield from (data, media_type, url, detail, extra)
        case ToolCall(call, name, arguments, extra):
            yield from (call, name, arguments, extra)
        case Reasoning(text, signature, extra):
            yield from (text, signature, extra)
        case Opaque(kind, body):
            yield from (kind, body)
        case ToolResult(call, content, name, _, extra):
            yield from (call, name, extra)
            for inner in content:
                yield from _part_texts(inner)
        case _:
            assert_never(part)


def _clean_part(part: Part) -> Part:
    match part:
        case ToolCall(call, name, arguments, extra):
            return ToolCall(CallId(clean_text(call)), clean_text(name), clean_json(arguments), clean_json(extra))
        case ToolResult(call, content, name, failed, extra):
            cleaned = tuple(map(_clean_result_part, content))
            return ToolResult(CallId(clean_text(call)), cleaned, clean_text(name), failed, clean_json(extra))
        case Reasoning(text, signature, extra):
            return Reasoning(clean_text(text), signature, clean_json(extra))
        case Text() | Image() | Opaque():
            return _clean_result_part(part)
        case _:
            assert_never(part)


def _clean_result_part(part: ResultPart) -> ResultPart:
    match part:
        case Text(text, extra):
            return Text(clean_text(text), clean_json(extra))
        case Image(data, media_type, url, detail, extra):
            return Image(
                clean_text(data), clean_text(media_type), clean_text(url), clean_text(detail), clean_json(extra)
            )
        case Opaque(kind, body):
            return Opaque(clean_text(kind), clean_json(body))
        case _:
            assert_never(part)

"""Replace lone surrogates by U+FFFD and NaN by null, wherever a message has text or JSON.

The two halves of a pair are joined. Signed thinking cannot be changed, so it is dropped as a whole.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import assert_never

from everlong.core import CallId, Image, Message, Opaque, Part, Reasoning, ResultPart, Text, ToolCall, ToolResult
from everlong.wire.formats.format import Rules
from everlong.wire.formats.validation import clean_json, clean_text, has_escaped_surrogate, has_surrogate
from everlong.wire.repair.draft import Change

__all__ = ["clean_surrogates"]


def clean_surrogates(message: Message, _rules: Rules) -> Change | None:
    """Clean every text of the message."""
    if not any(map(_dirty, _texts(message))):
        return None
    parts = [_clean_part(part) for part in message.parts if not _is_sealed(part)]
    whole = replace(message, parts=tuple(parts), name=clean_text(message.name), extra=clean_json(message.extra))
    halves = any(map(_halved, _texts(message)))
    reason = "half a surrogate pair cannot be sent; replaced by U+FFFD" if halves else "NaN is not JSON; sent as null"
    return Change((whole,), (reason,))


def _dirty(text: str) -> bool:
    return has_surrogate(text) or clean_json(text) != text


def _halved(text: str) -> bool:
    return has_surrogate(text) or has_escaped_surrogate(text)


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

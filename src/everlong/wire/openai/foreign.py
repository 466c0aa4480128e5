"""What OpenAI's formats can say of a message that came in another format.

Left out: fields and blocks that only the other format knows, reasoning that is sealed for another
model, blank texts. Kept: words, pictures, calls and results, and reasoning in plain words (servers
such as DeepSeek want it back in tool turns). A picture that cannot be shown - in the assistant's own
words, or kept as a file by another provider - leaves a note.
"""

import re
from typing import assert_never

from everlong.core import (
    CallId,
    Image,
    Message,
    Opaque,
    Part,
    Reasoning,
    ResultPart,
    Role,
    Text,
    ToolCall,
    ToolResult,
    ref_of,
)
from everlong.wire.translation import image_note

__all__ = ["adopt"]

NAME = re.compile(r"[^\s<|\\/>]+")
REACHABLE = ("http://", "https://", "data:")


def adopt(message: Message, longest_id: int) -> Message:
    """The message without anything of its origin; it may end up without parts."""
    parts = [adopted for part in message.parts for adopted in _adopted(part, message.role, longest_id)]
    return Message(message.role, tuple(parts), name=_name(message.name))


def _adopted(part: Part, role: Role, longest_id: int) -> tuple[Part, ...]:
    match part:
        case Text(text) if not text.strip():
            return ()
        case Text() | Image() | Opaque():
            return _content(part, pictures=role in (Role.USER, Role.TOOL))
        case ToolCall(call, name, arguments):
            return (ToolCall(_call_id(call, longest_id), name, arguments),)
        case ToolResult(call, content, name, failed):
            kept = tuple(inner for block in content for inner in _content(block, pictures=True))
            return (ToolResult(_call_id(call, longest_id), kept, _name(name), failed),)
        case Reasoning(text, signature):
            return () if signature else (Reasoning(text),)
        case _:
            assert_never(part)


def _content(part: ResultPart, *, pictures: bool) -> tuple[ResultPart, ...]:
    match part:
        case Text(text):
            return (Text(text),) if text else ()
        case Image(data, media_type, url, detail):
            shown = pictures and (data or url.startswith(REACHABLE))
            return (Image(data, media_type, url, detail) if shown else Text(image_note(part)),)
        case Opaque():
            return ()
        case _:
            assert_never(part)


def _call_id(call: CallId, longest: int) -> CallId:
    """The id in a length that is accepted, the same for a call and its result."""
    return call if len(call) <= longest else CallId(f"call_{ref_of(call)}")


def _name(name: str) -> str:
    return name if NAME.fullmatch(name) else ""

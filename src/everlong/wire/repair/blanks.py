"""Remove blank texts, images without data, and empty messages.

An empty result gets a note. If a provider accepts an empty text (next to calls in OpenAI chat), it stays. Parts of
another format that the writers leave out are not touched here.
"""

from dataclasses import replace

from everlong.core import Image, Message, Opaque, Part, Reasoning, ResultPart, Role, Text, ToolCall, ToolResult
from everlong.wire.fields import unpack
from everlong.wire.formats.format import Rules
from everlong.wire.repair.draft import Change

__all__ = ["NO_OUTPUT", "drop_blanks"]

NO_OUTPUT = "(no output)"
NO_BYTES = ";base64,"
SIGNED = ("thoughtSignature", "thought_signature")  # Gemini may sign a part without text


def drop_blanks(message: Message, rules: Rules) -> Change | None:
    """Remove the blank parts of a message."""
    own = message.origin == rules.fmt
    filled = tuple(_filled(part, rules, own=own) for part in message.parts)
    said = tuple(part for part in filled if not _empty(part, own=own))
    if not _says_something(said, rules, own=own):
        return Change((), (f"the {message.role} message is empty",))
    dropped = message.role is Role.TOOL or (own and not _speaks_beside_blank(message, said, rules))
    kept = said if dropped else filled
    if kept == message.parts:
        return None
    reason = "a result is empty" if len(kept) == len(message.parts) else "a blank text cannot be sent"
    return Change((message.with_parts(kept),), (reason,))


def _says_something(parts: tuple[Part, ...], rules: Rules, *, own: bool) -> bool:
    if own and rules.own_thinking:
        return bool(parts)
    return any(not isinstance(part, Reasoning) for part in parts)


def _empty(part: Part, *, own: bool) -> bool:
    match part:
        case Text(text, extra):
            return not text.strip() and not (own and _signed(extra))
        case Image(data, _, url):  # one from another format is sent as a note
            return own and not data and (not url.strip() or url.endswith(NO_BYTES))
        case Opaque():
            return not own
        case Reasoning() | ToolCall() | ToolResult():
            return False


def _signed(extra: str) -> bool:
    fields, _ = unpack(extra)
    return any(fields.get(key) for key in SIGNED)


def _filled(part: Part, rules: Rules, *, own: bool) -> Part:
    if not isinstance(part, ToolResult) or rules.silent_results:
        return part
    content: tuple[ResultPart, ...] = tuple(inner for inner in part.content if not _empty(inner, own=own))
    return part if content == part.content and content else replace(part, content=content or (Text(NO_OUTPUT),))


def _speaks_beside_blank(message: Message, said: tuple[Part, ...], rules: Rules) -> bool:
    """Whether a blank text may stay: the provider accepts it, and it is the only text, not a block, next to calls."""
    if not rules.blank_beside_calls or not any(isinstance(part, ToolCall) for part in said):
        return False
    content = [part for part in message.parts if isinstance(part, Text | Image | Opaque)]
    as_string = unpack(message.extra)[1].get("content") != "blocks"
    return as_string and len(content) == 1 and isinstance(content[0], Text) and not content[0].extra

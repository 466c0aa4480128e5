"""The last shape that every provider accepts: words alone. For a history that one of them rejects as it is.

Calls and results become text, thinking and what is opaque is left out. Nothing stored changes: this is a view.
"""

from everlong.core import CallId, History, Image, Message, Part, Role, Text, ToolCall, ToolResult

__all__ = ["flattened", "without_images"]

IMAGE_NOTE = "[image left out: the provider did not accept it]"


def flattened(messages: History) -> History:
    """Every message as plain text.

    Example: assistant calls read(a.py), tool answers "x" -> assistant "[called read: …]", user "[result of read] x"
    """
    names = {call.id: call.name for message in messages for call in message.calls}
    said = (_flat(message, names) for message in messages)
    return tuple(message for message in said if message.parts)


def without_images(messages: History) -> History:
    """A note in place of every picture, also inside results."""
    return tuple(message.with_parts(tuple(map(_without_image, message.parts))) for message in messages)


def _flat(message: Message, names: dict[CallId, str]) -> Message:
    parts: list[Part] = []
    for part in message.parts:
        match part:
            case Text(text):
                parts.append(Text(text))
            case Image():
                parts.append(part)
            case ToolCall(_, name, arguments):
                parts.append(Text(f"[called {name}: {arguments}]"))
            case ToolResult(call=call):
                parts.append(Text(f"[result of {part.name or names.get(call, 'a tool')}]\n{part.text}"))
            case _:
                continue
    role = Role.USER if message.role is Role.TOOL else message.role
    return Message(role, tuple(parts), name=message.name, time=message.time)


def _without_image(part: Part) -> Part:
    match part:
        case Image():
            return Text(IMAGE_NOTE)
        case ToolResult(call, content, name, failed, extra):
            kept = tuple(Text(IMAGE_NOTE) if isinstance(inner, Image) else inner for inner in content)
            return ToolResult(call, kept, name, failed, extra)
        case _:
            return part

"""The message inside a pi entry: roles, blocks, and the things pi tells its model as if the user had said them.

    {"role": "assistant", "content": [{"type": "thinking"|"text"|"toolCall", …}], "model": …, "stopReason": …}
    {"role": "toolResult", "toolCallId": …, "toolName": …, "content": […], "isError": false}
    {"role": "bashExecution", "command": …, "output": …, "exitCode": 0}

The fields of the entry around it are the caller's: `parse` packs them with what is left of the message.
"""

from typing import assert_never, cast

from everlong.core import (
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
from everlong.wire.fields import dump, load, opaque, opaque_body, pack, unpack
from everlong.wire.formats.translation import arguments_object, image_note, inline_image
from everlong.wire.sessions.conversation import summary_text, tell_summary
from everlong.wire.sessions.records import milliseconds, take_text

__all__ = ["FORMAT", "content_of", "parse", "parts_of", "render"]

FORMAT = "pi"

#: Roles whose content is blocks, and who speaks in them.
SPOKEN = {
    "user": Role.USER,
    "custom": Role.USER,
    "hookMessage": Role.USER,  # what version 2 called "custom"
    "assistant": Role.ASSISTANT,
    "toolResult": Role.TOOL,
}
SUMMARIES = ("branchSummary", "compactionSummary")
NOTHING_USED: JsonObject = {
    "input": 0,
    "output": 0,
    "cacheRead": 0,
    "cacheWrite": 0,
    "totalTokens": 0,
    "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0},
}


def parse(body: JsonObject, entry: JsonObject) -> Message | None:
    """The message that `body` holds; None for a role that says nothing to the model."""
    role = body.get("role")
    if role in SUMMARIES and isinstance(body.get("summary"), str):
        told: Part = tell_summary(cast(str, body["summary"]))
        return Message(Role.USER, (told,), origin=FORMAT, extra=pack(entry, told=body))
    if role == "bashExecution" and not body.get("excludeFromContext"):
        return Message(Role.USER, (Text(_command_told(body)),), origin=FORMAT, extra=pack(entry, told=body))
    if not isinstance(role, str) or role not in SPOKEN:
        return None
    speaker, fields = SPOKEN[role], dict(body)
    content, form = parts_of(fields)
    parts: tuple[Part, ...] = content
    if speaker is Role.TOOL:
        call, name = take_text(fields, "toolCallId"), take_text(fields, "toolName")
        failed = fields.get("isError") is True
        result = tuple(_result_block(part) for part in content)
        parts = (ToolResult(CallId(call), result, name=name, failed=failed),)
    return Message(speaker, parts, origin=FORMAT, extra=pack(entry, message=fields, content=form))


def render(message: Message, *, model: str = "") -> list[JsonObject]:
    """The message as pi keeps it: one body, or several where results share a message."""
    hints = unpack(message.extra)[1] if message.origin == FORMAT else {}
    told = hints.get("told")
    if isinstance(told, dict):
        return [_told_again(message, told)]
    fields = hints.get("message")
    if message.role is Role.TOOL:
        kept = fields if isinstance(fields, dict) and len(message.parts) == 1 else None
        bodies = [_result_out(result, kept, hints, message) for result in message.results]
        beside = tuple(part for part in message.parts if not isinstance(part, ToolResult))
        return [*bodies, *([_user_out(beside, message)] if beside else [])]
    own = isinstance(fields, dict)
    fresh = _fresh_fields(message, model)
    body = dict(cast(JsonObject, fields)) if own else fresh
    return [body | content_of(message.parts, hints, own=own)]


# --- content -----------------------------------------------------------------------------------


def parts_of(fields: JsonObject) -> tuple[tuple[Part, ...], str | None]:
    """The parts of `content`, taken out of the fields, and its form where it is not a list of blocks."""
    content = fields.get("content")
    if isinstance(content, str):
        del fields["content"]
        return (Text(content),), "text"
    if isinstance(content, list):
        del fields["content"]
        return tuple(_block_in(block) for block in content), None
    return (), "carried"


def content_of(parts: tuple[Part, ...], hints: JsonObject, *, own: bool) -> JsonObject:
    """`content` again, in the form it had."""
    form = hints.get("content")
    if form == "carried" and not parts:
        return {}
    if form == "text" and len(parts) == 1 and isinstance(parts[0], Text):
        return {"content": parts[0].text}
    return {"content": [_block_out(part, own=own) for part in parts]}


def _block_in(block: Json) -> Part:
    if not isinstance(block, dict):
        return opaque(block)
    fields = dict(block)
    part: Part | None = None
    match fields.pop("type", None), fields:
        case "text", {"text": str(text)}:
            del fields["text"]
            part = Text(text, pack(fields))
        case "thinking", {"thinking": str(text)}:
            del fields["thinking"]
            part = Reasoning(text, take_text(fields, "thinkingSignature"), pack(fields))
        case "image", {"data": str(data), "mimeType": str(media_type)}:
            del fields["data"], fields["mimeType"]
            part = Image(data=data, media_type=media_type, extra=pack(fields))
        case "toolCall", {"id": str(call), "name": str(name)}:
            del fields["id"], fields["name"]
            form = None if "arguments" in fields else "absent"
            arguments = dump(fields.pop("arguments", {}))
            part = ToolCall(CallId(call), name, arguments, pack(fields, arguments=form))
    return part or opaque(block)


def _result_block(part: Part) -> ResultPart:
    """What a result can hold; a call or thinking inside one is carried along."""
    return part if isinstance(part, Text | Image | Opaque) else opaque(_block_out(part, own=True))


def _block_out(part: Part, *, own: bool) -> Json:
    match part:
        case Opaque():
            return opaque_body(part)
        case ToolResult():
            return {"type": "text", "text": part.text}
        case Text() | Image() | ToolCall() | Reasoning():
            fields, hints = unpack(part.extra if own else "")
            return _modelled(part, hints) | fields
        case _:
            assert_never(part)


def _modelled(part: Text | Image | ToolCall | Reasoning, hints: JsonObject) -> JsonObject:
    match part:
        case Text(text):
            return {"type": "text", "text": text}
        case Image():
            inline = inline_image(part)
            if inline is None:
                return {"type": "text", "text": image_note(part)}
            return {"type": "image", "mimeType": inline[0], "data": inline[1]}
        case ToolCall(call, name, arguments):
            given = {} if hints.get("arguments") == "absent" else {"arguments": _arguments(arguments)}
            return {"type": "toolCall", "id": call, "name": name, **given}
        case Reasoning(text, signature):
            return {"type": "thinking", "thinking": text, **({"thinkingSignature": signature} if signature else {})}
        case _:
            assert_never(part)


def _arguments(arguments: str) -> Json:
    """pi keeps a value where others keep text."""
    try:
        return load(arguments)
    except ValueError:
        return arguments_object(arguments)


# --- bodies ------------------------------------------------------------------------------------


def _fresh_fields(message: Message, model: str) -> JsonObject:
    time = milliseconds(message.time)
    if message.role is not Role.ASSISTANT:
        return {"role": "user", "timestamp": time}
    stop = "toolUse" if message.calls else "stop"
    known: JsonObject = {"api": "", "provider": "", "model": model, "usage": dict(NOTHING_USED), "stopReason": stop}
    return {"role": "assistant", "timestamp": time, **known}


def _user_out(parts: tuple[Part, ...], message: Message) -> JsonObject:
    fields: JsonObject = {"role": "user", "timestamp": milliseconds(message.time)}
    return fields | content_of(parts, {}, own=message.origin == FORMAT)


def _result_out(result: ToolResult, kept: JsonObject | None, hints: JsonObject, message: Message) -> JsonObject:
    fields = kept or {"role": "toolResult", "isError": result.failed, "timestamp": milliseconds(message.time)}
    named: JsonObject = {"toolName": result.name} if result.name else {}
    called: JsonObject = {"toolCallId": result.call} if result.call else {}
    form = hints if kept else {}
    return fields | called | named | content_of(result.content, form, own=message.origin == FORMAT)


def _told_again(message: Message, body: JsonObject) -> JsonObject:
    """The original while the message says what it told; afterwards what it says now."""
    if body.get("role") in SUMMARIES:
        return body | {"summary": summary_text(message)}
    if message.parts == (Text(_command_told(body)),):
        return body
    return _user_out(message.parts, message)


def _command_told(body: JsonObject) -> str:
    """A command that the user ran, as text. Example: $ make / error / [exit code 2]"""
    lines = [f"$ {body.get('command', '')}"]
    if body.get("output"):
        lines.append(str(body["output"]))
    if body.get("cancelled") is True:
        lines.append("[cancelled]")
    elif body.get("exitCode"):
        lines.append(f"[exit code {body['exitCode']}]")
    return "\n".join(lines)

"""The messages of a Chatbox session, and how one message is split into several.

    {"id": …, "role": "assistant", "contentParts": [{"type": "text", …}, {"type": "tool-call", "args", "result", …}]}

Chatbox stores a whole run of the model (calls with their results and the text between them) in one message, and so does
the `Message` here; `spoken` splits it for sending. Older messages have their text in `content` instead of
`contentParts`.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import assert_never, cast

from everlong.core import (
    CallId,
    History,
    Image,
    Json,
    JsonObject,
    Message,
    Opaque,
    Part,
    Reasoning,
    Role,
    Text,
    ToolCall,
    ToolResult,
    encode,
)
from everlong.errors import WireError
from everlong.wire.fields import dump, load, opaque, opaque_body, pack, unpack
from everlong.wire.formats.translation import arguments_object, image_note
from everlong.wire.sessions.records import as_object, fresh_uuid, milliseconds, time_of

__all__ = ["NAME", "gathered", "message_id", "read_message", "spoken", "write_message"]

NAME = "chatbox"
ROLES = {role.value: role for role in Role}
FINISHED = {"result": False, "error": True}  # states of a call that was answered, and whether it failed


def read_message(raw: Json, where: str = "") -> Message:
    """Read one message of the session, with calls and results next to each other."""
    fields = as_object(raw, fmt=NAME, where=where)
    role = ROLES.get(str(fields.pop("role", None)))
    if role is None:
        raise WireError(f"unknown role {cast(JsonObject, raw).get('role')!r}", fmt=NAME, where=where)
    parts, form = _content_in(fields)
    return Message(role, parts, time=time_of(fields.get("timestamp")), origin=NAME, extra=pack(fields, content=form))


def write_message(message: Message) -> JsonObject:
    """Write a message."""
    fields, hints = unpack(message.extra) if message.origin == NAME else ({}, {})
    out = {"role": message.role.value} | fields
    match hints.get("content"), message.parts:
        case "words", (Text(text, ""),):
            return out | {"content": text}
        case "none", ():
            return out
        case _:
            return out | {"contentParts": _blocks_out(message.parts, own=message.origin == NAME)}


# --- content -----------------------------------------------------------------------------------


def _content_in(fields: JsonObject) -> tuple[tuple[Part, ...], str | None]:
    blocks, words = fields.get("contentParts"), fields.get("content")
    if isinstance(words, str) and not blocks:
        del fields["content"]
        return (Text(words),), "words"
    if not isinstance(blocks, list):
        return (), "none"
    del fields["contentParts"]
    return tuple(part for block in blocks for part in _block_in(block)), None


def _block_in(block: Json) -> tuple[Part, ...]:
    if not isinstance(block, dict):
        return (opaque(block),)
    fields = dict(block)
    match fields.pop("type", None), fields:
        case "text", {"text": str(text)}:
            del fields["text"]
            return (Text(text, pack(fields)),)
        case "reasoning", {"text": str(text)}:
            del fields["text"]
            return (Reasoning(text, extra=pack(fields)),)
        case "image", {"url": str(url)} if url:
            del fields["url"]
            return (Image(url=url, extra=pack(fields)),)
        case "tool-call", {"toolCallId": str(call), "toolName": str(name)}:
            return _call_in(CallId(call), name, fields)
    return (opaque(block),)


def _call_in(call: CallId, name: str, fields: JsonObject) -> tuple[Part, ...]:
    del fields["toolCallId"], fields["toolName"]
    failed = FINISHED.get(str(fields.get("state")))
    results: tuple[Part, ...] = ()
    if failed is not None:
        content, form = _result_in(fields)
        results = (ToolResult(call, content, name=name, failed=failed, extra=pack({}, result=form)),)
    given = None if "args" in fields else "none"
    return (ToolCall(call, name, dump(fields.pop("args", {})), pack(fields, args=given)), *results)


def _blocks_out(parts: Sequence[Part], *, own: bool) -> list[Json]:
    """Write the blocks, each result in the block of the call right before it."""
    blocks: list[Json] = []
    before: Part | None = None
    for part in parts:
        if isinstance(part, ToolResult) and isinstance(before, ToolCall) and before.id == part.call:
            blocks[-1] = _call_out(before, part, own=own)
        else:
            blocks.append(_block_out(part, own=own))
        before = part
    return blocks


def _block_out(part: Part, *, own: bool) -> Json:
    match part:
        case Opaque():
            return opaque_body(part)
        case ToolCall():
            return _call_out(part, None, own=own)
        case ToolResult():
            return _call_out(ToolCall(part.call, part.name, "{}"), part, own=own)
        case Text(text, extra):
            return {"type": "text", "text": text, **unpack(extra if own else "")[0]}
        case Reasoning(text, _, extra):
            return {"type": "reasoning", "text": text, **unpack(extra if own else "")[0]}
        case Image(data=data, media_type=kind, url=url, extra=extra):
            if not url and not data:
                return {"type": "text", "text": image_note(part)}
            return {"type": "image", "url": url or f"data:{kind};base64,{data}", **unpack(extra if own else "")[0]}
        case _:
            assert_never(part)


def _call_out(call: ToolCall, result: ToolResult | None, *, own: bool) -> JsonObject:
    fields, hints = unpack(call.extra if own else "")
    out: JsonObject = {"type": "tool-call", "toolCallId": call.id, "toolName": call.name}
    if hints.get("args") != "none":
        out["args"] = _value(call.arguments)
    if result is None:
        return {"state": "call"} | out | fields
    state = "error" if result.failed else "result"
    form = unpack(result.extra if own else "")[1].get("result")
    answer: JsonObject = {} if form == "none" and not result.content else {"result": _result_out(result, form)}
    return out | fields | {"state": state} | answer


def _result_in(fields: JsonObject) -> tuple[tuple[Text, ...], str | None]:
    if "result" not in fields:
        return (), "none"
    result = fields.pop("result")
    return ((Text(result),), None) if isinstance(result, str) else ((Text(dump(result)),), "value")


def _result_out(result: ToolResult, form: Json) -> Json:
    """Return the result as a value if it still is one; a shortened one as text."""
    if form != "value":
        return result.text
    try:
        return load(result.text)
    except ValueError:
        return result.text


def _value(arguments: str) -> Json:
    try:
        return load(arguments)
    except ValueError:
        return arguments_object(arguments)


#: Attachments of a message: the field with the list -> the field with the name.
ATTACHED = {"files": "name", "links": "url", "pictures": "url"}
ATTACHED_NOTE = pack({}, note="attached")


def message_id(message: Message) -> str:
    """Return the id in the file of a message, or of the message it is a piece of; "" if there is none."""
    if message.origin != NAME:
        return ""
    fields, hints = unpack(message.extra)
    name = fields.get("id", hints.get("piece_of"))
    return name if isinstance(name, str) else ""


# --- splitting ---------------------------------------------------------------------------------


def spoken(message: Message) -> History:
    """Return the messages that a model can get for a message."""
    parts = [sent for part in message.parts if (sent := _sent_part(part)) is not None]
    if message.role is Role.TOOL:
        return ()  # Chatbox never sends one: results are stored with their calls
    if message.role is not Role.ASSISTANT:
        return (message.with_parts((*parts, *_attached(message))),)
    piece = replace(message, extra=pack({}, piece_of=message_id(message) or None))
    pieces: list[Message] = []
    for said, results in _steps(parts):
        speaker = piece if pieces else message
        pieces.append(speaker.with_parts(tuple(said)))
        if results:
            pieces.append(replace(piece, role=Role.TOOL, parts=tuple(results)))
    return tuple(pieces)


def _steps(parts: Sequence[Part]) -> list[tuple[list[Part], list[Part]]]:
    """Return steps: text and calls, then the results of these calls. Calls without text between them were parallel."""
    steps: list[tuple[list[Part], list[Part]]] = [([], [])]
    for part in parts:
        if isinstance(part, ToolResult):
            steps[-1][1].append(part)
            continue
        if steps[-1][1] and not isinstance(part, ToolCall):
            steps.append(([], []))
        steps[-1][0].append(part)
    return steps


def _sent_part(part: Part) -> Part | None:
    if not isinstance(part, Opaque):
        return part
    if part.kind != "image":
        return None
    block = load(part.body)
    read = block.get("ocrResult") if isinstance(block, dict) else None
    return Text(f"[image: {read}]" if read else "[image]", pack({}, block=block))


def _attached(message: Message) -> list[Part]:
    fields, _ = unpack(message.extra)
    notes: list[Part] = []
    for field, key in ATTACHED.items():
        listed = fields.get(field)
        for item in listed if isinstance(listed, list) else []:
            name = item.get(key) if isinstance(item, dict) else None
            notes.append(Text(f"[{field[:-1]}: {name}]" if name else f"[{field[:-1]}]", ATTACHED_NOTE))
    return notes


# --- joining -----------------------------------------------------------------------------------


def gathered(messages: Sequence[Message]) -> list[Message]:
    """Return the messages as Chatbox stores them: results with their calls, pieces joined, new ids for new messages."""
    kept: list[Message] = []
    taken = {message_id(message) for message in messages}
    for at, message in enumerate(messages):
        parts = _restored(message)
        results = [part for part in parts if isinstance(part, ToolResult)]
        rest = tuple(part for part in parts if not isinstance(part, ToolResult))
        role = Role.USER if message.role is Role.TOOL else message.role
        if results:
            if not kept or kept[-1].role is not Role.ASSISTANT:
                kept.append(_envelope(replace(message, role=Role.ASSISTANT, parts=()), f"{at}:run", taken))
            kept[-1] = kept[-1].with_parts(_answered(kept[-1].parts, results))
        if rest and kept and _is_piece(message) and message_id(message) == message_id(kept[-1]):
            kept[-1] = kept[-1].with_parts((*kept[-1].parts, *rest))
        elif rest:
            kept.append(_envelope(replace(message, role=role, parts=rest), f"{at}:{encode(message)}", taken))
    return kept


def _is_piece(message: Message) -> bool:
    return message.origin == NAME and "piece_of" in unpack(message.extra)[1]


def _envelope(message: Message, seed: str, taken: set[str]) -> Message:
    """Return the message with its own fields, or with new ones if it is new or has lost its first piece."""
    if message.origin == NAME and not _is_piece(message):
        return message
    fields: dict[str, Json] = {"id": fresh_uuid(seed, taken), "timestamp": milliseconds(message.time)}
    return replace(message, origin=NAME, extra=pack(fields))


def _answered(parts: Sequence[Part], results: Sequence[ToolResult]) -> tuple[Part, ...]:
    """Return the parts with each result right after its call; results without a call come last."""
    placed = list(parts)
    for result in results:
        calls = [at for at, part in enumerate(placed) if isinstance(part, ToolCall) and part.id == result.call]
        placed.insert(calls[-1] + 1 if calls else len(placed), result)
    return tuple(placed)


def _restored(message: Message) -> tuple[Part, ...]:
    """Return the parts for the file: notes become their originals again, and foreign parts lose their extra fields."""
    if message.origin != NAME:
        return tuple(_plain(part) for part in message.parts if not isinstance(part, Opaque))
    restored: list[Part] = []
    for part in message.parts:
        hints = unpack(part.extra)[1] if isinstance(part, Text) else {}
        if "block" in hints:
            restored.append(opaque(hints["block"]))
        elif "note" not in hints:
            restored.append(part)
    return tuple(restored)


def _plain(part: Part) -> Part:
    if isinstance(part, Opaque):
        return part
    if isinstance(part, ToolResult):
        words = tuple(Text(inner.text) for inner in part.content if isinstance(inner, Text))
        return replace(part, content=words, extra="")
    return replace(part, extra="")

"""A run of the model in one Chatbox message, taken apart to be sent and put together again.

    assistant: text, call + result, text   <->   assistant: text, call;  tool: result;  assistant: text

Files and pictures that lie in Chatbox's own storage are named in words; its notices to the user are left out.
Nothing here reads or writes JSON of the file: the first piece carries the message's fields, the others its id.
"""

from collections.abc import Sequence
from dataclasses import replace

from everlong.core import History, Json, Message, Opaque, Part, Role, Text, ToolCall, ToolResult, encode
from everlong.wire.fields import load, opaque, pack, unpack
from everlong.wire.sessions.chatbox_messages import FORMAT
from everlong.wire.sessions.names import fresh_uuid
from everlong.wire.sessions.records import milliseconds

__all__ = ["gathered", "message_id", "spoken"]

#: What can be sent along with a message: the list that holds it, and the field that names it.
ATTACHED = {"files": "name", "links": "url", "pictures": "url"}
ATTACHED_NOTE = pack({}, note="attached")


def message_id(message: Message) -> str:
    """The id that the message, or the one it is a piece of, has in its file; "" if it has none."""
    if message.origin != FORMAT:
        return ""
    fields, hints = unpack(message.extra)
    name = fields.get("id", hints.get("piece_of"))
    return name if isinstance(name, str) else ""


# --- apart -------------------------------------------------------------------------------------


def spoken(message: Message) -> History:
    """What a model can be sent of the message."""
    parts = [told for part in message.parts if (told := _told(part)) is not None]
    if message.role is Role.TOOL:
        return ()  # Chatbox never sends one: results stand with their calls
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
    """Words and calls, then the results of these calls; calls with no word between them were made together."""
    steps: list[tuple[list[Part], list[Part]]] = [([], [])]
    for part in parts:
        if isinstance(part, ToolResult):
            steps[-1][1].append(part)
            continue
        if steps[-1][1] and not isinstance(part, ToolCall):
            steps.append(([], []))
        steps[-1][0].append(part)
    return steps


def _told(part: Part) -> Part | None:
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


# --- together ----------------------------------------------------------------------------------


def gathered(messages: Sequence[Message]) -> list[Message]:
    """The messages as Chatbox keeps them: results with their calls, pieces of one in one, new ids for new ones."""
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
    return message.origin == FORMAT and "piece_of" in unpack(message.extra)[1]


def _envelope(message: Message, seed: str, taken: set[str]) -> Message:
    """The message with its own fields, or with new ones where it is new or has lost its first piece."""
    if message.origin == FORMAT and not _is_piece(message):
        return message
    fields: dict[str, Json] = {"id": fresh_uuid(seed, taken), "timestamp": milliseconds(message.time)}
    return replace(message, origin=FORMAT, extra=pack(fields))


def _answered(parts: Sequence[Part], results: Sequence[ToolResult]) -> tuple[Part, ...]:
    """Each result right behind its call; one without a call at the end."""
    placed = list(parts)
    for result in results:
        calls = [at for at, part in enumerate(placed) if isinstance(part, ToolCall) and part.id == result.call]
        placed.insert(calls[-1] + 1 if calls else len(placed), result)
    return tuple(placed)


def _restored(message: Message) -> tuple[Part, ...]:
    """The parts as the file has them: what was only told in words is the original again, what is foreign is plain."""
    if message.origin != FORMAT:
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

"""The items of OpenAI Responses that are no calls, and the rows of items that an assistant makes.

    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "…"}]}
    {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "…"}]}

What the assistant does comes as several items in a row: reasoning, messages, calls, and kinds that
are carried along as they are. `parts_in` and `items_out` turn such a row into parts and back; the first
block of a message item holds the fields of the item, the blocks after it join in.
"""

from collections.abc import Iterable
from typing import assert_never, cast

from everlong.core import Image, Json, JsonObject, Message, Opaque, Part, Reasoning, Role, Text, ToolCall, ToolResult
from everlong.wire.fields import opaque, opaque_body, pack, unpack
from everlong.wire.openai.responses_blocks import input_in, input_out, output_in, output_out
from everlong.wire.openai.responses_calls import CALLS, call_in, call_out, result_out
from everlong.wire.openai.shapes import content_in, content_out, missing, settle, take_text

__all__ = ["FORMAT", "items_out", "message_in", "message_out", "parts_in"]

FORMAT = "openai-responses"
THOUGHT = ("summary", "content")  # where the words of a reasoning item stand


# --- messages ------------------------------------------------------------------------------------


def message_in(item: JsonObject, role: Role) -> Message:
    """A message item of the user or the system."""
    fields = dict(item)
    written_role = fields.pop("role")
    parts, form = content_in(fields, "content", input_in)
    if fields.get("type") == "message":
        del fields["type"]
    shape: JsonObject = {
        "role": None if written_role == role.value else written_role,
        "content": None if form == "blocks" else form,
        "missing": missing(item, "type"),
    }
    return Message(role, tuple(parts), origin=FORMAT, extra=pack(fields, **shape))


def message_out(message: Message) -> JsonObject:
    """The item again."""
    fields, shape = unpack(message.extra)
    role = shape.get("role", message.role.value)
    spoken = [part for part in message.parts if isinstance(part, Text | Image | Opaque)]
    content = content_out("content", spoken, shape.get("content", "blocks"), input_out)
    return settle({"type": "message", "role": role, **content}, fields, shape)


def _spoken_in(item: JsonObject) -> list[Part]:
    """A message item of the assistant; one that holds more than words and pictures is carried as it is."""
    fields = dict(item)
    parts, form = content_in(fields, "content", output_in)
    if not parts or not all(isinstance(part, Text | Image) for part in parts):
        return [opaque(item)]
    del fields["role"]
    if fields.get("type") == "message":
        del fields["type"]
    first = cast("Text | Image", parts[0])
    head = pack(fields, missing=missing(item, "type"), content=None if form == "blocks" else form)
    own, shape = unpack(first.extra)
    return [_with_extra(first, pack(own, **shape, item=head)), *parts[1:]]


def _spoken_out(parts: list[Text | Image]) -> JsonObject:
    first = parts[0]
    fields, shape = unpack(_head(first) or "")
    own, hints = unpack(first.extra)
    hints.pop("item", None)
    blocks = [_with_extra(first, pack(own, **hints)), *parts[1:]]
    content = content_out("content", blocks, shape.get("content", "blocks"), output_out)
    return settle({"type": "message", "role": "assistant", **content}, fields, shape)


def _head(part: Part) -> str | None:
    """The fields of the message item that begins with this block; None where it joins the one before."""
    return cast("str | None", unpack(part.extra)[1].get("item")) if isinstance(part, Text | Image) else None


def _with_extra(part: Text | Image, extra: str) -> Text | Image:
    match part:
        case Text(text):
            return Text(text, extra)
        case Image(data, media_type, url, detail):
            return Image(data, media_type, url, detail, extra)
        case _:
            assert_never(part)


# --- a row of the assistant's items --------------------------------------------------------------


def parts_in(item: JsonObject) -> list[Part]:
    """What one item of the assistant says or does."""
    kind = item.get("type")
    if kind == "message" or (kind is None and "role" in item):
        return _spoken_in(item)
    if kind == "reasoning":
        return [_reasoning_in(item)]
    if isinstance(kind, str) and kind in CALLS:
        return [call_in(item, CALLS[kind])]
    return [opaque(item)]


def items_out(parts: Iterable[Part]) -> list[JsonObject]:
    """The items again, in order."""
    out: list[JsonObject] = []
    spoken: list[Text | Image] = []
    for part in parts:
        joins = isinstance(part, Text | Image) and _head(part) is None
        if spoken and not joins:
            out.append(_spoken_out(spoken))
            spoken = []
        match part:
            case Text() | Image():
                spoken.append(part)
            case ToolCall():
                out.append(call_out(part))
            case Reasoning():
                out.append(_reasoning_out(part))
            case ToolResult():
                out.append(result_out(part))
            case Opaque():
                out.append(cast(JsonObject, opaque_body(part)))
            case _:
                assert_never(part)
    return [*out, _spoken_out(spoken)] if spoken else out


# --- reasoning -----------------------------------------------------------------------------------


def _reasoning_in(item: JsonObject) -> Reasoning:
    """The words of summary and content. The seal is the encrypted content, else the id under which it is stored."""
    fields = dict(item)
    del fields["type"]
    blocks: JsonObject = {key: fields.pop(key) for key in THOUGHT if isinstance(fields.get(key), list)}
    text = _thought(blocks)
    hint = None if blocks == _plain_thought(text) else cast(Json, blocks)
    seal = take_text(fields, "encrypted_content")
    stored = fields.get("id") if not seal else None
    if isinstance(stored, str) and stored:
        return Reasoning(text, stored, pack(fields, blocks=hint, stored=True))
    return Reasoning(text, seal, pack(fields, blocks=hint))


def _reasoning_out(part: Reasoning) -> JsonObject:
    fields, shape = unpack(part.extra)
    blocks = cast(JsonObject, shape.get("blocks", _plain_thought(part.text)))
    if _thought(blocks) != part.text:
        blocks = _plain_thought(part.text)
    seal: JsonObject = {"encrypted_content": part.signature} if part.signature and not shape.get("stored") else {}
    return settle({"type": "reasoning", **blocks, **seal}, fields, {})


def _thought(blocks: JsonObject) -> str:
    texts = []
    for listed in blocks.values():
        for block in cast("list[Json]", listed):
            text = block.get("text") if isinstance(block, dict) else None
            if isinstance(text, str):
                texts.append(text)
    return "\n\n".join(texts)


def _plain_thought(text: str) -> JsonObject:
    return {"summary": [{"type": "summary_text", "text": text}] if text else []}

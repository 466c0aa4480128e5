"""The items of OpenAI Responses: messages, reasoning, calls and results, and rows of an assistant's items.

    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "…"}]}
    {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "…"}]}

The assistant's output is several items in a row: reasoning, messages, calls, and other kinds, which are passed through.
`parts_in` and `items_out` turn such a row into parts and back. The first block of a message item keeps the fields of
the item; the blocks after it belong to the same item.
"""

from collections.abc import Iterable
from dataclasses import dataclass
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
from everlong.wire.fields import opaque, opaque_body, pack, unpack
from everlong.wire.formats.openai import (
    arguments_in,
    arguments_out,
    content_in,
    content_out,
    image_from,
    image_url,
    missing,
    settle,
    take_text,
    text_in,
    text_out,
)

__all__ = [
    "CALLS",
    "FUNCTION",
    "NAME",
    "OUTPUTS",
    "CallKind",
    "call_in",
    "call_out",
    "input_in",
    "input_out",
    "items_out",
    "kind_of",
    "message_in",
    "message_out",
    "output_in",
    "output_out",
    "parts_in",
    "result_in",
    "result_out",
]


def input_in(block: JsonObject) -> ResultPart:
    """Read a block of the user, the system or a tool."""
    return _block_in(block, "input_text")


def output_in(block: JsonObject) -> ResultPart:
    """Read a block of the assistant."""
    return _block_in(block, "output_text")


def _block_in(block: JsonObject, words: str) -> ResultPart:
    return text_in(block, words) or _image_in(block) or opaque(block)


def _image_in(block: JsonObject) -> Image | None:
    """Read an image by URL or file id, or the screenshot that answers a computer call."""
    fields = dict(block)
    if fields.get("type") not in ("input_image", "computer_screenshot"):
        return None
    if fields["type"] == "input_image":
        del fields["type"]
    url = take_text(fields, "image_url")
    source = None if url else "file_id"
    url = url or take_text(fields, "file_id")
    detail = take_text(fields, "detail")
    return image_from(url, detail, pack(fields, source=source)) if url else None


def input_out(part: ResultPart) -> Json:
    """Write a block of the user, the system or a tool."""
    return _block_out(part, "input_text")


def output_out(part: ResultPart) -> Json:
    """Write a block of the assistant."""
    return _block_out(part, "output_text")


def _block_out(part: ResultPart, words: str) -> Json:
    match part:
        case Text():
            return text_out(part, words)
        case Image(detail=detail, extra=extra):
            fields, shape = unpack(extra)
            source = cast(str, shape.get("source", "image_url"))
            out: JsonObject = {"type": "input_image", source: image_url(part)}
            return settle(out | ({"detail": detail} if detail else {}), fields, {})
        case Opaque():
            return opaque_body(part)
        case _:
            assert_never(part)


@dataclass(frozen=True, slots=True)
class CallKind:
    """A kind of call: its item type, the field with its arguments, and its name if the item has none."""

    call: str
    payload: str
    name: str = ""

    @property
    def output(self) -> str:
        """The type of the item that answers it."""
        return f"{self.call}_output"


FUNCTION = CallKind("function_call", "arguments")
CUSTOM = CallKind("custom_tool_call", "input")
KINDS = (
    FUNCTION,
    CUSTOM,
    CallKind("apply_patch_call", "operation", "apply_patch"),
    CallKind("computer_call", "action", "computer"),
    CallKind("local_shell_call", "action", "local_shell"),
    CallKind("shell_call", "action", "shell"),
)
CALLS = {kind.call: kind for kind in KINDS}
OUTPUTS = {kind.output: kind for kind in KINDS}


def call_in(item: JsonObject, kind: CallKind) -> ToolCall:
    """Read a call."""
    fields = dict(item)
    del fields["type"]
    call = CallId(take_text(fields, "call_id"))
    name = kind.name or take_text(fields, "name")
    arguments, form = arguments_in(fields, kind.payload, free=kind is CUSTOM)
    written = ("call_id",) if kind.name else ("call_id", "name")
    absent = missing(item, *written)
    hint = None if kind is FUNCTION else kind.call
    return ToolCall(call, name, arguments, pack(fields, kind=hint, arguments=form, missing=absent))


def call_out(call: ToolCall) -> JsonObject:
    """Write the item of a call."""
    fields, shape = unpack(call.extra)
    kind = kind_of(call)
    out: JsonObject = {"type": kind.call, "call_id": call.id}
    if not kind.name:
        out["name"] = call.name
    out |= arguments_out(kind.payload, call.arguments, shape.get("arguments"), free=kind is CUSTOM)
    return settle(out, fields, shape)


def kind_of(call: ToolCall) -> CallKind:
    """Return the kind of a call; a function call if it came in another format."""
    return CALLS[cast(str, unpack(call.extra)[1].get("kind", FUNCTION.call))]


def result_in(item: JsonObject) -> ToolResult:
    """Read an item that answers a call."""
    fields = dict(item)
    kind = OUTPUTS[cast(str, fields.pop("type"))]
    content, form = content_in(fields, "output", input_in)
    call = take_text(fields, "call_id")
    named = None
    if not call and kind.call == "local_shell_call":  # its output has the id of the call in `id`
        call = take_text(fields, "id")
        named = "id" if call else None
    shape: JsonObject = {
        "kind": None if kind is FUNCTION else kind.call,
        "content": None if form == "string" else form,
        "named": named,
        "missing": missing(item, "call_id"),
    }
    return ToolResult(CallId(call), tuple(content), extra=pack(fields, **shape))


def result_out(result: ToolResult, answered: CallKind = FUNCTION) -> JsonObject:
    """Write the item of a result; one from another format is written for the kind of call it answers."""
    fields, shape = unpack(result.extra)
    kind = CALLS[cast(str, shape.get("kind", answered.call))]
    out: JsonObject = {"type": kind.output, cast(str, shape.get("named", "call_id")): result.call}
    return settle(out | content_out("output", result.content, shape.get("content"), input_out), fields, shape)


NAME = "openai-responses"
THOUGHT = ("summary", "content")  # the fields of a reasoning item with its text


# --- messages ------------------------------------------------------------------------------------


def message_in(item: JsonObject, role: Role) -> Message:
    """Read a message item of the user or the system."""
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
    return Message(role, tuple(parts), origin=NAME, extra=pack(fields, **shape))


def message_out(message: Message) -> JsonObject:
    """Write a message item of the user or the system."""
    fields, shape = unpack(message.extra)
    role = shape.get("role", message.role.value)
    spoken = [part for part in message.parts if isinstance(part, Text | Image | Opaque)]
    content = content_out("content", spoken, shape.get("content", "blocks"), input_out)
    return settle({"type": "message", "role": role, **content}, fields, shape)


def _spoken_in(item: JsonObject) -> list[Part]:
    """Read a message item of the assistant; one with more than text and images is passed through."""
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
    """Return the fields of the message item that begins with this block; None if it belongs to the one before."""
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
    """Read one item of the assistant."""
    kind = item.get("type")
    if kind == "message" or (kind is None and "role" in item):
        return _spoken_in(item)
    if kind == "reasoning":
        return [_reasoning_in(item)]
    if isinstance(kind, str) and kind in CALLS:
        return [call_in(item, CALLS[kind])]
    return [opaque(item)]


def items_out(parts: Iterable[Part]) -> list[JsonObject]:
    """Write the items of an assistant's parts, in order."""
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
    """Read a reasoning item. Its signature is the encrypted content, otherwise the id under which it is stored."""
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

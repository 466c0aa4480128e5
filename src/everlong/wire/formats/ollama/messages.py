"""Ollama's chat: the body of a request, and its messages.

    {"role": "assistant", "content": "…", "thinking": "…", "tool_calls": [{"function": {"name", "arguments": {…}}}]}
    {"role": "tool", "content": "…", "tool_name": "f"}

Content is only text; images are next to it as base64, and thinking has its own field. Calls and results often have no
ids, and results sometimes no names: `pairs` gives calls ids of ours, which are never sent. Calls of other formats are
written with their ids, which old servers ignore.
"""

from collections.abc import Sequence
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
)
from everlong.errors import WireError
from everlong.wire.document import Document
from everlong.wire.fields import dump, load, pack, shown, unpack
from everlong.wire.formats.openai import at, body_fields, missing, settings_of, settle, take_list, take_text, take_tools
from everlong.wire.formats.pairs import paired, written_id
from everlong.wire.formats.translation import arguments_object, image_note, inline_image

__all__ = [
    "NAME",
    "read_body",
    "read_message",
    "read_messages",
    "write_body",
    "write_history",
    "write_message",
]

NAME = "ollama"

ROLES = {"system": Role.SYSTEM, "user": Role.USER, "assistant": Role.ASSISTANT, "tool": Role.TOOL}
#: The fields in which a result names its tool; the second is older.
TOOL_NAMES = ("tool_name", "name")
#: The beginnings of base64 images, with their types: nothing else tells the type.
BEGINNINGS = {"iVBORw0KGgo": "image/png", "/9j/": "image/jpeg", "R0lGOD": "image/gif", "UklGR": "image/webp"}
#: Types that the server decodes.
IMAGE_TYPES = frozenset({"image/gif", "image/jpeg", "image/png", "image/webp"})


# --- bodies and histories ------------------------------------------------------------------------


def read_body(raw: Json) -> Document:
    """Read a request body, or a plain list of messages."""
    fields = body_fields(raw, "messages", NAME)
    listed = take_list(fields, "messages", NAME)
    return Document(
        fmt=NAME,
        messages=paired(_message_in(message, f"messages[{index}]") for index, message in enumerate(listed)),
        tools=take_tools(fields),
        model=take_text(fields, "model"),
        extra=pack(fields),
        bare=isinstance(raw, list),
    )


def write_body(document: Document) -> JsonObject:
    """Write the body of a request; for a document of another format, its model and messages."""
    fields, _ = settings_of(document, NAME)
    return fields | write_history(document.messages)


def write_history(messages: Sequence[Message]) -> JsonObject:
    """Write a history of any format. What the user says next to results comes after all of them."""
    names = {call.id: call.name for message in messages for call in message.calls}
    out: list[Json] = []
    waiting: list[JsonObject] = []
    for message in messages:
        if message.role is Role.TOOL:
            answers, beside = _answers_out(message, names)
            out += answers
            waiting += beside
        else:
            out += [*waiting, *write_message(message)]
            waiting = []
    return {"messages": [*out, *waiting]}


def read_message(raw: Json, where: str = "") -> Message:
    """Read one message of the list. Calls and results without an id are numbered within it."""
    return paired((_message_in(raw, where),))[0]


def read_messages(items: Sequence[Json]) -> History:
    """Read the messages in a list. Results without an id are paired with the calls before them."""
    return paired(_message_in(item, "") for item in items)


def write_message(message: Message) -> list[JsonObject]:
    """Write a message: one object, several if it has several results, none if nothing is left."""
    if message.role is Role.TOOL:
        answers, beside = _answers_out(message, {})
        return answers + beside
    own = message.origin == NAME
    if not own and not any(_is_said(part) for part in message.parts):
        return []
    fields, shape = unpack(message.extra if own else "")
    out: JsonObject = {"role": shape.get("role", message.role.value)}
    out |= _content_out(message.parts, shape) | _calls_out(message, own=own)
    return [settle(out, fields, {})]


# --- reading -------------------------------------------------------------------------------------


def _message_in(raw: Json, where: str) -> Message:
    if not isinstance(raw, dict):
        raise WireError(f"a message must be an object, not {type(raw).__name__}", fmt=NAME, where=where)
    fields = dict(raw)
    written_role = fields.pop("role", None)
    role = ROLES.get(written_role.lower()) if isinstance(written_role, str) else None
    if role is None:
        raise WireError(f"unknown role {shown(written_role)}", fmt=NAME, where=at(where, "role"))
    shape: JsonObject = {"role": None if written_role == role.value else written_role}
    shape["content"] = next((form for form in ("absent", "null") if _has_form(raw, form)), None)
    words, pictures = _text_in(fields, where), _pictures_in(fields, where)
    if role is Role.TOOL:
        result, beside = _result_in(fields, (*words, *pictures))
        return Message(role, (result,), origin=NAME, extra=pack(fields, **shape, **beside))
    calls = _calls_in(fields, where) if role is Role.ASSISTANT else []
    thoughts = [Reasoning(take_text(fields, "thinking"))] if isinstance(raw.get("thinking"), str) else []
    thoughts = [thought for thought in thoughts if thought.text]
    return Message(role, (*thoughts, *words, *pictures, *calls), origin=NAME, extra=pack(fields, **shape))


def _has_form(raw: JsonObject, form: str) -> bool:
    return "content" not in raw if form == "absent" else "content" in raw and raw["content"] is None


def _text_in(fields: JsonObject, where: str) -> tuple[Text, ...]:
    content = fields.pop("content", None)
    if content is None:
        return ()
    if not isinstance(content, str):
        raise WireError(f"content must be text, not {shown(content)}", fmt=NAME, where=at(where, "content"))
    return (Text(content),)


def _pictures_in(fields: JsonObject, where: str) -> tuple[Image, ...]:
    """Remove and return the images next to the text. Anything but a non-empty list stays."""
    listed = fields.get("images")
    if not isinstance(listed, list) or not listed:
        return ()
    for index, picture in enumerate(listed):
        if not isinstance(picture, str):
            raise WireError("an image must be base64", fmt=NAME, where=at(where, f"images[{index}]"))
    del fields["images"]
    return tuple(Image(data=data, media_type=_type_of(data)) for data in cast("list[str]", listed))


def _type_of(data: str) -> str:
    return next((kind for beginning, kind in BEGINNINGS.items() if data.startswith(beginning)), "image/png")


def _calls_in(fields: JsonObject, where: str) -> list[Part]:
    listed = fields.get("tool_calls")
    if not isinstance(listed, list) or not listed:
        return []
    del fields["tool_calls"]
    return [_call_in(call, at(where, f"tool_calls[{index}]")) for index, call in enumerate(listed)]


def _call_in(raw: Json, where: str) -> ToolCall:
    fields = dict(raw) if isinstance(raw, dict) else {}
    function = fields.pop("function", None)
    if not isinstance(function, dict):
        raise WireError("a call must have a function", fmt=NAME, where=where)
    inner = dict(function)
    name, arguments = take_text(inner, "name"), inner.get("arguments")
    form = "absent" if arguments is None else None
    if arguments is not None:
        del inner["arguments"]
        form = "text" if isinstance(arguments, str) else None if isinstance(arguments, dict) else "value"
    text = arguments if isinstance(arguments, str) else dump({} if arguments is None else arguments)
    call = CallId(take_text(fields, "id"))
    shape: JsonObject = {"id": None if call else "absent", "arguments": form}
    shape["inner"] = pack(inner, missing=missing(function, "name")) or None
    return ToolCall(call, name, text, pack(fields, **shape))


def _result_in(fields: JsonObject, content: tuple[Text | Image, ...]) -> tuple[ToolResult, JsonObject]:
    """Remove and return the result of a message, with the hint of where it named its tool."""
    key = next((key for key in TOOL_NAMES if isinstance(fields.get(key), str) and fields[key]), "")
    name = take_text(fields, key) if key else ""
    call = CallId(take_text(fields, "tool_call_id"))
    extra = pack({}, id=None if call else "absent")
    return ToolResult(call, content, name, extra=extra), {"named": None if key in ("", TOOL_NAMES[0]) else key}


# --- writing -------------------------------------------------------------------------------------


def _is_said(part: Part) -> bool:
    """Whether a part of another format is written."""
    match part:
        case Text(text):
            return bool(text.strip())
        case Image() | ToolCall() | ToolResult():
            return True
        case Reasoning() | Opaque():
            return False
        case _:
            assert_never(part)


def _content_out(parts: Sequence[Part], shape: JsonObject) -> JsonObject:
    """Write text, images and thinking. An image that the server could not decode becomes a note."""
    words, pictures, thoughts = [], [], []
    for part in parts:
        match part:
            case Text(text):
                words.append(text)
            case Image():
                inline = inline_image(part)
                if inline is not None and inline[0] in IMAGE_TYPES:
                    pictures.append(inline[1])
                else:
                    words.append(image_note(part))
            case Reasoning(text, signature) if text and not signature:
                thoughts.append(text)
            case Reasoning() | Opaque() | ToolCall() | ToolResult():
                pass
            case _:
                assert_never(part)
    out: JsonObject = {"content": "\n".join(words)}
    if not words and "content" in shape:
        out = {} if shape["content"] == "absent" else {"content": None}
    out |= {"thinking": "\n\n".join(thoughts)} if thoughts else {}
    return out | ({"images": [*pictures]} if pictures else {})


def _calls_out(message: Message, *, own: bool) -> JsonObject:
    calls: list[Json] = [_call_out(call, own=own) for call in message.calls]
    return {"tool_calls": calls} if calls else {}


def _call_out(call: ToolCall, *, own: bool) -> JsonObject:
    fields, shape = unpack(call.extra if own else "")
    inner, inner_shape = unpack(cast(str, shape.get("inner", "")))
    function: JsonObject = {"name": call.name}
    match shape.get("arguments"):
        case "absent" if call.arguments == "{}":
            pass
        case "text":
            function["arguments"] = call.arguments
        case "value" if _value(call.arguments) is not None:
            function["arguments"] = _value(call.arguments)
        case _:
            function["arguments"] = arguments_object(call.arguments)
    written = written_id(call) if own else call.id
    return settle(
        {**({"id": written} if written else {}), "function": settle(function, inner, inner_shape)}, fields, {}
    )


def _value(text: str) -> Json:
    try:
        return load(text)
    except (ValueError, RecursionError):  # shortened since it was read
        return None


def _answers_out(message: Message, names: dict[CallId, str]) -> tuple[list[JsonObject], list[JsonObject]]:
    """Write the results, and what the user says next to them as a separate message."""
    own = message.origin == NAME
    fields, shape = unpack(message.extra if own else "")
    answers = []
    for result in message.results:
        out: JsonObject = {"role": shape.get("role", "tool")} | _content_out(result.content, shape)
        name = result.name or ("" if own else names.get(result.call, ""))
        if name:
            out[cast(str, shape.get("named", TOOL_NAMES[0]))] = name
        written = written_id(result) if own else result.call
        answers.append(settle(out | ({"tool_call_id": written} if written else {}), fields, {}))
    beside = [part for part in message.parts if isinstance(part, Text | Image)]
    said = any(_is_said(part) for part in beside)
    return answers, [{"role": "user", **_content_out(beside, {})}] if said else []

"""OpenAI Chat Completions, and the many servers that speak it.

    {"role": "assistant", "content": "…", "tool_calls": [{"id", "type": "function", "function": {…}}]}

It reads what such servers really send: content in every shape, reasoning under four names, the old `function_call`,
custom tools, arguments that are an object. The parts of an assistant message are in the order reasoning, content,
calls. A message of another format is written as far as this one can express it (`openai.adopt`), and not at all if
nothing is left.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, assert_never, cast

from everlong.core import (
    CallId,
    History,
    Image,
    Json,
    JsonObject,
    JsonText,
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
from everlong.errors import WireError
from everlong.wire.document import Document
from everlong.wire.fields import dump, load, opaque, opaque_body, pack, shown, unpack
from everlong.wire.formats.openai import (
    adopt,
    arguments_in,
    arguments_out,
    at,
    body_fields,
    content_in,
    content_out,
    image_from,
    image_url,
    missing,
    settings_of,
    settle,
    take_list,
    take_text,
    take_tools,
    text_in,
    text_out,
)

__all__ = [
    "NAME",
    "ODD_CALL",
    "call_out",
    "calls_in",
    "function_out",
    "is_legacy",
    "legacy_id",
    "read_body",
    "read_message",
    "read_messages",
    "usual_message",
    "write_body",
    "write_history",
    "write_message",
]

ODD_CALL = "message.tool_calls"
CALL_KINDS = {"function": "arguments", "custom": "input"}  # the field with the arguments of each kind


def calls_in(fields: JsonObject) -> list[Part]:
    """Remove and return the calls of a message. Anything but a non-empty list stays."""
    calls: list[Part] = []
    listed = fields.get("tool_calls")
    if isinstance(listed, list) and listed:
        del fields["tool_calls"]
        calls = [_call_in(call) for call in listed]
    old = fields.get("function_call")
    if isinstance(old, dict):
        del fields["function_call"]
        name, arguments, inner = _function_in(old, "function")
        calls.append(ToolCall(legacy_id(name), name, arguments, pack({}, legacy=True, inner=inner)))
    return calls


def _call_in(raw: Json) -> Part:
    fields = dict(raw) if isinstance(raw, dict) else {}
    kind = next((kind for kind in CALL_KINDS if isinstance(fields.get(kind), dict)), None)
    if kind is None:
        return Opaque(ODD_CALL, dump(raw))
    name, arguments, inner = _function_in(cast(JsonObject, fields.pop(kind)), kind)
    absent = missing(fields, "id", "type")
    if fields.get("type") == kind:
        del fields["type"]
    call = CallId(take_text(fields, "id"))
    hint = None if kind == "function" else kind
    return ToolCall(call, name, arguments, pack(fields, kind=hint, inner=inner, missing=absent))


def call_out(call: ToolCall) -> Json:
    """Return the entry of `tool_calls` for a call."""
    fields, shape = unpack(call.extra)
    kind = cast(str, shape.get("kind", "function"))
    return settle({"id": call.id, "type": kind, kind: function_out(call, kind)}, fields, shape)


def _function_in(raw: JsonObject, kind: str) -> tuple[str, JsonText, JsonText | None]:
    """Return the name, the arguments, and what else is needed to write them again."""
    inner = dict(raw)
    name = take_text(inner, "name")
    arguments, form = arguments_in(inner, CALL_KINDS[kind], free=kind == "custom")
    return name, arguments, pack(inner, missing=missing(raw, "name"), arguments=form) or None


def function_out(call: ToolCall, kind: str = "function") -> JsonObject:
    """Return the content of an entry, or of `function_call`."""
    inner, shape = unpack(cast(str, unpack(call.extra)[1].get("inner", "")))
    arguments = arguments_out(CALL_KINDS[kind], call.arguments, shape.get("arguments"), free=kind == "custom")
    return settle({"name": call.name, **arguments}, inner, shape)


def is_legacy(call: ToolCall) -> bool:
    """Whether the call came as `function_call`."""
    return bool(unpack(call.extra)[1].get("legacy"))


def legacy_id(name: str) -> CallId:
    """Return the id for a legacy result, which names its function instead of a call."""
    return CallId(f"function:{name}")


SPOKEN = {"system": Role.SYSTEM, "user": Role.USER, "assistant": Role.ASSISTANT}
WITHOUT_WORDS = pack({}, content="null")


def usual_message(raw: dict[str, Any], origin: str) -> Message | None:
    """Read the usual shapes fast: text, a result, or calls with or without text and reasoning; None for any other."""
    role, content = raw.get("role"), raw.get("content")
    if role.__class__ is not str:
        return None
    if content.__class__ is str:
        if len(raw) == 2 and role in SPOKEN:
            return Message(SPOKEN[role], (Text(content),), origin=origin)
        if role == "tool":
            return _result(raw, content, origin)
    elif content is not None or "content" not in raw:
        return None
    return _assistant(raw, origin) if role == "assistant" else None


def _result(raw: dict[str, Any], content: str, origin: str) -> Message | None:
    call, name = raw.get("tool_call_id"), raw.get("name", "")
    if not call or call.__class__ is not str or name.__class__ is not str or len(raw) != 3 + bool(name):
        return None
    return Message(Role.TOOL, (ToolResult(CallId(call), (Text(content),), name),), origin=origin)


def _assistant(raw: dict[str, Any], origin: str) -> Message | None:
    content, thought, listed = raw["content"], raw.get("reasoning_content"), raw.get("tool_calls")
    known = 2 + ("reasoning_content" in raw) + ("tool_calls" in raw)
    if len(raw) != known or not listed or listed.__class__ is not list:
        return None
    parts: list[Part] = []
    if thought.__class__ is str:
        parts.append(Reasoning(thought))
    elif "reasoning_content" in raw:
        return None
    if content is not None:
        parts.append(Text(content))
    for entry in listed:
        call = _call(entry)
        if call is None:
            return None
        parts.append(call)
    return Message(Role.ASSISTANT, tuple(parts), origin=origin, extra="" if content is not None else WITHOUT_WORDS)


def _call(entry: Any) -> ToolCall | None:
    if entry.__class__ is not dict or len(entry) != 3 or entry.get("type") != "function":
        return None
    call, function = entry.get("id"), entry.get("function")
    if function.__class__ is not dict or len(function) != 2 or not call or call.__class__ is not str:
        return None
    name, arguments = function.get("name"), function.get("arguments")
    if not name or name.__class__ is not str or arguments.__class__ is not str:
        return None
    return ToolCall(CallId(call), name, arguments)


NAME = "openai-chat"

ROLES = {
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "user": Role.USER,
    "assistant": Role.ASSISTANT,
    "tool": Role.TOOL,
    "function": Role.TOOL,
}
REASONING_TEXT = ("reasoning_content", "reasoning")
REASONING_SEALED = ("reasoning_details", "thinking_blocks")  # signed forms of the same reasoning

#: The beginning of kinds of opaque parts that are fields of the message, not in its content.
BESIDE = "message."
AUDIO = "message.audio"

LONGEST_CALL_ID = 40  # characters
PICTURES_FOLLOW = "(see the image below)"
PICTURES = "Image from the tool result:"


# --- bodies and histories ------------------------------------------------------------------------


def read_body(raw: Json) -> Document:
    """Read a request body, or a plain list of messages."""
    fields = body_fields(raw, "messages", NAME)
    listed = take_list(fields, "messages", NAME)
    return Document(
        fmt=NAME,
        messages=tuple(_numbered(message, index) for index, message in enumerate(listed)),
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
    out: list[Json] = []
    waiting: list[JsonObject] = []
    for message in messages:
        if message.role is Role.TOOL:
            answers, beside = _answers_out(message)
            out += answers
            waiting += beside
        else:
            out += [*waiting, *write_message(message)]
            waiting = []
    return {"messages": [*out, *waiting]}


# --- messages ------------------------------------------------------------------------------------


def read_message(raw: Json, where: str = "") -> Message:
    """Read one message of the list."""
    if not isinstance(raw, dict):
        raise WireError(f"a message must be an object, not {type(raw).__name__}", fmt=NAME, where=where)
    return usual_message(raw, NAME) or _any_message(raw, where)


def read_messages(items: Sequence[Json]) -> History:
    """Read the messages in a list."""
    return tuple(read_message(item) for item in items)


def _numbered(raw: Json, index: int) -> Message:
    """`read_message`, but the place is computed only if the shape is unusual."""
    usual = usual_message(raw, NAME) if isinstance(raw, dict) else None
    return usual or read_message(raw, f"messages[{index}]")


def _any_message(raw: JsonObject, where: str) -> Message:
    fields = dict(raw)
    written_role = fields.pop("role", None)
    role = ROLES.get(written_role) if isinstance(written_role, str) else None
    if role is None:
        raise WireError(f"unknown role {shown(written_role)}", fmt=NAME, where=at(where, "role"))
    shape: JsonObject = {"role": None if written_role == role.value else written_role}
    name = take_text(fields, "name")
    content, form = content_in(fields, "content", _block_in)
    if form != "string":
        shape["content"] = form
    parts: list[Part] = [*content]
    if role is Role.ASSISTANT:
        parts = [*_reasoning_in(fields), *content, *_beside_in(fields), *calls_in(fields)]
    elif role is Role.TOOL:
        call = CallId(take_text(fields, "tool_call_id"))
        shape["missing"] = missing(raw, "tool_call_id")
        if not call and written_role == "function":
            call = legacy_id(name)
        parts = [ToolResult(call, tuple(content), name)]
        name = ""
    return Message(role, tuple(parts), name, origin=NAME, extra=pack(fields, **shape))


def write_message(message: Message) -> list[JsonObject]:
    """Write a message: one object, several if it has several results, none if nothing is left."""
    if message.role is Role.TOOL:
        answers, beside = _answers_out(message)
        return answers + beside
    own = message.origin == NAME
    known = message if own else adopt(message, LONGEST_CALL_ID)
    if not own and all(isinstance(part, Reasoning) for part in known.parts):
        return []
    fields, shape = unpack(known.extra)
    out: JsonObject = {"role": shape.get("role", known.role.value)}
    if known.name:
        out["name"] = known.name
    content = _content_of(known)
    form = shape.get("content", "string")
    if not content and known.role is Role.ASSISTANT and form not in ("absent", "empty"):
        form = "null"  # removed text leaves null next to the calls
    out |= content_out("content", content, form, _block_out) | _thinking_out(known) | _beside_out(known)
    return [settle(out, fields, {})]


def _answers_out(message: Message) -> tuple[list[JsonObject], list[JsonObject]]:
    """Write the results, and what the user says next to them as a separate message."""
    own = message.origin == NAME
    known = message if own else adopt(message, LONGEST_CALL_ID)
    fields, shape = unpack(known.extra)
    answers, pictures = [], []
    for result in known.results:
        if not own:
            result, shown = _without_pictures(result)
            pictures += shown
        role = shape.get("role", "tool")
        unnamed = (shape.get("missing") or "tool_call_id" in fields) and result.call == legacy_id(result.name)
        out: JsonObject = {"role": role, "tool_call_id": "" if unnamed else result.call}
        if result.name:
            out["name"] = result.name
        content = content_out("content", result.content, shape.get("content"), _block_out)
        answers.append(settle(out | content, fields, shape))
    beside = _content_of(known)
    if pictures:
        beside = [Text(PICTURES), *pictures, *beside]
    return answers, [{"role": "user", **content_out("content", beside, None, _block_out)}] if beside else []


def _without_pictures(result: ToolResult) -> tuple[ToolResult, list[Image]]:
    """Remove images from a result of another format: chat accepts only text there, so images follow after it."""
    shown = [part for part in result.content if isinstance(part, Image)]
    words = tuple(part for part in result.content if not isinstance(part, Image))
    return replace(result, content=words or ((Text(PICTURES_FOLLOW),) if shown else ())), shown


# --- content -------------------------------------------------------------------------------------


def _block_in(block: JsonObject) -> ResultPart:
    if block.get("type") == "image_url":
        return _image_in(block) or opaque(block)
    words = text_in(block, "text")
    if words is not None:
        return words
    part = opaque(block)
    return Opaque("block", part.body) if part.kind.startswith(BESIDE) else part


def _block_out(part: ResultPart) -> Json:
    match part:
        case Text():
            return text_out(part, "text")
        case Image(detail=detail, extra=extra):
            fields, shape = unpack(extra)
            if shape.get("image") == "string":
                return {"type": "image_url", "image_url": image_url(part), **fields}
            inner = settle({"url": image_url(part)}, cast(JsonObject, shape.get("image", {})), {})
            if detail:
                inner["detail"] = detail
            return {"type": "image_url", "image_url": inner, **fields}
        case Opaque():
            return opaque_body(part)
        case _:
            assert_never(part)


def _image_in(block: JsonObject) -> Image | None:
    fields = {key: value for key, value in block.items() if key not in ("type", "image_url")}
    image = block.get("image_url")
    if isinstance(image, str) and image:
        return image_from(image, "", pack(fields, image="string"))
    inner = dict(image) if isinstance(image, dict) else {}
    url, detail = take_text(inner, "url"), take_text(inner, "detail")
    return image_from(url, detail, pack(fields, image=inner or None)) if url else None


def _content_of(message: Message) -> list[ResultPart]:
    return [part for part in message.parts if isinstance(part, Text | Image | Opaque) and not _stands_beside(part)]


def _stands_beside(part: ResultPart) -> bool:
    match part:
        case Text(extra=extra):
            return "field" in unpack(extra)[1]
        case Opaque(kind):
            return kind.startswith(BESIDE)
        case Image():
            return False
        case _:
            assert_never(part)


# --- what is next to the content of an assistant's message ----------------------------------------


def _beside_in(fields: JsonObject) -> list[Part]:
    """Read a refusal, and an answer as audio."""
    found: list[Part] = []
    if isinstance(fields.get("refusal"), str):
        found.append(Text(cast(str, fields.pop("refusal")), pack({}, field="refusal")))
    if isinstance(fields.get("audio"), dict):
        found.append(Opaque(AUDIO, dump(fields.pop("audio"))))
    return found


def _beside_out(message: Message) -> JsonObject:
    out: JsonObject = {}
    calls: list[Json] = []
    for part in message.parts:
        match part:
            case Text(text) if _stands_beside(part):
                out["refusal"] = text
            case Opaque(kind) if kind == AUDIO:
                out["audio"] = opaque_body(part)
            case Opaque(kind) if kind == ODD_CALL:
                calls.append(opaque_body(part))
            case ToolCall() if is_legacy(part):
                out["function_call"] = function_out(part)
            case ToolCall():
                calls.append(call_out(part))
            case _:
                pass
    return out | ({"tool_calls": calls} if calls else {})


def _reasoning_in(fields: JsonObject) -> list[Part]:
    found: list[Part] = []
    for field in REASONING_TEXT:
        if isinstance(fields.get(field), str):
            hint = None if field == REASONING_TEXT[0] else field
            found.append(Reasoning(cast(str, fields.pop(field)), extra=pack({}, field=hint)))
    sealed = [field for field in REASONING_SEALED if fields.get(field)]
    return found + [Reasoning("", dump(fields.pop(field)), pack({}, field=field)) for field in sealed]


def _thinking_out(message: Message) -> JsonObject:
    out: JsonObject = {}
    for part in message.parts:
        if isinstance(part, Reasoning):
            field = cast(str, unpack(part.extra)[1].get("field", REASONING_TEXT[0]))
            before = out.get(field)
            if part.signature:
                out[field] = load(part.signature)
            else:
                out[field] = f"{before}\n\n{part.text}" if before else part.text
    return out

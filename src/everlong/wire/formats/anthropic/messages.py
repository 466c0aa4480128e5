"""Anthropic Messages: the body of a request, and its messages.

    {"system": "…", "messages": [{"role": "assistant", "content": [{"type": "tool_use", …}]}], "tools": […]}

System text has its own field; here it is the leading system message. A later system message is sent at its place as
user text, because not every model accepts the role `system` there; one that came with that role keeps it. The results
of parallel calls, if they are separate messages, are joined into one, before any other text, as the provider requires.
Ids must be unique in a request and use few characters, so foreign ids may be rewritten.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import accumulate
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
    ResultPart,
    Role,
    Text,
    ToolCall,
    ToolResult,
    ref_of,
)
from everlong.errors import WireError
from everlong.wire.document import Document
from everlong.wire.fields import dump, load, opaque, opaque_body, pack, shown, unpack
from everlong.wire.formats.anthropic.marks import keep_allowed
from everlong.wire.formats.anthropic.rules import REPLY_ONLY
from everlong.wire.formats.translation import (
    arguments_object,
    image_note,
    inline_image,
    is_web_url,
    marked_system,
    runs_of,
)

__all__ = [
    "NAME",
    "block_in",
    "blocks_out",
    "read_body",
    "read_message",
    "read_messages",
    "sent_body",
    "valid_id",
    "write_body",
    "write_history",
    "write_message",
    "write_placed",
]

NAME = "anthropic"

IMAGE_TYPES = frozenset({"image/gif", "image/jpeg", "image/png", "image/webp"})
#: The field that identifies the image in each kind of source.
IMAGE_SOURCES = {"url": "url", "file": "file_id"}
ACCEPTED_ID = re.compile(r"[a-zA-Z0-9_-]+")
NOT_IN_A_NAME = re.compile(r"[^a-zA-Z0-9_-]")
LONGEST_NAME = 128


def block_in(raw: Json, where: str) -> Part:
    """Read one block of a message's content."""
    kind = raw.get("type") if isinstance(raw, dict) else None
    if not isinstance(raw, dict) or not isinstance(kind, str):
        raise WireError("a content block must be an object with a type", fmt=NAME, where=where)
    reader = READERS.get(kind)
    return opaque(raw) if reader is None else reader(raw, where)


def blocks_out(parts: Sequence[Part], *, own: bool, pictures: bool = True) -> list[Json]:
    """Return the blocks to send, without parts that cannot be sent; images only if `pictures` allows them."""
    rendered = (_block_out(part, own=own, pictures=pictures) for part in parts)
    return [block for block in rendered if block is not None]


def _block_out(part: Part, *, own: bool, pictures: bool) -> Json:
    match part:
        case Text(text, extra):
            return {"type": "text", "text": text, **_carried(extra, own=own)} if own or text.strip() else None
        case Image():
            shown = own or pictures
            return _image_out(part, own=own) if shown else {"type": "text", "text": image_note(part)}
        case ToolCall():
            return _call_out(part, own=own)
        case ToolResult():
            return _result_out(part, own=own)
        case Reasoning():
            return _reasoning_out(part) if own else None
        case Opaque():
            return opaque_body(part) if own else None
        case _:
            assert_never(part)


def valid_id(call: CallId) -> CallId:
    """Return an id that the provider accepts, if possible the same one."""
    return call if ACCEPTED_ID.fullmatch(call) else CallId(f"toolu_{ref_of(call)}")


def _valid_name(name: str) -> str:
    return NOT_IN_A_NAME.sub("_", name)[:LONGEST_NAME] or "tool"


def _carried(extra: str, *, own: bool) -> JsonObject:
    return unpack(extra if own else "")[0]


def _taken(fields: JsonObject, key: str, where: str) -> str:
    value = fields.pop(key, None)
    if not isinstance(value, str):
        raise WireError(f"{key} must be a string, not {type(value).__name__}", fmt=NAME, where=where)
    return value


def _without_type(raw: JsonObject) -> JsonObject:
    return {key: value for key, value in raw.items() if key != "type"}


# --- text and images ---------------------------------------------------------------------------


def _text_in(raw: JsonObject, where: str) -> Text:
    fields = _without_type(raw)
    text = _taken(fields, "text", where)
    return Text(text, pack(fields))


def _image_in(raw: JsonObject, where: str) -> ResultPart:
    fields = _without_type(raw)
    source = fields.pop("source", None)
    if not isinstance(source, dict):
        raise WireError("the source of an image must be an object", fmt=NAME, where=where)
    inner = _without_type(source)
    kind = source.get("type")
    if kind == "base64":
        data, media_type = _taken(inner, "data", where), _taken(inner, "media_type", where)
        return Image(data=data, media_type=media_type, extra=pack(fields, source=cast(Json, inner or None)))
    if isinstance(kind, str) and kind in IMAGE_SOURCES:
        name = _taken(inner, IMAGE_SOURCES[kind], where)
        return Image(url=name, extra=pack(fields, kind=kind, source=cast(Json, inner or None)))
    return opaque(raw)


def _image_out(image: Image, *, own: bool) -> JsonObject:
    fields, shape = unpack(image.extra if own else "")
    inline = inline_image(image)
    source: JsonObject
    if "kind" in shape:
        kind = cast(str, shape["kind"])
        source = {"type": kind, IMAGE_SOURCES[kind]: image.url}
    elif inline is not None and (own or inline[0] in IMAGE_TYPES):
        source = {"type": "base64", "media_type": inline[0], "data": inline[1]}
    elif is_web_url(image.url):
        source = {"type": "url", "url": image.url}
    else:
        return {"type": "text", "text": image_note(image)}
    return {"type": "image", "source": source | cast(JsonObject, shape.get("source", {})), **fields}


# --- calls and results -------------------------------------------------------------------------


def _call_in(raw: JsonObject, where: str) -> ToolCall:
    fields = _without_type(raw)
    call, name = _taken(fields, "id", where), _taken(fields, "name", where)
    arguments = fields.pop("input", {})
    odd: Json = [] if "input" not in raw else None if isinstance(arguments, dict) else [arguments]
    return ToolCall(CallId(call), name, dump(arguments), pack(fields, input=odd))


def _call_out(call: ToolCall, *, own: bool) -> JsonObject:
    fields, shape = unpack(call.extra if own else "")
    out: JsonObject = {"type": "tool_use", "id": call.id, "name": call.name}
    if not own:
        out |= {"id": valid_id(call.id), "name": _valid_name(call.name)}
    match shape.get("input"):
        case [] if call.arguments == "{}":
            return out | fields
        case [odd] if call.arguments == dump(odd):
            return out | {"input": odd} | fields
        case _:
            return out | {"input": arguments_object(call.arguments)} | fields


def _result_in(raw: JsonObject, where: str) -> ToolResult:
    fields = _without_type(raw)
    call = _taken(fields, "tool_use_id", where)
    flag = fields.pop("is_error", None)
    if flag is not None and not isinstance(flag, bool):
        raise WireError(f"is_error must be true or false, not {shown(flag)}", fmt=NAME, where=where)
    written_flag = None if flag or "is_error" not in raw else "null" if flag is None else "false"
    content, form = _result_content_in(fields.pop("content", None), where)
    if content == () and "content" in raw:
        form = "null" if raw["content"] is None else "empty"
    return ToolResult(CallId(call), content, failed=bool(flag), extra=pack(fields, content=form, is_error=written_flag))


def _result_content_in(content: Json, where: str) -> tuple[tuple[ResultPart, ...], str | None]:
    match content:
        case None:
            return (), None
        case str():
            return (Text(content),), "string"
        case list():
            return tuple(_result_block_in(block, f"{where}.content[{at}]") for at, block in enumerate(content)), None
        case _:
            problem = f"the content of a result must be text or blocks, not {type(content).__name__}"
            raise WireError(problem, fmt=NAME, where=where)


def _result_block_in(raw: Json, where: str) -> ResultPart:
    if not isinstance(raw, dict) or not isinstance(raw.get("type"), str):
        raise WireError("a content block must be an object with a type", fmt=NAME, where=where)
    match raw["type"]:
        case "text":
            return _text_in(raw, where)
        case "image":
            return _image_in(raw, where)
        case _:
            return opaque(raw)


def _result_out(result: ToolResult, *, own: bool) -> JsonObject:
    fields, shape = unpack(result.extra if own else "")
    out: JsonObject = {"type": "tool_result", "tool_use_id": result.call if own else valid_id(result.call)}
    blank: dict[Json, Json] = {"null": None, "empty": []}
    form = shape.get("content")
    blocks = blocks_out(result.content, own=own)
    match result.content:
        case (Text(text, ""),) if form == "string":
            out["content"] = text
        case _ if blocks:
            out["content"] = blocks
        case _ if form in blank:
            out["content"] = blank[form]
    if result.failed:
        out["is_error"] = True
    elif "is_error" in shape:
        out["is_error"] = None if shape["is_error"] == "null" else False
    return out | fields


# --- thinking ----------------------------------------------------------------------------------


def _thinking_in(raw: JsonObject, where: str) -> Reasoning:
    fields = _without_type(raw)
    text = _taken(fields, "thinking", where)
    if "signature" not in fields:
        return Reasoning(text, extra=pack(fields, signature="absent"))
    return Reasoning(text, _taken(fields, "signature", where), pack(fields))


def _redacted_in(raw: JsonObject, where: str) -> Reasoning:
    fields = _without_type(raw)
    data = _taken(fields, "data", where)
    return Reasoning("", data, pack(fields, redacted=True))


def _reasoning_out(part: Reasoning) -> JsonObject:
    fields, shape = unpack(part.extra)
    if shape.get("redacted"):
        return {"type": "redacted_thinking", "data": part.signature, **fields}
    signature: JsonObject = {} if shape.get("signature") == "absent" else {"signature": part.signature}
    return {"type": "thinking", "thinking": part.text, **signature, **fields}


READERS: dict[str, Callable[[JsonObject, str], Part]] = {
    "text": _text_in,
    "image": _image_in,
    "tool_use": _call_in,
    "tool_result": _result_in,
    "thinking": _thinking_in,
    "redacted_thinking": _redacted_in,
}


ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT, "system": Role.SYSTEM}
#: The roles whose neighbouring messages are joined. Not users: the provider joins those itself, and separate messages
#: keep the bytes of earlier ones unchanged when another one follows.
VOICES = {Role.ASSISTANT: "assistant", Role.TOOL: "results"}


def read_message(raw: Json, where: str = "") -> Message:
    """Read one message of the list, or a reply of the provider."""
    if not isinstance(raw, dict):
        raise WireError(f"a message must be an object, not {type(raw).__name__}", fmt=NAME, where=where)
    fields = dict(raw)
    written_role = fields.pop("role", None)
    role = ROLES.get(written_role) if isinstance(written_role, str) else None
    if role is None:
        raise WireError(f"unknown role {shown(written_role)}", fmt=NAME, where=where)
    at = f"{where}.content" if where else "content"
    parts, form = _content_in(fields.pop("content", None), at)
    if role is Role.USER and any(isinstance(part, ToolResult) for part in parts):
        role = Role.TOOL
    return Message(role, parts, origin=NAME, extra=pack(fields, content=form))


def read_messages(items: Sequence[Json]) -> History:
    """Read the messages in a list."""
    return tuple(read_message(item) for item in items)


def write_message(message: Message) -> list[JsonObject]:
    """Write a message; nothing if all of it belongs to another provider."""
    own, in_place = message.origin == NAME, _in_place(message)
    fields, _ = unpack(message.extra if own else "")
    content = _content_out(message if in_place else marked_system(message))
    if content is None:
        return []
    role = "assistant" if message.role is Role.ASSISTANT else "system" if in_place else "user"
    return [{"role": role, "content": content, **fields}]


def read_body(raw: Json) -> Document:
    """Read the body of a request."""
    if not isinstance(raw, dict):
        raise WireError(f"a request must be an object, not {type(raw).__name__}", fmt=NAME)
    fields = dict(raw)
    messages = fields.pop("messages", None)
    if not isinstance(messages, list):
        raise WireError("messages must be a list", fmt=NAME, where="messages")
    tools = fields.get("tools") or []
    if not isinstance(tools, list):
        raise WireError("tools must be a list", fmt=NAME, where="tools")
    system = _system_in(fields.get("system"))
    model = fields.get("model")
    for field, taken in (("system", system), ("tools", tools), ("model", isinstance(model, str) and model)):
        if taken:
            del fields[field]
    return Document(
        fmt=NAME,
        messages=(*system, *(read_message(message, f"messages[{at}]") for at, message in enumerate(messages))),
        tools=tuple(dump(tool) for tool in tools),
        model=model if isinstance(model, str) else "",
        extra=pack(fields),
    )


def write_body(document: Document) -> JsonObject:
    """Write the body of a request; for a document of another format, only its messages."""
    if document.fmt != NAME:
        return write_history(document.messages)
    fields, _ = unpack(document.extra)
    body: JsonObject = {"model": document.model} if document.model else {}
    body |= fields | _conversation(document.messages, apart=NAME)[0]
    if document.tools:
        body["tools"] = [load(tool) for tool in document.tools]
    return body


def sent_body(document: Document) -> JsonObject:
    """Write the body with neighbouring messages joined, without marks and fields that the provider refuses."""
    fields, _ = unpack(document.extra)
    body: JsonObject = {"model": document.model} if document.model else {}
    if document.tools:
        fields["tools"] = [load(tool) for tool in document.tools]
    return keep_allowed(body | fields | _asked(document.messages)[0])


def write_history(messages: Sequence[Message]) -> JsonObject:
    """Write a history from any provider."""
    return write_placed(messages)[0]


def write_placed(messages: Sequence[Message]) -> tuple[JsonObject, list[int]]:
    """Write a history, and return for each sent message how many messages of the history end with it.

    Example: system, user, call, call, result, user -> user, assistant, results, user and [2, 4, 5, 6]
    """
    body, ends = _asked(messages)
    return keep_allowed(body), ends


def _asked(messages: Sequence[Message]) -> tuple[JsonObject, list[int]]:
    """Write the conversation without fields that only replies may have."""
    body, ends = _conversation(messages, apart="")
    sent = cast("list[JsonObject]", body["messages"])
    asked = [{key: value for key, value in message.items() if key not in REPLY_ONLY} for message in sent]
    return body | {"messages": cast(Json, asked)}, ends


# --- content -----------------------------------------------------------------------------------


def _content_in(content: Json, where: str) -> tuple[tuple[Part, ...], str | None]:
    match content:
        case str():
            return (Text(content),), "string"
        case []:
            return (), "empty"
        case list():
            return tuple(block_in(block, f"{where}[{at}]") for at, block in enumerate(content)), None
        case _:
            raise WireError(f"content must be text or blocks, not {type(content).__name__}", fmt=NAME, where=where)


def _content_out(message: Message) -> Json:
    """Return a string or blocks; None if nothing is left."""
    own = message.origin == NAME
    form = unpack(message.extra if own else "")[1].get("content")
    match message.parts:
        case (Text(text, ""),) if form == "string":
            return text
        case () if form == "empty":
            return []
    blocks = blocks_out(message.parts, own=own, pictures=message.role in (Role.USER, Role.TOOL))
    return (blocks if own else _results_first(blocks)) or None


def _results_first(blocks: list[Json]) -> list[Json]:
    return sorted(blocks, key=lambda block: not (isinstance(block, dict) and block.get("type") == "tool_result"))


# --- system text -------------------------------------------------------------------------------


def _system_in(system: Json) -> tuple[Message, ...]:
    if not system:
        return ()
    if not isinstance(system, str | list):
        raise WireError(f"system must be text or blocks, not {type(system).__name__}", fmt=NAME, where="system")
    parts, form = _content_in(system, "system")
    return (Message(Role.SYSTEM, parts, origin=NAME, extra=pack({}, content=form, field="system")),)


def _in_place(message: Message) -> bool:
    """Whether the message came with the role `system` in the list of messages."""
    own = message.role is Role.SYSTEM and message.origin == NAME
    return own and "field" not in unpack(message.extra)[1]


def _system_out(front: Sequence[Message]) -> JsonObject:
    contents = [content for content in map(_content_out, front) if content is not None]
    if not contents:
        return {}
    return {"system": contents[0] if len(contents) == 1 else [block for item in contents for block in _blocks_of(item)]}


# --- the whole conversation --------------------------------------------------------------------


def _conversation(messages: Sequence[Message], *, apart: str) -> tuple[JsonObject, list[int]]:
    head = 0
    while head < len(messages) and messages[head].role is Role.SYSTEM and not _in_place(messages[head]):
        head += 1
    rendered, counts = [], []
    for count, message in enumerate(_with_valid_ids(messages[head:]), head + 1):
        for out in write_message(message):
            rendered.append((message, out))
            counts.append(count)
    runs = runs_of(rendered, VOICES, apart=apart)
    ends = [counts[until - 1] for until in accumulate(map(len, runs))]
    return {**_system_out(messages[:head]), "messages": cast(Json, [_joined(run) for run in runs])}, ends


def _joined(run: Sequence[tuple[Message, JsonObject]]) -> JsonObject:
    first, out = run[0]
    if len(run) == 1:
        return out
    blocks = [block for _, message in run for block in _blocks_of(message["content"])]
    fields: JsonObject = {}
    for _, message in run:
        fields = message | fields
    return fields | {"content": _results_first(blocks) if first.role is Role.TOOL else blocks}


def _blocks_of(content: Json) -> list[Json]:
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": content}] if content else []


def _with_valid_ids(messages: Sequence[Message]) -> list[Message]:
    """Return the messages with ids that the provider accepts for foreign calls and their results.

    A result belongs to the nearest call before it with its id, so a repeated id is a new call.
    Example: call "0", result "0", call "0", result "0" -> "0", "0", "0_2", "0_2"
    """
    newest: dict[CallId, CallId] = {}
    used: set[CallId] = set()
    numbers: dict[CallId, int] = {}
    out = []
    for message in messages:
        if message.origin == NAME:
            newest |= {call.id: call.id for call in message.calls}
            used.update(call.id for call in message.calls)
            out.append(message)
            continue
        parts: list[Part] = []
        for part in message.parts:
            if isinstance(part, ToolCall):
                newest[part.id] = _unused(valid_id(part.id), used, numbers)
                used.add(newest[part.id])
                parts.append(replace(part, id=newest[part.id]))
            elif isinstance(part, ToolResult):
                parts.append(replace(part, call=newest.get(part.call, part.call)))
            else:
                parts.append(part)
        out.append(message.with_parts(tuple(parts)))
    return out


def _unused(call: CallId, used: set[CallId], numbers: dict[CallId, int]) -> CallId:
    candidate = call
    while candidate in used:
        numbers[call] = numbers.get(call, 1) + 1
        candidate = CallId(f"{call}_{numbers[call]}")
    return candidate

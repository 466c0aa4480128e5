"""Gemini generateContent: the body of a request, and its contents.

    {"systemInstruction": {…}, "contents": [{"role": "model", "parts": [{"functionCall": {…}}]}], "tools": […]}

System text has its own field; here it is the leading system message, and a later one is sent at its place as user text.
Calls often have no id: `pairs` gives them ids of ours, which are never sent. The provider wants all results of parallel
calls in one content, right after the calls and in their order, and turns that alternate. So neighbours of one side are
joined, results first, unless both came in this format.
"""

from collections.abc import Iterator, Mapping, Sequence
from sys import maxsize
from typing import TypeAlias, cast

from everlong.core import (
    CallId,
    History,
    Json,
    JsonObject,
    Message,
    Part,
    Role,
    Text,
    ToolResult,
    head_length,
)
from everlong.errors import WireError
from everlong.wire.document import Document
from everlong.wire.fields import dump, load, pack, shown, unpack
from everlong.wire.formats.gemini.parts import NAME, Callee, callee_of, part_in, part_out, result_out
from everlong.wire.formats.gemini.rules import RULES
from everlong.wire.formats.pairs import paired
from everlong.wire.formats.translation import marked_system, runs_of

__all__ = [
    "NAME",
    "UNSIGNED_CALL",
    "read_body",
    "read_message",
    "read_messages",
    "sent_body",
    "write_body",
    "write_history",
    "write_message",
]


ROLES = {"user": Role.USER, "model": Role.ASSISTANT, "function": Role.TOOL}
#: The roles by side: neighbours of one side are joined, because turns must alternate.
VOICES = RULES.voices
SYSTEM = ("systemInstruction", "system_instruction")

#: What Gemini 3 accepts instead of a signature on a call by another model.
UNSIGNED_CALL = "skip_thought_signature_validator"

#: A rank and a part to send: results in the order of their calls, then the rest.
Ranked: TypeAlias = tuple[int, JsonObject]
NO_CALL, NO_RESULT = maxsize - 1, maxsize


def read_message(raw: Json, where: str = "") -> Message:
    """Read one content. Calls and results without an id are numbered within it."""
    return paired((_content_in(raw, where),))[0]


def read_messages(items: Sequence[Json]) -> History:
    """Read the contents in a list. Calls and results without an id are paired by name and order."""
    return paired(_content_in(item, "") for item in items)


def write_message(message: Message) -> list[JsonObject]:
    """Write a message; nothing if all of it belongs to another provider."""
    return _contents((message,), apart="", unsigned_call="")


def read_body(raw: Json) -> Document:
    """Read the body of a request. Calls and results without an id are paired by name and order."""
    if not isinstance(raw, dict):
        raise WireError(f"a request must be an object, not {type(raw).__name__}", fmt=NAME)
    fields = dict(raw)
    contents = fields.pop("contents", None)
    if not isinstance(contents, list | dict):
        raise WireError("contents must be a list", fmt=NAME, where="contents")
    tools = fields.get("tools") or []
    if not isinstance(tools, list | dict):
        raise WireError("tools must be a list", fmt=NAME, where="tools")
    if tools:
        del fields["tools"]
    system = _system_in(fields)
    items = contents if isinstance(contents, list) else [contents]
    model = fields.get("model")
    if model and isinstance(model, str):
        del fields["model"]
    return Document(
        fmt=NAME,
        messages=(*system, *paired(_content_in(item, f"contents[{at}]") for at, item in enumerate(items))),
        tools=tuple(dump(tool) for tool in (tools if isinstance(tools, list) else [tools])),
        model=model if isinstance(model, str) else "",
        extra=pack(
            fields,
            contents="bare" if isinstance(contents, dict) else None,
            tools="bare" if tools and isinstance(tools, dict) else None,
        ),
    )


def write_body(document: Document) -> JsonObject:
    """Write the body of a request; for a document of another format, only its messages."""
    if document.fmt != NAME:
        return write_history(document.messages)
    fields, shape = unpack(document.extra)
    body: JsonObject = {"model": document.model} if document.model else {}
    body |= fields | _conversation(document.messages, apart=NAME, unsigned_call="")
    if document.tools:
        body["tools"] = [load(tool) for tool in document.tools]
    for key in ("contents", "tools"):
        items = body.get(key)
        if shape.get(key) == "bare" and isinstance(items, list) and len(items) == 1:
            body[key] = items[0]
    return body


def sent_body(document: Document) -> JsonObject:
    """Write the body with neighbours of one side joined."""
    fields, _ = unpack(document.extra)
    body: JsonObject = {"model": document.model} if document.model else {}
    body |= fields | write_history(document.messages)
    if document.tools:
        body["tools"] = [load(tool) for tool in document.tools]
    return body


def write_history(messages: Sequence[Message], *, unsigned_call: str = "") -> JsonObject:
    """Write a history from any provider.

    Gemini 3 refuses calls without a signature in the current turn. If another model made them,
    `unsigned_call=UNSIGNED_CALL` marks them as documented; older models need nothing.
    """
    return _conversation(messages, apart="", unsigned_call=unsigned_call)


# --- reading -----------------------------------------------------------------------------------


def _content_in(raw: Json, where: str) -> Message:
    if not isinstance(raw, dict):
        raise WireError(f"a content must be an object, not {type(raw).__name__}", fmt=NAME, where=where)
    fields = dict(raw)
    written_role = fields.get("role")
    if written_role is None:  # the role is optional for a single question
        written_role = ""
    elif not isinstance(written_role, str) or written_role not in ROLES:
        raise WireError(f"unknown role {shown(written_role)}", fmt=NAME, where=where)
    else:
        del fields["role"]
    role = ROLES.get(written_role, Role.USER)
    parts, form = _parts_in(fields, where)
    if role is Role.USER and any(isinstance(part, ToolResult) for part in parts):
        role = Role.TOOL
    usual = written_role == VOICES[role]
    return Message(role, parts, origin=NAME, extra=pack(fields, role=None if usual else written_role, parts=form))


def _parts_in(fields: JsonObject, where: str) -> tuple[tuple[Part, ...], str | None]:
    """Remove the parts from a content, and return them with their form if that is unusual."""
    at = f"{where}.parts" if where else "parts"
    match fields.get("parts"):
        case None:
            return (), "absent"
        case dict() as only:
            del fields["parts"]
            return (part_in(only, at),), "bare"
        case list() as items:
            del fields["parts"]
            parts = tuple(part_in(item, f"{at}[{index}]") for index, item in enumerate(items))
            return parts, None if items else "empty"
        case other:
            raise WireError(f"parts must be a list, not {type(other).__name__}", fmt=NAME, where=at)


def _system_in(fields: JsonObject) -> tuple[Message, ...]:
    """Remove and return the system text of a body; an empty one stays."""
    for key in SYSTEM:
        value = fields.get(key)
        if value is None or value == "":
            continue
        if not isinstance(value, str | dict):
            raise WireError(f"{key} must be a content, not {type(value).__name__}", fmt=NAME, where=key)
        inner = dict(value) if isinstance(value, dict) else {}
        parts, form = ((Text(value),), "string") if isinstance(value, str) else _parts_in(inner, key)
        if parts:
            del fields[key]
            return (Message(Role.SYSTEM, parts, origin=NAME, extra=pack(inner, parts=form, field=key)),)
    return ()


# --- writing -----------------------------------------------------------------------------------


def _conversation(messages: Sequence[Message], *, apart: str, unsigned_call: str) -> JsonObject:
    head = head_length(messages)
    contents = _contents(messages[head:], apart=apart, unsigned_call=unsigned_call)
    return {**_system_out(messages[:head]), "contents": cast(Json, contents)}


def _system_out(front: Sequence[Message]) -> JsonObject:
    parts = [part for message in front for _, part in _ranked(message, {})]
    if not parts:
        return {}
    fields, shape = _carried(front[0])
    key = cast(str, shape.get("field", SYSTEM[0]))
    if shape.get("parts") == "string" and len(parts) == 1 and set(parts[0]) == {"text"}:
        return {key: parts[0]["text"]}
    return {key: {**fields, **_parts_out(parts, shape)}}


def _contents(messages: Sequence[Message], *, apart: str, unsigned_call: str) -> list[JsonObject]:
    rendered = list(_rendered(messages, unsigned_call))
    return [_content_out(run) for run in runs_of(rendered, VOICES, apart=apart)]


def _rendered(messages: Sequence[Message], unsigned_call: str) -> Iterator[tuple[Message, list[Ranked]]]:
    """Yield each message that is sent, with its parts. Results get the name and id of the calls before them."""
    calls: dict[CallId, Callee] = {}
    rank = 0
    for message in messages:
        own = message.origin == NAME
        ranked = _ranked(marked_system(message), calls)
        if message.calls and not own and unsigned_call:
            _mark_unsigned(ranked, unsigned_call)
        for call in message.calls:
            calls[call.id] = callee_of(call, rank, own=own)
            rank += 1
        if ranked or _carried(message)[1].get("parts") in ("absent", "empty"):
            yield message, ranked


def _ranked(message: Message, calls: Mapping[CallId, Callee]) -> list[Ranked]:
    own = message.origin == NAME
    ranked: list[Ranked] = []
    for part in message.parts:
        if isinstance(part, ToolResult):
            callee = calls.get(part.call)
            response, *pictures = result_out(part, callee, own=own)
            ranked.append((callee.rank if callee else NO_CALL, response))
            ranked += [(NO_RESULT, picture) for picture in pictures]
        else:
            out = part_out(part, own=own)
            ranked += [] if out is None else [(NO_RESULT, out)]
    return ranked


def _mark_unsigned(ranked: list[Ranked], unsigned_call: str) -> None:
    """Mark the first call of a step, whose signature also covers parallel calls."""
    first = next(part for _, part in ranked if "functionCall" in part)
    first["thoughtSignature"] = unsigned_call


def _content_out(run: Sequence[tuple[Message, list[Ranked]]]) -> JsonObject:
    first = run[0][0]
    ranked = [item for _, parts in run for item in parts]
    if len(run) > 1 or first.origin != NAME:
        ranked.sort(key=lambda item: item[0])
    fields: JsonObject = {}
    for message, _ in run:
        fields = _carried(message)[0] | fields
    shape = _carried(first)[1]
    role = cast(str, shape.get("role", VOICES[first.role]))
    return {**({"role": role} if role else {}), **_parts_out([part for _, part in ranked], shape), **fields}


def _parts_out(parts: list[JsonObject], shape: JsonObject) -> JsonObject:
    form = shape.get("parts")
    if form == "absent" and not parts:
        return {}
    return {"parts": parts[0] if form == "bare" and len(parts) == 1 else cast(Json, parts)}


def _carried(message: Message) -> tuple[JsonObject, JsonObject]:
    return unpack(message.extra if message.origin == NAME else "")

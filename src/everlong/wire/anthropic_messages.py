"""Anthropic Messages: the body of a request, and its messages.

    {"system": "…", "messages": [{"role": "assistant", "content": [{"type": "tool_use", …}]}], "tools": […]}

System text stands in a field of its own; it is the leading system message here. A system message
that stands later is sent in its place as text of the user, because not every model takes the role
`system` there; one that came with that role in the list goes out with it. The results of parallel
calls that came as messages of their own are put into one, before any other text: the provider wants
them there. Its ids must be unique in a request and of few letters, so foreign ids may be rewritten.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import cast

from everlong.core import CallId, Json, JsonObject, Message, Part, Role, Text, ToolCall, ToolResult
from everlong.errors import WireError
from everlong.wire.anthropic_blocks import FORMAT, block_in, blocks_out, valid_id
from everlong.wire.anthropic_marks import keep_allowed
from everlong.wire.document import Document
from everlong.wire.fields import dump, load, pack, unpack
from everlong.wire.translation import runs_of

__all__ = ["FORMAT", "parse", "parse_body", "render", "render_body", "render_history", "render_placed"]

ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT, "system": Role.SYSTEM}
#: Who is joined with a neighbour. The provider joins user messages itself; left single, what was sent
#: before stays as it was when another one follows.
VOICES = {Role.ASSISTANT: "assistant", Role.TOOL: "results"}
#: Fields of a reply that the provider refuses in a request.
REPLY_ONLY = frozenset(
    {"container", "context_management", "id", "model", "stop_details", "stop_reason", "stop_sequence", "type", "usage"}
)


def parse(raw: Json, where: str = "") -> Message:
    """One message of the list; a reply of the provider is one too."""
    if not isinstance(raw, dict):
        raise WireError(f"a message is an object, not {type(raw).__name__}", fmt=FORMAT, where=where)
    fields = dict(raw)
    written_role = fields.pop("role", None)
    role = ROLES.get(written_role) if isinstance(written_role, str) else None
    if role is None:
        raise WireError(f"unknown role {written_role!r}", fmt=FORMAT, where=where)
    at = f"{where}.content" if where else "content"
    parts, form = _content_in(fields.pop("content", None), at)
    if role is Role.USER and any(isinstance(part, ToolResult) for part in parts):
        role = Role.TOOL
    return Message(role, parts, origin=FORMAT, extra=pack(fields, content=form))


def render(message: Message) -> list[JsonObject]:
    """The message as it is sent; nothing, where all of it belongs to another provider."""
    own = message.origin == FORMAT
    fields, _ = unpack(message.extra if own else "")
    content = _content_out(message)
    if content is None:
        return []
    role = "assistant" if message.role is Role.ASSISTANT else "system" if _in_place(message) else "user"
    return [{"role": role, "content": content, **fields}]


def parse_body(raw: JsonObject) -> Document:
    """The body of a request."""
    fields = dict(raw)
    messages = fields.pop("messages", None)
    if not isinstance(messages, list):
        raise WireError("messages is a list", fmt=FORMAT, where="messages")
    tools = fields.get("tools") or []
    if not isinstance(tools, list):
        raise WireError("tools is a list", fmt=FORMAT, where="tools")
    system = _system_in(fields.get("system"))
    model = fields.get("model")
    for field, taken in (("system", system), ("tools", tools), ("model", isinstance(model, str) and model)):
        if taken:
            del fields[field]
    return Document(
        fmt=FORMAT,
        messages=(*system, *(parse(message, f"messages[{at}]") for at, message in enumerate(messages))),
        tools=tuple(dump(tool) for tool in tools),
        model=model if isinstance(model, str) else "",
        extra=pack(fields),
    )


def render_body(document: Document) -> JsonObject:
    """The body again; of a document of another format only what is said in it."""
    if document.fmt != FORMAT:
        return render_history(document.messages)
    fields, _ = unpack(document.extra)
    body: JsonObject = {"model": document.model} if document.model else {}
    body |= fields | _conversation(document.messages, apart=FORMAT)[0]
    if document.tools:
        body["tools"] = [load(tool) for tool in document.tools]
    return body


def render_history(messages: Sequence[Message]) -> JsonObject:
    """What is sent for any history, whoever made its messages."""
    return render_placed(messages)[0]


def render_placed(messages: Sequence[Message]) -> tuple[JsonObject, list[int]]:
    """The same, and for each message that is sent how many of the history it and those before it hold.

    Example: system, user, call, call, result, user -> user, assistant, results, user and [2, 4, 5, 6]
    """
    body, ends = _conversation(messages, apart="")
    sent = cast("list[JsonObject]", body["messages"])
    asked = [{key: value for key, value in message.items() if key not in REPLY_ONLY} for message in sent]
    return keep_allowed(body | {"messages": cast(Json, asked)}), ends


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
            raise WireError(f"content is text or blocks, not {type(content).__name__}", fmt=FORMAT, where=where)


def _content_out(message: Message) -> Json:
    """A string or blocks; None if nothing is left to say."""
    own = message.origin == FORMAT
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
        raise WireError(f"system is text or blocks, not {type(system).__name__}", fmt=FORMAT, where="system")
    parts, form = _content_in(system, "system")
    return (Message(Role.SYSTEM, parts, origin=FORMAT, extra=pack({}, content=form, field="system")),)


def _in_place(message: Message) -> bool:
    """Whether it came with the role `system` in the list of messages."""
    own = message.role is Role.SYSTEM and message.origin == FORMAT
    return own and "field" not in unpack(message.extra)[1]


def _system_out(front: Sequence[Message]) -> JsonObject:
    contents = [content for content in map(_content_out, front) if content is not None]
    if not contents:
        return {}
    return {"system": contents[0] if len(contents) == 1 else [block for item in contents for block in _blocks(item)]}


# --- the whole conversation --------------------------------------------------------------------


def _conversation(messages: Sequence[Message], *, apart: str) -> tuple[JsonObject, list[int]]:
    head = 0
    while head < len(messages) and messages[head].role is Role.SYSTEM and not _in_place(messages[head]):
        head += 1
    rendered, counts = [], []
    for count, message in enumerate(_with_valid_ids(messages[head:]), head + 1):
        for out in render(message):
            rendered.append((message, out))
            counts.append(count)
    runs = runs_of(rendered, VOICES, apart=apart)
    ends = [counts[until - 1] for until in accumulate(map(len, runs))]
    return {**_system_out(messages[:head]), "messages": cast(Json, [_joined(run) for run in runs])}, ends


def _joined(run: Sequence[tuple[Message, JsonObject]]) -> JsonObject:
    first, out = run[0]
    if len(run) == 1:
        return out
    blocks = [block for _, message in run for block in _blocks(message["content"])]
    fields: JsonObject = {}
    for _, message in run:
        fields = message | fields
    return fields | {"content": _results_first(blocks) if first.role is Role.TOOL else blocks}


def _blocks(content: Json) -> list[Json]:
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": content}] if content else []


def _with_valid_ids(messages: Sequence[Message]) -> list[Message]:
    """Foreign calls under ids that the provider accepts, each with its results.

    A result belongs to the nearest call before it that has its id, so an id that comes again is a new call.
    Example: call "0", result "0", call "0", result "0" -> "0", "0", "0_2", "0_2"
    """
    newest: dict[CallId, CallId] = {}
    used: set[CallId] = set()
    numbers: dict[CallId, int] = {}
    out = []
    for message in messages:
        parts: list[Part] = []
        for part in message.parts:
            if isinstance(part, ToolCall):
                newest[part.id] = part.id if message.origin == FORMAT else _unused(valid_id(part.id), used, numbers)
                used.add(newest[part.id])
                parts.append(replace(part, id=newest[part.id]))
            elif isinstance(part, ToolResult) and message.origin != FORMAT:
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

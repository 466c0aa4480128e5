"""LangChain's messages: `HumanMessage`, `AIMessage` and the others, their chunks, and their shorthand forms.

    AIMessage(content="…" | [blocks], tool_calls=[{"name", "args", "id"}], additional_kwargs={…}, id="…")

Content is text or blocks, and the blocks may be LangChain's, OpenAI's or Anthropic's: LangChain leaves them as the
provider sent them. A call may appear twice, in `tool_calls` and as a block; here it is one call. A dict, a pair of role
and text, or plain text may stand for a message; each is written back as it came. Values that are not JSON (bytes, keys
that are not text) are encoded in a form of ours; objects in metadata or artifacts are not copied: they stay in the
framework's own message.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, cast

from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
    convert_to_messages,
)

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
    ref_of,
)
from everlong.errors import WireError
from everlong.wire.fields import dump, pack, shown, unpack
from everlong.wire.formats.translation import arguments_object
from everlong.wire.libraries.langchain_blocks import (
    answer_block_in,
    content_in,
    content_out,
    hinted,
    live,
    plain,
    plain_block_in,
    sayable,
    user_block_in,
    with_block,
)
from everlong.wire.libraries.library import Library, Unit

__all__ = ["LIBRARY"]

NAME = "langchain"

#: A message, or what LangChain accepts as one.
Item: TypeAlias = BaseMessage | dict[str, Any] | tuple[str, Any] | list[Any] | str

CLASSES: dict[Role, type[BaseMessage]] = {
    Role.SYSTEM: SystemMessage,
    Role.USER: HumanMessage,
    Role.ASSISTANT: AIMessage,
    Role.TOOL: ToolMessage,
}
CHAT_ROLES = {
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "assistant": Role.ASSISTANT,
    "ai": Role.ASSISTANT,
    "model": Role.ASSISTANT,
}


def read(items: Sequence[Item]) -> list[Unit[Item]]:
    """Return each item with its message; an item that removes another has none."""
    return [Unit((item,), _read_item(item, f"messages[{at}]")) for at, item in enumerate(items)]


def write(messages: Sequence[Message]) -> list[Item]:
    """Return LangChain's objects for messages; those that were read from it keep all their fields."""
    return [item for message in messages for item in _write_message(message)]


def _read_item(item: Item, where: str = "") -> tuple[Message, ...]:
    if isinstance(item, RemoveMessage):
        return ()
    if isinstance(item, BaseMessage):
        return (_read_message(item),)
    try:
        message = _read_message(convert_to_messages([item])[0])
    except (ValueError, NotImplementedError, TypeError) as error:
        raise WireError(
            f"{shown(item)} is not a message: {str(error).splitlines()[0]}", fmt=NAME, where=where
        ) from None
    fields, shape = unpack(message.extra)
    return (replace(message, extra=pack(fields, **shape, given=_given_in(item))),)


def _read_message(message: BaseMessage) -> Message:
    match message:
        case AIMessage():
            return _read_answer(message)
        case ToolMessage() | FunctionMessage():
            return _read_result(message)
        case SystemMessage():
            role = Role.SYSTEM
        case ChatMessage():
            role = CHAT_ROLES.get(message.role.lower(), Role.USER)
        case _:
            role = Role.USER
    parts, form = content_in(message.content, user_block_in if role is Role.USER else plain_block_in)
    if role is Role.USER and any(isinstance(part, ToolResult) for part in parts):
        role = Role.TOOL
    return _message(message, role, parts, content=form)


def _message(message: BaseMessage, role: Role, parts: Sequence[Part], **shape: Json) -> Message:
    """Return the message, with everything that its parts do not contain in `extra`."""
    fields = _carried(message)
    name = fields.pop("name") if role is not Role.TOOL and fields.get("name") else ""
    kind = type(message)
    shape["kind"] = None if kind is CLASSES[role] else f"{kind.__module__}:{kind.__qualname__}"
    return Message(role, tuple(parts), cast(str, name), origin=NAME, extra=pack(fields, **shape))


#: Ids that LangChain and LangGraph make up. If a client sends a list again, they differ, but the list is the same.
MADE_ID = re.compile(r"(lc_|run-).*|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
#: Fields that the role and the parts already contain.
SAID = ("content", "type", "tool_calls", "invalid_tool_calls", "tool_call_id")


def _carried(message: BaseMessage) -> JsonObject:
    """Return the fields of a message with a value, except those that its parts contain."""
    values = {**message.__dict__, **(message.__pydantic_extra__ or {})}
    if isinstance(message.id, str) and MADE_ID.fullmatch(message.id):
        del values["id"]
    return sayable(
        {key: value for key, value in values.items() if key not in SAID and not _is_default(message, key, value)}
    )


def _is_default(message: BaseMessage, key: str, value: Any) -> bool:
    field = type(message).model_fields.get(key)
    default = field.get_default(call_default_factory=True) if field else ...
    return type(value) is type(default) and bool(value == default)  # an artifact may have its own comparison


# --- writing -----------------------------------------------------------------------------------------


def _write_message(message: Message) -> Iterator[Item]:
    fields, shape = unpack(message.extra if message.origin == NAME else "")
    kind = _class_named(shape.get("kind")) or CLASSES[message.role]
    alone = len(message.parts) == len(message.results) == 1
    if message.origin != NAME or (issubclass(kind, ToolMessage | FunctionMessage) and not alone):
        yield from _write_foreign(message)
        return
    written = _written(message, kind, fields, shape)
    given = _given_out(shape.get("given"), written)
    yield given if given is not None and _read_item(given) == (message,) else written


def _written(message: Message, kind: type[BaseMessage], fields: JsonObject, shape: JsonObject) -> BaseMessage:
    values = cast("dict[str, Any]", live(fields))
    if message.name:
        values["name"] = message.name
    if issubclass(kind, AIMessage):
        return _write_answer(kind, message, values, shape)
    if issubclass(kind, ToolMessage | FunctionMessage):
        return _write_result(kind, message, values, shape)
    return kind.model_construct(content=content_out(message.parts, shape.get("content")), **values)


def _write_foreign(message: Message) -> Iterator[Item]:
    """Write a message from elsewhere as LangChain's users would."""
    name = {"name": message.name} if message.name else {}
    for result in message.results:
        status = "error" if result.failed else "success"
        called = {"name": result.name} if result.name else {}
        content = content_out([part for part in result.content if not isinstance(part, Opaque)], None)
        yield ToolMessage(content, tool_call_id=result.call, status=status, **called)
    said = [_unmarked(part) for part in message.parts if isinstance(part, Text | Image)]
    if message.role is Role.ASSISTANT:
        calls = [_call_out(replace(call, extra="")) for call in message.calls]
        yield AIMessage(content_out(said, None), tool_calls=calls, **name)
    elif said or not message.results:
        kind = HumanMessage if message.role is Role.TOOL else CLASSES[message.role]
        yield kind(content_out(said, None), **name)


def _unmarked(part: Text | Image) -> Part:
    return replace(part, extra="")


def _class_named(name: Json) -> type[BaseMessage] | None:
    """Return a message class by name if it is already loaded: a stored name must not load code."""
    waiting: list[type[BaseMessage]] = [BaseMessage] if name else []
    while waiting:
        kind = waiting.pop()
        if f"{kind.__module__}:{kind.__qualname__}" == name:
            return kind
        waiting += kind.__subclasses__()
    return None


# --- shorthand forms of a message -----------------------------------------------------------------------


def _given_in(item: Item) -> Json:
    """Return the form of an item, without its content."""
    if isinstance(item, dict):
        rest = sayable({key: value for key, value in item.items() if key != "content"})
        return ["dict", rest, *([] if item.get("content") else [plain(item.get("content"))])]
    if isinstance(item, tuple | list):
        return [type(item).__name__, str(item[0])]
    return ["text"]


def _given_out(given: Json, written: BaseMessage) -> Item | None:
    content = written.content
    match given:
        case ["dict", dict(rest), *nothing]:
            return {**cast("dict[str, Any]", live(rest)), "content": content or (nothing[0] if nothing else content)}
        case ["text"] if isinstance(content, str):
            return content
        case ["tuple", str(role)]:
            return (role, content)
        case ["list", str(role)]:
            return [role, content]
        case _:
            return None


# --- results -------------------------------------------------------------------------------------------


def _read_result(message: ToolMessage | FunctionMessage) -> Message:
    content, form = content_in(message.content, plain_block_in)
    if isinstance(message, ToolMessage):
        call, failed = message.tool_call_id, message.status == "error"
    else:
        call, failed = f"{LEGACY}{message.name}", False
    result = ToolResult(CallId(call), tuple(cast("list[ResultPart]", content)), message.name or "", failed)
    return _message(message, Role.TOOL, [result], content=form)


def _write_result(kind: type[BaseMessage], message: Message, values: dict[str, Any], shape: JsonObject) -> BaseMessage:
    result = message.results[0]
    content = content_out(result.content, shape.get("content"))
    if issubclass(kind, ToolMessage):
        values |= {"tool_call_id": str(result.call), "status": "error" if result.failed else "success"}
    return kind.model_construct(content=content, **values)


# --- answers -------------------------------------------------------------------------------------------

#: The beginning of ids for legacy results, which name their function instead of a call.
LEGACY = "function:"
#: Fields of `additional_kwargs` that parts contain: thinking, and calls as OpenAI writes them.
THOUGHT, RAW_CALLS, RAW_CALL = "reasoning_content", "tool_calls", "function_call"


def _read_answer(message: AIMessage) -> Message:
    calls = _Calls(message)
    parts, form = content_in(message.content, calls.block_in)
    parts = calls.with_rest(parts)
    paired = sum(isinstance(part, Reasoning) and '"id":' in part.extra for part in parts)
    beside, thought = message.additional_kwargs, message.additional_kwargs.get(THOUGHT)
    if isinstance(thought, str):
        parts.insert(0, Reasoning(thought, extra=pack({}, beside=True)))
        rest = {key: value for key, value in beside.items() if key != THOUGHT}
        message = message.model_copy(update={"additional_kwargs": rest})
    twice = RAW_CALLS in beside or RAW_CALL in beside or isinstance(message, AIMessageChunk)
    mark = _mark([part for part in parts if isinstance(part, ToolCall)]) if twice else None
    return _message(message, Role.ASSISTANT, parts, content=form, paired=paired or None, calls=mark)


def _write_answer(kind: type[AIMessage], message: Message, values: dict[str, Any], shape: JsonObject) -> AIMessage:
    beside = values.get("additional_kwargs", {})
    parts = []
    for part in message.parts:
        if isinstance(part, Reasoning) and "beside" in unpack(part.extra)[1]:
            beside[THOUGHT] = part.text
        else:
            parts.append(part)
    if sum(isinstance(part, Reasoning) for part in parts) < cast(int, shape.get("paired", 0)):
        parts = [_without_id(part) for part in parts]
    calls = sorted(message.calls, key=lambda call: cast(int, unpack(call.extra)[1].get("place", 0)))
    said: dict[str, Any] = {
        "tool_calls": [_call_out(call) for call in calls if _sort_of(call) == VALID],
        "invalid_tool_calls": [_invalid_out(call) for call in calls if _sort_of(call) == INVALID],
    }
    if "calls" in shape and shape["calls"] != _mark(message.calls):
        beside = {key: value for key, value in beside.items() if key not in (RAW_CALLS, RAW_CALL)}
        for call in (call for call in calls if _sort_of(call) == OLD):
            beside[RAW_CALL] = {"name": call.name, "arguments": call.arguments}
        if issubclass(kind, AIMessageChunk):
            values["tool_call_chunks"] = AIMessageChunk(content="", **said).tool_call_chunks
    content = content_out(parts, shape.get("content"))
    return kind.model_construct(**values | {"content": content, "additional_kwargs": beside, **said})


def _without_id(part: Part) -> Part:
    """Return a part without its id, under which the provider would look for the reasoning that led to it."""
    if isinstance(part, Text | ToolCall):
        fields, shape = unpack(part.extra)
        fields.pop("id", None)
        if isinstance(shape.get("block"), dict):
            shape["block"] = {key: value for key, value in cast(JsonObject, shape["block"]).items() if key != "id"}
        return replace(part, extra=pack(fields, **shape))
    return part


# --- calls ---------------------------------------------------------------------------------------------

VALID, INVALID, OLD = "valid", "invalid", "old"


class _Calls:
    """The calls of an answer, each once, wherever they are."""

    def __init__(self, message: AIMessage) -> None:
        calls = [*map(_call_in, message.tool_calls), *map(_invalid_in, message.invalid_tool_calls)]
        raw = message.additional_kwargs.get(RAW_CALL)
        if not calls and isinstance(raw, dict) and isinstance(raw.get("name"), str):
            arguments = raw["arguments"] if isinstance(raw.get("arguments"), str) else ""
            calls = [ToolCall(CallId(LEGACY + raw["name"]), raw["name"], arguments, pack({}, sort=OLD))]
        self._waiting = dict(enumerate(calls))
        self._order: list[int] = []

    def block_in(self, block: JsonObject) -> Part:
        """Return the part for a block. The block of a call is joined with its entry in `tool_calls`."""
        for place, call in self._waiting.items():
            if call.id and call.id in (block.get("call_id"), block.get("id")):
                del self._waiting[place]
                self._order.append(place)
                return with_block(call, block)
        return answer_block_in(block)

    def with_rest(self, parts: list[Part]) -> list[Part]:
        """Return the parts and the calls without a block. If blocks have another order, calls get a hint of theirs."""
        parts = [*parts, *self._waiting.values()]
        order = [*self._order, *self._waiting]
        if order == sorted(order):
            return parts
        places = iter(order)
        return [hinted(part, place=next(places)) if isinstance(part, ToolCall) else part for part in parts]


def _sort_of(call: ToolCall) -> str:
    return cast(str, unpack(call.extra)[1].get("sort", VALID))


def _call_in(raw: Mapping[str, Any]) -> ToolCall:
    rest = sayable({key: value for key, value in raw.items() if key not in ("name", "args", "id", "type")})
    unnamed = None if raw.get("id") is not None else True
    arguments = json.dumps(raw["args"], ensure_ascii=False, default=str)
    return ToolCall(CallId(raw.get("id") or ""), raw["name"], arguments, pack(rest, unnamed=unnamed))


def _call_out(call: ToolCall) -> dict[str, Any]:
    fields, shape = unpack(call.extra)
    args = arguments_object(call.arguments)
    known = None if "unnamed" in shape and not call.id else str(call.id)
    return {"name": call.name, "args": args, "id": known, "type": "tool_call", **cast("dict[str, Any]", live(fields))}


def _invalid_in(raw: Mapping[str, Any]) -> ToolCall:
    """Read a call whose arguments LangChain could not parse."""
    rest = sayable({key: value for key, value in raw.items() if key not in ("name", "args", "id", "type")})
    nothing: list[Json] = [key for key in ("name", "args", "id") if raw.get(key) is None]
    name, arguments = raw.get("name") or "", raw.get("args") or ""
    return ToolCall(CallId(raw.get("id") or ""), name, arguments, pack(rest, sort=INVALID, nothing=nothing or None))


def _invalid_out(call: ToolCall) -> dict[str, Any]:
    fields, shape = unpack(call.extra)
    said = {"name": call.name, "args": call.arguments, "id": str(call.id)}
    for key in cast("list[str]", shape.get("nothing", [])):
        said[key] = said[key] or cast(Any, None)
    return {**said, "type": "invalid_tool_call", **cast("dict[str, Any]", live(fields))}


def _mark(calls: Sequence[ToolCall]) -> str:
    """Return a digest of the calls, which shows whether they were changed since they were read."""
    return ref_of(dump([[call.id, call.name, call.arguments] for call in calls]))


LIBRARY: Library[Item] = Library(name=NAME, packages=("langchain_core",), read=read, write=write)

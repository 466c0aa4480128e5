"""AutoGen: `LLMMessage`, one class for each role.

    AssistantMessage(source="clerk", content=[FunctionCall(id="call_1", name="read", arguments="{}")], thought="…")
    FunctionExecutionResultMessage(content=[FunctionExecutionResult(call_id="call_1", name="read", content="…")])

AutoGen's clients send a thought next to calls as text, so it is read as text; a thought next to text is not sent, and
is read as reasoning. One message has the results of all calls of a step.
"""

from collections.abc import Callable, Sequence
from typing import Any

from autogen_core import FunctionCall, Image as Picture
from autogen_core.models import (
    AssistantMessage,
    FunctionExecutionResult,
    FunctionExecutionResultMessage,
    SystemMessage,
    UserMessage,
)

from everlong.core import CallId, Image, Message, Part, Reasoning, Role, Text, ToolCall, ToolResult
from everlong.wire.fields import pack, unpack
from everlong.wire.libraries.library import Library, Unit

__all__ = ["LIBRARY"]

NAME = "autogen"
THOUGHT = pack({}, thought=True)
LISTED = pack({}, listed=True)


def read(items: Sequence[Any]) -> list[Unit[Any]]:
    """Return a unit for each message."""
    return [Unit((item,), (READERS[type(item)](item),)) for item in items]


def write(messages: Sequence[Message]) -> list[Any]:
    """Return AutoGen's messages. What a user says next to results becomes a separate message."""
    return [item for message in messages for item in _items_out(message)]


# --- reading ---------------------------------------------------------------------------------------


def _system_in(item: Any) -> Message:
    return Message(Role.SYSTEM, (Text(item.content),), origin=NAME)


def _user_in(item: Any) -> Message:
    if isinstance(item.content, str):
        return Message(Role.USER, (Text(item.content),), name=item.source, origin=NAME)
    parts = tuple(Text(part) if isinstance(part, str) else _image_in(part) for part in item.content)
    return Message(Role.USER, parts, name=item.source, origin=NAME, extra=LISTED)


def _image_in(picture: Any) -> Image:
    return Image(data=picture.to_base64(), media_type="image/png")


def _assistant_in(item: Any) -> Message:
    thought, parts, listed = item.thought, list[Part](), not isinstance(item.content, str)
    if thought is not None:
        parts.append(Text(thought, THOUGHT) if listed else Reasoning(thought))
    if listed:
        parts += [ToolCall(CallId(call.id), call.name, call.arguments) for call in item.content]
    else:
        parts.append(Text(item.content))
    extra = LISTED if listed and not item.content else ""
    return Message(Role.ASSISTANT, tuple(parts), name=item.source, origin=NAME, extra=extra)


def _results_in(item: Any) -> Message:
    return Message(Role.TOOL, tuple(_result_in(result) for result in item.content), origin=NAME)


def _result_in(result: Any) -> ToolResult:
    said = pack({}, failed=False) if result.is_error is False else ""
    content = (Text(result.content),)
    return ToolResult(CallId(result.call_id), content, name=result.name, failed=bool(result.is_error), extra=said)


# --- writing ---------------------------------------------------------------------------------------


def _items_out(message: Message) -> list[Any]:
    match message.role:
        case Role.SYSTEM:
            return [SystemMessage(content=message.text)]
        case Role.ASSISTANT:
            return [_assistant_out(message)]
        case Role.TOOL if message.results or message.origin == NAME:
            said = [part for part in message.parts if not isinstance(part, ToolResult)]
            results = FunctionExecutionResultMessage(content=[_result_out(result) for result in message.results])
            return [results, *([_user_out(message, said)] if said else [])]
        case _:
            return [_user_out(message, message.parts)]


def _user_out(message: Message, parts: Sequence[Part]) -> Any:
    listed = message.origin == NAME and "listed" in unpack(message.extra)[1]
    content: Any = [said for part in parts for said in _content_out(part)]
    if not listed and all(isinstance(said, str) for said in content):
        content = "\n".join(content)
    return UserMessage(content=content, source=_source(message, "user"))


def _content_out(part: Part) -> list[Any]:
    if isinstance(part, Text):
        return [part.text]
    if isinstance(part, Image) and part.data:
        return [Picture.from_base64(part.data)]
    return [f"[picture: {part.url}]"] if isinstance(part, Image) else []  # AutoGen accepts only image data


def _assistant_out(message: Message) -> Any:
    texts = [part for part in message.parts if isinstance(part, Text)]
    thoughts = [part.text for part in message.parts if isinstance(part, Reasoning)]
    listed = message.origin == NAME and "listed" in unpack(message.extra)[1]
    source = _source(message, "assistant")
    if not message.calls and not (listed and all(part.extra == THOUGHT for part in texts)):
        thought = "\n".join(thoughts) if thoughts else None
        return AssistantMessage(content=message.text, thought=thought, source=source)
    words = [part.text for part in texts] or thoughts
    calls = [FunctionCall(id=call.id, name=call.name, arguments=call.arguments) for call in message.calls]
    return AssistantMessage(content=calls, thought="\n".join(words) if words else None, source=source)


def _source(message: Message, usual: str) -> str:
    return message.name if message.origin == NAME else message.name or usual


def _result_out(result: ToolResult) -> Any:
    error: bool | None = True if result.failed else None
    if not result.failed and "failed" in unpack(result.extra)[1]:
        error = False
    return FunctionExecutionResult(content=result.text, name=result.name, call_id=result.call, is_error=error)


READERS: dict[type, Callable[[Any], Message]] = {
    SystemMessage: _system_in,
    UserMessage: _user_in,
    AssistantMessage: _assistant_in,
    FunctionExecutionResultMessage: _results_in,
}
LIBRARY: Library[Any] = Library(name=NAME, packages=("autogen_core",), read=read, write=write)

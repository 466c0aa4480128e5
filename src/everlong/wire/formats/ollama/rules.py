"""What Ollama rejects in `messages`, and what its templates cannot express.

The server itself accepts nearly any order. These rules add what every model's template needs and all formats require:
text or calls in each message, the user first, results right after their calls.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from everlong.core import Json, JsonObject, Message, Part, ToolCall
from everlong.wire.fields import shown, unpack, without
from everlong.wire.formats.format import Rules
from everlong.wire.formats.validation import Problem, blank, tool_problems

__all__ = ["RULES", "chat_problems", "problems_beside"]

ROLES = ("system", "user", "assistant", "tool")
#: Base64 as Go reads it.
BASE64 = re.compile(r"(?:[A-Za-z0-9+/\s]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?\s*")


def _usual_shape(message: Message) -> Message:
    fields, _ = unpack(message.extra)
    refused = tuple(key for key in ("tool_calls", "images", "thinking") if fields.get(key) is not None)
    return replace(
        message,
        parts=tuple(_usual_part(part) for part in message.parts),
        extra=without(message.extra, fields=refused),
    )


def _usual_part(part: Part) -> Part:
    """Return the part; a call gets arguments that are an object."""
    if isinstance(part, ToolCall) and "arguments" in unpack(part.extra)[1]:
        return replace(part, extra=without(part.extra, hints=("arguments",)))
    return part


RULES = Rules(
    fmt="ollama",
    joins_assistants=False,
    object_arguments=True,
    blank_beside_calls=True,
    own_thinking=False,
    usual_shape=_usual_shape,
)


def chat_problems(payload: JsonObject) -> Iterator[Problem]:
    """Yield everything that is wrong with the messages of a request."""
    messages = payload.get("messages")
    if not isinstance(messages, list) or not messages:
        yield Problem("messages", "there are no messages")
        return
    readable: list[tuple[str, JsonObject]] = []
    for index, message in enumerate(messages):
        where = f"messages[{index}]"
        if not isinstance(message, dict):
            yield Problem(where, "is not an object")
            continue
        readable.append((where, message))
        if _role(message) not in ROLES:
            yield Problem(where, f"unknown role {shown(message.get('role'))}")
        yield from _content_problems(where, message)
        yield from _picture_problems(where, message)
        yield from _call_problems(where, message)
    yield from _order_problems(readable)
    yield from _pair_problems(readable)


def problems_beside(payload: JsonObject) -> Iterator[Problem]:
    """Yield everything that is wrong outside the messages."""
    options = payload.get("options")
    if options is not None and not isinstance(options, dict):
        yield Problem("options", f"must be an object, not {shown(options)}")
    yield from tool_problems(payload.get("tools"), _tool_fault)


def _tool_fault(tool: Json) -> str:
    function = tool.get("function") if isinstance(tool, dict) else None
    if not isinstance(function, dict) or not _filled(function.get("name")):
        return "needs a function with a name"
    schema = function.get("parameters")
    return "" if schema is None or isinstance(schema, dict) else "has parameters that are not an object"


def _role(message: JsonObject) -> str:
    role = message.get("role")
    return role.lower() if isinstance(role, str) else ""


def _content_problems(where: str, message: JsonObject) -> Iterator[Problem]:
    content = message.get("content")
    if content is not None and not isinstance(content, str):
        yield Problem(f"{where}.content", "is not text")
    elif (not content or blank(content)) and not message.get("images") and not message.get("tool_calls"):
        yield Problem(where, f"{_role(message)} message is empty")
    thinking = message.get("thinking")
    if thinking is not None and not isinstance(thinking, str):
        yield Problem(f"{where}.thinking", "is not text")
    elif thinking and _role(message) != "assistant":
        yield Problem(f"{where}.thinking", f"{_role(message)} message contains thinking")


def _picture_problems(where: str, message: JsonObject) -> Iterator[Problem]:
    pictures = message.get("images")
    if pictures is None:
        return
    if not isinstance(pictures, list):
        yield Problem(f"{where}.images", "is not a list")
        return
    for index, picture in enumerate(pictures):
        if not isinstance(picture, str) or not picture or not BASE64.fullmatch(picture):
            yield Problem(f"{where}.images[{index}]", "image is empty or not base64")
    if pictures and _role(message) not in ("user", "tool"):
        yield Problem(f"{where}.images", f"{_role(message)} message contains an image")


def _call_problems(where: str, message: JsonObject) -> Iterator[Problem]:
    calls = message.get("tool_calls")
    if calls is None:
        return
    if not isinstance(calls, list):
        yield Problem(f"{where}.tool_calls", "is not a list")
        return
    if calls and _role(message) != "assistant":
        yield Problem(f"{where}.tool_calls", f"{_role(message)} message makes calls")
    for index, call in enumerate(calls):
        inner = f"{where}.tool_calls[{index}]"
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict) or not _filled(function.get("name")):
            yield Problem(inner, "call has no function name")
        elif not isinstance(function.get("arguments", {}), dict):
            yield Problem(inner, "arguments are not an object")
        if isinstance(call, dict) and not isinstance(call.get("id", ""), str):
            yield Problem(inner, "id is not text")


def _order_problems(messages: Sequence[tuple[str, JsonObject]]) -> Iterator[Problem]:
    spoken = [(where, _role(message)) for where, message in messages if _role(message) != "system"]
    if not spoken:
        yield Problem("messages", "there are only system messages")
    elif spoken[0][1] != "user":
        yield Problem(spoken[0][0], f"first message is from {spoken[0][1]}, not from the user")


def _pair_problems(messages: Sequence[tuple[str, JsonObject]]) -> Iterator[Problem]:
    """Yield unpaired calls and results. A result answers a call by id, or by name, or the first open one."""
    waiting: list[tuple[str, str]] = []
    made_at = ""
    for where, message in messages:
        if _role(message) == "tool":
            name, call = _result_name(message), message.get("tool_call_id") or ""
            fitting = [each for each in waiting if (call and each[0] == call)] or [
                each for each in waiting if name in ("", each[1]) and not (call and each[0])
            ]
            if fitting:
                waiting.remove(fitting[0])
            else:
                yield Problem(where, f"tool result {shown(name or call)} has no matching call in the message before it")
            continue
        if waiting:
            yield Problem(made_at, f"{len(waiting)} calls have no result directly after them")
        waiting, made_at = _made_calls(message), where
    if waiting:
        yield Problem(made_at, f"{len(waiting)} calls have no result directly after them")


def _result_name(message: JsonObject) -> str:
    name = message.get("tool_name") or message.get("name")
    return name if isinstance(name, str) else ""


def _made_calls(message: JsonObject) -> list[tuple[str, str]]:
    calls = message.get("tool_calls")
    made = []
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(call, dict) and isinstance(function, dict):
            made.append((str(call.get("id") or ""), str(function.get("name"))))
    return made


def _filled(value: Json) -> bool:
    return isinstance(value, str) and not blank(value)

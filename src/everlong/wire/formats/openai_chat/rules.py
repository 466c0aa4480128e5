"""What servers of OpenAI Chat Completions reject in `messages`.

These rules are stricter than OpenAI in one point, as in all formats: the first message that is not system text must be
the user's. They are looser in others, because many servers use this format: any tool name and id, the same id again in
a later turn, images in tool results.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from everlong.core import Json, JsonObject, Message, Opaque, Part, Reasoning, Role, Text, ToolCall
from everlong.wire.fields import load, shown, unpack, without
from everlong.wire.formats.format import Rules
from everlong.wire.formats.validation import Problem, argument_fault, blank, strict_json, tool_problems

__all__ = ["RULES", "chat_problems", "problems_beside"]

ODD_CALL = "message.tool_calls"  # the kind of an entry of `tool_calls` that is not a call
NOT_IN_NAME = re.compile(r"[\s<|\\/>]")


def _usual_shape(message: Message) -> Message:
    fields, shape = unpack(message.extra)
    refused = tuple(key for key in ("tool_calls", "function_call", "name") if fields.get(key) is not None)
    bare = ("content",) if shape.get("content") in ("bare", "empty") else ()
    old = ("role", "missing") if message.role is Role.TOOL else ()
    return replace(
        message,
        parts=tuple(_usual_part(part) for part in message.parts if not _unsendable(part)),
        name=NOT_IN_NAME.sub("_", message.name),
        extra=without(message.extra, hints=(*bare, *old), fields=refused),
    )


def _unsendable(part: Part) -> bool:
    """Whether a part cannot be sent: an entry that is not a call, or sealed reasoning with a damaged seal."""
    if isinstance(part, Reasoning) and part.signature:
        return not _is_json(part.signature)
    return isinstance(part, Opaque) and part.kind == ODD_CALL


def _usual_part(part: Part) -> Part:
    match part:
        case ToolCall(extra=extra):
            fields, shape = unpack(extra)
            inner = shape.get("inner")
            odd = isinstance(inner, str) and "arguments" in unpack(inner)[1]
            hints = ("legacy", "inner") if odd or "legacy" in shape else ()
            refused = () if isinstance(fields.get("type", ""), str) else ("type",)
            return replace(part, extra=without(extra, hints=hints, fields=refused))
        case Opaque(kind, body) if not kind.startswith("message."):
            block = load(body)
            words = block if isinstance(block, str) else body
            return part if isinstance(block, dict) and isinstance(block.get("type"), str) else Text(words)
        case _:
            return part


def _is_json(text: str) -> bool:
    try:
        strict_json(text)
    except ValueError:
        return False
    return True


RULES = Rules(
    fmt="openai-chat",
    foreign_call_id=re.compile(r"(?=.*\S).{1,40}", re.DOTALL),  # OpenAI accepts no longer ids, others do
    joins_assistants=False,
    blank_beside_calls=True,
    own_thinking=False,
    usual_shape=_usual_shape,
)

NAME = re.compile(r"[^\s<|\\/>]+")
# Tuples, because the value of a role may not be hashable.
ROLES = ("system", "developer", "user", "assistant", "tool", "function")
SYSTEM_ROLES = ("system", "developer")
RESULT_ROLES = ("tool", "function")
PICTURE_ROLES = ("user", "tool")
INSTEAD_OF_CONTENT = ("tool_calls", "function_call", "refusal", "audio")  # what an assistant may send instead


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
        yield from _role_problems(where, message)
        yield from _content_problems(where, message)
        yield from _call_problems(where, message)
    yield from _order_problems(readable)
    yield from _pair_problems(readable)


def problems_beside(payload: JsonObject) -> Iterator[Problem]:
    """Yield everything that is wrong outside the messages."""
    yield from tool_problems(payload.get("tools"), _tool_fault)


def _tool_fault(tool: Json) -> str:
    """Return why no server would accept the declaration; "" if one may."""
    if not isinstance(tool, dict):
        return f"must be an object, not {shown(tool)}"
    function = tool.get("function")
    if isinstance(function, dict) and _filled(function.get("name")):
        schema = function.get("parameters")
        return "" if schema is None or isinstance(schema, dict) else "has parameters that are not an object"
    other = function is None and isinstance(tool.get("type"), str) and tool["type"] != "function"
    return "" if other else "needs a function with a name"


def _role_problems(where: str, message: JsonObject) -> Iterator[Problem]:
    role = message.get("role")
    if role not in ROLES:
        yield Problem(where, f"unknown role {shown(role)}")
    if role == "tool" and not _filled(message.get("tool_call_id")):
        yield Problem(where, "tool result has no call id")
    name = message.get("name")
    if name is not None and role not in RESULT_ROLES and not (isinstance(name, str) and NAME.fullmatch(name)):
        yield Problem(where, f"name {shown(name)} is not accepted")


def _content_problems(where: str, message: JsonObject) -> Iterator[Problem]:
    content, role = message.get("content"), message.get("role")
    if content is not None and not isinstance(content, str | list):
        yield Problem(f"{where}.content", "is neither text nor blocks")
    elif content == []:
        yield Problem(f"{where}.content", "is an empty list")
    elif (not content or blank(content)) and not _says_otherwise(message):
        yield Problem(where, f"{role} message is empty")
    if isinstance(content, list):
        for index, block in enumerate(content):
            yield from _block_problems(f"{where}.content[{index}]", block, role)


def _says_otherwise(message: JsonObject) -> bool:
    return message.get("role") == "assistant" and any(message.get(field) for field in INSTEAD_OF_CONTENT)


def _block_problems(where: str, block: Json, role: Json) -> Iterator[Problem]:
    if not isinstance(block, dict) or not isinstance(block.get("type"), str):
        yield Problem(where, "is not a content block")
    elif block["type"] == "text" and (not isinstance(block.get("text"), str) or blank(block["text"])):
        yield Problem(where, "text block is empty")
    elif block["type"] == "image_url":
        image = block.get("image_url")
        if not isinstance(image, dict) or not _filled(image.get("url")) or str(image["url"]).endswith(";base64,"):
            yield Problem(where, "image is empty")
        if role not in PICTURE_ROLES:
            yield Problem(where, f"{role} message contains an image")


def _call_problems(where: str, message: JsonObject) -> Iterator[Problem]:
    calls, old = message.get("tool_calls"), message.get("function_call")
    if calls is not None and (not isinstance(calls, list) or not calls):
        yield Problem(f"{where}.tool_calls", "is an empty list, or not a list")
    elif calls is not None and message.get("role") != "assistant":
        yield Problem(f"{where}.tool_calls", f"{message.get('role')} message makes calls")
    seen: set[str] = set()
    for index, call in enumerate(calls if isinstance(calls, list) else ()):
        inner = f"{where}.tool_calls[{index}]"
        if not isinstance(call, dict) or not _filled(call.get("id")):
            yield Problem(inner, "call has no id")
            continue
        if call["id"] in seen:
            yield Problem(inner, f"call {call['id']} appears twice in one message")
        seen.add(str(call["id"]))
        if not isinstance(call.get("type", "function"), str):
            yield Problem(inner, "the type of a call must be text")
        elif call.get("type", "function") == "function":
            yield from _function_problems(inner, call.get("function"))
    if old is not None and message.get("role") != "assistant":
        yield Problem(f"{where}.function_call", f"{message.get('role')} message makes calls")
    elif old is not None:
        yield from _function_problems(f"{where}.function_call", old)


def _function_problems(where: str, function: Json) -> Iterator[Problem]:
    if not isinstance(function, dict) or not _filled(function.get("name")):
        yield Problem(where, "call has no function name")
        return
    fault = argument_fault(function.get("arguments"))
    if fault:
        yield Problem(where, f"arguments {fault}")


def _order_problems(messages: Sequence[tuple[str, JsonObject]]) -> Iterator[Problem]:
    spoken = [(where, message.get("role")) for where, message in messages if message.get("role") not in SYSTEM_ROLES]
    if not spoken:
        yield Problem("messages", "there are only system messages")
    elif spoken[0][1] != "user":
        yield Problem(spoken[0][0], f"first message is from {spoken[0][1]}, not from the user")


def _pair_problems(messages: Sequence[tuple[str, JsonObject]]) -> Iterator[Problem]:
    waiting: dict[str, str] = {}
    answered: set[str] = set()
    for where, message in messages:
        if message.get("role") in RESULT_ROLES:
            call = _answered_call(message)
            if call in waiting:
                answered.add(call)
                del waiting[call]
            elif call in answered:
                yield Problem(where, f"tool result {call} appears twice")
            else:
                yield Problem(where, f"tool result {call} has no matching call in the message before it")
            continue
        yield from _unanswered(waiting)
        waiting, answered = dict.fromkeys(_made_calls(message), where), set()
    yield from _unanswered(waiting)


def _unanswered(waiting: dict[str, str]) -> Iterator[Problem]:
    for call, where in waiting.items():
        yield Problem(where, f"call {call} has no result directly after it")


def _made_calls(message: JsonObject) -> Iterator[str]:
    calls, old = message.get("tool_calls"), message.get("function_call")
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, dict):
            yield str(call.get("id"))
    if isinstance(old, dict):
        yield f"function {old.get('name')}"


def _answered_call(message: JsonObject) -> str:
    """Return the call that a result answers. A legacy result names its function instead."""
    if message.get("role") == "function":
        return f"function {message.get('name')}"
    return str(message.get("tool_call_id"))


def _filled(value: Json) -> bool:
    return isinstance(value, str) and not blank(value)

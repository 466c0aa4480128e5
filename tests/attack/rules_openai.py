"""What OpenAI refuses, in Chat Completions and in Responses.

platform.openai.com/docs/api-reference/chat/create, …/responses/create
"""

import re
from collections.abc import Iterator
from typing import Any

from tests.attack.bodies import Payload
from tests.attack.rules_shared import declared, filled, function_tool, is_of, listed, read_json, whole_text

__all__ = ["chat", "responses"]

INSTEAD = ("tool_calls", "function_call", "refusal", "audio")  # what an assistant may say without content


def chat(body: Payload) -> Iterator[str]:
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        yield "messages: empty array"
        return
    waiting: set[Any] = set()
    for at, message in enumerate(messages):
        where = f"messages[{at}]"
        role = message.get("role") if isinstance(message, dict) else None
        if not isinstance(role, str) or role not in ("system", "developer", "user", "assistant", "tool", "function"):
            yield f"{where}: role"
            return
        if role in ("tool", "function"):
            answered = message.get("tool_call_id") if role == "tool" else ("function", message.get("name"))
            if not isinstance(answered, str | tuple) or answered not in waiting:
                yield f"{where}: a tool message must follow the tool_calls that it answers"
            waiting.discard(answered if isinstance(answered, str | tuple) else None)
        elif waiting:
            yield f"{where}: tool_call_ids did not have response messages: {waiting}"
            waiting = set()
        yield from _chat_content(where, message, role)
        if role == "assistant":
            waiting = set()
            yield from _chat_calls(where, message, waiting)
        elif message.get("tool_calls") is not None or message.get("function_call") is not None:
            yield f"{where}: only the assistant calls"
    if waiting:
        yield f"messages: tool_call_ids did not have response messages: {waiting}"
    yield from declared(body, _chat_tool)


def _chat_content(where: str, message: Payload, role: str) -> Iterator[str]:
    content = message.get("content")
    if isinstance(message.get("name"), str) and re.search(r"[\s<|\\/>]", message["name"]) and role == "user":
        yield f"{where}.name: does not match ^[^\\s<|\\\\/>]+$"
    if isinstance(content, list):
        if not content:
            yield f"{where}.content: empty array"
        for index, block in enumerate(content):
            yield from _chat_block(f"{where}.content[{index}]", block, role)
    elif content is None:
        if role != "assistant" or not any(message.get(key) for key in INSTEAD):
            yield f"{where}.content: null"
    elif not isinstance(content, str):
        yield f"{where}.content: neither a string nor an array"
    elif not content.strip() and not (role == "assistant" and any(message.get(key) for key in INSTEAD)):
        yield f"{where}.content: is empty"


def _chat_block(where: str, block: Any, role: str) -> Iterator[str]:
    if not isinstance(block, dict) or not isinstance(block.get("type"), str):
        yield f"{where}: no type"
    elif is_of(block, "text") and not filled(block.get("text")):
        yield f"{where}.text: missing or empty"
    elif is_of(block, "image_url"):
        image = block.get("image_url")
        url = image.get("url") if isinstance(image, dict) else None
        if not filled(url) or str(url).endswith(";base64,"):
            yield f"{where}.image_url: no picture"
        if role not in ("user", "tool"):
            yield f"{where}: only the user shows pictures"


def _chat_calls(where: str, message: Payload, waiting: set[Any]) -> Iterator[str]:
    calls, old = message.get("tool_calls"), message.get("function_call")
    if calls is not None and (not isinstance(calls, list) or not calls):
        yield f"{where}.tool_calls: empty array"
    for index, call in enumerate(listed(calls)):
        name = f"{where}.tool_calls[{index}]"
        if not isinstance(call, dict) or not filled(call.get("id")) or call["id"] in waiting:
            yield f"{name}.id: missing, or used twice"
            continue
        waiting.add(call["id"])
        if not isinstance(call.get("type", "function"), str):
            yield f"{name}.type"
        elif call.get("type", "function") == "function":
            yield from _chat_function(f"{name}.function", call.get("function"))
    if old is not None:
        yield from _chat_function(f"{where}.function_call", old)
        waiting.add(("function", old.get("name") if isinstance(old, dict) else None))


def _chat_function(where: str, function: Any) -> Iterator[str]:
    if not isinstance(function, dict) or not filled(function.get("name")):
        yield f"{where}.name: missing"
    elif read_json(function.get("arguments")) is read_json or not whole_text(function["arguments"]):
        yield f"{where}.arguments: no JSON text"


def _chat_tool(tool: Any) -> str:
    if not isinstance(tool, dict):
        return "no object"
    other = isinstance(tool.get("type"), str) and tool["type"] != "function"  # some servers do not ask for the type
    return "" if other and tool.get("function") is None else function_tool(tool.get("function"))


# --- Responses -----------------------------------------------------------------------------------

CALLS = ("function_call", "custom_tool_call", "computer_call", "local_shell_call", "shell_call", "apply_patch_call")
OUTPUTS = tuple(f"{kind}_output" for kind in CALLS)


def responses(body: Payload) -> Iterator[str]:  # noqa: C901 - one pass over the items
    items = body.get("input")
    yield from declared(body, _responses_tool)
    if body.get("instructions") is not None and not isinstance(body["instructions"], str | list):
        yield "instructions: no string"
    if isinstance(items, str) and items.strip():
        return
    if not isinstance(items, list) or not items:
        yield "input: empty"
        return
    made: set[str] = set()
    answered: set[str] = set()
    names: set[str] = set()
    for at, item in enumerate(items):
        where = f"input[{at}]"
        if not isinstance(item, dict):
            yield f"{where}: no object"
            continue
        yield from _responses_item(where, item)
        if is_of(item, *CALLS, *OUTPUTS):
            call = item.get("call_id", item.get("id") if is_of(item, "local_shell_call_output") else None)
            if not isinstance(call, str) or not 0 < len(call) <= 64:
                yield f"{where}.call_id: {call!r}"
                continue
            known = made if is_of(item, *CALLS) else answered
            if call in known or (known is answered and call not in made):
                yield f"{where}.call_id: {call!r} comes twice, or answers no call"
            known.add(call)
        name = item.get("id")
        if isinstance(name, str) and name and not is_of(item, "item_reference"):
            if name in names:
                yield f"{where}.id: duplicate item {name!r}"
            names.add(name)
    yield from (f"no tool output found for call {call}" for call in made - answered)
    yield from _followed([item for item in items if isinstance(item, dict)])


def _followed(items: list[Payload]) -> Iterator[str]:
    for at, item in enumerate(items):
        if is_of(item, "reasoning"):
            later = next((other for other in items[at + 1 :] if not is_of(other, "reasoning")), None)
            spoken = later is not None and later.get("type") in (None, "message")  # of other types nobody knows whose
            if later is None or is_of(later, *OUTPUTS) or (spoken and later.get("role") != "assistant"):
                yield f"input[{at}]: reasoning without its required following item"


def _responses_item(where: str, item: Payload) -> Iterator[str]:  # noqa: C901 - one branch a type
    kind = item.get("type")
    if kind is not None and not isinstance(kind, str):
        yield f"{where}.type"
    elif kind == "message" or (kind is None and "role" in item):
        yield from _responses_message(where, item)
    elif kind is None and not isinstance(item.get("id"), str):
        yield f"{where}: no type"
    elif kind == "function_call":
        if not isinstance(item.get("name"), str) or not re.fullmatch(r"[a-zA-Z0-9_-]+", item["name"]):
            yield f"{where}.name: {item.get('name')!r}"
        if read_json(item.get("arguments")) is read_json or not whole_text(item["arguments"]):
            yield f"{where}.arguments: no JSON text"
    elif kind == "custom_tool_call" and not (isinstance(item.get("input"), str) and isinstance(item.get("name"), str)):
        yield f"{where}.input: no string"
    elif kind in ("function_call_output", "custom_tool_call_output"):
        yield from _responses_content(f"{where}.output", item.get("output"), "tool")
    elif kind == "reasoning":
        summary = item.get("summary")
        if not isinstance(summary, list) or not all(is_of(block, "summary_text") for block in summary):
            yield f"{where}.summary: no array of summaries"


def _responses_message(where: str, item: Payload) -> Iterator[str]:
    role = item.get("role")
    if not isinstance(role, str) or role not in ("user", "assistant", "system", "developer"):
        yield f"{where}.role: {role!r}"
    else:
        yield from _responses_content(f"{where}.content", item.get("content"), role)


def _responses_content(where: str, content: Any, role: str) -> Iterator[str]:
    if isinstance(content, str) and content.strip():
        return
    if not isinstance(content, list) or not content:
        yield f"{where}: says nothing, or is of a wrong type"
    wrong = ("input_text", "input_image", "input_file") if role == "assistant" else ("output_text", "refusal")
    for index, block in enumerate(listed(content)):
        place = f"{where}[{index}]"
        if not isinstance(block, dict) or not isinstance(block.get("type"), str):
            yield f"{place}: no type"
        elif is_of(block, *wrong):
            yield f"{place}: invalid value {block['type']!r} for {role}"
        elif is_of(block, "input_text", "output_text") and not filled(block.get("text")):
            yield f"{place}.text: missing or empty"
        elif is_of(block, "input_image"):
            url, file = block.get("image_url"), block.get("file_id")
            if not (filled(url) and not str(url).endswith(";base64,")) and not filled(file):
                yield f"{place}: no picture"


def _responses_tool(tool: Any) -> str:
    if not isinstance(tool, dict) or not isinstance(tool.get("type"), str):
        return "no type"
    return function_tool(tool) if tool["type"] == "function" else ""

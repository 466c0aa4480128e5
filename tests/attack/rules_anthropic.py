"""What Anthropic refuses in Messages.

docs.anthropic.com/en/api/messages, …/tool-use, …/extended-thinking, …/prompt-caching
"""

import re
from collections.abc import Iterator
from typing import Any

from tests.attack.bodies import Payload
from tests.attack.rules_shared import declared, filled, is_of, listed

__all__ = ["messages"]

THOUGHTS = ("thinking", "redacted_thinking")


def messages(body: Payload) -> Iterator[str]:
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        yield "messages: at least one message is required"
        return
    yield from _anthropic_system(body.get("system"))
    yield from declared(body, _anthropic_tool)
    yield from _anthropic_marks(body)
    waiting: list[Any] = []
    used: set[Any] = set()
    before = ""
    for at, message in enumerate(messages):
        where = f"messages[{at}]"
        role = message.get("role") if isinstance(message, dict) else None
        if not isinstance(role, str) or role not in ("user", "assistant", "system"):
            yield f"{where}: unexpected role"
            return
        if (before == "" and role != "user") or (role == "system" and before != "user"):
            yield f"{where}: {role} does not come here"
        content = message.get("content")
        yield from _anthropic_content(where, content, role, last=at == len(messages) - 1)
        blocks = [block for block in listed(content) if isinstance(block, dict)]
        results = [block.get("tool_use_id") for block in blocks if is_of(block, "tool_result")]
        if sorted(map(str, results)) != sorted(map(str, waiting)):
            yield f"{where}: tool_use ids without tool_result blocks, or the reverse: {waiting} {results}"
        waiting = [block.get("id") for block in blocks if is_of(block, "tool_use")]
        for call in map(str, waiting):
            if call in used:
                yield f"{where}: tool_use ids must be unique: {call}"
            used.add(call)
        before = role
    if waiting:
        yield f"messages: tool_use ids without tool_result blocks: {waiting}"
    yield from _anthropic_endings(messages)


def _anthropic_endings(messages: list[Payload]) -> Iterator[str]:
    for at, message in enumerate(messages):
        last = listed(message.get("content"))[-1:]
        followed = at + 1 < len(messages) and messages[at + 1]["role"] == "assistant"
        if message["role"] == "assistant" and last and is_of(last[0], *THOUGHTS) and not followed:
            yield f"messages[{at}]: the final block in an assistant message cannot be thinking"


def _anthropic_system(system: Any) -> Iterator[str]:
    if system is not None and not isinstance(system, str | list):
        yield "system: neither a string nor an array"
    for at, block in enumerate(listed(system)):
        if not is_of(block, "text") or not filled(block.get("text")):
            yield f"system[{at}]: text content blocks must be non-empty"


def _anthropic_content(where: str, content: Any, role: str, *, last: bool) -> Iterator[str]:
    if isinstance(content, str):
        if not content.strip():
            yield f"{where}: must have non-empty content"
        elif last and role == "assistant" and content != content.rstrip():
            yield f"{where}: final assistant content cannot end with trailing whitespace"
        return
    if not isinstance(content, list) or not content:
        yield f"{where}: must have non-empty content, a string or an array"
        return
    others = False
    for index, block in enumerate(content):
        place = f"{where}.content[{index}]"
        if is_of(block, "tool_result") and others:
            yield f"{place}: tool_result blocks come first"
        others = others or not is_of(block, "tool_result")
        yield from _anthropic_block(place, block, role)
    if last and role == "assistant" and is_of(content[-1], "text"):
        text = content[-1].get("text")
        if isinstance(text, str) and text != text.rstrip():
            yield f"{where}: final assistant content cannot end with trailing whitespace"


def _anthropic_block(where: str, block: Any, role: str) -> Iterator[str]:  # noqa: C901 - one branch a type
    if not isinstance(block, dict) or not isinstance(block.get("type"), str):
        yield f"{where}: no type"
    elif is_of(block, "tool_use", *THOUGHTS) and role != "assistant":
        yield f"{where}: {block['type']} blocks can only be in assistant messages"
    elif is_of(block, "tool_result", "image", "document") and role != "user":
        yield f"{where}: {block['type']} blocks can only be in user messages"
    elif is_of(block, "text") and not filled(block.get("text")):
        yield f"{where}: text content blocks must be non-empty"
    elif is_of(block, "tool_use"):
        if not isinstance(block.get("id"), str) or not re.fullmatch(r"[a-zA-Z0-9_-]+", block["id"]):
            yield f"{where}.id: should match ^[a-zA-Z0-9_-]+$"
        if not isinstance(block.get("name"), str) or not re.fullmatch(r"[a-zA-Z0-9_-]{1,128}", block["name"]):
            yield f"{where}.name: should match ^[a-zA-Z0-9_-]{{1,128}}$"
        if not isinstance(block.get("input"), dict):
            yield f"{where}.input: should be a valid dictionary"
    elif is_of(block, "tool_result"):
        yield from _anthropic_result(where, block)
    elif is_of(block, "thinking") and not (filled(block.get("signature")) and isinstance(block.get("thinking"), str)):
        yield f"{where}: thinking and its signature: field required"
    elif is_of(block, "redacted_thinking") and not filled(block.get("data")):
        yield f"{where}.data: field required"
    elif is_of(block, "image"):
        yield from _anthropic_picture(where, block.get("source"))


def _anthropic_result(where: str, block: Payload) -> Iterator[str]:
    content, flag = block.get("content"), block.get("is_error")
    if not isinstance(block.get("tool_use_id"), str):
        yield f"{where}.tool_use_id: field required"
    if flag is not None and not isinstance(flag, bool):
        yield f"{where}.is_error: should be a boolean"
    if content is not None and not isinstance(content, str | list):
        yield f"{where}.content: neither a string nor an array"
    for index, inner in enumerate(listed(content)):
        if not isinstance(inner, dict) or not isinstance(inner.get("type"), str):
            yield f"{where}.content[{index}]: no type"
        elif is_of(inner, "text") and not filled(inner.get("text")):
            yield f"{where}.content[{index}]: text content blocks must be non-empty"
        elif is_of(inner, "image"):
            yield from _anthropic_picture(f"{where}.content[{index}]", inner.get("source"))


def _anthropic_picture(where: str, source: Any) -> Iterator[str]:
    needed = {"base64": ("data", "media_type"), "url": ("url",), "file": ("file_id",)}
    kind = source.get("type") if isinstance(source, dict) else None
    if not isinstance(kind, str):
        yield f"{where}.source: field required"
    elif not all(filled(source.get(field)) for field in needed.get(kind, ())):
        yield f"{where}.source: empty"


def _anthropic_marks(body: Payload) -> Iterator[str]:
    bearers: list[Any] = [body, *listed(body.get("tools")), *listed(body.get("system"))]
    for message in listed(body.get("messages")):
        for block in listed(message.get("content")) if isinstance(message, dict) else ():
            bearers.append(block)
            bearers += listed(block.get("content")) if isinstance(block, dict) else []
            if is_of(block, *THOUGHTS) and block.get("cache_control") is not None:
                yield "cache_control: not on thinking"
    marks = [bearer["cache_control"] for bearer in bearers if isinstance(bearer, dict) and bearer.get("cache_control")]
    if len(marks) > 4:
        yield f"cache_control: a maximum of 4 blocks, found {len(marks)}"
    if not all(is_of(mark, "ephemeral") for mark in marks):
        yield "cache_control: input tag does not match 'ephemeral'"


def _anthropic_tool(tool: Any) -> str:
    if not isinstance(tool, dict) or not filled(tool.get("name")):
        return "no name"
    if tool.get("type") in (None, "custom") and not isinstance(tool.get("input_schema"), dict):
        return "input_schema is not an object"
    return ""

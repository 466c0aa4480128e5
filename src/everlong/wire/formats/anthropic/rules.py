"""What Anthropic Messages rejects in `messages`.

Neighbours of the same role are no problem: the server joins them. A result must be in the very
next message, before any text. The place of thinking blocks depends on the request: only
`"thinking": {"type": "enabled"}` wants the open turn to begin with one. Newer models take the role
`system` in the list, right after the user. A request has at most four cache marks, tools and
system text included, and none of them on a thought.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from everlong.core import Json, JsonObject, Message, ToolCall
from everlong.wire.fields import without
from everlong.wire.formats.format import Rules
from everlong.wire.formats.validation import Problem, blank

__all__ = ["RULES", "anthropic_problems"]


def _usual_shape(message: Message) -> Message:
    parts = (
        replace(part, extra=without(part.extra, hints=("input",))) if isinstance(part, ToolCall) else part
        for part in message.parts
    )
    return message.with_parts(tuple(parts))


RULES = Rules(
    fmt="anthropic",
    call_id=re.compile(r"[a-zA-Z0-9_-]+"),
    id_prefix="toolu",
    unique_ids=True,
    tool_name=re.compile(r"[a-zA-Z0-9_-]{1,128}"),
    not_in_tool_name=re.compile(r"[^a-zA-Z0-9_-]"),
    object_arguments=True,
    signed_thinking=True,
    led_thinking=True,
    system_after_user=True,
    trimmed_ending=True,
    usual_shape=_usual_shape,
)

CALL_ID = re.compile(r"[a-zA-Z0-9_-]+")
TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
# Tuples, because the value of a role or a type need not be hashable.
ROLES = ("user", "assistant", "system")
THINKING = ("thinking", "redacted_thinking")
USER_ONLY = ("tool_result", "image", "document")
ASSISTANT_ONLY = ("tool_use", *THINKING)
MARK, MOST_MARKS = "cache_control", 4
FINAL_WHITESPACE = "final assistant text ends in whitespace"


def anthropic_problems(payload: JsonObject) -> Iterator[Problem]:
    """Everything that is wrong with the messages of a request."""
    messages = payload.get("messages")
    if not isinstance(messages, list) or not messages:
        yield Problem("messages", "there are no messages")
        return
    readable: list[tuple[str, JsonObject]] = []
    for index, message in enumerate(messages):
        where = f"messages[{index}]"
        if not isinstance(message, dict) or message.get("role") not in ROLES:
            yield Problem(where, "is from neither user nor assistant")
            continue
        if message["role"] == "system" and (not readable or readable[-1][1]["role"] != "user"):
            yield Problem(where, "system message does not follow the user")
        readable.append((where, message))
        yield from _content_problems(where, message, final=index == len(messages) - 1)
    if readable and readable[0][1]["role"] != "user":
        yield Problem(readable[0][0], f"first message is from {readable[0][1]['role']}, not from the user")
    yield from _system_problems(payload.get("system"))
    yield from _pair_problems(readable)
    yield from _thinking_problems(readable, payload.get("thinking"))
    yield from _mark_problems(payload, readable)


def _system_problems(system: Json) -> Iterator[Problem]:
    for index, block in enumerate(system if isinstance(system, list) else ()):
        if isinstance(block, dict) and block.get("type") == "text" and blank(block.get("text")):
            yield Problem(f"system[{index}]", "text block is empty")


def _content_problems(where: str, message: JsonObject, *, final: bool) -> Iterator[Problem]:
    content, role = message.get("content"), message["role"]
    if not isinstance(content, str | list):
        yield Problem(f"{where}.content", "is neither text nor blocks")
    elif (not content or blank(content)) and not (final and role == "assistant" and not content):
        yield Problem(where, f"{role} message says nothing")
    elif final and role == "assistant" and _ends_in_whitespace(content):
        yield Problem(where, FINAL_WHITESPACE)
    results_over = False
    for index, block in enumerate(_blocks(message)):
        inner = f"{where}.content[{index}]"
        if block.get("type") == "tool_result" and results_over:
            yield Problem(inner, "tool result stands after other content")
        results_over = results_over or block.get("type") != "tool_result"
        yield from _block_problems(inner, block, role)


def _ends_in_whitespace(content: str | list[Json]) -> bool:
    if isinstance(content, str):
        return content != content.rstrip()
    last = content[-1] if content else None
    text = last.get("text") if isinstance(last, dict) and last.get("type") == "text" else ""
    return isinstance(text, str) and text != text.rstrip()


def _block_problems(where: str, block: JsonObject, role: Json) -> Iterator[Problem]:
    kind = block.get("type")
    if not isinstance(kind, str):
        yield Problem(where, "is no content block")
    elif kind in (USER_ONLY if role == "assistant" else ASSISTANT_ONLY):
        yield Problem(where, f"{role} message holds {kind}")
    elif kind == "text" and (not isinstance(block.get("text"), str) or blank(block["text"])):
        yield Problem(where, "text block is empty")
    elif kind == "tool_use":
        yield from _call_problems(where, block)
    elif kind == "tool_result":
        yield from _result_problems(where, block)
    elif kind == "thinking" and not block.get("signature"):
        yield Problem(where, "thinking has no signature")
    elif kind == "image" and not _has_picture(block.get("source")):
        yield Problem(where, "picture is empty")


def _call_problems(where: str, block: JsonObject) -> Iterator[Problem]:
    call, name = block.get("id"), block.get("name")
    if not isinstance(call, str) or not CALL_ID.fullmatch(call):
        yield Problem(where, f"call id {call!r} is not accepted")
    if not isinstance(name, str) or not TOOL_NAME.fullmatch(name):
        yield Problem(where, f"tool name {name!r} is not accepted")
    if not isinstance(block.get("input"), dict):
        yield Problem(where, "input is no object")


def _result_problems(where: str, block: JsonObject) -> Iterator[Problem]:
    content = block.get("content")
    if not content or blank(content):
        yield Problem(where, f"tool result {block.get('tool_use_id')} says nothing")
    for index, inner in enumerate(content if isinstance(content, list) else ()):
        if isinstance(inner, dict) and inner.get("type") == "text" and blank(inner.get("text")):
            yield Problem(f"{where}.content[{index}]", "text block is empty")


def _has_picture(source: Json) -> bool:
    return isinstance(source, dict) and any(source.get(field) for field in ("data", "url", "file_id"))


def _pair_problems(messages: Sequence[tuple[str, JsonObject]]) -> Iterator[Problem]:
    seen: set[str] = set()
    waiting: dict[str, None] = {}
    for where, message in messages:
        answered: set[str] = set()
        for call in _named(message, "tool_result", "tool_use_id"):
            if call in answered:
                yield Problem(where, f"tool result {call} is given twice")
            elif call not in waiting:
                yield Problem(where, f"tool result {call} answers no call in the message before it")
            answered.add(call)
        yield from (Problem(where, f"call {call} has no result here") for call in waiting if call not in answered)
        made = _named(message, "tool_use", "id")
        for call in made:
            if call in seen:
                yield Problem(where, f"call id {call} is not unique")
            seen.add(call)
        waiting = dict.fromkeys(made)
    yield from (Problem("messages", f"call {call} has no result after it") for call in waiting)


def _named(message: JsonObject, kind: str, field: str) -> list[str]:
    return [str(block.get(field)) for block in _blocks(message) if block.get("type") == kind]


def _thinking_problems(messages: Sequence[tuple[str, JsonObject]], mode: Json) -> Iterator[Problem]:
    ends: list[tuple[str, JsonObject]] = [*messages, ("", {"role": "user"})]
    for (where, message), (_, following) in pairwise(ends):
        last = _blocks(message)[-1:]
        if message["role"] == "assistant" != following["role"] and last and last[0].get("type") in THINKING:
            yield Problem(where, "assistant message ends in thinking")
    turn = [(where, message) for where, message in messages if message["role"] == "assistant"][-1:]
    if not isinstance(mode, dict) or mode.get("type") != "enabled" or not turn:
        return
    kinds = [block.get("type") for block in _blocks(turn[0][1])]
    if "tool_use" in kinds and kinds[0] not in THINKING:
        yield Problem(turn[0][0], "thinking is enabled and the open turn does not begin with it")


def _mark_problems(payload: JsonObject, messages: Sequence[tuple[str, JsonObject]]) -> Iterator[Problem]:
    bearers = [payload, *_objects(payload.get("tools")), *_objects(payload.get("system"))]
    for where, message in messages:
        for index, block in enumerate(_blocks(message)):
            bearers += [block, *_blocks(block)]
            if block.get(MARK) and block.get("type") in THINKING:
                yield Problem(f"{where}.content[{index}]", "thinking bears a cache mark")
    marks = sum(1 for bearer in bearers if bearer.get(MARK))
    if marks > MOST_MARKS:
        yield Problem(MARK, f"{marks} cache marks, and no more than {MOST_MARKS} are accepted")


def _objects(members: Json) -> list[JsonObject]:
    return [member for member in members if isinstance(member, dict)] if isinstance(members, list) else []


def _blocks(message: JsonObject) -> list[JsonObject]:
    return _objects(message.get("content"))

"""What Anthropic Messages rejects in `messages`.

Neighbouring messages of the same role are accepted: the server joins them. A result must be in the very next message,
before any text. Only with `"thinking": {"type": "enabled"}` must the open turn begin with a thinking block. Newer
models accept the role `system` in the list, right after the user. A request has at most four cache marks, including
tools and system text, and none on thinking blocks.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from everlong.core import Image, Json, JsonObject, Message, Opaque, Part, ResultPart, Role, Text, ToolCall, ToolResult
from everlong.wire.fields import load, shown, without
from everlong.wire.formats.format import Rules
from everlong.wire.formats.translation import image_note
from everlong.wire.formats.validation import Problem, blank, tool_problems

__all__ = ["REPLY_ONLY", "RULES", "anthropic_problems", "problems_beside"]


def _usual_shape(message: Message) -> Message:
    return message.with_parts(tuple(map(_usual_part, message.parts)))


def _usual_part(part: Part) -> Part:
    match part:
        case ToolCall(extra=extra):
            return replace(part, extra=without(extra, hints=("input",)))
        case ToolResult(content=content):
            return replace(part, content=tuple(map(_usual_block, content)))
        case Text() | Image() | Opaque():
            return _usual_block(part)
        case _:
            return part


def _usual_block(part: ResultPart) -> ResultPart:
    """Return the part; an image whose source does not identify it becomes a note."""
    if not isinstance(part, Opaque) or part.kind != "image":
        return part
    block = load(part.body)
    showable = isinstance(block, dict) and _has_picture(block.get("source"))
    return part if showable else Text(image_note(Image()))


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
    joined=frozenset({Role.ASSISTANT, Role.TOOL}),
    usual_shape=_usual_shape,
)

CALL_ID = re.compile(r"[a-zA-Z0-9_-]+")
TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
# Tuples, because the value of a role or a type may not be hashable.
ROLES = ("user", "assistant", "system")
THINKING = ("thinking", "redacted_thinking")
USER_ONLY = ("tool_result", "image", "document")
ASSISTANT_ONLY = ("tool_use", *THINKING)
MARK, MOST_MARKS = "cache_control", 4
#: Fields of a reply that the provider refuses in a request.
REPLY_ONLY = frozenset(
    {"container", "context_management", "id", "model", "stop_details", "stop_reason", "stop_sequence", "type", "usage"}
)
FINAL_WHITESPACE = "final assistant text ends in whitespace"


def anthropic_problems(payload: JsonObject) -> Iterator[Problem]:
    """Yield everything that is wrong with the messages of a request."""
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
            yield Problem(where, "system message does not follow a user message")
        readable.append((where, message))
        if not REPLY_ONLY.isdisjoint(message):
            yield Problem(where, f"{min(REPLY_ONLY.intersection(message))} is only allowed in replies")
        yield from _content_problems(where, message, final=index == len(messages) - 1)
    if readable and readable[0][1]["role"] != "user":
        yield Problem(readable[0][0], f"first message is from {readable[0][1]['role']}, not from the user")
    yield from _pair_problems(readable)
    yield from _thinking_problems(readable, payload.get("thinking"))
    yield from _mark_problems(payload, readable)


def problems_beside(payload: JsonObject) -> Iterator[Problem]:
    """Yield everything that is wrong outside the messages."""
    system, mark = payload.get("system"), payload.get(MARK)
    if system is not None and not isinstance(system, str | list):
        yield Problem("system", f"must be text or blocks, not {shown(system)}")
    for index, block in enumerate(system if isinstance(system, list) else ()):
        if not isinstance(block, dict) or block.get("type") != "text":
            yield Problem(f"system[{index}]", "is not a text block")
        elif not isinstance(block.get("text"), str) or blank(block["text"]):
            yield Problem(f"system[{index}]", "text block is empty")
        elif block.get(MARK) and not _is_mark(block[MARK]):
            yield Problem(f"system[{index}]", "a cache mark must be an object of type ephemeral")
    if mark and not _is_mark(mark):
        yield Problem(MARK, "must be an object of type ephemeral")
    yield from tool_problems(payload.get("tools"), _tool_fault)


def _tool_fault(tool: Json) -> str:
    """Return why the provider would refuse a declaration; "" if it would accept it."""
    if not isinstance(tool, dict):
        return f"must be an object, not {shown(tool)}"
    if not isinstance(tool.get("name"), str) or blank(tool["name"]):
        return "" if tool.get("type") == "mcp_toolset" else "needs a name"
    if tool.get("type") in (None, "custom") and not isinstance(tool.get("input_schema"), dict):
        return "has an input_schema that is not an object"
    mark = tool.get(MARK)
    return "has a cache_control that is not of type ephemeral" if mark and not _is_mark(mark) else ""


def _is_mark(mark: Json) -> bool:
    return isinstance(mark, dict) and mark.get("type") == "ephemeral"


def _content_problems(where: str, message: JsonObject, *, final: bool) -> Iterator[Problem]:
    content, role = message.get("content"), message["role"]
    if not isinstance(content, str | list):
        yield Problem(f"{where}.content", "is neither text nor blocks")
    elif not content or blank(content):
        yield Problem(where, f"{role} message is empty")
    elif final and role == "assistant" and _ends_in_whitespace(content):
        yield Problem(where, FINAL_WHITESPACE)
    results_over = False
    for index, block in enumerate(_blocks(message)):
        inner = f"{where}.content[{index}]"
        if block.get("type") == "tool_result" and results_over:
            yield Problem(inner, "tool result comes after other content")
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
        yield Problem(where, "is not a content block")
    elif kind in (USER_ONLY if role == "assistant" else ASSISTANT_ONLY):
        yield Problem(where, f"{role} message contains {kind}")
    elif kind == "text" and (not isinstance(block.get("text"), str) or blank(block["text"])):
        yield Problem(where, "text block is empty")
    elif kind == "tool_use":
        yield from _call_problems(where, block)
    elif kind == "tool_result":
        yield from _result_problems(where, block)
    elif kind in THINKING and blank(block.get("signature" if kind == "thinking" else "data") or ""):
        yield Problem(where, "thinking has no signature")
    elif kind == "image" and not _has_picture(block.get("source")):
        yield Problem(where, "image is empty")


def _call_problems(where: str, block: JsonObject) -> Iterator[Problem]:
    call, name = block.get("id"), block.get("name")
    if not isinstance(call, str) or not CALL_ID.fullmatch(call):
        yield Problem(where, f"call id {shown(call)} is not accepted")
    if not isinstance(name, str) or not TOOL_NAME.fullmatch(name):
        yield Problem(where, f"tool name {shown(name)} is not accepted")
    if not isinstance(block.get("input"), dict):
        yield Problem(where, "input is not an object")


def _result_problems(where: str, block: JsonObject) -> Iterator[Problem]:
    content = block.get("content")
    if not content or blank(content):
        yield Problem(where, f"tool result {block.get('tool_use_id')} is empty")
    for index, inner in enumerate(content if isinstance(content, list) else ()):
        if isinstance(inner, dict) and inner.get("type") == "text" and blank(inner.get("text")):
            yield Problem(f"{where}.content[{index}]", "text block is empty")
        elif isinstance(inner, dict) and inner.get("type") == "image" and not _has_picture(inner.get("source")):
            yield Problem(f"{where}.content[{index}]", "image is empty")


def _has_picture(source: Json) -> bool:
    if not isinstance(source, dict) or not isinstance(source.get("type"), str):
        return False
    return any(source.get(field) for field in ("data", "url", "file_id", "content"))


def _pair_problems(messages: Sequence[tuple[str, JsonObject]]) -> Iterator[Problem]:
    seen: set[str] = set()
    waiting: dict[str, None] = {}
    for where, message in messages:
        answered: set[str] = set()
        for call in _named(message, "tool_result", "tool_use_id"):
            if call in answered:
                yield Problem(where, f"tool result {call} appears twice")
            elif call not in waiting:
                yield Problem(where, f"tool result {call} has no matching call in the message before it")
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
            marked = [one for one in (block, *_blocks(block)) if one.get(MARK)]
            bearers += marked
            if block.get(MARK) is not None and block.get("type") in THINKING:
                yield Problem(f"{where}.content[{index}]", "thinking has a cache mark")
            if not all(_is_mark(one[MARK]) for one in marked):
                yield Problem(f"{where}.content[{index}]", "a cache mark must be an object of type ephemeral")
    marks = sum(1 for bearer in bearers if bearer.get(MARK))
    if marks > MOST_MARKS:
        yield Problem(MARK, f"{marks} cache marks, but at most {MOST_MARKS} are accepted")


def _objects(members: Json) -> list[JsonObject]:
    return [member for member in members if isinstance(member, dict)] if isinstance(members, list) else []


def _blocks(message: JsonObject) -> list[JsonObject]:
    return _objects(message.get("content"))

"""What OpenAI Responses rejects in `input`.

Outputs need not be next to their calls, only after them. Reasoning must be followed by the item it
led to.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import cast

from everlong.core import Image, Json, JsonObject, Message, Opaque, Part, Reasoning, Role, Text, ToolCall, ToolResult
from everlong.wire.fields import load, opaque, shown, unpack, without
from everlong.wire.formats.format import Rules
from everlong.wire.formats.translation import image_note
from everlong.wire.formats.validation import Problem, argument_fault, blank, tool_problems

__all__ = ["MAX_CALL_ID", "RULES", "problems_beside", "responses_problems"]


def _usual_shape(message: Message) -> Message:
    spoken = "output_text" if message.role is Role.ASSISTANT else "input_text"
    usual = (_usual_part(part, spoken) for part in message.parts)
    return message.with_parts(tuple(part for part in usual if part is not None))


def _usual_part(part: Part, spoken: str) -> Part | None:
    match part:
        case Text(extra=extra) if str(unpack(extra)[0].get("type", spoken)) not in (spoken, "refusal"):
            return replace(part, extra=without(extra, fields=("type",)))
        case ToolCall(extra=extra) if unpack(extra)[1].get("kind", "custom_tool_call") == "custom_tool_call":
            return replace(part, extra=without(extra, hints=("arguments",)))
        case ToolResult(extra=extra) if "kind" not in unpack(extra)[1]:
            odd = unpack(extra)[1].get("content") not in (None, "blocks")
            return replace(part, extra=without(extra, hints=("content",) if odd else ()))
        case Reasoning(extra=extra) if [*_thought_problems("", cast(JsonObject, unpack(extra)[1].get("blocks", {})))]:
            return replace(part, extra=without(extra, hints=("blocks",)))
        case Opaque(body=body):
            return _usual_item(part, load(body))
        case _:
            return part


def _usual_item(part: Opaque, item: Json) -> Opaque | Text | None:
    """Return a passed-through item as accepted: a message without refused blocks, a note for an image without data."""
    if isinstance(item, dict) and _kind(item) == "input_image" and not _has_picture(item):
        return Text(image_note(Image()))
    if not isinstance(item, dict) or _kind(item) != "message":
        return part
    content = item.get("content")
    blocks = content if isinstance(content, list) else []
    kept = [block for block in blocks if not any(_block_problems("", block, "assistant"))]
    return part if kept == content else opaque(item | {"content": kept}) if kept else None


RULES = Rules(
    fmt="openai-responses",
    call_id=re.compile(r"(?=.*\S).{1,64}", re.DOTALL),
    unique_ids=True,
    tool_name=re.compile(r"[a-zA-Z0-9_-]+"),
    not_in_tool_name=re.compile(r"[^a-zA-Z0-9_-]"),
    led_thinking=True,
    items_once=True,
    opaque_before_user=True,
    usual_shape=_usual_shape,
    pictures=frozenset({Role.SYSTEM, Role.USER, Role.TOOL}),
)

MAX_CALL_ID = 64
CALLS = frozenset(
    {
        "apply_patch_call",
        "computer_call",
        "custom_tool_call",
        "function_call",
        "local_shell_call",
        "shell_call",
    }
)
OUTPUTS = frozenset(f"{kind}_output" for kind in CALLS)
# Tuples, because the value of a role may not be hashable.
SYSTEM_ROLES = ("system", "developer")
TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]+")
ROLES = (*SYSTEM_ROLES, "user", "assistant")
#: Blocks that only one side may use: the user's, and the assistant's. Unknown kinds are accepted.
OURS = frozenset({"input_text", "input_image", "input_file", "input_audio"})
THEIRS = frozenset({"output_text", "refusal"})


def responses_problems(payload: JsonObject) -> Iterator[Problem]:
    """Yield everything that is wrong with the input of a request."""
    items = payload.get("input")
    if isinstance(items, str) and not blank(items):
        return
    if not isinstance(items, list) or not items:
        yield Problem("input", "there is no input")
        return
    readable: list[tuple[str, JsonObject]] = []
    for index, item in enumerate(items):
        where = f"input[{index}]"
        if not isinstance(item, dict):
            yield Problem(where, "is not an object")
            continue
        readable.append((where, item))
        yield from _item_problems(where, item)
    yield from _order_problems(readable)
    yield from _pair_problems(readable)
    yield from _reasoning_problems(readable)
    yield from _repeated_items(readable)


def problems_beside(payload: JsonObject) -> Iterator[Problem]:
    """Yield everything that is wrong outside the input."""
    system = payload.get("instructions")
    if system is not None and not isinstance(system, str):
        yield Problem("instructions", f"must be text, not {shown(system)}")
    yield from tool_problems(payload.get("tools"), _tool_fault)


def _tool_fault(tool: Json) -> str:
    """Return why the provider would refuse a declaration; "" if it would accept it."""
    if not isinstance(tool, dict):
        return f"must be an object, not {shown(tool)}"
    if not isinstance(tool.get("type"), str):
        return "needs a type"
    if tool["type"] != "function":
        return ""
    if not _filled(tool.get("name")):
        return "needs a name"
    schema = tool.get("parameters")
    return "" if schema is None or isinstance(schema, dict) else "has parameters that are not an object"


def _kind(item: JsonObject) -> str:
    return str(item.get("type") or ("message" if "role" in item else "none"))


def _item_problems(where: str, item: JsonObject) -> Iterator[Problem]:
    kind = _kind(item)
    if kind == "none":
        yield Problem(where, "item has no type")
    elif kind == "message":
        yield from _message_problems(where, item)
    elif kind in CALLS | OUTPUTS:
        yield from _call_problems(where, item, kind)
    elif kind == "reasoning" and not isinstance(item.get("summary"), list):
        yield Problem(where, "reasoning has no summary list")
    elif kind == "reasoning":
        yield from _thought_problems(where, item)


def _thought_problems(where: str, item: JsonObject) -> Iterator[Problem]:
    summary = item.get("summary")
    for index, block in enumerate(summary if isinstance(summary, list) else ()):
        if not isinstance(block, dict) or block.get("type") != "summary_text" or not isinstance(block.get("text"), str):
            yield Problem(f"{where}.summary[{index}]", "is not the text of a summary")


def _message_problems(where: str, item: JsonObject) -> Iterator[Problem]:
    role, content = item.get("role"), item.get("content")
    if role not in ROLES:
        yield Problem(where, f"unknown role {shown(role)}")
    elif not isinstance(content, str | list) or not content or blank(content):
        yield Problem(where, f"{role} message is empty")
    for index, block in enumerate(content if isinstance(content, list) else ()):
        yield from _block_problems(f"{where}.content[{index}]", block, str(role))


def _block_problems(where: str, block: Json, role: str) -> Iterator[Problem]:
    kind = block.get("type") if isinstance(block, dict) else None
    if not isinstance(block, dict) or not isinstance(kind, str):
        yield Problem(where, "is not a content block")
    elif kind in (OURS if role == "assistant" else THEIRS):
        yield Problem(where, f"{role} message contains {kind}")
    elif kind in ("input_text", "output_text") and not _filled(block.get("text")):
        yield Problem(where, "text block is empty")
    elif kind == "input_image" and not _has_picture(block):
        yield Problem(where, "image is empty")


def _filled(text: Json) -> bool:
    return isinstance(text, str) and not blank(text)


def _has_picture(block: JsonObject) -> bool:
    url = block.get("image_url")
    return _filled(block.get("file_id")) or (_filled(url) and not str(url).endswith(";base64,"))


def _call_problems(where: str, item: JsonObject, kind: str) -> Iterator[Problem]:
    call = item.get("call_id")
    if not isinstance(call, str) or not 0 < len(call) <= MAX_CALL_ID:
        yield Problem(where, f"call id {shown(call)} is not accepted")
    if kind == "function_call":
        fault = argument_fault(item.get("arguments"))
        if fault:
            yield Problem(where, f"arguments {fault}")
        name = item.get("name")
        if not isinstance(name, str) or not TOOL_NAME.fullmatch(name):
            yield Problem(where, f"tool name {shown(name)} is not accepted")
    elif kind == "custom_tool_call" and not (isinstance(item.get("input"), str) and _filled(item.get("name"))):
        yield Problem(where, "a custom call needs a name and text as its input")
    elif kind in ("function_call_output", "custom_tool_call_output"):
        yield from _output_problems(where, item.get("output"))


def _output_problems(where: str, output: Json) -> Iterator[Problem]:
    if not isinstance(output, str | list) or not output or blank(output):
        yield Problem(where, "tool result is empty")
    for index, block in enumerate(output if isinstance(output, list) else ()):
        yield from _block_problems(f"{where}.output[{index}]", block, "tool")


def _order_problems(items: Sequence[tuple[str, JsonObject]]) -> Iterator[Problem]:
    """Yield faults of order. Items that only the provider can read, such as a compaction, may come before the user."""
    known = CALLS | OUTPUTS | {"message", "reasoning"}
    spoken = [(where, item) for where, item in items if _kind(item) in known and item.get("role") not in SYSTEM_ROLES]
    if not spoken:
        yield Problem("input", "there are only system messages")
    elif spoken[0][1].get("role") != "user":
        yield Problem(spoken[0][0], f"first item is {_kind(spoken[0][1])}, not a user message")


def _pair_problems(items: Sequence[tuple[str, JsonObject]]) -> Iterator[Problem]:
    waiting: dict[str, str] = {}
    seen: set[str] = set()
    for where, item in items:
        call = str(item.get("call_id"))
        if _kind(item) in CALLS:
            if call in seen:
                yield Problem(where, f"call id {call} is not unique")
            seen.add(call)
            waiting[call] = where
        elif _kind(item) in OUTPUTS and call in waiting:
            del waiting[call]
        elif _kind(item) in OUTPUTS:
            yield Problem(
                where, f"tool result {call} " + ("appears twice" if call in seen else "has no matching call before it")
            )
    for call, where in waiting.items():
        yield Problem(where, f"call {call} has no result after it")


def _reasoning_problems(items: Sequence[tuple[str, JsonObject]]) -> Iterator[Problem]:
    led_to_nothing = True
    for where, item in reversed(items):
        kind = _kind(item)
        if kind == "reasoning" and led_to_nothing:
            yield Problem(where, "reasoning is not followed by the item it led to")
        elif kind != "reasoning":
            led_to_nothing = kind in OUTPUTS or (kind == "message" and item.get("role") != "assistant")


def _repeated_items(items: Sequence[tuple[str, JsonObject]]) -> Iterator[Problem]:
    seen: set[str] = set()
    for where, item in items:
        name = item.get("id")
        if not isinstance(name, str) or not name:
            continue
        if name in seen:
            yield Problem(where, f"item {name} appears twice")
        seen.add(name)

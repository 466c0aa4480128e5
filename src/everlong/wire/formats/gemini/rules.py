"""What Gemini's generateContent rejects in `contents`.

Turns alternate between user and model, and the turn after function calls must have as many responses. Keys may be in
camelCase or snake_case; null is the same as absent.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import assert_never, cast

from everlong.core import (
    Image,
    Json,
    JsonObject,
    Message,
    Opaque,
    Part,
    Reasoning,
    Role,
    Text,
    ToolCall,
    ToolResult,
)
from everlong.wire.fields import load, pack, shown, unpack, without
from everlong.wire.formats.format import Rules
from everlong.wire.formats.validation import Problem, blank, tool_problems

__all__ = ["RULES", "gemini_problems", "in_camel_case", "problems_beside"]


def _usual_shape(message: Message) -> Message:
    usual = (_usual_part(part) for part in message.parts)
    as_string = unpack(message.extra)[1].get("parts") == "string"
    return replace(
        message,
        parts=tuple(part for part in usual if part is not None),
        extra=without(message.extra, hints=("parts",)) if as_string else message.extra,
    )


def _usual_part(part: Part) -> Part | None:
    """Return a part with one kind of data, ids that are text and responses that are objects; None for an empty part."""
    match part:
        case Opaque(body=body):
            return part if not any(_data_problems("", _camel(load(body)))) else None
        case ToolCall(extra=extra) | ToolResult(extra=extra):
            fields, shape = unpack(extra)
            inner = shape.get("inner")
            if isinstance(inner, dict) and not isinstance(inner.get("id", ""), str):
                shape["inner"] = {key: value for key, value in inner.items() if key != "id"} or None
            if shape.get("response") == "value":
                del shape["response"]
            return replace(part, extra=pack(_alone(fields), **shape))
        case Text(extra=extra) | Image(extra=extra) | Reasoning(extra=extra):
            fields, shape = unpack(extra)
            return replace(part, extra=pack(_alone(fields), **shape))
        case _:
            assert_never(part)


def _alone(fields: JsonObject) -> JsonObject:
    """Return the fields around the data of a part, without other data."""
    return {key: value for key, value in fields.items() if not DATA.intersection(_camel({key: value}))}


RULES = Rules(
    fmt="gemini",
    tool_name=re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}"),
    not_in_tool_name=re.compile(r"[^a-zA-Z0-9_.:-]|^(?=[^a-zA-Z_])"),
    longest_tool_name=64,
    results_named=True,
    object_arguments=True,
    silent_results=True,
    worded_thinking=True,
    pictures=frozenset(Role),
    voices={Role.ASSISTANT: "model", Role.USER: "user", Role.TOOL: "user", Role.SYSTEM: "user"},
    usual_shape=_usual_shape,
)

FUNCTION_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}")
NO_DATA = frozenset({"", "thought", "thoughtSignature"})  # keys that are not data
#: The kinds of data; a part may have only one.
DATA = frozenset(
    {"text", "inlineData", "functionCall", "functionResponse", "fileData", "executableCode", "codeExecutionResult"}
)
SYSTEM = ("systemInstruction", "system_instruction")
VOICES = {"user": "user", "function": "user", "model": "model"}
WORD_BREAK = re.compile(r"_([a-z])")


def gemini_problems(payload: JsonObject) -> Iterator[Problem]:
    """Yield everything that is wrong with the contents of a request."""
    contents = payload.get("contents")
    if not isinstance(contents, list) or not contents:
        yield Problem("contents", "there are no contents")
        return
    turns: list[_Turn] = []
    for index, content in enumerate(contents):
        where = f"contents[{index}]"
        role = content.get("role") or "user" if isinstance(content, dict) else None
        if not isinstance(content, dict) or not isinstance(role, str) or role not in VOICES:
            yield Problem(where, "is from neither user nor model")
            continue
        parts = content.get("parts")
        listed = parts if isinstance(parts, list) else [parts] if isinstance(parts, dict) else []
        turn = _Turn(where, VOICES[role], [_camel(part) for part in listed])
        turns.append(turn)
        yield from _part_problems(turn)
    yield from _order_problems(turns)
    yield from _pair_problems(turns)


@dataclass(frozen=True, slots=True)
class _Turn:
    where: str
    role: str
    parts: list[JsonObject]

    def names(self, field: str) -> list[str]:
        """Return the functions that are called, or that respond, in alphabetical order."""
        found = [part[field] for part in self.parts if isinstance(part.get(field), dict)]
        return sorted(str(cast(JsonObject, function).get("name")) for function in found)


def problems_beside(payload: JsonObject) -> Iterator[Problem]:
    """Yield everything that is wrong outside the contents."""
    for key in SYSTEM:
        if payload.get(key) is not None:
            yield from _system_problems(key, payload[key])
    tools = payload.get("tools")
    yield from tool_problems([tools] if tools and isinstance(tools, dict) else tools, _tool_fault)


def _tool_fault(tool: Json) -> str:
    """Return why the provider would refuse a declaration; "" if it would accept it."""
    if not isinstance(tool, dict):
        return f"must be an object, not {shown(tool)}"
    declared = _camel(tool).get("functionDeclarations", [])
    if not isinstance(declared, list):
        return f"has functionDeclarations that are {shown(declared)}, not a list"
    named = (each.get("name") if isinstance(each, dict) else None for each in declared)
    return "" if all(isinstance(name, str) and not blank(name) for name in named) else "has a function without a name"


def _system_problems(where: str, system: Json) -> Iterator[Problem]:
    parts = system.get("parts") if isinstance(system, dict) else None
    listed = [parts] if isinstance(parts, dict) else parts
    if not isinstance(listed, list) or not listed:
        yield Problem(where, "has no parts")
        return
    for index, part in enumerate(listed):
        fields = _camel(part)
        if not _filled(fields.get("text")):
            yield Problem(f"{where}.parts[{index}]", "text part is empty")
        elif len(DATA.intersection(fields)) > 1:
            yield Problem(f"{where}.parts[{index}]", "part contains more than its text")


def in_camel_case(name: str) -> str:
    """Return the name of a field in camelCase. Example: function_call -> functionCall"""
    return WORD_BREAK.sub(lambda found: found[1].upper(), name) if "_" in name else name


def _camel(part: Json) -> JsonObject:
    """Return the filled keys in camelCase. Example: {"function_call": {}, "text": None} -> {"functionCall": {}}"""
    if not isinstance(part, dict):
        return {}
    return {in_camel_case(str(key)): value for key, value in part.items() if value is not None}


def _part_problems(turn: _Turn) -> Iterator[Problem]:
    if not turn.parts:
        yield Problem(turn.where, f"{turn.role} turn is empty")
    for index, part in enumerate(turn.parts):
        where = f"{turn.where}.parts[{index}]"
        yield from _data_problems(where, part)
        if "functionCall" in part:
            yield from _function_problems(where, part["functionCall"], turn.role, "model", "args")
        elif "functionResponse" in part:
            yield from _function_problems(where, part["functionResponse"], turn.role, "user", "response")


def _data_problems(where: str, part: JsonObject) -> Iterator[Problem]:
    if not (set(part) - NO_DATA or part.get("thoughtSignature")):
        yield Problem(where, "part is empty")
    elif "text" in part and not _filled(part["text"]) and not (part["text"] == "" and part.get("thoughtSignature")):
        yield Problem(where, "text part is empty")
    elif len(DATA.intersection(part)) > 1:
        yield Problem(where, "part contains more than one item")
    for holder, field in (("inlineData", "data"), ("fileData", "fileUri")):
        if holder in part and not _filled(_camel(part[holder]).get(field)):
            yield Problem(where, "image is empty")


def _filled(text: Json) -> bool:
    return isinstance(text, str) and not blank(text)


def _function_problems(where: str, function: Json, role: str, wanted: str, field: str) -> Iterator[Problem]:
    if role != wanted:
        yield Problem(where, f"{role} turn contains a part that belongs to {wanted}")
    fields = _camel(function)
    name = fields.get("name")
    if not isinstance(name, str) or not FUNCTION_NAME.fullmatch(name):
        yield Problem(where, f"function name {shown(name)} is not accepted")
    if not isinstance(fields.get(field, {}), dict):
        yield Problem(where, f"{field} is not an object")
    if not isinstance(fields.get("id", ""), str):
        yield Problem(where, "id is not text")


def _order_problems(turns: Sequence[_Turn]) -> Iterator[Problem]:
    if turns and turns[0].role != "user":
        yield Problem(turns[0].where, "first turn is from model, not from the user")
    for before, turn in pairwise(turns):
        if turn.role == before.role:
            yield Problem(turn.where, f"two turns from {turn.role} in a row")


def _pair_problems(turns: Sequence[_Turn]) -> Iterator[Problem]:
    waiting: list[str] = []
    for turn in turns:
        answers = turn.names("functionResponse")
        if len(answers) != len(waiting):
            yield Problem(turn.where, f"{len(answers)} function responses to {len(waiting)} function calls")
        elif answers != waiting:
            yield Problem(turn.where, f"responses are from {answers}, calls were to {waiting}")
        waiting = turn.names("functionCall")
    if waiting:
        yield Problem(turns[-1].where, f"0 function responses to {len(waiting)} function calls")

"""What Gemini's generateContent rejects in `contents`.

Turns alternate between user and model; a turn of function calls is answered by the very next turn
with as many responses. Keys may be written in camelCase or snake_case; null is the same as absent.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import cast

from everlong.core import Json, JsonObject, Message, Part, Role, ToolResult
from everlong.wire.fields import unpack, without
from everlong.wire.formats.format import Rules
from everlong.wire.formats.validation import Problem, blank

__all__ = ["RULES", "gemini_problems"]


def _usual_shape(message: Message) -> Message:
    return message.with_parts(tuple(_usual_part(part) for part in message.parts))


def _usual_part(part: Part) -> Part:
    """A response that was no object is written as text."""
    if isinstance(part, ToolResult) and unpack(part.extra)[1].get("json") == "value":
        return replace(part, extra=without(part.extra, hints=("json",)))
    return part


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
    usual_shape=_usual_shape,
)

FUNCTION_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}")
NO_DATA = frozenset({"thought", "thoughtSignature"})  # keys that say nothing by themselves
VOICES = {"user": "user", "function": "user", "model": "model"}
WORD_BREAK = re.compile(r"_([a-z])")


def gemini_problems(payload: JsonObject) -> Iterator[Problem]:
    """Everything that is wrong with the contents of a request."""
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
    yield from _system_problems(payload.get("systemInstruction", payload.get("system_instruction")))
    yield from _order_problems(turns)
    yield from _pair_problems(turns)


@dataclass(frozen=True, slots=True)
class _Turn:
    where: str
    role: str
    parts: list[JsonObject]

    def names(self, field: str) -> list[str]:
        """The functions that are called, or that respond, in alphabetical order."""
        found = [part[field] for part in self.parts if isinstance(part.get(field), dict)]
        return sorted(str(cast(JsonObject, function).get("name")) for function in found)


def _system_problems(system: Json) -> Iterator[Problem]:
    parts = system.get("parts") if isinstance(system, dict) else None
    for index, part in enumerate(parts if isinstance(parts, list) else ()):
        if blank(_camel(part).get("text", "x")):
            yield Problem(f"systemInstruction.parts[{index}]", "text part is empty")


def _camel(part: Json) -> JsonObject:
    """The keys that are filled, as camelCase. Example: {"function_call": {}, "text": None} -> {"functionCall": {}}"""
    if not isinstance(part, dict):
        return {}
    return {
        WORD_BREAK.sub(lambda found: found[1].upper(), key): value for key, value in part.items() if value is not None
    }


def _part_problems(turn: _Turn) -> Iterator[Problem]:
    if not turn.parts:
        yield Problem(turn.where, f"{turn.role} turn says nothing")
    for index, part in enumerate(turn.parts):
        where = f"{turn.where}.parts[{index}]"
        if not (set(part) - NO_DATA or part.get("thoughtSignature")):
            yield Problem(where, "part is empty")
        elif "text" in part and blank(part["text"]) and not part.get("thoughtSignature"):
            yield Problem(where, "text part is empty")
        elif "functionCall" in part:
            yield from _function_problems(where, part["functionCall"], turn.role, "model", "args")
        elif "functionResponse" in part:
            yield from _function_problems(where, part["functionResponse"], turn.role, "user", "response")
        for holder, field in (("inlineData", "data"), ("fileData", "fileUri")):
            if holder in part and not _camel(part[holder]).get(field):
                yield Problem(where, "picture is empty")


def _function_problems(where: str, function: Json, role: str, wanted: str, field: str) -> Iterator[Problem]:
    if role != wanted:
        yield Problem(where, f"{role} turn holds what belongs to {wanted}")
    fields = _camel(function)
    name = fields.get("name")
    if not isinstance(name, str) or not FUNCTION_NAME.fullmatch(name):
        yield Problem(where, f"function name {name!r} is not accepted")
    if not isinstance(fields.get(field, {}), dict):
        yield Problem(where, f"{field} is no object")


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

"""Repair arguments that are not JSON; {} if nothing of them can be read.

Attempts, in order: read leniently (raw line ends, NaN), close what was cut off, ignore text after the end, read a
Python literal, drop the last, unfinished member. The edit refers to the original message.
"""

import ast
import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import cast

from everlong.core import Json, JsonObject, JsonText, Message, Part, ToolCall
from everlong.errors import WireError
from everlong.wire.fields import dump
from everlong.wire.formats.format import Rules
from everlong.wire.formats.validation import argument_fault, clean_json, strict_json
from everlong.wire.repair.draft import Change

__all__ = ["closings", "repair_arguments", "repaired_arguments"]

LONGEST_LITERAL = 100_000  # characters; Python's parser is not meant for more
STRUCTURE = re.compile(r'[{}\[\],]|"(?:[^"\\]++|\\.)*+("?)', re.DOTALL)
HALF_ESCAPE = re.compile(r"(?<!\\)(?:\\\\)*+(\\(?:u[0-9a-fA-F]{0,3})?)\Z")
CLOSERS = {"{": "}", "[": "]"}


def repair_arguments(message: Message, rules: Rules) -> Change | None:
    """Repair the arguments of every call of the message."""
    broken = [call.id for call in message.calls if argument_fault(call.arguments, as_object=rules.object_arguments)]
    if not broken:
        return None
    parts = tuple(_repaired_call(part, rules) for part in message.parts)
    return Change((message.with_parts(parts),), tuple(f"arguments of call {call} could not be read" for call in broken))


def repaired_arguments(arguments: JsonText) -> JsonText:
    """Return a JSON object with as much of the arguments as can be read.

    Example: '{"path": "a.py", "text": "def' -> '{"path":"a.py","text":"def"}';  "ls -l" -> "{}"
    """
    text = clean_json(arguments)
    for attempt in ATTEMPTS:
        try:
            written = dump(_as_object(attempt(text)))
            strict_json(written)
        except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError, WireError):
            continue
        return clean_json(written)
    return "{}"


def closings(text: str) -> tuple[str, str]:
    """Return truncated JSON in two forms: with everything open closed, and without its last, unfinished member.

    Example: '{"a": [1, {"b": "x' -> '{"a": [1, {"b": "x"}]}', '{"a": [1, {}]}'
    """
    stack: list[str] = []
    closed_since: list[str] = []
    kept, end = 0, text
    for found in STRUCTURE.finditer(text):
        sign = found[0][0]
        if sign in CLOSERS:
            stack.append(CLOSERS[sign])
        elif sign in "}]" and stack:
            closed_since.append(stack.pop())
        elif sign == '"' and not found[1]:
            end = text[: len(text) - len(_half_escape(text))] + '"'
        if sign in CLOSERS or sign == ",":
            kept, closed_since = found.end() - (sign == ","), []
    whole = "".join(reversed(stack))
    return end + whole, text[:kept] + "".join(closed_since) + whole


def _half_escape(text: str) -> str:
    found = HALF_ESCAPE.search(text)
    return found[1] if found else ""


def _repaired_call(part: Part, rules: Rules) -> Part:
    if not isinstance(part, ToolCall) or not argument_fault(part.arguments, as_object=rules.object_arguments):
        return part
    return replace(part, arguments=repaired_arguments(part.arguments))


def _as_object(value: Json) -> JsonObject:
    """Return a value as an object. Arguments that were encoded as JSON twice are decoded again."""
    if isinstance(value, str):
        try:
            value = strict_json(value)
        except ValueError:
            return {"value": value}
    if isinstance(value, dict):
        return value
    return {} if value is None else {"value": value}


def _lenient(text: str) -> Json:
    return cast(Json, json.loads(text, strict=False, parse_constant=lambda _: None))


def _closed(text: str) -> Json:
    return _lenient(closings(text)[0])


def _leading_object(text: str) -> Json:
    value, _ = json.JSONDecoder(strict=False).raw_decode(text.lstrip())
    if not isinstance(value, dict):
        raise ValueError("not an object")
    return cast(Json, value)


def _literal(text: str) -> Json:
    if len(text) > LONGEST_LITERAL:
        raise ValueError("too long for a literal")
    return cast(Json, ast.literal_eval(text.strip()))


def _cut_back(text: str) -> Json:
    return _lenient(closings(text)[1])


ATTEMPTS: tuple[Callable[[str], Json], ...] = (_lenient, _closed, _leading_object, _literal, _cut_back)

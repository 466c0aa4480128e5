"""Texts that cannot travel: halves of surrogate pairs, and arguments that are no JSON.

Python strings may hold a lone surrogate (a cut through an emoji, a stored escape); UTF-8 cannot.
JSON is read strictly here: no NaN, no raw line ends inside strings, no nesting that providers refuse.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn, cast

from everlong.core import Json, Message, Part, Reasoning, Role, ToolCall, ToolResult
from everlong.wire.fields import dump

__all__ = [
    "Problem",
    "argument_fault",
    "blank",
    "has_surrogate",
    "may_hold",
    "misplaced",
    "strict_json",
    "surrogate_problems",
]


@dataclass(frozen=True, slots=True)
class Problem:
    """One reason to reject a request: where it is ("messages[3]") and what is wrong, in words."""

    where: str
    text: str

    def __str__(self) -> str:
        return f"{self.where}: {self.text}"


_SURROGATE = re.compile("[\ud800-\udfff]")

MAX_DEPTH = 100  # the smallest limit among the providers' own JSON readers


def blank(text: Json) -> bool:
    """Whether there is nothing to read in it. Only a string can be blank."""
    return isinstance(text, str) and not text.strip()


def has_surrogate(text: str) -> bool:
    """Whether the text cannot be written as UTF-8."""
    return not text.isascii() and _SURROGATE.search(text) is not None


def strict_json(text: str) -> Json:
    """The value, or ValueError. Example: '{"a": NaN}' -> ValueError"""
    try:
        value = cast(Json, json.loads(text, parse_constant=_refuse))
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if text.count("[") + text.count("{") > MAX_DEPTH and _depth(value) > MAX_DEPTH:
        raise ValueError("nested too deeply")
    return value


def argument_fault(arguments: Json, *, as_object: bool = False) -> str | None:
    """Why these are no arguments that can be sent as text, or None.

    Example: '{"path": "a' -> "are not JSON"
    """
    if not isinstance(arguments, str):
        return "are no JSON text"
    try:
        value = strict_json(arguments)
    except ValueError:
        return "are not JSON"
    if as_object and not isinstance(value, dict):
        return "are no object"
    # Escapes such as "\\ud83d" are plain ASCII in the text; they show only when it is read.
    return "hold half a surrogate pair" if "\\u" in arguments and has_surrogate(dump(value)) else None


def surrogate_problems(payload: Json) -> Iterator[Problem]:
    """Every string that holds half a surrogate pair, keys too."""
    yield from _search(payload, "")


def _search(value: Json, where: str) -> Iterator[Problem]:
    if isinstance(value, str):
        if has_surrogate(value):
            yield Problem(where, "text holds half a surrogate pair")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _search(item, f"{where}[{index}]")
    elif isinstance(value, dict):
        for key, item in value.items():
            if has_surrogate(key):
                yield Problem(where, "a key holds half a surrogate pair")
            else:
                yield from _search(item, f"{where}.{key}" if where else key)


def _depth(value: Json) -> int:
    depth, level = 0, [value]
    while level:
        level = [item for nested in level for item in _items(nested)]
        depth += 1
    return depth


def _items(value: Json) -> list[Json]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


def misplaced(message: Message) -> bool:
    """Whether a part is in a place where no provider accepts it and no format could write it."""
    if not all(may_hold(message.role, part) or isinstance(part, ToolResult) for part in message.parts):
        return True
    results = len(message.results)
    if message.role is not Role.TOOL:
        return results > 0
    return results == 0 or not all(isinstance(part, ToolResult) for part in message.parts[:results])


def may_hold(role: Role, part: Part) -> bool:
    """Whether a message of this role may hold a part; results are looked at apart."""
    return not isinstance(part, ToolResult) and (role is Role.ASSISTANT or not isinstance(part, ToolCall | Reasoning))

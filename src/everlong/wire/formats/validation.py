"""Values that cannot travel: halves of surrogate pairs, NaN, endless nesting, and arguments that are no JSON.

Python strings may hold a lone surrogate (a cut through an emoji, a stored escape); UTF-8 cannot.
JSON is read strictly here: no NaN, no raw line ends inside strings, no nesting that providers refuse.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import isfinite
from typing import NoReturn, cast

from everlong.core import Json, Message, Part, Reasoning, Role, ToolCall, ToolResult
from everlong.errors import WireError
from everlong.wire.fields import dump, shown

__all__ = [
    "Problem",
    "argument_fault",
    "blank",
    "clean_json",
    "clean_text",
    "has_escaped_surrogate",
    "has_surrogate",
    "may_hold",
    "misplaced",
    "strict_json",
    "tool_problems",
    "unwritable_problems",
]


@dataclass(frozen=True, slots=True)
class Problem:
    """One reason to reject a request: where it is ("messages[3]") and what is wrong, in words."""

    where: str
    text: str

    def __str__(self) -> str:
        return f"{self.where}: {self.text}"


LONGEST_PLACE = 80  # characters of a place that is shown
_SURROGATE = re.compile("[\ud800-\udfff]")

ESCAPED = re.compile(r"\\u[dD][89a-fA-F]")
#: What Python writes for numbers that JSON does not have.
NO_NUMBERS = ("NaN", "Infinity")

MAX_DEPTH = 100  # the smallest limit among the providers' own JSON readers
#: The same for a whole request: what a message carries stands some levels deep in it.
MAX_BODY_DEPTH = MAX_DEPTH + 20


def blank(text: Json) -> bool:
    """Whether there is nothing to read in it. Only a string can be blank."""
    return isinstance(text, str) and not text.strip()


def has_surrogate(text: str) -> bool:
    """Whether the text cannot be written as UTF-8."""
    return not text.isascii() and _SURROGATE.search(text) is not None


def has_escaped_surrogate(text: str) -> bool:
    """Whether JSON text may hold half a pair as an escape, such as \\ud83d."""
    return ESCAPED.search(text) is not None


def clean_text(text: str) -> str:
    """The text as UTF-8 can write it. Example: "a\\ud83d" -> "a\\ufffd" """
    if not has_surrogate(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def clean_json(text: str) -> str:
    """JSON text without NaN and without halves, also those written as escapes; untouched if it has neither."""
    text = clean_text(text)
    if not has_escaped_surrogate(text) and not any(sign in text for sign in NO_NUMBERS):
        return text
    odd: list[str] = []
    try:
        written = dump(cast(Json, json.loads(text, parse_constant=odd.append)))  # append gives None, which is null
    except (ValueError, RecursionError, WireError):
        return text
    return clean_text(written) if odd or has_surrogate(written) else text


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


def unwritable_problems(payload: Json) -> Iterator[Problem]:
    """Every value that strict JSON in UTF-8 cannot say, keys too; and nesting that no provider reads."""
    if _writable(payload):
        return
    waiting: list[tuple[Json, str, int]] = [(payload, "", 1)]
    while waiting:
        value, where, depth = waiting.pop()
        if isinstance(value, str):
            if has_surrogate(value):
                yield Problem(where, "text holds half a surrogate pair")
        elif isinstance(value, float):
            if not isfinite(value):
                yield Problem(where, f"{value} is no JSON")
        elif depth > MAX_BODY_DEPTH and _items(value):
            yield Problem(_short(where), "is nested too deeply")
        elif isinstance(value, list):
            waiting += [(item, f"{where}[{index}]", depth + 1) for index, item in reversed([*enumerate(value)])]
        elif isinstance(value, dict):
            yield from (Problem(where, "a key holds half a surrogate pair") for key in value if has_surrogate(str(key)))
            readable = [(key, item) for key, item in reversed(value.items()) if not has_surrogate(str(key))]
            waiting += [(item, f"{where}.{key}" if where else str(key), depth + 1) for key, item in readable]


def tool_problems(tools: Json, fault: Callable[[Json], str]) -> Iterator[Problem]:
    """What is wrong with the tools of a request; `fault` looks at one declaration."""
    if tools is not None and not isinstance(tools, list):
        yield Problem("tools", f"is a list, not {shown(tools)}")
        return
    for index, tool in enumerate(tools or ()):
        said = fault(tool)
        if said:
            yield Problem(f"tools[{index}]", said)


def _writable(payload: Json) -> bool:
    """The quick answer, for nearly every payload: it is written once, and its brackets are counted."""
    try:
        text = json.dumps(payload, ensure_ascii=False, allow_nan=False)
    except (ValueError, RecursionError):
        return False
    if has_surrogate(text):
        return False
    return text.count("[") + text.count("{") <= MAX_BODY_DEPTH or _depth(payload) <= MAX_BODY_DEPTH


def _short(where: str) -> str:
    return where if len(where) <= LONGEST_PLACE else f"{where[:LONGEST_PLACE]}…"


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

"""Find values that cannot be sent: lone surrogates, NaN, deep nesting, and arguments that are not JSON.

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
    """One reason to reject a request: where it is ("messages[3]") and what is wrong."""

    where: str
    text: str

    def __str__(self) -> str:
        return f"{self.where}: {self.text}"


LONGEST_PLACE = 80  # characters of a place in an error
AT_ONCE = 65_536  # characters of a text that are encoded at once

ESCAPED = re.compile(r"\\u[dD][89a-fA-F]")
#: How Python writes numbers that JSON does not have.
NO_NUMBERS = ("NaN", "Infinity")

MAX_DEPTH = 100  # the smallest limit among the providers' own JSON readers
#: The same for a whole request, in which the contents of a message are some levels deep.
MAX_BODY_DEPTH = MAX_DEPTH + 20


def blank(text: Json) -> bool:
    """Whether a value is a string without visible characters."""
    return isinstance(text, str) and not text.strip()


def has_surrogate(text: str) -> bool:
    """Whether the text has a lone surrogate, so that UTF-8 cannot encode it."""
    if text.isascii():
        return False
    try:
        for at in range(0, len(text), AT_ONCE):
            text[at : at + AT_ONCE].encode()  # a pattern would take twenty times as long
    except UnicodeEncodeError:
        return True
    return False


def has_escaped_surrogate(text: str) -> bool:
    """Whether JSON text may have a surrogate as an escape, such as \\ud83d."""
    return ESCAPED.search(text) is not None


def clean_text(text: str) -> str:
    """Return the text with lone surrogates replaced. Example: "a\\ud83d" -> "a\\ufffd" """
    if not has_surrogate(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def clean_json(text: str) -> str:
    """Return JSON text without NaN and lone surrogates, escaped ones too; unchanged if it has none."""
    text = clean_text(text)
    if not has_escaped_surrogate(text) and not any(sign in text for sign in NO_NUMBERS):
        return text
    odd: list[str] = []
    try:
        written = dump(cast(Json, json.loads(text, parse_constant=odd.append)))  # append returns None, that is null
    except (ValueError, RecursionError, WireError):
        return text
    return clean_text(written) if odd or has_surrogate(written) else text


def strict_json(text: str) -> Json:
    """Parse strict JSON. Raises ValueError. Example: '{"a": NaN}' -> ValueError"""
    try:
        value = cast(Json, json.loads(text, parse_constant=_refuse))
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if text.count("[") + text.count("{") > MAX_DEPTH and _depth(value) > MAX_DEPTH:
        raise ValueError("nested too deeply")
    return value


def argument_fault(arguments: Json, *, as_object: bool = False) -> str | None:
    """Return why these arguments cannot be sent as text, or None.

    Example: '{"path": "a' -> "are not JSON"
    """
    if not isinstance(arguments, str):
        return "are not JSON text"
    try:
        value = strict_json(arguments)
    except ValueError:
        return "are not JSON"
    if as_object and not isinstance(value, dict):
        return "are not an object"
    # Escapes such as "\\ud83d" are plain ASCII in the text; only the decoded value shows the surrogate.
    return "contain half a surrogate pair" if "\\u" in arguments and has_surrogate(dump(value)) else None


def unwritable_problems(payload: Json) -> Iterator[Problem]:
    """Yield every value or key that strict JSON in UTF-8 cannot express, and nesting that no provider accepts."""
    if _writable(payload):
        return
    waiting: list[tuple[Json, str, int]] = [(payload, "", 1)]
    while waiting:
        value, where, depth = waiting.pop()
        if isinstance(value, str):
            if has_surrogate(value):
                yield Problem(where, "text contains half a surrogate pair")
        elif isinstance(value, float):
            if not isfinite(value):
                yield Problem(where, f"{value} is not JSON")
        elif depth > MAX_BODY_DEPTH and _items(value):
            yield Problem(_short(where), "is nested too deeply")
        elif isinstance(value, list):
            waiting += [(item, f"{where}[{index}]", depth + 1) for index, item in reversed([*enumerate(value)])]
        elif isinstance(value, dict):
            yield from (
                Problem(where, "a key contains half a surrogate pair") for key in value if has_surrogate(str(key))
            )
            readable = [(key, item) for key, item in reversed(value.items()) if not has_surrogate(str(key))]
            waiting += [(item, f"{where}.{key}" if where else str(key), depth + 1) for key, item in readable]


def tool_problems(tools: Json, fault: Callable[[Json], str]) -> Iterator[Problem]:
    """Yield what is wrong with the tools of a request; `fault` checks one declaration."""
    if tools is not None and not isinstance(tools, list):
        yield Problem("tools", f"must be a list, not {shown(tools)}")
        return
    for index, tool in enumerate(tools or ()):
        said = fault(tool)
        if said:
            yield Problem(f"tools[{index}]", said)


def _writable(payload: Json) -> bool:
    """Whether a payload has no problem: a fast check, level by level, that settles nearly every payload."""
    level: list[Json] = [payload]
    for _ in range(MAX_BODY_DEPTH):
        below: list[Json] = []
        for value in level:
            if isinstance(value, str):
                if has_surrogate(value):
                    return False
            elif isinstance(value, dict):
                if any(has_surrogate(str(key)) for key in value):
                    return False
                below.extend(value.values())
            elif isinstance(value, list):
                below.extend(value)
            elif isinstance(value, float) and not isfinite(value):
                return False
        if not below:
            return True
        level = below
    return False


def _short(where: str) -> str:
    return where if len(where) <= LONGEST_PLACE else f"{where[:LONGEST_PLACE]}…"


def _depth(value: Json) -> int:
    depth, level = 1, [value] if _items(value) else []
    while level:
        depth += 1
        # Only non-empty lists and objects go deeper; texts, which are nearly all values, are skipped.
        level = [
            item
            for nested in level
            for item in (nested.values() if isinstance(nested, dict) else cast("list[Json]", nested))
            if isinstance(item, dict | list) and item
        ]
    return depth


def _items(value: Json) -> list[Json]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def misplaced(message: Message) -> bool:
    """Whether a part of the message is where no provider accepts it and no format could write it."""
    if not all(may_hold(message.role, part) or isinstance(part, ToolResult) for part in message.parts):
        return True
    results = len(message.results)
    if message.role is not Role.TOOL:
        return results > 0
    return results == 0 or not all(isinstance(part, ToolResult) for part in message.parts[:results])


def may_hold(role: Role, part: Part) -> bool:
    """Whether a message of this role may contain a part; results are checked separately."""
    return not isinstance(part, ToolResult) and (role is Role.ASSISTANT or not isinstance(part, ToolCall | Reasoning))

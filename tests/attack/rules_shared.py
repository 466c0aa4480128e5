"""What the rules of all providers share: texts, JSON text, types of blocks, tools."""

import json
from collections.abc import Callable, Iterator
from typing import Any

from tests.attack.bodies import Payload

__all__ = ["declared", "filled", "function_tool", "is_of", "listed", "read_json", "whole_text"]


def filled(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def read_json(text: Any) -> Any:
    """The value of JSON text; `read_json` itself if it is none, because null is a value."""
    try:
        return json.loads(text, parse_constant=_refuse) if isinstance(text, str) else read_json
    except (ValueError, RecursionError):
        return read_json


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def whole_text(text: str) -> bool:
    """Whether a JSON text holds no escape of half a surrogate pair."""
    try:
        json.dumps(json.loads(text), ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return False
    return True


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def is_of(value: Any, *kinds: str) -> bool:
    return isinstance(value, dict) and isinstance(value.get("type"), str) and value["type"] in kinds


def declared(body: Payload, problem: Callable[[Any], str]) -> Iterator[str]:
    tools = body.get("tools")
    if tools is not None and not isinstance(tools, list):
        yield "tools: no array"
    for at, tool in enumerate(listed(tools)):
        said = problem(tool)
        if said:
            yield f"tools[{at}]: {said}"


def function_tool(function: Any) -> str:
    if not isinstance(function, dict) or not filled(function.get("name")):
        return "no name"
    parameters = function.get("parameters")
    return "" if parameters is None or isinstance(parameters, dict) else "parameters are no object"

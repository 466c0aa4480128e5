"""What a call is known by when it comes again: its id, its tool and what it was called with.

Ids alone do not do: some servers count from zero in every conversation. Arguments are compared as values, because
clients write them anew.
"""

import json
from collections.abc import Callable
from typing import TypeAlias

from everlong.core import Json, JsonObject, JsonText, ref_of
from everlong.wire import CALLS

__all__ = ["Find", "call_id", "call_key", "kept_for", "keys_of"]

#: Marks of arguments as they were written, by their hash: a client sends the same ones with every request.
_MARKS: dict[str, str] = {}
MOST_MARKS = 20_000

#: What was kept under a key, None if nothing.
Find: TypeAlias = Callable[[str], JsonText | None]


def call_id(fmt: str, call: Json) -> str | None:
    """The id of an entry of `tool_calls`, a block or an item; "" if it has none, None if it is no call."""
    if not isinstance(call, dict):
        return None
    kind = str(call.get("type"))
    if (fmt == "anthropic" and kind != "tool_use") or (fmt == "openai-responses" and kind not in CALLS):
        return None
    found = call.get("call_id" if fmt == "openai-responses" else "id")
    return found if isinstance(found, str) else ""


def call_key(fmt: str, call: JsonObject) -> str:
    """The key of a call that has an id.

    Example: {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {}} -> toolu_1:8a5d…
    """
    if fmt == "openai-chat":
        function = call.get("function") or call.get("custom")
        inner = function if isinstance(function, dict) else {}
        mark = _mark(inner.get("name"), inner.get("arguments", inner.get("input")))
    elif fmt == "anthropic":
        mark = _mark(call.get("name"), call.get("input"))
    else:
        kind = CALLS[str(call["type"])]
        mark = _mark(call.get("name"), call.get(kind.payload))
    return f"{call_id(fmt, call)}:{mark}"


def keys_of(fmt: str, call: JsonObject, kept: JsonText) -> dict[str, JsonText]:
    """What is to be kept for a call: the text under its key, and under its id that there is something."""
    return {call_id(fmt, call) or "": "", call_key(fmt, call): kept}


def kept_for(fmt: str, call: JsonObject, find: Find) -> JsonText | None:
    """What was kept for a call. Most calls have nothing, and their arguments are then not looked at."""
    return None if find(call_id(fmt, call) or "") is None else find(call_key(fmt, call))


def _mark(name: Json, arguments: Json) -> str:
    if not isinstance(arguments, str):
        return _mark_of(name, arguments)
    known = ref_of(f"{name}\n{arguments}")
    mark = _MARKS.get(known)
    if mark is None:
        if len(_MARKS) >= MOST_MARKS:
            _MARKS.clear()
        mark = _MARKS[known] = _mark_of(name, _value(arguments))
    return mark


def _value(arguments: str) -> Json:
    try:
        value: Json = json.loads(arguments) if arguments.strip() else {}
    except (ValueError, RecursionError):
        return arguments
    return value


def _mark_of(name: Json, arguments: Json) -> str:
    try:
        return ref_of(json.dumps([name, _plain(arguments)], sort_keys=True))
    except RecursionError:
        return ref_of(str(name))


def _plain(value: Json) -> Json:
    """Numbers in one form: some clients write 1.0 as 1."""
    match value:
        case dict():
            plain: JsonObject = {name: _plain(inner) for name, inner in value.items()}
            return plain
        case list():
            return [_plain(inner) for inner in value]
        case float() if value.is_integer():
            return int(value)
        case _:
            return value

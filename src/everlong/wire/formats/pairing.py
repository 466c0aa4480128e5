"""Calls without ids: which result answers which call, in formats that pair them by name and order.

A call that was written without an id gets one of ours, which is never sent; the hint `id` of its `extra` says so.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import cast

from everlong.core import CallId, Message, Part, ToolCall, ToolResult
from everlong.wire.fields import pack, unpack

__all__ = ["paired", "written_id"]


def paired(messages: Iterable[Message]) -> tuple[Message, ...]:
    """The messages with an id on every call, and every result under the id of its call.

    A result without an id takes the first open call of its name; one without a name too, the first that is open. Calls
    are open until the next calls after a result: one that was never answered does not take the answer of a later one.

    Example: call f, call f, response f, response f -> call_f_0, call_f_1, call_f_0, call_f_1
    """
    numbers: Counter[str] = Counter()
    still_open: list[ToolCall] = []
    answered = False
    out = []
    for message in messages:
        parts: list[Part] = []
        for part in message.parts:
            match part:
                case ToolCall():
                    if answered:
                        still_open, answered = [], False
                    call = part if part.id else replace(part, id=_numbered(part.name, numbers))
                    still_open.append(call)
                    parts.append(call)
                case ToolResult():
                    answered = True
                    parts.append(_answer(part, still_open, numbers))
                case _:
                    parts.append(part)
        out.append(message.with_parts(tuple(parts)))
    return tuple(out)


def written_id(part: ToolCall | ToolResult) -> str | None:
    """The id under which a part was written in its own format; None if it had none."""
    shape = unpack(part.extra)[1]
    if shape.get("id") == "absent":
        return None
    return cast(str, shape.get("written", part.id if isinstance(part, ToolCall) else part.call))


def _answer(result: ToolResult, still_open: list[ToolCall], numbers: Counter[str]) -> ToolResult:
    call = _call_of(result, still_open)
    if call is None:
        return result if result.call else replace(result, call=_numbered(result.name, numbers))
    still_open.remove(call)
    if result.call in ("", call.id):
        return replace(result, call=call.id)
    fields, shape = unpack(result.extra)
    return replace(result, call=call.id, extra=pack(fields, **{**shape, "written": result.call}))


def _call_of(result: ToolResult, still_open: list[ToolCall]) -> ToolCall | None:
    for call in still_open:
        if result.call and call.id == result.call:
            return call
    for call in still_open:
        if result.name in ("", call.name) and not (result.call and written_id(call)):
            return call
    return None


def _numbered(name: str, numbers: Counter[str]) -> CallId:
    numbers[name] += 1
    return CallId(f"call_{name}_{numbers[name] - 1}")

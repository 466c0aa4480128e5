"""Which Gemini result answers which call, where the ids are missing.

Owns the ids of calls that came without one. They depend on what stands before only, so the same
conversation, grown longer, keeps them; how an id was written stays in the part's hints.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from everlong.core import CallId, Message, Part, ToolCall, ToolResult
from everlong.wire.fields import pack, unpack
from everlong.wire.gemini_parts import written_id

__all__ = ["paired"]


def paired(messages: Iterable[Message]) -> tuple[Message, ...]:
    """The messages with an id on every call, and every result under the id of its call.

    A result without an id takes the first open call of its name. Calls are open until the next calls
    after a result: one that was never answered does not take the answer of a later one.

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
        if call.name == result.name and not (result.call and written_id(call)):
            return call
    return None


def _numbered(name: str, numbers: Counter[str]) -> CallId:
    numbers[name] += 1
    return CallId(f"call_{name}_{numbers[name] - 1}")

"""Pair calls with results in formats without call ids, by name and order.

A call without an id gets one of ours, which is never sent; the hint `id` in its `extra` marks it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import cast

from everlong.core import CallId, History, Message, Part, Role, ToolCall, ToolResult
from everlong.wire.fields import pack, unpack

__all__ = ["paired", "paired_after", "written_id"]


def paired(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Return the messages with an id for every call, and every result with the id of its call.

    A result without an id answers the first open call with its name; without a name, the first open call. Calls are
    open until the next call after a result, so an unanswered call does not take the result of a later one.

    Example: call f, call f, response f, response f -> call_f_0, call_f_1, call_f_0, call_f_1
    """
    return tuple(map(_Pairing().take, messages))


def paired_after(before: Sequence[History], new: Sequence[History]) -> list[History]:
    """Return new messages, read one by one, paired with the calls in the messages before them.

    Our ids contain the position of the call, so that none is used twice.
    """
    pairing = _Pairing()
    for unit in before[_open_since(before) :]:
        for message in unit:
            pairing.take(message)
    out: list[History] = []
    for at, unit in enumerate(new, len(before)):
        pairing.place = f"{at}_"
        out.append(tuple(pairing.take(_as_written(message)) for message in unit))
    return out


def written_id(part: ToolCall | ToolResult) -> str | None:
    """Return the id that a part had in its own format; None if it had none."""
    own = part.id if isinstance(part, ToolCall) else part.call
    if '"id"' not in part.extra and '"written"' not in part.extra:  # without these hints it is as it was written
        return own
    shape = unpack(part.extra)[1]
    return None if shape.get("id") == "absent" else cast(str, shape.get("written", own))


def _open_since(before: Sequence[History]) -> int:
    """Return where the latest calls begin."""
    at, found = len(before), False
    while at > 0:
        unit = before[at - 1]
        found = found or any(message.calls for message in unit)
        if found and any(message.role is not Role.ASSISTANT for message in unit):
            return at
        at -= 1
    return at


def _as_written(message: Message) -> Message:
    """Return the message without the ids that it got when it was read alone."""
    parts = tuple(_unnamed(part) for part in message.parts)
    if all(new is old for new, old in zip(parts, message.parts, strict=True)):
        return message
    return message.with_parts(parts)


def _unnamed(part: Part) -> Part:
    match part:
        case ToolCall() if not written_id(part):
            return replace(part, id=CallId(""))
        case ToolResult() if not written_id(part):
            return replace(part, call=CallId(""))
        case _:
            return part


class _Pairing:
    """Gives ids to calls and results, message by message."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._open: list[ToolCall] = []
        self._answered = False
        #: A part of the ids that are made.
        self.place = ""

    def take(self, message: Message) -> Message:
        """Return the message with ids."""
        parts = tuple(self._paired(part) for part in message.parts)
        if all(new is old for new, old in zip(parts, message.parts, strict=True)):
            return message
        return message.with_parts(parts)

    def _paired(self, part: Part) -> Part:
        match part:
            case ToolCall():
                if self._answered:
                    self._open, self._answered = [], False
                call = part if part.id else replace(part, id=self._numbered(part.name))
                self._open.append(call)
                return call
            case ToolResult():
                self._answered = True
                return self._answer(part)
            case _:
                return part

    def _answer(self, result: ToolResult) -> ToolResult:
        call = _call_of(result, self._open)
        if call is None:
            return result if result.call else replace(result, call=self._numbered(result.name))
        self._open.remove(call)
        if result.call == call.id:
            return result
        if not result.call:
            return replace(result, call=call.id)
        fields, shape = unpack(result.extra)
        return replace(result, call=call.id, extra=pack(fields, **{**shape, "written": result.call}))

    def _numbered(self, name: str) -> CallId:
        number = self._numbers.get(name, 0)
        self._numbers[name] = number + 1
        return CallId(f"call_{self.place}{name}_{number}")


def _call_of(result: ToolResult, still_open: list[ToolCall]) -> ToolCall | None:
    for call in still_open:
        if result.call and call.id == result.call:
            return call
    for call in still_open:
        if result.name in ("", call.name) and not (result.call and written_id(call)):
            return call
    return None

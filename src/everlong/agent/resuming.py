"""Calls that were made and never answered: after a crash, an interrupt, a kill. Each gets a result, none is run again.

Whether such a call did its work before it was cut off cannot be known, so the model is told just that and decides.
"""

import asyncio
from collections import Counter as Tally
from collections.abc import Sequence

from everlong.core import Message, Role, Text, ToolCall, ToolResult
from everlong.engine import Engine, whole
from everlong.errors import NoThread

__all__ = ["CRASHED", "INTERRUPTED", "close_calls", "open_calls"]

LOOKED_BACK = (4, 64, 1_000)  # messages, until an answer is among them; results may be large, so few are read first
CRASHED = {
    "en": "[interrupted: the program ended before a result was kept. The call may or may not have done its work; "
    "look before you make it again.]",
    "zh": "[已中断：程序在保存结果之前结束。该调用可能已执行，也可能未执行；再次调用前请先检查。]",
}
INTERRUPTED = {
    "en": "[interrupted by the user: there is no result. The call may have done part of its work.]",
    "zh": "[已被用户中断：没有结果。该调用可能已完成一部分。]",
}


def open_calls(messages: Sequence[Message]) -> tuple[ToolCall, ...]:
    """The calls of the newest answer that have no result yet, in their order.

    Example: user, calls(a, b), result(a) -> b; user, calls(a), result(a), answer -> none
    """
    newest = next((at for at in range(len(messages) - 1, -1, -1) if messages[at].role is Role.ASSISTANT), None)
    if newest is None:
        return ()
    results = Tally(result.call for message in messages[newest + 1 :] for result in message.results)
    left = []
    for call in messages[newest].calls:
        if results[call.id] > 0:
            results[call.id] -= 1
        else:
            left.append(call)
    return tuple(left)


async def close_calls(engine: Engine, thread: str, reason: str) -> tuple[ToolCall, ...]:
    """Give every open call of the thread the reason as its failed result; the calls. Never half-done."""
    return await whole(_close(engine, thread, reason))


async def _close(engine: Engine, thread: str, reason: str) -> tuple[ToolCall, ...]:
    try:
        calls = open_calls(await asyncio.to_thread(_newest, engine, thread))
    except NoThread:
        return ()
    if calls:
        await engine.append(thread, [_result(call, reason) for call in calls])
    return calls


def _newest(engine: Engine, thread: str) -> list[Message]:
    """The newest messages, back to an answer of the model."""
    found: list[Message] = []
    for many in LOOKED_BACK:
        rows = engine.threads.last(thread, many)
        found = [row.entry for row in rows if isinstance(row.entry, Message)]
        if len(rows) < many or any(message.role is Role.ASSISTANT for message in found):
            break
    return found


def _result(call: ToolCall, reason: str) -> Message:
    return Message(Role.TOOL, (ToolResult(call.id, (Text(reason),), name=call.name, failed=True),))

"""Calls and results of older rounds are left out; what was said stays.

The thoughts around a call go with it: providers reject them without the call that they led to. A call whose
result is protected stays with it, and the other way round. A message left with nothing goes.
"""

from collections.abc import Iterator

from everlong.compress.draft import OURS, Draft, Task, rounds_in
from everlong.compress.text.changes import Cause, Change, rewrite
from everlong.core import Reasoning, ToolCall, ToolResult, pairs_of

__all__ = ["tool_rounds"]


def tool_rounds(draft: Draft, task: Task, *, rounds: int = 2) -> Draft:
    """Leave out the calls and results older than the last `rounds` rounds.

    Example, rounds=1: user, call, result, assistant, user -> user, assistant, user
    """
    known = rounds_in(draft)
    if len(known) <= rounds:
        return draft
    stop = known[-rounds].start if rounds > 0 else len(draft.slots)
    cause = Cause("tool_rounds", f"tool use older than the last {rounds} rounds")
    return rewrite(draft, task, cause, list(_left_out(draft, stop)))


def _left_out(draft: Draft, stop: int) -> Iterator[Change]:
    bound = _bound_to_protected(draft)
    for position, slot in draft.open():
        if position >= stop:
            break
        parts = slot.message.parts
        gone = [
            index
            for index, part in enumerate(parts)
            if isinstance(part, ToolCall | ToolResult) and (position, index) not in bound
        ]
        calls_left = any(isinstance(part, ToolCall) and index not in gone for index, part in enumerate(parts))
        if gone and not calls_left:
            gone += [index for index, part in enumerate(parts) if isinstance(part, Reasoning)]
        yield from (Change(position, index, None) for index in sorted(gone))


def _bound_to_protected(draft: Draft) -> set[tuple[int, int]]:
    """Calls and results whose counterpart may not be touched."""
    fixed = {n for n, slot in enumerate(draft.slots) if slot.at == OURS or slot.at in draft.protected}
    pairs = pairs_of(draft.messages)
    calls = {pair.call for pair in pairs if pair.call[0] in fixed or pair.result[0] in fixed}
    return calls | {pair.result for pair in pairs if pair.call in calls}

"""Calls and results of older rounds are left out; what was said stays. A question without its answer is no round yet.

The thoughts around a call go with it: providers reject them without the call that they led to. A call whose
result is protected stays with it, and the other way round. A message left with nothing goes.
"""

from collections.abc import Iterator

from everlong.compress.draft import OURS, Draft, Task, rounds_in
from everlong.compress.text.changes import Cause, Change, rewrite
from everlong.core import History, Reasoning, Role, ToolCall, ToolResult, pairs_of

__all__ = ["tool_rounds"]


def tool_rounds(draft: Draft, task: Task, *, rounds: int = 2) -> Draft:
    """Leave out the calls and results older than the last `rounds` answered rounds.

    Example, rounds=1: user, call, result, assistant, user, assistant, user -> user, assistant, user, assistant, user
    """
    stop = _first_kept(draft, rounds)
    cause = Cause("tool_rounds", f"tool use older than the last {rounds} rounds")
    return rewrite(draft, task, cause, list(_left_out(draft, stop))) if stop else draft


def _first_kept(draft: Draft, rounds: int) -> int:
    """Where the oldest of the last answered rounds begins; what is running stays too. 0 if there are no more."""
    known = rounds_in(draft)
    answered = [each.start for each in known if _answered(draft.messages[each.start : each.stop])]
    running = known[-1].start if known and known[-1].start not in answered else len(draft.slots)
    starts = [*answered, running]
    return starts[-1 - rounds] if len(starts) > rounds else 0


def _answered(messages: History) -> bool:
    """Whether the assistant had the last word, and wants nothing more."""
    return messages[-1].role is Role.ASSISTANT and not messages[-1].calls


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

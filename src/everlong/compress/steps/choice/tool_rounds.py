"""Leave out calls and results of older rounds; text stays. A question without its answer is not a round yet.

The reasoning around a call goes with it: providers reject reasoning without its call. A call stays if its result is
protected, and vice versa. A message that becomes empty goes.
"""

from collections.abc import Iterator

from everlong.compress.draft import OURS, Draft, Task, rounds_in
from everlong.compress.text.changes import Cause, Change, rewrite
from everlong.core import History, Reasoning, Role, ToolCall, ToolResult, pairs_of

__all__ = ["tool_rounds"]


def tool_rounds(draft: Draft, task: Task, *, rounds: int = 2) -> Draft:
    """Leave out tool calls and results older than the last `rounds` answered rounds.

    Example, rounds=1: user, call, result, assistant, user, assistant, user -> user, assistant, user, assistant, user
    """
    stop = _first_kept(draft, rounds)
    cause = Cause("tool_rounds", f"tool use older than the last {rounds} rounds")
    return rewrite(draft, task, cause, list(_left_out(draft, stop))) if stop else draft


def _first_kept(draft: Draft, rounds: int) -> int:
    """Return where the last `rounds` answered rounds begin; 0 if there are no more. The current round stays too."""
    known = rounds_in(draft)
    answered = [each.start for each in known if _answered(draft.messages[each.start : each.stop])]
    running = known[-1].start if known and known[-1].start not in answered else len(draft.slots)
    starts = [*answered, running]
    return starts[-1 - rounds] if len(starts) > rounds else 0


def _answered(messages: History) -> bool:
    """Whether the last message is an assistant's and has no calls."""
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
    """Return the calls and results whose counterpart is protected."""
    fixed = {n for n, slot in enumerate(draft.slots) if slot.at == OURS or slot.at in draft.protected}
    pairs = pairs_of(draft.messages)
    calls = {pair.call for pair in pairs if pair.call[0] in fixed or pair.result[0] in fixed}
    return calls | {pair.result for pair in pairs if pair.call in calls}

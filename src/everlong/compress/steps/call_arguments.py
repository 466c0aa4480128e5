"""Long texts inside the arguments of older calls are replaced by a description of what was there.

Except in the step that is still under way, and in calls that a provider signed.
"""

from everlong.compress.draft import Draft, Task, last_round_at
from everlong.compress.text.argument_texts import described
from everlong.compress.text.changes import Cause, Change, Origins, rewrite
from everlong.core import Role, ToolCall

__all__ = ["call_arguments"]

CAUSE = Cause("call_arguments", "long text in the arguments of an older call")


def call_arguments(draft: Draft, task: Task, *, longest: int = 1_000, keep_last_round: bool = True) -> Draft:
    """Replace every text above `longest` characters, except in the step that is still under way."""
    origins = Origins(draft)
    spared = _last_assistant(draft)
    if keep_last_round:
        spared = min(spared, last_round_at(draft))
    changes = []
    for position, slot in draft.open():
        if slot.at >= spared:
            break
        for index, part in enumerate(slot.message.parts):
            if isinstance(part, ToolCall):
                now = described(part, origins.ref(slot, index), longest)
                if now is not None:
                    changes.append(Change(position, index, now))
    return rewrite(draft, task, CAUSE, changes)


def _last_assistant(draft: Draft) -> int:
    """Where the newest calls stand, whose results may not have been read."""
    roles = [message.role for message in draft.history]
    return len(roles) - 1 - roles[::-1].index(Role.ASSISTANT) if Role.ASSISTANT in roles else 0

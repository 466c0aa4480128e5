"""Replace long texts in the arguments of older calls by a description.

The step in progress and calls that the provider signed stay unchanged.
"""

from everlong.compress.draft import Draft, Task, last_round_at
from everlong.compress.text.argument_texts import described
from everlong.compress.text.changes import Cause, Change, Origins, rewrite
from everlong.core import Role, ToolCall

__all__ = ["call_arguments"]

CAUSE = Cause("call_arguments", "long text in the arguments of an older call")


def call_arguments(draft: Draft, task: Task, *, longest: int = 1_000, keep_last_round: bool = True) -> Draft:
    """Replace every argument text above `longest` characters, except in the step that is still in progress."""
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
    """Return the index of the newest assistant message: the results of its calls may still be unread."""
    roles = [message.role for message in draft.history]
    return len(roles) - 1 - roles[::-1].index(Role.ASSISTANT) if Role.ASSISTANT in roles else 0

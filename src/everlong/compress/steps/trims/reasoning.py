"""Leave out the reasoning of older rounds: the model still sees its outcome.

All reasoning of a message goes, or none. Reasoning that the provider wants back stays, whatever the settings are. A
message with nothing else goes.
"""

from everlong.compress.draft import Draft, Task, bound_reasoning, last_round_at
from everlong.compress.text.changes import Cause, Change, rewrite
from everlong.core import Reasoning

__all__ = ["reasoning"]

CAUSE = Cause("reasoning", "reasoning of an older step")


def reasoning(draft: Draft, task: Task, *, longest: int = 0, keep_last_round: bool = True) -> Draft:
    """Leave out the reasoning of messages if it has more than `longest` characters; 0 leaves all of it out.

    Example: user, [reasoning, text], user -> user, [text], user
    """
    bound = bound_reasoning(draft, task)
    spared = last_round_at(draft) if keep_last_round else len(draft.history)
    changes = []
    for position, slot in draft.open():
        if slot.at >= spared or position in bound:
            continue
        thoughts = [(index, part) for index, part in enumerate(slot.message.parts) if isinstance(part, Reasoning)]
        size = sum(len(thought.text or thought.signature) for _, thought in thoughts)
        if longest == 0 or size > longest:
            changes += [Change(position, index, None) for index, _ in thoughts]
    return rewrite(draft, task, CAUSE, changes)

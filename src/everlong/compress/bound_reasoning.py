"""Which thoughts a provider wants back: the one home of the question "may this reasoning go?".

Thoughts go or stay for a whole message at once, and none is ever shortened: signatures cover all of it.
"""

import re

from everlong.compress.draft import Draft, Task
from everlong.compress.turns import last_round_at
from everlong.core import Message, Reasoning

__all__ = ["bound_reasoning"]

#: Models that refuse a call that comes back without the thoughts that led to it, in whatever turn.
WANTED_WITH_CALLS = re.compile(r"deepseek|kimi|moonshot|mimo", re.IGNORECASE)
#: Formats whose thoughts are signed: while a tool loop is open, its turns come back as they were.
SIGNED = frozenset({"anthropic", "gemini", "openai-responses"})


def bound_reasoning(draft: Draft, task: Task) -> frozenset[int]:
    """Positions of the messages that must keep their reasoning, whatever a step was told.

    Example, anthropic: user, thought + call, result (not read yet) -> {1}
    """
    loop = last_round_at(draft) if draft.history and draft.history[-1].results else len(draft.history)
    with_calls = WANTED_WITH_CALLS.search(task.model) is not None
    return frozenset(
        position
        for position, slot in enumerate(draft.slots)
        if (with_calls and slot.message.calls) or (slot.at >= loop and (task.fmt in SIGNED or _signed(slot.message)))
    )


def _signed(message: Message) -> bool:
    return any(isinstance(part, Reasoning) and part.signature for part in message.parts)

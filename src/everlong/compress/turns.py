"""Rounds as steps see them: messages that we added begin none, and the last one starts with the last question."""

from everlong.compress.draft import OURS, Draft
from everlong.core import Role, Round, Step, head_length, last_user_index, steps_of

__all__ = ["firm_steps", "last_round_at", "rounds_in"]


def last_round_at(draft: Draft) -> int:
    """The index in the history from which on everything belongs to the last round; past its end if nobody asked."""
    asked = last_user_index(draft.history)
    return len(draft.history) if asked is None else asked


def rounds_in(draft: Draft) -> tuple[Round, ...]:
    """The rounds of the draft, after the leading system text, as positions.

    Example: system, user, assistant, ours, user -> rounds [1, 4) and [4, 5)
    """
    head = head_length(draft.messages)
    groups: list[list[Step]] = []
    for step in steps_of(draft.messages):
        if step.start < head:
            continue
        first = draft.slots[step.start]
        if not groups or (first.message.role is Role.USER and first.at != OURS):
            groups.append([])
        groups[-1].append(step)
    return tuple(Round(steps[0].start, steps[-1].stop, tuple(steps)) for steps in groups)


def firm_steps(draft: Draft) -> frozenset[Step]:
    """The steps that stay, because something in them is protected or ours: a step stays or goes as a whole."""
    return frozenset(
        step
        for step in steps_of(draft.messages)
        if any(slot.at == OURS or slot.at in draft.protected for slot in draft.slots[step.start : step.stop])
    )

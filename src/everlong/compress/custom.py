"""A strategy of one's own as a step: any function from messages and a size to messages.

The function says what should stay; which messages it left out, changed or added is found by comparing,
so that its edits are reported like everyone else's.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from everlong.compress.draft import OURS, Draft, Slot, Step, Task
from everlong.core.edits import Action, Edit
from everlong.core.messages import History, Message
from everlong.core.refs import message_ref

__all__ = ["Strategy", "step_from"]

Strategy: TypeAlias = Callable[[History, int], Sequence[Message]]


def step_from(strategy: Strategy, name: str) -> Step:
    """The strategy as a step of a preset. It is asked only when the draft is above the target."""

    def step(draft: Draft, task: Task) -> Draft:
        if draft.total <= task.target:
            return draft
        return _compared(draft, tuple(strategy(draft.messages, task.target)), task, name)

    return step


def _compared(draft: Draft, chosen: History, task: Task, name: str) -> Draft:
    """Walk both lists: what is in both stays; what is only in one was left out, or is new."""
    slots: list[Slot] = []
    edits: list[Edit] = []
    at = 0
    for message in chosen:
        found = next((n for n in range(at, len(draft.slots)) if draft.slots[n].message == message), None)
        if found is None:
            tokens = task.counter.message(message)
            slots.append(Slot(OURS, message, tokens))
            edits.append(_inserted(draft, at, name, tokens))
            continue
        edits += [_dropped(draft, n, name) for n in range(at, found) if draft.slots[n].at != OURS]
        slots.append(draft.slots[found])
        at = found + 1
    edits += [_dropped(draft, n, name) for n in range(at, len(draft.slots)) if draft.slots[n].at != OURS]
    total = sum(slot.tokens for slot in slots)
    return Draft(draft.history, tuple(slots), (*draft.edits, *edits), draft.protected, total)


def _dropped(draft: Draft, position: int, name: str) -> Edit:
    slot = draft.slots[position]
    return Edit(
        at=slot.at,
        step=name,
        action=Action.DROP,
        reason="left out by the strategy",
        before=slot.tokens,
        after=0,
        ref=message_ref(draft.history[slot.at]),
    )


def _inserted(draft: Draft, position: int, name: str, tokens: int) -> Edit:
    place = draft.slots[min(position, len(draft.slots) - 1)].at if draft.slots else 0
    reason = "put in by the strategy"
    return Edit(at=max(0, place), step=name, action=Action.INSERT, reason=reason, before=0, after=tokens)

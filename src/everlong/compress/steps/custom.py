"""A strategy of one's own as a step: any function from messages and a size to messages.

The function says what should stay; which messages it left out, changed or added is found by comparing,
so that its edits are reported like everyone else's. What is protected stays, whatever the function says.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from everlong.compress.draft import OURS, Draft, Slot, Step, Task
from everlong.core import Action, Edit, History, Message, message_ref, steps_of

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
    places: defaultdict[Message, list[int]] = defaultdict(list)
    for position, slot in enumerate(draft.slots):
        places[slot.message].append(position)
    must_stay = _steps_of_protected(draft)
    slots: list[Slot] = []
    edits: list[Edit] = []
    at = 0

    def pass_by(stop: int) -> None:
        """What the strategy did not name before `stop`."""
        for position in range(at, stop):
            if position in must_stay:
                slots.append(draft.slots[position])
            elif draft.slots[position].at != OURS:
                edits.append(_dropped(draft, position, name))

    for message in chosen:
        equal = places.get(message, [])
        ahead = bisect_left(equal, at)
        if ahead == len(equal):
            tokens = task.counter.message(message)
            slots.append(Slot(OURS, message, tokens))
            edits.append(_inserted(draft, at, name, tokens))
            continue
        pass_by(equal[ahead])
        slots.append(draft.slots[equal[ahead]])
        at = equal[ahead] + 1
    pass_by(len(draft.slots))
    total = sum(slot.tokens for slot in slots)
    return replace(draft, slots=tuple(slots), edits=(*draft.edits, *edits), total=total)


def _steps_of_protected(draft: Draft) -> set[int]:
    """Positions of what may not be touched, each with the calls and results it belongs to."""
    steps = (range(step.start, step.stop) for step in steps_of(draft.messages))
    return {n for step in steps if any(draft.slots[m].at in draft.protected for m in step) for n in step}


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

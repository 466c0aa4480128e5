"""Use your own functions as steps: functions that compress messages or assemble a request.

The function returns the messages that should stay. Its edits are found by comparison and reported like those of any
other step. Protected messages stay whatever the function returns.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from everlong.compress.draft import OURS, Draft, Slot, Step, Task
from everlong.core import Action, Edit, History, Message, head_length, last_user_index, message_ref, steps_of

__all__ = ["Assembler", "Compressor", "assembled_by", "compressed_by", "step_from"]

#: A pure function that gets a history and a number of tokens, and returns the messages that should stay.
Compressor: TypeAlias = Callable[[History, int], Sequence[Message]]
#: A pure function that assembles a request from system text, history and the current round.
Assembler: TypeAlias = Callable[[History, History, History], Sequence[Message]]


def compressed_by(compressor: Compressor) -> Step:
    """Return a compressor as a step that runs for every request."""
    name = getattr(compressor, "__name__", "compressor")
    return lambda draft, task: _compared(draft, tuple(compressor(draft.messages, task.target)), task, name)


def assembled_by(assembler: Assembler) -> Step:
    """Return an assembler as a step that runs for every request."""
    name = getattr(assembler, "__name__", "assembler")

    def step(draft: Draft, task: Task) -> Draft:
        messages = draft.messages
        head = head_length(messages)
        asked = last_user_index(messages)
        now = len(messages) if asked is None or asked < head else asked
        return _compared(draft, tuple(assembler(messages[:head], messages[head:now], messages[now:])), task, name)

    return step


def step_from(strategy: Compressor, name: str) -> Step:
    """Return a strategy as a step. It runs only if the draft is above the target."""

    def step(draft: Draft, task: Task) -> Draft:
        if draft.total <= task.target:
            return draft
        return _compared(draft, tuple(strategy(draft.messages, task.target)), task, name)

    return step


def _compared(draft: Draft, chosen: History, task: Task, name: str) -> Draft:
    """Compare both lists: messages in both stay, messages in only one were dropped or added."""
    places: defaultdict[Message, list[int]] = defaultdict(list)
    for position, slot in enumerate(draft.slots):
        places[slot.message].append(position)
    must_stay = _steps_of_protected(draft)
    slots: list[Slot] = []
    edits: list[Edit] = []
    at = 0

    def pass_by(stop: int) -> None:
        """Handle the messages before `stop` that the strategy left out."""
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
    """Return the positions of protected messages, with the calls and results of their steps."""
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
    reason = "added by the strategy"
    return Edit(at=max(0, place), step=name, action=Action.INSERT, reason=reason, before=0, after=tokens)

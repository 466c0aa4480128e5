"""A request under construction: its messages, the changes so far, and what steps must not touch.

A `Draft` starts as the history itself and passes from step to step; each step returns a new one. It records all edits,
so every change has its message, reason, sizes and reference. A step never changes protected messages (system text,
pins, the last user message, results the model has not read yet, the task); `Draft.open` lists the others. This module
also finds rounds, and reasoning that must stay.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from everlong.core import (
    Action,
    Edit,
    History,
    Message,
    Protection,
    Reasoning,
    Ref,
    Round,
    Step as MessageStep,
    last_user_index,
    message_ref,
    protected,
    rounds_of,
    steps_of,
)
from everlong.relevance import Index
from everlong.tokens import Counter

__all__ = [
    "OURS",
    "Draft",
    "Slot",
    "Step",
    "Task",
    "bound_reasoning",
    "draft_of",
    "firm_steps",
    "firm_tokens",
    "last_round_at",
    "rounds_in",
]

OURS = -1  # the `at` of a message that we added


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What the steps have to do: the target, the counter, and what they may use.

    - `target`: the tokens that messages may have after a compaction; `limit`: the most they may have at all (0: the
      target).
    - `counter`, `model`, `window`: the token counter, the model's name, and its whole context window.
    - `keeps_thinking`: whether the provider wants the reasoning of an open tool loop back unchanged.
    - `pins`: the indexes of pinned messages.
    - `recall`: the tool that returns the original of a reference; markers mention it only if there is one.
    - `language`: the language of the text that steps add: "en" or "zh".
    - `index`: the index of what left the window before; None if a step should make one.
    - `reply`: the tokens kept free for the reply.
    - `uncovered`: the index of the first message that no summary covers; None if no summaries are written.
    - `keeps_task`: whether the task and the newest version of what the client repeats are protected.
    - `newest`: how many of the newest messages stay; None to let the step decide.
    """

    target: int
    counter: Counter
    limit: int = 0
    window: int = 128_000
    keeps_thinking: bool = False
    model: str = ""
    pins: frozenset[int] = frozenset()
    recall: str = ""
    language: str = "en"
    index: Index | None = None
    reply: int = 0
    uncovered: int | None = None
    keeps_task: bool = False
    newest: int | None = None


@dataclass(frozen=True, slots=True)
class Slot:
    """A message as it would be sent, and its index in the history (`OURS` if we added it)."""

    at: int
    message: Message
    tokens: int


@dataclass(frozen=True, slots=True)
class Draft:
    """The request so far. `history` is the input and never changes."""

    history: History
    slots: tuple[Slot, ...]
    edits: tuple[Edit, ...] = ()
    protected: Mapping[int, Protection] = field(default_factory=dict, hash=False)
    total: int = field(default=0)

    def open(self) -> Iterable[tuple[int, Slot]]:
        """Yield (position, slot) of everything that a step may change, oldest first."""
        return ((n, slot) for n, slot in enumerate(self.slots) if slot.at != OURS and slot.at not in self.protected)

    @property
    def messages(self) -> History:
        """The messages that would be sent."""
        return tuple(slot.message for slot in self.slots)

    def with_messages(self, changes: Sequence[tuple[int, Message, int]], edits: Iterable[Edit]) -> "Draft":
        """Return the draft with several slots changed: (position, message, tokens)."""
        slots = list(self.slots)
        total = self.total
        for position, message, tokens in changes:
            total += tokens - slots[position].tokens
            slots[position] = Slot(slots[position].at, message, tokens)
        return replace(self, slots=tuple(slots), edits=(*self.edits, *edits), total=total)

    def without(
        self, positions: Iterable[int], step: str, reason: str, ref: Callable[[int, Message], Ref] | None = None
    ) -> "Draft":
        """Return the draft without the slots at these positions, with an edit and a reference for each.

        `ref` returns the reference of a message, if it is already known.
        """
        gone = set(positions)
        edits = tuple(
            Edit(
                at=slot.at,
                step=step,
                action=Action.DROP,
                reason=reason,
                before=slot.tokens,
                after=0,
                ref=message_ref(self.history[slot.at]) if ref is None else ref(slot.at, self.history[slot.at]),
            )
            for n, slot in enumerate(self.slots)
            if n in gone and slot.at != OURS
        )
        kept = tuple(slot for n, slot in enumerate(self.slots) if n not in gone)
        return replace(self, slots=kept, edits=(*self.edits, *edits), total=sum(slot.tokens for slot in kept))

    def with_inserted(self, position: int, message: Message, tokens: int, edit: Edit) -> "Draft":
        """Return the draft with a new message before `position`."""
        slots = (*self.slots[:position], Slot(OURS, message, tokens), *self.slots[position:])
        return replace(self, slots=slots, edits=(*self.edits, edit), total=self.total + tokens)


Step: TypeAlias = Callable[[Draft, Task], Draft]


def draft_of(history: Sequence[Message], task: Task) -> Draft:
    """Return a draft of the unchanged history."""
    given = tuple(history)
    slots = tuple(Slot(at, message, task.counter.message(message)) for at, message in enumerate(given))
    guarded = protected(given, task.pins, keeps_task=task.keeps_task)
    return Draft(given, slots, (), guarded, sum(slot.tokens for slot in slots))


def last_round_at(draft: Draft) -> int:
    """Return the index in the history where the last round begins; the history's length if there is no user message."""
    question = last_user_index(draft.history)
    return len(draft.history) if question is None else question


def rounds_in(draft: Draft) -> tuple[Round, ...]:
    """Return the rounds of the draft, after the leading system text, as positions.

    Example: system, user, assistant, ours, user -> rounds [1, 4) and [4, 5)
    """
    return rounds_of(draft.messages, {position for position, slot in enumerate(draft.slots) if slot.at == OURS})


def firm_steps(draft: Draft) -> frozenset[MessageStep]:
    """Return the steps that stay because a message in them is protected or ours. A step stays or goes as a whole."""
    return frozenset(
        step
        for step in steps_of(draft.messages)
        if any(slot.at == OURS or slot.at in draft.protected for slot in draft.slots[step.start : step.stop])
    )


def firm_tokens(draft: Draft) -> int:
    """Return the tokens of the steps that stay."""
    return sum(slot.tokens for step in firm_steps(draft) for slot in draft.slots[step.start : step.stop])


#: Models that refuse a call without the reasoning that led to it, in any turn.
WANTED_WITH_CALLS = re.compile(r"deepseek|kimi|moonshot|mimo", re.IGNORECASE)


def bound_reasoning(draft: Draft, task: Task) -> frozenset[int]:
    """Return the positions of messages that must keep their reasoning, whatever the settings of a step are.

    Example, anthropic: user, thought + call, result (not read yet) -> {1}
    """
    loop = last_round_at(draft) if draft.history and draft.history[-1].results else len(draft.history)
    with_calls = WANTED_WITH_CALLS.search(task.model) is not None
    return frozenset(
        position
        for position, slot in enumerate(draft.slots)
        if (with_calls and slot.message.calls) or (slot.at >= loop and (task.keeps_thinking or _signed(slot.message)))
    )


def _signed(message: Message) -> bool:
    return any(isinstance(part, Reasoning) and part.signature for part in message.parts)

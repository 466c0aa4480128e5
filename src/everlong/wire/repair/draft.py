"""A history on its way through the passes, with a note of every change.

Passes are pure functions from draft to draft. Most of them look at one message at a time: those are
written as a `Fix` and lifted by `each`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from everlong.core import History, Message
from everlong.wire.formats.format import Rules

__all__ = ["Change", "Draft", "Fix", "Note", "Pass", "Placed", "each"]


@dataclass(frozen=True, slots=True)
class Placed:
    """A message and the index it had in the input; what a pass adds has the index of what it belongs to."""

    at: int
    message: Message


@dataclass(frozen=True, slots=True)
class Note:
    """What was changed at an index of the input, and why."""

    at: int
    reason: str


@dataclass(frozen=True, slots=True)
class Draft:
    """Messages so far, and notes so far."""

    placed: tuple[Placed, ...]
    notes: tuple[Note, ...] = ()

    @property
    def messages(self) -> History:
        """The messages alone."""
        return tuple(item.message for item in self.placed)

    def changed(self, placed: list[Placed], notes: list[Note]) -> "Draft":
        """The next draft."""
        return replace(self, placed=tuple(placed), notes=(*self.notes, *notes))


@dataclass(frozen=True, slots=True)
class Change:
    """What becomes of one message: none, one or several, and why."""

    messages: tuple[Message, ...]
    reasons: tuple[str, ...]


Pass: TypeAlias = Callable[[Draft, Rules], Draft]
Fix: TypeAlias = Callable[[Message, Rules], Change | None]


def each(fix: Fix) -> Pass:
    """A pass that fixes every message by itself; None from the fix means that it is fine."""

    def run(draft: Draft, rules: Rules) -> Draft:
        placed: list[Placed] = []
        notes: list[Note] = []
        for item in draft.placed:
            change = fix(item.message, rules)
            if change is None:
                placed.append(item)
                continue
            placed += [Placed(item.at, message) for message in change.messages]
            notes += [Note(item.at, reason) for reason in change.reasons]
        return draft.changed(placed, notes) if notes else draft

    return run

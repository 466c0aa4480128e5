"""A history during repair, with a note of every change.

Passes are pure functions from draft to draft. Most need only one message at a time: these are a `Fix`, which `each`
turns into a pass.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from everlong.core import History, Message
from everlong.wire.formats.format import Rules

__all__ = ["Change", "Draft", "Fix", "Note", "Pass", "Placed", "each"]


@dataclass(frozen=True, slots=True)
class Placed:
    """A message and its index in the input. A message added by a pass has the index of the one it belongs to."""

    at: int
    message: Message


@dataclass(frozen=True, slots=True)
class Note:
    """A change at an index in the input: its reason."""

    at: int
    reason: str


@dataclass(frozen=True, slots=True)
class Draft:
    """The messages and notes so far."""

    placed: tuple[Placed, ...]
    notes: tuple[Note, ...] = ()

    @property
    def messages(self) -> History:
        """The messages without their indexes."""
        return tuple(item.message for item in self.placed)

    def changed(self, placed: list[Placed], notes: list[Note]) -> "Draft":
        """Return the next draft."""
        return replace(self, placed=tuple(placed), notes=(*self.notes, *notes))


@dataclass(frozen=True, slots=True)
class Change:
    """The replacement of one message (none, one or several messages), and the reasons."""

    messages: tuple[Message, ...]
    reasons: tuple[str, ...]


Pass: TypeAlias = Callable[[Draft, Rules], Draft]
Fix: TypeAlias = Callable[[Message, Rules], Change | None]


def each(fix: Fix) -> Pass:
    """Return a pass that fixes every message by itself. The fix returns None for a message that needs nothing."""

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

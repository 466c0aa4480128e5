"""Cases: a conversation, and the texts that must still be there when its history is brought under a budget.

Each measure makes its own cases (`measures/`); this module only says what a case is.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from everlong.core import Message
from everlong.lab.data import Conversation

__all__ = ["Case", "Cases", "every"]


@dataclass(frozen=True, slots=True)
class Case:
    """The history before message `at`, followed by the question if there is one; `wanted` must be found in it.

    `groups` are the groups of the case. Example: (("kind", "path"), ("source", "entireio/cli"))
    """

    at: int
    wanted: tuple[str, ...]
    groups: tuple[tuple[str, str], ...] = ()
    question: Message | None = None


@dataclass(frozen=True, slots=True)
class Cases:
    """The cases of one conversation, in order."""

    conversation: Conversation
    cases: tuple[Case, ...]


def every(cases: Iterable[Cases], step: int) -> list[Cases]:
    """Return every `step`-th case of all, in order, without conversations that have none left."""
    number = 0
    thinned = []
    for group in cases:
        chosen = tuple(case for at, case in enumerate(group.cases, number) if at % step == 0)
        number += len(group.cases)
        if chosen:
            thinned.append(Cases(group.conversation, chosen))
    return thinned

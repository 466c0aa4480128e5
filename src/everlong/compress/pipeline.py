"""Two moments, no others: a message is shaped on arrival, and the history is cut.

On arrival each message is shaped once, by itself alone, and keeps that form. A cut runs the preset's steps
in order until the target is reached; below them lies one floor for all presets, which fits or says in
figures why nothing can.
"""

from dataclasses import dataclass, replace

from everlong.compress.draft import Draft, Step, Task
from everlong.compress.steps.emergency import floor
from everlong.core import Protection, protected

__all__ = ["Preset", "arrive", "cut", "when_close"]

CLOSE = 1.3  # a draft at most this many times the target may fit without losing anything


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """A named way to keep a conversation inside its window: steps with their settings."""

    name: str
    #: Shape each message by itself; the same form for ever after.
    arrival: tuple[Step, ...] = ()
    #: Bring the whole under the target, cheapest loss first.
    cut: tuple[Step, ...] = ()
    #: The document wants its cut steps before every call, full or not.
    every_call: bool = False


def arrive(draft: Draft, task: Task, preset: Preset) -> Draft:
    """The draft with each message in its arrival form. Unread results take theirs too: it is what will be read."""
    if not preset.arrival:
        return draft
    kept = protected(draft.history, task.pins)
    shaped = replace(draft, protected=frozenset(at for at, why in kept.items() if why is not Protection.UNREAD))
    for step in preset.arrival:
        shaped = step(shaped, task)
    return replace(shaped, protected=draft.protected)


def cut(draft: Draft, task: Task, preset: Preset) -> Draft:
    """The draft brought under the target. Raises BudgetImpossible where nothing can."""
    for step in preset.cut:
        if draft.total <= task.target and not preset.every_call:
            return draft
        draft = step(draft, task)
    return floor(draft, task)


def when_close(step: Step) -> Step:
    """The step, where it could make the difference: what saves a tenth is not tried on ten times too much."""

    def tried(draft: Draft, task: Task) -> Draft:
        return step(draft, task) if task.target < draft.total <= CLOSE * task.target else draft

    return tried

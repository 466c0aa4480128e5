"""Run the steps of a preset, at two moments: when a message arrives, and when the history is compacted.

On arrival, each message is shaped once, independently of others, and keeps that form. A compaction runs the preset's
steps in order until the target is reached. If they are not enough, the preset's emergency makes the draft fit, or
raises an error with the sizes.
"""

from dataclasses import replace

from everlong.compress.draft import Draft, Step, Task
from everlong.compress.preset import Preset
from everlong.core import Protection

__all__ = ["arrive", "compact", "when_close"]

CLOSE = 1.3  # a draft of at most this many times the target may fit without loss


def arrive(draft: Draft, task: Task, preset: Preset) -> Draft:
    """Return the draft with each message in its arrival form, unread results included."""
    if not preset.arrival:
        return draft
    kept = {at: why for at, why in draft.protected.items() if why is not Protection.UNREAD}
    shaped = replace(draft, protected=kept)
    for step in preset.arrival:
        shaped = step(shaped, task)
    return replace(shaped, protected=draft.protected)


def compact(draft: Draft, task: Task, preset: Preset) -> Draft:
    """Return the draft brought under the target. Raises BudgetImpossible if that is not possible."""
    for step in preset.steps:
        if draft.total <= task.target and not preset.every_call:
            return draft
        draft = step(draft, task)
    for step in preset.emergency:
        if draft.total <= task.target:
            break
        draft = step(draft, task)
    return draft


def when_close(step: Step) -> Step:
    """Return the step, run only if the draft is close enough to the target for the step to be enough."""

    def tried(draft: Draft, task: Task) -> Draft:
        return step(draft, task) if task.target < draft.total <= CLOSE * task.target else draft

    return tried

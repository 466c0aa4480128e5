"""If all tool results together take too much of the window, replace some by one line each, oldest first.

A placeholder names the tool, the file it worked on and the original size. The step stops as soon as the rest is under
the limit. Results of the last round may stay, and more important results may outlast newer ones.
"""

from collections.abc import Callable

from everlong.compress.draft import Draft, Task, last_round_at
from everlong.compress.text.changes import Cause, Change, Origins, rewrite
from everlong.compress.text.tool_results import PlacedResult, placeholder, results_in

__all__ = ["hard_trim"]

CAUSE = Cause("hard_trim", "all tool results together exceed their share of the window; oldest first")


def hard_trim(
    draft: Draft,
    task: Task,
    *,
    share: float | None = 0.5,
    keep_last_round: bool = True,
    rank: Callable[[PlacedResult], int] = lambda _: 0,
) -> Draft:
    """Bring all results together down to `share` of the window (None: the draft to its target), lowest rank first.

    Example: window 1 000, results of 300, 300 and 300 tokens -> the first two become placeholders
    """
    results = list(results_in(draft, task.counter))
    total = sum(found.tokens for found in results)
    limit = total - (draft.total - task.target) if share is None else int(task.window * share)
    spared = last_round_at(draft) if keep_last_round else len(draft.history)
    origins = Origins(draft)
    changes: list[Change] = []
    for found in sorted(results, key=rank):  # stable: oldest first among equals
        if total <= limit:
            break
        line = placeholder(found, origins, task) if found.open and found.slot.at < spared else None
        if line is not None:
            changes.append(line[0])
            total -= line[1]
    return rewrite(draft, task, CAUSE, changes)

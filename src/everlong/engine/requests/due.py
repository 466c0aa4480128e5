"""When a compaction is due: the reason for one now, and the size of a request at which the next one comes."""

from dataclasses import dataclass

from everlong.core import Budget, Point
from everlong.engine.budget import CallBudget, budget_of
from everlong.engine.contracts import Call, Threads
from everlong.engine.requests.situation import asks_model
from everlong.engine.settings import Settings
from everlong.engine.thread import CallContext
from everlong.engine.view import View
from everlong.windows import Registry

__all__ = ["Due", "due_at", "first_due", "margin_before", "next_due", "reason_to_compact"]

SAME_SIZE = 0.9  # of what fits now; a point made for a smaller size was made for another window
# How many tokens before the threshold a summary starts, in a tool loop and at the end of a turn, and at most which
# share of the movable part. A summary that is too late for its compaction is used by the next one; a summary that
# starts too early may be paid for in vain.
STEP, TURN = (1_500, 0.05), (2_500, 0.15)


def reason_to_compact(context: CallContext, view: View) -> str:
    """Return why a compaction is due now; "" if none is."""
    budget, state = context.budget, context.state
    if view.tokens > budget.limit:  # the limit excludes the answer and the margin: the prompt alone may still fit
        return "larger than the window" if budget.true(view.tokens) > budget.parts.window else "threshold reached"
    if state.undone or view.tokens <= _renewed_at(context):
        return ""
    if view.tokens > budget.threshold:
        return "threshold reached"
    idle = None if state.called_at is None else (context.engine.clock() - state.called_at).total_seconds()
    wanted = max(0, budget.limit - budget.parts.fixed) * budget.parts.threshold / context.settings.threshold_share
    cold = budget.parts.fixed + context.settings.cold_mark * wanted  # also scaled to a soft cap
    if idle is not None and idle > context.settings.cache_seconds and view.tokens > cold:
        return "cold cache"
    return ""


def _renewed_at(context: CallContext) -> int:
    """Return the size of a view up to which too little is new since the last compaction for another one.

    What must stay may be larger than the target. -1 if there was no compaction, or if it was for another model or
    window.
    """
    row = context.state.opened.point
    if row is None or not isinstance(row.entry, Point) or row.entry.model != context.call.model:
        return -1
    made_for_this = row.entry.limit > SAME_SIZE * context.budget.empty_limit
    return row.entry.tokens_after + context.budget.renewal - 1 if made_for_this else -1


@dataclass(frozen=True, slots=True)
class Due:
    """When the next compaction comes, in the provider's tokens of a request. Every surface shows these figures.

    From `soon` on, a summary starts at the end of a turn; above `at`, a request is compacted before it is sent. If no
    summary starts before, both are the same.
    """

    soon: int
    at: int


def next_due(context: CallContext) -> Due | None:
    """Return when the next compaction of the thread comes; None if its preset does not use the threshold.

    That is at the threshold. After an undo it is at the limit, where a compaction is unavoidable. After a compaction it
    is not before enough is new.
    """
    budget, settings = context.budget, context.settings
    if not settings.heeds_threshold or settings.untouched:
        return None
    most, threshold = budget.messages + budget.parts.tools, budget.true_threshold
    early = asks_model(settings, context.state)
    if context.state.undone:
        return _due_of(budget, most, early=early)
    renewed = _renewed_at(context)
    if budget.preset.every_call:
        new = context.state.new_tokens(0)
        stuck = new is not None and -new + budget.parts.tools >= threshold
        renewed = budget.renewal - (new or 0) if stuck else -1
    at = threshold if renewed <= budget.threshold else max(threshold, budget.true(renewed))
    return _due_of(budget, min(at, most), early=early)


def due_at(threads: Threads, settings: Settings, call: Call, *, registry: Registry | None = None) -> int:
    """Return the provider's tokens of a request, tools included, at which a compaction is due.

    Example: preset chatbox, window 200,000, nothing set -> (200,000 - 32,000) x 0.6 = 100,800
    """
    return budget_of(threads, settings, call, registry=registry).true_threshold


def first_due(threads: Threads, settings: Settings, call: Call, *, registry: Registry | None = None) -> Due | None:
    """Return when the first compaction of a new thread comes; None if the preset does not use the threshold."""
    if not settings.heeds_threshold:
        return None
    budget = budget_of(threads, settings, call, registry=registry)
    return _due_of(budget, budget.true_threshold, early=settings.summarises)


def _due_of(budget: CallBudget, at: int, *, early: bool) -> Due:
    """Return when a compaction at `at` comes.

    With `early`, a model's summary starts before it, if the preset allows that.
    """
    margin = margin_before(at, budget.parts) if early and not budget.preset.every_call else 0
    return Due(at - margin, at)


def margin_before(due: int, parts: Budget, *, in_loop: bool = False) -> int:
    """Return how many provider tokens before a compaction at `due` its summary starts.

    The margin is larger at the end of a turn than after a step of a tool loop, because the next question may be long.
    """
    tokens, share = STEP if in_loop else TURN
    return max(0, int(min(tokens, share * (due - parts.tools - parts.fixed))))

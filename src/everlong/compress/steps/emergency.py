"""The last resort if nothing else made the request fit. It needs no model and always terminates.

`floor` removes only as much as the target requires. `emergency` does what the documents describe after an overflow:
results that were read become one line each, reasoning goes, and only the last rounds stay, then fewer. System text,
pins and the last user message stay byte for byte, and calls stay with their results. If what must stay is too large,
the task, context that the client repeats and unread results are cut to head and tail, largest first. This is the only
exception to what a step may touch, and it comes first, because then other messages may not have to go. If nothing fits,
an error names the parts.
"""

import math
from collections import Counter as Tally
from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

from everlong.compress.draft import OURS, Draft, Task, bound_reasoning, firm_steps, firm_tokens, rounds_in
from everlong.compress.text.argument_texts import described
from everlong.compress.text.boundaries import Cut, cut_characters, fair_cap
from everlong.compress.text.changes import Cause, Change, Origins, rewrite
from everlong.compress.text.tool_results import PlacedResult, placeholder, results_in, shortened, texts_at
from everlong.core import Protection, Reasoning, Step, ToolCall, part_ref, safe_cuts, steps_of
from everlong.errors import BudgetImpossible

__all__ = ["emergency", "floor"]

STEP = "emergency"
LEAN = Cause(STEP, "the request does not fit: results are cut to one line, reasoning and long arguments are removed")
UNREAD = Cause(STEP, "the messages that must stay do not fit: the result was cut before the model read it")
TOO_LARGE = Cause(STEP, "the messages that must stay do not fit: cut to the beginning and the end")
OLDER = "the request does not fit: only the newest messages are kept"

CALLS = "their tool calls and results"
ADDED = "added summaries and excerpts"

LEAST_SHARE = 3  # unread results may take 1/3 of the target, whatever else there is
#: The share of the target that these keep if something else can be cut too, in the order of cutting.
SPARED = ((Protection.TASK, 0.1), (Protection.CONTEXT, 0.25))
SMALLEST_EXCERPT = 150  # tokens; a smaller excerpt says no more than one line
LONGEST_ARGUMENT = 500  # characters
WIDE_CHARACTERS = 6  # characters per token, more than in most texts: the first guess for the size that fits
TAIL_SHARE = 1 / 3


def floor(draft: Draft, task: Task) -> Draft:
    """Return the draft within the target, or raise BudgetImpossible with the parts that must stay and their sizes."""
    for stage in (_kept_cut, _oldest_lines, _lean, _oldest_out):
        if draft.total <= task.target:
            return draft
        draft = stage(draft, task)
    if draft.total > task.target:
        raise BudgetImpossible(task.target, _parts(draft))
    return draft


def emergency(
    draft: Draft,
    task: Task,
    *,
    keep: tuple[int, ...] = (5, 2),
    unit: Literal["rounds", "messages"] = "rounds",
    share: float = 0.6,
) -> Draft:
    """Bring a draft under the target, and under `share` of the window if possible, whatever it takes.

    Every result that was read becomes one line, reasoning goes, and only the last rounds (or messages) stay: as many as
    the first of `keep` says, or the next one if that is still too much.
    """
    goal = replace(task, target=min(task.target, int(task.window * share)))
    draft = _lean(_kept_cut(draft, goal), task)
    for count in keep:
        draft = _only_newest(draft, count, unit)
        if draft.total <= goal.target:
            return draft
    reachable = firm_tokens(draft) <= goal.target
    return floor(_oldest_out(draft, goal) if reachable else draft, task)


# --- shortening ------------------------------------------------------------------------------------


def _oldest_lines(draft: Draft, task: Task) -> Draft:
    """Replace results that were read by one line each, oldest first, until the draft fits."""
    return rewrite(draft, task, LEAN, list(_lines(draft, task, draft.total - task.target)))


def _lines(draft: Draft, task: Task, excess: float) -> Iterator[Change]:
    origins = Origins(draft)
    for found in results_in(draft, task.counter):
        if excess <= 0:
            return
        line = placeholder(found, origins, task, least=1) if found.open else None
        if line is not None:
            excess -= line[1]
            yield line[0]


def _lean(draft: Draft, task: Task) -> Draft:
    """Shorten everything as far as possible without dropping messages."""
    origins, bound = Origins(draft), bound_reasoning(draft, task)
    changes = list(_lines(draft, task, math.inf))
    for position, slot in draft.open():
        for index, part in enumerate(slot.message.parts):
            if isinstance(part, Reasoning) and position not in bound:
                changes.append(Change(position, index, None))
            elif isinstance(part, ToolCall):
                call = described(part, origins.ref(slot, index), LONGEST_ARGUMENT)
                if call is not None:
                    changes.append(Change(position, index, call))
    return rewrite(draft, task, LEAN, changes)


# --- what must stay and is too large ---------------------------------------------------------------


def _kept_cut(draft: Draft, task: Task) -> Draft:
    """If the protected messages are too large, cut the task, context that the client repeats, and unread results."""
    for reason, share in SPARED:
        draft = _texts_cut(draft, task, reason, int(task.target * share))
    draft = _unread_cut(draft, task)
    for reason, _ in reversed(SPARED):
        draft = _texts_cut(draft, task, reason, 0)
    return draft


def _least_firm(draft: Draft, task: Task) -> int:
    """Return the tokens of what must stay; if that is above the target, after shortening it."""
    firm = firm_tokens(draft)
    return firm_tokens(_lean(draft, task)) if firm > task.target else firm


def _texts_cut(draft: Draft, task: Task, reason: Protection, spared: int) -> Draft:
    """Cut the messages that stay for this reason to what the rest leaves of the target, but not below `spared`."""
    kept = [position for position, slot in enumerate(draft.slots) if draft.protected.get(slot.at) is reason]
    firm = _least_firm(draft, task) if kept else 0
    if firm <= task.target:
        return draft
    texts = [found for position in kept for found in texts_at(draft, position, task.counter)]
    size = sum(found.tokens for found in texts)
    cap = fair_cap([found.tokens for found in texts], max(spared, task.target - (firm - size)))
    origins = Origins(draft)
    cuts = []
    for found in texts:
        cut = _beginning_and_end(found, cap, origins, task) if found.tokens > cap else None
        if cut is not None and cut.now is not None and task.counter.part(cut.now) < found.tokens:
            cuts.append(cut)
    return rewrite(draft, task, TOO_LARGE, cuts)


def _unread_cut(draft: Draft, task: Task) -> Draft:
    """If the protected messages are too large, cut the largest unread results to a common size.

    Together they get what everything else leaves of the target, or at least a third of it if what must stay allows
    that.
    """
    firm = _least_firm(draft, task)
    if firm <= task.target:
        return draft
    unread = [
        found
        for found in results_in(draft, task.counter)
        if draft.protected.get(found.slot.at) is Protection.UNREAD and found.slot.at not in task.pins
    ]
    size = sum(found.tokens for found in unread)
    wanted = max(task.target - (draft.total - size), task.target // LEAST_SHARE)
    cap = fair_cap([found.tokens for found in unread], min(wanted, task.target - (firm - size)))
    origins = Origins(draft)
    cuts = [_excerpt(found, cap, origins, task) for found in unread if found.tokens > cap]
    return rewrite(draft, task, UNREAD, [change for change in cuts if change is not None])


def _excerpt(found: PlacedResult, cap: int, origins: Origins, task: Task) -> Change | None:
    if _room(found, cap, task) >= SMALLEST_EXCERPT:
        return _beginning_and_end(found, cap, origins, task)
    line = placeholder(found, origins, task, least=1)
    return None if line is None else line[0]


def _beginning_and_end(found: PlacedResult, cap: int, origins: Origins, task: Task) -> Change:
    original = origins.part(found.slot, found.part)
    ref = part_ref(found.result if original is None else original)
    text, room = found.text, max(1, _room(found, cap, task))
    cut = cut_characters(Cut(text, len(text), 0), min(room * WIDE_CHARACTERS, len(text) - 1), TAIL_SHARE)
    return Change(found.position, found.part, found.saying(shortened(cut, ref, task, room, TAIL_SHARE)), ref)


def _room(found: PlacedResult, cap: int, task: Task) -> int:
    """Return the tokens that a cap leaves for the text, besides images and the frame."""
    return cap - (found.tokens - task.counter.text(found.text))


# --- leaving out -----------------------------------------------------------------------------------


def _only_newest(draft: Draft, count: int, unit: Literal["rounds", "messages"]) -> Draft:
    """Drop what is older than the last rounds, or than the safe cut before the last messages."""
    if unit == "rounds":
        rounds = rounds_in(draft)
        start = rounds[-count].start if 0 < count < len(rounds) else 0
    else:
        start = max(cut for cut in safe_cuts(draft.messages) if cut <= max(0, len(draft.slots) - count))
    return _without_loose(draft, start)


def _without_loose(draft: Draft, stop: int) -> Draft:
    """Drop the steps before `stop` that may go."""
    gone = [position for step in _loose(draft) if step.stop <= stop for position in range(step.start, step.stop)]
    return draft.without(gone, STEP, OLDER) if gone else draft


def _oldest_out(draft: Draft, task: Task) -> Draft:
    """Drop the oldest steps until the draft fits."""
    excess, stop = draft.total - task.target, 0
    for step in _loose(draft):
        if excess <= 0:
            break
        excess -= sum(slot.tokens for slot in draft.slots[step.start : step.stop])
        stop = step.stop
    return _without_loose(draft, stop)


def _loose(draft: Draft) -> list[Step]:
    """Return the steps that may go, oldest first."""
    firm = firm_steps(draft)
    return [step for step in steps_of(draft.messages) if step not in firm]


# --- what must stay --------------------------------------------------------------------------------


def _parts(draft: Draft) -> list[tuple[str, int]]:
    """Return the tokens of what is left, by the reason why it stays."""
    sizes: Tally[str] = Tally()
    for slot in draft.slots:
        reason = ADDED if slot.at == OURS else draft.protected.get(slot.at, CALLS)
        sizes[str(reason)] += slot.tokens
    return list(sizes.items())

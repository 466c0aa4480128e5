"""Commit a summary to its thread, unless what happened meanwhile forbids it.

New messages since the snapshot do no harm. Where a plain compaction came first, or too little is new for another, the
summary is kept beside what the newest one left, and not a byte of the requests changes until the next compaction takes
it along: two in a row would fill the provider's cache twice. After an undo or another summary nothing is stored. What
is stored is one point, in one append; its row is named after the event that began it, so that whoever comes after a
crash sees that it was made.
"""

from dataclasses import dataclass, replace

from everlong.core import Entry, EventKind, Point, Recalled, Withdrawal
from everlong.engine.preparation import assembled_with, planned_point, remember, report_compaction, standing
from everlong.engine.summaries.snapshot import Snapshot
from everlong.engine.thread import CallContext, summary_message
from everlong.errors import ThreadChanged
from everlong.summarize import Summary, decode_summary, encode_summary

__all__ = ["SUMMARY", "Outcome", "commit_summary"]

SUMMARY = "summary"  # the reason of a point that was made for one
GAIN = 0.95  # of what the view took; a summary that leaves more is not worth its point
ATTEMPTS = 4  # another process may append meanwhile; each attempt reads again


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an attempt ended: applied, skipped or failed, and why; `tokens` is the size of the view then.

    `awaits` says that the compaction it was made for has not come yet.
    """

    kind: EventKind
    reason: str = ""
    summary: Summary | None = None
    tokens: int | None = None
    awaits: bool = True


def commit_summary(context: CallContext, snapshot: Snapshot, summary: Summary) -> Outcome:
    """Append the summary as a point of the thread, if it may be one. Raises BudgetImpossible if nothing fits."""
    summary = _storable(replace(summary, covers=snapshot.covers))
    for _ in range(ATTEMPTS):
        if _overtaken(context, snapshot.length):
            return Outcome(EventKind.SUMMARY_SKIPPED, "the thread was changed meanwhile")
        compaction = _compaction_since(context, snapshot)
        early = compaction is None and _too_early(context, snapshot)
        if early:
            compaction = _newest(context)
        if compaction is not None:
            entries = _kept_beside(context, compaction, summary)
        else:
            entries = _entries(context, snapshot, summary)
        if not entries:
            return Outcome(EventKind.SUMMARY_SKIPPED, "it would not have saved anything")
        messages = len(context.state.prefix) + len(context.state.since)
        ids = [snapshot.started, *(f"{snapshot.started}-{number}" for number in range(1, len(entries)))]
        try:
            context.engine.threads.append(context.thread, entries, ids=ids, expected=context.length)
        except ThreadChanged:
            context.refresh()
            continue
        context.refresh()
        tokens = None if compaction is not None else _shown(context, entries[0], messages)
        return Outcome(EventKind.SUMMARY_APPLIED, summary=summary, tokens=tokens, awaits=early)
    return Outcome(
        EventKind.SUMMARY_SKIPPED, f"the thread kept changing: the summary could not be stored in {ATTEMPTS} attempts"
    )


def _storable(summary: Summary) -> Summary:
    """The summary without halves of characters: facts are copied as they came, and some stores and providers refuse."""
    encoded = encode_summary(summary)
    clean = encoded.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return summary if clean == encoded else decode_summary(clean)


def _overtaken(context: CallContext, length: int) -> bool:
    """Whether an undo or another summary came since."""
    for row in context.engine.threads.read(context.thread, length, context.length):
        if isinstance(row.entry, Withdrawal):
            return True
        if isinstance(row.entry, Point) and row.entry.reason == SUMMARY:
            return True
    return False


def _compaction_since(context: CallContext, snapshot: Snapshot) -> Point | None:
    """The compaction that came first, if nobody waits for the summary to be seen."""
    row = context.state.opened.point
    if row is None or row.order < snapshot.length or snapshot.by_hand or context.budget.preset.every_call:
        return None
    return _newest(context)


def _newest(context: CallContext) -> Point | None:
    row = context.state.opened.point
    return row.entry if row is not None and isinstance(row.entry, Point) else None


def _too_early(context: CallContext, snapshot: Snapshot) -> bool:
    """Whether a compaction now would follow the newest one too closely."""
    if snapshot.by_hand or snapshot.at_once or context.budget.preset.every_call:
        return False
    new = context.state.new_tokens(standing(context).tokens)
    return new is not None and new < context.budget.renewal


def _kept_beside(context: CallContext, compaction: Point, summary: Summary) -> list[Entry]:
    """What the compaction left, word for word, with the summary for the next one; what was recalled since stays too."""
    point = replace(compaction, reason=SUMMARY, focus=summary.focus, account=encode_summary(summary))
    newest = context.state.opened.point
    since = -1 if newest is None else newest.order
    recalled = (row.entry for row in context.state.opened.rows if isinstance(row.entry, Recalled) and row.order > since)
    return [point, *recalled]


def _entries(context: CallContext, snapshot: Snapshot, summary: Summary) -> list[Entry]:
    """A compaction with the summary in front, at least down to half of the view; empty if that gains too little."""
    if context.budget.preset.every_call:
        return [_alone(context, snapshot, summary)]
    before = standing(context).tokens
    limit = context.budget.compacted_limit
    fixed = context.budget.parts.fixed
    target = min(context.budget.target, fixed + max(0, before - fixed) // 2, limit)
    point = planned_point(context, SUMMARY, before, limit=limit, target=target, summary=summary)
    return [point] if point.tokens_after <= GAIN * before else []


def _alone(context: CallContext, snapshot: Snapshot, summary: Summary) -> Point:
    """For a preset that assembles every request again: the point holds the summary alone, the preset places it."""
    return Point(
        boundary=summary.covers,
        summary=(summary_message(summary, context.budget.counter, snapshot.task.limit),),
        tokens_before=snapshot.before,
        tokens_after=assembled_with(context, summary).tokens,
        reason=SUMMARY,
        focus=summary.focus,
        account=encode_summary(summary),
        model=context.call.model,
    )


def _shown(context: CallContext, point: Entry, messages: int) -> int | None:
    """Keep the view for the next call and report it; return its tokens."""
    if not isinstance(point, Point):
        return None
    if context.budget.preset.every_call:
        return point.tokens_after
    view = standing(context)
    report_compaction(context, point, view, messages)
    remember(context, view)
    return view.tokens

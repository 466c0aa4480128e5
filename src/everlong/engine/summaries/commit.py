"""Commit a summary to its thread, unless a change in the meantime forbids it.

New messages since the snapshot do no harm. If a plain compaction came first, or too little is new for another one, the
summary is stored next to what the newest compaction left. Requests then stay the same, byte for byte, until the next
compaction uses it: two compactions in a row would fill the provider's cache twice. After an undo, a deletion or another
summary, nothing is stored. One append stores one point. Its row is named after the event that started the summary, so
that after a crash it is known whether the point was stored.
"""

from dataclasses import dataclass, replace

from everlong.core import Entry, EventKind, Figures, Point, Recalled, Removal, Restoration, Withdrawal
from everlong.engine.requests.assembly import assembled_with, remember, standing, upcoming
from everlong.engine.requests.compaction import messages_before, planned_point, report_compaction
from everlong.engine.summaries.snapshot import Snapshot
from everlong.engine.thread import CallContext, summary_message
from everlong.errors import ThreadChanged
from everlong.summarize import Summary, decode_summary, encode_summary

__all__ = ["SUMMARY", "Outcome", "commit_summary"]

SUMMARY = "summary"  # the reason of a point that was made for a summary
GAIN = 0.95  # of the view before; a summary that leaves more is not worth a point
ATTEMPTS = 4  # another process may append meanwhile; each attempt reads again


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an attempt to write a summary ended: applied, skipped or failed, and why.

    `figures` are those of the compaction it made, if any. `awaits` says that the compaction it was written for has not
    happened yet.
    """

    kind: EventKind
    reason: str = ""
    summary: Summary | None = None
    figures: Figures | None = None
    awaits: bool = True


def commit_summary(context: CallContext, snapshot: Snapshot, summary: Summary) -> Outcome:
    """Append the summary as a point of the thread, unless a change forbids it. Raises BudgetImpossible."""
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
        figures = None if compaction is not None else _shown(context, entries[0], messages)
        return Outcome(EventKind.SUMMARY_APPLIED, summary=summary, figures=figures, awaits=early)
    return Outcome(
        EventKind.SUMMARY_SKIPPED, f"the thread kept changing: the summary could not be stored in {ATTEMPTS} attempts"
    )


def _storable(summary: Summary) -> Summary:
    """Return the summary without lone surrogates from copied facts: some stores and providers refuse them."""
    encoded = encode_summary(summary)
    clean = encoded.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return summary if clean == encoded else decode_summary(clean)


def _overtaken(context: CallContext, length: int) -> bool:
    """Return whether an undo, a deletion or another summary came in the meantime."""
    for row in context.engine.threads.read(context.thread, length, context.length):
        if isinstance(row.entry, Withdrawal | Removal | Restoration):
            return True
        if isinstance(row.entry, Point) and row.entry.reason == SUMMARY:
            return True
    return False


def _compaction_since(context: CallContext, snapshot: Snapshot) -> Point | None:
    """Return the compaction that came before the summary, unless a person waits for the summary."""
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
    """Return what the newest compaction left, unchanged, with the summary for the next one and text recalled since."""
    point = replace(compaction, reason=SUMMARY, focus=summary.focus, account=encode_summary(summary))
    newest = context.state.opened.point
    since = -1 if newest is None else newest.order
    recalled = (row.entry for row in context.state.opened.rows if isinstance(row.entry, Recalled) and row.order > since)
    return [point, *recalled]


def _entries(context: CallContext, snapshot: Snapshot, summary: Summary) -> list[Entry]:
    """Return a compaction that begins with the summary, to half of the view or less; empty if it saves too little."""
    if context.budget.preset.every_call:
        return [_alone(context, snapshot, summary)]
    before = standing(context).tokens
    limit = context.budget.compacted_limit
    fixed = context.budget.parts.fixed
    target = min(context.budget.target, fixed + max(0, before - fixed) // 2, limit)
    point = planned_point(context, SUMMARY, before, limit=limit, target=target, summary=summary)
    return [point] if point.tokens_after <= GAIN * before else []


def _alone(context: CallContext, snapshot: Snapshot, summary: Summary) -> Point:
    """Return a point with only the summary, for a preset that assembles each request and places the summary itself."""
    raw = context.raw_history()
    covered = sum(order < summary.covers for order in raw.orders)
    before, after = upcoming(context), assembled_with(context, summary)
    figures = Figures(
        messages=messages_before(context, raw, covered),
        before=context.budget.true(before.tokens),
        after=context.budget.unanchored().true(after.tokens),
    )
    return Point(
        boundary=summary.covers,
        summary=(summary_message(summary, context.budget.counter, snapshot.task.limit),),
        tokens_before=snapshot.before,
        tokens_after=after.tokens,
        reason=SUMMARY,
        focus=summary.focus,
        account=encode_summary(summary),
        model=context.call.model,
        figures=figures,
    )


def _shown(context: CallContext, point: Entry, messages: int) -> Figures | None:
    """Report the compaction and keep the view for the next call; return its figures."""
    if not isinstance(point, Point):
        return None
    view = upcoming(context)
    report_compaction(context, point, view, messages)
    if not context.budget.preset.every_call:
        remember(context, view)
    return point.figures

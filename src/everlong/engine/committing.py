"""A summary put into its thread, or not: the thread is looked at again, and what overtook it counts.

New messages and plain cuts since the snapshot do no harm. An undo or another summary does: then nothing is stored. All
that is ever stored is one point, in one append; its row is named after the event that began it, so that whoever comes
after a crash sees that it was made.
"""

from dataclasses import dataclass, replace

from everlong.core.events import EventKind
from everlong.core.points import Point, Withdrawal
from everlong.engine.accounts import account_message
from everlong.engine.cutting import Cause
from everlong.engine.preparing import cut_planned, remember, standing, tell_cut
from everlong.engine.snapshots import Snapshot
from everlong.engine.work import Work
from everlong.errors import ThreadChanged
from everlong.summarize.summary import Summary, decode_summary, encode_summary

__all__ = ["SUMMARY", "Outcome", "committed"]

SUMMARY = "summary"  # the reason of a point that was made for one
GAIN = 0.95  # of what the view took; a summary that leaves more is not worth its point
ATTEMPTS = 4  # another process may append meanwhile; each attempt reads again


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an attempt ended: applied, skipped or failed, and why; `tokens` is the size of the view then."""

    kind: EventKind
    reason: str = ""
    summary: Summary | None = None
    tokens: int | None = None


def committed(work: Work, snapshot: Snapshot, summary: Summary) -> Outcome:
    """The summary as a point of the thread, if it may still be one. Raises BudgetImpossible where nothing can fit."""
    summary = _storable(replace(summary, covers=snapshot.covers))
    for _ in range(ATTEMPTS):
        if _overtaken(work, snapshot.length):
            return Outcome(EventKind.SUMMARY_SKIPPED, "the thread was changed meanwhile")
        before = standing(work).tokens
        every_call = work.sizes.preset.every_call
        point = _apart(work, snapshot, summary) if every_call else _cut(work, summary, before)
        if not every_call and point.tokens_after > GAIN * before:
            return Outcome(EventKind.SUMMARY_SKIPPED, "it would not have saved anything")
        messages = len(work.live.front) + len(work.live.since)
        length = work.live.opened.thread.length
        try:
            work.means.threads.append(work.thread, [point], ids=[snapshot.started], expected=length)
        except ThreadChanged:
            work.refresh()
            continue
        work.refresh()
        return Outcome(EventKind.SUMMARY_APPLIED, summary=summary, tokens=_shown(work, point, messages))
    return Outcome(EventKind.SUMMARY_SKIPPED, f"the thread kept changing; it was tried {ATTEMPTS} times")


def _storable(summary: Summary) -> Summary:
    """The summary without halves of characters: facts are copied as they came, and some stores and providers refuse."""
    kept = encode_summary(summary)
    clean = kept.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return summary if clean == kept else decode_summary(clean)


def _overtaken(work: Work, length: int) -> bool:
    """Whether an undo or another summary came since."""
    for row in work.means.threads.read(work.thread, length, work.live.opened.thread.length):
        if isinstance(row.entry, Withdrawal):
            return True
        if isinstance(row.entry, Point) and row.entry.reason == SUMMARY:
            return True
    return False


def _cut(work: Work, summary: Summary, before: int) -> Point:
    """A cut with the summary in front of it, at least down to half of what the view took."""
    cause = Cause(reason=SUMMARY, before=before, account=summary)
    limit = work.sizes.cut_limit
    return cut_planned(work, cause, limit=limit, target=min(work.sizes.low, before // 2, limit))


def _apart(work: Work, snapshot: Snapshot, summary: Summary) -> Point:
    """For a preset that makes every request anew: the point holds the summary alone, the preset says where it goes."""
    return Point(
        boundary=summary.covers,
        summary=(account_message(summary, work.sizes.counter, snapshot.task.limit),),
        reason=SUMMARY,
        focus=summary.focus,
        account=encode_summary(summary),
        model=work.call.model,
    )


def _shown(work: Work, point: Point, messages: int) -> int | None:
    """What stands now is kept for the next call, and told; its tokens."""
    if work.sizes.preset.every_call:
        return None
    view = standing(work)
    tell_cut(work, point, view, messages)
    remember(work, view)
    return view.tokens

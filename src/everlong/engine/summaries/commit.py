"""A summary put into its thread, or not: the thread is looked at again, and what overtook it counts.

New messages since the snapshot do no harm. Where a plain cut came first, the summary is kept beside what that left, and
not a byte of the requests changes until the next cut takes it along: two cuts in a row would begin the provider's cache
anew twice. An undo or another summary overtakes it: then nothing is stored. What is stored is one point, in one append;
its row is named after the event that began it, so that whoever comes after a crash sees that it was made.
"""

from dataclasses import dataclass, replace

from everlong.core import Entry, EventKind, Point, Recalled, Withdrawal
from everlong.engine.preparation import Cause, cut_planned, remember, standing, tell_cut
from everlong.engine.summaries.snapshot import Snapshot
from everlong.engine.thread import Work, account_message
from everlong.errors import ThreadChanged
from everlong.summarize import Summary, decode_summary, encode_summary

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
        cut = _cut_since(work, snapshot)
        entries = _beside(work, cut, summary) if cut is not None else _entries(work, snapshot, summary)
        if not entries:
            return Outcome(EventKind.SUMMARY_SKIPPED, "it would not have saved anything")
        messages = len(work.live.front) + len(work.live.since)
        length = work.live.opened.thread.length
        ids = [snapshot.started, *(f"{snapshot.started}-{number}" for number in range(1, len(entries)))]
        try:
            work.means.threads.append(work.thread, entries, ids=ids, expected=length)
        except ThreadChanged:
            work.refresh()
            continue
        work.refresh()
        tokens = None if cut is not None else _shown(work, entries[0], messages)
        return Outcome(EventKind.SUMMARY_APPLIED, summary=summary, tokens=tokens)
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


def _cut_since(work: Work, snapshot: Snapshot) -> Point | None:
    """The cut that came first, where nobody waits for the summary to be seen."""
    row = work.live.opened.point
    if row is None or row.order < snapshot.length or snapshot.by_hand or work.sizes.preset.every_call:
        return None
    return row.entry if isinstance(row.entry, Point) else None


def _beside(work: Work, cut: Point, summary: Summary) -> list[Entry]:
    """What the cut left, word for word, with the summary for the next one; what was recalled since stays too."""
    point = replace(cut, reason=SUMMARY, focus=summary.focus, account=encode_summary(summary))
    newest = work.live.opened.point
    since = -1 if newest is None else newest.order
    recalled = (row.entry for row in work.live.opened.rows if isinstance(row.entry, Recalled) and row.order > since)
    return [point, *recalled]


def _entries(work: Work, snapshot: Snapshot, summary: Summary) -> list[Entry]:
    """A cut with the summary in front of it, at least down to half of what the view took; nothing if it is in vain."""
    if work.sizes.preset.every_call:
        return [_apart(work, snapshot, summary)]
    before = standing(work).tokens
    cause = Cause(reason=SUMMARY, before=before, account=summary)
    limit = work.sizes.cut_limit
    point = cut_planned(work, cause, limit=limit, target=min(work.sizes.low, before // 2, limit))
    return [point] if point.tokens_after <= GAIN * before else []


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


def _shown(work: Work, point: Entry, messages: int) -> int | None:
    """What stands now is kept for the next call, and told; its tokens."""
    if work.sizes.preset.every_call or not isinstance(point, Point):
        return None
    view = standing(work)
    tell_cut(work, point, view, messages)
    remember(work, view)
    return view.tokens

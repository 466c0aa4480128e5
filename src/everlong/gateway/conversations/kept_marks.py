"""The marks of conversations in the store: which apply to a request, and which a conversation adds.

Any process may serve the next request of a conversation, so all of them follow one list of marks. A process adds a mark
to the list only if no other process overtook it; if one did, its thread is built again from the list.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from heapq import nlargest

from everlong.core import Point, Recalled, Row, Withdrawal
from everlong.engine import SUMMARY
from everlong.errors import EverlongError, NoThread
from everlong.gateway.conversations.conversation import Conversation, Transcript
from everlong.gateway.conversations.marks import (
    REPORTED,
    Kind,
    Listed,
    Mark,
    counting,
    listed,
    marks_in,
    standing_marks,
    standing_names,
)
from everlong.gateway.conversations.memory_threads import MemoryFirstThreads
from everlong.gateway.conversations.state_store import StateStore

__all__ = ["Found", "KeptMarks"]

COMPARED = 8  # conversations with the same beginning, whose compactions may apply to a new one
SUMMARIES = "summaries"  # the kind of claims
SUMMARY_SECONDS = 60.0  # after which another process may write a summary that was started
SMALLEST = 512  # bytes of messages; nothing is ever left out of fewer


@dataclass(frozen=True, slots=True)
class Found:
    """Marks that apply to a request, with their names, and the newest name in the list.

    `reported` says whether a request has reported the point, if it was made after an answer.
    """

    marks: Sequence[Mark] = ()
    names: Sequence[Listed] = ()
    newest: str = ""
    reported: bool = True
    #: The name of the compaction; a summary stored next to it does not count.
    compaction: str = ""


NOTHING = Found()


class KeptMarks:
    """The marks of conversations in memory and in the store, which other processes add to."""

    def __init__(self, threads: MemoryFirstThreads, state_store: StateStore) -> None:
        self._threads = threads
        self._state_store = state_store

    # --- what a conversation adds ------------------------------------------------------------------

    def name_new(self, conversation: Conversation, *, answered: bool = False) -> bool:
        """Name the marks that were added to the thread since the last time; return whether any need to be stored.

        Raises NoThread if the thread was dropped.
        """
        with conversation.lock:
            length = self._threads.thread(conversation.thread).length
            start, conversation.marked = conversation.marked, length
            if start < length and self._state_store.keep != "nothing":
                rows = list(self._threads.read(conversation.thread, start, length))
                self._name(conversation, rows)
            if answered and conversation.to_report is not None:
                conversation.pending.append((conversation.to_report, None))
                conversation.to_report = None
            return bool(conversation.pending)

    def _name(self, conversation: Conversation, rows: Sequence[Row]) -> None:
        undone = {row.entry.point for row in rows if isinstance(row.entry, Withdrawal)}
        if undone - {row.order for row in rows} and conversation.standing:
            conversation.pending.append((conversation.standing[0].withdrawn, None))
            conversation.standing = []
        beside, previous, recalled = False, None, list[Recalled]()
        for mark in self._marks_before(conversation, rows):
            if isinstance(mark.entry, Point):
                previous = mark.entry
            else:
                recalled.append(mark.entry)
        for mark in marks_in(rows, conversation.starts):
            if isinstance(mark.entry, Point):
                beside = bool(conversation.standing) and _leaves_the_same(previous, mark.entry)
                previous = mark.entry
                recalled = recalled if beside else []
            elif beside and mark.entry in recalled:  # the list has it from before the summary
                continue
            else:
                recalled.append(mark.entry)
            if not 0 < mark.upto <= len(conversation.digests):
                continue
            digest = conversation.digests[mark.upto - 1].hex()
            named = listed(mark, digest, self._state_store.time(), beside=beside and isinstance(mark.entry, Point))
            conversation.pending.append((named, mark))
            if named.kind is Kind.BESIDE:
                conversation.standing = [named, *conversation.standing[1:]]
            elif named.point:
                conversation.standing, conversation.compaction = [named], named.name
            else:
                conversation.standing = [*conversation.standing, named]

    def _marks_before(self, conversation: Conversation, rows: Sequence[Row]) -> list[Mark]:
        """The newest point of the thread before these rows, and what was recalled after it."""
        end = rows[0].order
        points = [row for row, _ in self._threads.points(conversation.thread) if row.order < end]
        if not points:
            return []
        return marks_in(list(self._threads.read(conversation.thread, points[-1].order, end)), conversation.starts)

    def add(self, conversation: Conversation, *, waits: bool) -> bool:
        """Store the named marks; return False if another process overtook them.

        If a request `waits` for it, the time is limited. If the store does not answer, the next request tries again.
        """
        with conversation.lock:
            if not conversation.pending:
                return True
            new, place = list(conversation.pending), (conversation.scope, conversation.root)
            unread = True

            def fits(names: Sequence[str]) -> bool:
                nonlocal unread
                unread = bool(_later(names, conversation.newest))
                return not overtaken(names, conversation.newest, conversation.digests, by_points=new[0][0].point)

            def work() -> str | None:
                return self._state_store.add_marks(*place, new, fits)

            try:
                newest = self._state_store.ask(work) if waits else work()
            except EverlongError as error:
                self._state_store.report(error)
                return True
            conversation.pending = conversation.pending[len(new) :]
            conversation.stale = conversation.stale or newest is None
            conversation.newest = newest or conversation.newest
            conversation.unread = conversation.unread or unread
            return newest is not None

    def claim_summary(self, conversation: Conversation) -> bool:
        """Return whether this process may start a summary: one process writes one summary per compaction."""
        if not self._state_store.shared:
            return True
        conversation.claimed = conversation.compaction
        return self._claim(conversation, conversation.compaction, SUMMARY_SECONDS)

    def end_summary(self, conversation: Conversation) -> None:
        """Keep the claim after the summary of this process has ended: there is only one summary per compaction."""
        stage, conversation.claimed = conversation.claimed, None
        if stage is not None:
            self._state_store.later(lambda: self._claim(conversation, stage, self._state_store.longest))

    def _claim(self, conversation: Conversation, stage: str, seconds: float) -> bool:
        name = "/".join((conversation.scope, conversation.root, *conversation.identity))
        return self._state_store.claim(SUMMARIES, name, stage, seconds)

    # --- what applies to a request -----------------------------------------------------------------

    def find(self, scope: str, transcript: Transcript, alike: Sequence[Conversation]) -> Found:
        """Return the marks for a new conversation; `alike` are those in memory with the same beginning."""
        kept = self._kept(scope, transcript)
        if kept is not None and self._state_store.shared:
            return kept
        kept = kept or Found()
        best = list(kept.marks)
        for one in nlargest(COMPARED, alike, key=lambda one: one.shared_with(transcript.digests)):
            with one.lock, suppress(NoThread):  # dropped meanwhile
                best = _better(best, self._standing(one, one.shared_with(transcript.digests), len(transcript.digests)))
        return kept if best == list(kept.marks) else Found(best, newest=kept.newest)

    def bring(self, conversation: Conversation, transcript: Transcript) -> Found | None:
        """Return what other processes added to the conversation; None if its thread has to be built again."""
        if conversation.stale:
            return None
        if not _may_have_marks(transcript):
            return NOTHING
        if self._state_store.shared:  # a summary may have come since the last request; others' marks come after it
            self.name_new(conversation)
        names = self._names(conversation.scope, transcript)
        if names and conversation.behind and conversation.standing and self._state_store.shared:
            self._report_once(conversation, names)
        if not names or (names[-1] == conversation.newest and not conversation.unread):
            return NOTHING
        if self._state_store.shared and conversation.pending:
            if not self.add(conversation, waits=True):
                return None
            names = self._names(conversation.scope, transcript) or names
        self._threads.expire_facts()
        known = counting(names)
        if any(one.kind is Kind.UNKNOWN for one in known):
            return None
        conversation.unread = False
        wanted, compaction = standing_names(known, transcript.numbers)
        made = self._difference(conversation, wanted, names)
        return None if made is None else replace(made, compaction=compaction)

    def _report_once(self, conversation: Conversation, names: Sequence[str]) -> None:
        """Let the next request report a compaction that was made after an answer, unless another process has."""
        report = conversation.standing[0].reported
        if report.name in names:
            conversation.compactions -= conversation.behind
            conversation.behind = 0
        else:
            conversation.to_report = report

    def _difference(self, conversation: Conversation, wanted: list[Listed], names: Sequence[str]) -> Found | None:
        """Return the marks to append; None if appending cannot bring the thread to the wanted state."""
        own, units = conversation.standing, len(conversation.digests)
        if not wanted or wanted == own:
            conversation.newest = names[-1]
            return NOTHING
        added = wanted[len(own) :] if wanted[: len(own)] == own else wanted
        if (added == wanted and wanted[0] in own) or any(one.at < units for one in added):
            return None
        marks = self._state_store.marks(conversation.scope, conversation.root, added)
        return None if marks is None else Found(marks, wanted, names[-1], wanted[0].reported.name in names)

    def _kept(self, scope: str, transcript: Transcript) -> Found | None:
        """Return the marks in the store that apply; None if the store does not answer."""
        if not _may_have_marks(transcript):
            return NOTHING
        names = self._names(scope, transcript)
        if not names:
            return None if names is None else NOTHING
        if self._state_store.shared:  # the process that compacted it may have learned a window
            self._threads.expire_facts()
        true = [one for one in counting(names) if one.digest in transcript.numbers]
        # Names from an earlier version do not say the kind: read the marks themselves.
        if any(one.kind is Kind.UNKNOWN for one in true):
            read = self._state_store.marks(scope, transcript.root, true) or []
            marks = standing_marks(read, len(transcript.digests), len(transcript.digests))
            return Found(marks, [true[read.index(mark)] for mark in marks], names[-1])
        standing, compaction = standing_names(true, transcript.numbers)
        found = self._state_store.marks(scope, transcript.root, standing)
        if not found:
            return Found(newest=names[-1])
        return Found(found, standing, names[-1], standing[0].reported.name in names, compaction)

    def _names(self, scope: str, transcript: Transcript) -> Sequence[str] | None:
        """Return the list of marks; for a job, as it was before its conversation continued.

        Marks that were listed since then are new to the next request, and overtake what the job adds.
        """
        names = self._state_store.list_of_marks(scope, transcript.root)
        if not names or transcript.asked_after is None:
            return names
        units, since = len(transcript.digests), _place(names, transcript.asked_after) + 1
        later = (at for at, name in enumerate(names) if at >= since and Listed.of(name).at > units)
        return names[: next(later, len(names))]

    def _standing(self, conversation: Conversation, shared: int, units: int) -> list[Mark]:
        if not self._threads.thread(conversation.thread).points:
            return []
        marks = marks_in(list(self._threads.read(conversation.thread)), conversation.starts)
        return standing_marks(marks, shared, units)


def _leaves_the_same(before: Point | None, newest: Point) -> bool:
    """Whether a point only adds a summary to the one before: no byte of the requests changes."""
    if before is None or newest.reason != SUMMARY:
        return False
    return (before.boundary, before.summary, before.edits) == (newest.boundary, newest.summary, newest.edits)


def overtaken(names: Sequence[str], seen: str, digests: Sequence[bytes], *, by_points: bool) -> bool:
    """Whether marks about these units were listed after the one that was seen; with `by_points`, only points count."""
    about = {digest.hex() for digest in digests}
    later = map(Listed.of, _later(names, seen))
    return any(one.digest in about and (one.kind is not Kind.RECALLED or not by_points) for one in later)


def _later(names: Sequence[str], seen: str) -> list[str]:
    """The names that were listed after one, without those that only say that a request reported a point."""
    return [name for name in names[_place(names, seen) + 1 :] if not name.startswith(REPORTED)]


def _place(names: Sequence[str], name: str) -> int:
    """The position of a name in the list; -1 if it is not there."""
    return next((at for at, one in enumerate(names) if one == name), -1)


def _may_have_marks(transcript: Transcript) -> bool:
    """Return whether something may have been left out: a short conversation is never compacted."""
    size = 0
    for unit in transcript.units:
        size += len(unit.plain)
        if size >= SMALLEST:
            return len(transcript.units) > 1
    return False


def _better(one: list[Mark], other: list[Mark]) -> list[Mark]:
    """Return the marks whose point covers more."""
    return other if other and (not one or other[0].upto > one[0].upto) else one

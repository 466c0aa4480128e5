"""Keep the newest steps as they are, and of the rest what is most likely needed.

At a compaction the newest steps stay messages; a result that is too large keeps its needed parts in place. What goes
leaves behind one message of ours, marked as background: verbatim excerpts of what the question, recent thoughts and
arguments refer to, in conversation order, and a ledger of names of what else was there. One ranking chooses both. The
budget is filled; nothing protected is touched.
"""

from everlong.compress.abridgement import Abridgement
from everlong.compress.draft import OURS, Draft, Task
from everlong.compress.excerpts import Ledger, Place, Selection, background
from everlong.compress.newest_steps import Standing, has_results, movable, stand
from everlong.compress.text.changes import Cause, Origins, rewrite
from everlong.core import Action, Edit, History, Message, Protection, Role, Text, head_length
from everlong.relevance import Index

__all__ = ["by_need"]

STEP = "by_need"
NEWEST_SHARE = 0.18  # of what can be moved, for whole steps at the end
TALK_SHARE = 0.05  # if no tool was used: what matters was as likely said long ago
MOST_QUOTED = 48_000  # tokens; with more room whole steps serve better than more excerpts
LEDGER_SHARE = 0.11  # of what can be moved, for names
LONGEST_LEDGER = 2_500  # tokens; a longer list of names is not read
REQUESTS_SHARE = 0.05  # of what can be moved, for what users asked, before anything else
UNFILLED = 0.05  # of what can be moved; with more left over, more of the newest is kept whole
ATTEMPTS = 3
SMALLEST_BLOCK = 120  # tokens; below that a block of ours is not worth its frame

OLDER = "older than what fits whole; see the excerpts"
ABRIDGED = Cause(STEP, "too large to stay whole; its needed parts stay in place")
DESCRIBED = Cause(STEP, "long text in the arguments of a call that does not fit")


def by_need(draft: Draft, task: Task, *, newest_share: float = NEWEST_SHARE) -> Draft:
    """Bring the draft to the target, if it is above it. The index of the task grows by what leaves."""
    if draft.total <= task.target:
        return draft
    index = Index() if task.index is None else task.index
    room = max(0, movable(draft, task))
    fitting = room / (room + draft.total - task.target)  # how much of what can be moved fits
    share = max(newest_share, fitting) if has_results(draft) else TALK_SHARE
    newest = max(int(room * share), room - MOST_QUOTED)
    outcome = draft
    for attempt in range(ATTEMPTS):
        standing = stand(draft, task, newest)
        changed = _changed(draft, standing)
        if not changed:
            return draft
        if attempt == 0:  # later ones keep more: they all choose from the same, whatever the index was used for before
            index = _reaching(index, draft.history[: max(changed) + 1])
        outcome = _cut(draft, task, standing, index, room)
        left = task.target - outcome.total
        if left < UNFILLED * room:
            break
        newest += left  # nothing more to quote: more of the newest stays whole
    return outcome


def _changed(draft: Draft, standing: Standing) -> list[int]:
    """The messages of the history that go or are said shorter."""
    positions = (*standing.gone, *(change.position for change in standing.described))
    places = (draft.slots[position].at for position in positions)
    return [*(at for at in places if at != OURS), *(part.place[0] for part in standing.abridged)]


def _reaching(index: Index, history: History) -> Index:
    """The index grown to hold just this much; a new one if it holds more or other messages: they decide the ranking."""
    known = index.messages
    if known > len(history) or (known and index.last != history[known - 1]):
        index = Index()
    index.extend(history[index.messages :])
    return index


def _cut(draft: Draft, task: Task, standing: Standing, index: Index, movable_room: int) -> Draft:
    """The draft with these steps standing, and what is most needed of the rest: where it stood, or in one block."""
    shorter = rewrite(draft, task, DESCRIBED, standing.described)
    shorter = shorter.without(standing.gone, STEP, OLDER) if standing.gone else shorter
    texts = Abridgement(shorter, task, ABRIDGED, standing.abridged)
    emptied = texts.emptied()
    sent = {slot.at: slot.message for slot in emptied.slots if slot.at != OURS}
    lacking = _lacking(draft, standing)
    selection = Selection(draft.history, index, sent, task.counter, abridged=texts.places, lacking=lacking)
    room = task.target - emptied.total
    for part in standing.abridged:
        if not selection.take_of(part.place, part.least):
            texts.trim(part)
            room -= part.least
    quotes = _Quotes(selection, task, room, movable_room)
    while True:
        outcome = texts.filled(selection)
        block = quotes.block()
        if block is not None:
            first, tokens = min(_changed(draft, standing)), task.counter.message(block)
            reason = f"excerpts and names from {len(standing.gone)} messages"
            edit = Edit(at=first, step=STEP, action=Action.INSERT, reason=reason, before=0, after=tokens)
            outcome = outcome.with_inserted(_head(outcome), block, tokens, edit)
        excess = outcome.total - task.target
        if excess <= 0 or not quotes.give_back(excess):
            return outcome


def _lacking(draft: Draft, standing: Standing) -> frozenset[Place]:
    """Where the arguments stood that are described now: what they said may be quoted."""
    origins = Origins(draft)
    found = ((draft.slots[change.position], change.part) for change in standing.described)
    return frozenset((slot.at, index) for slot, part in found if (index := origins.index(slot, part)) is not None)


def _head(draft: Draft) -> int:
    """Where a block of ours goes: behind the system text, what is pinned there, and the task if that comes next."""
    for position, slot in enumerate(draft.slots[:-1]):
        reason = draft.protected.get(slot.at)
        if reason in (Protection.TASK, Protection.ASKED):
            return position + 1
        if reason not in (Protection.SYSTEM, Protection.PINNED):
            return position
    return head_length(draft.messages)


class _Quotes:
    """What is quoted and named, within a room that what stands abridged takes its part of."""

    def __init__(self, selection: Selection, task: Task, room: int, movable_room: int) -> None:
        self._selection, self._task, self._ledger = selection, task, Ledger("", 0)
        inside = room - task.counter.message(self._spoken("-", "" if selection.is_talk else "-"))
        if room - selection.tokens < SMALLEST_BLOCK:
            return
        names = 0
        if not selection.is_talk:
            names = min(int(movable_room * LEDGER_SHARE), inside // 3, LONGEST_LEDGER)
            selection.take_requests(min(selection.tokens + int(movable_room * REQUESTS_SHARE), inside))
        selection.take_needed(inside - names)
        self._ledger = selection.ledger(min(inside - selection.exact_tokens(), LONGEST_LEDGER))
        if selection.take_needed(inside - self._ledger.tokens):  # fewer names than room for them; now fewer still
            self._ledger = selection.ledger(min(inside - selection.exact_tokens(), LONGEST_LEDGER))

    def block(self) -> Message | None:
        """The background message; None if there is nothing to say."""
        excerpts = self._selection.text()
        return self._spoken(excerpts, self._ledger.text) if excerpts or self._ledger.text else None

    def give_back(self, tokens: int) -> bool:
        """Leave out what was chosen last, at least this much, in the end the names. Whether there was anything left."""
        if self._selection.chosen:
            self._selection.give_back(tokens)
            return True
        named, self._ledger = bool(self._ledger.text), Ledger("", 0)
        return named

    def _spoken(self, excerpts: str, names: str) -> Message:
        return Message(Role.USER, (Text(background(excerpts, names, self._task)),))

"""Keep the newest steps unchanged, and of the rest what is most likely needed.

In a compaction, the newest steps stay as messages; a result that is too large keeps its needed parts in place. The rest
is replaced by one message of ours, marked as background: verbatim excerpts of what the question, recent reasoning and
arguments refer to, in conversation order, and a list of other names that occurred. One ranking chooses both. The budget
is filled, and nothing protected is touched.
"""

from dataclasses import replace

from everlong.compress.abridgement import Abridgement
from everlong.compress.draft import OURS, Draft, Task
from everlong.compress.excerpts import Ledger, Place, Selection, background
from everlong.compress.newest_steps import Standing, exchange_share, has_results, last_exchange, movable, stand
from everlong.compress.text.changes import Cause, Origins, rewrite
from everlong.compress.wishes import wishes_message
from everlong.core import Action, Edit, History, Message, Protection, Role, Text, head_length
from everlong.relevance import Index

__all__ = ["by_need"]

STEP = "by_need"
NEWEST_SHARE = 0.18  # of the movable tokens, for whole steps at the end
TALK_SHARE = 0.05  # without tools: what matters may have been said long ago
MOST_QUOTED = 48_000  # tokens; beyond that, whole steps are better than more excerpts
LEDGER_SHARE = 0.11  # of the movable tokens, for names
LONGEST_LEDGER = 2_500  # tokens; a longer list of names is not read
ASKED_SHARE = 0.25  # of the movable tokens, for what an open question names literally
ANSWERS_SHARE = 0.1  # of the movable tokens, for matching answers if the user's words come first
REQUESTS_SHARE = 0.05  # of the movable tokens, for user messages, before other excerpts
WISHES_SHARE = 0.08  # of the movable tokens at most, for the user's standing wishes
UNFILLED = 0.05  # of the movable tokens; if more is left, more of the newest steps stay whole
ATTEMPTS = 3
SMALLEST_BLOCK = 120  # tokens; a smaller block is not worth its frame

WISHES = "wishes of the user for the whole conversation"
OLDER = "older than what fits in full; see the excerpts"
ABRIDGED = Cause(STEP, "too large to keep in full; the parts that are needed stay in place")
DESCRIBED = Cause(STEP, "long text in the arguments of a call that does not fit")


def by_need(draft: Draft, task: Task, *, newest_share: float = NEWEST_SHARE) -> Draft:
    """Bring the draft under the target by keeping what is needed. What leaves is added to the task's index."""
    if draft.total <= task.target:
        return draft
    unread = _too_large_to_read(draft, task)
    if unread:
        kept = {at: why for at, why in draft.protected.items() if at not in unread}
        opened = _compacted(replace(draft, protected=kept), task, newest_share, unread)
        return replace(opened, protected=draft.protected)
    return _compacted(draft, task, newest_share, unread)


def _too_large_to_read(draft: Draft, task: Task) -> frozenset[int]:
    """Return the unpinned messages with unread results if protecting them all leaves no space; otherwise none."""
    if movable(draft, task) > 0:
        return frozenset()
    unread = (at for at, why in draft.protected.items() if why is Protection.UNREAD and at not in task.pins)
    return frozenset(unread)


def _compacted(draft: Draft, task: Task, newest_share: float, unread: frozenset[int]) -> Draft:
    index = Index() if task.index is None else task.index
    room = max(0, movable(draft, task))
    fitting = room / (room + draft.total - task.target)  # the share of the movable tokens that fits
    share = max(newest_share, fitting) if has_results(draft) else TALK_SHARE
    newest = max(int(room * share), room - MOST_QUOTED)
    outcome = draft
    for attempt in range(ATTEMPTS):
        standing = stand(draft, task, newest, unread=unread)
        changed = _changed(draft, standing)
        if not changed:
            return draft
        if attempt == 0:  # later attempts keep more, but all choose from the same index
            index = _reaching(index, draft.history[: max(changed) + 1])
        outcome = _cut(draft, task, standing, index, room)
        left = task.target - outcome.total
        if left < UNFILLED * room:
            break
        newest += left  # nothing more to quote: keep more of the newest whole
    return outcome


def _changed(draft: Draft, standing: Standing) -> list[int]:
    """Return the messages of the history that leave or are shortened."""
    positions = (*standing.gone, *(change.position for change in standing.described))
    places = (draft.slots[position].at for position in positions)
    return [*(at for at in places if at != OURS), *(part.place[0] for part in standing.abridged)]


def _reaching(index: Index, history: History) -> Index:
    """Return an index of exactly these messages: the given one, extended, or a new one if it has others."""
    known = index.messages
    if known > len(history) or (known and index.last != history[known - 1]):
        index = index.empty_copy()
    index.extend(history[index.messages :])
    return index


def _cut(draft: Draft, task: Task, standing: Standing, index: Index, movable_room: int) -> Draft:
    """Return the draft with these steps, and the most needed parts of the rest: in place, or in one block."""
    shorter = rewrite(draft, task, DESCRIBED, standing.described)
    shorter = shorter.without(standing.gone, STEP, OLDER, index.ref) if standing.gone else shorter
    texts = Abridgement(shorter, task, ABRIDGED, standing.abridged)
    emptied = texts.emptied()
    sent = {slot.at: slot.message for slot in emptied.slots if slot.at != OURS}
    room = task.target - emptied.total
    wishes = wishes_message(draft.history, sent, task, min(room, int(movable_room * WISHES_SHARE)))
    if wishes is not None:
        room -= task.counter.message(wishes)
        sent |= {OURS: wishes}
    lacking = _lacking(draft, standing)
    selection = Selection(draft.history, index, sent, task.counter, abridged=texts.places, lacking=lacking)
    for part in standing.abridged:
        if not selection.take_of(part.place, part.least, ends=part.unread):
            texts.trim(part)
            room -= part.least
    quotes = _Quotes(selection, draft, task, room, movable_room)
    while True:
        outcome = texts.filled(selection)
        quoted = f"excerpts and names from {len(standing.gone)} messages"
        for block, reason in ((quotes.block(), quoted), (wishes, WISHES)):  # both go to the head; the last comes first
            if block is not None:
                first, tokens = min(_changed(draft, standing)), task.counter.message(block)
                edit = Edit(at=first, step=STEP, action=Action.INSERT, reason=reason, before=0, after=tokens)
                outcome = outcome.with_inserted(_head(outcome), block, tokens, edit)
        excess = outcome.total - task.target
        if excess <= 0 or not quotes.give_back(excess):
            return outcome


def _lacking(draft: Draft, standing: Standing) -> frozenset[Place]:
    """Return the places of arguments that are now only descriptions: their text may be quoted."""
    origins = Origins(draft)
    found = ((draft.slots[change.position], change.part) for change in standing.described)
    return frozenset((slot.at, index) for slot, part in found if (index := origins.index(slot, part)) is not None)


def _head(draft: Draft) -> int:
    """Return the position of our block: after the system text, pinned messages and a task that comes next."""
    for position, slot in enumerate(draft.slots[:-1]):
        reason = draft.protected.get(slot.at)
        if reason in (Protection.TASK, Protection.ASKED):
            return position + 1
        if reason not in (Protection.SYSTEM, Protection.PINNED):
            return position
    return head_length(draft.messages)


class _Quotes:
    """The quotes and names of the block. Abridged texts share their space."""

    def __init__(self, selection: Selection, draft: Draft, task: Task, room: int, movable_room: int) -> None:
        self._selection, self._task, self._ledger = selection, task, Ledger("", 0)
        inside = room - task.counter.message(self._spoken("-", "" if selection.is_talk else "-"))
        if room - selection.tokens < SMALLEST_BLOCK:
            return
        names = 0
        if selection.is_talk:
            # The answer that the last message replies to comes first, if it is too large to stay a message.
            share = exchange_share(draft)
            selection.take_from(last_exchange(draft), min(selection.tokens + int(movable_room * share), inside))
            selection.take_answers(min(selection.tokens + int(movable_room * ANSWERS_SHARE), inside))
        else:
            names = min(int(movable_room * LEDGER_SHARE), inside // 3, LONGEST_LEDGER)
            selection.take_asked(min(selection.tokens + int(movable_room * ASKED_SHARE), inside))
            selection.take_requests(min(selection.tokens + int(movable_room * REQUESTS_SHARE), inside))
        selection.take_needed(inside - names)
        self._ledger = selection.ledger(min(inside - selection.exact_tokens(), LONGEST_LEDGER))
        if selection.take_needed(inside - self._ledger.tokens):  # quotes fill the space that names did not need
            self._ledger = selection.ledger(min(inside - selection.exact_tokens(), LONGEST_LEDGER))

    def block(self) -> Message | None:
        """Return the background message; None if it would be empty."""
        excerpts = self._selection.text()
        return self._spoken(excerpts, self._ledger.text) if excerpts or self._ledger.text else None

    def give_back(self, tokens: int) -> bool:
        """Remove the quotes chosen last, at least this many tokens, then the names. Returns False if none were left."""
        if self._selection.chosen:
            self._selection.give_back(tokens)
            return True
        named, self._ledger = bool(self._ledger.text), Ledger("", 0)
        return named

    def _spoken(self, excerpts: str, names: str) -> Message:
        return Message(Role.USER, (Text(background(excerpts, names, self._task)),))

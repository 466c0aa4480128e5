"""Keep the newest as it is, and of the rest what is most likely needed.

At a compaction the newest steps stay whole; what goes leaves behind one message of ours, marked as background:
verbatim excerpts of what the question, recent thoughts and arguments refer to, in conversation order,
and a ledger of names of what else was there. The budget is filled; nothing protected is touched.
"""

from everlong.compress.draft import OURS, Draft, Task
from everlong.compress.excerpts import Selection, background
from everlong.core import Action, Edit, History, Message, Role, Text, steps_of
from everlong.relevance import Index

__all__ = ["by_need"]

STEP = "by_need"
NEWEST_SHARE = 0.18  # of the target, for whole steps at the end
TALK_SHARE = 0.05  # if no tool was used: what matters was as likely said long ago
MOST_QUOTED = 48_000  # tokens; with a larger target whole steps serve better than more excerpts
LEDGER_SHARE = 0.11  # of the target, for names
LONGEST_LEDGER = 2_500  # tokens; a longer list of names is not read
REQUESTS_SHARE = 0.05  # of the target, for what users asked, before anything else
UNFILLED = 0.05  # of the target; with more left over, more of the newest is kept whole
ATTEMPTS = 3
SMALLEST_BLOCK = 120  # tokens; below that a block of ours is not worth its frame


def by_need(draft: Draft, task: Task, *, newest_share: float = NEWEST_SHARE) -> Draft:
    """Bring the draft to the target, if it is above it. The index of the task grows by what leaves."""
    if draft.total <= task.target:
        return draft
    index = Index() if task.index is None else task.index
    share = newest_share if any(message.calls for message in draft.history) else TALK_SHARE
    newest = max(int(task.target * share), task.target - MOST_QUOTED)
    outcome = draft
    for attempt in range(ATTEMPTS):
        gone = _gone(draft, task, newest)
        if not gone:
            return draft
        if attempt == 0:  # later ones keep more: they all choose from the same, whatever the index was used for before
            index = _reaching(index, draft.history[: max(draft.slots[n].at for n in gone) + 1])
        outcome = _cut(draft, task, gone, index)
        left = task.target - outcome.total
        if left < UNFILLED * task.target:
            break
        newest += left  # nothing more to quote: more of the newest stays whole
    return outcome


def _reaching(index: Index, history: History) -> Index:
    """The index grown to hold just this much; a new one if it holds more: what it holds decides the ranking."""
    index = index if index.messages <= len(history) else Index()
    index.extend(history[index.messages :])
    return index


def _cut(draft: Draft, task: Task, gone: list[int], index: Index) -> Draft:
    shorter = draft.without(gone, STEP, "older than what fits whole; see the excerpts")
    room = task.target - shorter.total
    if room < SMALLEST_BLOCK:
        return shorter
    sent = {slot.at: slot.message for slot in shorter.slots if slot.at != OURS}
    block = _block(Selection(draft.history, index, sent, task.counter), task, room)
    if block is None:
        return shorter
    tokens = task.counter.message(block)
    edit = Edit(
        at=min(draft.slots[n].at for n in gone if draft.slots[n].at != OURS),
        step=STEP,
        action=Action.INSERT,
        reason=f"excerpts and names from {len(gone)} messages",
        before=0,
        after=tokens,
    )
    head = next((n for n, slot in enumerate(shorter.slots) if slot.message.role is not Role.SYSTEM), len(shorter.slots))
    return shorter.with_inserted(head, block, tokens, edit)


def _gone(draft: Draft, task: Task, newest: int) -> list[int]:
    """Positions that leave: all but the steps of what is protected and the newest ones within their share.

    Empty also if nothing of the history would go.
    """
    steps = steps_of(draft.messages)
    kept: set[int] = set()
    used = 0
    for step in steps:
        members = range(step.start, step.stop)
        if any(draft.slots[n].at in draft.protected for n in members):
            kept.update(members)
            used += sum(draft.slots[n].tokens for n in members)
    spent = 0
    for step in reversed(steps):
        members = range(step.start, step.stop)
        if step.start in kept:
            continue
        size = sum(draft.slots[n].tokens for n in members)
        if spent + size > newest or used + size > task.target:
            break
        kept.update(members)
        used += size
        spent += size
    gone = [n for n in range(len(draft.slots)) if n not in kept]
    return gone if any(draft.slots[n].at != OURS for n in gone) else []


def _block(selection: Selection, task: Task, room: int) -> Message | None:
    """The background message, as large as the room allows; None if there is nothing to say."""
    inside = room - task.counter.message(_spoken(background("-", "" if selection.is_talk else "-", task)))
    names = 0 if selection.is_talk else min(int(task.target * LEDGER_SHARE), inside // 3, LONGEST_LEDGER)
    if not selection.is_talk:
        selection.take_requests(min(int(task.target * REQUESTS_SHARE), inside))
    selection.take_needed(inside - names)
    ledger = selection.ledger(min(inside - selection.exact_tokens(), LONGEST_LEDGER))
    if selection.take_needed(inside - ledger.tokens):  # there were fewer names than room for them; now fewer still
        ledger = selection.ledger(min(inside - selection.exact_tokens(), LONGEST_LEDGER))
    while selection.chosen or ledger.text:
        block = _spoken(background(selection.text(), ledger.text, task))
        excess = task.counter.message(block) - room
        if excess <= 0:
            return block
        if not selection.chosen:
            break
        selection.give_back(excess)
    return None


def _spoken(text: str) -> Message:
    return Message(Role.USER, (Text(text),))

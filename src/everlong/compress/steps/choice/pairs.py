"""Keep whole pairs of question and answer, from the newest back, as the documents describe it.

A pair is a round before the current one: the user's message, the answer, and the calls and results between them, which
count as tokens but not as messages. The current round is not history and stays. If summaries are written, a round that
no summary covers stays too; if it does not fit, its question is listed with a reference.
"""

from collections.abc import Callable

from everlong.compress.draft import Draft, Task, firm_steps, rounds_in
from everlong.compress.text.markers import rounds_left_out
from everlong.core import Action, Edit, Message, Role, Round, Text, frames_in, head_length, message_ref, user_text

__all__ = ["fewer_pairs", "last_messages", "pairs"]

STEP = "pairs"
OLDER = "older than the messages that are sent"
TOO_MANY = "the history and the current round do not fit together"
MOST_NAMED = 12  # rounds listed one by one if they did not fit


def pairs(draft: Draft, task: Task, *, most_messages: int, tokens: Callable[[int, int, int], int]) -> Draft:
    """Keep whole pairs, at most this many messages of user and assistant, and this many tokens.

    `tokens` returns the tokens, given the window, the tokens of the system text and the reserve for the answer. The
    newest pair stays even if it has more.
    Example, most_messages=4: user, a, user, a, user, a, user -> user, a, user, a, user
    """
    system = sum(slot.tokens for slot in draft.slots[: head_length(draft.messages)])
    room = tokens(task.window, system, task.reply)
    gone: list[int] = []
    for number, (pair, loose) in enumerate(reversed(_pairs(draft))):
        room -= sum(draft.slots[position].tokens for position in range(pair.start, pair.stop))
        most_messages -= _spoken(draft, pair)
        too_much = (room < 0 and number > 0) or most_messages < 0
        if gone or (too_much and not _must_stay(draft, task, pair)):
            gone += loose
    return draft.without(gone, STEP, OLDER) if gone else draft


def last_messages(draft: Draft, task: Task, *, count: int) -> Draft:  # noqa: ARG001 - a step
    """Keep the last messages before the current round, paired or not, from a user message on.

    Example, count=3: user, a, user, a, user -> user, a, user; the first of the three is the assistant's and goes too
    """
    earlier = [position for pair, _ in _pairs(draft) for position in range(pair.start, pair.stop)]
    kept = earlier[-count:] if count else []
    frames = frames_in(draft.messages)
    asked = (at for at in kept if draft.slots[at].message.role is Role.USER and at not in frames)
    start = next(asked, None)
    gone = [position for _, loose in _pairs(draft) for position in loose if start is None or position < start]
    return draft.without(gone, STEP, OLDER) if gone else draft


def fewer_pairs(draft: Draft, task: Task) -> Draft:
    """Leave out the oldest pairs until the draft is within the target."""
    excess = draft.total - task.target
    gone: list[int] = []
    uncovered: list[Round] = []
    for pair, loose in _pairs(draft):
        if excess <= 0:
            break
        gone += loose
        excess -= sum(draft.slots[position].tokens for position in loose)
        if loose and _must_stay(draft, task, pair):
            uncovered.append(pair)
    if not gone:
        return draft
    rest = draft.without(gone, STEP, TOO_MANY)
    return _with_reference(rest, draft, uncovered, task) if uncovered else rest


def _pairs(draft: Draft) -> list[tuple[Round, list[int]]]:
    """Return the rounds before the current one, each with the positions that may go: not the steps with pins."""
    firm = firm_steps(draft)
    return [
        (pair, [position for step in pair.steps if step not in firm for position in range(step.start, step.stop)])
        for pair in rounds_in(draft)[:-1]
    ]


def _spoken(draft: Draft, pair: Round) -> int:
    """Return how many messages of user and assistant a pair has, without calls and results."""
    messages = draft.messages[pair.start : pair.stop]
    return sum(message.role in (Role.USER, Role.ASSISTANT) and not message.calls for message in messages)


def _must_stay(draft: Draft, task: Task, pair: Round) -> bool:
    """Whether summaries are written and none covers the pair yet."""
    return task.uncovered is not None and draft.slots[pair.start].at >= task.uncovered


def _with_reference(rest: Draft, before: Draft, uncovered: list[Round], task: Task) -> Draft:
    """Return the draft with one message that lists the missing questions and their references."""
    questions = [before.slots[pair.start] for pair in uncovered]
    named = [(user_text(slot.message), message_ref(before.history[slot.at])) for slot in questions[-MOST_NAMED:]]
    message = Message(Role.USER, (Text(rounds_left_out(len(uncovered), named, task)),))
    tokens = task.counter.message(message)
    first = questions[0].at
    edit = Edit(
        at=first,
        step=STEP,
        action=Action.INSERT,
        reason="messages that left before a summary covered them",
        before=0,
        after=tokens,
        ref=message_ref(before.history[first]),
    )
    return rest.with_inserted(head_length(rest.messages), message, tokens, edit)

"""The state of the work, described by code: the summary that a compaction writes itself in work with tools.

In a conversation, a model's summary keeps the meaning of what was said. In work with tools it costs a call and keeps
less than excerpts of the same size. There a preset may leave the summary to code: at the compaction, it copies the
user's requests, the open tasks, the changed files and the failures, without waiting and without a model.
"""

from collections.abc import Container, Sequence

from everlong.core import FrameKind, History, Message, Role, frames_in, last_user_index, steps_of, task_index, user_text
from everlong.engine.raw_history import RawHistory
from everlong.engine.settings import Settings
from everlong.engine.thread import CallContext, ThreadState, newest_summary, summary_limit
from everlong.summarize import COMMON_WORDS, NO_FACTS, UNKNOWN_LATIN, Summary, facts_of, merged, spoken

__all__ = [
    "LEAST",
    "asks_model",
    "is_work",
    "language_of_users",
    "leaving",
    "situation",
    "steps_leaving",
    "summary_message_limit",
    "uncovered",
]

WORK_SHARE = 0.6  # of the assistant's messages; a turn of question, call and answer is still a conversation
MOST_IN_WORK = 400  # tokens: they replace excerpts, which keep more for the same cost
LEAST = 600  # tokens that a summary must cover to be worth its place
SPOKEN_BACK = 12  # user messages that decide the language
TELLING_WORDS = 3  # different common words of a language in Latin letters


def is_work(messages: Sequence[Message]) -> bool:
    """Return whether the thread is work with tools: most assistant messages are calls, or actions with results.

    Example: user, call, result, call, result, answer -> True; user, answer, user, call, result, answer, … -> False
    """
    frames = frames_in(messages).values()
    acted = {frame.answers for frame in frames if frame.kind is FrameKind.RESULT}
    answers = [at for at, message in enumerate(messages) if message.role is Role.ASSISTANT]
    calls = sum(bool(messages[at].calls) or at in acted for at in answers)
    return calls > WORK_SHARE * len(answers)


def asks_model(settings: Settings, state: ThreadState) -> bool:
    """Return whether a model is asked for a summary of a thread automatically."""
    return settings.summarises and (settings.summarises_work or not is_work((*state.prefix, *state.since)))


def situation(context: CallContext) -> Summary | None:
    """Return the state of the work, merged with the previous summary.

    None if code does not write summaries here, or if there is too little to say.
    """
    state, settings = context.state, context.settings
    if not settings.summarises or asks_model(settings, state):
        return None
    raw = context.raw_history()
    previous = newest_summary(context.engine.threads, context.thread, state.opened.point)
    rows = uncovered(raw, 0 if previous is None else previous.covers, context.length)
    messages = tuple(message for _, message in rows)
    covered = messages[: steps_leaving(messages)]
    if context.budget.counter.messages(covered) < LEAST:
        return None
    known = NO_FACTS if previous is None else previous.facts
    facts = facts_of(_without_task_and_pins(raw, rows[: len(covered)], {row.order for row in state.pinned}), known)
    if facts == NO_FACTS:
        return None
    language = language_of_users(messages, previous)
    newest = Summary(source="rules", language=language, facts=facts, covers=rows[len(covered) - 1][0] + 1)
    if previous is None:
        return newest
    limit = summary_limit(context.budget.movable)
    return merged(previous, newest, limit=limit, counter=context.budget.counter)


def _without_task_and_pins(raw: RawHistory, rows: Sequence[tuple[int, Message]], pinned: Container[int]) -> History:
    """Return the messages that a request would not contain anyway, so not the task and pins."""
    first = task_index(raw.history)
    task = None if first is None else raw.orders[first]
    return tuple(message for order, message in rows if order != task and order not in pinned)


def summary_message_limit(context: CallContext, summary: Summary, limit: int) -> int:
    """Return the tokens that a summary may take in a request; `limit` is what all messages may take."""
    most = summary_limit(min(limit, context.budget.movable))
    by_code = summary.source == "rules" and not context.settings.summarises_work
    return min(most, MOST_IN_WORK) if by_code and is_work((*context.state.prefix, *context.state.since)) else most


def uncovered(raw: RawHistory, first: int, until: int) -> list[tuple[int, Message]]:
    """Return the messages with orders from `first` to `until` (exclusive), with their orders, without system text."""
    pairs = zip(raw.orders, raw.history, strict=True)
    return [(order, message) for order, message in pairs if first <= order < until and message.role is not Role.SYSTEM]


def leaving(messages: History) -> int:
    """Return how many of the messages a summary covers: all rounds but the newest, else all steps but the newest.

    Example: user, a, user, a -> 2; user, call 1, result 1, call 2, result 2, call 3 -> 5
    """
    return last_user_index(messages) or steps_leaving(messages)


def steps_leaving(messages: History) -> int:
    """Return how many messages come before the newest step."""
    steps = steps_of(messages)
    return steps[-1].start if steps else 0


def language_of_users(messages: History, previous: Summary | None) -> str:
    """Return the language of a summary: that of the newest user messages, else that of the previous summary."""
    texts = [text for message in reversed(messages) if (text := user_text(message))][:SPOKEN_BACK]
    if not texts and previous is not None:
        return previous.language
    language = spoken(texts)
    known = COMMON_WORDS.get(language)
    if language == "en" or known is None:
        return language
    # A short word that two languages share decides nothing, however often it is said.
    return language if len(known.intersection(" ".join(texts).lower().split())) >= TELLING_WORDS else UNKNOWN_LATIN

"""When a summary starts automatically: after a turn, or because a thread is idle. Only reads, without a lock."""

from collections.abc import Callable, Sequence

from everlong.core import Action, Message, Point, Withdrawal, head_length, user_text
from everlong.engine.budget import counter_for
from everlong.engine.contracts import Prepared
from everlong.engine.requests.due import margin_before
from everlong.engine.settings import Settings
from everlong.engine.summaries.commit import SUMMARY
from everlong.engine.summaries.snapshot import policy_of
from everlong.engine.thread import EngineContext, newest_summary
from everlong.summarize import Style

__all__ = ["AGAIN_AFTER", "is_due", "is_due_when_idle", "style_of"]

AGAIN_AFTER = 20  # rows that a thread must grow by after a failed attempt


def style_of(settings: Settings) -> Style:
    """Return the style of a thread's summaries if none was chosen."""
    return settings.rules.summary.style


def is_due(engine: EngineContext, prepared: Prepared, settings: Settings, style: Style) -> bool:
    """Return whether a summary should start now that the request was answered. It only reads, without a lock."""
    policy = policy_of(settings, style)
    if not policy.by_count and engine.threads.thread(prepared.thread).points != prepared.compactions:
        return False  # compacted since then: the size of the last request no longer matters
    last = next(iter(engine.threads.last(prepared.thread, 1)), None)
    in_loop = last is not None and isinstance(last.entry, Message) and bool(last.entry.calls)
    undone = engine.state(prepared.thread).undone
    if undone and policy.by_count and not _grown_since_undo(engine, prepared.thread):
        return False
    if policy.rounds is not None:
        if _forced_out(engine, prepared):
            return True
        questions = sum(bool(user_text(message)) for message in _uncovered(engine, prepared.thread))
        return not in_loop and questions >= policy.rounds
    if policy.evicts_before is not None:
        return not in_loop and _evicted(engine, prepared.thread, policy.evicts_before)
    # After an undo, the next compaction comes only when it is unavoidable, at the limit.
    due = prepared.limit if undone else prepared.threshold
    if policy.due is not None:
        return not in_loop and _tokens_now(engine, prepared) >= due and _helps(engine, prepared)
    margin = margin_before(due, prepared.budget, in_loop=in_loop)
    return prepared.tokens >= due - margin and _is_new(engine, prepared, margin)


def _grown_since_undo(engine: EngineContext, thread: str) -> bool:
    """Return whether the thread has grown enough since the last undo, for a preset that counts messages."""
    opened = engine.state(thread).opened
    undos = (row.order for row in reversed(opened.rows) if isinstance(row.entry, Withdrawal))
    return opened.thread.length >= next(undos, 0) + AGAIN_AFTER


def _forced_out(engine: EngineContext, prepared: Prepared) -> bool:
    """Whether the request had to leave out messages that no summary covers."""
    summary = newest_summary(engine.threads, prepared.thread, engine.state(prepared.thread).opened.point)
    first = 0 if summary is None else summary.covers
    return any(edit.action is Action.DROP and edit.at >= first for edit in prepared.edits)


def _uncovered(engine: EngineContext, thread: str) -> list[Message]:
    """The messages that no summary covers yet."""
    summary = newest_summary(engine.threads, thread, engine.state(thread).opened.point)
    rows = engine.threads.read(thread, 0 if summary is None else summary.covers)
    return [row.entry for row in rows if isinstance(row.entry, Message)]


def _evicted(engine: EngineContext, thread: str, evicts_before: Callable[[Sequence[Message]], int]) -> bool:
    """Whether the preset no longer sends messages that no summary covers."""
    state = engine.state(thread)
    raw = engine.raw_history(state)
    start = evicts_before(raw.history)
    summary = newest_summary(engine.threads, thread, state.opened.point)
    first = 0 if summary is None else summary.covers
    return any(order >= first for order in raw.orders[head_length(raw.history) : start])


def _tokens_now(engine: EngineContext, prepared: Prepared) -> int:
    """The tokens of the request and its answer."""
    rows = engine.threads.read(prepared.thread, prepared.length)
    new = tuple(row.entry for row in rows if isinstance(row.entry, Message))
    return prepared.tokens + counter_for(prepared.call.model).messages(new)


def _helps(engine: EngineContext, prepared: Prepared) -> bool:
    """Return whether a summary may help a preset with its own threshold.

    Either the newest summary brought the request below that threshold, or enough is new since then.
    """
    new = engine.state(prepared.thread).new_tokens(prepared.counted)
    below = new is None or prepared.counted - new + prepared.budget.tools < prepared.threshold
    return below or _is_new(engine, prepared)


def is_due_when_idle(engine: EngineContext, prepared: Prepared, settings: Settings, style: Style) -> bool:
    """Return whether a summary should start because the thread is idle and the provider's cache is about to expire."""
    thread = engine.threads.thread(prepared.thread)
    if policy_of(settings, style).by_count or settings.rules.every_call or thread.length > prepared.length + 1:
        return False  # the last condition: somebody has written since
    if engine.state(prepared.thread).undone:
        return False
    last = next(iter(engine.threads.last(prepared.thread, 1)), None)
    in_loop = last is not None and isinstance(last.entry, Message) and bool(last.entry.calls)
    budget = prepared.budget
    wanted = settings.cold_mark * budget.movable * budget.threshold / settings.threshold_share
    if in_loop or prepared.tokens - budget.tools < budget.fixed + wanted:
        return False
    point = engine.state(prepared.thread).opened.point
    plain = point is None or (isinstance(point.entry, Point) and point.entry.reason != SUMMARY)
    return plain or _is_new(engine, prepared)


def _is_new(engine: EngineContext, prepared: Prepared, margin: float = 0) -> bool:
    """Return whether enough is new since the newest compaction for another one, now or after `margin` tokens."""
    new = engine.state(prepared.thread).new_tokens(prepared.counted)
    return new is None or new >= prepared.renewal - margin

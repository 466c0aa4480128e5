"""Take the snapshot that a summary is written from: the messages that no summary covers yet, as the thread is now.

It takes whole rounds, all but the newest. In a tool loop that is one long round, it takes whole steps, all but the open
one. System text is never summarised: every request has it unchanged.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from everlong.compress import SummaryPolicy, policy_of_style
from everlong.core import History, Message, last_user_index
from everlong.engine.contracts import Prepared, Request
from everlong.engine.raw_history import RawHistory
from everlong.engine.requests.assembly import upcoming
from everlong.engine.requests.placement import beginning, with_standing, without_tail
from everlong.engine.requests.preparation import prefix_to_cache
from everlong.engine.requests.situation import LEAST, language_of_users, leaving, steps_leaving, uncovered
from everlong.engine.settings import Settings
from everlong.engine.thread import CallContext, newest_summary, summary_limit
from everlong.engine.view import View
from everlong.summarize import Style, Summary

__all__ = ["Snapshot", "Task", "Wanted", "policy_of", "snapshot_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Why a summary starts, its style, its focus, and whether a person waits for it.

    `sent` is the last request of the thread, which its model still has in its cache. With `at_once` the summary makes a
    compaction as soon as it is written; otherwise only when enough is new. `leased` means that it is a job which no
    other process has.
    """

    reason: str
    style: Style
    focus: str = ""
    by_hand: bool = False
    at_once: bool = False
    leased: bool = False
    sent: Prepared | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What is to be summarised. `cached` is a request whose beginning the model `cached_at` has in its cache."""

    covered: History
    previous: Summary | None
    style: Style
    language: str
    limit: int
    focus: str = ""
    cached: Request | None = None
    #: Endpoint and name of that model, and how many of its tokens one counted token is, by its reports.
    cached_at: tuple[str, str] = ("", "")
    scale: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The task, and the thread at that time: rows, points, the tokens of its view, and what the summary will cover."""

    task: Task
    length: int
    before: int
    covers: int
    window: int
    points: int = 0
    started: str = ""
    by_hand: bool = False
    at_once: bool = False


def policy_of(settings: Settings, style: Style) -> SummaryPolicy:
    """Return when a summary in this style is due: by the preset, or by the style's own preset if they differ."""
    policy = settings.rules.summary
    return policy if policy.style == style else policy_of_style(style)


def snapshot_of(context: CallContext, wanted: Wanted) -> Snapshot | None:
    """Return what to summarise now; None if it is not worth a call."""
    length = context.length
    until = length if wanted.sent is None else min(length, wanted.sent.length + 1)  # the request and its answer
    previous = newest_summary(context.engine.threads, context.thread, context.state.opened.point)
    raw = context.raw_history()
    rows = uncovered(raw, 0 if previous is None else previous.covers, until)
    messages = tuple(message for _, message in rows)
    policy = policy_of(context.settings, wanted.style)
    evicts = policy.evicts_before
    end = leaving(messages) if evicts is None else _evicted(raw, rows, evicts)
    least = 1 if policy.by_count else LEAST
    by_rounds = bool(last_user_index(messages))
    if context.budget.counter.messages(messages[:end]) < least and evicts is None:
        end, by_rounds = steps_leaving(messages), False  # a long loop after a short conversation
    covered = messages[:end]
    if context.budget.counter.messages(covered) < least:
        return None
    view = upcoming(context)
    task = Task(
        covered=covered,
        previous=previous,
        style=wanted.style,
        language=language_of_users(messages, previous),
        limit=summary_limit(context.budget.movable),
        focus=wanted.focus,
        cached=_cached(context, wanted, view, by_rounds=by_rounds),
        cached_at=(context.call.endpoint, context.call.model),
        scale=_scale(context),
    )
    return Snapshot(
        task=task,
        length=length,
        before=view.tokens,
        covers=rows[end - 1][0] + 1,
        window=context.budget.window.prompt,
        points=context.state.opened.thread.points,
        by_hand=wanted.by_hand,
        at_once=wanted.at_once,
    )


def _evicted(
    raw: RawHistory, rows: list[tuple[int, Message]], evicts_before: Callable[[Sequence[Message]], int]
) -> int:
    start = evicts_before(raw.history)
    first = raw.orders[start] if start < len(raw.orders) else raw.length
    return sum(order < first for order, _ in rows)


def _scale(context: CallContext) -> float:
    """Return how many provider tokens one counted token is, at least 1."""
    counted = max(
        1, context.budget.counter.messages(context.state.prefix) + context.budget.counter.messages(context.state.since)
    )
    return max(1.0, context.budget.true(counted) / (counted + context.budget.parts.tools))


def _cached(context: CallContext, wanted: Wanted, view: View, *, by_rounds: bool) -> Request | None:
    """The beginning of the last request up to the end of what is covered, which the provider has in its cache."""
    if policy_of(context.settings, wanted.style).evicts_before is not None:
        return None  # it does not contain what was evicted
    if wanted.sent is None and context.budget.preset.every_call:
        return None
    if wanted.sent is None:
        sent = _request(context, view)
        until = leaving(sent.messages) if by_rounds else steps_leaving(sent.messages)
    else:
        sent = replace(wanted.sent.request, messages=without_tail(wanted.sent.request.messages, wanted.sent.call))
        until = leaving(sent.messages) if by_rounds else len(sent.messages)
    return beginning(sent, until) if until else None


def _request(context: CallContext, view: View) -> Request:
    call = context.call
    return Request(
        model=call.model,
        messages=with_standing(view.messages, call),
        tools=call.schemas,
        max_tokens=call.max_tokens,
        temperature=call.temperature,
        extra=call.extra,
        caching=prefix_to_cache(context, view),
    )

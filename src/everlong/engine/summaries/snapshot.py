"""Take the snapshot that a summary is written from: the messages that no summary covers yet, as the thread is now.

Whole rounds, all but the newest; in a tool loop that is one long round, whole steps, all but the open one. System text
is never summarised: it stands in every request as it is.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from everlong.compress import SummaryPolicy, policy_of_style
from everlong.core import History, Message, Role, last_user_index, steps_of, user_text
from everlong.engine.contracts import Prepared, Request, beginning, with_standing, without_tail
from everlong.engine.preparation import prefix_to_cache, upcoming
from everlong.engine.settings import Settings
from everlong.engine.thread import CallContext, RawHistory, newest_summary, summary_limit
from everlong.engine.view import View
from everlong.summarize import COMMON_WORDS, UNTOLD, Style, Summary, spoken

__all__ = ["Snapshot", "Task", "Wanted", "policy_of", "snapshot_of"]

LEAST = 600  # tokens that a summary must be about to be worth its call
SPOKEN_BACK = 12  # user messages that decide the language
TELLING_WORDS = 3  # different common words of a language in Latin letters


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Why a summary is begun, in which style, what it should keep in view, and whether a person waits for it.

    `sent` is the last request of the thread, which its model still has in its cache. With `at_once` the summary makes a
    compaction as soon as it is written; else not before enough is new.
    """

    reason: str
    style: Style
    focus: str = ""
    by_hand: bool = False
    at_once: bool = False
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
    #: Endpoint and name of that model, and how many of its tokens one of ours is, by what it reported.
    cached_at: tuple[str, str] = ("", "")
    scale: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The task, and how the thread looked: its rows and points, the tokens of its view, what the summary will cover."""

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
    """Return when a summary in this style is due: as the preset says; if it has another style, as that style's does."""
    policy = settings.rules.summary
    return policy if policy.style == style else policy_of_style(style)


def snapshot_of(context: CallContext, wanted: Wanted) -> Snapshot | None:
    """Return what there is to summarise now; None if it is not worth a call."""
    length = context.length
    until = length if wanted.sent is None else min(length, wanted.sent.length + 1)  # the request, and its answer
    previous = newest_summary(context.engine.threads, context.thread, context.state.opened.point)
    raw = context.raw_history()
    uncovered = _uncovered(raw, 0 if previous is None else previous.covers, until)
    messages = tuple(message for _, message in uncovered)
    policy = policy_of(context.settings, wanted.style)
    evicts = policy.evicts_before
    leaving = _leaving(messages) if evicts is None else _evicted(raw, uncovered, evicts)
    least = 1 if policy.by_count else LEAST
    by_rounds = bool(last_user_index(messages))
    if context.budget.counter.messages(messages[:leaving]) < least and evicts is None:
        leaving, by_rounds = _steps_leaving(messages), False  # a long loop after a short talk
    covered = messages[:leaving]
    if context.budget.counter.messages(covered) < least:
        return None
    view = upcoming(context)
    task = Task(
        covered=covered,
        previous=previous,
        style=wanted.style,
        language=_language(messages, previous),
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
        covers=uncovered[leaving - 1][0] + 1,
        window=context.budget.window.prompt,
        points=context.state.opened.thread.points,
        by_hand=wanted.by_hand,
        at_once=wanted.at_once,
    )


def _uncovered(raw: RawHistory, first: int, until: int) -> list[tuple[int, Message]]:
    pairs = zip(raw.orders, raw.history, strict=True)
    return [(order, message) for order, message in pairs if first <= order < until and message.role is not Role.SYSTEM]


def _leaving(messages: History) -> int:
    """How many of the messages a summary covers: all rounds but the newest, else all steps but the newest.

    Example: user, a, user, a -> 2; user, call 1, result 1, call 2, result 2, call 3 -> 5
    """
    return last_user_index(messages) or _steps_leaving(messages)


def _steps_leaving(messages: History) -> int:
    steps = steps_of(messages)
    return steps[-1].start if steps else 0


def _evicted(
    raw: RawHistory, uncovered: list[tuple[int, Message]], evicts_before: Callable[[Sequence[Message]], int]
) -> int:
    start = evicts_before(raw.history)
    first = raw.orders[start] if start < len(raw.orders) else raw.length
    return sum(order < first for order, _ in uncovered)


def _language(messages: History, previous: Summary | None) -> str:
    texts = [text for message in reversed(messages) if (text := user_text(message))][:SPOKEN_BACK]
    if not texts and previous is not None:
        return previous.language
    language = spoken(texts)
    known = COMMON_WORDS.get(language)
    if language == "en" or known is None:
        return language
    # One short word that two languages share, said again and again, decides nothing.
    return language if len(known.intersection(" ".join(texts).lower().split())) >= TELLING_WORDS else UNTOLD


def _scale(context: CallContext) -> float:
    """How many of the provider's tokens one of ours is; at least one."""
    counted = max(
        1, context.budget.counter.messages(context.state.prefix) + context.budget.counter.messages(context.state.since)
    )
    return max(1.0, context.budget.true(counted) / (counted + context.budget.parts.tools))


def _cached(context: CallContext, wanted: Wanted, view: View, *, by_rounds: bool) -> Request | None:
    """The beginning of the last request, which the provider has in its cache: up to the end of what is covered."""
    if policy_of(context.settings, wanted.style).evicts_before is not None:
        return None  # what was evicted is not in it
    if wanted.sent is None and context.budget.preset.every_call:
        return None
    if wanted.sent is None:
        sent = _request(context, view)
        until = _leaving(sent.messages) if by_rounds else _steps_leaving(sent.messages)
    else:
        sent = replace(wanted.sent.request, messages=without_tail(wanted.sent.request.messages, wanted.sent.call))
        until = _leaving(sent.messages) if by_rounds else len(sent.messages)
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

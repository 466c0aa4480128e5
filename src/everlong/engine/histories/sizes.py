"""Prepare a request by its sizes alone: far from a compaction, the history need not be read again.

A caller that forwards its client's own messages knows how many tokens each one takes. Far from the threshold the engine
needs nothing else: nothing is recalled, left out or due. If more may matter, `prepare_by_sizes` returns None, and the
caller prepares the request from the messages.
"""

from dataclasses import dataclass
from typing import cast

from everlong.core import EventKind
from everlong.engine.budget import (
    LIMITS,
    WINDOW,
    Anchor,
    CallBudget,
    Gauge,
    budget_of,
    calibration_of,
    learned_limits,
    window_key,
)
from everlong.engine.contracts import Call, Prepared
from everlong.engine.events import window_hint
from everlong.engine.settings import Settings
from everlong.engine.thread import EngineContext
from everlong.errors import BudgetImpossible
from everlong.wire import Caching, Request, format_named

__all__ = ["FAR", "Sizes", "prepare_by_sizes"]

FAR = 0.75  # of the threshold; below it nothing is due and no summary starts
MOST_ROOMS = 256  # kinds of calls whose budget for messages is remembered
ROOM = 0.15  # of the window; if messages have less, the user learns what takes the rest


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of a conversation. `counted` are the tokens of its messages, system text included."""

    counted: int
    #: What was counted and reported for the request that this one extends.
    anchor: Anchor | None = None
    #: Whether it is the first request of the conversation.
    first: bool = False
    #: Whether `counted` is approximate: then nothing is learned from it.
    rough: bool = False


@dataclass(frozen=True, slots=True)
class _Room:
    """The budget for messages in one kind of call. From `near` provider tokens on, the messages have to be read."""

    budget: CallBudget
    near: float
    reply: int | None


def prepare_by_sizes(engine: EngineContext, thread: str, call: Call, sizes: Sizes, own: str = "{}") -> Prepared | None:
    """Return a request whose messages are sent unchanged; None if its messages must be read.

    `own` are settings for this thread. The request has no messages: the caller holds them.
    """
    room = None if engine.vectors is not None else _room(engine, call, own)
    if room is None:
        return None
    budget, anchor = room.budget, sizes.anchor
    counter = budget.counter
    gauge = Gauge(
        calibration_of(engine.threads, call, counter), anchor if anchor and anchor.model == call.model else None
    )
    tokens = gauge.true(sizes.counted + budget.parts.tools)
    if tokens >= room.near:
        return None
    if room.reply is not None and tokens + budget.parts.margin + room.reply > budget.parts.window:
        return None  # the answer must be limited, which needs the messages
    with engine.journal(thread) as journal:
        turn = journal.note(EventKind.TURN_STARTED, parent=call.parent, model=call.model)
        if sizes.first and not budget.window.known:
            hint = window_hint(budget.window, summarises=not budget.preset.summary.needs_window)
            journal.note(EventKind.CONTEXT_WARNED, parent=turn, model=call.model, reason=hint)
    seconds = engine.settings.cache_seconds
    caching = Caching(stable=0, lasting=0, seconds=seconds) if call.breakpoints else None
    return Prepared(
        thread=thread,
        call=call,
        request=Request(
            model=call.model, messages=(), tools=call.schemas, max_tokens=room.reply, extra=call.extra, caching=caching
        ),
        window=budget.window,
        budget=budget.parts,
        tokens=tokens,
        counted=sizes.counted,
        threshold=budget.true_threshold,
        limit=budget.messages + budget.parts.tools,
        turn=turn,
        extends=None if anchor is None else (anchor.counted, anchor.reported),
        rough=sizes.rough,
    )


def _room(engine: EngineContext, call: Call, own: str) -> _Room | None:
    """Return the budget for messages, cached by call, settings and learned figures."""
    facts = tuple(engine.threads.fact(kind, window_key(call)) for kind in (WINDOW, LIMITS))
    figures = (call.model, call.fmt, call.endpoint, call.provider, call.served, call.asked, call.max_tokens)
    key = (*figures, call.thinking, call.schemas, call.standing, call.tail, own, *facts)
    known = engine.rooms.get(key, engine)
    if known is engine:
        known = _made_room(engine, call, own)
        if len(engine.rooms) >= MOST_ROOMS:
            engine.rooms.clear()
        engine.rooms[key] = known
    return cast("_Room | None", known)


def _made_room(engine: EngineContext, call: Call, own: str) -> _Room | None:
    settings = engine.settings.for_thread(own)
    if not _decides_by_size(settings) or learned_limits(engine.threads, call).size.refused is not None:
        return None
    try:
        budget = budget_of(engine.threads, settings, call, registry=engine.registry)
    except BudgetImpossible:
        return None
    reply = call.max_tokens
    if reply is None and format_named(call.fmt).api.needs_length:
        reply = budget.parts.reply
    return _Room(budget, _near(budget, settings), reply)


def _decides_by_size(settings: Settings) -> bool:
    """Return whether only the size of a request decides what happens to it."""
    return settings.rules.due_by_tokens and not settings.rules.arrival and not settings.untouched


def _near(budget: CallBudget, settings: Settings) -> float:
    """The provider's tokens from which something may be due, even after a pause in which the provider's cache expired.

    The fixed part of the messages is not known here. It would only raise the limits, so the result is rather too low
    than too high. The budget for messages must also be large enough, or the user would have to learn what fills the
    window.
    """
    share = budget.parts.threshold / settings.threshold_share
    cold = settings.cold_mark * share * budget.messages
    narrow = budget.messages - ROOM * budget.parts.window
    return min(FAR * budget.least_threshold, cold, narrow)

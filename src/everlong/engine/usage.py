"""Record what a call cost and learn from what the provider reported; sum up what threads have cost so far."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace

from everlong.core import Event, EventKind
from everlong.engine.budget import (
    Anchor,
    calibration_of,
    counter_for,
    keep_calibration,
    keep_limits,
    learn_window,
    learned_limits,
)
from everlong.engine.contracts import Prepared, with_beside
from everlong.engine.events import Journal
from everlong.engine.thread import EngineContext
from everlong.engine.view import bytes_of
from everlong.errors import ContextOverflow
from everlong.windows import Prices
from everlong.wire import Usage, plausible, silent_overflow, truncated_window

__all__ = [
    "FOR_SUMMARIES",
    "Saved",
    "Spent",
    "cached_in",
    "calls_in",
    "cost_of",
    "record_failure",
    "record_usage",
    "saved_on",
    "spent_on",
]

FOR_SUMMARIES = "summary"  # the reason of usage that was not for the conversation itself
MILLION = 1_000_000
STOOD_STILL = 128  # tokens more than before, of which a report knows nothing
ANY_ESTIMATE = 100  # so many times what was reported: only where it ends counts
LEAST_TRUE = 0.5  # of what was counted; below it a report counts only a part of the request


def record_usage(
    engine: EngineContext, prepared: Prepared, usage: Usage | None, *, stop: str = "stop", said: bool = True
) -> ContextOverflow | None:
    """Record what an answer cost. Returns the overflow that it hides, if any; then the call is not finished.

    `said` is whether the answer has any words or calls in it.
    """
    thread = prepared.thread
    with engine.states.lock(thread), engine.journal(thread) as journal:
        hidden = None if usage is None else _hidden_overflow(engine, journal, prepared, usage, stop, said)
        if usage is not None:
            _note_usage(journal, prepared, usage)
        if hidden is not None:
            return hidden
        told = usage is not None and plausible(usage, prepared.budget.window, estimate=prepared.tokens)
        if usage is not None and told:
            _learn(engine, prepared, usage)
        _raise_bounds(engine, prepared, usage.prompt if usage is not None and told else prepared.tokens)
        if prepared.overflow:
            journal.note(
                EventKind.OVERFLOW_RECOVERED,
                parent=prepared.overflow,
                model=prepared.call.model,
                tokens_after=prepared.tokens,
            )
        journal.note(EventKind.TURN_FINISHED, parent=prepared.turn, model=prepared.call.model, reason=stop)
        return None


def record_failure(engine: EngineContext, prepared: Prepared, reason: str) -> None:
    """Record that a call failed: refused for good, broken off, or cancelled."""
    with engine.journal(prepared.thread) as journal:
        if prepared.overflow:
            journal.note(EventKind.OVERFLOW_FAILED, parent=prepared.overflow, model=prepared.call.model, reason=reason)
        journal.note(EventKind.TURN_FAILED, parent=prepared.turn, model=prepared.call.model, reason=reason)


def cost_of(usage: Usage, prices: Prices) -> float | None:
    """Return US dollars, or None if no price is known. What was cached or written to the cache has its own price."""
    if prices.input is None and prices.output is None:
        return None
    base = prices.input or 0.0
    read = base if prices.cache_read is None else prices.cache_read
    written = base if prices.cache_write is None else prices.cache_write
    plain = max(0, usage.prompt - usage.cached - usage.cache_written)
    total = plain * base + usage.cached * read + usage.cache_written * written + usage.output * (prices.output or 0.0)
    return total / MILLION


def _note_usage(journal: Journal, prepared: Prepared, usage: Usage) -> None:
    journal.note(
        EventKind.USAGE_RECORDED,
        parent=prepared.turn,
        model=prepared.call.model,
        tokens_before=usage.prompt,
        tokens_after=usage.output,
        cost=cost_of(usage, prepared.window.prices),
        data=f'{{"cached":{usage.cached},"cache_written":{usage.cache_written},"reasoning":{usage.reasoning}}}',
    )


def _hidden_overflow(
    engine: EngineContext, journal: Journal, prepared: Prepared, usage: Usage, stop: str, said: bool
) -> ContextOverflow | None:
    """An overflow that came as a success. The window it shows is learned."""
    served = truncated_window(usage, prepared.tokens) or _stands_still(engine, prepared, usage)
    if served is not None:
        if learn_window(engine.threads, prepared.call, served):
            _note_learned(journal, prepared, served, "the server read less than was sent")
        return ContextOverflow(
            f"the server read {usage.prompt:,} of about {prepared.tokens:,} tokens and dropped the rest in silence",
            limit=served,
            requested=prepared.tokens,
        )
    output = usage.output if said else 0
    sign = silent_overflow(usage, prepared.budget.window, finish=stop, output=output)
    # An answer that ends where the window ended is an answer: only one that says nothing is tried again.
    if sign is None or said:
        return None
    return ContextOverflow(str(sign), requested=usage.prompt)


def _stands_still(engine: EngineContext, prepared: Prepared, usage: Usage) -> int | None:
    """The window of a server that drops what is too much: its report does not grow although more is sent.

    Example: 8 246 counted and 8 192 reported, then 8 800 counted and again 8 192 reported -> 8 192
    """
    state = engine.states.get(prepared.thread)
    anchor = None if state is None else state.anchor
    if anchor is None or (anchor.model, anchor.compactions) != (prepared.call.model, prepared.compactions):
        return None
    more = prepared.counted + prepared.budget.tools - anchor.counted
    if more < STOOD_STILL or usage.prompt > anchor.reported:
        return None
    return truncated_window(usage, anchor.counted + usage.prompt * ANY_ESTIMATE)


def _note_learned(journal: Journal, prepared: Prepared, window: int, reason: str) -> None:
    journal.note(
        EventKind.WINDOW_LEARNED,
        parent=prepared.turn,
        model=prepared.call.model,
        reason=reason,
        tokens_before=prepared.budget.window,
        tokens_after=window,
    )


def _learn(engine: EngineContext, prepared: Prepared, usage: Usage) -> None:
    """Calibrate by what was reported, and anchor the next count at it."""
    counter = counter_for(prepared.call.model)
    known = calibration_of(engine.threads, prepared.call, counter)
    counted = prepared.counted + prepared.budget.tools
    if usage.prompt < LEAST_TRUE * counted:
        return
    observed = known.observe(counted, usage.prompt)
    if observed != known:
        keep_calibration(engine.threads, prepared.call, observed)
    state = engine.states.get(prepared.thread)
    sent = prepared.request.messages
    if state is not None and state.view is not None and with_beside(state.view.messages, prepared.call) == sent:
        anchor = Anchor(prepared.call.model, prepared.compactions, counted, usage.prompt)
        engine.states.put(prepared.thread, replace(state, anchor=anchor))


def _raise_bounds(engine: EngineContext, prepared: Prepared, prompt: int) -> None:
    """What passed is not above a limit that refusals told of."""
    known = learned_limits(engine.threads, prepared.call)
    total = known.total.after_pass(prepared.with_reply(prompt))
    raised = replace(known, total=total, prompt=known.prompt.after_pass(prompt))
    if known.size.refused is not None:
        raised = replace(
            raised, size=known.size.after_pass(bytes_of(prepared.request.messages, prepared.request.tools))
        )
    if raised != known:
        keep_limits(engine.threads, prepared.call, raised)


@dataclass(frozen=True, slots=True)
class Spent:
    """Calls and tokens of one model. `cost` is in US dollars; `unpriced` counts calls without a known price.

    `summary_calls` and `summary_cost` are the part of it that summaries took.
    """

    model: str
    calls: int = 0
    prompt: int = 0
    cached: int = 0
    output: int = 0
    cost: float = 0.0
    unpriced: int = 0
    summary_calls: int = 0
    summary_cost: float = 0.0


def spent_on(events: Iterable[Event]) -> list[Spent]:
    """Return what was spent on each model, the dearest first."""
    spent: dict[str, Spent] = {}
    for event in events:
        if event.kind is not EventKind.USAGE_RECORDED:
            continue
        so_far = spent.get(event.model, Spent(event.model))
        calls, cost = calls_in(event), event.cost or 0.0
        spent[event.model] = replace(
            so_far,
            calls=so_far.calls + calls,
            prompt=so_far.prompt + (event.tokens_before or 0),
            cached=so_far.cached + cached_in(event),
            output=so_far.output + (event.tokens_after or 0),
            cost=so_far.cost + cost,
            unpriced=so_far.unpriced + (calls if event.cost is None else 0),
            summary_calls=so_far.summary_calls + (calls if event.reason == FOR_SUMMARIES else 0),
            summary_cost=so_far.summary_cost + (cost if event.reason == FOR_SUMMARIES else 0.0),
        )
    return sorted(spent.values(), key=lambda row: (-row.cost, -row.prompt, row.model))


@dataclass(frozen=True, slots=True)
class Saved:
    """What compaction kept out of the requests to one model: how many were shorter for it, by how many tokens."""

    model: str
    requests: int = 0
    tokens: int = 0

    def worth(self, prices: Prices) -> tuple[float, float] | None:
        """Return dollars at least and at most: had all of it been read from a cache, had none. None without a price."""
        whole, cached = (cost_of(Usage(prompt=self.tokens, cached=n), prices) for n in (0, self.tokens))
        return None if whole is None or cached is None else (min(whole, cached), max(whole, cached))


def saved_on(events: Iterable[Event]) -> list[Saved]:
    """Return what the compactions of one thread saved with each model, by its events in order; the most first.

    A request is as much shorter as all compactions that stand then made the thread shorter. Example: a compaction
    from 10 000 to 4 000 tokens, then three requests -> 3 requests, 18 000 tokens
    """
    saved: dict[str, Saved] = {}
    shorter = 0
    for event in events:
        if event.kind in (EventKind.CONTEXT_COMPRESSED, EventKind.CONTEXT_RESTORED):
            shorter = max(0, shorter + (event.tokens_before or 0) - (event.tokens_after or 0))
        elif event.kind is EventKind.USAGE_RECORDED and event.reason != FOR_SUMMARIES and shorter:
            so_far = saved.get(event.model, Saved(event.model))
            saved[event.model] = Saved(event.model, so_far.requests + 1, so_far.tokens + shorter)
    return sorted(saved.values(), key=lambda row: (-row.tokens, row.model))


def calls_in(event: Event) -> int:
    """Return how many calls a row of usage stands for: a summary may take several."""
    return _figure(event, "calls", 1)


def cached_in(event: Event) -> int:
    """Return how much of the prompt was cached; 0 if the event does not say."""
    return _figure(event, "cached", 0)


def _figure(event: Event, name: str, default: int) -> int:
    try:
        more = json.loads(event.data)
    except ValueError:
        return default
    figure = more.get(name) if isinstance(more, dict) else None
    return figure if type(figure) is int and figure >= 0 else default

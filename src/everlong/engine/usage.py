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
from everlong.engine.contracts import Prepared
from everlong.engine.events import ASSEMBLED, Journal
from everlong.engine.requests.placement import with_beside
from everlong.engine.thread import EngineContext
from everlong.engine.view import bytes_of
from everlong.errors import ContextOverflow
from everlong.windows import Prices, Registry, window
from everlong.wire import Usage, plausible, silent_overflow, truncated_window

__all__ = [
    "FOR_SUMMARIES",
    "Saved",
    "Savings",
    "Spared",
    "Spent",
    "anchor_at",
    "cached_in",
    "calls_in",
    "cost_of",
    "record_failure",
    "record_usage",
    "saved_on",
    "spent_on",
]

FOR_SUMMARIES = "summary"  # the reason of usage that was not for the conversation itself but for its summaries
MILLION = 1_000_000
STOOD_STILL = 128  # tokens more than before that a report does not show
ANY_ESTIMATE = 100  # times the report: an estimate so large that only the reported figure decides
LEAST_TRUE = 0.5  # of the counted tokens; a report below it covers only a part of the request


def record_usage(
    engine: EngineContext, prepared: Prepared, usage: Usage | None, *, stop: str = "stop", said: bool = True
) -> ContextOverflow | None:
    """Record what an answer cost. Returns the overflow that it hides, if any; then the call is not finished.

    `said` is whether the answer has any text or calls.
    """
    thread = prepared.thread
    with engine.states.lock(thread), engine.journal(thread) as journal:
        hidden = None if usage is None else _hidden_overflow(engine, journal, prepared, usage, stop, said)
        if usage is not None:
            _note_usage(journal, prepared, usage)
        if hidden is not None:
            return hidden
        usable = usage is not None and plausible(usage, prepared.budget.window, estimate=prepared.tokens)
        if usage is not None and usable:
            _learn(engine, prepared, usage)
        _raise_bounds(engine, prepared, usage.prompt if usage is not None and usable else prepared.tokens)
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
    """Return the cost in US dollars, or None if no price is known. Cached tokens have their own price."""
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
    """Return the overflow that a successful answer hides, if any, and learn the window that it shows."""
    served = truncated_window(usage, prepared.tokens) or _stands_still(engine, prepared, usage)
    if served is not None:
        if learn_window(engine.threads, prepared.call, served):
            _note_learned(journal, prepared, served, "the server read less than was sent")
        return ContextOverflow(
            f"the server read {usage.prompt:,} of about {prepared.tokens:,} tokens and silently dropped the rest",
            limit=served,
            requested=prepared.tokens,
        )
    output = usage.output if said else 0
    sign = silent_overflow(usage, prepared.budget.window, finish=stop, output=output)
    # An answer that ends at the end of the window is still an answer: only an empty one is tried again.
    if sign is None or said:
        return None
    return ContextOverflow(str(sign), requested=usage.prompt)


def _stands_still(engine: EngineContext, prepared: Prepared, usage: Usage) -> int | None:
    """The window of a server that silently drops what is too long: its report does not grow although more is sent.

    Example: 8,246 counted and 8,192 reported, then 8,800 counted and again 8,192 reported -> 8,192
    """
    counted, reported = prepared.extends or _extended(engine, prepared) or (0, 0)
    more = prepared.counted + prepared.budget.tools - counted
    if not reported or more < STOOD_STILL or usage.prompt > reported:
        return None
    return truncated_window(usage, counted + usage.prompt * ANY_ESTIMATE)


def _extended(engine: EngineContext, prepared: Prepared) -> tuple[int, int] | None:
    """What was counted and reported for the request that this one extends."""
    state = engine.states.get(prepared.thread)
    anchor = None if state is None else state.anchor
    if anchor is None or (anchor.model, anchor.compactions) != (prepared.call.model, prepared.compactions):
        return None
    return anchor.counted, anchor.reported


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
    """Calibrate with the reported usage, and anchor the next count at it."""
    anchor = anchor_at(prepared, usage)
    if anchor is None or prepared.rough:
        return
    counter = counter_for(prepared.call.model)
    known = calibration_of(engine.threads, prepared.call, counter)
    observed = known.observe(anchor.counted, usage.prompt)
    if observed != known:
        keep_calibration(engine.threads, prepared.call, observed)
    state = engine.states.get(prepared.thread)
    sent = prepared.request.messages
    if state is not None and state.view is not None and with_beside(state.view.messages, prepared.call) == sent:
        engine.states.put(prepared.thread, replace(state, anchor=anchor))


def anchor_at(prepared: Prepared, usage: Usage | None) -> Anchor | None:
    """Return the anchor for requests that extend this one; None if the report does not fit the request."""
    counted = prepared.counted + prepared.budget.tools
    if usage is None or not plausible(usage, prepared.budget.window, estimate=prepared.tokens):
        return None
    if usage.prompt < LEAST_TRUE * counted:
        return None
    return Anchor(prepared.call.model, prepared.compactions, counted, usage.prompt)


def _raise_bounds(engine: EngineContext, prepared: Prepared, prompt: int) -> None:
    """Raise learned limits that are below what has just passed."""
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
    """The calls, tokens and cost (in US dollars) of one model. `unpriced` counts calls without a known price.

    `summary_calls` and `summary_cost` are the part that summaries took.
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
    """Return what was spent on each model, the most expensive first."""
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


@dataclass(slots=True)
class Savings:
    """What compaction saves one thread, computed from its events in order.

    Each request is compared with what it would have been without compaction. If the thread's requests are cached, the
    part that the previous request would also have had counts as read from the cache. The cost of compactions and
    summaries is subtracted, so the saving may be negative for a while.
    """

    registry: Registry | None = None
    #: Tokens that the compactions in force keep out of every request.
    left_out: int = 0
    #: Tokens that a preset kept out of the next request only.
    once: int | None = None
    #: The size of the previous request if nothing had been left out, and its model.
    whole: int = 0
    model: str = ""
    #: Whether the provider caches, and whether the prefix has changed since the previous request.
    caches: bool = False
    changed: bool = False

    def after(self, event: Event) -> "Spared":
        """Take in the next event and return what it saved."""
        shorter = (event.tokens_before or 0) - (event.tokens_after or 0)
        match event.kind:
            case EventKind.CONTEXT_COMPRESSED if event.reason.startswith(ASSEMBLED):
                self.once = max(0, shorter)
            case EventKind.CONTEXT_COMPRESSED | EventKind.CONTEXT_RESTORED:
                self.left_out = max(0, self.left_out + shorter)
                self.changed = True
            case EventKind.USAGE_RECORDED if event.reason == FOR_SUMMARIES:
                return Spared(
                    tokens=-((event.tokens_before or 0) + (event.tokens_after or 0)), dollars=-(event.cost or 0.0)
                )
            case EventKind.USAGE_RECORDED if not event.reason:
                return self._request(event)
            case _:
                pass
        return NOTHING_SPARED

    def _request(self, event: Event) -> "Spared":
        sent, cached, written = event.tokens_before or 0, cached_in(event), _figure(event, "cache_written", 0)
        shorter, self.once = self.left_out if self.once is None else self.once, None
        whole = sent + shorter
        known = min(whole, self.whole) if event.model == self.model else 0
        self.caches = self.caches or cached > 0
        warm = cached > 0 or (self.caches and self.changed)  # a cache that had expired would have expired for both
        self.whole, self.model, self.changed = whole, event.model, False
        if not shorter:
            return NOTHING_SPARED
        prices = window(event.model, registry=self.registry).prices
        new = whole - known if written else 0
        instead = cost_of(Usage(prompt=whole, cached=known if warm else 0, cache_written=new), prices)
        paid = cost_of(Usage(prompt=sent, cached=cached, cache_written=written), prices)
        return Spared(requests=1, tokens=shorter, dollars=(instead or 0.0) - (paid or 0.0))


@dataclass(frozen=True, slots=True)
class Spared:
    """What was not sent and not paid: shorter requests, tokens, and US dollars."""

    requests: int = 0
    tokens: int = 0
    dollars: float = 0.0


NOTHING_SPARED = Spared()


@dataclass(frozen=True, slots=True)
class Saved:
    """What compaction saved with one model: shorter requests, tokens, and US dollars.

    The cost of summaries is subtracted.
    """

    model: str
    requests: int = 0
    tokens: int = 0
    dollars: float = 0.0


def saved_on(events: Iterable[Event], registry: Registry | None = None) -> list[Saved]:
    """Return what the compactions of one thread saved with each model, from its events in order; the most first.

    A request is shorter by what all compactions in force at that time removed. Example: a compaction from 10,000 to
    4,000 tokens, then three requests -> 3 requests, 18,000 tokens
    """
    saved: dict[str, Saved] = {}
    savings = Savings(registry)
    for event in events:
        spared = savings.after(event)
        if spared != NOTHING_SPARED:
            so_far = saved.get(event.model, Saved(event.model))
            saved[event.model] = Saved(
                event.model,
                so_far.requests + spared.requests,
                so_far.tokens + spared.tokens,
                so_far.dollars + spared.dollars,
            )
    return sorted(saved.values(), key=lambda row: (-row.tokens, row.model))


def calls_in(event: Event) -> int:
    """Return how many calls a usage event stands for; a summary may take several."""
    return _figure(event, "calls", 1)


def cached_in(event: Event) -> int:
    """Return how many tokens of the prompt were cached; 0 if the event does not say."""
    return _figure(event, "cached", 0)


def _figure(event: Event, name: str, default: int) -> int:
    try:
        more = json.loads(event.data)
    except ValueError:
        return default
    figure = more.get(name) if isinstance(more, dict) else None
    return figure if type(figure) is int and figure >= 0 else default

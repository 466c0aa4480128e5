"""How much a call may send: window, threshold and target, in the provider's tokens and in ours.

A count is ours, a limit is the provider's. Between them stand what calls taught about the endpoint (its true window,
how its counts differ from ours, kept in the store) and, while requests only grow, the usage reported for the one
before.
"""

import json
import math
from dataclasses import dataclass, replace
from functools import lru_cache

from everlong.compress import Preset
from everlong.core import DEFAULT_MARGIN, MARGIN_SHARE, Budget, JsonText, reply_reserve
from everlong.engine.contracts import Call, Threads
from everlong.engine.settings import Settings
from everlong.errors import BudgetImpossible
from everlong.tokens import KEPT, LARGEST_RATIO, Calibration, Counter
from everlong.windows import Prices, Registry, Window, window

__all__ = [
    "Anchor",
    "CallBudget",
    "Gauge",
    "budget_of",
    "calibration_from",
    "calibration_of",
    "calibration_to",
    "counter_for",
    "due_at",
    "keep_calibration",
    "learn_window",
    "learned_window",
    "target_share",
    "window_of",
    "writing_weight",
]

LARGEST_RESERVE = 2  # a request that asks for more than half the window gets what is left when the messages are in

# Where a compaction goes down to was set by replaying long agents' sessions. What it costs to fill the cache again,
# against reading what is carried, decides how deep to go: where writing is dear a deep compaction pays, where it
# costs about as much as reading a shallow one keeps more for the same money. In a small window a deep one would leave
# too little to work with.
DEEP, DEEPER = 0.28, 0.25  # of the budget, up to a window of LARGE tokens and above
SHALLOW = 0.5
LARGE = 64_000
LEAST = 8_000  # tokens that a compaction leaves, if that is not more than the shallow target
BAND = 0.7  # of the threshold; a compaction that saves less comes again too soon
CHEAP = 2.0  # reads that one write costs; half-price caching has 1, a tenth 9, Anthropic 11.5
USUAL = 9.0

WINDOW, CALIBRATION = "window", "calibration"  # kinds of what is learned


@lru_cache(maxsize=64)
def counter_for(model: str) -> Counter:
    """Return the counter of a model, shared, so that what was counted once stays counted."""
    return Counter(model)


class _SameRegistry:
    """A registry as a key, equal to itself alone: comparing thousands of entries would cost more than a look-up."""

    __slots__ = ("registry",)

    def __init__(self, registry: Registry | None) -> None:
        self.registry = registry

    def __hash__(self) -> int:
        return id(self.registry)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _SameRegistry) and self.registry is other.registry


def window_of(model: str, provider: str, *, registry: Registry | None = None, **figures: int | None) -> Window:
    """Return the window of a model; looked up once for the same figures (those that `window` takes)."""
    return _window(
        model,
        provider,
        tuple((name, figure) for name, figure in figures.items() if figure is not None),
        _SameRegistry(registry),
    )


@lru_cache(maxsize=256)
def _window(model: str, provider: str, figures: tuple[tuple[str, int], ...], tables: _SameRegistry) -> Window:
    return window(model, provider=provider, registry=tables.registry, **dict(figures))


@dataclass(frozen=True, slots=True)
class Anchor:
    """What was counted and what was reported for one request, tools included; good for requests that extend it."""

    model: str
    compactions: int
    counted: int
    reported: int


@dataclass(frozen=True, slots=True)
class Gauge:
    """Converts counted tokens into the provider's and back. Both results err on the safe side: the request fits."""

    calibration: Calibration
    anchor: Anchor | None = None

    def true(self, counted: int) -> int:
        """Return what the provider will count for so many counted tokens, rather too many."""
        if self.anchor is None or counted < self.anchor.counted:
            return self.calibration.at_most(counted)
        return self.anchor.reported + self.calibration.at_most(counted - self.anchor.counted)

    def countable(self, limit: int) -> int:
        """Return the most that may be counted so that the provider counts at most `limit`."""
        if self.anchor is None:
            return self._most(limit)
        if limit < self.anchor.reported:  # whatever holds the anchor is known to take more
            return min(self._most(limit), self.anchor.counted - 1)
        return self.anchor.counted + self._most(limit - self.anchor.reported)

    def _most(self, limit: int) -> int:
        """The largest count that comes to at most `limit`: by division, then corrected for its rounding."""
        counted = max(0, math.floor(limit / (self.calibration.factor * (1 + self.calibration.spread))))
        while counted and self.calibration.at_most(counted) > limit:
            counted -= 1
        return counted

    def unanchored(self) -> "Gauge":
        """Return the gauge for a request that does not extend the one before."""
        return Gauge(self.calibration)


@dataclass(frozen=True, slots=True)
class CallBudget:
    """All sizes of one call. `limit`, `threshold` and `target` are counted tokens of messages alone."""

    window: Window
    parts: Budget
    counter: Counter
    preset: Preset
    gauge: Gauge
    #: The provider's tokens that messages may take.
    messages: int
    #: Counted tokens of what is sent beside the thread; `parts.tools` holds them too.
    beside: int = 0

    @property
    def limit(self) -> int:
        """The most that may be sent, if the request extends the one before."""
        return self._countable(self.messages)

    @property
    def compacted_limit(self) -> int:
        """The most that may be sent after a compaction."""
        return self.unanchored().limit

    @property
    def threshold(self) -> int:
        """From here on a compaction is due."""
        return self.gauge.countable(self.true_threshold) - self.parts.tools

    @property
    def target(self) -> int:
        """A compaction goes down to here."""
        return int(self.compacted_limit * self.parts.target)

    @property
    def true_threshold(self) -> int:
        """The provider's tokens of a request, tools included, from which a compaction is due: by the preset's own rule
        if it has one, else the share of what it can move. Every surface shows this figure.
        """
        share = int(self.messages * self.parts.threshold) + self.parts.tools
        due = self.preset.summary.due
        return share if due is None else min(share, due(self.window.context, self.parts.threshold))

    @property
    def other_parts(self) -> list[tuple[str, int]]:
        """What takes its part of the window beside the messages of the thread, by name."""
        return _other_parts(self.parts, self.beside)

    def true(self, counted: int) -> int:
        """Return what the provider will count for messages of so many counted tokens, with the tools."""
        return self.gauge.true(counted + self.parts.tools)

    def unanchored(self) -> "CallBudget":
        """Return the budget of a request that does not extend the one before."""
        return replace(self, gauge=self.gauge.unanchored())

    def _countable(self, messages: int) -> int:
        return self.gauge.countable(messages + self.parts.tools) - self.parts.tools


def budget_of(
    threads: Threads, settings: Settings, call: Call, *, anchor: Anchor | None = None, registry: Registry | None = None
) -> CallBudget:
    """Return the budget of a call. Raises BudgetImpossible if reply and tools leave nothing for messages."""
    preset = settings.rules
    resolved = window_of(
        call.model,
        call.provider,
        override=settings.window,
        learned=learned_window(threads, call),
        served=call.served,
        default=preset.unknown_window,
        registry=registry,
    )
    counter = counter_for(call.model)
    beside = counter.messages((*call.standing, *call.tail))
    tools = counter.tools(call.tools) + beside
    requested = call.max_tokens if call.max_tokens is not None else settings.reserve
    reply = reply_reserve(resolved.context, requested=requested, max_output=resolved.output)
    margin = min(DEFAULT_MARGIN, resolved.context // MARGIN_SHARE)
    parts = Budget(
        window=resolved.context,
        reply=min(reply, resolved.context // LARGEST_RESERVE),
        tools=tools,
        margin=margin,
    )
    messages = min(parts.available, resolved.prompt - tools - margin)
    if preset.budget is not None:
        messages = min(messages, preset.budget(parts.window, parts.reply))
    if messages <= 0:
        raise BudgetImpossible(resolved.context, _other_parts(parts, beside) if resolved.context else ())
    if anchor is not None and anchor.model != call.model:
        anchor = None
    gauge = Gauge(calibration_of(threads, call, counter), anchor)
    parts = _with_shares(parts, messages, settings, resolved)
    return CallBudget(resolved, parts, counter, preset, gauge, messages, beside)


def _with_shares(parts: Budget, messages: int, settings: Settings, resolved: Window) -> Budget:
    """The budget with threshold and target: shares of it, or of what one wants to pay for if that is less."""
    wanted = messages if settings.soft_cap is None else min(messages, max(1, settings.soft_cap - parts.tools))
    high = settings.threshold_share
    low = settings.low_mark or target_share(resolved.context, wanted, resolved.prices, high)
    scale = wanted / messages
    return replace(parts, threshold=high * scale, target=min(low, high) * scale)


def _other_parts(parts: Budget, beside: int) -> list[tuple[str, int]]:
    sizes = [("tool schemas", parts.tools - beside), ("standing context", beside)]
    sizes += [("reserve for the answer", parts.reply), ("margin", parts.margin)]
    return [(name, size) for name, size in sizes if size]


def target_share(window: int, budget: int, prices: Prices, threshold: float) -> float:
    """Return the share of the budget that a compaction goes down to.

    Example: a window of 64 000 with a budget of 43 000 at Anthropic's prices -> 0.28
    """
    deep = SHALLOW if writing_weight(prices) <= CHEAP else DEEP if window <= LARGE else DEEPER
    enough = min(SHALLOW, LEAST / max(1, budget))
    return min(max(deep, enough), threshold * BAND)


def writing_weight(prices: Prices) -> float:
    """Return the extra price of writing a cached token, in reads of it; without prices, as if a read cost a tenth.

    Example: written at 3.75, read at 0.30 -> 11.5
    """
    if prices.input is None:
        return USUAL
    read = prices.input if prices.cache_read is None else prices.cache_read
    written = prices.input if prices.cache_write is None else prices.cache_write
    return (written - read) / read if read > 0 else USUAL


def due_at(threads: Threads, settings: Settings, call: Call, *, registry: Registry | None = None) -> int:
    """Return the provider's tokens of a request, tools included, from which a compaction is due.

    Example: preset chatbox, window 200 000, nothing set -> (200 000 - 32 000) x 0.6 = 100 800
    """
    return budget_of(threads, settings, call, registry=registry).true_threshold


# --- what calls taught about an endpoint --------------------------------------------------------------------------


def learned_window(threads: Threads, call: Call) -> int | None:
    """Return the window that an overflow or a truncation taught, for this endpoint and model alone."""
    fact = threads.fact(WINDOW, _key(call))
    if fact is None:
        return None
    try:
        figure = json.loads(fact)
    except ValueError:
        return None
    return figure if type(figure) is int and figure > 0 else None


def learn_window(threads: Threads, call: Call, window: int) -> bool:
    """Keep the window that the provider reported; return whether it is new."""
    if learned_window(threads, call) == window:
        return False
    threads.keep_fact(WINDOW, _key(call), json.dumps(window))
    return True


def calibration_of(threads: Threads, call: Call, counter: Counter) -> Calibration:
    """Return how this endpoint's counts relate to ours so far."""
    return calibration_from(threads.fact(CALIBRATION, _key(call)), counter.vocabulary.spread)


def keep_calibration(threads: Threads, call: Call, calibration: Calibration) -> None:
    """Keep what was observed."""
    threads.keep_fact(CALIBRATION, _key(call), calibration_to(calibration))


def calibration_to(calibration: Calibration) -> JsonText:
    """Return a calibration as it is kept."""
    return json.dumps({"prior": calibration.prior, "ratios": calibration.ratios})


def calibration_from(fact: JsonText | None, prior: float) -> Calibration:
    """Return a calibration as it was kept; what cannot be read is learned again."""
    if fact is None:
        return Calibration(prior)
    try:
        ratios = tuple(float(ratio) for ratio in json.loads(fact)["ratios"])
    except (ValueError, KeyError, TypeError):
        return Calibration(prior)
    possible = all(1 / LARGEST_RATIO <= ratio <= LARGEST_RATIO for ratio in ratios)
    return Calibration(prior, ratios[-KEPT:] if possible else ())


def _key(call: Call) -> str:
    return json.dumps([call.endpoint, call.model], ensure_ascii=False)

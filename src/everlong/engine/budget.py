"""How much a call may send: window, threshold and target, in the provider's tokens and in ours.

A count is ours, a limit is the provider's. What calls have taught about the endpoint connects them: its true window and
how its counts differ from ours (kept in the store), and, while requests only grow, the usage reported for the previous
request.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from types import MappingProxyType

from everlong.compress import Preset
from everlong.core import SMALLEST_REPLY, Budget, Json, JsonObject, JsonText, Protection
from everlong.engine.contracts import Call, Threads
from everlong.engine.settings import Settings
from everlong.errors import BudgetImpossible
from everlong.tokens import KEPT, LARGEST_RATIO, Calibration, Counter
from everlong.windows import Bounds, Prices, Registry, Window, window

__all__ = [
    "LIMITS",
    "SHORTEST_ANSWER",
    "WINDOW",
    "Anchor",
    "CallBudget",
    "Gauge",
    "Limits",
    "budget_of",
    "calibration_from",
    "calibration_of",
    "calibration_to",
    "counter_for",
    "keep_calibration",
    "keep_limits",
    "learn_window",
    "learned_limits",
    "learned_window",
    "smallest_reply",
    "target_share",
    "window_key",
    "window_of",
    "writing_weight",
]

# These shares come from replaying long agent sessions. The price of filling the cache again, compared with reading what
# a request carries, decides how deep to compact: where writing is expensive, a deep compaction pays; where it costs
# about as much as reading, a shallow one keeps more for the same money. In a small window a deep compaction would leave
# too little to work with.
DEEP, DEEPER = 0.28, 0.25  # of the movable part: in windows of up to LARGE tokens, and in larger ones
SHALLOW = 0.5
LARGE = 64_000
LEAST = 8_000  # tokens that a compaction leaves at least, unless that is more than the shallow target
# The share of the movable part that must be new between two compactions; if a person set a low threshold, this share of
# the threshold.
NEW_SHARE, NEW_OF_LOW = 0.4, 0.6
MOST_SPARED = 8_000  # tokens between limit and threshold; in a large window, a tenth would be more than a step needs
USED_FIRST = 0.85  # of the movable part; unless somebody set a threshold, nothing is compacted below it
LEAST_OF_CAP = 4  # a quarter of a soft cap counts as movable even if the prompt alone fills the cap
CHEAP = 2.0  # the extra price of a write, in reads: 1 if cached reads cost half, 9 if a tenth, 11.5 for Anthropic
USUAL = 9.0
SHORTEST_ANSWER = "the shortest answer"  # the one part of a request that is measured in the provider's tokens

NOTHING_FIXED: Mapping[Protection, int] = MappingProxyType({})
#: Divisors of the window: a task or context that is longer than its share is shortened in place.
SHARES = MappingProxyType({Protection.TASK: 10, Protection.CONTEXT: 2})

WINDOW, LIMITS, CALIBRATION = "window", "limits", "calibration"  # the kinds of learned facts


@lru_cache(maxsize=64)
def counter_for(model: str) -> Counter:
    """Return the counter of a model. It is shared, so that nothing is counted twice."""
    return Counter(model)


class _SameRegistry:
    """A registry as a cache key, compared by identity: comparing thousands of entries would be slow."""

    __slots__ = ("registry",)

    def __init__(self, registry: Registry | None) -> None:
        self.registry = registry

    def __hash__(self) -> int:
        return id(self.registry)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _SameRegistry) and self.registry is other.registry


def window_of(model: str, provider: str, *, registry: Registry | None = None, **figures: int | None) -> Window:
    """Return the window of a model. Repeated calls with the same figures (those that `window` takes) use a cache."""
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
    """The counted and the reported tokens of one request, tools included. It applies to requests that extend it."""

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
        """Return the tokens that the provider will count for this many counted tokens, rounded to the safe side."""
        if self.anchor is None or counted < self.anchor.counted:
            return self.calibration.at_most(counted)
        return self.anchor.reported + self.calibration.at_most(counted - self.anchor.counted)

    def countable(self, limit: int) -> int:
        """Return the largest count with which the provider counts at most `limit`."""
        if self.anchor is None:
            return self._most(limit)
        if limit < self.anchor.reported:  # a request that extends the anchor takes more
            return min(self._most(limit), self.anchor.counted - 1)
        return self.anchor.counted + self._most(limit - self.anchor.reported)

    def _most(self, limit: int) -> int:
        """The largest count that comes to at most `limit`, by division and a correction for rounding."""
        counted = max(0, math.floor(limit / (self.calibration.factor * (1 + self.calibration.spread))))
        while counted and self.calibration.at_most(counted) > limit:
            counted -= 1
        return counted

    def unanchored(self) -> "Gauge":
        """Return the gauge for a request that does not extend the one before."""
        return Gauge(self.calibration)


@dataclass(frozen=True, slots=True)
class CallBudget:
    """All sizes of one call. `limit`, `threshold`, `target` and `movable` are counted tokens of messages alone."""

    window: Window
    parts: Budget
    counter: Counter
    preset: Preset
    gauge: Gauge
    #: The provider's tokens that messages may take.
    messages: int
    #: Counted tokens of the standing text and the tail; `parts.tools` includes them.
    beside: int = 0
    #: The share of the movable part that must be new before another compaction may come.
    new_share: float = NEW_SHARE
    #: The smallest reserve for the answer.
    least_reply: int = 0
    #: The share of the movable part to pay for at most; 0 if a person set the threshold.
    wanted: float = 0.0
    #: The provider's tokens that messages could take with an empty prompt: the same from turn to turn.
    empty: int = 0
    #: The bytes that a request may have, if a refusal has taught that.
    bytes: int | None = None
    #: Whether counts are exact and the window is a stated figure, not a guess from refusals.
    certain: bool = True

    @property
    def limit(self) -> int:
        """The most that may be sent, if the request extends the one before."""
        return self._countable(self.messages)

    @property
    def compacted_limit(self) -> int:
        """The most that may be sent after a compaction."""
        return self.unanchored().limit

    @property
    def widest_limit(self) -> int:
        """The most tokens that may be sent with the shortest answer and no margin for errors."""
        most = min(self.parts.window - self.least_reply, self.window.prompt) / self.gauge.calibration.factor
        return int(most) - self.parts.tools

    @property
    def empty_limit(self) -> int:
        """The most that messages could take with an empty prompt: for comparing windows."""
        return self.unanchored()._countable(self.empty)

    @property
    def movable(self) -> int:
        """What a compaction can move."""
        return max(0, self.compacted_limit - self.parts.fixed)

    @property
    def renewal(self) -> int:
        """How much must be new before another compaction may come."""
        return int(max(0, self.limit - self.parts.fixed) * self.new_share)

    @property
    def threshold(self) -> int:
        """The tokens from which a compaction is due."""
        return self.gauge.countable(self.true_threshold) - self.parts.tools

    @property
    def target(self) -> int:
        """The tokens to which a compaction goes down."""
        return min(self.parts.fixed + int(self.movable * self.parts.target), self.compacted_limit)

    @property
    def true_threshold(self) -> int:
        """The provider's tokens of a request, tools included, from which a compaction is due.

        It follows the preset's own rule if there is one, else the share of the movable part. Every surface shows this
        figure.
        """
        if self.preset.summary.due is not None or not self.wanted:
            return self.least_threshold
        # The margin for estimates is not used up yet, so it must not bring a compaction forward.
        fixed = min(self.parts.fixed, self.messages)
        movable = self.messages + self.parts.margin - fixed
        used = fixed + int(movable * self.wanted * USED_FIRST) + self.parts.tools
        return max(self.least_threshold, min(self.gauge.true(used), self.messages + self.parts.tools))

    @property
    def least_threshold(self) -> int:
        """The lowest possible threshold, however wrong the estimates are; for a preset with its own rule, that rule."""
        due = self.preset.summary.due
        if due is not None:
            share = int(self.messages * self.parts.threshold) + self.parts.tools
            return min(share, due(self.window.context, self.parts.threshold))
        fixed = min(self.parts.fixed, self.messages)
        share = fixed + int((self.messages - fixed) * self.parts.threshold) + self.parts.tools
        if not self.wanted:
            return share
        return max(share, fixed + int((self.messages - fixed) * self.wanted) - MOST_SPARED + self.parts.tools)

    @property
    def other_parts(self) -> list[tuple[str, int]]:
        """What takes up the window besides the messages of the thread, by name; the answer at its shortest."""
        return _other_parts(self.parts, self.beside, self.least_reply)

    def true(self, counted: int) -> int:
        """Return what the provider will count for messages of this many counted tokens, with the tools."""
        return self.gauge.true(counted + self.parts.tools)

    def of_the_window(self, impossible: BudgetImpossible) -> BudgetImpossible:
        """Return the same error for the whole window, with tools, reply and margin among its parts."""
        return BudgetImpossible(self.parts.window, [*impossible.parts, *self.other_parts])

    def without_reserve(self, limit: int, impossible: BudgetImpossible) -> int:
        """Return how many tokens may be sent without any reserve: no margins, and the shortest answer.

        If sizes are estimated or the window is guessed from refusals, a request that seems too large is sent anyway, as
        small as possible, and the provider decides. Raises the error if the request cannot fit by an exact count.
        """
        smallest = impossible.needed - sum(size for _, size in self.other_parts)
        if max(limit, self.widest_limit) >= smallest:
            return max(limit, self.widest_limit)
        if self.certain:
            raise impossible
        return smallest

    def unanchored(self) -> "CallBudget":
        """Return the budget of a request that does not extend the one before."""
        return replace(self, gauge=self.gauge.unanchored())

    def _countable(self, messages: int) -> int:
        return max(0, self.gauge.countable(messages + self.parts.tools) - self.parts.tools)


def budget_of(
    threads: Threads,
    settings: Settings,
    call: Call,
    *,
    fixed: Mapping[Protection, int] = NOTHING_FIXED,
    anchor: Anchor | None = None,
    registry: Registry | None = None,
) -> CallBudget:
    """Return the budget of a call. `fixed` are the tokens that no compaction moves, by the reason why they stay.

    Raises BudgetImpossible if the tools leave nothing for messages, by an exact count.
    """
    preset, taught = settings.rules, learned_limits(threads, call)
    resolved = _window_for(threads, settings, call, registry)
    if taught.size.limit is not None:
        preset = preset.within_bytes(taught.size.limit)
    counter = counter_for(call.model)
    beside = counter.messages((*call.standing, *call.tail))
    tools = counter.tools(call.schemas) + beside
    requested = call.max_tokens if call.max_tokens is not None else settings.reserve
    least = smallest_reply(call)
    split = partial(
        Budget.of, resolved.context, requested=requested, max_output=resolved.output, tools=tools, least=least
    )
    parts = split(fixed=_fixed_tokens(fixed, min(resolved.context, settings.soft_cap or resolved.context)))
    messages = min(parts.available, resolved.prompt - tools - parts.margin)
    if preset.budget is not None:
        messages = min(messages, preset.budget(parts.window, parts.reply))
    guessed = resolved.source == "learned" and resolved.context == taught.total.limit
    if messages <= 0 and ((counter.exact and not guessed) or not resolved.context):
        raise BudgetImpossible(resolved.context, _other_parts(parts, beside, least) if resolved.context else ())
    messages = max(1, messages)
    if anchor is not None and anchor.model != call.model:
        anchor = None
    gauge = Gauge(calibration_of(threads, call, counter), anchor)
    high, low, new = _shares(settings, resolved, messages - min(parts.fixed, messages), parts)
    parts = replace(parts, threshold=high, target=low)
    return CallBudget(
        window=resolved,
        parts=parts,
        counter=counter,
        preset=preset,
        gauge=gauge,
        messages=messages,
        beside=beside,
        new_share=new,
        least_reply=least,
        wanted=high / settings.threshold_share if settings.threshold is None and not preset.every_call else 0.0,
        empty=split(fixed=0).available,
        bytes=taught.size.limit,
        certain=counter.exact and not guessed,
    )


def _window_for(threads: Threads, settings: Settings, call: Call, registry: Registry | None) -> Window:
    """Return the window of a call, from everything known about it."""
    taught = learned_limits(threads, call)
    return window_of(
        call.model,
        call.provider,
        override=settings.window,
        learned=learned_window(threads, call),
        refuted=taught.refuted,
        prompt=taught.prompt.limit if taught.prompt.refusals > 1 else None,
        asked=call.asked,
        served=call.served,
        default=settings.assumed_window,
        registry=registry,
    )


def _fixed_tokens(fixed: Mapping[Protection, int], window: int) -> int:
    """Return the sum of all fixed tokens; a part that may be shortened counts at most its share."""
    return sum(min(size, window // SHARES[why]) if why in SHARES else size for why, size in fixed.items())


def smallest_reply(call: Call) -> int:
    """Return how far the length that a call asks for may be reduced; 0 if it asks for none."""
    if call.max_tokens is None:
        return 0
    return min(call.max_tokens, max(SMALLEST_REPLY, call.thinking + 1 if call.thinking else 0))


def _shares(settings: Settings, resolved: Window, movable: int, parts: Budget) -> tuple[float, float, float]:
    """Return threshold, target and the new share between two compactions, as shares of the movable part.

    With a soft cap they are shares of the part to pay for, if that is smaller.
    """
    wanted, movable = max(1, movable), max(1, movable)
    if settings.soft_cap is not None:
        prompt = parts.tools + parts.fixed
        wanted = min(movable, max(1, settings.soft_cap - prompt, settings.soft_cap // LEAST_OF_CAP))
    high = settings.threshold_share
    new = min(NEW_SHARE, NEW_OF_LOW * high)
    low = settings.low_mark or target_share(resolved.context, wanted, resolved.prices, high)
    scale = wanted / movable
    return high * scale, min(low, high) * scale, new * scale


def _other_parts(parts: Budget, beside: int, reply: int) -> list[tuple[str, int]]:
    sizes = [("tool schemas", parts.tools - beside), ("standing context", beside), (SHORTEST_ANSWER, reply)]
    return [(name, size) for name, size in sizes if size]


def target_share(window: int, budget: int, prices: Prices, threshold: float) -> float:
    """Return the share of the movable part that a compaction goes down to; `budget` is that part in tokens.

    Example: a window of 64,000 with a budget of 43,000 at Anthropic's prices -> 0.28
    """
    deep = SHALLOW if writing_weight(prices) <= CHEAP else DEEP if window <= LARGE else DEEPER
    enough = min(SHALLOW, LEAST / max(1, budget))
    return min(max(deep, enough), threshold - min(NEW_SHARE, NEW_OF_LOW * threshold))


def writing_weight(prices: Prices) -> float:
    """Return the extra price of writing a cached token, in reads.

    Without prices, a read counts as a tenth of the input.

    Example: written at 3.75, read at 0.30 -> 11.5
    """
    if prices.input is None:
        return USUAL
    read = prices.input if prices.cache_read is None else prices.cache_read
    written = prices.input if prices.cache_write is None else prices.cache_write
    return (written - read) / read if read > 0 else USUAL


# --- what calls taught about an endpoint --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Limits:
    """What refusals without a figure have taught: sizes in provider tokens, with and without the answer, and in bytes.

    `refuted` is the window that a person had set when a request within it was refused.
    """

    total: Bounds = field(default_factory=Bounds)
    prompt: Bounds = field(default_factory=Bounds)
    size: Bounds = field(default_factory=Bounds)
    refuted: int | None = None


NO_LIMITS = Limits()


def learned_window(threads: Threads, call: Call) -> int | None:
    """Return the window learned from an overflow or a truncation, for this endpoint and model only.

    A reported figure counts unless a smaller request was refused. Then the bounds between refused and accepted sizes
    count.
    """
    figure, bounds = _learned_figure(threads, call), learned_limits(threads, call).total
    if figure is None or (bounds.refused is not None and bounds.refused <= figure):
        return bounds.limit if bounds.limit is not None else figure
    return figure


def _learned_figure(threads: Threads, call: Call) -> int | None:
    figure = _fact(threads, WINDOW, call)
    return figure if type(figure) is int and figure > 0 else None


def learned_limits(threads: Threads, call: Call) -> Limits:
    """Return what refused and accepted requests have taught about this endpoint and model."""
    fact = _fact(threads, LIMITS, call)
    if not isinstance(fact, dict):
        return NO_LIMITS
    total, prompt, size = (Bounds.decoded(fact.get(name)) for name in ("total", "prompt", "size"))
    refuted = fact.get("refuted")
    return Limits(total, prompt, size, refuted if type(refuted) is int else None)


def keep_limits(threads: Threads, call: Call, limits: Limits) -> None:
    """Store the learned limits."""
    bounds: JsonObject = {name: getattr(limits, name).encoded() for name in ("total", "prompt", "size")}
    threads.keep_fact(LIMITS, window_key(call), json.dumps(bounds | {"refuted": limits.refuted}))


def _fact(threads: Threads, kind: str, call: Call) -> Json:
    fact = threads.fact(kind, window_key(call))
    try:
        read: Json = None if fact is None else json.loads(fact)
    except ValueError:
        return None
    return read


def learn_window(threads: Threads, call: Call, window: int) -> bool:
    """Keep the window that the provider reported; return whether it is new."""
    if _learned_figure(threads, call) == window:
        return False
    threads.keep_fact(WINDOW, window_key(call), json.dumps(window))
    return True


def calibration_of(threads: Threads, call: Call, counter: Counter) -> Calibration:
    """Return how this endpoint's token counts relate to ours so far."""
    return _calibration(threads.fact(CALIBRATION, _key(call)), counter.vocabulary.spread)


def keep_calibration(threads: Threads, call: Call, calibration: Calibration) -> None:
    """Store the calibration."""
    threads.keep_fact(CALIBRATION, _key(call), calibration_to(calibration))


def calibration_to(calibration: Calibration) -> JsonText:
    """Return a calibration in its stored form."""
    return json.dumps({"prior": calibration.prior, "ratios": calibration.ratios})


@lru_cache(maxsize=256)
def _calibration(fact: JsonText | None, prior: float) -> Calibration:
    return calibration_from(fact, prior)


def calibration_from(fact: JsonText | None, prior: float) -> Calibration:
    """Return a stored calibration; one that cannot be read starts afresh."""
    if fact is None:
        return Calibration(prior)
    try:
        ratios = tuple(float(ratio) for ratio in json.loads(fact)["ratios"])
    except (ValueError, KeyError, TypeError):
        return Calibration(prior)
    possible = all(1 / LARGEST_RATIO <= ratio <= LARGEST_RATIO for ratio in ratios)
    return Calibration(prior, ratios[-KEPT:] if possible else ())


def _key(call: Call) -> str:
    return _named(call.endpoint, call.model)


@lru_cache(maxsize=1_024)
def _named(*parts: str | int) -> str:
    return json.dumps(parts, ensure_ascii=False)


def window_key(call: Call) -> str:
    """Return the key under which facts about a window are stored.

    A larger window that a request asks for has its own key: the model's usual window says nothing about it.
    """
    return _key(call) if call.asked is None else _named(call.endpoint, call.model, call.asked)

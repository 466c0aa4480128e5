"""How much a call may send: the window and its source, the budget, and both in counted tokens."""

import json
import math
from dataclasses import dataclass, replace
from functools import lru_cache

from everlong.compress import Preset, nanobot, preset_named
from everlong.core import DEFAULT_MARGIN, MARGIN_SHARE, Budget, JsonText, reply_budget, reply_reserve, session_budget
from everlong.engine.contracts import Call, Threads
from everlong.engine.settings import Settings
from everlong.errors import BudgetImpossible
from everlong.tokens import KEPT, LARGEST_RATIO, Calibration, Counter
from everlong.windows import Prices, Registry, Window, window

__all__ = [
    "Anchor",
    "Gauge",
    "Sizes",
    "calibration_from",
    "calibration_of",
    "calibration_to",
    "counter_for",
    "keep_calibration",
    "learn_window",
    "learned_window",
    "low_mark",
    "sizes_of",
    "writing_weight",
]

DEEP, DEEPER = 0.28, 0.25  # of the room, up to a window of LARGE tokens and above
SHALLOW = 0.5
LARGE = 64_000
LEAST = 8_000  # tokens that a cut leaves, where that is not more than the shallow mark
BAND = 0.7  # of the high mark; a cut that saves less comes again too soon
CHEAP = 2.0  # reads that one write costs; half-price caching has 1, a tenth 9, Anthropic 11.5
USUAL = 9.0


def low_mark(window: int, room: int, prices: Prices, high: float) -> float:
    """The share of the room that a cut goes down to.

    Example: a window of 64 000 with room for 43 000 at Anthropic's prices -> 0.28
    """
    deep = SHALLOW if writing_weight(prices) <= CHEAP else DEEP if window <= LARGE else DEEPER
    enough = min(SHALLOW, LEAST / max(1, room))
    return min(max(deep, enough), high * BAND)


def writing_weight(prices: Prices) -> float:
    """How many reads of a cached token it costs more to write it; what nobody says is the usual tenth.

    Example: written at 3.75, read at 0.30 -> 11.5
    """
    if prices.input is None:
        return USUAL
    read = prices.input if prices.cache_read is None else prices.cache_read
    written = prices.input if prices.cache_write is None else prices.cache_write
    return (written - read) / read if read > 0 else USUAL


@lru_cache(maxsize=64)
def counter_for(model: str) -> Counter:
    """The counter of a model, shared, so that what was counted once stays counted."""
    return Counter(model)


@dataclass(frozen=True, slots=True)
class Anchor:
    """What was counted and what was reported for one request, tools included; good for requests that extend it."""

    model: str
    cuts: int
    counted: int
    reported: int


@dataclass(frozen=True, slots=True)
class Gauge:
    """Counted tokens against the provider's. Both ways err on the side that fits."""

    calibration: Calibration
    anchor: Anchor | None = None

    def true(self, counted: int) -> int:
        """What the provider will reckon for so many counted tokens, rather too many."""
        if self.anchor is None or counted < self.anchor.counted:
            return self.calibration.at_most(counted)
        return self.anchor.reported + self.calibration.at_most(counted - self.anchor.counted)

    def countable(self, limit: int) -> int:
        """The most that may be counted so that the provider reckons at most `limit`."""
        if self.anchor is None:
            return self._most(limit)
        if limit < self.anchor.reported:  # from the anchor on, all is known to be more
            return min(self._most(limit), self.anchor.counted - 1)
        return self.anchor.counted + self._most(limit - self.anchor.reported)

    def _most(self, limit: int) -> int:
        """The most whose figure is at most `limit`: a division first, then its rounding undone."""
        counted = max(0, math.floor(limit / (self.calibration.factor * (1 + self.calibration.spread))))
        while counted and self.calibration.at_most(counted) > limit:
            counted -= 1
        return counted

    def unanchored(self) -> "Gauge":
        """For a request that does not extend the one before."""
        return Gauge(self.calibration)


def calibration_to(calibration: Calibration) -> JsonText:
    """As it is kept."""
    return json.dumps({"prior": calibration.prior, "ratios": calibration.ratios})


def calibration_from(kept: JsonText | None, prior: float) -> Calibration:
    """As it was kept; what cannot be read is learned anew."""
    if kept is None:
        return Calibration(prior)
    try:
        ratios = tuple(float(ratio) for ratio in json.loads(kept)["ratios"])
    except (ValueError, KeyError, TypeError):
        return Calibration(prior)
    possible = all(1 / LARGEST_RATIO <= ratio <= LARGEST_RATIO for ratio in ratios)
    return Calibration(prior, ratios[-KEPT:] if possible else ())


WINDOW = "window"
CALIBRATION = "calibration"


def learned_window(threads: Threads, call: Call) -> int | None:
    """The window that an overflow or a truncation taught, for this endpoint and model alone."""
    kept = threads.fact(WINDOW, _key(call))
    if kept is None:
        return None
    try:
        figure = json.loads(kept)
    except ValueError:
        return None
    return figure if type(figure) is int and figure > 0 else None


def learn_window(threads: Threads, call: Call, window: int) -> bool:
    """Keep the window that the provider told; whether it is news."""
    if learned_window(threads, call) == window:
        return False
    threads.keep_fact(WINDOW, _key(call), json.dumps(window))
    return True


def calibration_of(threads: Threads, call: Call, counter: Counter) -> Calibration:
    """How this endpoint's counts relate to ours so far."""
    return calibration_from(threads.fact(CALIBRATION, _key(call)), counter.vocabulary.spread)


def keep_calibration(threads: Threads, call: Call, calibration: Calibration) -> None:
    """Keep what was observed."""
    threads.keep_fact(CALIBRATION, _key(call), calibration_to(calibration))


def _key(call: Call) -> str:
    return json.dumps([call.endpoint, call.model], ensure_ascii=False)


LARGEST_RESERVE = 2  # a request that asks for more than half the window gets what is left when the messages are in


@dataclass(frozen=True, slots=True)
class Sizes:
    """All sizes of one call. `limit`, `high` and `low` are counted tokens of messages alone."""

    window: Window
    budget: Budget
    counter: Counter
    preset: Preset
    gauge: Gauge
    #: The provider's tokens that messages may take.
    room: int
    #: Counted tokens of what is sent beside the thread; `budget.tools` holds them too.
    beside: int = 0

    @property
    def limit(self) -> int:
        """The most that may be sent, if the request extends the one before."""
        return self.gauge.countable(self.room + self.budget.tools) - self.budget.tools

    @property
    def cut_limit(self) -> int:
        """The most that may be sent after a cut."""
        return self.gauge.unanchored().countable(self.room + self.budget.tools) - self.budget.tools

    @property
    def high(self) -> int:
        """From here on a cut is due."""
        return self.gauge.countable(int(self.room * self.budget.high) + self.budget.tools) - self.budget.tools

    @property
    def low(self) -> int:
        """A cut goes down to here."""
        return int(self.cut_limit * self.budget.low)

    @property
    def other_parts(self) -> list[tuple[str, int]]:
        """What takes its part of the window beside the messages of the thread, by name."""
        return _other_parts(self.budget, self.beside)

    def true(self, counted: int) -> int:
        """What the provider will reckon for messages of so many counted tokens, with the tools."""
        return self.gauge.true(counted + self.budget.tools)


def sizes_of(
    threads: Threads, settings: Settings, call: Call, *, anchor: Anchor | None = None, registry: Registry | None = None
) -> Sizes:
    """The sizes of a call. Raises BudgetImpossible where reply and tools leave no room at all."""
    resolved = window(
        call.model,
        provider=call.provider,
        override=settings.window,
        learned=learned_window(threads, call),
        served=call.served,
        registry=registry,
    )
    counter = counter_for(call.model)
    preset = _preset(settings)
    beside = counter.messages((*call.standing, *call.tail))
    tools = counter.tools(call.tools) + beside
    requested = call.max_tokens if call.max_tokens is not None else settings.reserve
    reply = reply_reserve(resolved.context, requested=requested, max_output=resolved.output)
    margin = min(DEFAULT_MARGIN, resolved.context // MARGIN_SHARE)
    budget = Budget(
        window=resolved.context,
        reply=min(reply, resolved.context // LARGEST_RESERVE),
        tools=tools,
        margin=margin,
    )
    room = min(budget.room, resolved.prompt - tools - margin, _room_by_document(preset, budget))
    if room <= 0:
        raise BudgetImpossible(resolved.context, _other_parts(budget, beside))
    if anchor is not None and anchor.model != call.model:
        anchor = None
    gauge = Gauge(calibration_of(threads, call, counter), anchor)
    return Sizes(resolved, _marked(budget, room, settings, resolved), counter, preset, gauge, room, beside)


def _marked(budget: Budget, room: int, settings: Settings, resolved: Window) -> Budget:
    """The budget with its marks: shares of the room, or of what one wants to pay for where that is less."""
    wanted = room if settings.soft_cap is None else min(room, max(1, settings.soft_cap - budget.tools))
    low = settings.low_mark or low_mark(resolved.context, wanted, resolved.prices, settings.threshold)
    scale = wanted / room
    return replace(budget, high=settings.threshold * scale, low=min(low, settings.threshold) * scale)


def _other_parts(budget: Budget, beside: int) -> list[tuple[str, int]]:
    parts = [("tool schemas", budget.tools - beside), ("standing context", beside)]
    parts += [("reserve for the answer", budget.reply), ("margin", budget.margin)]
    return [(name, size) for name, size in parts if size]


def _preset(settings: Settings) -> Preset:
    """The preset by its name; nanobot's with the limits that are set."""
    match settings.preset:
        case "off":
            return preset_named("auto")
        case "nanobot":
            return nanobot(
                soft=settings.tool_result_soft_limit,
                hard=settings.tool_result_hard_limit,
                user=settings.max_user_message_chars,
                assistant=settings.max_assistant_message_chars,
            )
        case name:
            return preset_named(name)


def _room_by_document(preset: Preset, budget: Budget) -> int:
    """What the document of a preset leaves to the messages, system text among them."""
    match preset.name:
        case "nanobot":
            return max(budget.window // 2, session_budget(budget.window))
        case "nanobot-v3":
            return reply_budget(budget.window, budget.reply)
        case _:
            return budget.window

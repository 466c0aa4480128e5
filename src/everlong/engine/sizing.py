"""How much a call may send: the window and its source, the budget, and both in counted tokens."""

from dataclasses import dataclass, replace

from everlong.compress import Preset, nanobot, preset_named
from everlong.core import DEFAULT_MARGIN, MARGIN_SHARE, Budget, reply_budget, reply_reserve, session_budget
from everlong.engine.calls import Call
from everlong.engine.direct import counter_for
from everlong.engine.learning import calibration_of, learned_window
from everlong.engine.live import Live
from everlong.engine.marks import low_mark
from everlong.engine.means import Means
from everlong.engine.measuring import Gauge
from everlong.engine.settings import Settings
from everlong.errors import BudgetImpossible
from everlong.tokens import Counter
from everlong.windows import Window, window

__all__ = ["Sizes", "sizes_of"]

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


def sizes_of(means: Means, settings: Settings, call: Call, live: Live) -> Sizes:
    """The sizes of a call. Raises BudgetImpossible where reply and tools leave no room at all."""
    resolved = window(
        call.model,
        provider=call.provider,
        override=settings.window,
        learned=learned_window(means.threads, call),
        served=call.served,
        registry=means.registry,
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
    anchor = live.anchor if live.anchor is not None and live.anchor.model == call.model else None
    gauge = Gauge(calibration_of(means.threads, call, counter), anchor)
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

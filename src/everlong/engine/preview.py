"""How full the window is, and what a threshold would cost: what would be sent now, looked at without sending it.

For meters, panels and settings. Nothing is kept and nothing is reported.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import log
from types import MappingProxyType
from typing import Literal, Self, TypeAlias

from everlong.compress import OURS
from everlong.core import Message, Point, Recalled, Role
from everlong.engine.contracts import Call, Prepared
from everlong.engine.preparation import prepared_from, upcoming
from everlong.engine.settings import Settings
from everlong.engine.thread import LEFT_BEFORE, CallContext, EngineContext, pinned_texts, work_on
from everlong.engine.view import View
from everlong.windows import Window
from everlong.wire import Usage, plausible

__all__ = ["MEASURED", "SMALLEST", "Certainty", "Meter", "Outlook", "Preview", "outlook", "outlook_of", "preview"]

#: reported: the provider has counted all but the news. counted: by the model's own vocabulary. estimated: neither.
Certainty: TypeAlias = Literal["reported", "counted", "estimated"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Meter:
    """How full a window is: the one value that the terminal, the app, `inspect` and the gateway show.

    `limit` is the whole window in tokens, `exact` whether a provider reported the tokens, `known` whether anyone said
    how large the window is. `threshold` are the tokens from which a compaction is due, if that is known.
    """

    tokens: int
    limit: int
    exact: bool
    known: bool
    threshold: int | None = None

    @property
    def share(self) -> float:
        """The share of the window that is taken; 0 if there is no window."""
        return self.tokens / self.limit if self.limit else 0.0

    @property
    def percent(self) -> int:
        """How much of the window is taken, as people say it."""
        return round(100 * self.tokens / self.limit) if self.limit else 0

    @property
    def certainty(self) -> str:
        """exact, estimated, or unknown if the window is unknown."""
        return "unknown" if not self.known else "exact" if self.exact else "estimated"

    @classmethod
    def estimated(cls, prepared: Prepared) -> Self:
        """Return the meter of a request by our own count."""
        window = prepared.window
        return cls(
            tokens=prepared.tokens,
            limit=window.context,
            exact=False,
            known=window.known,
            threshold=prepared.threshold,
        )

    @classmethod
    def reported(cls, prepared: Prepared, usage: Usage | None) -> Self | None:
        """Return the meter of a request and its answer by the provider's report; thoughts are not sent again.

        None if it reported nothing, or what cannot be true.
        """
        if usage is None or not plausible(usage, prepared.window.context, estimate=prepared.tokens):
            return None
        if usage.prompt * 2 < prepared.counted:  # a report of a part of what was sent
            return None
        tokens = usage.prompt + max(0, usage.output - usage.reasoning)
        return replace(cls.estimated(prepared), tokens=tokens, exact=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """The next request as it is now, before any compaction. All figures are tokens as the provider counts them.

    `limit` is what a request may take, `threshold` where a compaction is due, `parts` where the tokens go: system,
    standing, tools, pinned, summary, recalled, user, assistant, results. `covered` counts messages behind the newest
    point.
    """

    tokens: int
    limit: int
    threshold: int
    window: Window
    certainty: Certainty
    parts: Mapping[str, int]
    messages: int
    covered: int
    #: The request itself, if it were sent as it stands.
    prepared: Prepared

    @property
    def meter(self) -> Meter:
        """How full the window is."""
        return Meter(
            tokens=self.tokens,
            limit=self.window.context,
            exact=self.certainty == "reported",
            known=self.window.known,
            threshold=self.threshold,
        )


def preview(engine: EngineContext, thread: str, call: Call) -> Preview:
    """Return how full the window is. Raises BudgetImpossible if reply and tools leave nothing for messages."""
    with engine.states.lock(thread):
        context = work_on(engine, engine.state(thread), call, engine.journal(thread), "")
        view = upcoming(context)
        budget, opened = context.budget, context.state.opened
        anchored = budget.gauge.anchor is not None
        certainty: Certainty = "reported" if anchored else "counted" if budget.counter.exact else "estimated"
        point = None if opened.point is None else opened.point.entry
        return Preview(
            tokens=budget.true(view.tokens),
            limit=budget.parts.window - budget.parts.reply - budget.parts.margin,
            threshold=budget.true_threshold,
            window=budget.window,
            certainty=certainty,
            parts={name: size for name, size in _parts(context, view).items() if size},
            messages=opened.thread.messages,
            covered=point.boundary if isinstance(point, Point) else 0,
            prepared=prepared_from(context, view),
        )


def _parts(context: CallContext, view: View) -> dict[str, int]:
    """Counted tokens by what they are, brought to the provider's scale together."""
    parts = dict.fromkeys(
        ("system", "standing", "tools", "pinned", "summary", "recalled", "user", "assistant", "results"), 0
    )
    parts["tools"] = context.budget.parts.tools - context.budget.beside
    parts["standing"] = context.budget.beside
    if context.orders:
        _add_assembled(parts, context, view)
    else:
        _add_standing(parts, context)
    counted = sum(parts.values())
    scale = context.budget.gauge.true(counted) / counted if counted else 1.0
    return {name: round(size * scale) for name, size in parts.items()}


def _add_assembled(parts: dict[str, int], context: CallContext, view: View) -> None:
    """Add the messages of a view that was assembled from the raw history: what it leaves out counts nothing."""
    count, pinned = context.budget.counter.message, pinned_texts(context.state.opened.pins)
    places = view.places or range(len(view.messages))
    for place, message in zip(places, view.messages, strict=True):
        ours = place == OURS or context.orders[place] == LEFT_BEFORE
        name = NAMES[message.role] if not ours else "pinned" if message in pinned else "summary"
        parts[name] += count(message)


def _add_standing(parts: dict[str, int], context: CallContext) -> None:
    """Add the messages of the thread as it stands: head, pins, what the newest point left, and all since."""
    state, count = context.state, context.budget.counter.message
    opened = state.opened
    parts["system"] = sum(count(row.entry) for row in opened.head if isinstance(row.entry, Message))
    parts["pinned"] = sum(map(count, pinned_texts(opened.pins)))
    parts["pinned"] += sum(count(row.entry) for row in state.pinned if isinstance(row.entry, Message))
    if opened.point is not None and isinstance(opened.point.entry, Point):
        parts["summary"] = sum(map(count, opened.point.entry.summary))
    newest = -1 if opened.point is None else opened.point.order
    for row in opened.rows:
        match row.entry:
            case Message() as message:
                parts[NAMES[message.role]] += count(message)
            case Recalled(message=message) if row.order > newest:
                parts["recalled"] += count(message)
            case _:
                pass


NAMES = {Role.SYSTEM: "system", Role.USER: "user", Role.ASSISTANT: "assistant", Role.TOOL: "results"}


@dataclass(frozen=True, slots=True)
class Outlook:
    """Shares: `cost` of what sending everything would cost, `kept` of what is needed again and still in sight."""

    cost: float
    kept: float

    @property
    def percents(self) -> tuple[int, int]:
        """Cost and kept as people read them. Example: Outlook(0.464, 0.88) -> (46, 88)"""
        return round(100 * self.cost), round(100 * self.kept)


#: Windows below were not measured: 12 000 tokens in front of every request say nothing about them.
SMALLEST = 48_000
#: Window -> threshold -> what came of it: preset and mode `auto`, by `everlong lab replay` over 42 long agent sessions
#: with Anthropic's prices, a cache that is always warm and 12 000 tokens in front of every request.
MEASURED: Mapping[int, Mapping[float, Outlook]] = MappingProxyType(
    {
        64_000: {
            0.40: Outlook(0.45, 0.78),
            0.60: Outlook(0.46, 0.80),
            0.80: Outlook(0.47, 0.84),
            0.90: Outlook(0.48, 0.87),
            0.95: Outlook(0.48, 0.87),
        },
        128_000: {
            0.40: Outlook(0.57, 0.92),
            0.60: Outlook(0.61, 0.96),
            0.80: Outlook(0.66, 0.96),
            0.90: Outlook(0.69, 0.99),
            0.95: Outlook(0.70, 0.99),
        },
        200_000: {
            0.40: Outlook(0.69, 0.98),
            0.60: Outlook(0.77, 1.00),
            0.80: Outlook(0.83, 1.00),
            0.90: Outlook(0.88, 1.00),
            0.95: Outlook(0.89, 1.00),
        },
        1_000_000: {  # room for all of them: nothing is cut
            0.40: Outlook(1.00, 1.00),
            0.60: Outlook(1.00, 1.00),
            0.80: Outlook(1.00, 1.00),
            0.90: Outlook(1.00, 1.00),
            0.95: Outlook(1.00, 1.00),
        },
    }
)


def outlook(window: int, threshold: float) -> Outlook:
    """What a threshold costs and keeps in a window of so many tokens; beyond the measured ones, as at the nearest.

    Linear in the threshold and in the logarithm of the window. Example: half way between two thresholds -> their mean
    """
    return _between([(log(size), _between([*row.items()], threshold)) for size, row in MEASURED.items()], log(window))


def outlook_of(settings: Settings, window: Window) -> Outlook | None:
    """What these settings cost and keep; None if that was not measured: other marks, preset, mode, unknown window."""
    usual = settings.mode == "auto" and settings.rules.measured and settings.low_mark is None
    size = min(window.context, settings.soft_cap or window.context)
    if not window.known or not usual or settings.summaries == "off" or size < SMALLEST:
        return None
    return outlook(size, settings.threshold_share)


def _between(points: Sequence[tuple[float, Outlook]], at: float) -> Outlook:
    """The value at a place on the line through points in their order."""
    after = min(bisect_left(points, at, key=lambda point: point[0]), len(points) - 1)
    (low, under), (high, over) = points[max(after - 1, 0)], points[after]
    if at >= high or at <= low:  # a point itself, or beyond them all
        return over if at >= high else under
    share = (at - low) / (high - low)
    return Outlook(under.cost + (over.cost - under.cost) * share, under.kept + (over.kept - under.kept) * share)

"""How full the window is, and what a threshold would cost: a preview of the next request, without sending it.

For meters, panels and settings. Nothing is stored or reported.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import log
from types import MappingProxyType
from typing import Literal, Self, TypeAlias

from everlong.compress import OURS
from everlong.core import Message, Point, Recalled, Role, is_framed
from everlong.engine.contracts import Call, Prepared
from everlong.engine.raw_history import LEFT_BEFORE, pinned_texts
from everlong.engine.requests.assembly import upcoming
from everlong.engine.requests.due import Due, next_due
from everlong.engine.requests.preparation import prepared_from
from everlong.engine.settings import Settings
from everlong.engine.thread import CallContext, EngineContext, work_on
from everlong.engine.view import View
from everlong.windows import Window
from everlong.wire import Usage, plausible

__all__ = ["MEASURED", "SMALLEST", "Certainty", "Meter", "Outlook", "Preview", "outlook", "outlook_of", "preview"]

#: reported: the provider has counted all but the newest messages. counted: by the model's own vocabulary. estimated:
#: neither.
Certainty: TypeAlias = Literal["reported", "counted", "estimated"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Meter:
    """How full a context window is. The terminal, the app, `inspect` and the gateway all show this value.

    - `tokens`, `limit`: the tokens in use, and the whole window.
    - `exact`: whether a provider reported the tokens.
    - `known`: whether the size of the window is known.
    - `threshold`: the tokens at which a compaction is due, if known.
    """

    tokens: int
    limit: int
    exact: bool
    known: bool
    threshold: int | None = None

    @property
    def share(self) -> float:
        """The share of the window in use; 0 if there is no window."""
        return self.tokens / self.limit if self.limit else 0.0

    @property
    def percent(self) -> int:
        """The share of the window in use, in percent."""
        return round(100 * self.tokens / self.limit) if self.limit else 0

    @property
    def certainty(self) -> str:
        """ "exact", "estimated", or "unknown" if the window is unknown."""
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
        """Return the meter of a request and its answer, without reasoning, as the provider reported them.

        None if the provider reported nothing, or something impossible.
        """
        if usage is None or not plausible(usage, prepared.window.context, estimate=prepared.tokens):
            return None
        if usage.prompt * 2 < prepared.counted:  # the report covers only a part of what was sent
            return None
        tokens = usage.prompt + max(0, usage.output - usage.reasoning)
        return replace(cls.estimated(prepared), tokens=tokens, exact=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """The next request as it is now, before any compaction. All figures are tokens as the provider counts them.

    - `limit`: the most that a request may have; `threshold`: where a compaction is due.
    - `parts`: the tokens of system, standing, tools, pinned, summary, recalled, user, assistant and results.
    - `covered`: how many messages the newest compaction covers.
    """

    tokens: int
    limit: int
    threshold: int
    window: Window
    certainty: Certainty
    parts: Mapping[str, int]
    messages: int
    covered: int
    #: The request, if it were sent now.
    prepared: Prepared
    #: When the next compaction comes; None if the preset does not use the threshold.
    due: Due | None = None
    #: Whether the last compaction was undone: then only unavoidable ones are made.
    undone: bool = False

    @property
    def meter(self) -> Meter:
        """How full the context window is."""
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
            parts=_parts(context, view),
            messages=opened.thread.messages,
            covered=_covered(context, point) if isinstance(point, Point) else 0,
            prepared=prepared_from(context, view),
            due=next_due(context),
            undone=context.state.undone,
        )


def _covered(context: CallContext, point: Point) -> int:
    """Return how many messages the newest point covers: as recorded when it was made, else counted in the thread."""
    if point.figures is not None:
        return point.figures.messages
    opened = context.state.opened
    later = sum(isinstance(row.entry, Message) for row in opened.rows if row.order >= point.boundary)
    return max(0, opened.thread.messages - len(opened.head) - later)


def _parts(context: CallContext, view: View) -> dict[str, int]:
    """Return counted tokens by kind, scaled to the provider's count so that they add up to the total shown."""
    parts = dict.fromkeys(
        ("system", "standing", "tools", "pinned", "summary", "recalled", "user", "assistant", "results"), 0
    )
    parts["tools"] = context.budget.parts.tools - context.budget.beside
    parts["standing"] = context.budget.beside
    if context.orders:
        _add_assembled(parts, context, view)
    else:
        _add_standing(parts, context)
    return apportioned(context.budget.true(view.tokens), parts)


def apportioned(total: int, parts: Mapping[str, int]) -> dict[str, int]:
    """Return the total in whole numbers in proportion to the parts; their sum is the total. Empty parts are left out.

    Example: 10 for three equal parts -> 4, 3, 3
    """
    counted = sum(parts.values())
    if not counted:
        return {}
    shares = {name: divmod(size * total, counted) for name, size in parts.items() if size}
    missing = total - sum(whole for whole, _ in shares.values())
    rounded_up = sorted(shares, key=lambda name: -shares[name][1])[:missing]
    whole = {name: share + (name in rounded_up) for name, (share, _) in shares.items()}
    return {name: size for name, size in whole.items() if size}


def _add_assembled(parts: dict[str, int], context: CallContext, view: View) -> None:
    """Add the messages of a view that was assembled from the raw history; what it leaves out does not count."""
    count, pinned = context.budget.counter.message, pinned_texts(context.state.opened.pins)
    places = view.places or range(len(view.messages))
    for place, message in zip(places, view.messages, strict=True):
        ours = place == OURS or context.orders[place] == LEFT_BEFORE
        name = NAMES[message.role] if not ours else "pinned" if message in pinned else "summary"
        parts[name] += count(message)


def _add_standing(parts: dict[str, int], context: CallContext) -> None:
    """Add the messages of the thread as it is: head, pins, what the newest point left, and everything since."""
    state, count = context.state, context.budget.counter.message
    opened = state.opened
    parts["system"] = sum(count(row.entry) for row in opened.head if isinstance(row.entry, Message))
    parts["pinned"] = sum(map(count, pinned_texts(opened.pins)))
    parts["pinned"] += sum(count(row.entry) for row in state.pinned if isinstance(row.entry, Message))
    if opened.point is not None and isinstance(opened.point.entry, Point):
        for message in opened.point.entry.summary:  # some of them are unchanged messages
            parts["summary" if is_framed(message.text) else NAMES[message.role]] += count(message)
    for row in opened.rows:
        match row.entry:
            case Message() as message:
                parts[NAMES[message.role]] += count(message)
            case Recalled(message=message) if opened.point is not None and row.order > opened.point.order:
                parts["recalled"] += count(message)
            case _:
                pass


NAMES = {Role.SYSTEM: "system", Role.USER: "user", Role.ASSISTANT: "assistant", Role.TOOL: "results"}


@dataclass(frozen=True, slots=True)
class Outlook:
    """What to expect: `cost` as a share of sending everything, `kept` as the share of needed content still sent."""

    cost: float
    kept: float

    @property
    def percents(self) -> tuple[int, int]:
        """Return cost and kept in percent. Example: Outlook(0.464, 0.88) -> (46, 88)"""
        return round(100 * self.cost), round(100 * self.kept)


#: Smaller windows were not measured: results with 12,000 tokens in front of every request do not apply to them.
SMALLEST = 48_000
#: Window -> threshold -> result of preset and mode `auto`, by `everlong lab replay` over 42 long agent sessions with
#: Anthropic's prices, a cache that is always warm and 12,000 tokens in front of every request.
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
        1_000_000: {  # all sessions fit: nothing is compacted
            0.40: Outlook(1.00, 1.00),
            0.60: Outlook(1.00, 1.00),
            0.80: Outlook(1.00, 1.00),
            0.90: Outlook(1.00, 1.00),
            0.95: Outlook(1.00, 1.00),
        },
    }
)


def outlook(window: int, threshold: float) -> Outlook:
    """Return what a threshold costs and keeps in a window of this size; outside the measured range, the nearest.

    Interpolates linearly in the threshold and in the logarithm of the window. Example: half way between two thresholds
    -> their mean
    """
    return _between([(log(size), _between([*row.items()], threshold)) for size, row in MEASURED.items()], log(window))


def outlook_of(settings: Settings, window: Window) -> Outlook | None:
    """Return what these settings cost and keep; None if that was not measured."""
    usual = settings.mode == "auto" and settings.rules.measured and settings.low_mark is None
    size = min(window.context, settings.soft_cap or window.context)
    if not window.known or not usual or settings.summaries == "off" or size < SMALLEST:
        return None
    return outlook(size, settings.threshold_share)


def _between(points: Sequence[tuple[float, Outlook]], at: float) -> Outlook:
    """Return the value at a place on the line through the points (linear interpolation)."""
    after = min(bisect_left(points, at, key=lambda point: point[0]), len(points) - 1)
    (low, under), (high, over) = points[max(after - 1, 0)], points[after]
    if at >= high or at <= low:  # at a point, or outside of them all
        return over if at >= high else under
    share = (at - low) / (high - low)
    return Outlook(under.cost + (over.cost - under.cost) * share, under.kept + (over.kept - under.kept) * share)

"""What a threshold costs and keeps, as it was measured: for settings that show both. It decides nothing."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log
from types import MappingProxyType

from everlong.engine.settings import Settings
from everlong.windows import Window

__all__ = ["MEASURED", "SMALLEST", "Outlook", "outlook", "outlook_of"]


@dataclass(frozen=True, slots=True)
class Outlook:
    """Shares: `cost` of what sending everything would cost, `kept` of what is needed again and still in sight."""

    cost: float
    kept: float

    @property
    def percents(self) -> tuple[int, int]:
        """Cost and kept as people are told them. Example: Outlook(0.464, 0.88) -> (46, 88)"""
        return round(100 * self.cost), round(100 * self.kept)


#: Windows below were not measured: 12 000 tokens in front of every request are no figure for them.
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
    """What a threshold comes to in a window of so many tokens; beyond what was measured, as at the nearest figure.

    Linear in the threshold and in the logarithm of the window. Example: half way between two thresholds -> their mean
    """
    return _between([(log(size), _between([*row.items()], threshold)) for size, row in MEASURED.items()], log(window))


def outlook_of(settings: Settings, window: Window) -> Outlook | None:
    """What these settings come to; None where nothing was measured: other marks, preset or mode, an unknown window."""
    usual = (settings.mode, settings.preset, settings.low_mark) == ("auto", "auto", None)
    size = min(window.context, settings.soft_cap or window.context)
    if not window.known or not usual or settings.summaries == "off" or size < SMALLEST:
        return None
    return outlook(size, settings.threshold)


def _between(points: Sequence[tuple[float, Outlook]], at: float) -> Outlook:
    """The value at a place on the line through points in their order."""
    after = min(bisect_left(points, at, key=lambda point: point[0]), len(points) - 1)
    (low, under), (high, over) = points[max(after - 1, 0)], points[after]
    if at >= high or at <= low:  # a point itself, or beyond them all
        return over if at >= high else under
    share = (at - low) / (high - low)
    return Outlook(under.cost + (over.cost - under.cost) * share, under.kept + (over.kept - under.kept) * share)

"""How many counted tokens may be sent, given what the provider reported before.

A count is ours, a limit is the provider's. Between them stand the calibration of the endpoint and, while requests only
grow, the usage that was reported for the one before: of that prefix the true size is known.
"""

import json
import math
from dataclasses import dataclass

from everlong.core import JsonText
from everlong.tokens import KEPT, LARGEST_RATIO, Calibration

__all__ = ["Anchor", "Gauge", "calibration_from", "calibration_to"]


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

"""Learn from reported usage how far a count is off, per endpoint and model.

A value: observing gives a new one, the store keeps it. One odd report changes nothing (the median
decides, and "no correction" has a vote); decisions use the upper end of what was measured.
"""

import math
from dataclasses import dataclass

__all__ = ["Calibration"]

KEPT = 9  # reports: enough for a median, few enough to follow a provider that changes its framing
SMALLEST = 200  # tokens; below that the provider's hidden framing outweighs the text
LARGEST_RATIO = 4.0  # beyond it the report is about another request
SETTLED = 3  # reports before the measured spread replaces the prior one
LEAST_SPREAD = 0.01


@dataclass(frozen=True, slots=True)
class Calibration:
    """The ratios of reported to counted tokens. `prior` is the spread to expect before any report."""

    prior: float = 0.0
    ratios: tuple[float, ...] = ()

    def observe(self, counted: int, reported: int) -> "Calibration":
        """Return a calibration with this report; reports that cannot be about this request are ignored."""
        if counted < SMALLEST or reported <= 0:
            return self
        ratio = reported / counted
        if not 1 / LARGEST_RATIO <= ratio <= LARGEST_RATIO:
            return self
        return Calibration(self.prior, (*self.ratios, ratio)[-KEPT:])

    @property
    def factor(self) -> float:
        """The factor for a count. One report alone is not believed."""
        votes = sorted((1.0, *self.ratios))
        lower, upper = votes[(len(votes) - 1) // 2], votes[len(votes) // 2]
        return min(lower, upper, key=lambda vote: abs(math.log(vote)))

    @property
    def spread(self) -> float:
        """The relative error that is still to be expected."""
        if len(self.ratios) < SETTLED:
            return self.prior
        deviations = sorted(abs(ratio / self.factor - 1) for ratio in self.ratios)
        return max(LEAST_SPREAD, deviations[-2])  # the largest may be the one odd report

    def expected(self, counted: int) -> int:
        """The most likely true figure."""
        return round(counted * self.factor)

    def at_most(self, counted: int) -> int:
        """The figure to decide with: too high rather than too low."""
        return math.ceil(counted * self.factor * (1 + self.spread))

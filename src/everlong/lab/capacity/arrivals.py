"""When requests come: at random, more by day than by night, with bursts; and how long people and models take."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random

__all__ = ["DAY", "Arrivals"]

DAY = 86_400.0  # seconds


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Requests per second in the busiest hour, and how they arrive.

    Over a day the rate follows a wave; `night` is the rate of the quietest hour as a share of the busiest. In bursts,
    `burst_share` of the time, the rate is `burst` times the wave.
    """

    rate: float
    night: float = 0.25
    burst: float = 1.5
    burst_share: float = 0.05
    #: Seconds from an answer to the next request of the same conversation, and seconds that the provider needs for an
    #: answer.
    think: float = 30.0
    answer: float = 12.0

    @property
    def peak(self) -> float:
        """Requests per second in a burst of the busiest hour: what the replicas are sized for."""
        return self.rate * self.burst

    @property
    def mean(self) -> float:
        """Requests per second on average over a day: what a database collects."""
        return self.rate * (1 + self.night) / 2 * (1 + self.burst_share * (self.burst - 1))

    @property
    def in_flight(self) -> float:
        """Requests that wait for their answer in a burst, by Little's law."""
        return self.peak * self.answer

    @property
    def active(self) -> float:
        """Conversations that are active in a burst: each sends a request, waits for it, and thinks."""
        return self.peak * (self.answer + self.think)

    @property
    def quiet(self) -> "Arrivals":
        """The same arrivals at the quietest hour of the day."""
        return replace(self, rate=self.rate * self.night)

    def times(self, number: int, roll: Random) -> Iterator[float]:
        """Yield the times of this many requests in a burst of the busiest hour, in seconds, at random (Poisson)."""
        now = 0.0
        for _ in range(number):
            now += roll.expovariate(self.peak)
            yield now

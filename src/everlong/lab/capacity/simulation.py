"""The load, simulated: requests arrive at random, each takes time on a worker, and their waits are measured.

Two ways to spread requests over workers are the bounds for a balancer: one queue for all (the next free worker), and at
random (a queue for each worker, whatever its length).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from heapq import heapify, heapreplace
from random import Random

from everlong.lab.capacity.costs import Costs
from everlong.lab.capacity.lengths import Lengths
from everlong.lab.capacity.plan import CapacityPlan
from everlong.lab.capacity.queues import mean_wait, wait_quantile

__all__ = ["Waits", "paper_waits", "play_plan", "service_times", "simulate"]

Draw = Callable[[Random], float]
REQUESTS = 20_000  # of one run
WARMED_UP = 0.1  # of them are not counted, because a queue begins empty


@dataclass(frozen=True, slots=True)
class Waits:
    """Seconds that requests waited, and the share of time that workers were busy."""

    p50: float
    p99: float
    mean: float
    utilisation: float


def paper_waits(plan: CapacityPlan) -> Waits:
    """Return the waits in a burst by the formulas: one queue for all workers, random times."""
    load, workers, service = plan.cores, plan.workers, plan.service.total
    p50, p99 = (wait_quantile(load, workers, service, share) for share in (0.5, 0.99))
    return Waits(p50, p99, mean_wait(load, workers, service), load / workers)


def simulate(times: Iterable[float], draw: Draw, workers: int, roll: Random, *, at_random: bool = False) -> Waits:
    """Simulate requests that arrive at these times; `draw` returns the seconds that each takes."""
    free = [0.0] * workers
    heapify(free)
    waits: list[float] = []
    busy = now = 0.0
    for now in times:
        seconds = draw(roll)
        if at_random:
            worker = roll.randrange(workers)
            start = max(now, free[worker])
            free[worker] = start + seconds
        else:
            start = max(now, free[0])
            heapreplace(free, start + seconds)
        waits.append(start - now)
        busy += seconds
    counted = sorted(waits[int(len(waits) * WARMED_UP) :]) or [0.0]
    return Waits(
        counted[len(counted) // 2],
        counted[min(len(counted) - 1, int(len(counted) * 0.99))],
        sum(counted) / len(counted),
        busy / (now * workers) if now else 0.0,
    )


def service_times(costs: Costs, lengths: Lengths, plan: CapacityPlan) -> Draw:
    """Return a function that draws the CPU seconds of a request: by size, new or known, some with a compaction.

    A compaction runs concurrently and a summary in a job, but on the same cores, so their time is added to the request
    that causes them.
    """
    steps = 400
    sizes = [lengths.size_at((step + 0.5) / steps) for step in range(steps)]
    known = [costs.at(costs.growing, size) / 1e3 for size in sizes]
    new = [costs.at(costs.new, size) / 1e3 for size in sizes]
    service = plan.service
    extra = (service.compaction + service.summary) / service.compactions if service.compactions else 0.0

    def draw(roll: Random) -> float:
        at = roll.randrange(steps)
        seconds = new[at] if roll.random() < service.begun else known[at]
        return seconds + (extra if roll.random() < service.compactions else 0.0)

    return draw


def play_plan(
    plan: CapacityPlan, costs: Costs, lengths: Lengths, seed: int, requests: int = REQUESTS
) -> tuple[Waits, Waits]:
    """Return the waits in a burst of the busiest hour: with one queue for all workers, and with random assignment."""
    draw = service_times(costs, lengths, plan)
    both = []
    for at_random in (False, True):
        roll = Random(seed)
        times = plan.arrivals.times(max(requests, 100 * plan.workers), roll)
        both.append(simulate(times, draw, plan.workers, roll, at_random=at_random))
    return both[0], both[1]

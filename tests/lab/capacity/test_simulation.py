"""The load, played: it agrees with the formulas where there are any, and is the same for the same seed."""

from random import Random

import pytest

from everlong.lab import LENGTHS, Arrivals, Machine, plan_for, play_plan, recorded_costs
from everlong.lab.capacity.queues import mean_wait
from everlong.lab.capacity.simulation import Waits, service_times, simulate

COSTS, LENGTH = recorded_costs("postgres"), LENGTHS["coding"]
REQUESTS = 60_000


def _played(rate: float, servers: int, *, at_random: bool = False) -> Waits:
    """Requests at random, each of a second on average: M/M/c."""
    roll = Random(5)
    arrivals = Arrivals(rate, burst=1.0)
    return simulate(
        arrivals.times(REQUESTS, roll), lambda dice: dice.expovariate(1.0), servers, roll, at_random=at_random
    )


@pytest.mark.parametrize(("rate", "servers"), [(0.5, 1), (0.7, 1), (3.0, 5), (16.0, 20)])
def test_waits_are_those_of_erlang(rate: float, servers: int) -> None:
    played = _played(rate, servers)
    assert played.mean == pytest.approx(mean_wait(rate, servers, 1.0), rel=0.12)
    assert played.utilisation == pytest.approx(rate / servers, rel=0.05)


def test_requests_spread_at_random_wait_as_before_single_servers() -> None:
    assert _played(3.0, 5, at_random=True).mean == pytest.approx(mean_wait(0.6, 1, 1.0), rel=0.12)


def test_too_much_load_waits_ever_longer() -> None:
    half, whole = (
        simulate(Arrivals(1.3, burst=1.0).times(number, Random(1)), lambda _: 1.0, 1, Random(1)).p99
        for number in (5_000, 10_000)
    )
    assert whole > 1.5 * half


def test_a_plan_is_played_the_same_for_the_same_seed() -> None:
    plan = plan_for(Arrivals(300), COSTS, LENGTH, window=128_000, retention_days=30, machine=Machine())
    first, again, other = (play_plan(plan, COSTS, LENGTH, seed, 3_000) for seed in (1, 1, 2))
    assert first == again
    assert first != other


@pytest.mark.parametrize("rate", [10, 1_000])
def test_the_paper_and_the_play_agree_on_the_cpu(rate: int) -> None:
    plan = plan_for(Arrivals(rate), COSTS, LENGTH, window=128_000, retention_days=30, machine=Machine())
    draw, roll = service_times(COSTS, LENGTH, plan), Random(3)
    mean = sum(draw(roll) for _ in range(REQUESTS)) / REQUESTS
    assert mean == pytest.approx(plan.service.total, rel=0.05)
    line, spread = play_plan(plan, COSTS, LENGTH, 1)
    assert line.utilisation == pytest.approx(plan.cores / plan.workers, rel=0.1)
    assert line.p99 <= spread.p99

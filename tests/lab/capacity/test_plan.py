"""What a rate needs, on paper: more load needs more, twice the cost twice the CPU, and the sums are right."""

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from everlong.lab import LENGTHS, Arrivals, CapacityPlan, Costs, Machine, plan_for, recorded_costs

COSTS = recorded_costs("postgres")

rates = st.floats(0.1, 1e6)
names = st.sampled_from(sorted(LENGTHS))


def planned(rate: float, costs: Costs = COSTS, name: str = "coding", *, window: int = 128_000) -> CapacityPlan:
    return plan_for(Arrivals(rate), costs, LENGTHS[name], window=window, retention_days=30, machine=Machine())


@given(rate=rates, more=st.floats(1.0, 100.0), name=names)
def test_more_load_never_needs_less(rate: float, more: float, name: str) -> None:
    low, high = planned(rate, name=name), planned(rate * more, name=name)
    assert high.replicas >= low.replicas
    assert high.replicas * high.machine.workers >= low.workers
    assert high.memory_bytes >= low.memory_bytes * (1 - 1e-9)
    assert high.database_bytes >= low.database_bytes
    assert high.partitions >= low.partitions
    assert low.replicas_at_night <= low.replicas


@given(rate=rates, factor=st.floats(1.0, 8.0), name=names)
def test_dearer_requests_take_as_much_more_cpu(rate: float, factor: float, name: str) -> None:
    low, high = planned(rate, name=name), planned(rate, COSTS.times(factor), name)
    assert high.cores == pytest.approx(low.cores * factor)
    assert high.replicas >= low.replicas


@given(rate=rates, name=names)
def test_workers_stay_below_the_share_that_they_may_be_busy(rate: float, name: str) -> None:
    plan = planned(rate, name=name)
    assert plan.cores <= plan.workers * plan.machine.utilisation * (1 + 1e-6) + 1e-6


@given(window=st.integers(8_000, 1_000_000))
def test_a_smaller_window_compacts_at_least_as_often(window: int) -> None:
    here, larger = planned(100, window=window), planned(100, window=2 * window)
    assert here.service.compactions >= larger.service.compactions


@given(days=st.floats(0.0, 1_000.0))
def test_a_database_grows_with_the_days_that_are_kept(days: float) -> None:
    kept = plan_for(
        Arrivals(50), COSTS, LENGTHS["coding"], window=128_000, retention_days=days, machine=Machine()
    ).database_bytes
    assert kept == pytest.approx(planned(50).database_bytes * days / 30)


def test_requests_in_flight_follow_from_the_time_that_answers_take() -> None:
    arrivals = Arrivals(100, burst=2.0, answer=10.0, think=20.0)
    assert arrivals.in_flight == 2_000
    assert arrivals.active == 6_000


def test_memory_alone_may_ask_for_replicas() -> None:
    held = replace(COSTS, conversation_kilobytes=100_000.0)
    assert planned(100, held).replicas > planned(100).replicas


def test_what_gives_first_is_what_is_used_most() -> None:
    plan = planned(100_000)
    assert all(plan.first.used >= demand.used for demand in plan.demands)
    assert plan.first_shared.name not in ("replica", "memory")
    assert plan.partitions >= plan.first_shared.used


def test_a_hundred_thousand_requests_a_second_need_hundreds_of_cores_and_several_databases() -> None:
    """Bounds that a wrong unit would break."""
    small, large = planned(10), planned(100_000)
    assert small.replicas == 1
    assert 50 < large.cores < 5_000
    assert 1e11 < large.memory_bytes < 1e13
    assert large.partitions > 1

"""The formulas of a queue, in cases that can be worked out by hand."""

import math

import pytest
from hypothesis import given, strategies as st

from everlong.lab.capacity.queues import delay_probability, mean_wait, servers_for, wait_quantile


@pytest.mark.parametrize(
    ("load", "servers", "share"),
    [(0.5, 1, 0.5), (0.9, 1, 0.9), (1.0, 2, 1 / 3), (0.0, 3, 0.0), (2.0, 2, 1.0), (5.0, 2, 1.0)],
    ids=["one server is busy as often as its load", "nearly full", "two servers", "nobody comes", "full", "too much"],
)
def test_how_many_wait(load: float, servers: int, share: float) -> None:
    assert delay_probability(load, servers) == pytest.approx(share)


def test_the_wait_before_one_server_is_that_of_the_textbook() -> None:
    """M/M/1: load / (1 - load) times the service."""
    assert mean_wait(0.8, 1, 0.01) == pytest.approx(0.8 / 0.2 * 0.01)


@given(load=st.floats(0.01, 50), servers=st.integers(1, 80))
def test_a_queue_is_stable_if_and_only_if_its_servers_are_not_always_busy(load: float, servers: int) -> None:
    stable = load < servers
    assert math.isfinite(mean_wait(load, servers, 1.0)) == stable
    assert math.isfinite(wait_quantile(load, servers, 1.0, 0.99)) == stable


@given(load=st.floats(0.01, 50), servers=st.integers(1, 80))
def test_one_server_more_never_makes_anybody_wait_longer(load: float, servers: int) -> None:
    assert mean_wait(load, servers + 1, 1.0) <= mean_wait(load, servers, 1.0)


@given(load=st.floats(0.0, 5_000), utilisation=st.floats(0.05, 0.95))
def test_servers_are_just_enough(load: float, utilisation: float) -> None:
    servers = servers_for(load, utilisation)
    assert load <= servers * utilisation * (1 + 1e-9) + 1e-6
    assert servers == 1 or load > (servers - 1) * utilisation * (1 - 1e-9)

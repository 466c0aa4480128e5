"""Limits for each client: exact in every minute, free again when a request is over, forgotten when idle."""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given, strategies as st

from everlong.errors import Refused
from everlong.gateway.clients import Admission, Client, Limiter, Limits


@dataclass
class Clock:
    now: float = 1_000.0

    def __call__(self) -> float:
        return self.now


def client(scope: str = "a", **limits: int) -> Client:
    return Client(scope=scope, limits=Limits(**limits))


def refused(limiter: Limiter, who: Client, tokens: int = 0) -> Refused:
    with pytest.raises(Refused) as error:
        limiter.admit(who, tokens).enter()
    assert (error.value.status, error.value.kind) == (429, "too_many_requests")
    return error.value


def test_requests_in_a_minute() -> None:
    clock = Clock()
    limiter, who = Limiter(clock), client(requests_per_minute=2)
    limiter.admit(who).enter()
    clock.now += 10.5
    limiter.admit(who).enter()
    assert refused(limiter, who).after == 50
    clock.now += 49.4
    assert refused(limiter, who).after == 1
    clock.now += 0.1
    limiter.admit(who).enter()
    assert refused(limiter, who).after == 11


def test_after_the_seconds_it_names_a_request_is_let_in() -> None:
    clock = Clock()
    limiter, who = Limiter(clock), client(tokens_per_minute=100)
    for tokens in (30, 40, 30):
        limiter.admit(who, tokens).enter()
        clock.now += 7.3
    wait = refused(limiter, who, 60).after
    assert wait == 46
    clock.now += wait
    limiter.admit(who, 60).enter()


def test_a_request_that_never_fits_names_no_time_to_wait() -> None:
    error = refused(Limiter(Clock()), client(tokens_per_minute=100), 101)
    assert error.after is None
    assert "this request alone has about 101" in str(error)


def test_at_once() -> None:
    limiter, who = Limiter(Clock()), client(at_once=2)
    with limiter.admit(who), limiter.admit(who) as second:
        assert refused(limiter, who).after == 1
        second.leave()
        with limiter.admit(who):
            assert refused(limiter, who)
    limiter.admit(who).enter()
    limiter.admit(who).enter()
    assert refused(limiter, who)


def test_leaving_twice_or_without_entering_frees_nothing_more() -> None:
    limiter, who = Limiter(Clock()), client(at_once=1)
    first = limiter.admit(who)
    first.enter()
    limiter.admit(who).leave()
    assert refused(limiter, who)
    first.leave()
    first.leave()
    limiter.admit(who).enter()
    assert refused(limiter, who)


def test_a_request_that_fails_leaves_too() -> None:
    limiter, who = Limiter(Clock()), client(at_once=1)
    for _ in range(3):
        with pytest.raises(KeyError), limiter.admit(who):
            raise KeyError


def test_a_refused_request_counts_for_nothing() -> None:
    clock = Clock()
    limiter, who = Limiter(clock), client(requests_per_minute=1, tokens_per_minute=10)
    limiter.admit(who, 10).enter()
    for _ in range(20):
        refused(limiter, who, 1)
        clock.now += 2.9
    clock.now += 2.0
    limiter.admit(who, 10).enter()


def test_scopes_do_not_share_limits() -> None:
    limiter = Limiter(Clock())
    limiter.admit(client("a", requests_per_minute=1)).enter()
    limiter.admit(client("b", requests_per_minute=1)).enter()
    assert refused(limiter, client("a", requests_per_minute=1))


def test_who_has_no_limits_leaves_no_trace() -> None:
    limiter = Limiter(Clock())
    for number in range(100):
        limiter.admit(client(str(number)), 10**9).enter()
    assert len(limiter) == 0


def test_the_idle_are_forgotten_and_the_busy_are_not() -> None:
    clock = Clock()
    limiter = Limiter(clock)
    busy = client("busy", at_once=1)
    limiter.admit(busy).enter()
    for number in range(1_000):
        with limiter.admit(client(str(number), requests_per_minute=5)):
            clock.now += 1.0
    assert len(limiter) <= 62
    assert refused(limiter, busy)


STEPS = st.lists(st.tuples(st.integers(0, 120), st.integers(0, 40)), max_size=60)


@given(STEPS, st.integers(1, 5), st.integers(1, 60))
def test_no_minute_holds_more_than_the_limits(steps: Sequence[tuple[int, int]], most: int, tokens: int) -> None:
    clock = Clock()
    limiter, who = Limiter(clock), client(requests_per_minute=most, tokens_per_minute=tokens)
    admitted: list[tuple[float, int]] = []
    for quarters, asked in steps:
        clock.now += quarters / 4
        with contextlib.suppress(Refused):
            limiter.admit(who, asked).enter()
            admitted.append((clock.now, asked))
    for begin, _ in admitted:
        minute = [size for then, size in admitted if begin <= then < begin + 60]
        assert len(minute) <= most
        assert sum(minute) <= tokens


@given(STEPS, st.integers(1, 5), st.integers(1, 60))
def test_who_waits_as_long_as_told_is_let_in(steps: Sequence[tuple[int, int]], most: int, tokens: int) -> None:
    clock = Clock()
    limiter, who = Limiter(clock), client(requests_per_minute=most, tokens_per_minute=tokens)
    for quarters, asked in steps:
        clock.now += quarters / 4
        for _ in range(3):  # the requests and the tokens may each ask for a wait
            try:
                limiter.admit(who, asked).enter()
            except Refused as error:
                clock.now += error.after or 0
            else:
                break
        else:
            assert asked > tokens


@given(st.lists(st.integers(0, 6), max_size=60), st.integers(1, 4))
def test_never_more_at_once_and_leaving_always_frees(moves: Sequence[int], most: int) -> None:
    clock = Clock()
    limiter, who = Limiter(clock), client(at_once=most)
    inside: list[Admission] = []
    for move in moves:
        clock.now += move * 20
        if move % 2 and inside:
            inside.pop().leave()
            continue
        admission = limiter.admit(who)
        try:
            admission.enter()
        except Refused:
            assert len(inside) == most
        else:
            inside.append(admission)
            assert len(inside) <= most
    for admission in inside:
        admission.leave()
    again = [limiter.admit(who) for _ in range(most)]
    for admission in again:
        admission.enter()

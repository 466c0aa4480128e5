"""Limits of each key: exact in every minute, in one process and in several; free again when a request is over."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import Event
from typing import TypeAlias, TypeVar

import pytest
from hypothesis import given, settings, strategies as st

from everlong.core import JsonText
from everlong.errors import Refused, StoreError
from everlong.gateway.config import Limits
from everlong.gateway.keys.accounts import LEASE, SPENT
from everlong.gateway.keys.limits import Limiter
from everlong.gateway.keys.spend import Ledger, Spend
from everlong.store import MemoryThreads

T = TypeVar("T")
NOON = datetime(2026, 11, 16, 12, tzinfo=UTC).timestamp()
LONG = 600.0  # seconds; nothing here waits for them


@dataclass
class Clock:
    now: float = NOON

    def __call__(self) -> float:
        return self.now

    def utc(self) -> datetime:
        return datetime.fromtimestamp(self.now, UTC)


Key: TypeAlias = tuple[str, Limits]


def client(name: str = "a", **limits: float) -> Key:
    return name, Limits(**limits)  # type: ignore[arg-type]


def limiter_at(
    clock: Clock,
    store: MemoryThreads | None = None,
    *,
    shared: bool = False,
    patience: float = LONG,
    again: Sequence[float] = (),
) -> Limiter:
    store = store or MemoryThreads()
    return Limiter(store, Ledger(store, clock.utc), shared=shared, patience=patience, again=again, clock=clock)


async def refused(limiter: Limiter, who: Key, tokens: int = 0, dollars: float = 0.0) -> Refused:
    with pytest.raises(Refused) as error:
        await limiter.admit(*who, tokens, dollars).enter()
    assert error.value.status == 429
    return error.value


def run(work: Callable[[], Awaitable[T]]) -> T:
    async def whole() -> T:
        return await work()

    return asyncio.run(whole())


@pytest.fixture(params=[False, True], ids=["alone", "shared"])
def shared(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def test_requests_in_a_minute(shared: bool) -> None:
    async def work() -> None:
        clock = Clock()
        limiter, who = limiter_at(clock, shared=shared), client(requests_per_minute=2)
        await limiter.admit(*who).enter()
        clock.now += 10.5
        await limiter.admit(*who).enter()
        assert (await refused(limiter, who)).after == 50
        clock.now += 49.4
        assert (await refused(limiter, who)).after == 1
        clock.now += 0.11
        await limiter.admit(*who).enter()
        assert (await refused(limiter, who)).after == 11

    run(work)


def test_after_the_seconds_it_names_a_request_is_let_in(shared: bool) -> None:
    async def work() -> None:
        clock = Clock()
        limiter, who = limiter_at(clock, shared=shared), client(tokens_per_minute=100)
        for tokens in (30, 40, 30):
            await limiter.admit(*who, tokens).enter()
            clock.now += 7.3
        wait = (await refused(limiter, who, 60)).after
        assert wait == 46
        clock.now += wait
        await limiter.admit(*who, 60).enter()

    run(work)


def test_a_request_that_never_fits_names_no_time_to_wait() -> None:
    async def work() -> None:
        error = await refused(limiter_at(Clock()), client(tokens_per_minute=100), 101)
        assert error.after is None
        assert "this request alone has about 101" in str(error)

    run(work)


def test_at_once(shared: bool) -> None:
    async def work() -> None:
        limiter, who = limiter_at(Clock(), shared=shared), client(at_once=2)
        async with limiter.admit(*who), limiter.admit(*who) as second:
            assert (await refused(limiter, who)).after == 1
            second.leave()
            async with limiter.admit(*who):
                assert await refused(limiter, who)
        await limiter.admit(*who).enter()
        await limiter.admit(*who).enter()
        assert await refused(limiter, who)

    run(work)


def test_leaving_twice_or_without_entering_frees_nothing_more(shared: bool) -> None:
    async def work() -> None:
        limiter, who = limiter_at(Clock(), shared=shared), client(at_once=1)
        first = limiter.admit(*who)
        await first.enter()
        limiter.admit(*who).leave()
        assert await refused(limiter, who)
        first.leave()
        first.leave()
        await limiter.admit(*who).enter()
        assert await refused(limiter, who)

    run(work)


def test_a_refused_request_counts_for_nothing() -> None:
    async def work() -> None:
        clock = Clock()
        limiter, who = limiter_at(clock), client(requests_per_minute=1, tokens_per_minute=10)
        await limiter.admit(*who, 10).enter()
        for _ in range(20):
            await refused(limiter, who, 1)
            clock.now += 2.9
        clock.now += 2.0
        await limiter.admit(*who, 10).enter()

    run(work)


def test_keys_do_not_share_limits_and_those_without_any_leave_no_trace() -> None:
    async def work() -> None:
        limiter = limiter_at(Clock())
        await limiter.admit(*client("a", requests_per_minute=1)).enter()
        await limiter.admit(*client("b", requests_per_minute=1)).enter()
        assert await refused(limiter, client("a", requests_per_minute=1))
        for number in range(100):
            await limiter.admit(*client(str(number)), 10**9).enter()
        assert len(limiter) == 2

    run(work)


# --- budgets ---------------------------------------------------------------------------------------


BUDGETS = [
    ("requests_per_day", 3.0, (0, 0.0), 12 * 3_600),
    ("tokens_per_day", 300.0, (100, 0.0), 12 * 3_600),
    ("dollars_per_day", 0.3, (0, 0.1), 12 * 3_600),
    ("dollars_per_month", 0.3, (0, 0.1), 14 * 86_400 + 12 * 3_600),
]


@pytest.mark.parametrize(("name", "budget", "each", "wait"), BUDGETS, ids=[row[0] for row in BUDGETS])
def test_a_budget_that_is_spent_is_refused_until_it_begins_anew(
    name: str, budget: float, each: tuple[int, float], wait: int, shared: bool
) -> None:
    async def work() -> None:
        clock = Clock()
        limiter, who = limiter_at(clock, shared=shared), client(**{name: budget})
        for _ in range(3):
            async with limiter.admit(*who, *each):
                limiter.spend("a", Spend(prompt=each[0], dollars=each[1]))
            clock.now += 0.25
        error = await refused(limiter, who, *each)
        assert error.kind == SPENT
        assert error.after is not None
        assert abs(error.after - wait) <= 1
        clock.now += error.after
        await limiter.admit(*who, *each).enter()

    run(work)


def test_what_is_under_way_is_reserved_and_corrected_when_it_is_known(shared: bool) -> None:
    async def work() -> None:
        limiter, who = limiter_at(Clock(), shared=shared), client(dollars_per_day=1.0)
        async with limiter.admit(*who, 0, 0.6):
            assert (await refused(limiter, who, 0, 0.6)).kind == SPENT
            limiter.spend("a", Spend(dollars=0.1))  # it was cheaper than was thought
        async with limiter.admit(*who, 0, 0.6):
            limiter.spend("a", Spend(dollars=0.95))  # and this one dearer
        assert (await refused(limiter, who)).kind == SPENT

    run(work)


def test_what_was_spent_before_counts_when_a_process_begins(shared: bool) -> None:
    async def work() -> None:
        clock, store = Clock(), MemoryThreads()
        ledger = Ledger(store, clock.utc)
        ledger.add("a", Spend(requests=5, dollars=2.0))
        ledger.flush()
        limiter = limiter_at(clock, store, shared=shared)
        assert (await refused(limiter, client(dollars_per_day=2.0))).kind == SPENT
        assert (await refused(limiter, client(requests_per_day=5))).kind == SPENT
        await limiter.admit(*client(dollars_per_month=2.5), 0, 0.1).enter()

    run(work)


# --- several processes -----------------------------------------------------------------------------


def test_the_places_of_a_process_that_died_are_free_after_its_lease() -> None:
    async def work() -> None:
        clock, store = Clock(), MemoryThreads()
        dead, alive, who = (
            limiter_at(clock, store, shared=True),
            limiter_at(clock, store, shared=True),
            client(at_once=2),
        )
        await dead.admit(*who).enter()
        await dead.admit(*who).enter()
        clock.now += LEASE - 1
        assert await refused(alive, who)
        clock.now += 2
        await alive.admit(*who).enter()

    run(work)


def test_who_moves_on_to_another_process_finds_the_place_of_its_last_answer_free() -> None:
    async def work() -> None:
        clock, store = Clock(), MemoryThreads()
        limiters = [limiter_at(clock, store, shared=True, again=[0.01] * 1_000) for _ in range(3)]
        who = client(at_once=1)
        for turn in range(30):
            async with limiters[turn % 3].admit(*who):
                pass

    run(work)


def test_fifty_at_once_over_three_processes_are_admitted_up_to_the_limit_and_no_more() -> None:
    async def work() -> None:
        clock, store = Clock(), MemoryThreads()
        limiters = [limiter_at(clock, store, shared=True) for _ in range(3)]
        who = client(requests_per_minute=20)
        asked = [limiters[at % 3].admit(*who).enter() for at in range(50)]
        answers = await asyncio.gather(*asked, return_exceptions=True)
        assert sum(answer is None for answer in answers) == 20

    run(work)


class CutOff(MemoryThreads):
    """A store that fails while `away`, or holds everyone until `back`."""

    def __init__(self) -> None:
        super().__init__()
        self.away = False
        self.back: Event | None = None

    def change_fact(self, kind: str, key: str, change: Callable[[JsonText | None], JsonText | None]) -> JsonText | None:
        if self.back is not None:
            self.back.wait(LONG)
        if self.away:
            raise StoreError("no answer")
        return super().change_fact(kind, key, change)


@pytest.mark.parametrize("silent", [False, True], ids=["refuses", "says nothing"])
def test_while_the_store_is_away_each_process_counts_by_itself_and_tells_later(silent: bool) -> None:
    async def work() -> None:
        clock, store = Clock(), CutOff()
        limiter = limiter_at(clock, store, shared=True, patience=0.05 if silent else LONG)
        other = limiter_at(clock, store, shared=True)
        who = client(requests_per_day=4)
        await other.admit(*who).enter()
        await limiter_at(clock, store, shared=True).admit(*who).enter()
        if silent:
            store.back = Event()
        else:
            store.away = True
        async with limiter.admit(*who), limiter.admit(*who), limiter.admit(*who), limiter.admit(*who):
            assert (await refused(limiter, who)).kind == SPENT
        store.away = False
        if store.back is not None:
            store.back.set()
        clock.now += 11
        assert (await refused(limiter, who)).kind == SPENT
        clock.now += 11
        await asyncio.to_thread(limiter.close)
        assert (await refused(other, who)).kind == SPENT

    run(work)


def test_a_client_that_leaves_while_it_waits_takes_no_place() -> None:
    async def work() -> None:
        store = CutOff()
        limiter, who = limiter_at(Clock(), store, shared=True), client(at_once=1)
        store.back = Event()
        waits = asyncio.ensure_future(limiter.admit(*who).enter())
        await asyncio.sleep(0)
        waits.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await waits
        store.back.set()
        store.back = None
        await limiter.admit(*who).enter()

    run(work)


STEPS = st.lists(st.tuples(st.integers(0, 120), st.integers(0, 40), st.integers(0, 2)), max_size=40)


@settings(max_examples=40)
@given(STEPS, st.integers(1, 5), st.integers(1, 60), st.integers(1, 3))
def test_no_minute_holds_more_than_the_limits(
    steps: Sequence[tuple[int, int, int]], most: int, tokens: int, processes: int
) -> None:
    admitted: list[tuple[float, int]] = []

    async def work() -> None:
        clock, store = Clock(), MemoryThreads()
        limiters = [limiter_at(clock, store, shared=processes > 1) for _ in range(processes)]
        who = client(requests_per_minute=most, tokens_per_minute=tokens)
        for quarters, asked, at in steps:
            clock.now += quarters / 4
            with contextlib.suppress(Refused):
                await limiters[at % processes].admit(*who, asked).enter()
                admitted.append((clock.now, asked))

    run(work)
    for begin, _ in admitted:
        minute = [size for then, size in admitted if begin <= then < begin + 60]
        assert len(minute) <= most
        assert sum(minute) <= tokens


ACTS = st.lists(st.tuples(st.sampled_from(["enter", "leave"]), st.integers(0, 5)), max_size=40)


@settings(max_examples=40)
@given(ACTS, st.integers(1, 3), st.booleans())
def test_never_more_under_way_than_at_once(acts: Sequence[tuple[str, int]], most: int, shared: bool) -> None:
    async def work() -> None:
        store = MemoryThreads()
        limiters = [limiter_at(Clock(), store, shared=shared) for _ in range(2 if shared else 1)]
        who = client(at_once=most)
        admissions = [limiters[at % len(limiters)].admit(*who) for at in range(6)]
        inside: set[int] = set()
        for act, number in acts:
            if act == "leave":
                admissions[number].leave()
                inside.discard(number)
                continue
            with contextlib.suppress(Refused):
                await admissions[number].enter()
                inside.add(number)
            assert len(inside) <= most

    run(work)

"""Leases of turns: one holder at a time, words kept under it, and taken over once when a process falls silent."""

import asyncio

from hypothesis import given, settings, strategies as st

from everlong.store import MemoryThreads
from everlong.web.live.leases import Lease, Leases


def some_processes(count: int, seconds: float = 0.0) -> list[Leases]:
    """Leases of several processes on one store; with no seconds, whoever is silent is gone at once."""
    threads = MemoryThreads()
    return [Leases(threads, f"process {number}", seconds, shared=True) for number in range(count)]


@settings(max_examples=200)
@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.sampled_from(["take", "write", "release", "take over"]), st.integers(0, 1)),
        max_size=30,
    )
)
def test_a_thread_is_held_by_one_process_and_only_that_one_writes(steps: list[tuple[int, str, int]]) -> None:
    processes = some_processes(3)
    holder: dict[str, int] = {}
    turns: dict[str, str] = {}

    async def end(thread: str, lease: Lease) -> None:
        assert lease.turn == turns[thread]

    for number, (process, step, which) in enumerate(steps):
        leases, thread = processes[process], f"thread {which}"
        mine = holder.get(thread) == process
        match step:
            case "take":
                assert leases.take(thread, f"turn {number}") is (mine or thread not in holder)
                if mine or thread not in holder:
                    holder[thread], turns[thread] = process, f"turn {number}"
            case "write":
                assert leases.write(thread, 0, "m", f"words {number}", "") is mine
            case "release":
                leases.release(thread, turns.get(thread, ""))
                if mine:
                    del holder[thread]
            case _:
                known = leases.of(thread)
                if known is not None:
                    asyncio.run(leases.take_over(thread, known, end))
                    holder.pop(thread, None)
        stands = leases.of(thread)
        assert (stands is not None) is (thread in holder)
        assert stands is None or stands.process == f"process {holder[thread]}"


def test_a_silent_process_is_taken_over_once_and_finds_out() -> None:
    first, second, third = some_processes(3)
    ended: list[tuple[str, str]] = []
    stopped: list[str] = []

    async def end(thread: str, lease: Lease) -> None:
        ended.append((thread, lease.text))
        await asyncio.sleep(0)

    async def run() -> None:
        assert first.take("t", "turn")
        assert first.write("t", 0, "m", "half of it", "")
        both = (second._look(end, stopped.append), third._look(end, stopped.append))
        await asyncio.gather(*both)
        await first._look(end, stopped.append)

    asyncio.run(run())
    assert ended == [("t", "half of it")]
    assert stopped == ["t"], "the slow process stops what another has ended"
    assert not first.write("t", 0, "m", "more", "")
    assert first.of("t") is None


def test_a_process_that_beats_keeps_its_turns() -> None:
    first, second = some_processes(2, seconds=1_000.0)

    async def end(_: str, __: Lease) -> None:
        raise AssertionError

    async def run() -> None:
        assert first.take("t", "turn")
        for _ in range(3):
            await first._look(end, lambda _: None)
            await second._look(end, lambda _: None)

    asyncio.run(run())
    assert first.write("t", 0, "m", "more", "")
    assert not second.take("t", "another")

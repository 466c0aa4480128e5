"""What every runner of jobs must do, in one process and over a database."""

import asyncio

import pytest

from everlong.errors import EverlongError
from everlong.jobs.contract import URGENT, End, Job, Period
from tests.jobs.runners import RUNNERS, runner, until

pytestmark = pytest.mark.parametrize("kind", RUNNERS)


class Gate:
    """A handler that notes what it began and waits until it is let through."""

    def __init__(self, *, open_: bool = False) -> None:
        self.begun: list[Job] = []
        self.ended: list[Job] = []
        self.open = asyncio.Event()
        if open_:
            self.open.set()

    async def __call__(self, job: Job) -> End:
        self.begun.append(job)
        await self.open.wait()
        self.ended.append(job)
        return End.DONE


def test_a_job_is_done_once_with_what_it_carries(kind: str) -> None:
    async def run() -> None:
        async with runner(kind) as jobs:
            gate = Gate(open_=True)
            jobs.handle("summary", gate)
            await jobs.start()
            await jobs.ask(Job(kind="summary", key="thread \0 \ud800 %", load=b"\0text", need=7))
            await jobs.drain()
            assert [(job.key, job.load, job.need) for job in gate.ended] == [("thread \0 \ud800 %", b"\0text", 7)]
            assert jobs.counts().done == 1

    asyncio.run(run())


def test_one_job_of_a_key_at_a_time_and_the_newest_that_waits(kind: str) -> None:
    async def run() -> None:
        async with runner(kind) as jobs:
            gate = Gate()
            jobs.handle("summary", gate)
            jobs.handle("title", gate)
            await jobs.start()
            await jobs.ask(Job(kind="summary", key="a", load=b"1"))
            await until(lambda: gate.begun)
            for load in (b"2", b"3", b"4"):
                await jobs.ask(Job(kind="summary", key="a", load=load))
            await jobs.ask(Job(kind="title", key="a", load=b"title"))
            await jobs.ask(Job(kind="summary", key="b", load=b"other"))
            await until(lambda: len(gate.begun) == 2)
            assert [job.load for job in gate.begun] == [b"1", b"other"]
            gate.open.set()
            await jobs.drain()
            assert sorted(job.load for job in gate.ended) == [b"1", b"4", b"other", b"title"]
            assert (jobs.counts().done, jobs.counts().superseded) == (4, 2)

    asyncio.run(run())


def test_the_greatest_need_comes_first(kind: str) -> None:
    async def run() -> None:
        async with runner(kind, at_once=1) as jobs:
            gate = Gate()
            jobs.handle("summary", gate)
            await jobs.start()
            await jobs.ask(Job(kind="summary", key="first"))
            await until(lambda: gate.begun)
            for number, need in enumerate((10, 50, 90, 50)):
                await jobs.ask(Job(kind="summary", key=f"{number}", need=need))
            gate.open.set()
            await jobs.drain()
            assert [job.key for job in gate.ended] == ["first", "2", "1", "3", "0"]

    asyncio.run(run())


def test_a_job_that_fails_is_repeated_and_then_counts_as_failed(kind: str) -> None:
    async def run() -> None:
        async with runner(kind) as jobs:
            calls: list[str] = []

            async def handler(job: Job) -> End:
                calls.append(job.key)
                if job.key == "hopeless" or len(calls) < 3:
                    raise EverlongError("away")
                return End.DONE

            jobs.handle("summary", handler)
            await jobs.start()
            await jobs.ask(Job(kind="summary", key="later"))
            await jobs.drain()
            assert (len(calls), jobs.counts().done, jobs.counts().failed) == (3, 1, 0)
            await jobs.ask(Job(kind="summary", key="hopeless"))
            await jobs.drain()
            assert (len(calls), jobs.counts().failed) == (7, 1)

    asyncio.run(run())


def test_a_job_that_finds_nothing_due_is_superseded(kind: str) -> None:
    async def run() -> None:
        async with runner(kind) as jobs:

            async def handler(job: Job) -> End:
                return End.SUPERSEDED

            jobs.handle("summary", handler)
            await jobs.start()
            await jobs.ask(Job(kind="summary", key="a"))
            await jobs.drain()
            assert (jobs.counts().superseded, jobs.counts().done) == (1, 0)

    asyncio.run(run())


def test_what_has_a_key_is_cancelled_waiting_and_running(kind: str) -> None:
    async def run() -> None:
        async with runner(kind) as jobs:
            gate = Gate()
            jobs.handle("summary", gate)
            await jobs.start()
            await jobs.ask(Job(kind="summary", key="gone"))
            await until(lambda: gate.begun)
            await jobs.ask(Job(kind="summary", key="gone"))
            await jobs.ask(Job(kind="summary", key="stays"))
            assert await jobs.cancel("gone") == 2
            assert await jobs.cancel("never asked") == 0
            gate.open.set()
            await jobs.drain()
            assert [job.key for job in gate.ended] == ["stays"]
            assert jobs.counts().superseded == 2

    asyncio.run(run())


def test_work_of_this_process_gives_its_result_and_takes_the_place_of_older_work(kind: str) -> None:
    async def run() -> None:
        async with runner(kind, at_once=1) as jobs:
            await jobs.start()
            door = asyncio.Event()

            async def slow() -> str:
                await door.wait()
                return "slow"

            async def quick(said: str) -> str:
                return said

            first = jobs.here("look", "a", slow)
            older = jobs.here("look", "a", lambda: quick("older"))
            newer = jobs.here("look", "a", lambda: quick("newer"))
            asked = jobs.here("look", "a", lambda: quick("asked for"), need=URGENT, replace=False)
            assert jobs.running("a")
            assert await jobs.here("look", "b", lambda: quick("a person waits"), need=URGENT) == "a person waits"
            door.set()
            assert [await first, await older, await asked, await newer] == ["slow", None, "asked for", "newer"]
            await until(lambda: not jobs.running("a"))

    asyncio.run(run())


def test_work_of_this_process_that_fails_raises_what_it_raised(kind: str) -> None:
    async def run() -> None:
        async with runner(kind) as jobs:
            await jobs.start()

            async def failing() -> None:
                raise EverlongError("away")

            with pytest.raises(EverlongError, match="away"):
                await jobs.here("look", "a", failing)
            assert not jobs.running("a")

    asyncio.run(run())


def test_what_was_closed_takes_nothing_more(kind: str) -> None:
    async def run() -> None:
        async with runner(kind) as jobs:
            await jobs.start()
            gate = Gate()
            running = jobs.here("look", "a", lambda: gate(Job(kind="look", key="a")))
            await until(lambda: gate.begun)
            await jobs.close()
            assert await running is None
            assert await jobs.here("look", "a", lambda: gate(Job(kind="look", key="a"))) is None
            assert len(gate.begun) == 1

    asyncio.run(run())


def test_periods_are_known(kind: str) -> None:
    async def run() -> None:
        async with runner(kind) as jobs:
            done: list[str] = []

            async def work() -> None:
                done.append("swept")

            jobs.every(Period.HOUR, "sweep", work)
            jobs.every(Period.DAY, "refresh", work)
            await jobs.start()
            if kind == "local":
                await until(lambda: len(done) == 2)
            await jobs.drain()

    asyncio.run(run())

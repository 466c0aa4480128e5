"""Jobs over a database outlive processes, servers and each other's mistakes."""

import asyncio
import sys
from contextlib import AsyncExitStack
from functools import partial

import psycopg
import pytest

from everlong.errors import EverlongError, StoreError
from everlong.gateway import GatewayConfig
from everlong.jobs.contract import End, Job, NotHere, Period
from everlong.jobs.postgres import CRON, Lease, PostgresJobs
from tests.jobs.runners import SHORT, database, until
from tests.store.postgres_server import private_server


def test_a_job_of_a_killed_process_is_taken_over() -> None:
    async def run() -> None:
        async with database() as url, AsyncExitStack() as stack:
            jobs = PostgresJobs(url, lease=SHORT)
            stack.push_async_callback(jobs.close)
            done: list[Job] = []

            async def handler(job: Job) -> End:
                done.append(job)
                return End.DONE

            asker = PostgresJobs(url, works=False)
            await asker.start()
            stack.push_async_callback(asker.close)
            await asker.ask(Job(kind="summary", key="held", load=b"what it carries"))
            holder = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "tests.jobs.holding", url, stdout=asyncio.subprocess.PIPE
            )
            assert holder.stdout is not None
            assert await holder.stdout.readline() == b"held\n"
            jobs.handle("summary", handler)
            await jobs.start()
            holder.kill()
            await holder.wait()
            await jobs.drain()
            assert [(job.key, job.load, job.attempt) for job in done] == [("held", b"what it carries", 1)]
            assert jobs.counts().taken_over == 1

    asyncio.run(run())


def test_a_cancelled_job_of_a_killed_process_is_gone_and_does_not_count_as_failed() -> None:
    async def run() -> None:
        async with database() as url, AsyncExitStack() as stack:
            done: list[str] = []

            async def handler(job: Job) -> End:
                done.append(job.key)
                return End.DONE

            asker = PostgresJobs(url, works=False)
            await asker.start()
            stack.push_async_callback(asker.close)
            await asker.ask(Job(kind="summary", key="held"))
            holder = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "tests.jobs.holding", url, stdout=asyncio.subprocess.PIPE
            )
            assert holder.stdout is not None
            assert await holder.stdout.readline() == b"held\n"
            holder.kill()
            await holder.wait()
            assert await asker.cancel("held") == 1
            jobs = PostgresJobs(url, lease=SHORT)
            jobs.handle("summary", handler)
            await jobs.start()
            stack.push_async_callback(jobs.close)
            await jobs.drain()
            assert await jobs.kept() == []
            await until(lambda: jobs.counts().superseded)
            with psycopg.connect(url) as link:
                left = link.execute("SELECT count(*) FROM everlong.procrastinate_jobs WHERE queue_name = 'summary'")
                assert left.fetchone() == (0,)
            assert (done, jobs.counts().failed) == ([], 0)

    asyncio.run(run())


def test_the_usual_lease_is_taken_over_within_half_a_minute() -> None:
    lease = Lease.of(GatewayConfig().jobs_lease)
    assert lease == Lease()
    assert lease.silence + lease.look + lease.polling < 30
    assert lease.silence >= 3 * lease.heartbeat  # a beat may be late


def test_a_process_that_ends_in_order_gives_back_what_it_cannot_finish() -> None:
    async def run() -> None:
        async with database() as url:
            begun: list[int] = []
            door = asyncio.Event()

            async def handler(job: Job) -> End:
                begun.append(job.attempt)
                await door.wait()
                return End.DONE

            first, second = (PostgresJobs(url, lease=SHORT) for _ in range(2))
            first.handle("summary", handler)
            await first.start()
            await first.ask(Job(kind="summary", key="a"))
            await until(lambda: begun)
            await first.close()
            second.handle("summary", handler)
            await second.start()
            await until(lambda: len(begun) == 2)
            assert [(job.key, job.state) for job in await second.kept()] == [("a", "running")]
            door.set()
            await second.drain()
            assert (begun, second.counts().done) == ([0, 1], 1)
            await second.close()

    asyncio.run(run())


def test_a_job_is_cancelled_from_another_process() -> None:
    async def run() -> None:
        async with database() as url:
            begun: list[str] = []
            ended: list[str] = []

            async def handler(job: Job) -> End:
                begun.append(job.key)
                try:
                    await asyncio.Event().wait()
                finally:
                    ended.append(job.key)
                return End.DONE

            worker, asker = PostgresJobs(url, lease=SHORT), PostgresJobs(url, works=False, lease=SHORT)
            worker.handle("summary", handler)
            await worker.start()
            await asker.start()
            await asker.ask(Job(kind="summary", key="removed"))
            await until(lambda: begun)
            assert await asker.cancel("removed") == 1
            await until(lambda: ended)
            await asker.drain()
            assert await asker.kept() == []
            assert worker.counts().superseded == 1
            await asyncio.gather(worker.close(), asker.close())

    asyncio.run(run())


def test_jobs_go_on_after_the_server_was_restarted() -> None:
    async def run() -> None:
        with private_server() as server:
            url = server.new_database()
            done: list[str] = []

            async def handler(job: Job) -> End:
                done.append(job.key)
                return End.DONE

            jobs = PostgresJobs(url, lease=SHORT)
            jobs.handle("summary", handler)
            await jobs.start()
            await jobs.ask(Job(kind="summary", key="before"))
            await jobs.drain()
            await asyncio.to_thread(server.stop, "immediate")
            asked = jobs.ask(Job(kind="summary", key="while it is away"))
            await asyncio.to_thread(server.start)
            await asked
            await until(lambda: "while it is away" in done)
            await jobs.ask(Job(kind="summary", key="after"))
            await until(lambda: "after" in done)
            await jobs.close()

    asyncio.run(run())


def test_what_one_process_lacks_another_has() -> None:
    async def run() -> None:
        async with database() as url:
            tried: list[str] = []

            async def without_key(job: Job) -> End:
                tried.append("without")
                raise NotHere("no key for it")

            lacking = PostgresJobs(url, lease=SHORT)
            lacking.handle("summary", without_key)
            await lacking.start()
            await lacking.ask(Job(kind="summary", key="a"))
            await until(lambda: tried)
            while [job.state for job in await lacking.kept()] != ["waiting"]:
                await asyncio.sleep(0.01)
            assert lacking.counts().failed == 0
            await lacking.close()

    asyncio.run(run())


def test_failed_jobs_are_kept_for_the_operator_and_tried_again_when_told() -> None:
    async def run() -> None:
        async with database() as url:
            well = False

            async def handler(job: Job) -> End:
                if not well:
                    raise EverlongError("away")
                return End.DONE

            jobs = PostgresJobs(url, lease=SHORT, attempts=1)
            jobs.handle("summary", handler)
            await jobs.start()
            await jobs.ask(Job(kind="summary", key="a", need=40))
            await jobs.drain()
            (failed,) = await jobs.kept("failed")
            assert (failed.kind, failed.key, failed.need) == ("summary", "a", 40)
            well = True
            assert await jobs.retry(failed.number)
            assert not await jobs.retry(failed.number + 1)
            await jobs.drain()
            assert (await jobs.kept(), jobs.counts().done, jobs.counts().failed) == ([], 1, 1)
            await jobs.close()

    asyncio.run(run())


def test_what_failed_long_ago_goes_with_what_it_carried() -> None:
    async def run() -> None:
        async with database() as url:

            async def handler(job: Job) -> End:
                raise EverlongError("away")

            jobs = PostgresJobs(url, lease=SHORT, attempts=1)
            jobs.handle("summary", handler)
            await jobs.start()
            await jobs.ask(Job(kind="summary", key="a", load=b"private"))
            await jobs.drain()
            await jobs.forget(hours=1)
            assert len(await jobs.kept("failed")) == 1
            with psycopg.connect(url) as link:
                link.execute("UPDATE everlong.procrastinate_events SET at = now() - interval '2 hours'")
            await jobs.forget(hours=1)
            assert await jobs.kept() == []
            with psycopg.connect(url) as link:
                assert link.execute("SELECT count(*) FROM everlong.job_loads").fetchone() == (0,)
            await jobs.close()

    asyncio.run(run())


def test_periodic_work_is_done_once_by_all_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CRON, Period.HOUR, "* * * * * */1")

    async def run() -> None:
        async with database() as url:
            done: list[int] = []
            both = [PostgresJobs(url, lease=SHORT) for _ in range(2)]

            async def sweep(number: int) -> None:
                done.append(number)

            for number, jobs in enumerate(both):
                jobs.every(Period.HOUR, "sweep", partial(sweep, number))
                await jobs.start()
            await until(lambda: len(done) >= 3)
            with psycopg.connect(url) as link:
                moments = link.execute(
                    "SELECT count(*), count(DISTINCT defer_timestamp) FROM everlong.procrastinate_periodic_defers"
                    " WHERE task_name = 'sweep'"
                ).fetchone()
            assert moments is not None
            assert moments[0] == moments[1]
            await asyncio.gather(*(jobs.close() for jobs in both))

    asyncio.run(run())


def test_nothing_is_made_outside_the_schema_and_opening_again_changes_nothing() -> None:
    names = (
        "SELECT nspname, count(*) FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace"
        " WHERE nspname NOT LIKE 'pg\\_%' AND nspname <> 'information_schema' GROUP BY nspname"
    )

    async def run() -> None:
        with private_server() as server:
            url = server.new_database()
            counts = []
            for _ in range(2):
                jobs = PostgresJobs(url, works=False)
                await jobs.start()
                await jobs.close()
                with psycopg.connect(url) as link:
                    counts.append(link.execute(names).fetchall())
            assert counts[0] == counts[1]
            assert [schema for schema, _ in counts[0]] == ["everlong"]

    asyncio.run(run())


def test_a_database_that_does_not_answer_is_one_line() -> None:
    async def run() -> None:
        with pytest.raises(StoreError, match="the job database does not answer"):
            await PostgresJobs("postgresql://nobody@127.0.0.1:1/none").start(patience=0)

    asyncio.run(run())

"""Whatever is asked for, cancelled or dies in between: every job ends, and its effect is there once."""

import asyncio
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

import psycopg
from hypothesis import given, settings, strategies as st

from everlong.jobs.contract import End, Job, Jobs
from everlong.jobs.local import LocalJobs
from everlong.jobs.postgres import Lease, PostgresJobs
from tests.store.postgres_server import database_url, drop_database

SOAK = bool(os.environ.get("EVERLONG_SOAK"))
LEASE = Lease(heartbeat=0.3, silence=2.0, look=1, polling=0.1)
KEYS = ("a", "b", "c")
ASKED = st.sampled_from([("ask", key) for key in KEYS])
CANCELLED = st.sampled_from([("cancel", key) for key in KEYS])
ENDED = st.just(("die", ""))
PASSED = st.just(("pass", ""))

#: Kept, so that nothing of them is tidied up: a process that is killed tidies up nothing.
DEAD: list["Worker"] = []


class Threads:
    """What jobs are about: a version that is wanted of each key, and those that were appended, by comparison."""

    def __init__(self) -> None:
        self.wanted: dict[str, int] = {}
        self.written: dict[str, list[int]] = {key: [] for key in KEYS}
        self.lock = threading.Lock()

    def want(self, key: str) -> None:
        with self.lock:
            self.wanted[key] = self.wanted.get(key, 0) + 1

    async def handle(self, job: Job) -> End:
        with self.lock:
            wanted, seen = self.wanted.get(job.key, 0), list(self.written[job.key])
        if seen and seen[-1] >= wanted:
            return End.SUPERSEDED
        for _ in range(3):  # others come in between
            await asyncio.sleep(0.01)
        with self.lock:
            if self.written[job.key] != seen:
                return End.SUPERSEDED
            self.written[job.key].append(wanted)
        return End.DONE

    def check(self, cancelled: set[str]) -> None:
        for key, versions in self.written.items():
            assert versions == sorted(set(versions)), "the effect of a job is there once"
            if key not in cancelled:
                assert (versions or [0])[-1] == self.wanted.get(key, 0), "every job was done or superseded"


@settings(max_examples=200 if SOAK else 25)
@given(st.lists(st.one_of(ASKED, CANCELLED, PASSED), max_size=12), st.integers(1, 3))
def test_in_one_process_every_job_ends_and_its_effect_is_there_once(steps: list[tuple[str, str]], at_once: int) -> None:
    async def run() -> None:
        threads, jobs, cancelled = Threads(), LocalJobs(at_once), set[str]()
        jobs.handle("work", threads.handle)
        for step, key in steps:
            await _take(jobs, threads, step, key, cancelled)
        await jobs.drain()
        threads.check(cancelled)
        counts = jobs.counts()
        assert (counts.waiting, counts.running, counts.failed) == (0, 0, 0)
        assert counts.done + counts.superseded == sum(step == "ask" for step, _ in steps)

    asyncio.run(run())


@settings(max_examples=60 if SOAK else 3)
@given(st.lists(st.one_of(ASKED, ASKED, CANCELLED, ENDED, PASSED), min_size=4, max_size=12))
def test_over_a_database_every_job_ends_and_its_effect_is_there_once(steps: list[tuple[str, str]]) -> None:
    url = database_url()
    threads, cancelled = Threads(), set[str]()
    workers = [Worker(url, threads), Worker(url, threads)]
    try:
        for step, key in steps:
            if step == "die":
                workers.pop(0).die()
                workers.append(Worker(url, threads))
            else:
                workers[-1].do(_take(workers[-1].jobs, threads, step, key, cancelled))
        workers[-1].do(workers[-1].jobs.drain())
        threads.check(cancelled)
        assert workers[-1].do(workers[-1].jobs.kept()) == []
    finally:
        for worker in workers:
            worker.do(worker.jobs.close())
            worker.die()
        drop_database(url)


async def _take(jobs: Jobs, threads: Threads, step: str, key: str, cancelled: set[str]) -> None:
    if step == "ask":
        threads.want(key)
        cancelled.discard(key)
        await jobs.ask(Job(kind="work", key=key))
    elif step == "cancel":
        cancelled.add(key)
        await jobs.cancel(key)
    else:
        await asyncio.sleep(0.02)


class Worker:
    """A process, as far as the database can tell: an event loop of its own that can stop for ever, in the middle."""

    def __init__(self, url: str, threads: Threads) -> None:
        self._name, self._url = f"worker {id(self)}", url
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(lambda *_: None)  # nobody hears what the dead left undone
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.jobs = PostgresJobs(f"{url}&application_name={self._name.replace(' ', '%20')}", lease=LEASE)
        self.jobs.handle("work", threads.handle)
        self.do(self.jobs.start())

    def do(self, work: Coroutine[Any, Any, Any]) -> Any:
        asked: Future[Any] = asyncio.run_coroutine_threadsafe(work, self._loop)
        return asked.result()

    def die(self) -> None:
        """Stop between two steps, and let the server see the connections go."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        DEAD.append(self)
        with psycopg.connect(self._url, autocommit=True) as link, suppress(psycopg.Error):
            link.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s", (self._name,)
            )

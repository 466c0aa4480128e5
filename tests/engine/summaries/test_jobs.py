"""Summaries and titles of threads in a store, asked for by one process and written by another."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

from everlong.engine.contracts import Model, Prepared
from everlong.engine.engine import Engine
from everlong.engine.summaries.carriage import Asked, Background, Carried, Taken, asked_in, packed
from everlong.engine.summaries.schedule import Summaries
from everlong.engine.summaries.titles import Titles
from everlong.jobs import Job, PostgresJobs
from everlong.llm import ScriptedModel, Window, reads_files
from everlong.store import PostgresThreads
from tests.engine.authors import accounts, author, both
from tests.engine.talking import Talk
from tests.jobs.runners import SHORT, database


class ByName:
    """Threads that every process finds in the store, all with one model."""

    def __init__(self, talk: Talk, model: Model) -> None:
        self._talk, self._model = talk, model

    def pack(self, prepared: Prepared, _: Model) -> Carried:
        return Carried(prepared.thread)

    @asynccontextmanager
    async def open(self, key: str, _: bytes) -> AsyncIterator[Taken | None]:
        self._talk.threads.thread(key)
        yield Taken(key, self._talk.call, self._model)


def test_one_process_asks_and_another_writes_titles_and_summaries_once() -> None:
    async def run() -> None:
        async with database() as url, AsyncExitStack() as stack:
            model = ScriptedModel(both(reads_files(1)), Window(16_000, told=True))
            threads = await asyncio.to_thread(partial(PostgresThreads, url))
            stack.callback(threads.close)
            talk = Talk(model, threads=threads)
            asker, worker = PostgresJobs(url, works=False, lease=SHORT), PostgresJobs(url, lease=SHORT)
            carrier = ByName(talk, model)
            elsewhere = Engine(threads, settings=talk.settings)
            Summaries(elsewhere, [author()], own_model=False, background=Background(worker, carrier))
            Titles(elsewhere, [author("Functions, one by one")], background=Background(worker, carrier))
            here = Summaries(talk.engine, [author()], own_model=False, background=Background(asker, carrier))
            titles = Titles(talk.engine, background=Background(asker, carrier))
            for jobs in (asker, worker):
                await jobs.start()
                stack.push_async_callback(jobs.close)
            for turn in range(24):
                await talk.say(f"Question {turn}: what does function_{turn} do?")
                await here.drain()
                await asker.drain()
            await titles.drain()
            assert threads.thread(talk.thread).title == "Functions, one by one"
            assert accounts(talk)
            assert not here.running(talk.thread)
            assert worker.counts().done >= 2
            assert (asker.counts().failed, worker.counts().failed) == (0, 0)
            talk.one_outcome_each()
            done = worker.counts().done
            asked = packed(Asked(rows=1, points=0), b"")
            await asker.ask(Job(kind="summary", key=talk.thread, load=asked))
            await asker.drain()
            assert worker.counts().done == done, "a summary that was overtaken changes nothing"
            threads.remove(talk.thread)
            await asker.ask(Job(kind="summary", key=talk.thread, load=asked))
            await asker.drain()
            assert (worker.counts().done, worker.counts().superseded) == (done, 2)

    asyncio.run(asyncio.wait_for(run(), 300))


def test_what_is_packed_is_read_again() -> None:
    asked = Asked(rows=7, points=2, idle=True)
    assert asked_in(packed(asked, b"\n\0 more\n")) == (asked, b"\n\0 more\n")

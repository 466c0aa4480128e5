"""Summaries that were asked for while nobody worked: drained in the order of need, a few at a time, beside requests.

A hundred in the usual run, ten thousand with EVERLONG_SOAK.
"""

import asyncio
import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from statistics import median
from time import monotonic

import psycopg

from everlong.llm import Answer, ReceivedRequest, ScriptedServer, Window
from tests.chaos.cluster import Cluster, Run, write_settings
from tests.chaos.log import Log
from tests.gateway.talking import PATHS, RawClient
from tests.store.postgres_server import database_url, drop_database

SOAK = bool(os.environ.get("EVERLONG_SOAK"))
QUEUED = 10_000 if SOAK else 100
TOLD = 8  # requests at once
WINDOW = 4_000
WORKERS = 2
AT_ONCE = 3  # of a worker
WRITING = 0.2  # seconds that a summary takes to write
PATIENCE = 3_600.0 if SOAK else 300.0  # seconds; only a failing test waits so long
TURNS = 6
SENTENCES = (174, 186)  # of a conversation that is near its threshold, and not above it
HEADER = "x-chaos-request"
NAMED = re.compile(r"Conversation (\d+)\.")
WORDS = "The tide table lists when boats may leave the inner harbour and who keeps the light. "
WAITING = (
    "SELECT count(*) FROM everlong.procrastinate_jobs WHERE task_name = 'conversation summary' AND status = ANY(%s)"
)


@dataclass
class Upstream:
    """Notes when a summary of which conversation was asked for."""

    asked: list[tuple[float, int]] = field(default_factory=list)

    def __call__(self, asked: ReceivedRequest) -> Answer:
        if HEADER in asked.headers:
            return Answer(text="Noted.")
        number = int(NAMED.findall(asked.body.decode())[-1])
        self.asked.append((monotonic(), number))
        told = f"Conversation {number}. A harbour master asks about tides; {len(asked.messages)} messages so far."
        return Answer(text=json.dumps({"context": told}), before=WRITING)

    def most_at_once(self) -> int:
        """The most summaries that began within the time that one takes to write."""
        times = [time for time, _ in self.asked]
        return max(
            sum(begin <= time < begin + WRITING for time in times[at : at + 100]) for at, begin in enumerate(times)
        )


def talk(number: int, sentences: int) -> list[dict[str, str]]:
    """A conversation of some turns, so many sentences in all."""
    messages = []
    for turn in range(TURNS):
        words = WORDS * (sentences // TURNS + (turn < sentences % TURNS))
        messages.append({"role": "user", "content": f"Conversation {number}. Question {turn}: {words}"})
        messages.append({"role": "assistant", "content": f"Answer {turn}."})
    return [*messages, {"role": "user", "content": f"Conversation {number}. And now?"}]


async def say(run: Run, number: int, messages: Sequence[dict[str, str]]) -> tuple[int, float]:
    """Send a conversation; the tokens of what was forwarded, and the seconds that it took."""
    body = json.dumps({"model": "gpt-4o", "max_tokens": 200, "messages": messages}).encode()
    begun = monotonic()
    async with RawClient(run.port) as client:
        client.ask(PATHS["openai-chat"], body, {HEADER: str(number), "x-api-key": "k"})
        status, headers, told = await client.answer()
    assert status == 200, told
    return int(headers["x-everlong-tokens-after"]), monotonic() - begun


async def queue(run: Run, chance: Random) -> dict[int, int]:
    """Bring many conversations near the threshold; the size of each."""
    sizes: dict[int, int] = {}
    left = list(range(QUEUED))

    async def client() -> None:
        while left:
            number = left.pop()
            sizes[number], _ = await say(run, number, talk(number, chance.randrange(*SENTENCES)))

    await asyncio.gather(*(client() for _ in range(TOLD)))
    return sizes


async def waiting(store: str, *states: str) -> int:
    """How many summaries wait or run."""

    def look() -> int:
        with psycopg.connect(store) as connection:
            row = connection.execute(WAITING, (list(states),)).fetchone()
        return 0 if row is None else int(row[0])

    return await asyncio.to_thread(look)


async def small_talk(run: Run, until: asyncio.Event, least: int) -> list[float]:
    """Ask small things, one after the other; the seconds of each."""
    times: list[float] = []
    while not until.is_set() or len(times) < least:
        number = QUEUED + len(times)
        times.append((await say(run, number, [{"role": "user", "content": f"Conversation {number}. Hello."}]))[1])
    return times


async def drained(folder: Path, url: str, store: str, upstream: Upstream) -> dict[int, int]:
    lines = ('summaries = "on"', 'jobs = "apart"', f"jobs_at_once = {AT_ONCE}")
    options = (*write_settings(folder, url, *lines), "--store", store)
    async with Cluster(folder, Log()) as cluster, asyncio.timeout(PATIENCE):
        await cluster.serve(1, *options, "--no-app", "--no-access-log")
        run = cluster.replicas[0].run
        sizes = await queue(run, Random(10))
        while await waiting(store, "todo") < QUEUED:
            await asyncio.sleep(0.05)
        assert not upstream.asked  # nobody works yet
        over = asyncio.Event()
        over.set()
        quiet = await small_talk(run, over, 50)
        over.clear()
        talking = asyncio.create_task(small_talk(run, over, 50))
        await cluster.work(WORKERS, *options, "--no-app", "--at-once", str(AT_ONCE))
        while await waiting(store, "todo", "doing"):
            await asyncio.sleep(0.05)
        over.set()
        busy = await talking
        cluster.expect_lives()
    begun = upstream.asked[-1][0] - upstream.asked[0][0]
    print(
        f"{len(upstream.asked)} summaries in {begun:.1f} s; a request {median(quiet) * 1e3:.1f} ms before, "
        f"{median(busy) * 1e3:.1f} ms meanwhile ({len(busy)} of them)"
    )
    return sizes


def test_queued_summaries_are_written_by_need_and_a_few_at_a_time(tmp_path: Path) -> None:
    upstream, store = Upstream(), database_url()
    server = ScriptedServer(upstream, window=Window(WINDOW, told=True), models=("gpt-4o",))
    server.model.remembers = 8
    try:
        with server:
            sizes = asyncio.run(drained(tmp_path, server.url, store, upstream))
    finally:
        drop_database(store)
    order = [number for _, number in upstream.asked]
    assert sorted(order) == sorted(sizes)  # each once
    assert upstream.most_at_once() <= WORKERS * AT_ONCE
    needs, least = [sizes[number] for number in order], WINDOW
    slack = WINDOW // 50  # needs are hundredths of the window
    for at in range(WORKERS * AT_ONCE, len(needs)):  # those that run at the same time may overtake each other
        least = min(least, needs[at - WORKERS * AT_ONCE])
        assert needs[at] <= least + slack, f"the summary number {at} was needed more than those before it"

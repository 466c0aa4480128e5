"""One run: clients that talk, and what is done to the processes meanwhile, in steps of their progress."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.chaos.aftermath import judge_aftermath
from tests.chaos.clients import FORMATS, Conversation, converse
from tests.chaos.cluster import Cluster, Member, write_settings
from tests.chaos.log import Log
from tests.chaos.postgres import Database, running_database
from tests.chaos.upstream import Upstream
from tests.chaos.verdict import Verdict

__all__ = ["Attack", "Plan", "System", "running_system"]

KEYS = 4
PATIENCE = 240.0  # seconds without an answer; only a failing test waits so long


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is done, and how often something happens."""

    seed: int
    conversations: int
    turns: int
    #: Answers between two events.
    every: int
    #: What happens, again and again in this mixture, each time in another order.
    mixture: tuple[str, ...]
    window: int = 4_000
    replicas: int = 3
    workers: int = 2
    #: Seconds for which the database or its network is away.
    shortest: float = 0.3
    longest: float = 1.5
    #: Conversations begin again until so many seconds are over; 0 for once each.
    seconds: float = 0.0


@dataclass(slots=True)
class System:
    """Everything that runs."""

    database: Database
    cluster: Cluster
    upstream: Upstream
    log: Log


@asynccontextmanager
async def running_system(plan: Plan, folder: Path) -> AsyncIterator[System]:
    """Run replicas and workers on a database of their own while the block lasts."""
    log, upstream = Log(), Upstream(plan.window)
    with upstream.serve() as server:
        async with running_database() as database, Cluster(folder, log) as cluster:
            shared = (*write_settings(folder, server.url, 'summaries = "on"'), "--store", database.url)
            await cluster.serve(plan.replicas, *shared, "--no-app", "--no-access-log")
            await cluster.work(plan.workers, *shared, "--no-app")
            yield System(database, cluster, upstream, log)


class Attack:
    """Holds the conversations of a plan and does its events; `verdict` judges."""

    def __init__(self, plan: Plan, system: System) -> None:
        self.plan = plan
        self.verdict = Verdict(system.upstream, system.log, plan.seed)
        self._system = system
        self._chance = Random(plan.seed)
        self._conversations: list[Conversation] = []
        self._ends = asyncio.get_running_loop().time() + plan.seconds

    async def run(self) -> Verdict:
        """Run it, and return the verdict when all conversations are over and everything is up again."""
        talks = [asyncio.create_task(self._talk()) for _ in range(self.plan.conversations)]
        everything = asyncio.gather(*talks)
        harm = asyncio.create_task(self._harm(everything))
        try:
            await everything
        finally:
            for talk in talks:
                talk.cancel()
            harm.cancel()
            await asyncio.gather(harm, *talks, return_exceptions=True)
            self._system.database.proxy.mend()
            self._system.database.resume()
        if not harm.cancelled() and harm.exception() is not None:
            raise AssertionError(self._system.log.tail()) from harm.exception()
        await self._system.cluster.all_up()
        self.verdict.finish(self._conversations)
        await judge_aftermath(self.verdict, self._system.cluster, self._system.database.direct)
        return self.verdict

    def _is_over(self) -> bool:
        return bool(self.plan.seconds) and asyncio.get_running_loop().time() >= self._ends

    async def _talk(self) -> None:
        """Hold one conversation, and another one after it while there is time."""
        while True:
            number = len(self._conversations)
            conversation = Conversation(
                number,
                FORMATS[number % len(FORMATS)],
                Random(self.plan.seed * 1_000_003 + number),
                self.plan.turns,
                f"key-{number % KEYS}",
            )
            self._conversations.append(conversation)
            await converse(conversation, self._system.cluster, self.verdict, more=lambda: not self._is_over())
            conversation.messages.clear()
            if not self.plan.seconds or self._is_over():
                return

    async def _harm(self, everything: "asyncio.Future[list[None]]") -> None:
        """Do the next event after every few answers."""
        due = self.plan.every
        while not everything.done():
            events = list(self.plan.mixture)
            self._chance.shuffle(events)
            for event in events:
                await self._answers(due)
                due = self.verdict.counts["answered"] + self.plan.every
                self._system.cluster.expect_lives()
                await self._do(event)

    async def _answers(self, count: int) -> None:
        async with self.verdict.progress, asyncio.timeout(PATIENCE):
            await self.verdict.progress.wait_for(lambda: self.verdict.counts["answered"] >= count)

    async def _do(self, event: str) -> None:
        """Do what the event says; where something is away it comes back before the next one."""
        self.verdict.counts[event] += 1
        system, away = self._system, self._chance.uniform(self.plan.shortest, self.plan.longest)
        proxy, database = system.database.proxy, system.database
        match event:
            case "replica killed":
                self._choose(system.cluster.replicas, system.cluster.kill, left=1)
            case "replica replaced":
                self._choose(system.cluster.replicas, system.cluster.replace, left=1)
            case "worker killed":
                self._choose(system.cluster.workers, system.cluster.kill, left=0)
            case "database crashed":
                system.log.note(event)
                await database.crash()
            case "database paused":
                await self._for_a_while(event, away, database.pause, database.resume)
            case "network cut":
                await self._for_a_while(event, away, proxy.cut, proxy.mend)
            case "network stalled":
                await self._for_a_while(event, away, proxy.stall, proxy.mend)
            case _:
                raise ValueError(event)

    def _choose(self, members: list[Member], end: Callable[[Member], None], *, left: int) -> None:
        """End one of those that are up, if some are left: with none of them clients would only wait."""
        up = [member for member in members if member.up.is_set()]
        if len(up) > left:
            end(self._chance.choice(up))

    async def _for_a_while(
        self, event: str, seconds: float, begin: Callable[[], None], end: Callable[[], None]
    ) -> None:
        self._system.log.note(f"{event} for {seconds:.1f} s")
        begin()
        try:
            await asyncio.sleep(seconds)
        finally:
            end()
        self._system.log.note(f"{event}: over")

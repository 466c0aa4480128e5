"""Replicas of `everlong serve` and workers as processes that are killed at any moment and started again."""

import asyncio
import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Self

from tests.chaos.log import Log

__all__ = ["Cluster", "Member", "Run", "write_settings"]

PATIENCE = 120.0  # seconds; only a failing test waits so long
GLANCE = 0.02  # seconds between two looks at a file
UPSTREAM_KEY = "CHAOS_KEY"  # the variable with the key that all of them have for the provider
ADDRESS = re.compile(r"http://127\.0\.0\.1:(\d+)/v1")


def write_settings(folder: Path, upstream: str, *lines: str) -> tuple[str, ...]:
    """Write the file of a cluster whose operator has a key for the provider; the option that names it.

    With a key of the operator's any process may write a summary; a client's own key stays where it came.
    """
    file = folder / "everlong.toml"
    site = ["[[upstreams]]", 'name = "harbour"', f'url = "{upstream}"', 'models = ["*"]', f'key_env = "{UPSTREAM_KEY}"']
    file.write_text("\n".join([*lines, f"connect_timeout = {PATIENCE}", "", *site, ""]), encoding="utf-8")
    return "--config", str(file)


@dataclass(slots=True, eq=False)
class Run:
    """One life of a process. `ending` says what we did to it: "" while it should live, else `killed` or `replaced`."""

    name: str
    process: "subprocess.Popen[bytes]"
    output: Path
    port: int = 0
    ending: str = ""
    #: When we did it, by the clock of the loop.
    ended: float = 0.0

    @property
    def alive(self) -> bool:
        """Whether it runs, and nobody has told it to end."""
        return not self.ending and self.process.poll() is None

    def said(self) -> str:
        """Return all that it has printed."""
        return self.output.read_text(encoding="utf-8", errors="replace")


@dataclass(slots=True, eq=False)
class Member:
    """A place in the cluster: the process that is there now, and all that were."""

    name: str
    arguments: tuple[str, ...]
    listens: bool
    runs: list[Run] = field(default_factory=list)
    #: Set while its process can be used.
    up: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def run(self) -> Run:
        """The newest process."""
        return self.runs[-1]


class Cluster:
    """Members by name. Whoever is ended by `kill` or `replace` is started again at once, under the same name."""

    def __init__(self, folder: Path, log: Log) -> None:
        self._folder = folder
        self._log = log
        self.replicas: list[Member] = []
        self.workers: list[Member] = []
        self._starting: set[asyncio.Task[None]] = set()
        self._problems: list[BaseException] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._starting:
            task.cancel()
        await asyncio.gather(*self._starting, return_exceptions=True)
        for member in self.members:
            for run in member.runs:
                with suppress(ProcessLookupError):
                    run.process.kill()
                run.process.wait()

    @property
    def members(self) -> list[Member]:
        """All of them."""
        return [*self.replicas, *self.workers]

    async def serve(self, count: int, *options: str) -> None:
        """Start so many replicas and wait until they answer."""
        for number in range(count):
            self.replicas.append(Member(f"replica {number}", ("serve", "--port", "0", *options), listens=True))
        await asyncio.gather(*(self._start(member) for member in self.replicas))

    async def work(self, count: int, *options: str) -> None:
        """Start so many workers."""
        for number in range(count):
            self.workers.append(Member(f"worker {number}", ("worker", *options), listens=False))
        await asyncio.gather(*(self._start(member) for member in self.workers))

    async def pick(self, chance: Random) -> Run:
        """Return a replica that lives, any of them; wait for one if none does."""
        while True:
            alive = [member.run for member in self.replicas if member.up.is_set() and member.run.alive]
            if alive:
                return chance.choice(alive)
            waits = [asyncio.create_task(member.up.wait()) for member in self.replicas]
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED, timeout=PATIENCE)
            for wait in waits:
                wait.cancel()
            self.expect_lives()
            await asyncio.sleep(GLANCE)

    def kill(self, member: Member) -> None:
        """End its process by -9, whatever it is doing, and start it again."""
        self._end(member, "killed", signal.SIGKILL)

    def replace(self, member: Member) -> None:
        """Tell its process to end, as a rolling update does, and start another one beside it."""
        self._end(member, "replaced", signal.SIGTERM)

    def expect_lives(self) -> None:
        """Raise if a process ended that nobody had ended, or did not start."""
        if self._problems:
            raise self._problems[0]
        for member in self.members:
            run = member.run if member.runs else None
            if run and not run.ending and run.process.poll() is not None:
                raise AssertionError(f"{run.name} ended by itself with {run.process.returncode}:\n{run.said()[-3000:]}")

    async def all_up(self) -> None:
        """Wait until every member can be used."""
        await asyncio.wait_for(asyncio.gather(*(member.up.wait() for member in self.members)), PATIENCE)

    def _end(self, member: Member, how: str, number: signal.Signals) -> None:
        run = member.run
        self._log.note(f"{run.name} (process {run.process.pid}): {how}")
        run.ending, run.ended = how, asyncio.get_running_loop().time()
        member.up.clear()
        run.process.send_signal(number)
        task = asyncio.create_task(self._start(member))
        self._starting.add(task)
        task.add_done_callback(self._started)

    def _started(self, task: asyncio.Task[None]) -> None:
        self._starting.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._problems.append(error)

    async def _start(self, member: Member) -> None:
        number = len(member.runs)
        output = self._folder / f"{member.name.replace(' ', '')}-{number}.txt"
        kept = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
        own = {
            "HOME": str(self._folder),
            "EVERLONG_OFFLINE": "1",
            "XDG_CACHE_HOME": str(self._folder),
            UPSTREAM_KEY: "k",
        }
        with output.open("wb") as file:
            process = subprocess.Popen(
                [sys.executable, "-m", "everlong", *member.arguments],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                cwd=self._folder,
                env=kept | own,
            )
        run = Run(f"{member.name}.{number}", process, output)
        member.runs.append(run)
        if member.listens:
            await self._listening(run)
        if run.alive:
            member.up.set()
            self._log.note(f"{run.name} is up (process {process.pid})")

    async def _listening(self, run: Run) -> None:
        """Wait until it says where it listens, or until it is ended by us."""
        deadline = asyncio.get_running_loop().time() + PATIENCE
        while not run.ending:
            if found := ADDRESS.search(run.said()):
                run.port = int(found[1])
                return
            if run.process.poll() is not None:
                raise AssertionError(f"{run.name} did not start, {run.process.returncode}:\n{run.said()[-3000:]}")
            if asyncio.get_running_loop().time() > deadline:
                raise AssertionError(f"{run.name} did not start in {PATIENCE:g} s:\n{run.said()[-3000:]}")
            await asyncio.sleep(GLANCE)

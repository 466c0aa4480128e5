"""The contract of background jobs: what a job is, how it ends, and what a runner guarantees.

A job names its kind and its key, not how to do the work: the handler reads the current state when it starts, and
returns at once if nothing is due. A job may run twice, after a crash or a long pause of its process, so its handler
must compare before it appends: then the second run changes nothing.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol, TypeAlias, TypeVar

from everlong.errors import EverlongError

__all__ = ["URGENT", "Counts", "End", "Handler", "Job", "Jobs", "NotHere", "Period", "Result", "attempted", "give"]

Result = TypeVar("Result")

#: The need of a job that a person waits for: it starts at once, however many jobs are running.
URGENT = 1_000


class End(StrEnum):
    """How a job that did not fail ended."""

    DONE = "done"
    #: Nothing was due any more: something newer replaced it, or what it is about is gone.
    SUPERSEDED = "superseded"


class Period(StrEnum):
    """How often periodic work runs."""

    HOUR = "hour"
    DAY = "day"


class NotHere(EverlongError):
    """This process lacks something that the job needs, such as a key. Another process may have it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One requested job. `key` is what it is about, and `load` the data that its handler cannot find elsewhere.

    Of the waiting jobs, those with the highest `need` start first, and the oldest of equals. `attempt` counts the
    processes that started it before and did not finish it.
    """

    kind: str
    key: str
    load: bytes = b""
    need: int = 0
    attempt: int = 0


#: Runs one job. Raises EverlongError if it failed; it is then called again after a pause.
Handler: TypeAlias = Callable[[Job], Awaitable[End]]


@dataclass(frozen=True, slots=True)
class Counts:
    """How many jobs are waiting and running now, and how many have ended since the process started, by outcome."""

    waiting: int = 0
    running: int = 0
    done: int = 0
    failed: int = 0
    superseded: int = 0
    taken_over: int = 0


class Jobs(Protocol):
    """A runner of jobs. Call its methods in the event loop it was started in."""

    #: Whether a requested job outlives this process.
    durable: bool

    def handle(self, kind: str, handler: Handler) -> None:
        """Run jobs of this kind with the handler from now on. Call it before `start` for a new kind."""

    def every(
        self, period: Period, kind: str, work: Callable[[], Awaitable[object]], *, everywhere: bool = False
    ) -> None:
        """Run this work once per period in one of the processes that share the runner. Call it before `start`.

        With `everywhere`, every process runs it.
        """

    def ask(self, job: Job) -> "asyncio.Future[None]":
        """Request a job. Returns at once; the future is done when the request is stored."""

    def here(
        self, kind: str, key: str, work: Callable[[], Awaitable[Result]], *, need: int = 0, replace: bool = True
    ) -> "asyncio.Future[Result | None]":
        """Run work that only this process can do, one at a time per key.

        With `replace` it replaces waiting work of the same kind and key, whose result is then None.
        """

    def running(self, key: str) -> bool:
        """Return whether a job with this key is running or waiting in this process."""

    async def cancel(self, key: str) -> int:
        """Cancel all jobs with this key, waiting or running, in any process. Returns how many there were."""

    def counts(self) -> Counts:
        """Return the most recent figures."""

    async def forget(self, hours: int) -> None:
        """Delete jobs that failed or were cancelled this many hours ago, or have waited that long with their data."""

    async def start(self) -> None:
        """Start to run jobs. Before that, requests are only stored."""

    async def drain(self) -> None:
        """Wait until no job is waiting or running."""

    async def close(self, grace: float = 0.0) -> None:
        """Stop. Running jobs have `grace` seconds to finish; then they are put back or cancelled."""


async def attempted(call: Callable[[], Awaitable[Result]], attempts: int, pause: float) -> Result:
    """Return the result of the call. After an EverlongError other than NotHere it is repeated, with longer pauses."""
    for left in range(attempts - 1, -1, -1):
        try:
            return await call()
        except NotHere:
            raise
        except EverlongError:
            if not left:
                raise
        await asyncio.sleep(pause * random.uniform(0.75, 1.25))
        pause *= 2
    raise AssertionError("attempts must be at least 1")


def give(future: "asyncio.Future[Any]", result: object) -> None:
    """Set the result of a future, unless it was cancelled."""
    if not future.done():
        future.set_result(result)

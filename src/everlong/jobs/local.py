"""Jobs in this process: for stores on one machine, and for work that cannot be given to another process.

Jobs wait in memory, the most urgent first, and end with the process. The next process that opens a thread finds
unfinished work.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush
from itertools import count
from typing import Any

from everlong.errors import EverlongError
from everlong.jobs.contract import URGENT, Counts, End, Handler, Job, NotHere, Period, Result, attempted, give

__all__ = ["LocalJobs"]

log = logging.getLogger("everlong.jobs")

AT_ONCE = 8
ATTEMPTS = 4
PAUSE = 1.0  # seconds before the second attempt
SECONDS = {Period.HOUR: 3_600.0, Period.DAY: 86_400.0}


@dataclass(order=True, slots=True)
class _Wish:
    """One job that waits or runs. The most urgent one comes first, then the oldest."""

    rank: int
    number: int
    kind: str = field(compare=False)
    key: str = field(compare=False)
    work: Callable[[], Awaitable[Any]] = field(compare=False)
    result: "asyncio.Future[Any]" = field(compare=False)


class LocalJobs:
    """Runs jobs in the event loop of this process, at most `at_once` at a time. `pause` is the pause before a retry."""

    durable = False

    def __init__(self, at_once: int = AT_ONCE, *, attempts: int = ATTEMPTS, pause: float = PAUSE) -> None:
        self._at_once = at_once
        self._attempts, self._pause = attempts, pause
        self._handlers: dict[str, Handler] = {}
        self._periodic: list[tuple[float, str, Callable[[], Awaitable[object]]]] = []
        self._loops: list[asyncio.Task[None]] = []
        self._numbers = count()
        self._ready: list[_Wish] = []  # a heap; cancelled jobs stay in it until it is their turn
        self._waiting: dict[str, list[_Wish]] = {}
        self._running: dict[str, asyncio.Task[None]] = {}
        self._closed = False
        self._ended = {"done": 0, "failed": 0, "superseded": 0}

    def handle(self, kind: str, handler: Handler) -> None:
        """Run jobs of this kind with the handler from now on."""
        self._handlers[kind] = handler

    def every(
        self, period: Period, kind: str, work: Callable[[], Awaitable[object]], *, everywhere: bool = False
    ) -> None:
        """Run this work at the start and once per period."""
        del everywhere  # there is no other process
        self._periodic.append((SECONDS[period], kind, work))

    def ask(self, job: Job) -> "asyncio.Future[None]":
        """Request a job. It runs in this process."""
        self.here(job.kind, job.key, partial(self._handled, job), need=job.need)
        kept: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        kept.set_result(None)
        return kept

    def here(
        self, kind: str, key: str, work: Callable[[], Awaitable[Result]], *, need: int = 0, replace: bool = True
    ) -> "asyncio.Future[Result | None]":
        """Run work as soon as a slot is free and nothing else with the key is running."""
        result: asyncio.Future[Result | None] = asyncio.get_running_loop().create_future()
        if self._closed:
            result.set_result(None)
            return result
        same = self._waiting.setdefault(key, [])
        if replace:
            for older in [wish for wish in same if wish.kind == kind]:
                same.remove(older)
                self._give_up(older)
        wish = _Wish(-need, next(self._numbers), kind, key, work, result)
        same.append(wish)
        heappush(self._ready, wish)
        self._begin_next()
        return result

    def running(self, key: str) -> bool:
        """Return whether a job with this key is running or waiting."""
        return key in self._running or key in self._waiting

    async def cancel(self, key: str) -> int:
        """Cancel the jobs with this key. They have ended when this returns."""
        left = self._waiting.pop(key, [])
        for wish in left:
            self._give_up(wish)
        task = self._running.get(key)
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
        return len(left) + (task is not None)

    def counts(self) -> Counts:
        """Return the current figures."""
        waiting = sum(len(wishes) for wishes in self._waiting.values())
        return Counts(waiting=waiting, running=len(self._running), **self._ended)

    async def forget(self, hours: int) -> None:
        """Do nothing: failed jobs are not stored."""

    async def start(self) -> None:
        """Start the periodic work. Everything else starts when it is requested."""
        self._loops = [asyncio.create_task(self._repeat(*each)) for each in self._periodic]

    async def drain(self) -> None:
        """Wait until no job is waiting or running."""
        while self._running:
            await asyncio.wait(list(self._running.values()))

    async def close(self, grace: float = 0.0) -> None:
        """Let running and waiting jobs finish for a while, then cancel them."""
        for loop in self._loops:
            loop.cancel()
        if grace > 0 and self._running:
            try:
                async with asyncio.timeout(grace):
                    await self.drain()
            except TimeoutError:
                pass
        self._closed = True
        for key in [*self._waiting, *self._running]:
            await self.cancel(key)
        await asyncio.gather(*self._loops, return_exceptions=True)

    def _begin_next(self) -> None:
        """Start the most urgent jobs whose key is free, as many as there are slots; an URGENT job needs no slot."""
        aside: list[_Wish] = []
        while self._ready:
            wish = self._ready[0]
            if len(self._running) >= self._at_once and -wish.rank < URGENT:
                break
            heappop(self._ready)
            if wish not in self._waiting.get(wish.key, ()):
                continue
            if wish.result.cancelled():
                self._take(wish)
                self._give_up(wish)
                continue
            if wish.key in self._running:
                aside.append(wish)
                continue
            self._take(wish)
            task = asyncio.create_task(self._do(wish), name=f"{wish.kind} of {wish.key}")
            self._running[wish.key] = task
            task.add_done_callback(partial(self._done, wish))
            wish.result.add_done_callback(partial(_follow, task))
        for wish in aside:
            heappush(self._ready, wish)

    def _take(self, wish: _Wish) -> None:
        same = self._waiting[wish.key]
        same.remove(wish)
        if not same:
            del self._waiting[wish.key]

    async def _do(self, wish: _Wish) -> None:
        result = await wish.work()
        give(wish.result, result)

    def _done(self, wish: _Wish, task: "asyncio.Task[None]") -> None:
        del self._running[wish.key]
        if task.cancelled():
            self._give_up(wish)
        elif (error := task.exception()) is not None:
            self._ended["failed"] += 1
            if not wish.result.done():
                wish.result.set_exception(error)
                wish.result.exception()  # the caller may never read it
            if not isinstance(error, EverlongError):
                asyncio.get_running_loop().call_exception_handler(
                    {"message": f"{wish.kind} failed", "exception": error}
                )
        else:
            superseded = wish.result.done() and not wish.result.cancelled() and wish.result.result() is End.SUPERSEDED
            self._ended["superseded" if superseded else "done"] += 1
        self._begin_next()

    def _give_up(self, wish: _Wish) -> None:
        self._ended["superseded"] += 1
        give(wish.result, None)

    async def _handled(self, job: Job) -> End:
        handler = self._handlers.get(job.kind)
        try:
            if handler is None:
                raise NotHere(f"this process has no handler for {job.kind}")
            return await attempted(partial(handler, job), self._attempts, self._pause)
        except EverlongError as error:
            log.warning("%s of %s failed: %s", job.kind, job.key, error)
            raise

    async def _repeat(self, seconds: float, kind: str, work: Callable[[], Awaitable[object]]) -> None:
        while True:
            try:
                await self.here(kind, kind, work)
            except EverlongError as error:
                log.warning("%s failed: %s", kind, error)
            await asyncio.sleep(seconds)


def _follow(task: "asyncio.Task[None]", result: "asyncio.Future[Any]") -> None:
    """Cancel work when the caller that waits for its result is cancelled."""
    if result.cancelled():
        task.cancel()

"""A process that answers no requests and runs the background jobs of gateways on the same database."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from everlong.errors import InputError
from everlong.gateway.config import GatewayConfig, load_config
from everlong.gateway.http.app import Beside, use_one_heap
from everlong.gateway.http.server import services_of
from everlong.gateway.operations.reports import set_up_logging
from everlong.gateway.operations.services import Services
from everlong.jobs import Kept, PostgresJobs
from everlong.store import database_url, default_store

__all__ = ["JobDesk", "work"]


def work(
    file: str | None,
    options: Mapping[str, Any],
    *,
    began: Callable[[GatewayConfig], None],
    beside: Callable[[GatewayConfig], Beside] | None = None,
    until_done: bool = False,
) -> None:
    """Run background jobs until a signal ends it; with `until_done`, until no job is left.

    `beside` gives other work for this process. Raises InputError if processes cannot share the store.
    """
    config = replace(_config(file, options), jobs="here", host="127.0.0.1")  # it serves nobody
    use_one_heap()
    set_up_logging(lines=False)
    asyncio.run(_work(config, began, beside(config) if beside is not None and config.app else None, until_done))


async def _work(
    config: GatewayConfig, began: Callable[[GatewayConfig], None], beside: Beside | None, until_done: bool
) -> None:
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    services = services_of(config)
    try:
        async with AsyncExitStack() as stack:
            if beside is not None:
                await stack.enter_async_context(beside(services))
            keeping = asyncio.create_task(services.keys.run())  # the cost of summaries counts for their keys
            stack.callback(keeping.cancel)
            await services.jobs.start()
            stack.push_async_callback(services.jobs.close, config.grace)
            began(config)
            await _until(ended, services, until_done)
    finally:
        await services.close()


async def _until(ended: asyncio.Event, services: Services, until_done: bool) -> None:
    """Wait for a signal; with `until_done`, until every job is done."""
    waiting: list[asyncio.Task[Any]] = [asyncio.create_task(ended.wait())]
    if until_done:
        waiting.append(asyncio.create_task(services.jobs.drain()))
    done, pending = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
    for task in done:
        task.result()


def _config(file: str | None, options: Mapping[str, Any]) -> GatewayConfig:
    given = {name: value for name, value in options.items() if value is not None}
    config = load_config(file, given, os.environ)
    if database_url(config.store or default_store(os.environ, sys.platform)) is None:
        raise InputError(
            "a worker needs the Postgres store of the gateways: use --store postgresql://…;"
            " with other stores the gateway runs the jobs itself"
        )
    return config


@dataclass(frozen=True, slots=True)
class JobDesk:
    """What an operator can do with jobs: list, retry, cancel. It runs no jobs."""

    file: str | None
    options: Mapping[str, Any]

    def listed(self, state: str = "") -> list[Kept]:
        """Return the jobs in the database, the next one first."""
        return asyncio.run(self._with(lambda jobs: jobs.kept(state)))

    def retry(self, number: int) -> bool:
        """Put a failed job back into the queue; return whether the job exists."""
        return bool(asyncio.run(self._with(lambda jobs: jobs.retry(number))))

    def cancel(self, number: int) -> bool:
        """Delete a job; if it is running, cancel all jobs of its conversation. Returns whether the job exists."""

        async def give_up(jobs: PostgresJobs) -> bool:
            found = next((job for job in await jobs.kept() if job.number == number), None)
            return found is not None and (await jobs.drop(number) or bool(await jobs.cancel(found.key)))

        return bool(asyncio.run(self._with(give_up)))

    async def _with(self, act: Callable[[PostgresJobs], Any]) -> Any:
        config = _config(self.file, self.options)
        jobs = PostgresJobs(str(database_url(config.store or default_store(os.environ, sys.platform))), works=False)
        async with _open(jobs):
            return await act(jobs)


@asynccontextmanager
async def _open(jobs: PostgresJobs) -> Any:
    await jobs.start()
    try:
        yield
    finally:
        await jobs.close()

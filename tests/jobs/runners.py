"""The runners of jobs for tests: this process, and a Postgres database with a short lease."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from everlong.jobs.contract import Jobs
from everlong.jobs.local import LocalJobs
from everlong.jobs.postgres import Lease, PostgresJobs
from tests.store.postgres_server import database_url, drop_database

__all__ = ["RUNNERS", "SHORT", "database", "runner", "until"]

RUNNERS = ("local", "postgres")
#: Seconds that a machine under load keeps, and a test can wait for.
SHORT = Lease(heartbeat=0.4, silence=3.0, look=1, polling=0.2)


async def until(holds: Callable[[], object]) -> None:
    """Wait until something holds. A test that waits in vain is ended by its time limit."""
    while not holds():
        await asyncio.sleep(0.01)


@asynccontextmanager
async def database() -> AsyncIterator[str]:
    """A database for jobs; its URL."""
    url = await asyncio.to_thread(database_url)
    try:
        yield url
    finally:
        await asyncio.to_thread(drop_database, url)


@asynccontextmanager
async def runner(kind: str, *, at_once: int = 4) -> AsyncIterator[Jobs]:
    """A runner that has not started yet, with pauses that tests can wait for; closed in the end."""
    if kind == "local":
        local = LocalJobs(at_once, pause=0.01)
        try:
            yield local
        finally:
            await local.close()
        return
    async with database() as url:
        jobs = PostgresJobs(url, at_once=at_once, lease=SHORT, pause=0.01)
        try:
            yield jobs
        finally:
            await jobs.close()

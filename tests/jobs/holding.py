"""A process that takes one job, says so, and holds it until it is killed.

python -m tests.jobs.holding URL
"""

import asyncio
import sys

from everlong.jobs.contract import End, Job
from everlong.jobs.postgres import PostgresJobs
from tests.jobs.runners import SHORT

__all__: list[str] = []


async def hold(url: str) -> None:
    """Take a job and never end it."""
    jobs = PostgresJobs(url, lease=SHORT)

    async def handler(job: Job) -> End:
        print(job.key, flush=True)
        await asyncio.Event().wait()
        return End.DONE

    jobs.handle("summary", handler)
    await jobs.start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(hold(sys.argv[1]))

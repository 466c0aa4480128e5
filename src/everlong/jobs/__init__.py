"""Background jobs: requested once, run by one process at a time, and taken over if that process dies.

A job has a kind and a key, such as a thread's name. At most one job per key runs at a time, and a newer job of the same
kind replaces one that is still waiting. Jobs run in this process alone, or in all processes that share one Postgres
database.
"""

from typing import TYPE_CHECKING

from everlong.doors import open_door

if TYPE_CHECKING:
    from everlong.jobs.contract import (
        URGENT as URGENT,
        Counts as Counts,
        End as End,
        Job as Job,
        Jobs as Jobs,
        NotHere as NotHere,
        Period as Period,
    )
    from everlong.jobs.local import LocalJobs as LocalJobs
    from everlong.jobs.postgres import Kept as Kept, Lease as Lease, PostgresJobs as PostgresJobs
    from everlong.jobs.tables import make_tables as make_tables
else:
    __all__, __getattr__, __dir__ = open_door(
        __name__,
        {
            "contract": "Counts End Job Jobs NotHere Period URGENT",
            "local": "LocalJobs",
            "postgres": "Kept Lease PostgresJobs",
            "tables": "make_tables",
        },
    )

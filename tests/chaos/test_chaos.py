"""Replicas and workers on one Postgres, killed and cut off, while clients talk through any of them.

A minute in the usual run, an hour with EVERLONG_SOAK, or CHAOS_SECONDS of it; EVERLONG_SEED tries another order of
everything.
"""

import asyncio
import os
from pathlib import Path

from tests.chaos.attack import Attack, Plan, running_system
from tests.chaos.verdict import Verdict

SOAK = bool(os.environ.get("EVERLONG_SOAK"))
SEED = int(os.environ.get("EVERLONG_SEED", "26"))
SECONDS = float(os.environ.get("CHAOS_SECONDS", "3600"))  # of the long form
MIXTURE = (
    *["replica killed"] * 4,
    "replica replaced",
    *["worker killed"] * 3,
    *("database crashed", "database paused", "network cut", "network stalled"),
)
PLAN = (
    Plan(SEED, conversations=60, turns=60, every=40, mixture=MIXTURE, longest=5.0, seconds=SECONDS)
    if SOAK
    else Plan(SEED, conversations=12, turns=16, every=16, mixture=MIXTURE)
)


def test_no_client_notices_kills_crashes_and_cuts(tmp_path: Path) -> None:
    async def attacked() -> Verdict:
        async with running_system(PLAN, tmp_path) as system:
            return await Attack(PLAN, system).run()

    verdict = asyncio.run(attacked())
    print(verdict.report())
    verdict.expect_nothing_wrong()

"""Properties are tried on the same examples every time; `make soak` tries others, many times over.

`make quick` leaves out the tests marked `heavy`: those that need a browser, Postgres or the local model, that kill or
start processes, or that run for seconds. The mark is set here, by what a test's module uses.

A heavy test that fails is run once more, because a busy machine can starve a browser or a server. The run prints at its
end how the first attempt failed. Read it: the test may have found a race. `make soak` gives no second attempt.
"""

import os
import re
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.sdk_clients import close_clients

# How long an example takes to make says how busy the machine is, and nothing of what is tested.
settings.register_profile(
    "steady", derandomize=True, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("soak", deadline=None, print_blob=True)
settings.load_profile("soak" if os.environ.get("EVERLONG_SOAK") else "steady")

#: What makes every test of a module heavy: a browser, a server, another process, documents that run.
HEAVY_MODULE = re.compile(
    r"tests\.web\.browser|tests\.store\.postgres|postgres_server|LocalServer|tests\.chaos|import pexpect|dying|SIGKILL"
    r"|tests\.gateway\.processes|subprocess|multiprocessing"
)
#: Modules that run for ten seconds and more: whole conversations through a gateway, matrices of hostile providers.
LONG_MODULE = re.compile(
    r"failures/test_(gateway_|summaries_engine|engine_hostile|store_processes|fitting|estimate|agent|engine_cuts|replay_cost)|gateway/test_sdk_"
    r"|conversations/test_conversations|exchange/test_forward|clients/test_clients|commands/test_demo"
    r"|requirements/test_(app|summaries_engine)|http/test_security|tokens/test_exact"
)
HEAVY_CASE = re.compile(r"postgres|soak", re.IGNORECASE)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HEAVY_CASE.search(item.name) or is_heavy(item.path):
            item.add_marker(pytest.mark.heavy)
            if not os.environ.get("EVERLONG_SOAK"):
                item.add_marker(pytest.mark.flaky(reruns=1))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for report in terminalreporter.getreports("rerun"):
        terminalreporter.section(f"first attempt of {report.nodeid}")
        terminalreporter.write_line(report.longreprtext)


@cache
def is_heavy(path: Path) -> bool:
    return bool(LONG_MODULE.search(path.as_posix()) or HEAVY_MODULE.search(path.read_text(encoding="utf-8")))


def pytest_runtest_teardown() -> None:
    close_clients()

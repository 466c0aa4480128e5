"""Doing jobs: in their order, told as they are done, and ended at once where nobody wants the rest."""

import os
import signal
import subprocess
import sys
from multiprocessing import active_children
from pathlib import Path

import pytest

from everlong.errors import InputError
from everlong.lab.pool import run

ROOT = Path(__file__).parents[2]
NEVER = 1_000_000  # a job that would take for ever


def worked(number: int) -> int:
    """The square; one job fails, one does not end."""
    if number < 0:
        raise InputError("below nothing")
    while number == NEVER:
        pass
    return number * number


@pytest.mark.parametrize("processes", [1, 2])
def test_what_is_found_comes_in_the_order_of_the_jobs(processes: int) -> None:
    told: list[int] = []
    assert run(worked, [3, 1, 2], processes, size=lambda job: job, report=told.append) == [9, 1, 4]
    assert sorted(told) == [1, 2, 3]


@pytest.mark.parametrize("processes", [1, 2])
def test_nothing_to_do_is_nothing_found(processes: int) -> None:
    assert run(worked, [], processes, size=lambda job: job, report=lambda _: None) == []


def test_a_job_that_fails_ends_the_others_and_leaves_nobody_at_work() -> None:
    with pytest.raises(InputError, match="below nothing"):
        run(worked, [-1, NEVER, NEVER], 2, size=lambda job: -job, report=lambda _: None)
    assert not active_children()


INTERRUPTED = """
import signal
from everlong.lab.pool import run
from tests.lab.test_pool import NEVER, worked

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in what a shell runs in the background
    print("begun", flush=True)
    run(worked, [1, NEVER, NEVER, NEVER], 2, size=lambda job: -job, report=lambda job: print("told", flush=True))
"""


def test_an_interruption_ends_all_of_it_and_only_it_is_told(tmp_path: Path) -> None:
    """The test would never end if one of the jobs were waited for."""
    script = tmp_path / "interrupted.py"
    script.write_text(INTERRUPTED, encoding="utf-8")
    ran = subprocess.Popen(
        [sys.executable, script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "src")))},
    )
    assert ran.stdout is not None
    for expected in ("begun\n", "told\n"):  # then one process is at work on what does not end, the other may just begin
        assert ran.stdout.readline() == expected
    os.killpg(ran.pid, signal.SIGINT)
    _, told = ran.communicate()
    assert told.count("Traceback") == told.count("KeyboardInterrupt") == 1  # of the one that was asked

"""Run jobs in this process or in several, and report progress. Knows nothing of what the jobs do."""

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

__all__ = ["run"]

Job = TypeVar("Job")
Result = TypeVar("Result")


def run(
    work: Callable[[Job], Result],
    jobs: Sequence[Job],
    processes: int,
    *,
    size: Callable[[Job], int],
    report: Callable[[Job], None],
) -> list[Result]:
    """Return the result of `work` for each job, in order. `report` is called as each job ends.

    With several processes, the largest jobs start first. A job that fails, or an interruption, ends all others at once.
    """
    if processes > 1 and len(jobs) > 1:
        return _run_in_pool(work, jobs, min(processes, len(jobs)), size, report)
    results = []
    for job in jobs:
        results.append(work(job))
        report(job)
    return results


def _run_in_pool(
    work: Callable[[Job], Result],
    jobs: Sequence[Job],
    processes: int,
    size: Callable[[Job], int],
    report: Callable[[Job], None],
) -> list[Result]:
    from concurrent.futures import ProcessPoolExecutor, as_completed  # noqa: PLC0415 - one process needs none of it
    from multiprocessing import active_children, get_context  # noqa: PLC0415

    results: dict[int, Result] = {}
    others = set(active_children())
    # Spawned, not forked, because a progress bar runs a thread here.
    pool = ProcessPoolExecutor(processes, mp_context=get_context("spawn"))
    try:
        largest_first = sorted(range(len(jobs)), key=lambda at: -size(jobs[at]))
        with _interrupts_blocked():
            waiting = {pool.submit(work, jobs[at]): at for at in largest_first}
        for done in as_completed(waiting):
            at = waiting[done]
            results[at] = done.result()
            report(jobs[at])
    finally:
        if len(results) < len(jobs):  # the rest is no longer needed
            for worker in set(active_children()) - others:
                worker.terminate()
        pool.shutdown(cancel_futures=True)
    return [results[at] for at in range(len(jobs))]


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Block interrupts: processes that start meanwhile never get one from the terminal; their parent ends them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

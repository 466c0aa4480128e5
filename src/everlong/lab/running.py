"""Doing jobs: in this process or in several, telling how far it is. What is measured is not known here."""

from collections.abc import Callable, Sequence
from typing import TypeVar

__all__ = ["run"]

Job = TypeVar("Job")
Found = TypeVar("Found")


def run(
    work: Callable[[Job], Found],
    jobs: Sequence[Job],
    processes: int,
    *,
    size: Callable[[Job], int],
    tell: Callable[[Job], None],
) -> list[Found]:
    """What `work` finds in each job, in their order. `tell` is called as each is done; the largest are begun first.

    A job that fails ends all of them, as an interruption does: at once, also where others are at work.
    """
    if processes > 1 and len(jobs) > 1:
        return _shared_out(work, jobs, min(processes, len(jobs)), size, tell)
    found = []
    for job in jobs:
        found.append(work(job))
        tell(job)
    return found


def _shared_out(
    work: Callable[[Job], Found],
    jobs: Sequence[Job],
    processes: int,
    size: Callable[[Job], int],
    tell: Callable[[Job], None],
) -> list[Found]:
    from concurrent.futures import ProcessPoolExecutor, as_completed  # noqa: PLC0415 - one process needs none of it
    from multiprocessing import active_children, get_context  # noqa: PLC0415

    found: dict[int, Found] = {}
    others = set(active_children())
    # Started anew, not forked: a progress bar runs a thread of its own here.
    pool = ProcessPoolExecutor(processes, mp_context=get_context("spawn"), initializer=_end_silently)
    try:
        largest_first = sorted(range(len(jobs)), key=lambda at: -size(jobs[at]))
        waiting = {pool.submit(work, jobs[at]): at for at in largest_first}
        for done in as_completed(waiting):
            at = waiting[done]
            found[at] = done.result()
            tell(jobs[at])
    finally:
        if len(found) < len(jobs):  # nobody wants the rest
            for worker in set(active_children()) - others:
                worker.terminate()
        pool.shutdown(cancel_futures=True)
    return [found[at] for at in range(len(jobs))]


def _end_silently() -> None:
    """An interruption at the terminal reaches every process: one that only works dies of it and says nothing."""
    import signal  # noqa: PLC0415

    signal.signal(signal.SIGINT, signal.SIG_DFL)

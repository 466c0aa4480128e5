"""Doing jobs: in this process or in several, telling how far it is. What is measured is not known here."""

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
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
    pool = ProcessPoolExecutor(processes, mp_context=get_context("spawn"))
    try:
        largest_first = sorted(range(len(jobs)), key=lambda at: -size(jobs[at]))
        with _unheard():
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


@contextmanager
def _unheard() -> Iterator[None]:
    """Processes that begin meanwhile never hear of an interruption at the terminal: who began them ends them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

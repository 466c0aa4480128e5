"""Doing the jobs: in this process or in several, telling how far it is. What is measured is not known here."""

from collections.abc import Callable, Iterator, Sequence

from everlong.lab.measuring import Job, Outcome, measured

__all__ = ["run"]


def run(jobs: Sequence[Job], processes: int, tell: Callable[[int], None]) -> list[Outcome]:
    """The outcomes of all jobs, in their order. `tell` gets how many cases each finished job had."""
    outcomes: list[list[Outcome]] = [[] for _ in jobs]
    for at, found in _finished(jobs, processes):
        outcomes[at] = found
        tell(len(jobs[at].asked.cases))
    return [outcome for found in outcomes for outcome in found]


def _finished(jobs: Sequence[Job], processes: int) -> Iterator[tuple[int, list[Outcome]]]:
    if processes <= 1 or len(jobs) <= 1:
        yield from enumerate(map(measured, jobs))
        return
    from concurrent.futures import ProcessPoolExecutor, as_completed  # noqa: PLC0415 - one process needs none of it
    from multiprocessing import get_context  # noqa: PLC0415

    # Started anew, not forked: a progress bar runs a thread of its own here.
    with ProcessPoolExecutor(min(processes, len(jobs)), mp_context=get_context("spawn")) as pool:
        longest_first = sorted(range(len(jobs)), key=lambda at: -_size(jobs[at]))
        waiting = {pool.submit(measured, jobs[at]): at for at in longest_first}
        for done in as_completed(waiting):
            yield waiting[done], done.result()


def _size(job: Job) -> int:
    return len(job.asked.cases) * len(job.asked.conversation.messages)

"""One way to count, in a process of its own: at the first call, again with nothing remembered, and with one more."""

import importlib
import time

from everlong.lab.speed.counters.shapes import Counting
from everlong.lab.speed.workers.job import Job, cpu, serve, transcript

ENOUGH = 1.0  # CPU seconds spent on adding single messages: some count everything again for each


def work(job: Job) -> Job:
    """CPU seconds; `more` is for one message."""
    before = time.process_time()
    module = importlib.import_module(job["module"])
    imported = time.process_time() - before
    way: Counting = module.COUNTERS[job["counter"]]
    native = way.read(transcript(job["transcript"]))
    first, tokens = cpu(way.count, native)
    again = []
    for _ in range(job["repeats"]):
        way.forget()
        again.append(cpu(way.count, native)[0])
    return {"import": imported, "first": first, "again": again, "more": _more(way, native, job), "tokens": tokens}


def _more(way: Counting, native: object, job: Job) -> float:
    way.count(native)
    added = [way.read([message]) for message in transcript(job["more"])]
    count = way.grow(native)
    start = time.process_time()
    for done, message in enumerate(added, start=1):
        count(message)
        if time.process_time() - start > ENOUGH:
            return (time.process_time() - start) / done
    return (time.process_time() - start) / len(added)


if __name__ == "__main__":
    serve(work)

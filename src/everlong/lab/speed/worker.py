"""The program that measures one library in its own environment: how it counts, or how it fits.

It reads a job from a JSON file and writes the result to another. Standard library only, because it runs in every
environment; the module that the job names brings the library. The programs that measure only everlong share `serve`,
`transcript` and `cpu`.
"""

import gc
import importlib
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from everlong.lab.peers.shapes import Counting
from everlong.lab.peers.worker import attempt, way_of

__all__ = ["Job", "cpu", "serve", "transcript"]

Job = dict[str, Any]

ENOUGH = 1.0  # CPU seconds for adding single messages: some libraries count everything again for each


def serve(work: Callable[[Job], Job]) -> None:
    """Read the job from the file in the first argument, do it, and write the result to the second."""
    job_file, result_file = Path(sys.argv[1]), Path(sys.argv[2])
    result = work(json.loads(job_file.read_text(encoding="utf-8")))
    result_file.write_text(json.dumps(result), encoding="utf-8")


def transcript(file: str) -> list[dict[str, Any]]:
    """Return the messages of a stored transcript."""
    messages: list[dict[str, Any]] = json.loads(Path(file).read_text(encoding="utf-8"))
    return messages


def cpu(call: Callable[..., Any], *arguments: Any) -> tuple[float, Any]:
    """Return the CPU seconds of all threads during a call, and its result. Garbage is collected first."""
    gc.collect()
    start = time.process_time()
    result = call(*arguments)
    return time.process_time() - start, result


def _work(job: Job) -> Job:
    return _fit(job) if job["task"] == "fit" else _count(job)


def _count(job: Job) -> Job:
    """Time a counter, in CPU seconds: its import, the first call, again with an empty cache, one message more."""
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
    """Return the CPU seconds that one added message takes."""
    way.count(native)
    added = [way.read([message]) for message in transcript(job["more"])]
    count = way.grow(native)
    start = time.process_time()
    for done, message in enumerate(added, start=1):
        count(message)
        if time.process_time() - start > ENOUGH:
            return (time.process_time() - start) / done
    return (time.process_time() - start) / len(added)


def _fit(job: Job) -> Job:
    """Fit many transcripts for the results, then time a large one: by then everything is warmed up."""
    way = way_of(job["module"], job["strategy"])
    outputs = [attempt(way, transcript(file), budget) for file, budget in job["transcripts"]]
    file, budget = job["large"]
    return {"outputs": outputs, "seconds": cpu(way.fit, way.read(transcript(file)), budget)[0]}


if __name__ == "__main__":
    serve(_work)

"""One way to fit, on many transcripts for what it gives and on a large one for what it costs."""

import json
from pathlib import Path

from benchmarks.peers.shapes import Fitting, Message
from benchmarks.workers.job import Job, cpu, peer, serve


def work(job: Job) -> Job:
    """`transcripts`: files and budgets; `large`: the one that is timed, after the others have warmed everything up."""
    way: Fitting = peer(job["peer"]).STRATEGIES[job["strategy"]]
    outputs = [_output(way, file, budget) for file, budget in job["transcripts"]]
    file, budget = job["large"]
    return {"outputs": outputs, "seconds": cpu(way.fit, way.read(_messages(file)), budget)[0]}


def _output(way: Fitting, file: str, budget: int) -> Job:
    messages = _messages(file)
    try:
        return {"messages": way.write(way.fit(way.read(messages), budget), messages)}
    except Exception as error:  # noqa: BLE001 - a peer's failure is a finding about the peer
        return {"error": f"{type(error).__name__}: {error}"}


def _messages(file: str) -> list[Message]:
    messages: list[Message] = json.loads(Path(file).read_text(encoding="utf-8"))
    return messages


if __name__ == "__main__":
    serve(work)

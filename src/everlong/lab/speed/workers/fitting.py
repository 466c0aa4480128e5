"""One way to fit, on many transcripts for what it gives and on a large one for what it costs."""

from everlong.lab.peers.worker import attempt, way_of
from everlong.lab.speed.workers.job import Job, cpu, serve, transcript


def work(job: Job) -> Job:
    """`transcripts`: files and budgets; `large`: the one that is timed, after the others have warmed everything up."""
    way = way_of(job["module"], job["strategy"])
    outputs = [attempt(way, transcript(file), budget) for file, budget in job["transcripts"]]
    file, budget = job["large"]
    return {"outputs": outputs, "seconds": cpu(way.fit, way.read(transcript(file)), budget)[0]}


if __name__ == "__main__":
    serve(work)

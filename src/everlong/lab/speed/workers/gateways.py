"""The client of the gateways' benchmark, in a process of its own: one request at a time, or many clients at once."""

from everlong.lab.speed.gateways.latencies import latencies
from everlong.lab.speed.gateways.throughput import throughput
from everlong.lab.speed.workers.job import Job, serve


def work(job: Job) -> Job:
    """What each gateway took."""
    return throughput(job) if job["question"] == "throughput" else latencies(job)


if __name__ == "__main__":
    serve(work)

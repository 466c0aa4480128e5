"""The client of the gateways' benchmark, a separate program: latencies and throughput.

*Latencies*: one request at a time through each gateway in turn. A conversation grows by a step with each request, as
with real clients; or the same body is sent again and again; or the conversation is new to the gateway. *Throughput*:
many clients at once, each in its own growing conversation; at full speed, and with an upstream that takes a while for
each answer, as models do, which leaves the cores to the gateway.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from itertools import cycle
from threading import Thread
from time import perf_counter
from typing import Any

from everlong.lab.speed.gateways.processes import cpu_seconds, resident_megabytes
from everlong.lab.speed.gateways.requests import Connection, Conversation, Refusal, hello, pace
from everlong.lab.speed.worker import Job, serve

__all__ = ["KINDS", "crowd", "latencies", "throughput"]

WARM_UP = 10  # requests

KINDS = ("growing", "same", "new")

Target = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive requests on one connection.

    The first is not timed: it opens the connection, wakes the gateway, and shows it the growing conversation. Before a
    new conversation it is that of `woken_by`, which the gateway knows.
    """

    kind: str
    streamed: bool
    conversation: Conversation
    counts: tuple[int, ...]
    woken_by: Conversation | None = None

    def requests(self) -> Iterator[bytes]:
        """Yield the requests, each made when it is needed."""
        if self.woken_by:
            yield self.woken_by.request(self.woken_by.asks[-1], streamed=self.streamed)
        for count in self.counts:
            yield self.conversation.request(count, streamed=self.streamed)


@dataclass(slots=True)
class Timings:
    """The timings of one gateway for one kind of request, in seconds; for a stream, to its first chunk."""

    plain: list[float] = field(default_factory=list)
    streamed: list[float] = field(default_factory=list)
    streamed_whole: list[float] = field(default_factory=list)
    sent: int = 0  # bytes
    cpu: float = 0.0
    requests: int = 0
    refused: int = 0
    said: str = ""


def blocks(growing: list[Conversation], new: list[Conversation], steps: int) -> Iterator[Block]:
    """Yield the blocks, plain and streamed in turn, each with its own conversations."""
    for index, conversation in enumerate(growing):
        streamed = index % 2 == 1
        yield Block("growing", streamed, conversation, conversation.asks[-steps - 1 :])
        yield Block("same", streamed, conversation, (conversation.asks[-1],) * (steps + 1))
    for index, conversation in enumerate(new):
        yield Block("new", index % 2 == 1, conversation, conversation.asks[-1:], woken_by=growing[0])


def latencies(job: dict[str, Any]) -> dict[str, Any]:
    """Send every block through every gateway. The order rotates, so that none always follows the same neighbour."""
    targets: list[Target] = job["targets"]
    connections = {target["name"]: Connection(target["port"]) for target in targets}
    timings = {target["name"]: {kind: Timings() for kind in KINDS} for target in targets}
    for target in targets:
        _warm_up(connections[target["name"]], target["fmt"])
    formats = dict.fromkeys(target["fmt"] for target in targets)
    plans = zip(*(_blocks_in(fmt, job) for fmt in formats), strict=True)
    for turn, plan in enumerate(plans):
        in_format = dict(zip(formats, plan, strict=True))
        at = turn % len(targets)
        for target in (*targets[at:], *targets[:at]):
            block = in_format[target["fmt"]]
            _measure(block, target, connections[target["name"]], timings[target["name"]][block.kind])
    return {name: {kind: asdict(one) for kind, one in kinds.items()} for name, kinds in timings.items()}


def _blocks_in(fmt: str, job: dict[str, Any]) -> Iterator[Block]:
    growing = [Conversation.read(file, fmt) for file in job["growing"]]
    new = [Conversation.read(file, fmt) for file in job["new"]]
    return blocks(growing, new, job["steps"])


def _warm_up(connection: Connection, fmt: str) -> None:
    """Send requests that are not timed: a gateway loads things with its first ones. Refusals show later."""
    for turn in range(WARM_UP):
        with suppress(Refusal):
            connection.ask(hello(fmt, streamed=turn % 2 == 1))
    connection.close()


def _measure(block: Block, target: Target, connection: Connection, timings: Timings) -> None:
    requests = block.requests()
    try:
        connection.ask(next(requests))
        before = cpu_seconds(target["process"])
        for request in requests:
            answer = connection.ask(request)
            if answer.streamed is not block.streamed:
                raise Refusal("a stream was answered plainly, or a plain request with a stream")
            timings.requests += 1
            timings.sent += len(request)
            if block.streamed:
                timings.streamed.append(answer.first)
                timings.streamed_whole.append(answer.whole)
            else:
                timings.plain.append(answer.whole)
        after = cpu_seconds(target["process"])
        timings.cpu += (after or 0.0) - (before or 0.0)
    except Refusal as refusal:
        timings.refused += 1
        timings.said = timings.said or str(refusal)
    connection.close()


class Client(Thread):
    """Asks until the time is over. Its requests are made beforehand, so that they cost nothing during the run."""

    def __init__(self, requests: list[bytes], port: int, until: float, *, fresh: bool = False) -> None:
        super().__init__()
        self.requests = requests
        self.port = port
        self.until = until
        self.fresh = fresh
        self.answered = 0
        self.refused = 0
        self.said = ""

    def run(self) -> None:
        """Send the requests of the conversation to its end, and then again from the first."""
        connection = Connection(self.port)
        for request in cycle(self.requests):
            if perf_counter() >= self.until:
                break
            try:
                connection.ask(request)
                self.answered += 1
            except Refusal as refusal:
                self.refused += 1
                self.said = str(refusal)
            if self.fresh:
                connection.close()
        connection.close()


def throughput(job: dict[str, Any]) -> dict[str, Any]:
    """Measure the gateways in turn, for some rounds; return the sums for each pace of the upstream, in ms.

    With `fresh` in the job, every request uses a new connection, so that any process may get it.
    """
    prepared = {
        fmt: [_requests(Conversation.read(file, fmt), job["steps"]) for file in job["conversations"]]
        for fmt in {target["fmt"] for target in job["targets"]}
    }
    by_pace: dict[str, dict[str, dict[str, Any]]] = {}
    for target in job["targets"]:
        _make_known(prepared[target["fmt"]], target["port"])
    upstream = Connection(job["targets"][0]["port"])
    for milliseconds in job["paces"]:
        upstream.ask(pace(milliseconds))
        sums = by_pace.setdefault(str(milliseconds), {})
        for _ in range(job["rounds"]):
            for target in job["targets"]:
                figures = _round(prepared[target["fmt"]], target, job["seconds"], fresh=job.get("fresh", False))
                sums[target["name"]] = _added(sums.get(target["name"]), figures)
    upstream.ask(pace(0))
    upstream.close()
    return by_pace


def _make_known(prepared: list[list[bytes]], port: int) -> None:
    """Send the first request of each conversation. Refusals show later."""
    connection = Connection(port)
    for requests in prepared:
        with suppress(Refusal):
            connection.ask(requests[0])
    connection.close()


def _added(before: dict[str, Any] | None, figures: dict[str, Any]) -> dict[str, Any]:
    if before is None:
        return figures
    return {name: before[name] or value if name == "said" else before[name] + value for name, value in figures.items()}


def _requests(conversation: Conversation, steps: int) -> list[bytes]:
    return [conversation.request(count, streamed=False) for count in conversation.asks[-steps:]]


def _round(
    prepared: list[list[bytes]], target: dict[str, Any], seconds: float, *, fresh: bool = False
) -> dict[str, Any]:
    before = cpu_seconds(target["process"]) or 0.0
    start = perf_counter()
    clients = [Client(requests, target["port"], start + seconds, fresh=fresh) for requests in prepared]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    return {
        "seconds": perf_counter() - start,
        "cpu": (cpu_seconds(target["process"]) or 0.0) - before,
        "answered": sum(client.answered for client in clients),
        "refused": sum(client.refused for client in clients),
        "said": next((client.said for client in clients if client.said), ""),
    }


def crowd(job: dict[str, Any]) -> dict[str, Any]:
    """Show a gateway many conversations, each with its own opening; return its memory before and after, in MB.

    Some come first that are not measured, so that the cache of recently read messages is full.
    """
    target: Target = job["target"]
    conversation, connection = Conversation.read(job["conversation"], target["fmt"]), Connection(target["port"])
    marks: list[float] = []
    try:
        for number in range(2 * job["conversations"]):
            if number == job["conversations"]:
                marks += (resident_megabytes(target["process"]) or 0.0, cpu_seconds(target["process"]) or 0.0)
            opened = conversation.opened_with(f"Conversation {number} of its own.")
            connection.ask(opened.request(opened.asks[-1], streamed=False))
    finally:
        connection.close()
    after = resident_megabytes(target["process"]) or 0.0
    cpu = (cpu_seconds(target["process"]) or 0.0) - marks[1]
    return {"before": marks[0], "after": after, "cpu": cpu, "conversations": job["conversations"]}


#: What is asked -> the function that measures it.
QUESTIONS = {"latencies": latencies, "throughput": throughput, "crowd": crowd}


def _work(job: Job) -> Job:
    return QUESTIONS[job["question"]](job)


if __name__ == "__main__":
    serve(_work)

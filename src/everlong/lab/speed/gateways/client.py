"""The client of the gateways' benchmark, in a process of its own: one request at a time, or many clients at once."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from itertools import cycle
from threading import Thread
from time import perf_counter
from typing import Any

from everlong.lab.speed.gateways.processes import cpu_seconds
from everlong.lab.speed.gateways.requests import Connection, Conversation, Refusal, hello, pace
from everlong.lab.speed.worker import Job, serve

__all__ = ["KINDS", "latencies", "throughput"]

WARM_UP = 10  # requests

KINDS = ("growing", "same", "new")

Target = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Block:
    """Requests that follow each other on one connection.

    The first is not timed: it opens the connection, wakes the gateway, and makes a conversation that grows known to it.
    Before a new conversation it is the body `woken_by`, which the gateway knows.
    """

    kind: str
    streamed: bool
    conversation: Conversation
    counts: tuple[int, ...]
    woken_by: Conversation | None = None

    def requests(self) -> Iterator[bytes]:
        """One after the other, each made when it is wanted."""
        if self.woken_by:
            yield self.woken_by.request(self.woken_by.asks[-1], streamed=self.streamed)
        for count in self.counts:
            yield self.conversation.request(count, streamed=self.streamed)


@dataclass(slots=True)
class Timings:
    """What a gateway took for the requests of one kind. Seconds; of a stream to its first chunk."""

    plain: list[float] = field(default_factory=list)
    streamed: list[float] = field(default_factory=list)
    streamed_whole: list[float] = field(default_factory=list)
    sent: int = 0  # bytes
    cpu: float = 0.0
    requests: int = 0
    refused: int = 0
    said: str = ""


def blocks(growing: list[Conversation], new: list[Conversation], steps: int) -> Iterator[Block]:
    """Plain and streamed in turn, each with conversations of its own."""
    for index, conversation in enumerate(growing):
        streamed = index % 2 == 1
        yield Block("growing", streamed, conversation, conversation.asks[-steps - 1 :])
        yield Block("same", streamed, conversation, (conversation.asks[-1],) * (steps + 1))
    for index, conversation in enumerate(new):
        yield Block("new", index % 2 == 1, conversation, conversation.asks[-1:], woken_by=growing[0])


def latencies(job: dict[str, Any]) -> dict[str, Any]:
    """Every block through every gateway. The order turns, so that nobody always follows the same neighbour."""
    targets: list[Target] = job["targets"]
    connections = {target["name"]: Connection(target["port"]) for target in targets}
    taken = {target["name"]: {kind: Timings() for kind in KINDS} for target in targets}
    for target in targets:
        _warm_up(connections[target["name"]], target["fmt"])
    formats = dict.fromkeys(target["fmt"] for target in targets)
    plans = zip(*(_blocks_in(fmt, job) for fmt in formats), strict=True)
    for turn, plan in enumerate(plans):
        in_format = dict(zip(formats, plan, strict=True))
        at = turn % len(targets)
        for target in (*targets[at:], *targets[:at]):
            block = in_format[target["fmt"]]
            _measure(block, target, connections[target["name"]], taken[target["name"]][block.kind])
    return {name: {kind: asdict(one) for kind, one in kinds.items()} for name, kinds in taken.items()}


def _blocks_in(fmt: str, job: dict[str, Any]) -> Iterator[Block]:
    growing = [Conversation.read(file, fmt) for file in job["growing"]]
    new = [Conversation.read(file, fmt) for file in job["new"]]
    return blocks(growing, new, job["steps"])


def _warm_up(connection: Connection, fmt: str) -> None:
    """What a gateway loads at its first requests is not what a request costs; who refuses is heard of later."""
    for turn in range(WARM_UP):
        with suppress(Refusal):
            connection.ask(hello(fmt, streamed=turn % 2 == 1))
    connection.close()


def _measure(block: Block, target: Target, connection: Connection, taken: Timings) -> None:
    requests = block.requests()
    try:
        connection.ask(next(requests))
        before = cpu_seconds(target["process"])
        for request in requests:
            answer = connection.ask(request)
            if answer.streamed is not block.streamed:
                raise Refusal("a stream was answered plainly, or the other way round")
            taken.requests += 1
            taken.sent += len(request)
            if block.streamed:
                taken.streamed.append(answer.first)
                taken.streamed_whole.append(answer.whole)
            else:
                taken.plain.append(answer.whole)
        after = cpu_seconds(target["process"])
        taken.cpu += (after or 0.0) - (before or 0.0)
    except Refusal as refusal:
        taken.refused += 1
        taken.said = taken.said or str(refusal)
    connection.close()


class Client(Thread):
    """Asks until the time is over. What it asks is made beforehand, so that it costs nothing on the way."""

    def __init__(self, requests: list[bytes], port: int, until: float) -> None:
        super().__init__()
        self.requests = requests
        self.port = port
        self.until = until
        self.answered = 0
        self.refused = 0
        self.said = ""

    def run(self) -> None:
        """The conversation up to its end, and again from where it began."""
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
        connection.close()


def throughput(job: dict[str, Any]) -> dict[str, Any]:
    """The gateways in turn, some rounds; for each pace of the upstream, in ms, the sums over the rounds."""
    prepared = {
        fmt: [_requests(Conversation.read(file, fmt), job["steps"]) for file in job["conversations"]]
        for fmt in {target["fmt"] for target in job["targets"]}
    }
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for target in job["targets"]:
        _make_known(prepared[target["fmt"]], target["port"])
    upstream = Connection(job["targets"][0]["port"])
    for milliseconds in job["paces"]:
        upstream.ask(pace(milliseconds))
        sums = found.setdefault(str(milliseconds), {})
        for _ in range(job["rounds"]):
            for target in job["targets"]:
                one = _round(prepared[target["fmt"]], target, job["seconds"])
                sums[target["name"]] = _together(sums.get(target["name"]), one)
    upstream.ask(pace(0))
    upstream.close()
    return found


def _make_known(prepared: list[list[bytes]], port: int) -> None:
    """Where each conversation begins to grow; who refuses is heard of later."""
    connection = Connection(port)
    for requests in prepared:
        with suppress(Refusal):
            connection.ask(requests[0])
    connection.close()


def _together(before: dict[str, Any] | None, one: dict[str, Any]) -> dict[str, Any]:
    if before is None:
        return one
    return {name: (before[name] or value) if name == "said" else before[name] + value for name, value in one.items()}


def _requests(conversation: Conversation, steps: int) -> list[bytes]:
    return [conversation.request(count, streamed=False) for count in conversation.asks[-steps:]]


def _round(prepared: list[list[bytes]], target: dict[str, Any], seconds: float) -> dict[str, Any]:
    before = cpu_seconds(target["process"]) or 0.0
    start = perf_counter()
    clients = [Client(requests, target["port"], start + seconds) for requests in prepared]
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


def work(job: Job) -> Job:
    """What each gateway took."""
    return throughput(job) if job["question"] == "throughput" else latencies(job)


if __name__ == "__main__":
    serve(work)

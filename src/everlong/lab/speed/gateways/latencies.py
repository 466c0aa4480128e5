"""How long an answer takes through each gateway, one request at a time, the gateways in turn.

Three kinds: a conversation that grows by a step each request, as clients do; the same body again and again; and a
conversation that the gateway has never seen.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any

from everlong.lab.speed.gateways.bodies import Conversation, hello
from everlong.lab.speed.gateways.exchange import Connection, Refusal
from everlong.lab.speed.gateways.processes import cpu_seconds

__all__ = ["KINDS", "latencies"]

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
class Taken:
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
    taken = {target["name"]: {kind: Taken() for kind in KINDS} for target in targets}
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


def _measure(block: Block, target: Target, connection: Connection, taken: Taken) -> None:
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

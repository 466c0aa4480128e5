"""How many requests many clients get answered, each in a conversation of its own that grows from request to request.

Flat out, and with an upstream that takes a while for each answer, as models do: that leaves the cores to the gateway.
"""

from contextlib import suppress
from itertools import cycle
from threading import Thread
from time import perf_counter
from typing import Any

from everlong.lab.speed.gateways.bodies import Conversation, pace
from everlong.lab.speed.gateways.exchange import Connection, Refusal
from everlong.lab.speed.gateways.processes import cpu_seconds

__all__ = ["throughput"]


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

"""A peer's own process: requests come in as JSON lines, answers go out as JSON lines. Standard library only.

    {"keep": 40, "add": [message, …], "length": 42, "budget": 8000}
    {"messages": [0, 37, {"role": …}]}   or   {"error": "ValueError: …"}

The process keeps the messages that it received: a request says how many of them to keep, what to add, and how many from
the beginning to use. An answer gives a message that the peer left unchanged as its index. What a peer prints goes to
standard error. An unexpected failure ends the process; its last line says why.
"""

import importlib
import json
import os
import sys
from collections.abc import Iterable
from typing import IO, Any

from everlong.lab.peers.shapes import Fitting, Message

__all__ = ["attempt", "serve", "way_of"]

Answer = dict[str, Any]


def way_of(module: str, strategy: str) -> Fitting:
    """Return the way to fit with that name from an adapter's module."""
    offered: dict[str, Fitting] = importlib.import_module(module).STRATEGIES
    return offered[strategy]


def attempt(way: Fitting, messages: list[Message], budget: int) -> Answer:
    """Return the messages of the peer, or how it failed, which is a finding too."""
    try:
        return {"messages": way.write(way.fit(way.read(messages), budget), messages)}
    except way.failures as error:
        return {"error": f"{type(error).__name__}: {error}"}


def serve(way: Fitting, requests: Iterable[str], answers: IO[str]) -> None:
    """Answer each line with a line."""
    known: list[Message] = []
    places: dict[str, int] = {}
    for line in requests:
        request = json.loads(line)
        del known[request["keep"] :]
        known += request["add"]
        if request["add"]:
            places = {_key(message): place for place, message in reversed(list(enumerate(known)))}
        answer = attempt(way, known[: request["length"]], request["budget"])
        if "messages" in answer:
            answer["messages"] = [places.get(_key(message), message) for message in answer["messages"]]
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def _key(message: Message) -> str:
    return json.dumps(message, sort_keys=True)


def main() -> None:
    """Run `python -m everlong.lab.peers.worker MODULE STRATEGY`."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # output that a peer prints must not be mistaken for an answer
    serve(way_of(sys.argv[1], sys.argv[2]), sys.stdin, answers)


if __name__ == "__main__":
    main()

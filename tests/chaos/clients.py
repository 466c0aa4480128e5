"""Clients: growing conversations, each request on a new connection to any replica, retried when the connection dies.

A client resends everything, as clients do. It retries what a dead connection gives (refused, reset, incomplete) and
nothing else; every other surprise is told to whoever judges.
"""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any, Protocol

from tests.chaos.cluster import Cluster, Run
from tests.chaos.upstream import NAME, request_name
from tests.gateway.talking import PATHS, RawClient

__all__ = ["Conversation", "Exchange", "Judge", "converse", "tag"]

Value = dict[str, Any]
FORMATS = ("openai-chat", "anthropic")
TOOLS: dict[str, Value] = {
    "anthropic": {"name": "read_file", "input_schema": {"type": "object"}},
    "openai-chat": {"type": "function", "function": {"name": "read_file", "parameters": {"type": "object"}}},
}
SYSTEM = "You keep the harbour's books and answer in one sentence."
PATIENCE = 180.0  # seconds for one attempt; only a failing test waits so long
MOST_ATTEMPTS = 60
HALF_READ = (ConnectionError, asyncio.IncompleteReadError)


def tag(conversation: int, message: int) -> str:
    """Return the name by which a message is found wherever it stands."""
    return f"[{conversation}.{message}]"


@dataclass(slots=True)
class Conversation:
    """What a client holds: its messages in its format, and of those that it wrote itself the text."""

    number: int
    fmt: str
    chance: Random
    turns: int
    key: str
    messages: list[Value] = field(default_factory=list)
    #: Text of the messages that are of the client, by their place in `messages`.
    texts: dict[int, str] = field(default_factory=dict)
    #: Requests so far that were answered.
    answered: int = 0

    def say(self, kind: str, calls: int) -> str:
        """Return a text of its own for the next message."""
        words = self.chance.randrange(60, 200)
        told = " ".join(f"{self.chance.choice(NOUNS)} {self.chance.randrange(10_000)}" for _ in range(words // 2))
        text = f"{tag(self.number, len(self.messages))} {kind}: {told}. [calls:{calls}]"
        self.texts[len(self.messages)] = text
        return text

    def ask(self) -> None:
        """Add a question; half of them take some calls of a tool to answer."""
        calls = self.chance.choice((0, 0, 1, 2))
        self.messages.append({"role": "user", "content": self.say("Question", calls)})

    def take(self, message: Value, calls: list[str]) -> None:
        """Add an answer, and the results of its calls."""
        left = int(next(reversed(self.texts.values())).rpartition("[calls:")[2][:-1])
        self.messages.append(message)
        for call in calls:
            text = self.say("Result", max(0, left - 1))
            if self.fmt == "anthropic":
                result = {"type": "tool_result", "tool_use_id": call, "content": text}
                self.messages.append({"role": "user", "content": [result]})
            else:
                self.messages.append({"role": "tool", "tool_call_id": call, "content": text})

    def body(self, *, stream: bool) -> bytes:
        """Return the request that it sends now."""
        body: Value = {"model": "gpt-4o", "tools": [TOOLS[self.fmt]], "stream": stream}
        if self.fmt == "anthropic":
            body |= {"max_tokens": 200, "system": SYSTEM, "messages": self.messages}
        else:
            body |= {"max_tokens": 200, "messages": [{"role": "system", "content": SYSTEM}, *self.messages]}
        return json.dumps(body).encode()


NOUNS = ("pier", "boat", "tide", "crane", "ledger", "buoy", "berth", "pilot", "cargo", "anchor", "rope", "gull", "mast")


@dataclass(frozen=True, slots=True)
class Exchange:
    """An attempt that was answered."""

    conversation: Conversation
    name: str
    #: The attempts of the same request whose connection died.
    before: tuple[str, ...]
    run: Run
    stream: bool
    status: int
    headers: dict[str, str]
    body: bytes


class Judge(Protocol):
    """Hears of everything that a client meets."""

    async def answered(self, exchange: Exchange) -> None:
        """An answer came, whatever it says."""

    async def died(self, run: Run, name: str, error: Exception, *, begun: bool) -> None:
        """A connection died; `begun` if the answer had begun."""

    def wrong(self, line: str) -> None:
        """Something came that must not."""


async def converse(
    conversation: Conversation, cluster: Cluster, judge: Judge, more: Callable[[], bool] = lambda: True
) -> None:
    """Hold the conversation to its end, or until no more is wanted."""
    for _ in range(conversation.turns):
        conversation.ask()
        while True:
            exchange = await _asked(conversation, cluster, judge)
            await judge.answered(exchange)
            conversation.answered += 1
            try:
                message, calls = _read(conversation.fmt, exchange)
            except (LookupError, ValueError, TypeError) as error:
                judge.wrong(f"{exchange.name}: no whole answer ({error!r}): {exchange.body[-600:]!r}")
                return
            conversation.take(message, calls)
            if not calls:
                break
        if not more():
            return


async def _asked(conversation: Conversation, cluster: Cluster, judge: Judge) -> Exchange:
    """Send the request until it is answered."""
    stream = conversation.chance.random() < 0.5
    body, died = conversation.body(stream=stream), list[str]()
    for attempt in range(MOST_ATTEMPTS):
        name = request_name(conversation.number, conversation.answered, attempt)
        run = await cluster.pick(conversation.chance)
        begun = False
        try:
            async with asyncio.timeout(PATIENCE), RawClient(run.port) as client:
                headers = {NAME: name, "x-api-key": conversation.key, "content-type": "application/json"}
                client.ask(PATHS[conversation.fmt], body, headers)
                status, told = await client.head()
                begun = True
                answer = await client.body()
            return Exchange(conversation, name, tuple(died), run, stream, status, told, answer)
        except HALF_READ as error:
            died.append(name)
            await judge.died(run, name, error, begun=begun)
        except TimeoutError:
            judge.wrong(f"{name}: no answer of {run.name} in {PATIENCE:g} s")
            raise
    raise AssertionError(f"{name}: {MOST_ATTEMPTS} connections died")


def _read(fmt: str, exchange: Exchange) -> tuple[Value, list[str]]:
    """Return the message of an answer and the ids of its calls. Raises where it is not whole."""
    if exchange.status != 200:
        raise ValueError(f"status {exchange.status}")
    if not exchange.stream:
        value = json.loads(exchange.body)
        return _of_anthropic(value["content"]) if fmt == "anthropic" else _of_openai(value["choices"][0]["message"])
    events = [line[6:] for line in exchange.body.decode().splitlines() if line.startswith("data: ")]
    if fmt == "anthropic":
        return _of_anthropic(_blocks([json.loads(event) for event in events]))
    if events[-1] != "[DONE]":
        raise ValueError("no [DONE]")
    return _of_openai(_joined([json.loads(event) for event in events[:-1]]))


def _of_openai(message: Value) -> tuple[Value, list[str]]:
    kept = {name: value for name, value in message.items() if value is not None}
    return kept, [call["id"] for call in kept.get("tool_calls", ())]


def _of_anthropic(blocks: list[Value]) -> tuple[Value, list[str]]:
    return {"role": "assistant", "content": blocks}, [one["id"] for one in blocks if one["type"] == "tool_use"]


def _joined(events: list[Value]) -> Value:
    """Put together the message of a stream of Chat Completions."""
    text, calls, ended = "", dict[int, Value](), False
    for event in events:
        if "error" in event:
            raise ValueError("an error event")
        for choice in event["choices"]:
            delta = choice["delta"]
            text += delta.get("content") or ""
            for piece in delta.get("tool_calls") or ():
                call = calls.setdefault(
                    piece["index"], {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
                )
                call["id"] = piece.get("id") or call["id"]
                for name in ("name", "arguments"):
                    call["function"][name] += piece.get("function", {}).get(name) or ""
            ended = ended or bool(choice.get("finish_reason"))
    if not ended:
        raise ValueError("no finish_reason")
    return {"role": "assistant", "content": text} | ({"tool_calls": list(calls.values())} if calls else {})


def _blocks(events: list[Value]) -> list[Value]:
    """Put together the blocks of a stream of Anthropic's."""
    blocks: list[Value] = []
    for event in events:
        match event["type"]:
            case "error":
                raise ValueError("an error event")
            case "content_block_start":
                blocks.append(dict(event["content_block"]))
                if blocks[-1]["type"] == "tool_use":
                    blocks[-1]["input"] = ""
            case "content_block_delta":
                delta = event["delta"]
                if delta["type"] == "text_delta":
                    blocks[-1]["text"] += delta["text"]
                else:
                    blocks[-1]["input"] += delta["partial_json"]
            case _:
                pass
    if events[-1]["type"] != "message_stop":
        raise ValueError("no message_stop")
    return [block | {"input": json.loads(block["input"] or "{}")} if "input" in block else block for block in blocks]

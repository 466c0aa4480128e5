"""A client that keeps nothing on the server: it resends all of its conversation, in whatever form it likes today."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.client import HTTPConnection
from itertools import pairwise
from threading import Event
from typing import Any

from everlong.gateway.keys.records import scope_of
from everlong.gateway.request import pieces_of_list, pieces_of_object
from everlong.llm import ReceivedRequest, ScriptedServer
from everlong.wire import format_named, problems
from tests.gateway.running import RunningGateway

__all__ = [
    "FORMATS",
    "Resending",
    "accepted",
    "disguised",
    "members",
    "of_clients",
    "post",
    "resets",
    "valid_upstream",
]

FORMATS = ("anthropic", "openai-chat", "openai-responses")
#: A field that the gateway does not know: what bears it is a client's request, what does not is the gateway's own.
MARK = "x_client"
Value = dict[str, Any]
Disguise = Callable[[str, Sequence[Value], int], list[Value]]
LINES = 60


def post(
    gateway: RunningGateway, path: str, body: bytes, headers: Mapping[str, str] | None = None
) -> tuple[int, Mapping[str, str], bytes]:
    """One request: status, headers, body."""
    connection = HTTPConnection("127.0.0.1", gateway.port, timeout=60)
    try:
        connection.request("POST", path, body, {"content-type": "application/json", **(headers or {})})
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    finally:
        connection.close()


def as_is(_fmt: str, messages: Sequence[Value], _turn: int) -> list[Value]:
    return list(messages)


@dataclass
class Resending:
    """One conversation of a client with one key. `messages` are all that was said, in the format's own words."""

    fmt: str
    key: str = "k"
    model: str = "gpt-4o"
    system: str = "Work carefully."
    disguise: Disguise = as_is
    headers: dict[str, str] = field(default_factory=dict)
    fields: Value = field(default_factory=dict)
    messages: list[Value] = field(default_factory=list)
    lines: int = LINES
    turns: int = 0
    #: The gateway's id of the last request.
    last: str = ""

    def ask(self, gateway: RunningGateway, text: str, *, rounds: int = 5) -> str:
        """A question, the tools it takes, and the answer's words."""
        self.messages.append({"role": "user", "content": text})
        for _ in range(rounds):
            said, calls = self._answered(self.send(gateway))
            if not calls:
                return said
            for call in calls:
                self.messages += self._result(call)
        raise AssertionError("the model calls tools for ever")

    def send(self, gateway: RunningGateway) -> Value:
        """All that was said, sent; the answer."""
        status, _, answer = self.tried(gateway)
        assert status == 200, answer
        value: Value = json.loads(answer)
        return value

    def tried(self, gateway: RunningGateway) -> tuple[int, Mapping[str, str], bytes]:
        """The same, whatever comes of it."""
        self.turns += 1
        headers = {"authorization": f"Bearer {self.key}", **self.headers}
        answered = post(gateway, "/v1" + format_named(self.fmt).api.path, json.dumps(self.body()).encode(), headers)
        self.last = answered[1].get("x-everlong-request", "")
        return answered

    def settle(self, gateway: RunningGateway) -> None:
        """Wait until the gateway is done with the last request and all that it started, and everything is written."""
        services = gateway.services
        scope = scope_of(self.key.encode())
        while services.recent.one(scope, self.last) is None:
            Event().wait(0.002)
        while any(services.summaries.running(one.thread) for one in services.conversations.all()):
            Event().wait(0.002)
        for _ in range(2):  # what is handed over is written by another task
            services.state_store.flush()

    def body(self) -> Value:
        """What is sent now."""
        api = format_named(self.fmt).api
        messages = self.disguise(self.fmt, self.messages, self.turns)
        body: Value = {"model": self.model, MARK: 1, **self.fields}
        if not api.system:
            messages = [{"role": "system", "content": self.system}, *messages]
        else:
            body[api.system] = self.system
        if self.fmt == "anthropic":
            body["max_tokens"] = 500
        return body | {api.messages: messages}

    def _answered(self, answer: Value) -> tuple[str, list[str]]:
        """Take the answer into the conversation: its words, and the ids of its calls."""
        match self.fmt:
            case "openai-chat":
                message = answer["choices"][0]["message"]
                self.messages.append({name: value for name, value in message.items() if value is not None})
                return message.get("content") or "", [call["id"] for call in message.get("tool_calls") or ()]
            case "anthropic":
                blocks = answer["content"]
                self.messages.append({"role": "assistant", "content": blocks})
                words = "".join(block["text"] for block in blocks if block["type"] == "text")
                return words, [block["id"] for block in blocks if block["type"] == "tool_use"]
            case _:
                self.messages += answer["output"]
                words = "".join(
                    part["text"] for item in answer["output"] if item["type"] == "message" for part in item["content"]
                )
                return words, [item["call_id"] for item in answer["output"] if item["type"] == "function_call"]

    def _result(self, call: str) -> list[Value]:
        number = sum(map(ord, call))
        text = "\n".join(f"def function_{number}_{line}(): return {line * number}" for line in range(self.lines))
        match self.fmt:
            case "openai-chat":
                return [{"role": "tool", "tool_call_id": call, "content": text}]
            case "anthropic":
                return [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": call, "content": text}]}]
            case _:
                return [{"type": "function_call_output", "call_id": call, "output": text}]


def disguised(fmt: str, messages: Sequence[Value], turn: int) -> list[Value]:
    """The same conversation in other clothes each turn: cache markers at the end, strings or blocks, any key order."""
    shown = [_dressed(fmt, message, turn + at) for at, message in enumerate(messages)]
    if fmt != "openai-responses":
        for message in shown[-2:]:
            _mark(message)
    return [dict(reversed(message.items())) if (turn + at) % 2 else message for at, message in enumerate(shown)]


def _dressed(fmt: str, message: Value, number: int) -> Value:
    message = json.loads(json.dumps(message))
    content = message.get("content")
    if number % 3 == 0 and isinstance(content, str) and content and message.get("role") == "user":
        kind = "input_text" if fmt == "openai-responses" else "text"
        message["content"] = [{"type": kind, "text": content}]
    if number % 3 == 1 and fmt == "anthropic" and isinstance(content, list):
        for block in content:
            if block["type"] == "tool_result" and isinstance(block["content"], str):
                block["content"] = [{"text": block["content"], "type": "text"}]
        if len(content) == 1 and content[0]["type"] == "text":
            message["content"] = content[0]["text"]
    for at, call in enumerate(message.get("tool_calls", ())):
        if number % 2:
            call["index"] = at
            call["function"] = dict(reversed(call["function"].items()))
    return message


def _mark(message: Value) -> None:
    content = message.get("content")
    if isinstance(content, str) and content and message.get("role") in ("user", "assistant"):
        message["content"] = content = [{"type": "text", "text": content}]
    if isinstance(content, list) and content:
        content[-1]["cache_control"] = {"type": "ephemeral"}


# --- what the upstream saw ---------------------------------------------------------------------------


def of_clients(server: ScriptedServer) -> list[ReceivedRequest]:
    """The requests of clients, not those that the gateway makes by itself."""
    return [asked for asked in server.requests if MARK in json.loads(asked.body)]


def accepted(server: ScriptedServer, requests: Sequence[ReceivedRequest]) -> list[ReceivedRequest]:
    """Those that the window let pass."""
    return [asked for asked in requests if asked.tokens + (asked.max_tokens or 0) <= server.model.window.tokens]


def members(asked: ReceivedRequest) -> list[bytes]:
    """The messages of a request byte for byte; where they bear cache markers, without these."""
    raw = pieces_of_object(asked.body)[format_named(asked.fmt).api.messages]
    pieces = [bytes(one) for one in pieces_of_list(raw, "messages")]
    return [_unmarked(asked.fmt, one) if b"cache_control" in one else one for one in pieces]


def _unmarked(fmt: str, raw: bytes) -> bytes:
    def bare(value: Any) -> Any:
        if isinstance(value, list):
            return [bare(one) for one in value]
        if isinstance(value, dict):
            return {name: bare(one) for name, one in value.items() if name != "cache_control"}
        return value

    value = bare(json.loads(raw))
    content = value.get("content")
    if fmt == "openai-chat" and isinstance(content, list) and len(content) == 1 and content[0]["type"] == "text":
        value["content"] = content[0]["text"]  # a marker needs a block; without one it is a string again
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def resets(requests: Sequence[ReceivedRequest], *, skip: int = 0) -> int:
    """How often a request does not begin with all bytes of the one before it, the first `skip` messages aside."""
    shown = [members(asked)[skip:] for asked in requests]
    return sum(later[: len(earlier)] != earlier for earlier, later in pairwise(shown))


def valid_upstream(server: ScriptedServer) -> None:
    """Every request was one that its provider takes."""
    for asked in server.requests:
        assert problems(asked.fmt, json.loads(asked.body)) == [], asked.number

"""Requests as a client sends them: all messages so far, tools, a model with a window so large that nothing is cut."""

import json
import re
import socket
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from everlong.lab.speed.transcripts import TOOLS

__all__ = ["ANTHROPIC", "MODEL", "OPENAI", "Answer", "Connection", "Conversation", "Refusal", "hello", "pace"]

OPENAI, ANTHROPIC = "openai-chat", "anthropic"
MODEL = "gpt-4.1"  # a million tokens
ANTHROPIC_MODEL = "claude-opus-4-6"  # a million tokens
HEAD = "POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n"
PATHS = {OPENAI: "/v1/chat/completions", ANTHROPIC: "/v1/messages"}
KEYS = {
    OPENAI: "authorization: Bearer none\r\n\r\n",
    ANTHROPIC: "x-api-key: none\r\nanthropic-version: 2023-06-01\r\n\r\n",
}

Message = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Conversation:
    """The messages of a transcript as they are sent, what stands before and behind them, and when a client asks."""

    fmt: str
    settings: bytes
    messages: tuple[bytes, ...]
    tools: bytes
    asks: tuple[int, ...]

    @classmethod
    def read(cls, file: str, fmt: str = OPENAI) -> "Conversation":
        """Out of a stored transcript."""
        messages: list[Message] = json.loads(Path(file).read_text(encoding="utf-8"))
        return cls.of(messages, fmt)

    @classmethod
    def of(cls, messages: list[Message], fmt: str = OPENAI) -> "Conversation":
        """A client asks after a question and when the last result of a step has come.

        Example: system, user, call, result, result, answer, user -> after 2, 5, 7 messages
        """
        settings: Message = {"model": MODEL}
        tools: list[Message] = TOOLS
        if fmt == ANTHROPIC:
            system, messages = _as_anthropic(messages)
            settings = {"model": ANTHROPIC_MODEL, "max_tokens": 1_024, "system": system}
            tools = [_anthropic_tool(tool["function"]) for tool in TOOLS]
        roles = [message["role"] for message in messages]
        asks = tuple(
            count
            for count, (role, following) in enumerate(zip(roles, [*roles[1:], ""], strict=True), 1)
            if role == "user" or (role == "tool" and following != "tool")
        )
        return cls(fmt, _packed(settings)[1:-1], tuple(map(_packed, messages)), _packed(tools), asks)

    def request(self, count: int, *, streamed: bool) -> bytes:
        """The whole request after so many messages."""
        start = b'{"stream":%b,%b,"messages":[' % (b"true" if streamed else b"false", self.settings)
        body = b"".join((start, b",".join(self.messages[:count]), b'],"tools":', self.tools, b"}"))
        return (HEAD.format(path=PATHS[self.fmt], length=len(body)) + KEYS[self.fmt]).encode() + body


def hello(fmt: str = OPENAI, *, streamed: bool = False) -> bytes:
    """The smallest request that must be answered."""
    return Conversation.of([{"role": "user", "content": "Hello"}], fmt).request(1, streamed=streamed)


def pace(milliseconds: int) -> bytes:
    """Asks the upstream to think so long from now on."""
    return (HEAD.format(path=f"/pace/{milliseconds}", length=0) + KEYS[OPENAI]).encode()


def _as_anthropic(messages: list[Message]) -> tuple[str, list[Message]]:
    """The system text and the rest, the results of a step together in one message."""
    system = ""
    written: list[Message] = []
    for message in messages:
        match message["role"]:
            case "system":
                system = message["content"]
            case "assistant":
                written.append({"role": "assistant", "content": _blocks(message)})
            case "tool":
                block = {"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": message["content"]}
                if isinstance(written[-1]["content"], list) and written[-1]["role"] == "user":
                    written[-1]["content"].append(block)
                else:
                    written.append({"role": "user", "content": [block]})
            case _:
                written.append(message)
    return system, written


def _blocks(message: Message) -> list[Message]:
    text = [{"type": "text", "text": message["content"]}] if message["content"] else []
    calls = [
        {"type": "tool_use", "id": call["id"], "name": call["function"]["name"]}
        | {"input": json.loads(call["function"]["arguments"])}
        for call in message.get("tool_calls", ())
    ]
    return [*text, *calls]


def _anthropic_tool(function: Message) -> Message:
    return {
        "name": function["name"],
        "description": function["description"],
        "input_schema": function["parameters"],
    }


def _packed(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


PATIENCE = 120  # seconds without a byte
LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)")
CHUNKED = re.compile(rb"(?i)\r\ntransfer-encoding: *chunked")
EVENTS = re.compile(rb"(?i)\r\ncontent-type: *text/event-stream")
READ = 1 << 18


class Refusal(Exception):
    """The answer was not 200, or none came."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Seconds to the first byte of the body and to its last, the size of it all, and whether it came as events."""

    first: float
    whole: float
    size: int
    streamed: bool


class Connection:
    """To a port of this machine, opened when first used and again after a failure."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.socket: socket.socket | None = None

    def ask(self, request: bytes) -> Answer:
        """Send it and read the answer. Raises Refusal."""
        try:
            if self.socket is None:
                self.socket = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)
                self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return self._exchange(self.socket, request)
        except OSError as error:
            self.close()
            raise Refusal(str(error)) from error
        except Refusal:
            self.close()
            raise

    def close(self) -> None:
        """Leave; asking again opens it anew."""
        if self.socket is not None:
            self.socket.close()
            self.socket = None

    def _exchange(self, peer: socket.socket, request: bytes) -> Answer:
        start = perf_counter()
        peer.sendall(request)
        head, body = _head(peer)
        if not body:
            body = _more(peer)
        first = perf_counter()
        length = LENGTH.search(head)
        if length:
            size = len(body)
            while size < int(length[1]):
                size += len(_more(peer))
        else:
            size = _until_the_last_chunk(peer, head, body)
        whole = perf_counter()
        if b" 200 " not in head[:16]:
            raise Refusal((head.split(b"\r\n")[0] + b" " + body[:300]).decode(errors="replace"))
        return Answer(first - start, whole - start, len(head) + size, bool(EVENTS.search(head)))


def _head(peer: socket.socket) -> tuple[bytes, bytes]:
    received = _more(peer)
    while (end := received.find(b"\r\n\r\n")) < 0:
        received += _more(peer)
    return received[: end + 2], received[end + 4 :]


def _until_the_last_chunk(peer: socket.socket, head: bytes, body: bytes) -> int:
    if not CHUNKED.search(head):
        raise Refusal("an answer without length or chunks")
    size, end = len(body), body[-5:]
    while end != b"0\r\n\r\n":
        data = _more(peer)
        size += len(data)
        end = (end + data)[-5:]
    return size


def _more(peer: socket.socket) -> bytes:
    data = peer.recv(READ)
    if not data:
        raise Refusal("the connection was closed before the answer was whole")
    return data

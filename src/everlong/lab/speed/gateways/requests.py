"""The client's side of HTTP: requests as bytes, and a connection that times their answers.

A request has all messages so far, the tools, and a model with a window so large that nothing is cut. Only the head of
an answer is parsed: a client that did more would be measured together with the gateway.
"""

import json
import re
import socket
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

from everlong.lab.speed.transcripts import TOOLS

__all__ = ["ANTHROPIC", "GEMINI", "MODEL", "OPENAI", "Answer", "Connection", "Conversation", "Refusal", "hello", "pace"]

OPENAI, ANTHROPIC, GEMINI = "openai-chat", "anthropic", "gemini"
MODEL = "gpt-4.1"  # a million tokens
ANTHROPIC_MODEL = "claude-opus-4-6"  # a million tokens
GEMINI_MODEL = "gemini-2.5-pro"  # a million tokens
HEAD = "POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n"

Message = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a client writes a request in one format.

    `key` are the header lines of its key; `write` turns OpenAI messages into (settings, messages, tools).
    """

    path: str
    key: str
    write: Callable[[list[Message]], tuple[Message, list[Message], list[Message]]]
    #: The path of streams, if it differs, and the field of the messages.
    streams: str = ""
    messages: str = "messages"

    def start(self, settings: bytes, *, streamed: bool) -> bytes:
        """Return the beginning of a body, up to the first message."""
        stream = b"" if self.streams else b'"stream":%b,' % (b"true" if streamed else b"false")
        return b'{%b%b,"%b":[' % (stream, settings, self.messages.encode())


def _as_openai(messages: list[Message]) -> tuple[Message, list[Message], list[Message]]:
    return {"model": MODEL}, messages, TOOLS


def _as_anthropic(messages: list[Message]) -> tuple[Message, list[Message], list[Message]]:
    """Write for Anthropic: the system text is a setting, the results of a step are together in one message."""
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
    settings = {"model": ANTHROPIC_MODEL, "max_tokens": 1_024, "system": system}
    return settings, written, [_anthropic_tool(tool["function"]) for tool in TOOLS]


def _blocks(message: Message) -> list[Message]:
    text = [{"type": "text", "text": message["content"]}] if message["content"] else []
    calls = [
        {"type": "tool_use", "id": call["id"], "name": call["function"]["name"]}
        | {"input": json.loads(call["function"]["arguments"])}
        for call in message.get("tool_calls", ())
    ]
    return [*text, *calls]


def _as_gemini(messages: list[Message]) -> tuple[Message, list[Message], list[Message]]:
    """Write for Google: calls and results are parts, results are together and repeat the names of their calls."""
    system, names = "", dict[str, str]()
    written: list[Message] = []
    for message in messages:
        match message["role"]:
            case "system":
                system = message["content"]
            case "assistant":
                text = [{"text": message["content"]}] if message["content"] else []
                calls = message.get("tool_calls", ())
                names |= {call["id"]: call["function"]["name"] for call in calls}
                written.append({"role": "model", "parts": [*text, *map(_gemini_call, calls)]})
            case "tool":
                fields = {"id": message["tool_call_id"], "name": names[message["tool_call_id"]]}
                part = {"functionResponse": fields | {"response": {"output": message["content"]}}}
                if written[-1]["role"] == "user":
                    written[-1]["parts"].append(part)
                else:
                    written.append({"role": "user", "parts": [part]})
            case _:
                written.append({"role": "user", "parts": [{"text": message["content"]}]})
    settings = {"systemInstruction": {"parts": [{"text": system}]}, "generationConfig": {"maxOutputTokens": 1_024}}
    return settings, written, [{"functionDeclarations": [tool["function"] for tool in TOOLS]}]


def _gemini_call(call: Message) -> Message:
    function = call["function"]
    return {"functionCall": {"id": call["id"], "name": function["name"], "args": json.loads(function["arguments"])}}


def _anthropic_tool(function: Message) -> Message:
    return {
        "name": function["name"],
        "description": function["description"],
        "input_schema": function["parameters"],
    }


#: Format -> how a client writes it.
DIALECTS = {
    OPENAI: Dialect("/v1/chat/completions", "authorization: Bearer none\r\n\r\n", _as_openai),
    ANTHROPIC: Dialect("/v1/messages", "x-api-key: none\r\nanthropic-version: 2023-06-01\r\n\r\n", _as_anthropic),
    GEMINI: Dialect(
        f"/v1beta/models/{GEMINI_MODEL}:generateContent",
        "x-goog-api-key: none\r\n\r\n",
        _as_gemini,
        f"/v1beta/models/{GEMINI_MODEL}:streamGenerateContent?alt=sse",
        "contents",
    ),
}


@dataclass(frozen=True, slots=True)
class Conversation:
    """A transcript as bytes: its settings, messages and tools, and after which messages a client sends a request."""

    fmt: str
    settings: bytes
    messages: tuple[bytes, ...]
    tools: bytes
    asks: tuple[int, ...]

    @classmethod
    def read(cls, file: str, fmt: str = OPENAI) -> "Conversation":
        """Return the conversation of a stored transcript."""
        messages: list[Message] = json.loads(Path(file).read_text(encoding="utf-8"))
        return cls.of(messages, fmt)

    @classmethod
    def of(cls, messages: list[Message], fmt: str = OPENAI) -> "Conversation":
        """Return the conversation. A client sends a request after a question, and after the last result of a step.

        Example: system, user, call, result, result, answer, user -> after 2, 5, 7 messages
        """
        settings, messages, tools = DIALECTS[fmt].write(messages)
        roles = [message["role"] for message in messages]
        asks = tuple(
            count
            for count, (role, following) in enumerate(zip(roles, [*roles[1:], ""], strict=True), 1)
            if role == "user" or (role == "tool" and following != "tool")
        )
        return cls(fmt, _packed(settings)[1:-1], tuple(map(_packed, messages)), _packed(tools), asks)

    def opened_with(self, words: str) -> "Conversation":
        """Return the same conversation with another first user text."""
        at = next(at for at, message in enumerate(self.messages) if b'"role":"user"' in message[:40])
        opening = _packed({"role": "user", "content": words})
        return replace(self, messages=(*self.messages[:at], opening, *self.messages[at + 1 :]))

    def request(self, count: int, *, streamed: bool) -> bytes:
        """Return the request with the first `count` messages."""
        dialect = DIALECTS[self.fmt]
        start = dialect.start(self.settings, streamed=streamed)
        body = b"".join((start, b",".join(self.messages[:count]), b'],"tools":', self.tools, b"}"))
        path = dialect.streams if streamed and dialect.streams else dialect.path
        return (HEAD.format(path=path, length=len(body)) + dialect.key).encode() + body


def hello(fmt: str = OPENAI, *, streamed: bool = False) -> bytes:
    """Return the smallest request that must be answered."""
    return Conversation.of([{"role": "user", "content": "Hello"}], fmt).request(1, streamed=streamed)


def pace(milliseconds: int) -> bytes:
    """Return the request that sets how long the upstream takes for each answer."""
    return (HEAD.format(path=f"/pace/{milliseconds}", length=0) + DIALECTS[OPENAI].key).encode()


def _packed(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


# --- the connection ------------------------------------------------------------------------------

PATIENCE = 120  # seconds without a byte
LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)")
CHUNKED = re.compile(rb"(?i)\r\ntransfer-encoding: *chunked")
EVENTS = re.compile(rb"(?i)\r\ncontent-type: *text/event-stream")
READ = 1 << 18


class Refusal(Exception):
    """Raised if the answer was not 200, or if there was none."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer: seconds to the first and last byte of its body, its size, and whether it came as events."""

    first: float
    whole: float
    size: int
    streamed: bool


class Connection:
    """A connection to a port of this machine, opened on first use and again after a failure."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.socket: socket.socket | None = None

    def ask(self, request: bytes) -> Answer:
        """Send a request and read the answer. Raises Refusal."""
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
        """Close the connection; the next request opens it again."""
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
        raise Refusal("the connection was closed before the answer was complete")
    return data

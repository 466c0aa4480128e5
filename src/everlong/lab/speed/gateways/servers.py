"""The servers of the gateways' benchmark: an upstream with canned answers, and a hop that forwards bytes unread.

Both cost less than any gateway. The upstream answers in OpenAI's, Anthropic's and Google's format, plain or streamed:
it looks for the end of a request and for one word, parses nothing and keeps nothing. A request for `/pace/40` delays
every later answer by 40 ms, as if a model were thinking; `/pace/0` ends that. The hop is the smallest
possible gateway: what a gateway takes beyond it is its own work.

    python -m everlong.lab.speed.gateways.servers PORT              the upstream
    python -m everlong.lab.speed.gateways.servers PORT UPSTREAM     the hop, in front of that port
"""

import asyncio
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

__all__ = ["Hop", "Pace", "Upstream"]

LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)")
CHUNKED = re.compile(rb"(?i)\r\ntransfer-encoding: *chunked")
#: The end of a body that was sent in chunks.
LAST_CHUNK = b"0\r\n\r\n"
PACE = re.compile(rb"/pace/(\d+)")
STREAM_WANTED = re.compile(rb'"stream": ?true')
STREAM_PATH = b":streamGenerateContent"
#: `stream` is within this many bytes of one end of a body; the transcript in between never contains it.
ENDS = 2_000

WORDS = ("The", " first", " ticket", " is", " named", " in", " turn", " one", ",", " the", " last", " log", " shows")
PLAIN_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b"
STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"

Answers = tuple[bytes, tuple[bytes, ...]]


def _packed(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _plain(value: object) -> bytes:
    body = _packed(value)
    return PLAIN_HEAD % (len(body), body)


def _chunk(event: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(event), event)


def _openai() -> Answers:
    shared = {"id": "chatcmpl-1", "created": 1_790_000_000, "model": "gpt-4.1"}
    usage = {"prompt_tokens": 20_000, "completion_tokens": len(WORDS), "total_tokens": 20_000 + len(WORDS)}
    message = {"role": "assistant", "content": "".join(WORDS)}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    plain = _plain({**shared, "object": "chat.completion", "choices": [choice], "usage": usage})
    deltas: list[tuple[dict[str, str], str | None]] = [({"role": "assistant", "content": ""}, None)]
    deltas += [({"content": word}, None) for word in WORDS]
    events = [
        {
            **shared,
            "object": "chat.completion.chunk",
            "choices": [{"index": 0, "delta": delta, "finish_reason": reason}],
        }
        for delta, reason in [*deltas, ({}, "stop")]
    ]
    events.append({**shared, "object": "chat.completion.chunk", "choices": [], "usage": usage})
    lines = [b"data: %b\n\n" % _packed(event) for event in events]
    return plain, tuple(_chunk(line) for line in (*lines, b"data: [DONE]\n\n"))


def _anthropic() -> Answers:
    usage = {"input_tokens": 20_000, "output_tokens": len(WORDS)}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-4-5", "usage": usage}
    ended = {"stop_reason": "end_turn", "stop_sequence": None}
    plain = _plain({**message, "content": [{"type": "text", "text": "".join(WORDS)}], **ended})
    begun = {**message, "content": [], "stop_reason": None, "stop_sequence": None}
    events: list[dict[str, object]] = [
        {"type": "message_start", "message": begun},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": word}} for word in WORDS),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": ended, "usage": {"output_tokens": len(WORDS)}},
        {"type": "message_stop"},
    ]
    return plain, tuple(
        _chunk(b"event: %b\ndata: %b\n\n" % (str(event["type"]).encode(), _packed(event))) for event in events
    )


def _gemini() -> Answers:
    usage = {"promptTokenCount": 20_000, "candidatesTokenCount": len(WORDS), "totalTokenCount": 20_000 + len(WORDS)}
    shared = {"usageMetadata": usage, "modelVersion": "gemini-2.5-pro", "responseId": "r1"}

    def chunk(text: str, **more: object) -> dict[str, object]:
        return {"candidates": [{"content": {"parts": [{"text": text}], "role": "model"}, **more, "index": 0}], **shared}

    events = [*map(chunk, WORDS), chunk("", finishReason="STOP")]
    streamed = tuple(_chunk(b"data: %b\r\n\r\n" % _packed(event)) for event in events)
    return _plain(chunk("".join(WORDS), finishReason="STOP")), streamed


#: Part of a path -> the plain answer, and the streamed one.
ANSWERS: dict[bytes, Answers] = {
    b"/messages": _anthropic(),
    b"/chat/completions": _openai(),
    b"enerateContent": _gemini(),
}
#: The answer to any other request of a gateway: an empty list.
OTHER: Answers = (_plain({"object": "list", "data": []}), ())


@dataclass(slots=True)
class Pace:
    """Seconds before an answer begins, the same on every connection."""

    seconds: float = 0.0


class Upstream(asyncio.Protocol):
    """The upstream's side of a connection: one request after the other."""

    def __init__(self, pace: Pace) -> None:
        self.pace = pace
        self._reset()

    def _reset(self) -> None:
        self.pieces: list[bytes] = []
        self.missing: int | None = None  # bytes of the body; None if the head is not complete, or if chunks come

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport for the answers."""
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Count down to the end of the request, then answer it."""
        self.pieces.append(data)
        if self.missing is None:
            self._find_end()
        else:
            self.missing -= len(data)
        if self.missing is not None and self.missing <= 0:
            request = self.pieces
            self._reset()
            if self.pace.seconds:
                asyncio.get_running_loop().call_later(self.pace.seconds, self._answer, request)
            else:
                self._answer(request)

    def _find_end(self) -> None:
        end = self.pieces[0].find(b"\r\n\r\n")
        if end < 0:
            self.pieces = [b"".join(self.pieces)]
            end = self.pieces[0].find(b"\r\n\r\n")
        if end < 0:
            return
        head = self.pieces[0][:end]
        if length := LENGTH.search(head):
            self.missing = end + 4 + int(length[1]) - sum(map(len, self.pieces))
        elif not CHUNKED.search(head) or b"".join(self.pieces[-2:]).endswith(LAST_CHUNK):
            self.missing = 0

    def _answer(self, request: list[bytes]) -> None:
        first, last = request[0], request[-1]
        path = first[: first.find(b"\r\n")]
        if wanted := PACE.search(path):
            self.pace.seconds = int(wanted[1]) / 1e3
        plain, streamed = next((answers for part, answers in ANSWERS.items() if part in path), OTHER)
        if len(last) < ENDS and len(request) > 1:
            last = request[-2][-ENDS:] + last
        wanted_by_path = STREAM_PATH in path
        if wanted_by_path or STREAM_WANTED.search(first[:ENDS]) or STREAM_WANTED.search(last[-ENDS:]):
            self._send_pieces(iter((STREAM_HEAD + streamed[0], *streamed[1:], LAST_CHUNK)))
        else:
            self.transport.write(plain)

    def _send_pieces(self, pieces: Iterator[bytes]) -> None:
        """Send one piece per iteration of the loop, so that each travels separately, as a model's words do."""
        piece = next(pieces, None)
        if piece is not None and not self.transport.is_closing():
            self.transport.write(piece)
            asyncio.get_running_loop().call_soon(self._send_pieces, pieces)


class Hop(asyncio.Protocol):
    """One end of a connection that forwards what it receives to the other end."""

    def __init__(self, other: "Hop | None" = None, *, upstream: int = 0) -> None:
        self.other = other
        self.upstream = upstream
        self.transport: asyncio.Transport | None = None
        self.early: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Open the upstream's end from the client's; data that came before is sent first."""
        self.transport = cast(asyncio.Transport, transport)
        if self.upstream:
            self.opening = asyncio.get_running_loop().create_task(self._open())
        elif self.other:
            self.other.other = self
            self.transport.writelines(self.other.early)

    async def _open(self) -> None:
        await asyncio.get_running_loop().create_connection(lambda: Hop(self), "127.0.0.1", self.upstream)

    def data_received(self, data: bytes) -> None:
        """Forward the data."""
        if self.other and self.other.transport:
            self.other.transport.write(data)
        else:
            self.early.append(data)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the reason does not matter
        """Close the other end too."""
        if self.other and self.other.transport:
            self.other.transport.close()


async def _listen(port: int, upstream: int = 0) -> None:
    """Serve as the upstream itself, or as the hop in front of the given port."""
    pace = Pace()
    server = await asyncio.get_running_loop().create_server(
        lambda: Hop(upstream=upstream) if upstream else Upstream(pace), "127.0.0.1", port
    )
    await server.serve_forever()


def _new_loop() -> asyncio.AbstractEventLoop:
    """Return the fastest event loop that is installed."""
    try:
        import uvloop  # noqa: PLC0415 - not everywhere; the answers are the same without it
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=_new_loop) as runner:
        ports = [int(port) for port in sys.argv[1:]]
        runner.run(_listen(*ports))

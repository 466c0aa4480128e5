"""Both ends of the gateway in one test: an upstream that speaks when it is told to, a client that reads byte by byte.

Everything is in step by handshake: neither side guesses how long the other takes.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Self, TypeVar

from everlong.core import JsonText
from everlong.gateway.surfaces import FORMATS as SERVED
from everlong.llm import Answer, ReceivedRequest
from everlong.llm.scripted.script import reply_of
from everlong.wire import Usage, format_named
from tests.gateway.raw_upstream import CHUNKED, PATIENCE, RawUpstream, Talk, response
from tests.gateway.running import RunningGateway

__all__ = [
    "CLIENTS",
    "FORMATS",
    "PATHS",
    "STREAMS",
    "RawClient",
    "body_of",
    "events_of",
    "head_of",
    "running",
    "serving",
    "talk_through",
    "told_error",
    "whole_of",
]

T = TypeVar("T")
FORMATS = tuple(SERVED)
PATHS = {fmt: served.api.base + served.api.path.format(model="gpt-4o") for fmt, served in SERVED.items()}
#: Where a stream is asked for: as events, if the client may choose.
STREAMS = {
    fmt: f"{served.api.base}{served.api.stream_path.format(model='gpt-4o')}?{served.api.events_query}"
    if served.api.stream_path
    else PATHS[fmt]
    for fmt, served in SERVED.items()
}
FRAMINGS = {fmt: served.api.stream_framing(served.api.events_query) for fmt, served in SERVED.items()}
Script = Callable[[Talk, bytes, bytes], Awaitable[None]]
CLIENTS = "x-client"  # a header that tells the requests of clients from the gateway's own
VOICES = {"user": "user", "assistant": "model"}
CALLS: tuple[tuple[str, JsonText], ...] = (("read_file", '{"path": "a.py", "from": 1}'),)
SAID = Answer(text="one two three four five six seven", calls=CALLS, usage=Usage(prompt=9, output=12))


def body_of(fmt: str, messages: list[dict[str, Any]] | None = None, **fields: Any) -> bytes:
    """A request in that format."""
    said = messages or [{"role": "user", "content": "How many boats are at the pier?"}]
    if fmt == "gemini":  # the path names the model and asks for a stream
        contents = [{"role": VOICES[one["role"]], "parts": [{"text": one["content"]}]} for one in said]
        return json.dumps(
            {"contents": contents} | {name: value for name, value in fields.items() if name != "stream"}
        ).encode()
    body: dict[str, Any] = {"model": "gpt-4o", format_named(fmt).api.messages: said, **fields}
    return json.dumps(body | ({"max_tokens": 100} if fmt == "anthropic" else {})).encode()


def events_of(fmt: str, answer: Answer = SAID) -> list[bytes]:
    """The events of an answer as bytes, as they are written outside."""
    asked = ReceivedRequest(number=1, model="gpt-4o", messages=())
    events, encoder = [], FRAMINGS[fmt].encoder()
    for name, data in format_named(fmt).writer.events(reply_of(asked, answer)):
        text = data if isinstance(data, str) else json.dumps(data, separators=(",", ":"))
        event = (f"event: {name}\n" if name else "").encode() + f"data: {text}\n\n".encode()
        events.append(encoder.feed(event))
    return events


def head_of(fmt: str) -> bytes:
    """The head of a stream in that format, in chunks."""
    return CHUNKED.replace(b"text/event-stream", FRAMINGS[fmt].content_type)


def told_error(fmt: str, body: bytes) -> str:
    """The words of an error in that format."""
    error = json.loads(body)["error"]
    return str(error if isinstance(error, str) else error["message"])


def whole_of(fmt: str, answer: Answer = SAID) -> bytes:
    """The same as a plain answer."""
    return json.dumps(
        format_named(fmt).writer.whole(reply_of(ReceivedRequest(number=1, model="gpt-4o", messages=()), answer))
    ).encode()


def serving(script: Script) -> Callable[[Talk], Awaitable[None]]:
    """An upstream that does what the script says with each request of a client."""

    async def serve(talk: Talk) -> None:
        while True:
            head, body = await talk.request()
            if CLIENTS.encode() not in head.lower():  # the gateway itself looks for the model's window
                await talk.say(response(status="404 Not Found"))
            else:
                await script(talk, head, body)

    return serve


@asynccontextmanager
async def running(script: Script, **options: Any) -> AsyncIterator[RunningGateway]:
    """A gateway in front of an upstream that does what the script says with each request."""
    async with RawUpstream(serving(script)) as upstream:
        gateway = RunningGateway(upstream=f"http://127.0.0.1:{upstream.port}/v1", **options)
        await asyncio.to_thread(gateway.__enter__)
        try:
            yield gateway
        finally:
            await asyncio.to_thread(gateway.__exit__, None, None, None)


def talk_through(script: Script, do: Callable[[RunningGateway], Awaitable[T]], **options: Any) -> T:
    """What `do` gives with such a gateway."""

    async def both() -> T:
        async with running(script, **options) as gateway:
            return await do(gateway)

    return asyncio.run(asyncio.wait_for(both(), PATIENCE))


class RawClient:
    """One connection to the gateway. `async with RawClient(port) as client: …`"""

    def __init__(self, port: int, *, limit: int = 2**16) -> None:
        self._port = port
        self._limit = limit

    async def __aenter__(self) -> Self:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port, limit=self._limit)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.close()

    def ask(self, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None, method: str = "POST") -> None:
        """A request, written at once."""
        told = {"host": "127.0.0.1", CLIENTS: "1", "content-length": str(len(body)), **(headers or {})}
        lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in told.items()), "", ""]
        self.write("\r\n".join(lines).encode("latin-1") + body)

    def write(self, data: bytes) -> None:
        """Bytes of any kind."""
        self._writer.write(data)

    def say_no_more(self) -> None:
        """Close one direction only."""
        self._writer.write_eof()

    def hang_up(self) -> None:
        """Be gone, at once."""
        self._writer.transport.abort()

    async def head(self) -> tuple[int, dict[str, str]]:
        """Status and headers of the answer."""
        lines = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        pairs = [line.partition(":") for line in lines[1:] if line]
        self._headers = {name.lower(): value.strip() for name, _, value in pairs}
        return int(lines[0].split()[1]), self._headers

    async def chunk(self) -> bytes:
        """The next chunk as the gateway wrote it; b"" is the end."""
        size = int(await self._reader.readuntil(b"\r\n"), 16)
        return (await self._reader.readexactly(size + 2))[:-2]

    async def some(self, most: int) -> bytes:
        """Bytes as they stand on the wire; b"" when the other side is gone."""
        try:
            return await self._reader.read(most)
        except ConnectionError:
            return b""

    async def rest(self) -> bytes:
        """All that still comes, until the other side closes."""
        parts = []
        while part := await self.some(65_536):
            parts.append(part)
        return b"".join(parts)

    async def drip(self, said: bytes = b"x") -> bytes:
        """Say a byte now and then until the other side closes: all that it said."""
        rest = asyncio.ensure_future(self.rest())
        while not rest.done():
            self.write(said)
            await asyncio.wait({rest}, timeout=0.01)
        return await rest

    async def body(self) -> bytes:
        """All that is left of the answer. Raises IncompleteReadError where it is not whole."""
        if "content-length" in self._headers:
            return await self._reader.readexactly(int(self._headers["content-length"]))
        parts = []
        while part := await self.chunk():
            parts.append(part)
        return b"".join(parts)

    async def answer(self) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and all of the body."""
        status, headers = await self.head()
        return status, headers, await self.body()

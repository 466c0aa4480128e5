"""An upstream that speaks one connection at a time, line by line as a test says: for what no server should do.

A test hands in a coroutine for each connection; `Talk` reads requests and writes bytes when the test wants them.
"""

import asyncio
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self

__all__ = ["CHUNKED", "RawUpstream", "Talk", "chunk", "response"]

CHUNKED = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
PATIENCE = 20  # seconds; only a failing test waits so long


def chunk(data: bytes) -> bytes:
    """One chunk of a chunked body; b"" is the last."""
    return b"%x\r\n%s\r\n" % (len(data), data)


def response(body: bytes = b"{}", *, status: str = "200 OK", more: tuple[str, ...] = ()) -> bytes:
    """A whole response."""
    head = [f"HTTP/1.1 {status}", f"content-length: {len(body)}", *more]
    return "\r\n".join([*head, "", ""]).encode() + body


class Talk:
    """One connection, as the upstream sees it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def request(self) -> tuple[bytes, bytes]:
        """Head and body of the next request."""
        head = await self._reader.readuntil(b"\r\n\r\n")
        lines = [line.partition(b":") for line in head.lower().split(b"\r\n")]
        length = next((int(value) for name, _, value in lines if name == b"content-length"), 0)
        return head, await self._reader.readexactly(length)

    async def say(self, data: bytes) -> None:
        """Bytes, at once."""
        self._writer.write(data)
        await self._writer.drain()

    def say_all(self, data: bytes) -> None:
        """Bytes, without waiting until they are gone."""
        self._writer.write(data)

    @property
    def unsent(self) -> int:
        """Bytes said that the other side has not taken yet."""
        return self._writer.transport.get_write_buffer_size()

    def hang_up(self) -> None:
        """Close it."""
        self._writer.close()

    def say_no_more(self) -> None:
        """Close one direction only."""
        self._writer.write_eof()

    async def left(self) -> None:
        """Returns when the other side is gone."""
        try:
            while await self._reader.read(65_536):
                pass
        except ConnectionError:
            return


class RawUpstream:
    """Serves until it is left; `connections` counts those that were made."""

    def __init__(self, serve: Callable[[Talk], Awaitable[None]]) -> None:
        self._serve = serve
        self._tasks: set[asyncio.Task[None]] = set()
        self.connections = 0
        self.port = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._talk, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=PATIENCE)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._serve(Talk(reader, writer))
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()
            self._tasks.discard(task)

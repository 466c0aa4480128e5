"""A server that says given bytes and counts who is connected: for what no well-behaved server does."""

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Self

__all__ = ["RawServer", "response"]

#: What is said to the head and body of a request; None says nothing more and keeps the connection open.
Says = Callable[[bytes, bytes], bytes | None]


def response(
    body: bytes, *, status: str = "200 OK", kind: str = "text/event-stream", more: tuple[str, ...] = ()
) -> bytes:
    """A whole HTTP response."""
    head = [f"HTTP/1.1 {status}", f"content-type: {kind}", f"content-length: {len(body)}", *more]
    return "\r\n".join([*head, "", ""]).encode() + body


class RawServer:
    """Serves until it is left. `heads` are the requests so far, `open` the connections that are there now."""

    def __init__(self, says: Says) -> None:
        self._says = says
        self.heads: list[bytes] = []
        self.open = 0
        self.port = 0
        self._changed = asyncio.Condition()

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def paths(self) -> list[str]:
        """What was asked for, in order."""
        return [head.split(b" ")[1].decode() for head in self.heads]

    async def until(self, true: Callable[["RawServer"], bool]) -> None:
        """Wait until something holds of it."""
        async with self._changed:
            await asyncio.wait_for(self._changed.wait_for(lambda: true(self)), 20)

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()

    async def _change(self, connected: int) -> None:
        async with self._changed:
            self.open += connected
            self._changed.notify_all()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._change(1)
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                lines = [line.partition(b":") for line in head.lower().split(b"\r\n")]
                length = next((int(value) for name, _, value in lines if name == b"content-length"), 0)
                body = await reader.readexactly(length)
                self.heads.append(head)
                await self._change(0)
                said = self._says(head, body)
                if said is None:
                    await reader.read()
                    return
                writer.write(said)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()
            await self._change(-1)

"""A TCP proxy in front of a Unix socket, whose network can be cut and stalled.

Cut: every connection is broken and new ones are refused at once. Stalled: nothing moves in either direction, new
connections are taken and hear nothing, as behind a switch that lost its way.
"""

import asyncio
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

__all__ = ["Proxy"]

CHUNK = 65_536  # bytes


class Proxy:
    """`async with Proxy(socket) as proxy: …  # proxy.port`"""

    def __init__(self, behind: Path) -> None:
        self._behind = behind
        self._open = True
        self._moving = asyncio.Event()
        self._moving.set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        self.cut()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut(self) -> None:
        """Break every connection and refuse new ones until `mend`."""
        self._open = False
        for writer in self._writers:
            writer.transport.abort()

    def stall(self) -> None:
        """Let nothing through until `mend`; connections stay."""
        self._moving.clear()

    def mend(self) -> None:
        """Let everything through again."""
        self._open = True
        self._moving.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._writers.add(writer)
        try:
            if self._open:
                with suppress(OSError):  # the server behind is being restarted, or one of the ends is gone
                    await self._forward(reader, writer)
        except asyncio.CancelledError:
            pass
        finally:
            writer.transport.abort()
            self._writers.discard(writer)
            self._tasks.discard(task)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._moving.wait()
        behind_reader, behind_writer = await asyncio.open_unix_connection(str(self._behind))
        self._writers.add(behind_writer)
        ways = [
            asyncio.create_task(self._pump(reader, behind_writer)),
            asyncio.create_task(self._pump(behind_reader, writer)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            behind_writer.transport.abort()
            self._writers.discard(behind_writer)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(CHUNK):
            await self._moving.wait()
            writer.write(data)
            await writer.drain()
        await writer.drain()

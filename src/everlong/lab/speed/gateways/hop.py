"""The least a gateway can be: bytes in at one side, out at the other, nothing read. More than this is its own work."""

import asyncio
import sys
from typing import cast

from everlong.lab.speed.gateways.upstream import loop_factory

__all__ = ["Hop"]


class Hop(asyncio.Protocol):
    """One end of a connection; what it receives leaves at the other end."""

    def __init__(self, other: "Hop | None" = None, *, upstream: int = 0) -> None:
        self.other = other
        self.upstream = upstream
        self.transport: asyncio.Transport | None = None
        self.early: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The client's end opens the upstream's; what came before that is open is sent first."""
        self.transport = cast(asyncio.Transport, transport)
        if self.upstream:
            self.opening = asyncio.get_running_loop().create_task(self._open())
        elif self.other:
            self.other.other = self
            self.transport.writelines(self.other.early)

    async def _open(self) -> None:
        await asyncio.get_running_loop().create_connection(lambda: Hop(self), "127.0.0.1", self.upstream)

    def data_received(self, data: bytes) -> None:
        """Pass it on."""
        if self.other and self.other.transport:
            self.other.transport.write(data)
        else:
            self.early.append(data)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - why does not matter
        """One end gone, both gone."""
        if self.other and self.other.transport:
            self.other.transport.close()


async def _listen(port: int, upstream: int) -> None:
    server = await asyncio.get_running_loop().create_server(lambda: Hop(upstream=upstream), "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(_listen(int(sys.argv[1]), int(sys.argv[2])))

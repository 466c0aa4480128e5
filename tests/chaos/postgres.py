"""A Postgres of one test: reached through a proxy, crashed and started again, paused."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from everlong.lab.speed.gateways.processes import tree
from tests.chaos.proxy import Proxy
from tests.store.postgres_server import Server, private_server

__all__ = ["Database", "running_database"]

SOCKET = ".s.PGSQL.5432"


class Database:
    """A database on a server of its own. `url` goes through the proxy, `direct` does not."""

    def __init__(self, server: Server, proxy: Proxy, direct: str) -> None:
        self._server = server
        self.proxy = proxy
        self.direct = direct
        name = direct.partition("///")[2] or direct.split("/")[3]
        # Who has lost its server must notice: a connection that hears nothing for ever is no better than none.
        self.url = f"postgresql://postgres@127.0.0.1:{proxy.port}/{name.partition('?')[0]}"

    async def crash(self) -> None:
        """Stop it as a power cut does and start it again."""
        await asyncio.to_thread(self._server.restart, "immediate")

    def pause(self) -> None:
        """Let none of its processes run until `resume`; its connections stay open."""
        self._tell(signal.SIGSTOP)

    def resume(self) -> None:
        """Let them run again."""
        self._tell(signal.SIGCONT)

    def _tell(self, number: signal.Signals) -> None:
        root = int((self._server.folder / "data" / "postmaster.pid").read_text(encoding="ascii").splitlines()[0])
        for process in tree(root):  # the first is the one that starts the others
            with suppress(ProcessLookupError):
                os.kill(process, number)


@asynccontextmanager
async def running_database() -> AsyncIterator[Database]:
    """A new server with an empty database while the block lasts."""
    making = private_server()
    server = await asyncio.to_thread(making.__enter__)
    try:
        direct = await asyncio.to_thread(server.new_database)
        async with Proxy(server.folder / SOCKET) as proxy:
            database = Database(server, proxy, direct)
            try:
                yield database
            finally:
                database.resume()
    finally:
        await asyncio.to_thread(making.__exit__, None, None, None)

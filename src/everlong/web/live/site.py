"""What all apps in one process share: events, the link to other processes, and the leases of turns."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeAlias

from everlong.engine import Threads
from everlong.errors import EverlongError
from everlong.web.live.hub import Hub
from everlong.web.live.leases import End, Lease, Leases
from everlong.web.live.notices import notices_of
from everlong.web.live.relay import Relay

__all__ = ["LEASE_SECONDS", "Site"]

LEASE_SECONDS = 15.0

#: Returns the function that ends a turn of an owner which a dead process left.
Heir: TypeAlias = Callable[[str], Awaitable[End]]


class Site:
    """The shared parts of one process. Belongs to one event loop."""

    def __init__(self, threads: Threads, *, lease: float = LEASE_SECONDS) -> None:
        self.threads = threads
        self.hub = Hub()
        self.relay = Relay(self.hub, notices_of(threads))
        self.leases = Leases(threads, self.relay.process, lease, shared=self.relay.shared)
        self._watch: asyncio.Task[None] | None = None

    async def start(self, heir: Heir, stop: Callable[[str], None]) -> None:
        """Listen to other processes, and end the turns of dead ones, now and from now on.

        `heir` returns the function that ends a turn of an owner; `stop` is called with a thread whose turn is lost.
        """

        async def end(thread: str, lease: Lease) -> None:
            await (await heir(lease.owner))(thread, lease)

        await self.relay.start()
        for thread, lease in (await asyncio.to_thread(self.leases.all)).items():
            if not (self.relay.shared and lease.process):
                with suppress(EverlongError):
                    await self.leases.take_over(thread, lease, end)
        if self.relay.shared:
            self._watch = asyncio.create_task(self.leases.watch(end, stop), name="leases")

    async def close(self) -> None:
        """Close everything. The turns must have ended before."""
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.wait([self._watch])
        with suppress(EverlongError):
            await asyncio.to_thread(self.leases.close)
        await self.relay.close()

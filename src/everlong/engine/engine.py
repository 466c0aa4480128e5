"""The engine: every call prepared, every answer learned from, every refusal recovered, off the event loop."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from everlong.core import Message, Pin, Point, Row
from everlong.engine.blocking import BlockingEngine
from everlong.engine.calls import Call, Prepared
from everlong.engine.means import Means, Observer
from everlong.engine.previewing import Preview
from everlong.engine.recalling import Found
from everlong.engine.replies import Model
from everlong.engine.settings import DEFAULT_SETTINGS, Settings
from everlong.engine.threads import Threads
from everlong.errors import ContextOverflow, ProviderError
from everlong.windows import Registry
from everlong.wire import Usage

__all__ = ["Engine"]


class Engine:
    """Runs conversations that are kept in a store. One for a whole program.

    Counting, cutting and the store's own waiting happen in worker threads; the event loop goes on meanwhile.
    """

    def __init__(
        self,
        threads: Threads,
        *,
        settings: Settings = DEFAULT_SETTINGS,
        registry: Registry | None = None,
        clock: Callable[[], datetime] | None = None,
        new_id: Callable[[], str] | None = None,
        observers: Sequence[Observer] = (),
    ) -> None:
        given: dict[str, Any] = {"clock": clock, "new_id": new_id}
        chosen = {name: value for name, value in given.items() if value is not None}
        means = Means(threads=threads, settings=settings, registry=registry, observers=tuple(observers), **chosen)
        #: Called with every request that was answered and its model, in the event loop; they must not wait.
        self.after_turn: list[Callable[[Prepared, Model], None]] = []
        #: The same engine for those without an event loop.
        self.blocking = BlockingEngine(means)

    @property
    def threads(self) -> Threads:
        """The store."""
        return self.blocking.means.threads

    async def append(
        self, thread: str, messages: Sequence[Message] | Sequence[Mapping[str, Any]], *, owner: str = ""
    ) -> tuple[Row, ...]:
        """Add messages to a thread, values or dicts of any wire format; a thread that is not there yet is made."""
        return await asyncio.to_thread(self.blocking.append, thread, messages, owner=owner)

    async def prepare(self, thread: str, call: Call) -> Prepared:
        """What is to be sent now: it fits, it is valid, and begins as the request before did, unless a cut was due."""
        return await asyncio.to_thread(self.blocking.prepare, thread, call)

    async def preview(self, thread: str, call: Call) -> Preview:
        """How full the window is: what would be sent now, looked at without sending it."""
        return await asyncio.to_thread(self.blocking.preview, thread, call)

    async def record_usage(
        self, prepared: Prepared, usage: Usage | None, *, stop: str = "stop", said: bool = True
    ) -> ContextOverflow | None:
        """The call was answered. An overflow that came as a success is given back: recover from it."""
        return await asyncio.to_thread(self.blocking.record_usage, prepared, usage, stop=stop, said=said)

    async def record_failure(self, prepared: Prepared, reason: str) -> None:
        """The call came to nothing; its turn is over."""
        await asyncio.to_thread(self.blocking.record_failure, prepared, reason)

    async def recover(self, prepared: Prepared, error: ProviderError) -> Prepared:
        """Another request to try after a refusal. Raises what the caller must hear where there is none."""
        return await asyncio.to_thread(self.blocking.recover, prepared, error)

    async def compact(self, thread: str, call: Call) -> Point | None:
        """Cut now, because someone asks for it. None if there is nothing worth cutting."""
        return await asyncio.to_thread(self.blocking.compact, thread, call)

    async def undo(self, thread: str) -> Row | None:
        """Withdraw the newest compaction. None if none stands."""
        return await asyncio.to_thread(self.blocking.undo, thread)

    async def pin(self, thread: str, order: int | None = None, text: str = "") -> Pin:
        """Keep a message, or a text of one's own, in every request."""
        return await asyncio.to_thread(self.blocking.pin, thread, order, text)

    async def unpin(self, thread: str, pin: str) -> None:
        """Let it go."""
        await asyncio.to_thread(self.blocking.unpin, thread, pin)

    async def recall(self, thread: str, what: str, *, limit: int = 10) -> Found:
        """What a reference names, byte for byte, or what answers a query."""
        return await asyncio.to_thread(self.blocking.recall, thread, what, limit=limit)

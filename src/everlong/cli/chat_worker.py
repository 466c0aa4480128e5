"""An event loop in a thread of its own: the agent works there, the main thread has the terminal.

So summaries go on while someone types, the terminal is read and drawn by one thread alone, and a signal never
interrupts the middle of the agent's work.
"""

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Self, TypeVar

__all__ = ["Worker"]

T = TypeVar("T")


class Worker:
    """Runs coroutines while it is entered; those that are left at the end are cancelled and waited for."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="everlong-chat", daemon=True)

    def start(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        """Begin it; whoever wants to know waits for the future."""
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Its result. Ctrl-C cancels it, and is raised at once."""
        running = self.start(work)
        try:
            return running.result()
        except KeyboardInterrupt:
            running.cancel()
            raise

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    async def _end(self) -> None:
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        await self.loop.shutdown_asyncgens()
        await self.loop.shutdown_default_executor()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.start(self._end()).result()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()

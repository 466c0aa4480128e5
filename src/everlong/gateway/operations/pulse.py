"""Watches whether the store answers, and how fast, all the time and not only when it is needed.

The gateway works without its store: answers are forwarded, writes wait or are lost, and conversations that this process
does not know start again. So a process without its store is degraded, not unready: all replicas share the store, and
otherwise none of them would be left.
"""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter

from everlong.errors import EverlongError
from everlong.gateway.conversations.state_store import StateStore
from everlong.gateway.operations.metrics import Metrics
from everlong.jobs import Jobs

__all__ = ["Pulse"]

EVERY = 10.0  # seconds between two checks
SLOW = 5.0  # seconds after which a store that does not answer counts as gone
KIND = "gateway/pulse"


class Pulse:
    """Watches the store. `store_answers` is None until the first check."""

    def __init__(self, store: StateStore, jobs: Jobs, metrics: Metrics) -> None:
        self._store = store
        self._jobs = jobs
        self._metrics = metrics
        # A separate thread: a store that hangs must not block one that requests need.
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="everlong-pulse")
        self.store_answers: bool | None = None

    async def run(self) -> None:
        """Check regularly, until cancelled."""
        try:
            while True:
                await self.look()
                await asyncio.sleep(EVERY)
        finally:
            self._thread.shutdown(wait=False)

    async def look(self) -> None:
        """Check once. Returns when the store has answered or failed; a slow store is reported before that."""
        self._metrics.worked(self._jobs.counts())
        loop = asyncio.get_running_loop()
        started = perf_counter()
        looking = loop.run_in_executor(self._thread, self._store.store.fact, KIND, "store")
        slow = loop.call_later(SLOW, self._note, False)
        try:
            await looking
        except EverlongError:
            self._note(False)
        else:
            self._metrics.store_answered(perf_counter() - started)
            self._note(True)
        finally:
            slow.cancel()

    def _note(self, answers: bool) -> None:
        self.store_answers = answers
        self._metrics.store_is_up(answers)

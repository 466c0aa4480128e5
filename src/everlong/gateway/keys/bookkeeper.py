"""Everything about keys in one process: their owners, what they may do, and what they spend.

The cost of a request, with summaries and titles, comes from the engine's events; for a request that is not managed,
from the usage in its answer.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable

from everlong.core import Event
from everlong.engine import Threads, cost_of
from everlong.errors import EverlongError
from everlong.gateway.config import NO_LIMITS, GatewayConfig
from everlong.gateway.keys.accounts import Asked
from everlong.gateway.keys.limits import Limiter
from everlong.gateway.keys.records import REFRESHED, KeyRecords, KeyRing
from everlong.gateway.keys.spend import Ledger, Spend, spend_of
from everlong.windows import Prices, Registry, window
from everlong.wire import Usage

__all__ = ["Bookkeeper"]

MOST_OWNERS = 20_000  # threads whose keys are remembered
USUAL_ANSWER = 1_000  # tokens of an answer that are reserved before it is known


class Bookkeeper:
    """The keys, limits and spending of one process. `shared` says whether other processes serve the same keys.

    `threads` are the threads of the engine's events; their owner is the scope of a key.
    """

    def __init__(
        self,
        config: GatewayConfig,
        store: Threads,
        threads: Threads,
        *,
        shared: bool,
        registry: Registry | None = None,
        spent: Callable[[float], None] = lambda _: None,
    ) -> None:
        self._config = config
        self._threads = threads
        self._registry = registry
        self._spent = spent
        self._owners: OrderedDict[str, str] = OrderedDict()
        self.records = KeyRecords(store)
        self.ring = KeyRing(config.keys, self.records)
        self.ledger = Ledger(store)
        self.limiter = Limiter(store, self.ledger, shared=shared)

    async def run(self) -> None:
        """Read the store's keys and write the spending at intervals. Ends when cancelled."""
        await asyncio.gather(self.limiter.run(), self._refresh())

    async def _refresh(self) -> None:
        while True:
            await asyncio.sleep(REFRESHED)
            await asyncio.to_thread(self.ring.refresh)

    def close(self) -> None:
        """Write what is left. Call it before the store is closed, outside the event loop."""
        self.limiter.close()

    def price(self, model: str, tokens: int, answer: int | None) -> float:
        """Return about how many dollars a request of this many tokens will cost; 0 if no price is known.

        `answer` is the most tokens that its answer may have, if known.
        """
        usage = Usage(prompt=tokens, output=min(answer or USUAL_ANSWER, USUAL_ANSWER))
        return cost_of(usage, self._prices(model)) or 0.0

    def assign(self, thread: str, name: str) -> None:
        """Remember the key of a thread: a thread of which only digests and counts are held is not in the store."""
        if name:
            self._owners.pop(thread, None)
            self._owners[thread] = name
            while len(self._owners) > MOST_OWNERS:
                self._owners.popitem(last=False)

    def observe(self, thread: str, event: Event) -> None:
        """Count the spending in an engine event for the key of the thread."""
        spend = spend_of(event)
        if spend is not None and self.ring.names:
            self._add(self._owners.get(thread) or self._owner_kept(thread), spend)

    def _owner_kept(self, thread: str) -> str:
        try:
            return self.ring.names.get(self._threads.thread(thread).owner, "")
        except EverlongError:  # the thread was dropped meanwhile
            return ""

    def note(self, name: str, asked: Asked, model: str = "", usage: Usage | None = None) -> None:
        """Count a finished request of a key. With `model`, also count its cost, which no event reports.

        Without a usage, the estimate counts: the request did cost something.
        """
        spend = Spend(requests=1)
        if model and usage is not None:
            dollars = cost_of(usage, self._prices(model))
            spend = Spend(1, usage.prompt, usage.output, dollars or 0.0, unpriced=int(dollars is None))
            self._spent(spend.dollars)
        elif model and asked.tokens:
            spend = Spend(1, asked.tokens, 0, asked.dollars, unpriced=int(not asked.dollars))
        self._add(name, spend)

    def _add(self, name: str, spend: Spend) -> None:
        if not name:
            return
        self.ledger.add(name, spend)
        if (spend.tokens or spend.dollars) and self.ring.limits_of(name) != NO_LIMITS:
            self.limiter.spend(name, spend)

    def _prices(self, model: str) -> Prices:
        return window(self._config.deployment(model).model, registry=self._registry).prices

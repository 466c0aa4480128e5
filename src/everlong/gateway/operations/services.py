"""The services of one process: everything that requests need and that outlives them."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from time import monotonic

from everlong.engine import Author, Engine, Observer, Summaries
from everlong.errors import InputError, Refused
from everlong.gateway.chains.links import Chains
from everlong.gateway.clients import Client, Clients, Limiter
from everlong.gateway.config import GatewayConfig
from everlong.gateway.conversations.conversations import Conversations
from everlong.gateway.conversations.opaque import OpaqueMemory
from everlong.gateway.conversations.persistence import MemoryFirstThreads, StateStore
from everlong.gateway.operations.metrics import Metrics
from everlong.gateway.operations.reports import Hints, Recent
from everlong.gateway.surfaces import FORMATS
from everlong.gateway.upstreams.connections import UpstreamConnections, UpstreamModels
from everlong.gateway.upstreams.routing import Routes
from everlong.store import default_store, is_remote, open_store
from everlong.windows import Registry

__all__ = ["HEAVY", "Services", "services_for"]

HEAVY = 1024 * 1024  # bytes of a request that takes its turn
HEAVY_AT_ONCE = 2


@dataclass(slots=True, kw_only=True)
class Services:
    """The parts of the gateway, made once for a process and closed with it."""

    config: GatewayConfig
    routes: Routes
    clients: Clients
    limiter: Limiter
    forwarding: UpstreamConnections
    engine: Engine
    summaries: Summaries
    state_store: StateStore
    conversations: Conversations
    opaque: OpaqueMemory
    chains: Chains
    models: UpstreamModels
    recent: Recent
    metrics: Metrics
    hints: Hints
    #: Held while a heavy request is read and prepared: a few at a time, so that threads are left for all others.
    heavy: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(HEAVY_AT_ONCE))
    #: Called when the server is about to end, before it waits for requests under way.
    ending: list[Callable[[], None]] = field(default_factory=list)

    @asynccontextmanager
    async def turn(self, size: int) -> AsyncIterator[None]:
        """Wait for a turn if a request of so many bytes is heavy; small ones pass by."""
        if size <= HEAVY:
            yield
            return
        async with self.heavy:
            yield

    async def close(self) -> None:
        """End what is under way in the background, write what is left, close everything."""
        with suppress(TimeoutError):  # a summary that is not finished by then is written again when it is needed
            async with asyncio.timeout(self.config.grace):
                await self.summaries.drain()
        for conversation in self.conversations.all():
            self.conversations.keep_marks(conversation)
        await self.models.close()
        await self.forwarding.close()
        self.state_store.close()


def services_for(
    config: GatewayConfig,
    routes: Routes,
    environment: Mapping[str, str],
    *,
    registry: Registry | None = None,
    observers: tuple[Observer, ...] = (),
    ticks: Callable[[], float] = monotonic,
) -> Services:
    """Return the services for a configuration. Opens the store; raises for a bad one before anyone listens."""
    url = config.store or default_store(environment, sys.platform)
    near = not is_remote(url)
    state_store = StateStore(
        open_store(url), keep=config.keep, retention=timedelta(days=config.retention_days), near=near
    )
    metrics = Metrics()
    threads = MemoryFirstThreads(state_store, ticks)
    hints = Hints()
    watching = (metrics.observe, hints.observe, *observers)
    engine = Engine(threads, settings=config.engine, registry=registry, observers=watching)
    models = UpstreamModels()
    return Services(
        config=config,
        routes=routes,
        clients=Clients(config.keys, pass_through=not config.keys),
        limiter=Limiter(ticks),
        forwarding=UpstreamConnections(connect=config.connect_timeout, silence=config.silence_timeout),
        engine=engine,
        summaries=Summaries(engine, _authors(config, routes, models), own_model=not config.summary_model),
        state_store=state_store,
        conversations=Conversations(engine, state_store, room=int(config.memory), began=metrics.began),
        opaque=OpaqueMemory(state_store),
        chains=Chains(state_store, int(config.memory) // 4),
        models=models,
        recent=Recent(state_store),
        metrics=metrics,
        hints=hints,
    )


def _authors(config: GatewayConfig, routes: Routes, models: UpstreamModels) -> list[Author]:
    """The author of summaries if a model is named for them: on one of the upstreams, with its own key."""
    if not config.summary_model:
        return []
    # A format whose server may hold conversations comes last: a summary needs none.
    for format_ in sorted(FORMATS.values(), key=lambda each: bool(each.api.held_elsewhere)):
        try:
            upstream = routes.choose(config.summary_model, format_.name)
        except Refused:
            continue
        model = models.of(upstream, Client(scope=""), format_.name)
        return [Author(model=model, name=routes.model_sent(upstream, config.summary_model))]
    raise InputError(f"no upstream answers for the summary model {config.summary_model!r}")

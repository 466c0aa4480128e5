"""The services of one process: everything that requests need and that outlives them."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from time import monotonic

from everlong.engine import Author, Background, Engine, Observer, Summaries
from everlong.errors import InputError, Refused
from everlong.extras import expect_extras
from everlong.gateway.chains.links import Chains
from everlong.gateway.clients import Client, Clients
from everlong.gateway.config import GatewayConfig
from everlong.gateway.conversations.carriage import ConversationCarrier
from everlong.gateway.conversations.conversations import Conversations
from everlong.gateway.conversations.memory_threads import MemoryFirstThreads
from everlong.gateway.conversations.opaque import OpaqueMemory
from everlong.gateway.conversations.state_store import StateStore
from everlong.gateway.keys.bookkeeper import Bookkeeper
from everlong.gateway.operations.metrics import Metrics
from everlong.gateway.operations.pulse import Pulse
from everlong.gateway.operations.reports import Hints, Recent
from everlong.gateway.surfaces import FORMATS
from everlong.gateway.traces import Traces, set_up_traces
from everlong.gateway.upstreams.circuits import Circuits
from everlong.gateway.upstreams.connections import UpstreamConnections, UpstreamModels
from everlong.gateway.upstreams.routing import Routes
from everlong.jobs import Jobs, LocalJobs, Period
from everlong.store import database_url, default_store, is_remote, open_store
from everlong.windows import Registry

__all__ = ["HEAVY", "Services", "services_for"]

HEAVY = 1024 * 1024  # bytes from which requests wait for their turn
HEAVY_AT_ONCE = 2
MEMORY = "memory:"


OF_CONVERSATIONS = "conversation summary"  # the kind of summary jobs


@dataclass(slots=True, kw_only=True)
class Services:
    """The parts of the gateway, created once per process and closed with it."""

    config: GatewayConfig
    routes: Routes
    clients: Clients
    keys: Bookkeeper
    forwarding: UpstreamConnections
    engine: Engine
    jobs: Jobs
    summaries: Summaries
    state_store: StateStore
    conversations: Conversations
    opaque: OpaqueMemory
    chains: Chains
    models: UpstreamModels
    recent: Recent
    metrics: Metrics
    hints: Hints
    pulse: Pulse
    traces: Traces
    #: Held while a large request is read and prepared; only a few at a time, so that threads are left for the others.
    heavy: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(HEAVY_AT_ONCE))
    #: Called when the server is about to end, before it waits for requests in progress.
    ending: list[Callable[[], None]] = field(default_factory=list)

    @property
    def keeps_texts(self) -> bool:
        """Whether whole conversations are stored."""
        return self.config.keep == "text"

    @asynccontextmanager
    async def turn(self, size: int) -> AsyncIterator[None]:
        """Wait for a turn if a request of this many bytes is large; small ones do not wait."""
        if size <= HEAVY:
            yield
            return
        async with self.heavy:
            yield

    async def close(self) -> None:
        """End background work, write what is left, and close everything."""
        await self.jobs.close(self.config.grace)  # unfinished jobs are given back, or started again later
        for conversation in self.conversations.all():
            self.conversations.keep_marks(conversation)
        self.conversations.store_learned()
        await self.models.close()
        await self.forwarding.close()
        await asyncio.to_thread(self.keys.close)
        self.state_store.close()
        await asyncio.to_thread(self.traces.flush)


def services_for(
    config: GatewayConfig,
    routes: Routes,
    environment: Mapping[str, str],
    *,
    registry: Registry | None = None,
    observers: tuple[Observer, ...] = (),
    ticks: Callable[[], float] = monotonic,
) -> Services:
    """Return the services for a configuration. Opens the store; raises if it cannot, before the port is open."""
    url = config.store or default_store(environment, sys.platform)
    traces = set_up_traces(environment)
    state_store = _state_store(config, url, traces)
    metrics = Metrics()
    threads = MemoryFirstThreads(state_store, ticks)
    hints = Hints()
    shared = state_store.shared
    keys = Bookkeeper(config, state_store.store, threads, shared=shared, registry=registry, spent=metrics.spent)
    keys.ring.refresh()
    _expect_keys(config, keys)
    watching = (metrics.observe, hints.observe, keys.observe, *observers)
    engine = Engine(threads, settings=config.engine, registry=registry, observers=watching)
    models = UpstreamModels()
    conversations = Conversations(engine, state_store, room=int(config.memory), began=metrics.began)
    jobs = _jobs(config, url, state_store, keys)
    carrier = ConversationCarrier(conversations, state_store, routes, models, own_author=bool(config.summary_model))
    return Services(
        config=config,
        routes=routes,
        clients=Clients(keys.ring, closed=config.closed),
        keys=keys,
        forwarding=UpstreamConnections(
            connect=config.connect_timeout,
            silence=config.silence_timeout,
            circuits=Circuits(
                ticks, failures=config.circuit_failures, longest=config.circuit_pause, note=metrics.circuit
            ),
            traces=traces,
            trace_upstream=config.trace_upstream,
        ),
        engine=engine,
        jobs=jobs,
        summaries=Summaries(
            engine,
            _authors(config, routes, models),
            own_model=not config.summary_model,
            background=Background(jobs, carrier, summaries=OF_CONVERSATIONS, claim=conversations.claim_summary),
        ),
        state_store=state_store,
        conversations=conversations,
        opaque=OpaqueMemory(state_store),
        chains=Chains(state_store, int(config.memory) // 4),
        models=models,
        recent=Recent(state_store),
        metrics=metrics,
        hints=hints,
        pulse=Pulse(state_store, jobs, metrics),
        traces=traces,
    )


def _state_store(config: GatewayConfig, url: str, traces: Traces) -> StateStore:
    near = not is_remote(url)
    # Memory belongs to one process; a file may be shared if several processes serve.
    shared = not near or (config.workers > 1 and url != MEMORY)
    retention = timedelta(days=config.retention_days)
    store = traces.store(open_store(url))
    return StateStore(store, keep=config.keep, retention=retention, near=near, shared=shared)


def _expect_keys(config: GatewayConfig, keys: Bookkeeper) -> None:
    """Raise InputError if the gateway demands a key but there is none, so that nobody could use it."""
    if config.closed and not keys.ring.any:
        raise InputError(
            f"{config.host or 'an empty host'} can be reached from other machines, and no keys are set: create one "
            "with `everlong keys create NAME`, add [[keys]], or set open = true (--open) to serve everyone"
        )


def _jobs(config: GatewayConfig, url: str, state_store: StateStore, keys: Bookkeeper) -> Jobs:
    """Return the runner of jobs: shared by all processes on the store's database, else for this process."""
    database = database_url(url)
    jobs: Jobs
    if database is None:
        jobs = LocalJobs(config.jobs_at_once)
    else:
        expect_extras("Postgres", "postgres")
        from everlong.jobs import Lease, PostgresJobs  # noqa: PLC0415 - needs an extra

        lease = Lease.of(config.jobs_lease)
        jobs = PostgresJobs(database, at_once=config.jobs_at_once, works=config.jobs == "here", lease=lease)

    async def sweep() -> None:
        await asyncio.to_thread(state_store.sweep)
        await asyncio.to_thread(keys.ledger.sweep)
        await jobs.forget(round(24 * config.retention_days))

    jobs.every(Period.HOUR, "sweep", sweep)
    return jobs


def _authors(config: GatewayConfig, routes: Routes, models: UpstreamModels) -> list[Author]:
    """The author of summaries, if a model is set for them: at one of the upstreams, with its own key."""
    if not config.summary_model:
        return []
    # Formats whose servers may store conversations come last: a summary does not need that.
    for format_ in sorted(FORMATS.values(), key=lambda each: bool(each.api.held_elsewhere)):
        try:
            upstream = routes.choose(config.summary_model, format_.name)
        except Refused:
            continue
        model = models.of(upstream, Client(scope=""), format_.name)
        return [Author(model=model, name=routes.model_sent(upstream, config.summary_model))]
    raise InputError(f"no upstream serves the summary model {config.summary_model!r}")

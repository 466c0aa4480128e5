"""The state of the running app: its engine and store, its settings and models, and what is live in it."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from everlong.agent import DEFAULT_CONFIG, OWN_TOOLS, AgentConfig, Changes, McpServers, Sandbox, sandbox_of
from everlong.core import Event, JsonObject, Thread
from everlong.engine import Engine, Threads
from everlong.errors import EverlongError, NoThread
from everlong.web.live.approval import Approvals
from everlong.web.live.compaction import Compactions
from everlong.web.live.hub import Hub
from everlong.web.live.turns import Turns
from everlong.web.live.updates import LiveUpdates
from everlong.web.state.agents import Agents
from everlong.web.state.models import Models
from everlong.web.state.reach import Reach
from everlong.web.state.settings import OWNER, AppSettings, load_settings, save_settings
from everlong.web.state.sources import Source, Sources
from everlong.web.state.view import ThreadView
from everlong.windows import Registry

__all__ = ["EVERYBODY", "LIVE", "AppState", "Setup"]

EVERYBODY = ""  # whose requests are watched where a gateway has no keys
LIVE = "\0"  # begins the channels of the gateway's requests; no thread has such a name
SWEEP_SECONDS = 6 * 3_600.0  # between two searches for threads that are too old


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What the app is made from. `sources` are the server's own; without `sources_file`, added ones are not stored."""

    threads: Threads
    sources: Sequence[Source] = ()
    sources_file: Path | None = None
    config: AgentConfig = DEFAULT_CONFIG
    registry: Registry | None = None
    #: Starts the model on this machine, which may take a while, and returns its source; None if there is none.
    start_local: Callable[[], Source] | None = None
    #: Returns whose requests may be watched, by the headers of who asks; raises Refused. None: everybody's.
    watched: Callable[[Sequence[tuple[bytes, bytes]]], str] | None = None
    #: Whether only this machine reaches the app: sources may then be on this machine and in its network.
    near: bool = True
    #: Seconds that the question of a tool waits for an answer.
    answer_seconds: float = 600.0


class AppState:
    """Everything that the endpoints work with. Start and close it in the event loop that it serves."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.threads = setup.threads
        self.hub = Hub()
        self.sources = Sources(setup.sources, setup.sources_file, Reach(setup.near))
        self.models = Models(self.sources, setup.threads, setup.registry)
        self.settings = AppSettings()
        self.config = replace(setup.config, owner=OWNER)
        self.engine = Engine(
            setup.threads, settings=setup.config.engine, registry=setup.registry, observers=(self._observe,)
        )
        self.changes = Changes(self.config.workspace, self.config.allowed)
        self.approvals = Approvals(self.hub, seconds=setup.answer_seconds)
        permissions = self.config.permissions(self.approvals.approve)
        self.agents = Agents(self.engine, self.models, self.config, permissions)
        self.view = ThreadView(self.engine)
        self.updates = LiveUpdates(self.engine, self.hub, self.agents, self.view)
        self.compactions = Compactions(self.engine, self.hub, self.agents, self.models, self.updates)
        self.turns = Turns(self.engine, self.hub, self.agents, self.updates, self.compactions)
        #: The sandbox of the shell, once it is started.
        self.sandbox = Sandbox("")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stack = AsyncExitStack()
        self._sweeper: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Load the settings, try the sandbox, start MCP servers, and remove old threads from now on."""
        self._loop = asyncio.get_running_loop()
        self.sandbox = await asyncio.to_thread(sandbox_of, self.config)
        self._apply(await asyncio.to_thread(load_settings, self.threads))
        if self.config.mcp:
            servers = McpServers(self.config.mcp, taken=OWN_TOOLS)
            self.agents.mcp_tools = (await self._stack.enter_async_context(servers)).tools
        self._sweeper = asyncio.create_task(self._sweep_forever())

    async def close(self) -> None:
        """Stop turns, let summaries and titles finish for a while, close connections. The store stays open."""
        if self._sweeper is not None:
            self._sweeper.cancel()
            with suppress(asyncio.CancelledError):
                await self._sweeper
        self.hub.close()
        await self.turns.close()
        await self.compactions.close()
        await self.updates.close()
        await self._stack.aclose()
        await self.models.close()
        self._loop = None

    def end_streams(self) -> None:
        """End the streams of all pages, so that the server can end. Safe in any thread and in a signal handler."""
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop has ended meanwhile
                self._loop.call_soon_threadsafe(self.hub.close)

    def known(self, thread: str) -> Thread:
        """Return a thread of the app. Raises NoThread, also for threads of other programs in the same store."""
        stored = self.threads.thread(thread)
        if stored.owner != OWNER:
            raise NoThread(f"there is no thread {thread!r}")
        return stored

    async def change_settings(self, settings: AppSettings) -> None:
        """Store other settings and use them from the next request on."""
        await asyncio.to_thread(save_settings, self.threads, settings)
        self._apply(settings)
        await self.sweep()

    def sources_changed(self) -> None:
        """Choose the models for summaries and titles again, because a source came or went."""
        self._apply(self.settings)

    def report_request(self, request: JsonObject, owner: str = EVERYBODY) -> None:
        """Report a request of the gateway to those who watch its owner. Call it in the event loop of the app."""
        self.hub.publish(LIVE + owner, request)

    def _apply(self, settings: AppSettings) -> None:
        self.settings = self.agents.settings = settings
        blocking = self.engine.blocking
        blocking.context = replace(blocking.context, settings=settings.over(self.config.engine))
        self.compactions.apply(settings)

    def _observe(self, thread: str, event: Event) -> None:
        """Accept an event of the engine, which may come in any thread."""
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop has ended meanwhile
                self._loop.call_soon_threadsafe(self.compactions.observe, thread, event)

    async def sweep(self) -> int:
        """Remove the threads that are older than the settings allow, and return how many."""
        days = self.settings.retention_days
        return 0 if days is None else await asyncio.to_thread(self._remove_older, days)

    def _remove_older(self, days: int) -> int:
        before = datetime.now(UTC) - timedelta(days=days)
        old = [
            thread.id
            for thread in self.threads.threads(owner=OWNER, archived=None)
            if thread.updated < before and not self.turns.running(thread.id)
        ]
        for thread in old:
            self.threads.remove(thread)
        return len(old)

    async def _sweep_forever(self) -> None:
        while True:
            with suppress(EverlongError):
                await self.sweep()
            await asyncio.sleep(SWEEP_SECONDS)

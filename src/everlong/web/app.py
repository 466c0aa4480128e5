"""The app's one object: the engine on its store, who speaks, what is chosen, and who is told what happens."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from everlong.agent import DEFAULT_CONFIG, AgentConfig, McpServers, standard_tools
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
from everlong.web.state.settings import OWNER, AppSettings, load_settings, save_settings
from everlong.web.state.sources import Source, Sources
from everlong.web.state.view import ThreadView
from everlong.windows import Registry

__all__ = ["LIVE", "AppState", "Setup"]

LIVE = ""  # the channel of the gateway's requests; no thread has that name
SWEEPING = 6 * 3_600.0  # seconds between two looks for threads that are too old


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What the app is made of. `sources` were given by who starts it; `sources_file` None keeps no added ones."""

    threads: Threads
    sources: Sequence[Source] = ()
    sources_file: Path | None = None
    config: AgentConfig = DEFAULT_CONFIG
    registry: Registry | None = None
    #: Starts the model of this machine, which may take a while, and says where it is; None where there is none.
    start_local: Callable[[], Source] | None = None
    #: Seconds that a question of a tool waits for its answer.
    answer_seconds: float = 600.0


class AppState:
    """Everything that the endpoints work with. Made anywhere, started and closed in the event loop that it serves."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.threads = setup.threads
        self.hub = Hub()
        self.sources = Sources(setup.sources, setup.sources_file)
        self.models = Models(self.sources, setup.threads, setup.registry)
        self.settings = AppSettings()
        self.config = replace(setup.config, owner=OWNER)
        self.engine = Engine(
            setup.threads, settings=setup.config.engine, registry=setup.registry, observers=(self._observe,)
        )
        self.approvals = Approvals(self.hub, seconds=setup.answer_seconds)
        self.agents = Agents(self.engine, self.models, self.config, self.approvals.approve)
        self.view = ThreadView(self.engine)
        self.updates = LiveUpdates(self.engine, self.hub, self.agents, self.view)
        self.compactions = Compactions(self.engine, self.hub, self.agents, self.models, self.updates)
        self.turns = Turns(self.engine, self.hub, self.agents, self.updates, self.compactions)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stack = AsyncExitStack()
        self._sweeping: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin: read the settings, start MCP servers, look for what is too old."""
        self._loop = asyncio.get_running_loop()
        self._apply(await asyncio.to_thread(load_settings, self.threads))
        if self.config.mcp:
            taken = [tool.name for tool in standard_tools()]
            servers = McpServers(self.config.mcp, taken=[*taken, "recall", "todo", "spawn", "read_subagent"])
            self.agents.more = (await self._stack.enter_async_context(servers)).tools
        self._sweeping = asyncio.create_task(self._swept())

    async def close(self) -> None:
        """End: stop turns, let summaries and titles end for a while, let go of connections. The store stays open."""
        if self._sweeping is not None:
            self._sweeping.cancel()
            with suppress(asyncio.CancelledError):
                await self._sweeping
        self.hub.close()
        await self.turns.close()
        await self.compactions.close()
        await self.updates.close()
        await self._stack.aclose()
        await self.models.close()
        self._loop = None

    def end_streams(self) -> None:
        """Let every page go, so that a server can end; may be called in any thread, and by a signal."""
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop has ended meanwhile
                self._loop.call_soon_threadsafe(self.hub.close)

    def known(self, thread: str) -> Thread:
        """A thread of the app; one of another program in the same store is none. Raises NoThread."""
        found = self.threads.thread(thread)
        if found.owner != OWNER:
            raise NoThread(f"there is no thread {thread!r}")
        return found

    async def change_settings(self, settings: AppSettings) -> None:
        """Keep other settings; they count from the next request on."""
        await asyncio.to_thread(save_settings, self.threads, settings)
        self._apply(settings)
        await self.sweep()

    def sources_changed(self) -> None:
        """A source came or went: the models that write beside the conversation are chosen anew."""
        self._apply(self.settings)

    def tell_live(self, request: JsonObject) -> None:
        """A request went through the gateway: tell the pages that look on. In the event loop of the app."""
        self.hub.publish(LIVE, request)

    def _apply(self, settings: AppSettings) -> None:
        self.settings = self.agents.settings = settings
        blocking = self.engine.blocking
        blocking.means = replace(blocking.means, settings=settings.engine(self.config.engine))
        self.compactions.apply(settings)

    def _observe(self, thread: str, event: Event) -> None:
        """Called by the engine, in any thread."""
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop has ended meanwhile
                self._loop.call_soon_threadsafe(self.compactions.observe, thread, event)

    async def sweep(self) -> int:
        """Remove the threads that nobody touched for longer than they are to be kept; how many went."""
        days = self.settings.retention_days
        return 0 if days is None else await asyncio.to_thread(self._removed, days)

    def _removed(self, days: int) -> int:
        before = datetime.now(UTC) - timedelta(days=days)
        old = [
            thread.id
            for thread in self.threads.threads(owner=OWNER, archived=None)
            if thread.updated < before and not self.turns.running(thread.id)
        ]
        for thread in old:
            self.threads.remove(thread)
        return len(old)

    async def _swept(self) -> None:
        while True:
            with suppress(EverlongError):
                await self.sweep()
            await asyncio.sleep(SWEEPING)

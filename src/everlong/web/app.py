"""The state of the running app: its engine and store, its settings and models, and what is live in it."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from everlong.agent import DEFAULT_CONFIG, OWN_TOOLS, AgentConfig, Changes, McpServers, Sandbox, sandbox_of
from everlong.core import Event, JsonObject, Thread
from everlong.engine import Engine, Threads
from everlong.errors import EverlongError, NoThread
from everlong.jobs import Jobs, LocalJobs
from everlong.web.live.approval import Approvals
from everlong.web.live.compaction import Compactions
from everlong.web.live.hub import Place
from everlong.web.live.imports import Imports
from everlong.web.live.leases import End, Lease
from everlong.web.live.relay import Taker
from everlong.web.live.site import LEASE_SECONDS, Site
from everlong.web.live.turns import Turns
from everlong.web.live.updates import LiveUpdates
from everlong.web.state.agents import Agents
from everlong.web.state.failures import Failures
from everlong.web.state.kept import Kept
from everlong.web.state.local import LocalModel, StartLocal
from everlong.web.state.models import Models
from everlong.web.state.reach import Reach
from everlong.web.state.settings import OWNER, AppSettings, load_settings, save_settings
from everlong.web.state.shelf import Shelf
from everlong.web.state.sources import Source, Sources, Vault
from everlong.web.state.usage import Usage
from everlong.web.state.versions import Versions, is_hidden
from everlong.web.state.view import ThreadView
from everlong.web.users.accounts import User
from everlong.windows import Registry

__all__ = ["EVERYBODY", "LIVE", "AppState", "Setup"]

EVERYBODY = ""  # the owner of all requests if the gateway has no keys
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
    #: Starts the language model on this machine; None if there is none.
    start_local: StartLocal | None = None
    #: Finds or makes the sample thread of a language, and returns its name; None if there is no sample.
    sample: "Callable[[AppState, str], Awaitable[str]] | None" = None
    #: Whether a page without threads opens on the sample.
    opens_sample: bool = False
    #: Returns the owner whose requests a caller with these headers may watch; raises Refused. None: all requests.
    watched: Callable[[Sequence[tuple[bytes, bytes]]], str] | None = None
    #: Whether a gateway beside the app has client keys to manage.
    keys: bool = False
    #: Whether only this machine reaches the app: sources may then be on this machine and in its network.
    near: bool = True
    #: Seconds that the question of a tool waits for an answer.
    answer_seconds: float = 600.0
    #: Runs summaries and titles, with other processes if it can; None: this process alone.
    jobs: Jobs | None = None
    #: Seconds of silence after which a process counts as dead and its turns are ended.
    lease_seconds: float = LEASE_SECONDS
    #: The owner of the threads if the store has several users; then `threads` shows only this owner's.
    owner: str = ""
    #: Whether tools may be switched on.
    tools: bool = True
    #: Where added sources are kept, encrypted; None: in `sources_file`.
    vault: Vault | None = None


class AppState:
    """Everything that the endpoints work with. Start and close it in the event loop that it serves."""

    def __init__(self, setup: Setup, site: Site | None = None) -> None:
        self.setup = setup
        self.threads = setup.threads
        self._alone = site is None
        self.site = Site(setup.threads, lease=setup.lease_seconds) if site is None else site
        self.hub = self.site.hub
        self.sources = Sources(setup.sources, setup.sources_file, Reach(setup.near), setup.vault)
        self.models = Models(self.sources, setup.threads, setup.registry, setup.config.engine.window)
        self.kept = Kept(setup.threads)
        self.settings = AppSettings()
        self.config = replace(setup.config, owner=OWNER)
        self.engine = Engine(
            setup.threads, settings=setup.config.engine, registry=setup.registry, observers=(self._observe,)
        )
        self.changes = Changes(self.config.workspace, self.config.allowed)
        self.approvals = Approvals(self.site, setup.threads, seconds=setup.answer_seconds)
        self.permissions = self.config.permissions(self.approvals.approve)
        self.agents = Agents(self.engine, self.models, self.config, self.permissions, tools=setup.tools)
        self.versions = Versions(setup.threads)
        self.usage = Usage(setup.threads, setup.registry)
        self.shelf = Shelf(setup.threads, self.versions)
        self.imports = Imports(setup.threads, self.versions, setup.owner)
        self.view = ThreadView(self.engine, self.versions)
        self.updates = LiveUpdates(self.engine, self.hub, self.agents, self.view)
        jobs = setup.jobs or LocalJobs()
        self.compactions = Compactions(self.engine, self.hub, self.agents, self.models, self.updates, jobs)
        failures = Failures(setup.threads, self.models)
        self.turns = Turns(
            self.engine, self.site, self.agents, self.updates, self.compactions, failures, owner=setup.owner
        )
        self._takers: dict[str, Taker] = {
            "rows": self.updates.repeat_rows,
            "said": self._take_said,
            "stop": self._take_stop,
            "answer": self.approvals.take_answers,
            "cancel": self._take_cancel,
            "forget": self._take_forget,
            "settings": self._take_settings,
            "sources": self._take_sources,
            "missed": self._take_missed,
        }
        self.local = LocalModel(setup.start_local, self._give_source)
        #: The endpoints of this app, created by its routes.
        self.endpoints: object = None
        #: The sandbox of the shell, once it is started.
        self.sandbox = Sandbox("")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stack = AsyncExitStack()
        self._sweeper: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Load the settings, try the sandbox, start MCP servers, and remove old threads from now on."""
        self._loop = asyncio.get_running_loop()
        if self.setup.tools:
            self.sandbox = await asyncio.to_thread(sandbox_of, self.config)
        await asyncio.to_thread(self.sources.load)
        self._apply(await asyncio.to_thread(load_settings, self.threads))
        if self.config.mcp and self.setup.tools:
            servers = McpServers(self.config.mcp, taken=OWN_TOOLS)
            self.agents.mcp_tools = (await self._stack.enter_async_context(servers)).tools
        for name, taker in self._takers.items():
            self.site.relay.on(name, taker)
        self.site.relay.listen(self._process_event)
        if self._alone:
            await self.site.start(self._heir, self.turns.lose)
        self._sweeper = asyncio.create_task(self._sweep_forever())

    async def close(self) -> None:
        """Stop turns, let summaries and titles finish for a while, close connections. The store stays open."""
        if self._sweeper is not None:
            self._sweeper.cancel()
            with suppress(asyncio.CancelledError):
                await self._sweeper
        if self._alone:
            self.hub.close()
        await self.local.close()
        await self.turns.close()
        await self.compactions.close()
        await self.updates.close()
        self.site.relay.leave(self._takers, self._process_event)
        if self._alone:
            await self.site.close()
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
        self.site.relay.call("settings", owner=self.setup.owner)
        await self.sweep()

    def sources_changed(self) -> None:
        """Choose the models for summaries and titles again, because a source came or went."""
        self._apply(self.settings)
        self.site.relay.call("sources", owner=self.setup.owner)

    def _give_source(self, source: Source) -> None:
        """Add one of the server's own sources while it runs."""
        self.sources.give(source)
        self.sources_changed()

    def report_request(self, request: JsonObject, owner: str = EVERYBODY) -> None:
        """Report a request of the gateway to the pages that watch its owner. Call it in the event loop of the app."""
        self.hub.publish(LIVE + owner, request)

    # Events and calls of other processes.

    async def of(self, _: User) -> "AppState":
        """Return the app of a user: without accounts, always this one."""
        return self

    @property
    def idle(self) -> bool:
        """Whether nothing runs in it and no page listens."""
        return not self.turns.here and not any(map(self.hub.has_readers, self.updates.followed))

    async def _heir(self, _owner: str) -> End:
        return self.inherit

    async def inherit(self, thread: str, lease: Lease) -> None:
        """End the turn that a dead process left in a thread."""
        await asyncio.to_thread(self.approvals.forget, thread)
        await self.turns.inherit(thread, lease)

    async def _process_event(self, thread: str, event: JsonObject, place: Place | None) -> list[JsonObject]:
        if not self.updates.follows(thread):
            return [event]
        self.approvals.process_event(thread, event)
        return await self.turns.elsewhere.process_event(thread, event, place)

    async def _take_said(self, thread: str, _: JsonObject) -> None:
        if self.turns.runs_here(thread):
            await self.turns.take_handed(thread)

    async def _take_stop(self, thread: str, _: JsonObject) -> None:
        self.turns.stop_here(thread)

    async def _take_cancel(self, thread: str, _: JsonObject) -> None:
        self.compactions.cancel(thread)

    async def _take_forget(self, thread: str, _: JsonObject) -> None:
        self.hub.forget(thread)

    async def _take_sources(self, _: str, fields: JsonObject) -> None:
        if fields.get("owner") != self.setup.owner:
            return
        before = self.sources.added
        await asyncio.to_thread(self.sources.load)
        if before != self.sources.added:
            for source in {source.name for source in (*before, *self.sources.added)}:
                self.models.forget(source)
            self._apply(self.settings)

    async def _take_settings(self, _: str, fields: JsonObject) -> None:
        if fields.get("owner", self.setup.owner) != self.setup.owner:
            return
        settings = await asyncio.to_thread(load_settings, self.threads)
        if settings != self.settings:
            self._apply(settings)

    async def _take_missed(self, thread: str, fields: JsonObject) -> None:
        """Read again what may have been missed: pages reload their state, and messages for this process are taken."""
        if not thread:
            await self._take_settings(thread, fields)
            await self.approvals.take_answers()
            for name in self.turns.here:
                await self.turns.take_handed(name)
        elif self.updates.follows(thread):
            await self.look(thread)
            for event in self.hello(thread, behind=True):
                self.hub.repeat(thread, event)

    async def look(self, thread: str) -> None:
        """Read what other processes do in a thread and follow it from now on, for a page that opens it here."""
        self.hub.channel(thread)
        await self.updates.follow(thread)
        if self.site.relay.shared:
            await self.updates.title(thread)
        await self.turns.look(thread)
        await self.approvals.look(thread)

    def hello(self, thread: str, behind: bool) -> list[JsonObject]:
        """Return the present state of a thread as events."""
        title: JsonObject = {"type": "title", "title": self.updates.title_of(thread)}
        return [*self.turns.hello(thread, behind), title, *self.approvals.waiting(thread)]

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
        """Remove the conversations that are older than the settings allow, and return how many threads they were."""
        days = self.settings.retention_days
        return 0 if days is None else await asyncio.to_thread(self._remove_older, days)

    def _remove_older(self, days: int) -> int:
        before = datetime.now(UTC) - timedelta(days=days)
        old = [
            thread.id
            for thread in self.threads.threads(owner=OWNER, archived=None)
            if thread.updated < before
            and not self.turns.running(thread.id)
            and not is_hidden(json.loads(thread.metadata))
        ]
        return sum(self.remove(thread) for thread in old)

    def remove(self, thread: str) -> int:
        """Remove a conversation with all its versions, and return how many threads it was."""
        members = self.versions.remove(thread)
        for member in members:
            self.usage.keep(member)
            self.turns.forget(member)
            self.threads.remove(member)
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self.compactions.forget, member)
        return len(members)

    async def _sweep_forever(self) -> None:
        while True:
            with suppress(EverlongError):
                await self.sweep()
            await asyncio.sleep(SWEEP_SECONDS)

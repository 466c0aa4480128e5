"""The state of a chat: the agent, one thread at a time, and the last request. Draws nothing.

It lives in the worker's event loop; the terminal calls its coroutines.
"""

import asyncio
import json
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import uuid4

from everlong.agent import (
    NO_STANDING_CONTEXT,
    OWN_TOOLS,
    Agent,
    AgentConfig,
    AgentEvent,
    McpServers,
    Outcome as Ran,
    Permissions,
    Tool,
    workspace_agent,
)
from everlong.core import Event, EventKind, Message, Thread
from everlong.engine import (
    Author,
    Call,
    Engine,
    Finished,
    Meter,
    Model,
    Outcome,
    Prepared,
    Summaries,
    Threads,
    Titles,
    due_at,
    learned_window,
)
from everlong.errors import BudgetImpossible, InputError, NoThread, ThreadExists
from everlong.windows import Registry, Window, window
from everlong.wire import Usage

__all__ = ["Session", "Setup", "open_session"]

SHELL = "shell"  # the tool that runs typed commands
MOST_SECONDS = 600  # for a typed command; Ctrl-C stops it earlier
NOTICES = 200  # events that wait to be shown
PAUSE = 2.0  # seconds for background work when a person leaves
PATIENCE = 30.0  # seconds for it when a program waits for the end


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """The parts of a session. A `small` model reads slowly, so it writes no summaries and no titles."""

    threads: Threads
    model: Model
    config: AgentConfig
    permissions: Permissions
    tools: bool = True
    small: bool = False
    registry: Registry | None = None


class Session:
    """The current thread, the agent, and the last request."""

    def __init__(self, setup: Setup, more: tuple[Tool, ...] = ()) -> None:
        self.setup, self._more = setup, more
        self.config = setup.config
        #: Events of the conversation that were not shown yet; any system thread may add some.
        self.notices: deque[Event] = deque(maxlen=NOTICES)
        self.engine = Engine(
            setup.threads, settings=setup.config.engine, registry=setup.registry, observers=(self._observe,)
        )
        hosted = bool(setup.model.provider)
        writers = (Author(model=setup.model, name=self.config.summary_model),) if self.config.summary_model else ()
        self.summaries = Summaries(self.engine, writers, own_model=not setup.small)
        self.titles = Titles(self.engine, own_model=hosted and not setup.small)
        self.engine.after_turn.append(self._sent)
        self.thread = _new_thread_id()
        self.last: Prepared | None = None
        self._usage: Usage | None = None
        self.agent = self._build_agent()

    def _observe(self, thread: str, event: Event) -> None:
        if thread == self.thread:
            self.notices.append(event)

    def _sent(self, prepared: Prepared, model: Model) -> None:  # noqa: ARG002 - there is one model
        if prepared.thread == self.thread:
            self.last = prepared

    def _build_agent(self) -> Agent:
        setup, config = self.setup, self.config
        if not setup.tools:
            return Agent(self.engine, setup.model, (), config, NO_STANDING_CONTEXT, setup.permissions)
        return workspace_agent(self.engine, setup.model, config, more=self._more, permissions=setup.permissions)

    # --- the turn ---------------------------------------------------------------------------------

    async def turn(self, message: Message) -> AsyncGenerator[AgentEvent, None]:
        """Run a turn of the agent; the reported usage is remembered for the meter."""
        async with aclosing(self.agent.turn(self.thread, message)) as events:
            async for event in events:
                if isinstance(event, Finished):
                    self._usage = event.usage
                yield event

    def interrupt(self) -> bool:
        """Stop the running turn."""
        return self.agent.interrupt(self.thread)

    @property
    def has_shell(self) -> bool:
        """Whether commands can be run here."""
        return any(tool.name == SHELL for tool in self.agent.tools)

    async def run_typed(self, command: str) -> Ran:
        """Run a command in the shell of the agent's tools, in its sandbox. Raises InputError if it may not run."""
        return await self.agent.run_typed(self.thread, SHELL, {"command": command, "seconds": MOST_SECONDS})

    async def call(self) -> Call:
        """Return the call that would be made now, with its endpoint and served window."""
        call, model = await self.agent.call(self.thread), self.setup.model
        served = await model.served_window(call.model)
        return replace(call, fmt=model.fmt, endpoint=model.endpoint, provider=model.provider, served=served)

    async def window(self) -> Window:
        """Return the window of the model, as far as it is known without a request."""
        call = await self.call()
        return window(
            call.model,
            provider=call.provider,
            override=self.config.engine.window,
            learned=await asyncio.to_thread(learned_window, self.engine.threads, call),
            served=call.served,
            default=self.config.engine.assumed_window,
            registry=self.setup.registry,
        )

    async def preview(self) -> Prepared | None:
        """Return what would be sent now; None if the thread is empty."""
        with suppress(NoThread):
            call = await self.call()
            return (await self.engine.preview(self.thread, call)).prepared
        return None

    async def meter(self) -> Meter | None:
        """Return how full the window is: as reported if nothing has changed since then, else estimated.

        None if the thread is empty or cannot be made to fit.
        """
        try:
            known = await asyncio.to_thread(self.engine.threads.thread, self.thread)
            last = self.last
            if last is not None and known.length == last.length + 1 and known.points == last.compactions:
                meter = Meter.reported(last, self._usage)
                if meter is not None:
                    return meter
            previewed = await self.preview()
        except (NoThread, BudgetImpossible):
            return None
        return None if previewed is None else Meter.estimated(previewed)

    def forget_usage(self) -> None:
        """Forget the reported usage, because the thread was changed."""
        self._usage = None

    # --- what commands do -------------------------------------------------------------------------

    async def compact(self, focus: str) -> Outcome:
        """Write a summary now. Raises NoThread if the thread is empty."""
        outcome = await self.summaries.compact(self.thread, await self.call(), self.setup.model, focus=focus)
        if outcome.kind is EventKind.SUMMARY_APPLIED:
            self.forget_usage()
        return outcome

    async def set_threshold(self, share: float) -> None:
        """Set the threshold of this thread."""
        await asyncio.to_thread(self._set, {"threshold": share})

    async def threshold(self) -> tuple[float, int]:
        """Return the threshold of this thread: the share, and the tokens from which a compaction is due."""
        call = await self.call()
        try:
            own = (await asyncio.to_thread(self.engine.threads.thread, self.thread)).settings
            shown = await self.engine.preview(self.thread, call)
            return self.config.engine.for_thread(own).threshold_share, shown.threshold
        except NoThread:
            settings, threads = self.config.engine, self.engine.threads
            tokens = await asyncio.to_thread(due_at, threads, settings, call, registry=self.setup.registry)
            return settings.threshold_share, tokens

    def _set(self, settings: dict[str, object]) -> None:
        changed = json.dumps(json.loads(self.ensure_thread().settings) | settings)
        self.config.engine.for_thread(changed)  # raises if a value is wrong
        self.engine.threads.change(self.thread, settings=changed)

    def ensure_thread(self) -> Thread:
        """Return the thread; create it if it does not exist yet."""
        with suppress(ThreadExists):
            return self.engine.threads.create(self.thread, owner=self.config.owner)
        return self.engine.threads.thread(self.thread)

    async def title(self, title: str | None = None) -> str:
        """Return the title of the thread, after setting it if one is given."""
        if title is not None:
            await asyncio.to_thread(self.ensure_thread)
            await asyncio.to_thread(lambda: self.engine.threads.change(self.thread, title=title))
        with suppress(NoThread):
            return (await asyncio.to_thread(self.engine.threads.thread, self.thread)).title
        return ""

    async def use_model(self, name: str) -> None:
        """Continue with another model of the same endpoint."""
        if not name.strip():
            raise InputError("no model named: give its name, such as gpt-4o")
        self.config = replace(self.config, model=name.strip())
        self.agent = self._build_agent()
        self.forget_usage()

    async def switch(self, thread: str) -> None:
        """Continue another thread; a summary that a crash interrupted is started again."""
        await asyncio.to_thread(self.engine.threads.thread, thread)  # raises if it does not exist
        self._begin(thread)
        await self.summaries.resume(thread, await self.call(), self.setup.model)

    async def begin_thread(self) -> None:
        """Begin a new thread; it is stored from its first message on."""
        self._begin(_new_thread_id())

    def _begin(self, thread: str) -> None:
        self.thread, self.last, self._usage = thread, None, None
        self.notices.clear()

    async def leave(self, *, patient: bool) -> None:
        """Wait a while for titles and summaries; an unfinished summary is started again the next time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE if patient else PAUSE):
                await self.titles.drain()
                await self.summaries.drain()


def _new_thread_id() -> str:
    """Return an id that is readable, sortable and unique. Example: chat-20260318-0915-4f1c"""
    return f"chat-{datetime.now().astimezone():%Y%m%d-%H%M}-{uuid4().hex[:4]}"


@asynccontextmanager
async def open_session(setup: Setup) -> AsyncIterator[tuple[Session, tuple[str, ...]]]:
    """Open a session with the tools of its MCP servers; yield it and a line for each server that failed."""
    async with AsyncExitStack() as stack:
        if not setup.tools or not setup.config.mcp:
            yield Session(setup), ()
            return
        servers = await stack.enter_async_context(McpServers(setup.config.mcp, taken=OWN_TOOLS))
        yield Session(setup, servers.tools), servers.problems

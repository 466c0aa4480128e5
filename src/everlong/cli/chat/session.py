"""A chat at work: the agent on one thread at a time, and what is known of its last request. Draws nothing.

Lives in the worker's event loop; what the terminal wants of it comes in as coroutines.
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
    NOTHING,
    Agent,
    AgentConfig,
    AgentEvent,
    Approve,
    McpServers,
    Spawning,
    Standing,
    Todos,
    Tool,
    spawn_tools,
    standard_tools,
    workspace_standing,
)
from everlong.cli.chat.meter import Meter
from everlong.core import Event, EventKind, Message, Thread
from everlong.engine import (
    Author,
    Call,
    Engine,
    Finished,
    Model,
    Outcome,
    Prepared,
    Summaries,
    Threads,
    Titles,
    learned_window,
)
from everlong.errors import BudgetImpossible, InputError, NoThread, ThreadExists
from everlong.windows import Registry, Window, window
from everlong.wire import Usage

__all__ = ["Session", "Setup", "opened_session"]

OWN_NAMES = ("recall", "todo", "spawn", "read_subagent")  # of tools, beside the standard ones
NOTICES = 200  # events that wait to be told
PAUSE = 2.0  # seconds that background work has when a person leaves
PATIENCE = 30.0  # and when a program waits for the end


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What a session is made of. `small` is a model that reads slowly: it is asked for nothing beside the talk."""

    threads: Threads
    model: Model
    config: AgentConfig
    approve: Approve
    tools: bool = True
    small: bool = False
    registry: Registry | None = None


class Session:
    """The thread that is talked in, the agent, and the last request."""

    def __init__(self, setup: Setup, more: tuple[Tool, ...] = ()) -> None:
        self.setup, self._more = setup, more
        self.config = setup.config
        #: Events of the thread that nobody was told yet; filled from any thread.
        self.notices: deque[Event] = deque(maxlen=NOTICES)
        self.engine = Engine(
            setup.threads, settings=setup.config.engine, registry=setup.registry, observers=(self._observe,)
        )
        hosted = bool(setup.model.provider)
        writers = (Author(model=setup.model, name=self.config.summary_model),) if self.config.summary_model else ()
        self.summaries = Summaries(self.engine, writers, own_model=not setup.small)
        self.titles = Titles(self.engine, own_model=hosted and not setup.small)
        self.engine.after_turn.append(self._sent)
        self.thread = new_thread_id()
        self.last: Prepared | None = None
        self._usage: Usage | None = None
        self._todos = Todos(setup.threads)
        self.agent = self._made()

    def _observe(self, thread: str, event: Event) -> None:
        if thread == self.thread:
            self.notices.append(event)

    def _sent(self, prepared: Prepared, model: Model) -> None:  # noqa: ARG002 - there is one model
        if prepared.thread == self.thread:
            self.last = prepared

    def _made(self) -> Agent:
        setup, config = self.setup, self.config
        if not setup.tools:
            return Agent(self.engine, setup.model, (), config, NOTHING, setup.approve)
        own = (*standard_tools(engine=self.engine), *self._more)
        stands = workspace_standing(config.workspace, todo=self._todos.source)
        below = Spawning(
            engine=self.engine,
            model=setup.model,
            tools=own,
            config=config,
            standing=Standing(stands.stable),
        )
        tools = (*own, self._todos.tool, *spawn_tools(below))
        return Agent(self.engine, setup.model, tools, config, stands, setup.approve)

    # --- the turn ---------------------------------------------------------------------------------

    async def turn(self, said: Message) -> AsyncGenerator[AgentEvent, None]:
        """A turn of the agent; what was reported is remembered for the meter."""
        async with aclosing(self.agent.turn(self.thread, said)) as events:
            async for event in events:
                if isinstance(event, Finished):
                    self._usage = event.usage
                yield event

    def interrupt(self) -> bool:
        """Stop the turn that runs."""
        return self.agent.interrupt(self.thread)

    async def call(self) -> Call:
        """The call that would be made now, addressed."""
        call, model = await self.agent.call(self.thread), self.setup.model
        served = await model.served_window(call.model)
        return replace(call, fmt=model.fmt, endpoint=model.endpoint, provider=model.provider, served=served)

    async def window(self) -> Window:
        """The window of the model, as far as it is known before anything is said."""
        call = await self.call()
        return window(
            call.model,
            provider=call.provider,
            override=self.config.engine.window,
            learned=await asyncio.to_thread(learned_window, self.engine.threads, call),
            served=call.served,
            registry=self.setup.registry,
        )

    async def look(self) -> Prepared | None:
        """What would be sent now; None if nothing was said yet."""
        with suppress(NoThread):
            call = await self.call()
            return (await self.engine.preview(self.thread, call)).prepared
        return None

    async def meter(self) -> Meter | None:
        """How full the window is: as reported while nothing changed since, else reckoned. None if that is hopeless."""
        try:
            known = await asyncio.to_thread(self.engine.threads.thread, self.thread)
            last = self.last
            if last is not None and known.length == last.length + 1 and known.points == last.cuts:
                meter = Meter.reported(last, self._usage)
                if meter is not None:
                    return meter
            looked = await self.look()
        except (NoThread, BudgetImpossible):
            return None
        return None if looked is None else Meter.estimated(looked)

    def changed(self) -> None:
        """Something was done to the thread: what was reported no longer holds."""
        self._usage = None

    # --- what commands do -------------------------------------------------------------------------

    async def compact(self, focus: str) -> Outcome:
        """A summary now. Raises NoThread if nothing was said yet."""
        outcome = await self.summaries.compact(self.thread, await self.call(), self.setup.model, focus=focus)
        if outcome.kind is EventKind.SUMMARY_APPLIED:
            self.changed()
        return outcome

    async def set_threshold(self, share: float) -> None:
        """Another high mark for this thread."""
        await asyncio.to_thread(self._set, {"threshold": share})

    async def threshold(self) -> float:
        """The high mark that counts for this thread."""
        own = "{}"
        with suppress(NoThread):
            own = (await asyncio.to_thread(self.engine.threads.thread, self.thread)).settings
        return self.config.engine.for_thread(own).threshold

    def _set(self, settings: dict[str, object]) -> None:
        kept = self.there()
        said = json.loads(kept.settings) | settings
        self.config.engine.for_thread(json.dumps(said))  # raises where it makes no sense
        self.engine.threads.change(self.thread, settings=json.dumps(said))

    def there(self) -> Thread:
        """The thread, made if it is not there yet."""
        with suppress(ThreadExists):
            return self.engine.threads.create(self.thread, owner=self.config.owner)
        return self.engine.threads.thread(self.thread)

    async def title(self, title: str | None = None) -> str:
        """The title of the thread, another if one is given."""
        if title is not None:
            await asyncio.to_thread(self.there)
            await asyncio.to_thread(lambda: self.engine.threads.change(self.thread, title=title))
        with suppress(NoThread):
            return (await asyncio.to_thread(self.engine.threads.thread, self.thread)).title
        return ""

    async def use_model(self, name: str) -> None:
        """Go on with another model of the same endpoint."""
        if not name.strip():
            raise InputError("a model has a name")
        self.config = replace(self.config, model=name.strip())
        self.agent = self._made()
        self.changed()

    async def switch(self, thread: str) -> None:
        """Go on with another thread; a summary that a crash interrupted is taken up again."""
        await asyncio.to_thread(self.engine.threads.thread, thread)  # raises where there is none
        self._begin(thread)
        await self.summaries.resume(thread, await self.call(), self.setup.model)

    async def fresh(self) -> None:
        """A new thread; it is kept from its first message on."""
        self._begin(new_thread_id())

    def _begin(self, thread: str) -> None:
        self.thread, self.last, self._usage = thread, None, None
        self.notices.clear()

    async def leave(self, *, patient: bool) -> None:
        """Let titles and summaries end, for a while; what is left of a summary is taken up the next time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE if patient else PAUSE):
                await self.titles.drain()
                await self.summaries.drain()


def new_thread_id() -> str:
    """Readable, sortable, and nobody else's. Example: chat-20260318-0915-4f1c"""
    return f"chat-{datetime.now().astimezone():%Y%m%d-%H%M}-{uuid4().hex[:4]}"


@asynccontextmanager
async def opened_session(setup: Setup) -> AsyncIterator[tuple[Session, tuple[str, ...]]]:
    """A session with the tools of its MCP servers, and a line for each server that is not there."""
    async with AsyncExitStack() as stack:
        if not setup.tools or not setup.config.mcp:
            yield Session(setup), ()
            return
        taken = [tool.name for tool in standard_tools()]
        servers = await stack.enter_async_context(McpServers(setup.config.mcp, taken=[*taken, *OWN_NAMES]))
        yield Session(setup, servers.tools), servers.problems

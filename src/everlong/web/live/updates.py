"""What pages are told of a thread: its new rows, the context panel, its title, as soon as they change."""

import asyncio
from collections.abc import Callable, Coroutine

from everlong.core import Budget, JsonObject
from everlong.engine import Engine, Preview, chatbox_mark, counter_for
from everlong.errors import BudgetImpossible, EverlongError, NoThread, Refused
from everlong.web.live.hub import Hub
from everlong.web.state.agents import Agents, ThreadAgent
from everlong.web.state.settings import AppSettings
from everlong.web.state.view import ThreadView

__all__ = ["LiveUpdates"]

MILLION = 1_000_000


class LiveUpdates:
    """Tells pages what is new. Belongs to one event loop; `compacting` says whether a summary is being written."""

    def __init__(self, engine: Engine, hub: Hub, agents: Agents, view: ThreadView) -> None:
        self.compacting: Callable[[str], bool] = lambda _: False
        self._engine = engine
        self._hub = hub
        self._agents = agents
        self._view = view
        self._next: dict[str, int] = {}
        self._titles: dict[str, str] = {}
        self._contexts: dict[str, JsonObject] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._due: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def spawn(self, work: Coroutine[None, None, None]) -> None:
        """Do something beside everything else; held until it is done."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Wait for what is being told."""
        while self._tasks:
            await asyncio.wait(list(self._tasks))

    async def follow(self, thread: str) -> None:
        """From here on new rows are told."""
        if thread not in self._next:
            known = await asyncio.to_thread(self._engine.threads.thread, thread)
            self._next.setdefault(thread, known.length)
            self._titles.setdefault(thread, known.title)

    def forget(self, thread: str) -> None:
        """The thread is gone."""
        self._next.pop(thread, None)
        self._titles.pop(thread, None)
        self._contexts.pop(thread, None)
        self._locks.pop(thread, None)

    async def rows(self, thread: str) -> None:
        """Tell the rows that are new, each once, in their order."""
        if thread not in self._next:
            return
        async with self._locks.setdefault(thread, asyncio.Lock()):
            try:
                rows, after = await asyncio.to_thread(self._view.rows, thread, self._next.get(thread, 0))
            except EverlongError:  # it was removed, or the store is away; the page reads again
                return
            self._next[thread] = after
            for row in rows:
                self._hub.publish(thread, {"type": "row", "row": row})

    async def title(self, thread: str) -> None:
        """Tell the title if it is another."""
        try:
            title = (await asyncio.to_thread(self._engine.threads.thread, thread)).title
        except EverlongError:
            return
        if title != self._titles.get(thread, ""):
            self._titles[thread] = title
            self._hub.publish(thread, {"type": "title", "title": title})

    def refresh(self, thread: str) -> None:
        """Tell new rows and the context panel soon; many wishes at once are one."""
        if thread not in self._due:
            self._due.add(thread)
            self.spawn(self._refreshed(thread))

    async def _refreshed(self, thread: str) -> None:
        self._due.discard(thread)
        await self.rows(thread)
        try:
            context = await self.context(thread)
        except (NoThread, Refused, BudgetImpossible):
            return
        if self._contexts.get(thread) != context:
            self._contexts[thread] = context
            self._hub.publish(thread, {"type": "context", "context": context})

    async def context(self, thread: str) -> JsonObject:
        """How full the window is, and where it goes. Raises BudgetImpossible where nothing can fit."""
        ready = await self._agents.for_thread(thread)
        kept = await asyncio.to_thread(self._engine.threads.thread, thread)
        if kept.messages:
            preview = await self._engine.preview(thread, ready.call)
        else:
            preview = await asyncio.to_thread(_empty_preview, ready, self._agents.settings)
        undo = await asyncio.to_thread(self._view.can_undo, thread)
        settings, window = self._agents.settings, preview.window
        in_force = self._engine.blocking.means.settings.for_thread(kept.settings)
        high = preview.high if in_force.preset != "chatbox" else chatbox_mark(window.context, in_force)
        price = window.prices.input
        return {
            "model": ready.chosen.id,
            "tokens": preview.tokens,
            "limit": preview.limit,
            "high": high,
            "window": window.context if window.known else None,
            "window_source": window.source,
            "known": window.known,
            "certainty": preview.certainty,
            "parts": dict(preview.parts),
            "messages": preview.messages,
            "covered": preview.covered,
            "auto": ready.choices.auto,
            "auto_on": _compacts_itself(ready, settings.auto),
            "compacting": self.compacting(thread),
            "threshold": settings.threshold,
            "can_undo": undo,
            "cost": None if price is None else preview.tokens * price / MILLION,
        }


def _empty_preview(ready: ThreadAgent, settings: AppSettings) -> Preview:
    """The window of a thread in which nobody spoke yet."""
    call, window, counter = ready.call, ready.window, counter_for(ready.call.model)
    standing, tools = counter.messages(call.standing), counter.tools(call.tools)
    budget = Budget.of(window.context, requested=call.max_tokens, max_output=window.output, tools=standing + tools)
    parts = {"standing": standing, "tools": tools}
    return Preview(
        tokens=standing + tools,
        limit=budget.window - budget.reply - budget.margin,
        high=int(budget.room * settings.threshold / 100) + budget.tools,
        window=window,
        certainty="counted" if counter.exact else "estimated",
        parts={name: size for name, size in parts.items() if size},
        messages=0,
        covered=0,
    )


def _compacts_itself(ready: ThreadAgent, everywhere: bool) -> bool:
    chosen = everywhere if ready.choices.auto == "follow" else ready.choices.auto == "on"
    return chosen and ready.window.known

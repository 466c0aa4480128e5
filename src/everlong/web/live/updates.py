"""Send pages what is new in a thread: its rows, its context panel and its title, as soon as they change."""

import asyncio
from collections.abc import Callable, Coroutine

from everlong.core import JsonObject
from everlong.engine import Engine, Model, Preview
from everlong.errors import BudgetImpossible, EverlongError, NoThread, Refused
from everlong.web.live.hub import Hub
from everlong.web.state.agents import Agents
from everlong.web.state.models import window_source
from everlong.web.state.view import ThreadView

__all__ = ["LiveUpdates"]

MILLION = 1_000_000


class LiveUpdates:
    """The live updates of all threads. Belongs to one event loop.

    `compacting` says if a summary is being written, `may_summarise` if one starts automatically when it is due.
    """

    def __init__(self, engine: Engine, hub: Hub, agents: Agents, view: ThreadView) -> None:
        self.compacting: Callable[[str], bool] = lambda _: False
        self.may_summarise: Callable[[str, Model, str], bool] = lambda *_: False
        #: Whether another process runs the turn of a thread; then that process says which rows to publish.
        self.elsewhere: Callable[[str], bool] = lambda _: False
        #: Threads whose turn is being published.
        self.streaming: set[str] = set()
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
        """Run some work in the background; `close` waits for it."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Wait for all background work."""
        while self._tasks:
            await asyncio.wait(list(self._tasks))

    async def follow(self, thread: str) -> None:
        """Publish the rows that come from now on."""
        if thread not in self._next:
            stored = await asyncio.to_thread(self._engine.threads.thread, thread)
            self._next.setdefault(thread, stored.length)
            self._titles.setdefault(thread, stored.title)

    @property
    def followed(self) -> list[str]:
        """The threads whose rows are published here."""
        return list(self._next)

    def follows(self, thread: str) -> bool:
        """Return whether the rows of a thread are published here as they come."""
        return thread in self._next

    def forget(self, thread: str) -> None:
        """Drop what is known of a thread that was removed."""
        self._next.pop(thread, None)
        self._titles.pop(thread, None)
        self._contexts.pop(thread, None)
        self._locks.pop(thread, None)

    async def rows(self, thread: str, *, answers: int = 0) -> None:
        """Publish the new rows, each once, in order.

        A quick model's answer is stored before its words are published. So while a thread is in `streaming`, answers
        wait: only the first `answers` of the new ones are published.
        """
        if thread not in self._next or self.elsewhere(thread):
            return
        async with self._locks.setdefault(thread, asyncio.Lock()):
            start = self._next.get(thread, 0)
            try:
                rows = await asyncio.to_thread(self._view.rows, thread, start)
            except EverlongError:  # the thread was removed, or the store is away; the page reads again
                return
            if thread in self.streaming:
                rows = _up_to(rows, answers)
            self._next[thread] = start + len(rows)
            for row in rows:
                self._hub.publish(thread, {"type": "row", "row": row})

    def title_of(self, thread: str) -> str:
        """Return the title that pages know; the next change of it is published."""
        return self._titles.get(thread, "")

    async def repeat_rows(self, thread: str, fields: JsonObject) -> None:
        """Send the pages here the rows that another process has published, up to the order that it names."""
        until = fields.get("until")
        if thread not in self._next or thread in self.streaming or not isinstance(until, int):
            return
        async with self._locks.setdefault(thread, asyncio.Lock()):
            start = self._next.get(thread, 0)
            if until <= start:
                return
            rows = (await asyncio.to_thread(self._view.rows, thread, start))[: until - start]
            self._next[thread] = start + len(rows)
            for row in rows:
                self._hub.repeat(thread, {"type": "row", "row": row})

    async def title(self, thread: str) -> None:
        """Publish the title if it changed."""
        try:
            title = (await asyncio.to_thread(self._engine.threads.thread, thread)).title
        except EverlongError:
            return
        if title != self._titles.get(thread, ""):
            self._titles[thread] = title
            self._hub.publish(thread, {"type": "title", "title": title})

    def refresh(self, thread: str) -> None:
        """Publish new rows and the context panel soon. Calls that come together are served once."""
        if thread not in self._due:
            self._due.add(thread)
            self.spawn(self._refresh(thread))

    async def _refresh(self, thread: str) -> None:
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
        """Return how full the window is, and with what. Raises BudgetImpossible if nothing can fit."""
        speaker = await self._agents.for_thread(thread)
        preview = await self._engine.preview(thread, speaker.call)
        undo = await asyncio.to_thread(self._view.can_undo, thread)
        settings, window, meter = self._agents.settings, preview.window, preview.meter
        price, client = window.prices.input, speaker.chosen.client
        on = speaker.choices.on(settings, known=speaker.window.known)
        writes = on and await asyncio.to_thread(self.may_summarise, thread, client, speaker.chosen.name)
        return {
            "model": speaker.chosen.id,
            "tokens": meter.tokens,
            "limit": preview.limit,
            **_due(preview, on=on, writes=writes),
            "window": meter.limit if meter.known else None,
            "window_source": window_source(window, speaker.chosen.id, settings),
            "assumed": None if meter.known else meter.limit,
            "known": meter.known,
            "certainty": preview.certainty,
            "parts": dict(preview.parts),
            "messages": preview.messages,
            "covered": preview.covered,
            "auto": speaker.choices.auto,
            "auto_on": on,
            "compacting": self.compacting(thread),
            "threshold": settings.threshold,
            "can_undo": undo,
            "cost": None if price is None else meter.tokens * price / MILLION,
        }


def _due(preview: Preview, *, on: bool, writes: bool) -> JsonObject:
    """Return when the next compaction comes and what the next message does; the page only shows it.

    `soon` and `high` are tokens: from `soon` on, a summary starts after the answer; above `high`, the request is
    compacted before it is sent. `next` is what the next message causes now: "nothing", a "summary" after its answer, a
    "compaction" before it, a "trim" of what does not fit, or "rules": the preset has limits of its own.
    """
    due, tokens = preview.due, preview.tokens
    soon, high = (None, None) if due is None else (due.soon if writes else due.at, due.at)
    if tokens > preview.limit:
        happens = "compaction" if on else "trim"
    elif soon is None or high is None:
        happens = "rules"
    elif not on:
        happens = "nothing"
    else:
        happens = "compaction" if tokens > high else "summary" if tokens >= soon else "nothing"
    return {"soon": soon, "high": high, "next": happens, "undone": preview.undone}


def _up_to(rows: list[JsonObject], answers: int) -> list[JsonObject]:
    """Return the rows up to the allowed number of answers."""
    for at, row in enumerate(rows):
        if row.get("role") == "assistant":
            answers -= 1
        if answers < 0:
            return rows[:at]
    return rows

"""Compaction and titles beside the conversation: begun by themselves or asked for, and told to the pages as they go."""

import asyncio
from contextlib import suppress

from everlong.core import Event, EventKind
from everlong.engine import Author, Engine, Summaries, Titles
from everlong.errors import EverlongError, Refused
from everlong.web.live.hub import Hub
from everlong.web.live.updates import LiveUpdates
from everlong.web.state.agents import Agents
from everlong.web.state.models import Models
from everlong.web.state.settings import AppSettings

__all__ = ["Compactions"]

STATES = {
    EventKind.SUMMARY_STARTED: "started",
    EventKind.SUMMARY_APPLIED: "done",
    EventKind.SUMMARY_SKIPPED: "skipped",
    EventKind.SUMMARY_FAILED: "failed",
}
#: What else changes what is sent.
CHANGES = frozenset(
    {
        EventKind.TURN_STARTED,
        EventKind.CONTEXT_COMPRESSED,
        EventKind.CONTEXT_RESTORED,
        EventKind.WINDOW_LEARNED,
        EventKind.RECALLED,
        EventKind.USAGE_RECORDED,
    }
)
PAUSE = 5.0  # seconds that summaries and titles have when the server ends


class Compactions:
    """Summaries and titles of one engine, written by the models that the settings name."""

    def __init__(self, engine: Engine, hub: Hub, agents: Agents, models: Models, updates: LiveUpdates) -> None:
        self._engine = engine
        self._hub = hub
        self._agents = agents
        self._models = models
        self._updates = updates
        self._words: dict[str, str] = {}
        self._summaries: Summaries | None = None
        self._titles: Titles | None = None
        updates.compacting = self.running

    def apply(self, settings: AppSettings) -> None:
        """Let the chosen models write from now on: the one chosen, a fast one, the naming model, the thread's own."""
        for old in (self._summaries, self._titles):
            if old is not None:
                self._engine.after_turn.remove(old.after_turn)
                self._updates.spawn(old.drain())  # what it has begun, it ends; it begins nothing more
        default = self._models.default()
        source = self._models.sources.named(default.partition("/")[0])
        asked = source is None or not source.local  # a model that reads slowly is asked for nothing more
        fast = self._models.fast(default) if asked else ""
        authors = self._authors(settings.summary_model or fast, settings.naming_model)
        self._summaries = Summaries(self._engine, authors, own_model=asked, watch=self._watch)
        naming = self._authors(settings.naming_model, settings.summary_model, fast)
        self._titles = Titles(self._engine, naming, own_model=asked)

    def _authors(self, *models: str) -> tuple[Author, ...]:
        authors = []
        for model in dict.fromkeys(filter(None, models)):
            with suppress(Refused):  # its source is gone
                chosen = self._models.chosen(model)
                authors.append(Author(model=chosen.client, name=chosen.name))
        return tuple(authors)

    def running(self, thread: str) -> bool:
        """Whether a summary of the thread is being written."""
        return thread in self._words

    def words(self, thread: str) -> str:
        """What is written of it so far."""
        return self._words.get(thread, "")

    def _watch(self, thread: str, text: str) -> None:
        self._words[thread] = self._words.get(thread, "") + text
        self._hub.publish(thread, {"type": "compacting", "state": "words", "text": text, "reason": ""})

    def observe(self, thread: str, event: Event) -> None:
        """Something happened in a thread; called in the event loop."""
        state = STATES.get(event.kind)
        if state is not None:
            if event.kind is EventKind.SUMMARY_STARTED:
                self._words[thread] = ""
            else:
                self._words.pop(thread, None)
            told = {"type": "compacting", "state": state, "text": "", "reason": event.reason}
            self._hub.publish(thread, told)
        if state is not None or event.kind in CHANGES:
            self._updates.refresh(thread)

    async def compact(self, thread: str, focus: str) -> None:
        """A summary now, because someone asks; returns when it is under way. Raises Refused."""
        ready = await self._agents.for_thread(thread)
        summaries = self._summaries
        assert summaries is not None, "settings were applied when the server started"
        if self.running(thread):
            raise Refused("a summary of this thread is being written already", status=409, kind="compacting")

        async def work() -> None:
            outcome = await summaries.compact(thread, ready.call, ready.chosen.client, focus=focus)
            if outcome.kind is EventKind.SUMMARY_FAILED and self._words.pop(thread, None) is not None:
                told = {"type": "compacting", "state": "failed", "text": "", "reason": outcome.reason}
                self._hub.publish(thread, told)

        self._updates.spawn(work())

    async def undo(self, thread: str) -> bool:
        """Withdraw the newest compaction; whether one stood."""
        undone = await self._engine.undo(thread)
        self._updates.refresh(thread)
        return undone is not None

    async def resume(self, thread: str) -> None:
        """Go on with a summary that the end of the program interrupted, if there is one."""
        with suppress(EverlongError):
            if self._summaries is not None:
                ready = await self._agents.for_thread(thread)
                await self._summaries.resume(thread, ready.call, ready.chosen.client)

    async def titled(self, thread: str) -> None:
        """Tell the title when it is there."""
        if self._titles is not None:
            await self._titles.drain()
        await self._updates.title(thread)

    async def close(self) -> None:
        """Let them end, for a while; what is left of a summary is taken up the next time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(PAUSE):
                if self._titles is not None:
                    await self._titles.drain()
                if self._summaries is not None:
                    await self._summaries.drain()

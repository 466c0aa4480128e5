"""Run summaries and titles beside the conversation, automatic or requested, and report their progress to pages."""

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
#: Other events that change the next request.
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
CLOSE_SECONDS = 5.0  # that summaries and titles have to finish when the server ends


class Compactions:
    """The summaries and titles of one engine, written by the models in the settings."""

    def __init__(self, engine: Engine, hub: Hub, agents: Agents, models: Models, updates: LiveUpdates) -> None:
        self._engine = engine
        self._hub = hub
        self._agents = agents
        self._models = models
        self._updates = updates
        self._texts: dict[str, str] = {}
        self._summaries: Summaries | None = None
        self._titles: Titles | None = None
        updates.compacting = self.running

    def apply(self, settings: AppSettings) -> None:
        """Write with the models that a person chose from now on, else with those of each thread's own source."""
        for old in (self._summaries, self._titles):
            if old is not None:
                self._engine.after_turn.remove(old.after_turn)
                self._updates.spawn(old.drain())  # it finishes what runs and starts nothing more
        own = self._models.beside
        authors = self._authors(settings.summary_model, settings.naming_model)
        self._summaries = Summaries(self._engine, authors, own_model=own, watch=self._watch)
        self._titles = Titles(self._engine, self._authors(settings.naming_model, settings.summary_model), own_model=own)

    def _authors(self, *models: str) -> tuple[Author, ...]:
        authors = []
        for model in dict.fromkeys(filter(None, models)):
            with suppress(Refused):  # its source is gone
                chosen = self._models.chosen(model)
                authors.append(Author(model=chosen.client, name=chosen.name))
        return tuple(authors)

    def running(self, thread: str) -> bool:
        """Return whether a summary of the thread is being written."""
        return thread in self._texts

    def text(self, thread: str) -> str:
        """Return the text of the running summary so far."""
        return self._texts.get(thread, "")

    def _watch(self, thread: str, text: str) -> None:
        self._texts[thread] = self._texts.get(thread, "") + text
        self._publish(thread, "words", text=text)

    def _publish(self, thread: str, state: str, *, text: str = "", reason: str = "") -> None:
        self._hub.publish(thread, {"type": "compacting", "state": state, "text": text, "reason": reason})

    def observe(self, thread: str, event: Event) -> None:
        """Report an event of the engine to the pages. Called in the event loop."""
        state = STATES.get(event.kind)
        if state is not None:
            if event.kind is EventKind.SUMMARY_STARTED:
                self._texts[thread] = ""
            else:
                self._texts.pop(thread, None)
            self._publish(thread, state, reason=event.reason)
        if state is not None or event.kind in CHANGES:
            self._updates.refresh(thread)

    async def compact(self, thread: str, focus: str) -> None:
        """Start a summary because somebody asked for it. Raises Refused while one is being written."""
        speaker = await self._agents.for_thread(thread)
        summaries = self._summaries
        assert summaries is not None, "the settings are applied when the server starts"
        if self.running(thread):
            raise Refused("a summary of this thread is already being written", status=409, kind="compacting")

        async def summarize() -> None:
            outcome = await summaries.compact(thread, speaker.call, speaker.chosen.client, focus=focus)
            if outcome.kind is EventKind.SUMMARY_FAILED and self._texts.pop(thread, None) is not None:
                self._publish(thread, "failed", reason=outcome.reason)

        self._updates.spawn(summarize())

    async def undo(self, thread: str) -> bool:
        """Undo the newest compaction and return whether there was one."""
        point = await self._engine.undo(thread)
        self._updates.refresh(thread)
        return point is not None

    async def resume(self, thread: str) -> None:
        """Continue a summary that the end of the program interrupted, if there is one."""
        with suppress(EverlongError):
            if self._summaries is not None:
                speaker = await self._agents.for_thread(thread)
                await self._summaries.resume(thread, speaker.call, speaker.chosen.client)

    async def publish_title(self, thread: str) -> None:
        """Wait for the title and publish it."""
        if self._titles is not None:
            await self._titles.drain()
        await self._updates.title(thread)

    async def close(self) -> None:
        """Let summaries and titles finish for a while. A summary that does not is resumed the next time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                if self._titles is not None:
                    await self._titles.drain()
                if self._summaries is not None:
                    await self._summaries.drain()

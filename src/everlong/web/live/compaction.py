"""Run summaries and titles in the background, automatic or requested, and report their progress to pages."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from everlong.core import Event, EventKind, JsonObject
from everlong.engine import Author, Background, Carried, Engine, Model, Prepared, Summaries, Taken, Titles
from everlong.errors import EverlongError, Refused
from everlong.jobs import Jobs, NotHere
from everlong.web.live.hub import Hub
from everlong.web.live.outcomes import outcome_of, reason_of
from everlong.web.live.updates import LiveUpdates
from everlong.web.state.agents import Agents, ThreadAgent
from everlong.web.state.models import Models
from everlong.web.state.settings import AppSettings

__all__ = ["Compactions"]

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


class ThreadCarrier:
    """Packs the app's threads for other processes and opens them: all are in the store, so their names are enough."""

    def __init__(self, agents: Agents) -> None:
        self._agents = agents

    def pack(self, prepared: Prepared, model: Model) -> Carried | None:  # noqa: ARG002 - the thread says its model
        """Return the name of the thread."""
        return Carried(prepared.thread)

    @asynccontextmanager
    async def open(self, key: str, load: bytes) -> AsyncIterator[Taken | None]:  # noqa: ARG002 - there is none
        """Open the thread with its own model. Raises NotHere if the model's source is unknown here."""
        try:
            speaker = await self._agents.for_thread(key)
        except Refused as error:
            raise NotHere(str(error)) from error
        yield Taken(key, speaker.call, speaker.chosen.client)


class Compactions:
    """The summaries and titles of one engine, written by the models in the settings."""

    def __init__(
        self, engine: Engine, hub: Hub, agents: Agents, models: Models, updates: LiveUpdates, jobs: Jobs
    ) -> None:
        self._engine = engine
        self._background = Background(jobs, ThreadCarrier(agents), summaries="thread summary", titles="thread title")
        self._hub = hub
        self._agents = agents
        self._models = models
        self._updates = updates
        self._texts: dict[str, str] = {}
        #: The kind of the last event about a summary that was published, by thread.
        self._published: dict[str, EventKind] = {}
        self._summaries: Summaries | None = None
        self._titles: Titles | None = None
        #: Schedulers of earlier settings that still write.
        self._ending: list[Summaries] = []
        updates.compacting = self.running
        updates.may_summarise = self.may_begin

    def apply(self, settings: AppSettings) -> None:
        """Write with the models in the settings from now on, else with those of each thread's own source."""
        for old in (self._summaries, self._titles):
            if old is not None:
                self._engine.after_turn.remove(old.after_turn)
                self._updates.spawn(self._drain(old))
        own = self._models.beside
        authors = self._authors(settings.summary_model, settings.naming_model)
        background = self._background
        self._summaries = Summaries(self._engine, authors, own_model=own, watch=self._watch, background=background)
        namers = self._authors(settings.naming_model, settings.summary_model)
        self._titles = Titles(self._engine, namers, own_model=own, background=background)

    async def _drain(self, old: Summaries | Titles) -> None:
        """Let the previous scheduler finish; it starts nothing new."""
        if isinstance(old, Summaries):
            self._ending.append(old)
        await old.drain()
        if isinstance(old, Summaries):
            self._ending.remove(old)

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
        self._publish(thread, {"state": "words", "text": text})

    def _publish(self, thread: str, fields: JsonObject) -> None:
        self._hub.publish(thread, {"type": "compacting", "text": "", "reason": "", **fields})

    def observe(self, thread: str, event: Event) -> None:
        """Report an event of the engine to the pages. Called in the event loop."""
        outcome = outcome_of(event)
        if outcome is not None:
            if event.kind is EventKind.SUMMARY_STARTED:
                self._texts[thread] = ""
            else:
                self._texts.pop(thread, None)
            self._published[thread] = event.kind
            self._publish(thread, outcome)
        if outcome is not None or event.kind in CHANGES:
            self._updates.refresh(thread)

    async def compact(self, thread: str, focus: str) -> None:
        """Start a requested summary. Raises Refused while one is being written."""
        speaker = await self._agents.for_thread(thread)
        if self.running(thread):
            raise Refused("this thread is already being compacted", status=409, kind="compacting")
        self._updates.spawn(self.summarize(thread, speaker, focus))

    async def summarize(self, thread: str, speaker: ThreadAgent, focus: str = "") -> None:
        """Write a summary; return when it is stored or has failed."""
        summaries = self._summaries
        assert summaries is not None, "the settings are applied when the server starts"
        self._published.pop(thread, None)
        outcome = await summaries.compact(thread, speaker.call, speaker.chosen.client, focus=focus)
        if self._published.pop(thread, None) is not outcome.kind:  # it ended before an event could report it
            self._texts.pop(thread, None)
            state = "skipped" if outcome.kind is EventKind.SUMMARY_SKIPPED else "failed"
            self._publish(thread, {"state": state, **reason_of(outcome.reason)})

    def cancel(self, thread: str) -> bool:
        """Cancel the summary that is being written; return whether there was one."""
        current = [] if self._summaries is None else [self._summaries]
        return self.running(thread) and any(each.cancel(thread) for each in (*current, *self._ending))

    def forget(self, thread: str) -> None:
        """Cancel everything that is being written for a removed thread, in any process. Called in the event loop."""
        self._updates.spawn(self._cancel_jobs(thread))

    async def _cancel_jobs(self, thread: str) -> None:
        with suppress(EverlongError):
            await self._background.jobs.cancel(thread)

    def may_begin(self, thread: str, model: Model, name: str) -> bool:
        """Return whether a summary of the thread starts automatically when one is due. Reads the store."""
        return self._summaries is not None and self._summaries.may_begin(thread, model, name)

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

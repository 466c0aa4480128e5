"""Titles of threads by the naming model: requested once, in the background, checked before they are shown.

A title that a person has set, also meanwhile, stays. If the model gives none, the first words of the first request are
the title.
"""

import asyncio
from collections.abc import Sequence
from functools import partial

from everlong.core import EventKind, History, Message, Role, Text, user_text
from everlong.engine.budget import window_of
from everlong.engine.contracts import Model, Prepared, Request
from everlong.engine.engine import Engine
from everlong.engine.histories.deleted import first_words
from everlong.engine.summaries.author import Answer, Author, OwnModel, ask_author, expect_authors, own_authors
from everlong.engine.summaries.carriage import Background
from everlong.engine.usage import cost_of
from everlong.errors import EverlongError, NoThread
from everlong.jobs import End, Job, LocalJobs
from everlong.summarize import parsed_title, redacted, spoken, title_prompt

__all__ = ["Titles"]

TITLE = "title"  # the reason of its usage events
REPLY = 400  # tokens: a title, and some thinking before it
QUICK = 100  # the urgency of a title's job: a person is looking at the list
PAUSE, LOOKS = 0.2, 100  # seconds between two checks for a title that another process writes, and the number of checks
READ = 40  # rows at the beginning of a thread
REMEMBERED = 10_000  # threads that are known to have a title


class Titles:
    """Gives each thread of one engine a title, once, after its first answered turn.

    The first of `authors` is asked. If there is none, and unless `own_model` is off, the conversation's own model is
    asked, or the first model at its endpoint that a function names. With `background`, another process may take the
    job.
    """

    def __init__(
        self,
        engine: Engine,
        authors: Sequence[Author] = (),
        *,
        own_model: OwnModel = True,
        background: Background | None = None,
    ) -> None:
        expect_authors(authors)
        self._engine = engine
        self._authors = tuple(authors)
        self._own_model = own_model
        background = background or Background(LocalJobs())
        self._jobs, self._carrier, self._kind = background.jobs, background.carrier, background.titles
        self._running: dict[str, asyncio.Future[str | None]] = {}
        self._named: set[str] = set()
        if self._carrier is not None:
            self._jobs.handle(self._kind, self._work)
        engine.after_turn.append(self.after_turn)

    def after_turn(self, prepared: Prepared, model: Model) -> None:
        """Give the thread a title after a turn if it has none. Returns at once."""
        thread = prepared.thread
        if thread in self._named or thread in self._running:
            return
        if self._carrier is None:
            work = partial(self._title, thread, self._author(model, prepared.call.model))
        else:
            work = partial(self._ask_others, thread)
        self._running[thread] = self._jobs.here(self._kind, f"{self._kind} {thread}", work)
        self._running[thread].add_done_callback(lambda _: self._running.pop(thread, None))

    async def drain(self) -> None:
        """Wait until no title is being written. Call it before the program ends."""
        while self._running:
            await asyncio.wait(list(self._running.values()))

    def _author(self, model: Model, name: str) -> Author | None:
        return next(iter(self._authors or own_authors(self._own_model, model, name)), None)

    async def _ask_others(self, thread: str) -> str:
        """Let any process title the thread, and wait a while for the title."""
        try:
            if not await asyncio.to_thread(self._unnamed, thread):
                return ""
            await self._jobs.ask(Job(kind=self._kind, key=thread, need=QUICK))
            for _ in range(LOOKS):
                title = (await asyncio.to_thread(self._engine.threads.thread, thread)).title
                if title:
                    self._remember(thread)
                    return title
                await asyncio.sleep(PAUSE)
        except EverlongError:  # the store cannot be reached, or the thread is gone; the next turn tries again
            pass
        return ""

    async def _work(self, job: Job) -> End:
        """Title a thread as this or another process requested."""
        assert self._carrier is not None, "jobs are taken where threads can be opened"
        try:
            if not await asyncio.to_thread(self._unnamed, job.key):
                return End.SUPERSEDED
            async with self._carrier.open(job.key, b"") as taken:
                if taken is None:
                    return End.SUPERSEDED
                await self._title(job.key, self._author(taken.model, taken.call.model))
        except NoThread:
            return End.SUPERSEDED
        return End.DONE

    async def _title(self, thread: str, author: Author | None) -> str:
        """Give the thread a title. Returns the title that it has then; "" if it cannot be read or nothing was said."""
        try:
            messages = await asyncio.to_thread(self._unnamed, thread)
            if not messages:
                return ""
            chosen = author if author is not None and await asyncio.to_thread(self._may_ask, thread) else None
            title = await self._ask(thread, chosen, messages) if chosen is not None else ""
            return await asyncio.to_thread(self._keep, thread, title or first_words(messages))
        except EverlongError:  # the store cannot be reached; the next turn tries again
            return ""

    def _unnamed(self, thread: str) -> History:
        """Return the first messages if the thread has no title and a user has said something; else ()."""
        threads = self._engine.threads
        if threads.thread(thread).title:
            self._remember(thread)
            return ()
        messages = tuple(row.entry for row in threads.read(thread, 0, READ) if isinstance(row.entry, Message))
        return messages if first_words(messages) else ()

    def _may_ask(self, thread: str) -> bool:
        """Return whether models may be asked for anything besides the conversation."""
        settings = self._engine.blocking.context.settings_of(thread)
        return settings.mode == "auto" and settings.summaries != "off"

    async def _ask(self, thread: str, author: Author, messages: History) -> str:
        language = spoken(user_text(message) for message in messages)
        question = Message(Role.USER, (Text(title_prompt(messages, language)),))
        answer = await ask_author(author, Request(model=author.name, messages=(question,), max_tokens=REPLY))
        await asyncio.to_thread(self._note_usage, thread, author, answer)
        if answer.message is None or answer.message.calls:
            return ""
        return redacted(parsed_title(answer.message.text) or "")

    def _remember(self, thread: str) -> None:
        if len(self._named) >= REMEMBERED:
            self._named.clear()
        self._named.add(thread)

    def _keep(self, thread: str, title: str) -> str:
        """Store the title, unless another was set meanwhile; return the thread's title."""
        self._remember(thread)
        given = self._engine.threads.thread(thread).title
        return given or self._engine.threads.change(thread, title=title).title

    def _note_usage(self, thread: str, author: Author, answer: Answer) -> None:
        usage = answer.usage
        if not usage.prompt and not usage.output:
            return
        with self._engine.blocking.context.journal(thread) as journal:
            journal.note(
                EventKind.USAGE_RECORDED,
                model=author.name,
                reason=TITLE,
                tokens_before=usage.prompt,
                tokens_after=usage.output,
                cost=cost_of(usage, window_of(author.name, author.model.provider).prices),
                data=f'{{"cached":{usage.cached},"cache_written":{usage.cache_written}}}',
            )

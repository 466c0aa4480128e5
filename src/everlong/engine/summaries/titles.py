"""Titles of threads by the naming model: asked once, beside the conversation, checked before anyone sees them.

A title that someone gave, or gives meanwhile, stays. Where the model gives none, the first words of the first request
are the title.
"""

import asyncio
from collections.abc import Sequence

from everlong.core import EventKind, History, Message, Role, Text, user_text
from everlong.engine.budget import window_of
from everlong.engine.contracts import Model, Prepared, Request
from everlong.engine.engine import Engine
from everlong.engine.summaries.author import Answer, Author, OwnModel, ask_author, own_authors
from everlong.engine.token_map import text_title
from everlong.engine.usage import cost_of
from everlong.errors import EverlongError
from everlong.summarize import LONGEST_TITLE, parsed_title, redacted, spoken, title_prompt

__all__ = ["Titles"]

TITLE = "title"  # the reason of its row in the ledger
REPLY = 400  # tokens: a title, and some thinking before it
READ = 40  # rows at the front of a thread
REMEMBERED = 10_000  # threads that are known to have a title


class Titles:
    """Names the threads of one engine, each once, after its first answered turn.

    The first of `authors` is asked. If there is none, and unless `own_model` is off, it is the conversation's own
    model, or the first of the models at its place that a function names.
    """

    def __init__(self, engine: Engine, authors: Sequence[Author] = (), *, own_model: OwnModel = True) -> None:
        self._engine = engine
        self._authors = tuple(authors)
        self._own_model = own_model
        self._running: dict[str, asyncio.Task[str]] = {}
        self._named: set[str] = set()
        engine.after_turn.append(self.after_turn)

    def after_turn(self, prepared: Prepared, model: Model) -> None:
        """Name the thread after a turn if it has no name. Returns at once."""
        thread = prepared.thread
        if thread in self._named or thread in self._running:
            return
        authors = self._authors or own_authors(self._own_model, model, prepared.call.model)
        task = asyncio.create_task(self._title(thread, next(iter(authors), None)), name=f"title of {thread}")
        self._running[thread] = task
        task.add_done_callback(lambda _: self._running.pop(thread, None))

    async def drain(self) -> None:
        """Wait until nothing is running: before the program ends."""
        while self._running:
            await asyncio.wait(list(self._running.values()))

    async def _title(self, thread: str, author: Author | None) -> str:
        """Give the thread a title; return the one it has in the end, "" if the store cannot be read."""
        try:
            messages = await asyncio.to_thread(self._unnamed, thread)
            if not messages:
                return ""
            chosen = author if author is not None and await asyncio.to_thread(self._may_ask, thread) else None
            title = await self._ask(thread, chosen, messages) if chosen is not None else ""
            return await asyncio.to_thread(self._keep, thread, title or _first_words(messages))
        except EverlongError:  # the store is away; a name is worth no error, the next turn looks again
            return ""

    def _unnamed(self, thread: str) -> History:
        """Return the first messages, if the thread has no title and a user spoke."""
        threads = self._engine.threads
        if threads.thread(thread).title:
            self._remember(thread)
            return ()
        messages = tuple(row.entry for row in threads.read(thread, 0, READ) if isinstance(row.entry, Message))
        return messages if _first_words(messages) else ()

    def _may_ask(self, thread: str) -> bool:
        """Return whether models may be asked for anything beside the conversation."""
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
        """Keep the title, unless someone gave one meanwhile; return the one that it has."""
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


def _first_words(messages: History) -> str:
    """Return the beginning of the first text of the user."""
    first = next((text for message in messages if (text := user_text(message).strip())), "")
    title = text_title(redacted(first))
    return title if len(title) <= LONGEST_TITLE else title[: LONGEST_TITLE - 1].rstrip() + "…"

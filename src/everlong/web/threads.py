"""Threads as the page lists and changes them: new, renamed, archived, branched, removed, found."""

import asyncio
import json
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import cast
from uuid import uuid4

from everlong.core import Hit, Json, JsonObject, Message, Thread
from everlong.web.answering import Asked
from everlong.web.choices import AUTO, Auto, Choices, choices_of, with_choices
from everlong.web.desk import OWNER, Desk
from everlong.web.fields import flag, number, optional_text, wrong
from everlong.web.rows import words_of

__all__ = ["ThreadList"]

PAGE, MOST = 50, 200  # threads at once
FOUND = 20  # messages that a search brings
LONGEST_HIT = 300  # characters of one of them
LONGEST_TITLE = 200
LOOKED_THROUGH = 2_000  # threads whose titles are searched


class ThreadList:
    """The endpoints of threads as wholes."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._threads = desk.threads

    async def listed(self, asked: Asked) -> Json:
        """The threads, the latest changed first; with words, those of that title, and messages that have them."""
        archived = asked.query("archived") in ("1", "true")
        limit = asked.count("limit", PAGE, MOST) or PAGE
        skip = asked.count("skip", 0) or 0
        words = asked.query("q").strip()[:1_000]
        found, hits = await asyncio.to_thread(self._found, words, archived, limit, skip)
        return {"threads": [self.shown(thread) for thread in found], "hits": hits}

    def _found(self, words: str, archived: bool, limit: int, skip: int) -> tuple[list[Thread], list[Json]]:
        if not words:
            return self._own(archived, limit, skip), []
        titled = [
            thread for thread in self._own(None, LOOKED_THROUGH, 0) if words.casefold() in thread.title.casefold()
        ]
        hits = self._threads.search(words, owner=OWNER, limit=FOUND, around=0)
        names: dict[str, str] = {}
        rows: list[Json] = []
        for hit in hits:
            if hit.thread not in names:
                names[hit.thread] = self._threads.thread(hit.thread).title
            rows.append(_hit(hit, names[hit.thread]))
        return titled[skip : skip + limit], rows

    def _own(self, archived: bool | None, limit: int, skip: int) -> list[Thread]:
        """Threads that a person talks in; those of sub-agents are left out, so a few more are read."""
        own: list[Thread] = []
        read = 0
        while len(own) < skip + limit:
            page = self._threads.threads(owner=OWNER, archived=archived, limit=MOST, skip=read)
            own += [thread for thread in page if "parent" not in json.loads(thread.metadata)]
            read += len(page)
            if len(page) < MOST:
                break
        return own[skip : skip + limit]

    def shown(self, thread: Thread) -> JsonObject:
        """A thread as the page reads it."""
        choices = choices_of(thread)
        return {
            "id": thread.id,
            "title": thread.title,
            "created": thread.created.isoformat(),
            "updated": thread.updated.isoformat(),
            "archived": thread.archived,
            "messages": thread.messages,
            "points": thread.points,
            "model": choices.model,
            "auto": choices.auto,
            "running": self._desk.turns.running(thread.id),
            "branch_of": thread.parent[0] or None,
        }

    async def one(self, asked: Asked) -> Json:
        """One thread."""
        return self.shown(await asyncio.to_thread(self._desk.known, asked.thread))

    async def new(self, asked: Asked) -> Json:
        """A new thread with the model that is named, else the one chosen last."""
        await self._desk.models.refresh()
        model = optional_text(asked.said, "model")
        if not model:
            model = await asyncio.to_thread(self._desk.models.default)
        if model:
            self._desk.models.chosen(model)
            await asyncio.to_thread(self._desk.models.remember, model)
        metadata = with_choices("{}", Choices(model=model))
        made = partial(self._threads.create, _new_id(), owner=OWNER, metadata=metadata)
        return self.shown(await asyncio.to_thread(made))

    async def change(self, asked: Asked) -> Json:
        """Another title, place, model or way of compacting."""
        kept = await asyncio.to_thread(self._desk.known, asked.thread)
        title = optional_text(asked.said, "title", most=LONGEST_TITLE)
        archived = flag(asked.said, "archived")
        model, auto = optional_text(asked.said, "model"), optional_text(asked.said, "auto")
        if auto is not None and auto not in AUTO:
            raise wrong(f"auto is one of {', '.join(AUTO)}")
        choices = choices_of(kept)
        if model:
            self._desk.models.chosen(model)
            await asyncio.to_thread(self._desk.models.remember, model)
            choices = replace(choices, model=model)
        if auto is not None:
            choices = replace(choices, auto=cast("Auto", auto))
        metadata = None if choices == choices_of(kept) else with_choices(kept.metadata, choices)
        made = partial(
            self._threads.change,
            asked.thread,
            title=None if title is None else title.strip(),
            archived=archived,
            metadata=metadata,
        )
        thread = await asyncio.to_thread(made)
        if title is not None:
            await self._desk.showing.title(asked.thread)
        if metadata is not None:
            self._desk.showing.refresh(asked.thread)
        return self.shown(thread)

    async def remove(self, asked: Asked) -> Json:
        """Remove a thread and all that belongs to it; what runs in it is stopped first."""
        await asyncio.to_thread(self._desk.known, asked.thread)
        await self._desk.turns.end(asked.thread)
        await asyncio.to_thread(self._threads.remove, asked.thread)
        self._desk.showing.forget(asked.thread)
        return {}

    async def branch(self, asked: Asked) -> Json:
        """A thread that begins with the rows before an order."""
        kept = await asyncio.to_thread(self._desk.known, asked.thread)
        order = number(asked.said, "order")
        if order is None:
            raise wrong("order is missing")
        title = optional_text(asked.said, "title", most=LONGEST_TITLE)
        return self.shown(await self.branched(kept, order, kept.title if title is None else title))

    async def branched(self, thread: Thread, order: int, title: str) -> Thread:
        """A branch with the same choices."""
        made = partial(self._threads.branch, thread.id, order, _new_id(), title=title)
        return await asyncio.to_thread(made)


def _new_id() -> str:
    """Sortable, and nobody else's. Example: app-20260318-091512-4f1c09aa"""
    return f"app-{datetime.now(UTC):%Y%m%d-%H%M%S}-{uuid4().hex[:8]}"


def _hit(hit: Hit, title: str) -> JsonObject:
    entry = hit.row.entry
    text = words_of(entry) if isinstance(entry, Message) else ""
    return {"thread": hit.thread, "title": title, "order": hit.row.order, "text": text[:LONGEST_HIT]}

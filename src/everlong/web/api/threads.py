"""Endpoints of threads as wholes: list and search, create, change, branch, remove."""

import asyncio
import json
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import cast
from uuid import uuid4

from everlong.core import Hit, Json, JsonObject, Message, Thread
from everlong.web.api.endpoint import ApiRequest
from everlong.web.app import AppState
from everlong.web.fields import flag, invalid, number, optional_text
from everlong.web.state.rows import full_text
from everlong.web.state.settings import AUTO, OWNER, Auto, Choices, choices_of, with_choices

__all__ = ["ThreadEndpoints"]

DEFAULT_THREADS, MOST_THREADS = 50, 200  # in one answer
MOST_HITS = 20  # messages
LONGEST_HIT = 300  # characters
LONGEST_TITLE = 200
MOST_TITLES = 2_000  # threads whose titles are searched
LONGEST_SEARCH = 1_000  # characters


class ThreadEndpoints:
    """Endpoints that list threads or change a whole one."""

    def __init__(self, app: AppState) -> None:
        self._app = app
        self._threads = app.threads

    async def find(self, request: ApiRequest) -> Json:
        """Return threads, the last changed first; with a search, those whose title matches, and matching messages."""
        archived = request.query("archived") in ("1", "true")
        limit = request.count("limit", DEFAULT_THREADS, MOST_THREADS) or DEFAULT_THREADS
        skip = request.count("skip", 0) or 0
        words = request.query("q").strip()[:LONGEST_SEARCH]
        hits: list[Json] = []
        if words:
            threads = (await asyncio.to_thread(self._titled, words))[skip : skip + limit]
            hits = await asyncio.to_thread(self._hits, words)
        else:
            threads = await asyncio.to_thread(self._own, archived, limit, skip)
        shown: list[Json] = [self.shown(thread) for thread in threads]
        return {"threads": shown, "hits": hits, "warnings": list(self._threads.warnings)}

    def _titled(self, words: str) -> list[Thread]:
        own = self._own(None, MOST_TITLES, 0)
        return [thread for thread in own if words.casefold() in thread.title.casefold()]

    def _hits(self, words: str) -> list[Json]:
        titles: dict[str, str] = {}
        rows: list[Json] = []
        for hit in self._threads.search(words, owner=OWNER, limit=MOST_HITS, around=0):
            if hit.thread not in titles:
                titles[hit.thread] = self._threads.thread(hit.thread).title
            rows.append(_hit(hit, titles[hit.thread]))
        return rows

    def _own(self, archived: bool | None, limit: int, skip: int) -> list[Thread]:
        """Return threads that a person talks in. Those of sub-agents are skipped, so more are read than returned."""
        own: list[Thread] = []
        read = 0
        while len(own) < skip + limit:
            page = self._threads.threads(owner=OWNER, archived=archived, limit=MOST_THREADS, skip=read)
            own += [thread for thread in page if "parent" not in json.loads(thread.metadata)]
            read += len(page)
            if len(page) < MOST_THREADS:
                break
        return own[skip : skip + limit]

    def shown(self, thread: Thread) -> JsonObject:
        """Return a thread as the page reads it."""
        choices = choices_of(thread)
        return {
            "id": thread.id,
            "title": thread.title,
            "created": thread.created.isoformat(),
            "updated": thread.updated.isoformat(),
            "archived": thread.archived,
            "messages": thread.messages,
            "points": thread.standing,
            "model": choices.model,
            "auto": choices.auto,
            "running": self._app.turns.running(thread.id),
            "branch_of": thread.parent[0] or None,
        }

    async def one(self, request: ApiRequest) -> Json:
        """Return one thread."""
        return self.shown(await asyncio.to_thread(self._app.known, request.thread))

    async def new(self, request: ApiRequest) -> Json:
        """Create a thread with the model that the body names, else the model chosen last."""
        await self._app.models.refresh()
        model = optional_text(request.body, "model")
        if not model:
            model = await asyncio.to_thread(self._app.models.default)
        if model:
            await self._choose(model)
        metadata = with_choices("{}", Choices(model=model))
        create = partial(self._threads.create, _new_id(), owner=OWNER, metadata=metadata)
        return self.shown(await asyncio.to_thread(create))

    async def _choose(self, model: str) -> None:
        """Make a model the default of new threads. Raises Refused if its source is gone."""
        self._app.models.chosen(model)
        await asyncio.to_thread(self._app.models.remember, model)

    async def change(self, request: ApiRequest) -> Json:
        """Change the title, the archive flag, the model or automatic compaction."""
        thread = await asyncio.to_thread(self._app.known, request.thread)
        title = optional_text(request.body, "title", most=LONGEST_TITLE)
        archived = flag(request.body, "archived")
        model, auto = optional_text(request.body, "model"), optional_text(request.body, "auto")
        if auto is not None and auto not in AUTO:
            raise invalid(f"auto must be one of {', '.join(AUTO)}")
        choices = choices_of(thread)
        if model:
            await self._choose(model)
            choices = replace(choices, model=model)
        if auto is not None:
            choices = replace(choices, auto=cast("Auto", auto))
        metadata = None if choices == choices_of(thread) else with_choices(thread.metadata, choices)
        change = partial(
            self._threads.change,
            thread.id,
            title=None if title is None else title.strip(),
            archived=archived,
            metadata=metadata,
        )
        thread = await asyncio.to_thread(change)
        if title is not None:
            await self._app.updates.title(thread.id)
        if metadata is not None:
            self._app.updates.refresh(thread.id)
        return self.shown(thread)

    async def remove(self, request: ApiRequest) -> Json:
        """Stop what runs in a thread, then remove it with all that belongs to it."""
        await asyncio.to_thread(self._app.known, request.thread)
        await self._app.turns.end(request.thread)
        await asyncio.to_thread(self._threads.remove, request.thread)
        self._app.updates.forget(request.thread)
        return {}

    async def branch(self, request: ApiRequest) -> Json:
        """Create a thread that begins with the rows before an order."""
        thread = await asyncio.to_thread(self._app.known, request.thread)
        order = number(request.body, "order")
        if order is None:
            raise invalid("order is missing")
        title = optional_text(request.body, "title", most=LONGEST_TITLE)
        return self.shown(await self.branched(thread, order, thread.title if title is None else title))

    async def branched(self, thread: Thread, order: int, title: str) -> Thread:
        """Create a branch with the same choices and return it."""
        branch = partial(self._threads.branch, thread.id, order, _new_id(), title=title)
        return await asyncio.to_thread(branch)


def _new_id() -> str:
    """Return a new id that sorts by time. Example: app-20260318-091512-4f1c09aa"""
    return f"app-{datetime.now(UTC):%Y%m%d-%H%M%S}-{uuid4().hex[:8]}"


def _hit(hit: Hit, title: str) -> JsonObject:
    entry = hit.row.entry
    text = full_text(entry) if isinstance(entry, Message) else ""
    return {"thread": hit.thread, "title": title, "order": hit.row.order, "text": text[:LONGEST_HIT]}

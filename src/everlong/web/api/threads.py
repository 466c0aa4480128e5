"""Endpoints of threads as wholes: list and search, create, change, branch, remove."""

import asyncio
import json
from collections.abc import Container, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import cast
from uuid import uuid4

from everlong.core import Hit, Json, JsonObject, Message, Thread
from everlong.web.api.endpoint import ApiRequest
from everlong.web.app import AppState
from everlong.web.fields import flag, invalid, number, optional_text
from everlong.web.state.options import NO_OPTIONS, changed_options
from everlong.web.state.rows import full_text
from everlong.web.state.settings import AUTO, OWNER, Auto, Choices, choices_of, sample_language, with_choices
from everlong.web.state.shelf import Place, place_of
from everlong.web.state.versions import VERSION_OF, is_hidden
from everlong.web.words import LANGUAGES

__all__ = ["ThreadEndpoints", "is_listed", "is_own"]

DEFAULT_THREADS, MOST_THREADS = 50, 200  # in one answer
MOST_HITS = 20  # messages
LONGEST_HIT = 300  # characters
LONGEST_TITLE = 200
MOST_OPEN = 200  # folders whose threads are wanted at once
LEAD = 60  # characters of a hit before the first match
NOWHERE = Place()
LONGEST_SEARCH = 1_000  # characters


class ThreadEndpoints:
    """Endpoints that list threads or change a whole one."""

    def __init__(self, app: AppState) -> None:
        self._app = app
        self._threads = app.threads

    async def find(self, request: ApiRequest) -> Json:
        """Return threads, the last changed first; with a search, those whose title matches, and matching messages.

        With `shelf`, as the sidebar shows them: pinned ones, the folders (with the threads of those that are `open`),
        and a page of the others. With `folder`, a page of what is in it.
        """
        archived = request.query("archived") in ("1", "true")
        limit = request.count("limit", DEFAULT_THREADS, MOST_THREADS) or DEFAULT_THREADS
        skip = request.count("skip", 0) or 0
        words = request.query("q").strip()[:LONGEST_SEARCH]
        if words:
            found = await self._searched(
                words, request.query("in"), archived=archived if request.query("archived") else None
            )
            return {**found, "threads": found["threads"][skip : skip + limit], "warnings": [*self._threads.warnings]}
        own = await asyncio.to_thread(self._own, archived)
        if request.query("shelf"):
            opened = set(request.http.query_params.getlist("open")[:MOST_OPEN])
            return await asyncio.to_thread(self._shelf, own, opened, limit)
        places = {thread.id: place_of(json.loads(thread.metadata)) for thread in own}
        if "folder" in request.http.query_params:
            own = [thread for thread in own if places[thread.id].folder == request.query("folder")]
        if request.query("loose"):
            own = [thread for thread in own if places[thread.id] == NOWHERE]
        shown: list[Json] = [self.shown(thread) for thread in own[skip : skip + limit]]
        return {"threads": shown, "hits": [], "warnings": list(self._threads.warnings)}

    def _shelf(self, own: Sequence[Thread], opened: Container[str], limit: int) -> JsonObject:
        """Return the threads as the sidebar shows them."""
        inside: dict[str, list[Thread]] = {}
        pinned: list[Thread] = []
        loose: list[Thread] = []
        for thread in own:
            place = place_of(json.loads(thread.metadata))
            if place.folder:
                inside.setdefault(place.folder, []).append(thread)
            if place.pinned:
                pinned.append(thread)
            elif not place.folder:
                loose.append(thread)
        folders: list[Json] = [
            {
                "name": name,
                "count": len(inside.get(name, ())),
                "threads": [self.shown(thread) for thread in inside.get(name, ())[:limit]] if name in opened else [],
            }
            for name in self._app.shelf.folders(inside)
        ]
        return {
            "pinned": [self.shown(thread) for thread in pinned[:MOST_THREADS]],
            "folders": folders,
            "threads": [self.shown(thread) for thread in loose[:limit]],
            "hits": [],
            "total": len(own),
            "warnings": list(self._threads.warnings),
        }

    async def _searched(self, words: str, where: str, archived: bool | None) -> dict[str, list[Json]]:
        """Return the threads and messages that match; `where` may name one kind: titles or messages."""
        threads: list[Json] = []
        hits: list[Json] = []
        if where != "messages":
            threads = [self.shown(thread) for thread in await asyncio.to_thread(self._titled, words, archived)]
        if where != "titles":
            hits = await asyncio.to_thread(self._hits, words, archived)
        return {"threads": threads, "hits": hits}

    def _titled(self, words: str, archived: bool | None) -> list[Thread]:
        return [thread for thread in self._own(archived) if words.casefold() in thread.title.casefold()]

    def _hits(self, words: str, archived: bool | None) -> list[Json]:
        threads: dict[str, Thread] = {}
        rows: list[Json] = []
        seen: set[str] = set()  # versions share rows
        for hit in self._threads.search(words, owner=OWNER, limit=2 * MOST_HITS, around=0):
            if hit.thread not in threads:
                threads[hit.thread] = self._threads.thread(hit.thread)
            thread = threads[hit.thread]
            fits = is_own(thread) and archived in (None, thread.archived) and hit.row.id not in seen
            if fits and len(rows) < MOST_HITS:
                seen.add(hit.row.id)
                rows.append(_hit(hit, thread, words))
        return rows

    def _own(self, archived: bool | None) -> list[Thread]:
        """Return the threads that a person talks in, one version of each conversation, the last changed first."""
        return [thread for thread in self._threads.threads(owner=OWNER, archived=archived) if is_listed(thread)]

    def shown(self, thread: Thread) -> JsonObject:
        """Return a thread as the page reads it."""
        metadata = json.loads(thread.metadata)
        choices, place = choices_of(thread), place_of(metadata)
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
            "sample": sample_language(thread),
            "running": self._app.turns.running(thread.id),
            "branch_of": None if VERSION_OF in metadata else thread.parent[0] or None,
            "folder": place.folder,
            "pinned": place.pinned,
        }

    async def one(self, request: ApiRequest) -> Json:
        """Return one thread."""
        return self.shown(await asyncio.to_thread(self._app.known, request.thread))

    async def new(self, request: ApiRequest) -> Json:
        """Create a thread with the model that the body names, else its assistant's, else the one chosen last.

        The assistant is the one that the body names, none for "", else the default. The body's options override those.
        """
        app, options = self._app, request.body.get("options")
        if options is not None and not isinstance(options, dict):
            raise invalid("options must be an object")
        await app.models.refresh()
        assistant = await asyncio.to_thread(app.kept.assistant, optional_text(request.body, "assistant"))
        model = optional_text(request.body, "model") or (
            "" if assistant is None else app.models.present(assistant.model)
        )
        if not model:
            model = await asyncio.to_thread(app.models.default)
        if model:
            await self._choose(model)
        base = NO_OPTIONS if assistant is None else assistant.options
        choices = Choices(
            model=model,
            language=app.settings.language or _spoken(request),
            options=changed_options(base, options or {}),
        )
        metadata = with_choices("{}", choices)
        create = partial(self._threads.create, _new_id(), owner=OWNER, metadata=metadata)
        return self.shown(await asyncio.to_thread(create))

    async def _choose(self, model: str) -> None:
        """Make a model the default of new threads. Raises Refused if its source is gone."""
        self._app.models.chosen(model)
        await asyncio.to_thread(self._app.models.remember, model)

    async def speak_with(self, thread: Thread, model: str) -> Thread:
        """Choose the model of a thread and return the thread. Raises Refused if its source is gone."""
        await self._choose(model)
        metadata = with_choices(thread.metadata, replace(choices_of(thread), model=model))
        return await asyncio.to_thread(partial(self._threads.change, thread.id, metadata=metadata))

    async def change(self, request: ApiRequest) -> Json:
        """Change the title, the archive flag, the folder, the pin, the model or automatic compaction."""
        thread = await asyncio.to_thread(self._app.known, request.thread)
        title = optional_text(request.body, "title", most=LONGEST_TITLE)
        archived = flag(request.body, "archived")
        model, auto = optional_text(request.body, "model"), optional_text(request.body, "auto")
        if auto is not None and auto not in AUTO:
            raise invalid(f"auto must be one of {', '.join(AUTO)}")
        folder, pinned = optional_text(request.body, "folder"), flag(request.body, "pinned")
        if folder is not None or pinned is not None:
            thread = await asyncio.to_thread(partial(self._app.shelf.put, thread, folder=folder, pinned=pinned))
            if not {"title", "archived", "model", "auto"} & request.body.keys():
                return self.shown(thread)
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
        """Stop what runs in a conversation, then remove it with its versions and all that belongs to it."""
        await self.delete((await asyncio.to_thread(self._app.known, request.thread)).id)
        return {}

    async def delete(self, thread: str) -> None:
        """Stop what runs in a conversation, then remove it with its versions."""
        for member in (await asyncio.to_thread(self._app.versions.of, thread)).members:
            await self._app.turns.end(member.thread)
            self._app.updates.forget(member.thread)
        await asyncio.to_thread(self._app.remove, thread)

    async def branch(self, request: ApiRequest) -> Json:
        """Create a thread that begins with the rows before an order."""
        thread = await asyncio.to_thread(self._app.known, request.thread)
        order = number(request.body, "order")
        if order is None:
            raise invalid("order is missing")
        title = optional_text(request.body, "title", most=LONGEST_TITLE)
        return self.shown(await self.branched(thread, order, thread.title if title is None else title))

    async def branched(self, thread: Thread, order: int, title: str) -> Thread:
        """Create a branch with the same choices and return it. It is a separate conversation."""
        branch = partial(self._threads.branch, thread.id, order, _new_id(), title=title)
        made = await asyncio.to_thread(branch)
        return await asyncio.to_thread(self._app.versions.free, made.id)

    async def version(self, thread: Thread, order: int, title: str) -> Thread:
        """Create a version of a conversation with the rows before an order, make the lists show it, and return it."""
        branch = partial(self._threads.branch, thread.id, order, _new_id(), title=title)
        made = await asyncio.to_thread(branch)
        await asyncio.to_thread(self._app.versions.add, thread.id, order, made.id)
        return await asyncio.to_thread(self._threads.thread, made.id)

    async def show(self, request: ApiRequest) -> Json:
        """Make the lists show this version of its conversation."""
        thread = await asyncio.to_thread(self._app.known, request.thread)
        await asyncio.to_thread(self._app.versions.show, thread.id)
        return self.shown(await asyncio.to_thread(self._threads.thread, thread.id))


def is_own(thread: Thread) -> bool:
    """Return whether a person talks in a thread, not a sub-agent."""
    return "parent" not in json.loads(thread.metadata)


def is_listed(thread: Thread) -> bool:
    """Return whether the lists show a thread: not those of agents, and one version of each conversation."""
    return is_own(thread) and not is_hidden(json.loads(thread.metadata))


def _spoken(request: ApiRequest) -> str:
    """Return the first language of the browser that the app has words for, "" if there is none."""
    wanted = request.http.headers.get("accept-language", "")[:LONGEST_SEARCH].lower().split(",")
    return next((own for tag in wanted for own in LANGUAGES if tag.strip().startswith(own)), "")


def _new_id() -> str:
    """Return a new id that sorts by time. Example: app-20260318-091512-4f1c09aa"""
    return f"app-{datetime.now(UTC):%Y%m%d-%H%M%S}-{uuid4().hex[:8]}"


def _hit(hit: Hit, thread: Thread, words: str) -> JsonObject:
    entry = hit.row.entry
    text = full_text(entry) if isinstance(entry, Message) else ""
    return {
        "thread": hit.thread,
        "title": thread.title,
        "archived": thread.archived,
        "order": hit.row.order,
        "text": _around(text, words),
    }


def _around(text: str, words: str) -> str:
    """Return the part of a text around the first match, so that a page can show and mark it."""
    low = text.casefold()
    at = min((found for word in words.casefold().split() if (found := low.find(word)) >= 0), default=0)
    start = max(0, at - LEAD)
    return ("…" if start else "") + text[start : start + LONGEST_HIT]

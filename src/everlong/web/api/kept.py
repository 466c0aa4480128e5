"""Endpoints of what a person keeps: assistants, prompts, favourite models, options of threads, permissions."""

import asyncio
from contextlib import suppress
from dataclasses import replace
from functools import partial

from everlong.core import Json, JsonObject, Thread
from everlong.errors import NoThread, Refused
from everlong.web.api.endpoint import ApiRequest
from everlong.web.app import AppState
from everlong.web.fields import flag, invalid, object_list, optional_text, required_text
from everlong.web.state.kept import MOST_IMPORTED
from everlong.web.state.options import changed_options
from everlong.web.state.settings import choices_of, with_choices

__all__ = ["KeptEndpoints"]

LONGEST_GRANT = 5_000  # characters; a path may be long


class KeptEndpoints:
    """Endpoints of what a person keeps for all threads, and sets for one."""

    def __init__(self, app: AppState) -> None:
        self._app = app
        self._kept = app.kept

    async def all(self, _: ApiRequest) -> Json:
        """Return the assistants, the prompts, and the models that are marked or were chosen last."""
        kept = await asyncio.to_thread(self._kept.shown)
        favourites: list[Json] = [*await asyncio.to_thread(self._app.models.favourites)]
        recent: list[Json] = [*await asyncio.to_thread(self._app.models.recent)]
        return {**kept, "favourites": favourites, "recent": recent}

    async def add_assistant(self, request: ApiRequest) -> Json:
        """Keep an assistant."""
        return (await asyncio.to_thread(self._kept.add_assistant, request.body)).shown()

    async def change_assistant(self, request: ApiRequest) -> Json:
        """Change an assistant, or make it the default of new threads."""
        change = partial(self._kept.change_assistant, request.path_name("name"), request.body)
        return (await asyncio.to_thread(change)).shown()

    async def remove_assistant(self, request: ApiRequest) -> Json:
        """Remove an assistant."""
        await asyncio.to_thread(self._kept.remove_assistant, request.path_name("name"))
        return {}

    async def add_prompt(self, request: ApiRequest) -> Json:
        """Keep a prompt."""
        return (await asyncio.to_thread(self._kept.add_prompt, request.body)).shown()

    async def change_prompt(self, request: ApiRequest) -> Json:
        """Change a prompt."""
        change = partial(self._kept.change_prompt, request.path_name("name"), request.body)
        return (await asyncio.to_thread(change)).shown()

    async def remove_prompt(self, request: ApiRequest) -> Json:
        """Remove a prompt."""
        await asyncio.to_thread(self._kept.remove_prompt, request.path_name("name"))
        return {}

    async def import_prompts(self, request: ApiRequest) -> Json:
        """Keep the prompts of a file; those that are there already are left out."""
        bodies = object_list(request.body, "prompts", most=MOST_IMPORTED)
        if not bodies:
            raise invalid("the file contains no prompts")
        return {"added": await asyncio.to_thread(self._kept.import_prompts, bodies)}

    async def mark(self, request: ApiRequest) -> Json:
        """Mark a model as a favourite, or remove the mark."""
        model, on = required_text(request.body, "model"), flag(request.body, "on")
        if on is None:
            raise invalid("on is missing")
        favourites: list[Json] = [*await asyncio.to_thread(partial(self._app.models.mark, model, on=on))]
        return {"favourites": favourites}

    async def permissions(self, _: ApiRequest) -> Json:
        """Return what tools may do without a question: always in this folder, and in each thread."""
        return await asyncio.to_thread(self._permissions)

    def _permissions(self) -> Json:
        app, given = self._app, self._app.permissions
        always: list[Json] = []
        if given.remembered is not None:
            always += [pattern.text for pattern in given.remembered.read().allow]
        threads: list[Json] = []
        for thread, grants in given.granted().items():
            with suppress(NoThread):  # it was removed since
                threads.append({"thread": thread, "title": app.known(thread).title, "grants": [*grants]})
        return {"folder": str(app.config.workspace.resolve()), "always": always, "threads": threads}

    async def revoke(self, request: ApiRequest) -> Json:
        """Revoke a permission: a pattern that was always allowed, or what was allowed in a thread."""
        pattern, given = optional_text(request.body, "pattern"), self._app.permissions
        if pattern is not None and given.remembered is not None:
            await asyncio.to_thread(given.remembered.forget, pattern)
        elif pattern is not None or not given.revoke(
            required_text(request.body, "thread"), required_text(request.body, "grant", most=LONGEST_GRANT)
        ):
            raise Refused("this permission was already revoked", status=404, kind="no_grant")
        return await self.permissions(request)

    async def options(self, request: ApiRequest) -> Json:
        """Return the options of a thread."""
        return await self._shown(await asyncio.to_thread(self._app.known, request.thread))

    async def set_options(self, request: ApiRequest) -> Json:
        """Change the options of a thread that the body names. They apply from the next message on."""
        app = self._app
        thread = await asyncio.to_thread(app.known, request.thread)
        choices = choices_of(thread)
        changed = replace(choices, options=changed_options(choices.options, request.body))
        if changed != choices:
            metadata = with_choices(thread.metadata, changed)
            thread = await asyncio.to_thread(partial(app.threads.change, thread.id, metadata=metadata))
            app.updates.refresh(thread.id)
        return await self._shown(thread)

    async def _shown(self, thread: Thread) -> JsonObject:
        """Return the options, and whether the thread begins with its own instructions, which are sent too."""
        instructed = await asyncio.to_thread(self._app.agents.begins_with_system, thread)
        return {**choices_of(thread).options.shown(), "instructed": instructed}

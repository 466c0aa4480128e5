"""The endpoints of the app as a whole: its state, settings, sources and models, logging in, what it all cost."""

import asyncio
from collections.abc import Callable, Sequence

from starlette.responses import Response

from everlong import __version__
from everlong.core import Json, JsonObject
from everlong.engine import SMALLEST, outlook
from everlong.errors import InputError, Refused
from everlong.web.answering import Asked, as_json
from everlong.web.desk import Desk
from everlong.web.fields import needed_text, optional_text
from everlong.web.guarding import COOKIE
from everlong.web.listing import list_models
from everlong.web.settings import THRESHOLDS, changed
from everlong.web.sources import Source
from everlong.web.usage import Usage

__all__ = ["Choosing"]

A_MONTH = 30 * 24 * 3_600  # seconds that a login lasts
MOST_DAYS = 366
LOCAL = "local"  # the address, and the name, of the model on this machine


class Choosing:
    """What a person sets, and reads of the whole."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._usage = Usage(desk.threads, desk.setup.registry)
        self._starting = asyncio.Lock()

    async def state(self, _: Asked) -> Json:
        """All that a page needs first."""
        desk = self._desk
        await desk.models.refresh()
        rows = await asyncio.to_thread(desk.models.shown, desk.settings)
        default = await asyncio.to_thread(desk.models.default)
        return {
            "version": __version__,
            "language": desk.settings.language,
            "first_run": not desk.sources.all,
            "models": [*rows],
            "default_model": default,
            "outlook": _outlook(rows, default),
            "tools": desk.settings.tools,
            "settings": desk.settings.shown(),
            "login": bool(desk.guard.password),
        }

    async def settings(self, _: Asked) -> Json:
        """The settings."""
        return self._desk.settings.shown()

    async def set(self, asked: Asked) -> Json:
        """Other settings; what is not named stays."""
        settings = changed(self._desk.settings, asked.said)
        for model in {settings.summary_model, settings.naming_model} - {""}:
            self._desk.models.chosen(model)
        await self._desk.change_settings(settings)
        return settings.shown()

    async def sources(self, _: Asked) -> Json:
        """Where models come from, without keys."""
        desk = self._desk
        await desk.models.refresh()
        added = {source.name for source in desk.sources.added}
        return [source.shown(desk.models.count(source), added=source.name in added) for source in desk.sources.all]

    async def add_source(self, asked: Asked) -> Json:
        """Another source, kept once it has named its models."""
        desk = self._desk
        where = needed_text(asked.said, "url", most=2_000)
        if where == LOCAL and desk.setup.start_local is not None:
            return await self._local(desk.setup.start_local)
        planned = desk.sources.planned(
            where,
            name=optional_text(asked.said, "name") or "",
            key=optional_text(asked.said, "key", most=4_000) or "",
            fmt=optional_text(asked.said, "format") or "",
        )
        listed = await list_models(planned.endpoint)
        await asyncio.to_thread(desk.sources.add, planned)
        desk.models.learn(planned.name, listed)
        desk.sources_changed()
        return planned.shown(len(listed), added=True)

    async def _local(self, start: Callable[[], Source]) -> Json:
        """The model of this machine, started now unless it runs; it is there until the server ends."""
        async with self._starting:
            source = self._desk.sources.named(LOCAL)
            if source is None:
                try:
                    source = await asyncio.to_thread(start)
                except InputError as error:
                    raise Refused(str(error), status=502, kind="local") from None
                self._desk.sources.give(source)
                self._desk.sources_changed()
        return source.shown(len(source.models), added=False)

    async def remove_source(self, asked: Asked) -> Json:
        """Forget a source and its key."""
        name = asked.named("name")
        await asyncio.to_thread(self._desk.sources.remove, name)
        self._desk.models.forget(name)
        self._desk.sources_changed()
        return {}

    async def usage(self, asked: Asked) -> Json:
        """What was spent and saved."""
        days = asked.count("days", 30, MOST_DAYS) or 30
        return await asyncio.to_thread(self._usage.of, days)

    async def log_in(self, asked: Asked) -> "Json | Response":
        """The password against a cookie."""
        guard = self._desk.guard
        response = as_json({})
        if guard.password:
            login = guard.log_in(needed_text(asked.said, "password"))
            secure = asked.request.url.scheme == "https"
            response.set_cookie(COOKIE, login, max_age=A_MONTH, httponly=True, samesite="strict", secure=secure)
        return response

    async def log_out(self, asked: Asked) -> "Json | Response":
        """The cookie no longer counts."""
        self._desk.guard.log_out(asked.request.cookies.get(COOKIE, ""))
        response = as_json({})
        response.delete_cookie(COOKIE)
        return response


def _outlook(models: Sequence[JsonObject], default: str) -> list[Json]:
    """What each threshold costs and keeps with the default model, else the first; nothing where none was measured."""
    in_use = next((model for model in models if model["id"] == default), next(iter(models), {"window": None}))
    match in_use["window"]:
        case int(window) if window >= SMALLEST:
            found = [(threshold, outlook(window, threshold / 100).percents) for threshold in THRESHOLDS]
            return [{"threshold": threshold, "cost": cost, "kept": kept} for threshold, (cost, kept) in found]
        case _:
            return []

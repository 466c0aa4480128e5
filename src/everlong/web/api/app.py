"""Endpoints of the app as a whole: state, settings, sources, usage, the gateway's requests, login."""

import asyncio
from collections.abc import Callable, Sequence

from starlette.responses import Response

from everlong import __version__
from everlong.compress import PRESETS
from everlong.core import Json, JsonObject
from everlong.engine import SMALLEST, outlook
from everlong.errors import InputError, Refused
from everlong.web.api.endpoint import ApiRequest, event_stream, json_response, last_event
from everlong.web.api.guard import COOKIE, Guard
from everlong.web.app import EVERYBODY, LIVE, AppState
from everlong.web.fields import optional_text, required_text
from everlong.web.state.models import list_models
from everlong.web.state.settings import THRESHOLDS, changed_settings
from everlong.web.state.sources import Source
from everlong.web.state.usage import Usage

__all__ = ["AppEndpoints"]

LOGIN_SECONDS = 30 * 24 * 3_600  # a month
DEFAULT_DAYS, MOST_DAYS = 30, 366
LOCAL = "local"  # the address, and the name, of the model on this machine


class AppEndpoints:
    """Endpoints that belong to no thread."""

    def __init__(self, app: AppState, guard: Guard) -> None:
        self._app = app
        self._guard = guard
        self._usage = Usage(app.threads, app.setup.registry)
        self._local_start = asyncio.Lock()

    async def state(self, _: ApiRequest) -> Json:
        """Return everything that a page needs first."""
        app = self._app
        await app.models.refresh()
        models = await asyncio.to_thread(app.models.shown, app.settings)
        default = await asyncio.to_thread(app.models.default)
        starts = await app.agents.thresholds(default or next((str(model["id"]) for model in models), ""))
        return {
            "version": __version__,
            "language": app.settings.language,
            "first_run": not app.sources.all,
            "models": [*models],
            "default_model": default,
            "outlook": _outlook(models, default),
            "presets": [
                {"name": preset.name, "measured": preset.measured, "starts": [*starts.get(preset.name, ())]}
                for preset in PRESETS.values()
            ],
            "tools": app.settings.tools,
            "sandbox": {"kind": app.sandbox.kind, "network": app.sandbox.network},
            "settings": app.settings.shown(),
            "login": bool(self._guard.password),
            "live_by_key": app.setup.watched is not None,
        }

    async def settings(self, _: ApiRequest) -> Json:
        """Return the settings."""
        return self._app.settings.shown()

    async def set(self, request: ApiRequest) -> Json:
        """Change the settings that the body names; the others stay."""
        settings = changed_settings(self._app.settings, request.body)
        for model in {settings.summary_model, settings.naming_model} - {""}:
            self._app.models.chosen(model)
        await self._app.change_settings(settings)
        return settings.shown()

    async def sources(self, _: ApiRequest) -> Json:
        """Return the sources of models, without their keys."""
        app = self._app
        await app.models.refresh()
        added = {source.name for source in app.sources.added}
        return [source.shown(app.models.count(source), added=source.name in added) for source in app.sources.all]

    async def add_source(self, request: ApiRequest) -> Json:
        """Add a source, once it has listed its models."""
        app = self._app
        url = required_text(request.body, "url", most=2_000)
        if url == LOCAL and app.setup.start_local is not None:
            return await self._add_local(app.setup.start_local)
        source = app.sources.planned(
            url,
            name=optional_text(request.body, "name") or "",
            key=optional_text(request.body, "key", most=4_000) or "",
            fmt=optional_text(request.body, "format") or "",
            fast_model=optional_text(request.body, "fast_model") or "",
        )
        models = await list_models(source.endpoint, app.sources.reach)
        await asyncio.to_thread(app.sources.add, source)
        app.models.learn(source.name, models)
        app.sources_changed()
        return source.shown(len(models), added=True)

    async def _add_local(self, start: Callable[[], Source]) -> Json:
        """Start the model on this machine unless it runs. It stays until the server ends."""
        async with self._local_start:
            source = self._app.sources.named(LOCAL)
            if source is None:
                try:
                    source = await asyncio.to_thread(start)
                except InputError as error:
                    raise Refused(str(error), status=502, kind="local") from None
                self._app.sources.give(source)
                self._app.sources_changed()
        return source.shown(len(source.models), added=False)

    async def remove_source(self, request: ApiRequest) -> Json:
        """Remove a source and its key."""
        name = request.path_name("name")
        await asyncio.to_thread(self._app.sources.remove, name)
        self._app.models.forget(name)
        self._app.sources_changed()
        return {}

    async def usage(self, request: ApiRequest) -> Json:
        """Return what the last days cost and what compaction saved."""
        days = request.count("days", DEFAULT_DAYS, MOST_DAYS) or DEFAULT_DAYS
        return await asyncio.to_thread(self._usage.of, days)

    async def live(self, request: ApiRequest) -> "Json | Response":
        """Stream the requests that go through the gateway: all of them, or those of the key that is sent along."""
        watched = self._app.setup.watched
        owner = EVERYBODY if watched is None else watched(request.http.headers.raw)
        return event_stream(self._app.hub.listen(LIVE + owner, last_event(request), lambda _: []))

    async def log_in(self, request: ApiRequest) -> "Json | Response":
        """Exchange the password for a cookie."""
        response = json_response({})
        if self._guard.password:
            client = request.http.client
            login = self._guard.log_in(required_text(request.body, "password"), client.host if client else "")
            secure = request.http.url.scheme == "https"
            response.set_cookie(COOKIE, login, max_age=LOGIN_SECONDS, httponly=True, samesite="strict", secure=secure)
        return response

    async def log_out(self, request: ApiRequest) -> "Json | Response":
        """End the login of the cookie."""
        self._guard.log_out(request.http.cookies.get(COOKIE, ""))
        response = json_response({})
        response.delete_cookie(COOKIE)
        return response


def _outlook(models: Sequence[JsonObject], default: str) -> list[Json]:
    """Return what each threshold costs and keeps with the default model, else the first; empty if unknown."""
    in_use = next((model for model in models if model["id"] == default), next(iter(models), {"window": None}))
    match in_use["window"]:
        case int(window) if window >= SMALLEST:
            rows = [(threshold, outlook(window, threshold / 100).percents) for threshold in THRESHOLDS]
            return [{"threshold": threshold, "cost": cost, "kept": kept} for threshold, (cost, kept) in rows]
        case _:
            return []

"""Endpoints of the app as a whole: state, settings, sources, the sample, the local model, usage, login."""

import asyncio
from collections.abc import Sequence

from everlong import __version__
from everlong.compress import PRESETS
from everlong.core import Json, JsonObject
from everlong.engine import SMALLEST, Settings, outlook
from everlong.errors import Refused
from everlong.web.api.endpoint import ApiRequest
from everlong.web.api.guard import Guard
from everlong.web.app import AppState
from everlong.web.fields import invalid, optional_text, required_text
from everlong.web.state.models import tested
from everlong.web.state.settings import THRESHOLDS, changed_settings
from everlong.web.state.sources import Source
from everlong.web.words import LANGUAGES

__all__ = ["AppEndpoints"]

DEFAULT_DAYS, MOST_DAYS = 30, 366


class AppEndpoints:
    """Endpoints that do not belong to a thread."""

    def __init__(self, app: AppState, guard: Guard) -> None:
        self._app = app
        self._guard = guard
        self._sampling = asyncio.Lock()

    async def state(self, request: ApiRequest) -> Json:
        """Return everything that a page needs first."""
        app = self._app
        await app.models.refresh()
        models = await asyncio.to_thread(app.models.shown, app.settings)
        default = await asyncio.to_thread(app.models.default)
        starts = await app.agents.thresholds(default or next((str(model["id"]) for model in models), ""))
        return {
            "version": __version__,
            "language": app.settings.language,
            "first_run": not any(map(self._speaks, app.sources.all)),
            "witness": next((source.name for source in app.sources.all if source.witness), ""),
            "opens_sample": app.setup.sample is not None and app.setup.opens_sample,
            "models": [*models],
            "default_model": default,
            "outlook": _outlook(models, default),
            "presets": [
                {
                    "name": preset.name,
                    "measured": preset.measured,
                    "by_tokens": Settings(preset=preset.name).heeds_threshold,
                    "starts": [{"soon": due.soon, "at": due.at} for due in starts.get(preset.name, ())],
                }
                for preset in PRESETS.values()
            ],
            "tools": app.settings.tools,
            "sandbox": {"kind": app.sandbox.kind, "network": app.sandbox.network},
            "settings": app.settings.shown(),
            "login": bool(self._guard.password or self._guard.provider),
            "user": request.user.name,
            "tools_allowed": app.setup.tools,
            "live_by_key": app.setup.watched is not None,
            "keys": app.setup.keys,
        }

    def _speaks(self, source: Source) -> bool:
        """Return whether a source was added or has models. The witness does not count: it needs no set-up."""
        return not source.witness and (source in self._app.sources.added or self._app.models.count(source) > 0)

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
        if app.setup.owner and app.setup.vault is None:
            reason = "keys can be stored only in encrypted form: set EVERLONG_SECRET on the server"
            raise Refused(reason, status=409, kind="no_vault")
        source = app.sources.planned(
            required_text(request.body, "url", most=2_000),
            name=optional_text(request.body, "name") or "",
            key=optional_text(request.body, "key", most=4_000) or "",
            fmt=optional_text(request.body, "format") or "",
            fast_model=optional_text(request.body, "fast_model") or "",
        )
        return await self._keep_source(source)

    async def change_source(self, request: ApiRequest) -> Json:
        """Change an added source: its fast model; its address, key or format once it has listed its models."""
        app, body = self._app, request.body
        source = app.sources.changed(
            request.path_name("name"),
            url=optional_text(body, "url", most=2_000),
            key=optional_text(body, "key", most=4_000),
            fmt=optional_text(body, "format") or "",
            fast_model=optional_text(body, "fast_model"),
        )
        if not {"url", "key", "format"} & body.keys():
            await asyncio.to_thread(app.sources.add, source)
            app.sources_changed()
            return source.shown(app.models.count(source), added=True)
        return await self._keep_source(source)

    async def _keep_source(self, planned: Source) -> Json:
        """Test a source and store it, with the address that answered."""
        app = self._app
        source, models = await tested(planned, app.sources.reach)
        await asyncio.to_thread(app.sources.add, source)
        app.models.forget(source.name)
        app.models.learn(source.name, models)
        app.sources_changed()
        return source.shown(len(models), added=True)

    async def remove_source(self, request: ApiRequest) -> Json:
        """Remove a source and its key."""
        name = request.path_name("name")
        await asyncio.to_thread(self._app.sources.remove, name)
        self._app.models.forget(name)
        self._app.sources_changed()
        return {}

    async def sample(self, request: ApiRequest) -> Json:
        """Return the sample thread of a language; the first time it is made."""
        language = required_text(request.body, "language")
        if language not in LANGUAGES:
            raise invalid(f"language must be one of {', '.join(LANGUAGES)}")
        if self._app.setup.sample is None:
            raise Refused("this server has no sample", status=404, kind="no_sample")
        async with self._sampling:  # two tabs that open at once get the same thread
            return {"thread": await self._app.setup.sample(self._app, language)}

    async def local(self, _: ApiRequest) -> Json:
        """Return the state of the local model."""
        return self._app.local.shown()

    async def start_local(self, _: ApiRequest) -> Json:
        """Fetch and start the local model in the background."""
        self._app.local.begin()
        return self._app.local.shown()

    async def cancel_local(self, _: ApiRequest) -> Json:
        """Cancel the download of the local model."""
        await self._app.local.cancel()
        return self._app.local.shown()

    async def usage(self, request: ApiRequest) -> Json:
        """Return what the last days cost and what compaction saved."""
        days = request.count("days", DEFAULT_DAYS, MOST_DAYS) or DEFAULT_DAYS
        return await asyncio.to_thread(self._app.usage.of, days)


def _outlook(models: Sequence[JsonObject], default: str) -> list[Json]:
    """Return what each threshold costs and keeps with the default model, else the first; empty if unknown."""
    in_use = next((model for model in models if model["id"] == default), next(iter(models), {"window": None}))
    match in_use["window"]:
        case int(window) if window >= SMALLEST:
            rows = [(threshold, outlook(window, threshold / 100).percents) for threshold in THRESHOLDS]
            return [{"threshold": threshold, "cost": cost, "kept": kept} for threshold, (cost, kept) in rows]
        case _:
            return []

"""The gateway as one ASGI application: its endpoints, and what starts and ends with it."""

import asyncio
import ctypes
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any, TypeAlias

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from everlong import __version__
from everlong.core import Json, JsonObject
from everlong.engine import counter_for
from everlong.errors import Refused
from everlong.gateway.config import GatewayConfig, is_loopback
from everlong.gateway.exchange.response import status_of
from everlong.gateway.http.boundary import Boundary
from everlong.gateway.http.drain import Drain
from everlong.gateway.http.endpoints import ModelEndpoint, TokenCountEndpoint, format_of, raw_path
from everlong.gateway.http.engine_api import engine_endpoints
from everlong.gateway.http.families import FAMILIES, Family, ModelListEndpoint, PassThroughEndpoint
from everlong.gateway.http.keys_api import key_routes
from everlong.gateway.operations.services import Services
from everlong.gateway.surfaces import DEFAULT_FORMAT, FORMATS, SURFACES, Surface
from everlong.gateway.upstreams.routing import Upstream
from everlong.windows import window
from everlong.wire import Format, json_bytes

__all__ = ["Beside", "gateway_app", "use_one_heap"]

Beside: TypeAlias = Callable[[Services], AbstractAsyncContextManager[Sequence[Route]]]

M_ARENA_MAX = -8  # glibc's constant for the maximum number of heaps
TRIMMING = 20.0  # seconds after which free memory is returned to the system again
WARMED_UP = "gpt-4o"
UNKNOWN = 404
PAUSES = (0.05, 0.1, 0.25, 0.5, 1.0)  # seconds between two checks for a request that another process is about to store
ALL = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE"})
LISTS = "/models"
#: Base paths that are not endpoints; people open them to see whether the server is there.
ROOTS = tuple(base + end for base in sorted({each.api.base for each in FORMATS.values()}) for end in ("", "/"))
LONGEST_PATH = 200  # characters of a path that an error repeats


@asynccontextmanager
async def _nothing(_: Services) -> AsyncIterator[Sequence[Route]]:
    yield ()


class _Application(Starlette):
    """An application inside its boundary, which also covers error responses."""

    def __init__(self, config: GatewayConfig, drain: Drain, **options: Any) -> None:
        super().__init__(**options)
        self._config = config
        self._drain = drain

    def build_middleware_stack(self) -> ASGIApp:
        inside = _Shortcut(super().build_middleware_stack(), self.router.routes)
        return self._drain.around(Boundary.around(inside, self._config))


class _Shortcut:
    """Sends requests for a model directly to their endpoint, past all other routes."""

    def __init__(self, app: ASGIApp, routes: Sequence[BaseRoute]) -> None:
        self._app, self._routes = app, routes
        self._known: dict[str, _SurfaceRoute] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or leave it to the application."""
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        if not self._known:  # the routes exist once the application has started
            ours = (route for route in self._routes if isinstance(route, _SurfaceRoute))
            self._known = {route.path: route for route in ours if "{" not in route.path}
        route = self._known.get(raw_path(scope))
        if route is None:
            await self._app(scope, receive, send)
            return
        scope.update(route.matches(scope)[1])
        await route.endpoint(scope, receive, send)


def gateway_app(config: GatewayConfig, made: Callable[[], Services], beside: Beside = _nothing) -> Starlette:
    """Return the application. `made` creates its services when it starts, in its event loop.

    `beside` gives further routes that are served on the same port while the gateway runs; the gateway's own come first.
    """

    drain = Drain(config.drain_delay)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        services = app.state.services = made()
        app.router.routes.extend(_routes(services, drain))
        await asyncio.to_thread(_warm_up)
        work = (_trim_regularly(services), services.pulse.run(), services.keys.run())
        tasks = [asyncio.create_task(each) for each in work]
        try:
            async with beside(services) as routes, drain.listening(services.ending):
                app.router.routes.extend(routes)
                await services.jobs.start()
                try:
                    yield
                finally:
                    await services.jobs.close(config.grace)  # before anything that its jobs need is closed
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await services.close()

    handlers = {404: _not_found, 405: _not_found, 500: _failed}
    return _Application(config, drain, lifespan=lifespan, exception_handlers=handlers)


def _health_routes(services: Services, drain: Drain) -> list[BaseRoute]:
    async def health(_: Request) -> Response:
        return JSONResponse({"status": "ok", "version": __version__, "conversations": len(services.conversations)})

    async def live(_: Request) -> Response:
        return JSONResponse({"status": "live"})

    async def ready(_: Request) -> Response:
        if drain.begun:
            return JSONResponse({"status": "draining"}, 503)
        degraded = services.pulse.store_answers is False
        return JSONResponse({"status": "degraded" if degraded else "ready", "store": not degraded})

    return [Route("/health", health), Route("/health/live", live), Route("/health/ready", ready)]


def _routes(services: Services, drain: Drain) -> list[BaseRoute]:

    async def metrics(request: Request) -> Response:
        try:
            _check_reader(services, request)
        except Refused as error:
            return _error(DEFAULT_FORMAT, *status_of(error, DEFAULT_FORMAT.server.errors))
        body, kind = services.metrics.written()
        return Response(body, headers={"content-type": kind})

    async def upstreams(request: Request) -> Response:
        try:
            _check_reader(services, request)
        except Refused as error:
            return _error(DEFAULT_FORMAT, *status_of(error, DEFAULT_FORMAT.server.errors))
        return JSONResponse([_shown(services, upstream) for upstream in services.routes.upstreams])

    async def root(request: Request) -> Response:
        return JSONResponse({"message": f"the gateway is here: {_guide(request)}", "version": __version__})

    routes = [*_health_routes(services, drain), Route("/metrics", metrics), Route("/everlong/upstreams", upstreams)]
    routes += [Route(path, root) for path in ROOTS]
    routes += [
        Route("/everlong/requests", _RecentRequests(services)),
        Route("/everlong/requests/{name}", _RecentRequests(services)),
    ]
    routes += [Route(path, endpoint, methods=[method]) for method, path, endpoint in engine_endpoints(services)]
    routes += key_routes(services)
    answers, counts = ModelEndpoint(services), TokenCountEndpoint(services)
    return [
        *routes,
        *(_SurfaceRoute(surface, counts if surface.counts else answers) for surface in SURFACES),
        *(_FamilyRoute(family, ModelListEndpoint(services, family), lists=True) for family in FAMILIES if family.usual),
        *(_FamilyRoute(family, PassThroughEndpoint(services, family)) for family in FAMILIES),
    ]


class _PathRoute(BaseRoute, ABC):
    """A route by the raw path, still encoded: names of models may contain an encoded slash."""

    #: How the paths look, for people.
    path: str
    endpoint: ASGIApp
    methods: frozenset[str]

    @abstractmethod
    def found(self, path: str) -> dict[str, object] | None:
        """Return the values for the scope of a request to this path; None if the route does not match."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Return whether the route is for a request."""
        found = self.found(raw_path(scope)) if scope["type"] == "http" else None
        if found is None:
            return Match.NONE, {}
        fits = scope["method"] in self.methods
        return (Match.FULL if fits else Match.PARTIAL), {"endpoint": self.endpoint, "path_params": {}, **found}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that matched, if the path allows its method."""
        if scope["method"] not in self.methods:
            raise HTTPException(status_code=405)
        await self.endpoint(scope, receive, send)


class _SurfaceRoute(_PathRoute):
    def __init__(self, surface: Surface, endpoint: ASGIApp) -> None:
        self.surface, self.endpoint, self.methods = surface, endpoint, frozenset({"POST"})
        self.path = surface.base + surface.path

    def found(self, path: str) -> dict[str, object] | None:
        address = self.surface.address(path)
        return None if address is None else {"address": address}


class _FamilyRoute(_PathRoute):
    """All paths of a family, or only its list of models."""

    def __init__(self, family: Family, endpoint: ASGIApp, *, lists: bool = False) -> None:
        self.family, self.endpoint, self.lists = family, endpoint, lists
        self.methods = frozenset({"GET"}) if lists else ALL
        self.path = family.base + (LISTS if lists else "/{path}")

    def found(self, path: str) -> dict[str, object] | None:
        rest = self.family.rest(path)
        return None if rest is None or (self.lists and rest.rstrip("/") != LISTS) else {}


def _shown(services: Services, upstream: Upstream) -> JsonObject:
    """Return an upstream as its operator sees it: its addresses, and their health as this process knows it."""
    addresses: list[Json] = []
    for site in upstream.sites or (upstream,):
        circuit = services.forwarding.circuits.of(site)
        addresses.append(
            {
                "address": site.place,
                "weight": site.weight or None,
                "circuit": circuit.state.word,
                "failures": circuit.failures,
                "reason": circuit.reason,
            }
        )
    return {"name": upstream.name, "models": list(upstream.models), "addresses": addresses}


def _check_reader(services: Services, request: Request) -> None:
    """Raise Refused unless the caller may read the figures of all clients: from this machine, or with a key."""
    if request.client is not None and is_loopback(request.client.host):  # the connection itself; headers can be forged
        return
    if not services.clients.needs_key:
        raise Refused(
            "metrics can be read on this machine, or with a key: create one with `everlong keys create NAME`",
            status=403,
            kind="no_keys",
        )
    services.clients.identify(request.scope["headers"])


class _RecentRequests:
    """Lists recent requests, each only for the key that made it."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def __call__(self, scope: dict[str, object], receive: object, send: object) -> None:
        request = Request(scope)
        response = await asyncio.to_thread(self._response, request)  # the store may be remote
        may_come = self._services.recent.may_come(request.path_params.get("name", ""))
        for pause in PAUSES if response.status_code == UNKNOWN and may_come else ():
            await asyncio.sleep(pause)
            response = await asyncio.to_thread(self._response, request)
            if response.status_code != UNKNOWN:
                break
        await response(scope, receive, send)  # type: ignore[arg-type]

    def _response(self, request: Request) -> Response:
        try:
            client = self._services.clients.identify(request.scope["headers"])
        except Refused as error:
            return _error(DEFAULT_FORMAT, *status_of(error, DEFAULT_FORMAT.server.errors))
        name = request.path_params.get("name")
        if name is None:
            return _json(("[" + ",".join(self._services.recent.of(client.scope)) + "]").encode())
        found = self._services.recent.one(client.scope, name)
        if found is None:
            return _error(
                DEFAULT_FORMAT, UNKNOWN, "unknown_request", "there is no recent request with this id for your key"
            )
        return _json(found.encode())


def _json(body: bytes, status: int = 200) -> Response:
    return Response(body, status, {"content-type": "application/json"})


def _error(format_: Format, status: int, kind: str, message: str) -> Response:
    return _json(json_bytes(format_.server.errors.body(status, kind, message)), status)


async def _not_found(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 404
    message = _guide_elsewhere(request, status)
    return _error(format_of(request.scope["headers"]), status, "unknown_endpoint", message)


# --- answers for wrong addresses: one sentence with the address to use --------------------------------


def _guide(request: Request) -> str:
    """Return the base URL of each kind of client, as one sentence."""
    bases: dict[str, list[str]] = {}
    for each in FORMATS.values():
        titles = bases.setdefault(each.server.client_base, [])
        titles += [each.server.title] if each.server.title not in titles else []
    here = f"{request.url.scheme}://{request.url.netloc}"
    uses = [f"{_listed(titles)} clients use {here}{base}" for base, titles in sorted(bases.items(), reverse=True)]
    return f"{_listed(uses)} as their base URL"


def _guide_elsewhere(request: Request, status: int) -> str:
    """Return the message for a path without an endpoint, or for a method that the path does not support."""
    path = request.scope["path"][:LONGEST_PATH]
    if status == 405:
        return f"{path} does not support {request.method}"
    return f"there is no endpoint {request.method} {path}; this is a model gateway: {_guide(request)}"


def _listed(words: list[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else words[0]


async def _failed(request: Request, _: Exception) -> Response:
    message = "internal error in the gateway; see its log"
    return _error(format_of(request.scope["headers"]), 500, "internal", message)


def _warm_up() -> None:
    """Load what the first request would wait for: the usual vocabulary. Others are loaded when they are needed."""
    counter_for(WARMED_UP).text("ready" * 1_000)  # a word so long that the tables for such words are built too
    window(WARMED_UP)


async def _trim_regularly(services: Services) -> None:
    while True:
        await asyncio.sleep(TRIMMING)
        services.conversations.store_learned()
        await asyncio.to_thread(_trim_memory)


# --- memory of a long-running process: returned by the C library, if it can -------------------------


def use_one_heap() -> None:
    """Use one heap for all threads, so that one can reuse what another frees. Call it before there are threads."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, 1)


def _trim_memory() -> None:
    """Return free memory to the system. Takes a few milliseconds; not for the event loop."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)

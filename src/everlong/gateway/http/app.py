"""The gateway as one ASGI application: its endpoints, and what is started and ended with it."""

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
from everlong.engine import counter_for
from everlong.errors import Refused
from everlong.gateway.config import GatewayConfig, is_loopback
from everlong.gateway.exchange.response import status_of
from everlong.gateway.http.boundary import Boundary
from everlong.gateway.http.endpoints import ModelEndpoint, TokenCountEndpoint, format_of, raw_path
from everlong.gateway.http.engine_api import engine_endpoints
from everlong.gateway.http.families import FAMILIES, Family, ModelListEndpoint, PassThroughEndpoint
from everlong.gateway.operations.services import Services
from everlong.gateway.surfaces import DEFAULT_FORMAT, FORMATS, SURFACES, Surface
from everlong.windows import window
from everlong.wire import Format, json_bytes

__all__ = ["Beside", "gateway_app", "use_one_heap"]

Beside: TypeAlias = Callable[[Services], AbstractAsyncContextManager[Sequence[Route]]]

M_ARENA_MAX = -8  # glibc's number for the most heaps
TRIMMING = 20.0  # seconds between two times that free memory is given back
WARMED_UP = ("gpt-4o", "gemini-2.5-pro")
SWEEPING = 3_600.0  # seconds between two looks for what is too old
ALL = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE"})
LISTS = "/models"
#: Paths that are bases and no endpoints; people open them to see whether something is there.
ROOTS = tuple(base + end for base in sorted({each.api.base for each in FORMATS.values()}) for end in ("", "/"))
LONGEST_PATH = 200  # characters of a path that an error repeats


@asynccontextmanager
async def _nothing(_: Services) -> AsyncIterator[Sequence[Route]]:
    yield ()


class _Application(Starlette):
    """An application inside its boundary: errors of its own are too."""

    def __init__(self, config: GatewayConfig, **options: Any) -> None:
        super().__init__(**options)
        self._config = config

    def build_middleware_stack(self) -> ASGIApp:
        return Boundary.around(super().build_middleware_stack(), self._config)


def gateway_app(config: GatewayConfig, made: Callable[[], Services], beside: Beside = _nothing) -> Starlette:
    """Return the application. `made` returns its services when it starts, in the event loop it runs in.

    `beside` gives further routes that are served on the port while the gateway runs; they come after the gateway's.
    """

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        services = app.state.services = made()
        app.router.routes.extend(_routes(services))
        await asyncio.to_thread(_warm_up)
        tasks = [asyncio.create_task(_sweep_regularly(services)), asyncio.create_task(_trim_regularly())]
        try:
            async with beside(services) as routes:
                app.router.routes.extend(routes)
                yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await services.close()

    return _Application(config, lifespan=lifespan, exception_handlers={404: _not_found, 405: _not_found, 500: _failed})


def _routes(services: Services) -> list[BaseRoute]:
    async def health(_: Request) -> Response:
        return JSONResponse({"status": "ok", "version": __version__, "conversations": len(services.conversations)})

    async def metrics(request: Request) -> Response:
        try:
            _check_reader(services, request)
        except Refused as error:
            return _error(DEFAULT_FORMAT, *status_of(error, DEFAULT_FORMAT.server.errors))
        body, kind = services.metrics.written()
        return Response(body, headers={"content-type": kind})

    async def root(request: Request) -> Response:
        return JSONResponse({"message": f"the gateway is here: {_guide(request)}", "version": __version__})

    routes: list[BaseRoute] = [Route("/health", health), Route("/metrics", metrics)]
    routes += [Route(path, root) for path in ROOTS]
    routes += [
        Route("/everlong/requests", _RecentRequests(services)),
        Route("/everlong/requests/{name}", _RecentRequests(services)),
    ]
    routes += [Route(path, endpoint, methods=[method]) for method, path, endpoint in engine_endpoints(services)]
    answers, counts = ModelEndpoint(services), TokenCountEndpoint(services)
    return [
        *routes,
        *(_SurfaceRoute(surface, counts if surface.counts else answers) for surface in SURFACES),
        *(_FamilyRoute(family, ModelListEndpoint(services, family), lists=True) for family in FAMILIES if family.usual),
        *(_FamilyRoute(family, PassThroughEndpoint(services, family)) for family in FAMILIES),
    ]


class _PathRoute(BaseRoute, ABC):
    """A route by the path as it was written, still encoded: names of models may hold an encoded slash."""

    #: How the paths look, for people.
    path: str
    endpoint: ASGIApp
    methods: frozenset[str]

    @abstractmethod
    def found(self, path: str) -> dict[str, object] | None:
        """Return what is noted in the scope of a request to this path; None if the route is not for it."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Return whether the route is for a request."""
        found = self.found(raw_path(scope)) if scope["type"] == "http" else None
        if found is None:
            return Match.NONE, {}
        fits = scope["method"] in self.methods
        return (Match.FULL if fits else Match.PARTIAL), {"endpoint": self.endpoint, "path_params": {}, **found}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that matched, if its method is one that the path has."""
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


def _check_reader(services: Services, request: Request) -> None:
    """Raise Refused unless the figures of all clients may be read: on this machine, or with a key."""
    if request.client is not None and is_loopback(request.client.host):  # the connection's own end; headers may lie
        return
    if not services.config.keys:
        raise Refused("metrics are read on this machine, or with a key: add [[keys]]", status=403, kind="no_keys")
    services.clients.identify(request.scope["headers"])


class _RecentRequests:
    """Lists recent requests for the key that made them and nobody else."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def __call__(self, scope: dict[str, object], receive: object, send: object) -> None:
        request = Request(scope)
        response = await asyncio.to_thread(self._response, request)  # the store may be far away
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
            return _error(DEFAULT_FORMAT, 404, "unknown_request", "no recent request of this key has that id")
        return _json(found.encode())


def _json(body: bytes, status: int = 200) -> Response:
    return Response(body, status, {"content-type": "application/json"})


def _error(format_: Format, status: int, kind: str, message: str) -> Response:
    return _json(json_bytes(format_.server.errors.body(status, kind, message)), status)


async def _not_found(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 404
    message = _guide_elsewhere(request, status)
    return _error(format_of(request.scope["headers"]), status, "unknown_endpoint", message)


# --- what somebody is told who asks at a wrong address: one sentence with the address to use ----------


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
    """Return what to say of a path that has no endpoint, or has none for the method."""
    path = request.scope["path"][:LONGEST_PATH]
    if status == 405:
        return f"{path} is not there for {request.method}"
    return f"no endpoint {request.method} {path}; this is a gateway to models: {_guide(request)}"


def _listed(words: list[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else words[0]


async def _failed(request: Request, _: Exception) -> Response:
    message = "the gateway failed; its log has the reason"
    return _error(format_of(request.scope["headers"]), 500, "internal", message)


def _warm_up() -> None:
    """Load what the first request would wait for: the usual vocabulary, and the one that takes longest to load."""
    for model in WARMED_UP:
        counter_for(model).text("ready" * 1_000)  # one word so long that the tables for such words are made too
    window(WARMED_UP[0])


async def _trim_regularly() -> None:
    while True:
        await asyncio.sleep(TRIMMING)
        await asyncio.to_thread(_trim_memory)


async def _sweep_regularly(services: Services) -> None:
    while True:
        await asyncio.to_thread(services.state_store.sweep)
        await asyncio.sleep(SWEEPING)


# --- memory of a long-running process: given back by the C library, if it can -----------------------


def use_one_heap() -> None:
    """Use one heap for all threads, so that one can use what another frees. Call it before there are threads."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, 1)


def _trim_memory() -> None:
    """Give free memory back to the system. Takes some milliseconds; not in the event loop."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)

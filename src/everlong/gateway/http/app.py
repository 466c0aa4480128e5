"""The gateway as one ASGI application: its endpoints, and what is started and ended with it."""

import asyncio
import ctypes
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import TypeAlias

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from everlong import __version__
from everlong.engine import counter_for
from everlong.errors import Refused
from everlong.gateway.exchange.errors import refusal_body, status_of
from everlong.gateway.http.endpoint import format_of
from everlong.gateway.http.endpoints import ModelEndpoint, ModelListEndpoint, PassThroughEndpoint, TokenCountEndpoint
from everlong.gateway.operations.services import Services
from everlong.gateway.request import DIALECTS
from everlong.windows import window

__all__ = ["Beside", "gateway_app", "trim_memory", "use_one_heap"]

M_ARENA_MAX = -8  # glibc's number for it


def use_one_heap() -> None:
    """One heap for all threads: what one lets go another can use. Call it before there are threads."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, 1)


def trim_memory() -> None:
    """Let the system have what is free. Takes some milliseconds; not in the event loop."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


Beside: TypeAlias = Callable[[Services], AbstractAsyncContextManager[Sequence[Route]]]

TIDYING = 20.0  # seconds between two times that free memory is given back
SWEEPING = 3_600.0  # seconds between two looks for what is too old
LONGEST_PATH = 200  # characters of a path that an error repeats
ALL = ["GET", "POST", "PUT", "PATCH", "DELETE"]
BASES = ("/v1", "")  # some clients want the version in their base address, some write it themselves


@asynccontextmanager
async def _nothing(_: Services) -> AsyncIterator[Sequence[Route]]:
    yield ()


def gateway_app(made: Callable[[], Services], beside: Beside = _nothing) -> Starlette:
    """The application. `made` gives its services when it starts, in the event loop it runs in.

    `beside` is what else is served on the port, for as long as the gateway is: its routes come after the gateway's.
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

    return Starlette(lifespan=lifespan, exception_handlers={404: _not_found, 405: _not_found, 500: _failed})


def _routes(services: Services) -> list[Route]:
    async def health(_: Request) -> Response:
        return JSONResponse({"status": "ok", "version": __version__, "conversations": len(services.conversations)})

    async def metrics(_: Request) -> Response:
        body, kind = services.metrics.written()
        return Response(body, headers={"content-type": kind})

    routes = [Route("/health", health), Route("/metrics", metrics)]
    routes += [
        Route("/everlong/requests", _RecentRequests(services)),
        Route("/everlong/requests/{name}", _RecentRequests(services)),
    ]
    for start in BASES:
        for dialect in DIALECTS.values():
            answering = ModelEndpoint(services, dialect)
            routes += [Route(start + dialect.path + end, answering, methods=["POST"]) for end in ("", "/")]
        routes.append(Route(start + "/messages/count_tokens", TokenCountEndpoint(services), methods=["POST"]))
        routes.append(Route(start + "/models", ModelListEndpoint(services), methods=["GET"]))
    return [*routes, Route("/v1/{path:path}", PassThroughEndpoint(services), methods=ALL)]


class _RecentRequests:
    """Recent requests, told to the key that made them and nobody else."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def __call__(self, scope: dict[str, object], receive: object, send: object) -> None:
        request = Request(scope)
        response = await asyncio.to_thread(self._told, request)  # the store may be far away
        await response(scope, receive, send)  # type: ignore[arg-type]

    def _told(self, request: Request) -> Response:
        try:
            client = self._services.clients.identify(request.scope["headers"])
        except Refused as error:
            status, kind, message = status_of(error, "openai-chat")
            return _json(refusal_body("openai-chat", status, kind, message), status)
        name = request.path_params.get("name")
        if name is None:
            return _json(("[" + ",".join(self._services.recent.of(client.scope)) + "]").encode())
        found = self._services.recent.one(client.scope, name)
        if found is None:
            message = "no recent request of this key has that id"
            return _json(refusal_body("openai-chat", 404, "unknown_request", message), 404)
        return _json(found.encode())


def _json(body: bytes, status: int = 200) -> Response:
    return Response(body, status, {"content-type": "application/json"})


async def _not_found(request: Request, _: Exception) -> Response:
    path = request.scope["path"][:LONGEST_PATH]
    message = f"no endpoint {request.method} {path}; the API is below /v1"
    fmt = format_of(request.scope["headers"])
    return _json(refusal_body(fmt, 404, "unknown_endpoint", message), 404)


async def _failed(request: Request, _: Exception) -> Response:
    fmt = format_of(request.scope["headers"])
    return _json(refusal_body(fmt, 500, "internal", "the gateway failed; its log has the reason"), 500)


def _warm_up() -> None:
    """Load what the first request would wait for."""
    counter_for("gpt-4o").text("ready")
    window("gpt-4o")


async def _trim_regularly() -> None:
    while True:
        await asyncio.sleep(TIDYING)
        await asyncio.to_thread(trim_memory)


async def _sweep_regularly(services: Services) -> None:
    while True:
        await asyncio.to_thread(services.kept.sweep)
        await asyncio.sleep(SWEEPING)

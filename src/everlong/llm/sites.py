"""An aiohttp application on a free port of this machine, with the limits that all our servers have."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web
from aiohttp.typedefs import Middleware

from everlong.llm.arrivals import ArrivalLimits, Arrivals, Guarded

__all__ = ["DEFAULT_LIMITS", "guarded_site"]

SHUTDOWN = 0.2  # seconds that requests in progress have when it ends
DEFAULT_LIMITS = ArrivalLimits()

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def guarded_site(app: web.Application, limits: ArrivalLimits = DEFAULT_LIMITS) -> AsyncIterator[int]:
    """Serve an application on 127.0.0.1 until it is left; yield its port."""
    arrivals = Arrivals(limits)
    app.middlewares.append(_watching(limits))
    runner = web.AppRunner(
        app,
        handler_cancellation=True,
        access_log=None,
        shutdown_timeout=SHUTDOWN,
        keepalive_timeout=limits.idle,
        lingering_time=limits.header,
    )
    await runner.setup()
    inner = runner.server
    assert inner is not None
    server = await asyncio.get_running_loop().create_server(lambda: Guarded(inner(), arrivals), "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await runner.cleanup()


def _watching(limits: ArrivalLimits) -> Middleware:
    """Return a middleware that notes the beginning and end of each request, and reads its body in time."""

    @web.middleware
    async def watch(request: web.Request, handler: Handler) -> web.StreamResponse:
        guarded = None if request.transport is None else request.transport.get_protocol()
        if not isinstance(guarded, Guarded):
            raise ConnectionResetError("the client is gone")
        guarded.began()
        try:
            try:
                async with asyncio.timeout(limits.body):
                    await request.read()
            except TimeoutError:
                return web.Response(status=408, text="the request did not arrive in time")
            return await handler(request)
        finally:
            guarded.ended()

    return watch

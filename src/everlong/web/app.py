"""The app's endpoints, in one table, and an application of them alone."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.routing import Route

from everlong.web.answering import LARGEST_TURN, Answer, Endpoint
from everlong.web.choosing import Choosing
from everlong.web.desk import Desk, Setup
from everlong.web.pages import Pages
from everlong.web.talking import Talking
from everlong.web.threads import ThreadList

__all__ = ["Desk", "Setup", "web_app", "web_routes"]

ACCEPTED, CREATED = 202, 201


def web_routes(desk: Desk) -> list[Route]:
    """The routes of page and API, for any application beside its own; who adds them starts and closes the desk."""
    listed = ThreadList(desk)
    talking, choosing = Talking(desk, listed), Choosing(desk)
    table: list[tuple[str, str, Answer, int]] = [
        ("GET", "/api/state", choosing.state, 200),
        ("GET", "/api/settings", choosing.settings, 200),
        ("PUT", "/api/settings", choosing.set, 200),
        ("GET", "/api/sources", choosing.sources, 200),
        ("POST", "/api/sources", choosing.add_source, CREATED),
        ("DELETE", "/api/sources/{name}", choosing.remove_source, 200),
        ("GET", "/api/usage", choosing.usage, 200),
        ("GET", "/api/live", talking.live, 200),
        ("POST", "/api/logout", choosing.log_out, 200),
        ("GET", "/api/threads", listed.listed, 200),
        ("POST", "/api/threads", listed.new, CREATED),
        ("GET", "/api/threads/{thread}", listed.one, 200),
        ("PATCH", "/api/threads/{thread}", listed.change, 200),
        ("DELETE", "/api/threads/{thread}", listed.remove, 200),
        ("POST", "/api/threads/{thread}/branch", listed.branch, CREATED),
        ("GET", "/api/threads/{thread}/rows", talking.rows, 200),
        ("GET", "/api/threads/{thread}/rows/{order:int}/why", talking.why, 200),
        ("GET", "/api/threads/{thread}/original/{ref}", talking.original, 200),
        ("GET", "/api/threads/{thread}/context", talking.context, 200),
        ("GET", "/api/threads/{thread}/events", talking.events, 200),
        ("POST", "/api/threads/{thread}/stop", talking.stop, 200),
        ("POST", "/api/threads/{thread}/retry", talking.retry, ACCEPTED),
        ("POST", "/api/threads/{thread}/regenerate", talking.regenerate, ACCEPTED),
        ("POST", "/api/threads/{thread}/compact", talking.compact, ACCEPTED),
        ("POST", "/api/threads/{thread}/undo", talking.undo, 200),
        ("POST", "/api/threads/{thread}/answer", talking.answer, 200),
        ("GET", "/api/threads/{thread}/pins", talking.pins, 200),
        ("POST", "/api/threads/{thread}/pins", talking.pin, CREATED),
        ("DELETE", "/api/threads/{thread}/pins/{pin}", talking.unpin, 200),
        ("POST", "/api/threads/{thread}/recall", talking.recall, 200),
    ]
    guard, pages = desk.guard, Pages(desk.guard, desk.setup.built)
    routes = [
        Route(path, Endpoint(guard, answer, status=status), methods=[method]) for method, path, answer, status in table
    ]
    turn = Endpoint(guard, talking.turn, status=ACCEPTED, largest=LARGEST_TURN)
    routes.append(Route("/api/threads/{thread}/turn", turn, methods=["POST"]))
    routes.append(Route("/api/login", Endpoint(guard, choosing.log_in, login_needed=False), methods=["POST"]))
    return [
        *routes,
        Route("/", pages, methods=["GET"]),
        Route("/assets/{file:path}", pages, methods=["GET"]),
        Route("/{name}", pages, methods=["GET"]),
    ]


def web_app(desk: Desk) -> Starlette:
    """The app alone, without a gateway."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        await desk.start()
        try:
            yield
        finally:
            await desk.close()

    return Starlette(routes=web_routes(desk), lifespan=lifespan)

"""The table of all routes: the API and the page's files."""

from pathlib import Path

from starlette.routing import Route

from everlong.web.api.app import AppEndpoints
from everlong.web.api.conversation import ConversationEndpoints
from everlong.web.api.endpoint import LARGEST_TURN, Endpoint, Handler
from everlong.web.api.files import Page, PageFiles
from everlong.web.api.guard import Guard
from everlong.web.api.threads import ThreadEndpoints
from everlong.web.app import AppState
from everlong.web.build import BUILT

__all__ = ["web_routes"]

API = "/everlong/api"  # beside the gateway's paths, which are named by the APIs it speaks: "/api" is Ollama's
ACCEPTED, CREATED = 202, 201


def web_routes(app: AppState, guard: Guard, built: Path = BUILT) -> list[Route]:
    """Return the routes of the API and the page, to be served inside a boundary. The caller starts and closes `app`."""
    whole, threads = AppEndpoints(app, guard), ThreadEndpoints(app)
    talk = ConversationEndpoints(app, threads)
    table: list[tuple[str, str, Handler, int]] = [
        ("GET", "/state", whole.state, 200),
        ("GET", "/settings", whole.settings, 200),
        ("PUT", "/settings", whole.set, 200),
        ("GET", "/sources", whole.sources, 200),
        ("POST", "/sources", whole.add_source, CREATED),
        ("DELETE", "/sources/{name}", whole.remove_source, 200),
        ("GET", "/usage", whole.usage, 200),
        ("GET", "/live", whole.live, 200),
        ("POST", "/logout", whole.log_out, 200),
        ("GET", "/threads", threads.find, 200),
        ("POST", "/threads", threads.new, CREATED),
        ("GET", "/threads/{thread}", threads.one, 200),
        ("PATCH", "/threads/{thread}", threads.change, 200),
        ("DELETE", "/threads/{thread}", threads.remove, 200),
        ("POST", "/threads/{thread}/branch", threads.branch, CREATED),
        ("GET", "/threads/{thread}/rows", talk.rows, 200),
        ("GET", "/threads/{thread}/rows/{order:int}/why", talk.why, 200),
        ("GET", "/threads/{thread}/original/{ref}", talk.original, 200),
        ("GET", "/threads/{thread}/context", talk.context, 200),
        ("GET", "/threads/{thread}/events", talk.events, 200),
        ("POST", "/threads/{thread}/stop", talk.stop, 200),
        ("POST", "/threads/{thread}/retry", talk.retry, ACCEPTED),
        ("POST", "/threads/{thread}/regenerate", talk.regenerate, ACCEPTED),
        ("POST", "/threads/{thread}/compact", talk.compact, ACCEPTED),
        ("POST", "/threads/{thread}/undo", talk.undo, 200),
        ("POST", "/threads/{thread}/answer", talk.answer, 200),
        ("GET", "/threads/{thread}/changes", talk.changes, 200),
        ("POST", "/threads/{thread}/changes/{change}/restore", talk.restore, 200),
        ("GET", "/threads/{thread}/pins", talk.pins, 200),
        ("POST", "/threads/{thread}/pins", talk.pin, CREATED),
        ("DELETE", "/threads/{thread}/pins/{pin}", talk.unpin, 200),
        ("POST", "/threads/{thread}/recall", talk.recall, 200),
    ]
    routes = [
        Route(API + path, Endpoint(guard, handler, status=status), methods=[method])
        for method, path, handler, status in table
    ]
    turn = Endpoint(guard, talk.turn, status=ACCEPTED, largest=LARGEST_TURN)
    routes.append(Route(API + "/threads/{thread}/turn", turn, methods=["POST"]))
    routes.append(Route(API + "/login", Endpoint(guard, whole.log_in, login_needed=False), methods=["POST"]))
    files = PageFiles(built)
    page = Page(files)
    return [
        *routes,
        Route("/", page, methods=["GET"]),
        Route("/index.html", page, methods=["GET"]),
        Route("/assets/{file:path}", files, methods=["GET"]),
        Route("/{name}", files, methods=["GET"]),
    ]

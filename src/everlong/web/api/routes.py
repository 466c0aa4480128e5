"""The table of all routes: the API and the page's files."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeAlias

from starlette.routing import Route

from everlong.web.api.app import AppEndpoints
from everlong.web.api.attachments import AttachmentEndpoints
from everlong.web.api.conversation import ConversationEndpoints
from everlong.web.api.deletion import DeletionEndpoints
from everlong.web.api.endpoint import LARGEST_TURN, Choose, Endpoint, Handler
from everlong.web.api.files import DIAGRAMS, Page, PageFiles
from everlong.web.api.guard import Guard
from everlong.web.api.kept import KeptEndpoints
from everlong.web.api.library import LibraryEndpoints
from everlong.web.api.sign_in import SignInEndpoints
from everlong.web.api.streams import StreamEndpoints
from everlong.web.api.threads import ThreadEndpoints
from everlong.web.app import AppState
from everlong.web.build import BUILT
from everlong.web.users.accounts import User

__all__ = ["web_routes"]

API = "/everlong/api"  # must not collide with the gateway's paths: "/api" is Ollama's
ACCEPTED, CREATED = 202, 201


class UserApps(Protocol):
    """Gives each user an app."""

    async def of(self, user: User, /) -> AppState:
        """Return the app of a user."""


class _Endpoints:
    """The endpoints of one user's app."""

    def __init__(self, app: AppState, guard: Guard) -> None:
        self.whole, self.threads = AppEndpoints(app, guard), ThreadEndpoints(app)
        self.talk, self.streams = ConversationEndpoints(app, self.threads), StreamEndpoints(app)
        self.library, self.kept = LibraryEndpoints(app, self.threads), KeptEndpoints(app)
        self.deletion, self.attachments = DeletionEndpoints(app), AttachmentEndpoints(app)


Get: TypeAlias = Callable[[_Endpoints], Handler]


#: Method, path, handler and status of every endpoint that takes and gives JSON.
TABLE: tuple[tuple[str, str, Get, int], ...] = (
    ("GET", "/state", lambda each: each.whole.state, 200),
    ("GET", "/settings", lambda each: each.whole.settings, 200),
    ("PUT", "/settings", lambda each: each.whole.set, 200),
    ("GET", "/sources", lambda each: each.whole.sources, 200),
    ("POST", "/sources", lambda each: each.whole.add_source, CREATED),
    ("PATCH", "/sources/{name}", lambda each: each.whole.change_source, 200),
    ("DELETE", "/sources/{name}", lambda each: each.whole.remove_source, 200),
    ("POST", "/sample", lambda each: each.whole.sample, CREATED),
    ("GET", "/local", lambda each: each.whole.local, 200),
    ("POST", "/local", lambda each: each.whole.start_local, ACCEPTED),
    ("DELETE", "/local", lambda each: each.whole.cancel_local, 200),
    ("GET", "/usage", lambda each: each.whole.usage, 200),
    ("GET", "/live", lambda each: each.streams.live, 200),
    ("GET", "/events", lambda each: each.streams.many, 200),
    ("GET", "/threads", lambda each: each.threads.find, 200),
    ("POST", "/threads", lambda each: each.threads.new, CREATED),
    ("GET", "/threads/{thread}", lambda each: each.threads.one, 200),
    ("PATCH", "/threads/{thread}", lambda each: each.threads.change, 200),
    ("DELETE", "/threads/{thread}", lambda each: each.threads.remove, 200),
    ("POST", "/threads/{thread}/branch", lambda each: each.threads.branch, CREATED),
    ("GET", "/threads/{thread}/family", lambda each: each.library.family, 200),
    ("GET", "/threads/{thread}/export", lambda each: each.library.export, 200),
    ("GET", "/export", lambda each: each.library.export_many, 200),
    ("POST", "/folders", lambda each: each.library.add_folder, CREATED),
    ("PATCH", "/folders", lambda each: each.library.rename_folder, 200),
    ("DELETE", "/folders", lambda each: each.library.remove_folder, 200),
    ("POST", "/chosen", lambda each: each.library.change_many, 200),
    ("GET", "/threads/{thread}/rows", lambda each: each.talk.rows, 200),
    ("GET", "/threads/{thread}/rows/{order:int}/why", lambda each: each.talk.why, 200),
    ("GET", "/threads/{thread}/rows/{order:int}/kept", lambda each: each.talk.kept, 200),
    ("GET", "/threads/{thread}/original/{ref}", lambda each: each.talk.original, 200),
    ("GET", "/threads/{thread}/context", lambda each: each.talk.context, 200),
    ("GET", "/threads/{thread}/events", lambda each: each.streams.thread, 200),
    ("POST", "/threads/{thread}/stop", lambda each: each.talk.stop, 200),
    ("POST", "/threads/{thread}/retry", lambda each: each.talk.retry, ACCEPTED),
    ("POST", "/threads/{thread}/continue", lambda each: each.talk.go_on, ACCEPTED),
    ("POST", "/threads/{thread}/regenerate", lambda each: each.talk.regenerate, ACCEPTED),
    ("POST", "/threads/{thread}/show", lambda each: each.threads.show, 200),
    ("POST", "/threads/{thread}/compact", lambda each: each.talk.compact, ACCEPTED),
    ("POST", "/threads/{thread}/compact/cancel", lambda each: each.talk.cancel_compaction, 200),
    ("POST", "/threads/{thread}/undo", lambda each: each.talk.undo, 200),
    ("POST", "/threads/{thread}/answer", lambda each: each.talk.answer, 200),
    ("GET", "/threads/{thread}/changes", lambda each: each.talk.changes, 200),
    ("GET", "/threads/{thread}/changes/{change}/diff", lambda each: each.talk.diff, 200),
    ("POST", "/threads/{thread}/changes/{change}/restore", lambda each: each.talk.restore, 200),
    ("GET", "/threads/{thread}/pins", lambda each: each.talk.pins, 200),
    ("POST", "/threads/{thread}/pins", lambda each: each.talk.pin, CREATED),
    ("DELETE", "/threads/{thread}/pins/{pin}", lambda each: each.talk.unpin, 200),
    ("POST", "/threads/{thread}/recall", lambda each: each.talk.recall, 200),
    ("DELETE", "/threads/{thread}/rows/{order:int}", lambda each: each.deletion.delete, 200),
    ("POST", "/threads/{thread}/rows/{order:int}/restore", lambda each: each.deletion.restore, 200),
)
#: The routes of what a person keeps for all threads, and sets for one.
KEPT: tuple[tuple[str, str, Get, int], ...] = (
    ("GET", "/kept", lambda each: each.kept.all, 200),
    ("POST", "/assistants", lambda each: each.kept.add_assistant, CREATED),
    ("PUT", "/assistants/{name}", lambda each: each.kept.change_assistant, 200),
    ("DELETE", "/assistants/{name}", lambda each: each.kept.remove_assistant, 200),
    ("POST", "/prompts", lambda each: each.kept.add_prompt, CREATED),
    ("POST", "/prompts/import", lambda each: each.kept.import_prompts, CREATED),
    ("PUT", "/prompts/{name}", lambda each: each.kept.change_prompt, 200),
    ("DELETE", "/prompts/{name}", lambda each: each.kept.remove_prompt, 200),
    ("PUT", "/favourites", lambda each: each.kept.mark, 200),
    ("GET", "/permissions", lambda each: each.kept.permissions, 200),
    ("POST", "/permissions/revoke", lambda each: each.kept.revoke, 200),
    ("GET", "/threads/{thread}/options", lambda each: each.kept.options, 200),
    ("PUT", "/threads/{thread}/options", lambda each: each.kept.set_options, 200),
)


def _read(each: _Endpoints) -> Handler:
    return each.attachments.read


def _bring_in(each: _Endpoints) -> Handler:
    return each.library.bring_in


def web_routes(apps: UserApps, guard: Guard, built: Path = BUILT) -> list[Route]:
    """Return the routes of the API and the page. They belong inside a boundary. The caller starts and closes `apps`."""
    door = SignInEndpoints(guard)

    def of(get: Get) -> Choose:
        async def choose(user: User) -> Handler:
            app = await apps.of(user)
            if not isinstance(app.endpoints, _Endpoints):
                app.endpoints = _Endpoints(app, guard)
            return get(app.endpoints)

        return choose

    def always(handler: Handler) -> Choose:
        async def choose(_: User) -> Handler:
            return handler

        return choose

    routes = [
        Route(API + path, Endpoint(guard, of(get), status=status), methods=[method])
        for method, path, get, status in (*TABLE, *KEPT)
    ]
    turn = Endpoint(guard, of(lambda each: each.talk.turn), status=ACCEPTED, largest=LARGEST_TURN)
    routes.append(Route(API + "/threads/{thread}/turn", turn, methods=["POST"]))
    for path, get in (("/attachments", _read), ("/import", _bring_in)):
        routes.append(Route(API + path, Endpoint(guard, of(get), upload=True), methods=["POST"]))
    for path, handler in (("/login", door.log_in), ("/logout", door.log_out), ("/sign-in", door.sign_in)):
        entry = Endpoint(guard, always(handler), login_needed=False)
        routes.append(Route(API + path, entry, methods=["POST"]))
    files = PageFiles(built)
    page = Page(files)
    return [
        *routes,
        Route("/", page, methods=["GET"]),
        Route("/index.html", page, methods=["GET"]),
        Route(f"/{DIAGRAMS}", Page(files, DIAGRAMS), methods=["GET"]),
        Route("/assets/{file:path}", files, methods=["GET"]),
        Route("/{name}", files, methods=["GET"]),
    ]

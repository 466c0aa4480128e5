"""Endpoints that stream what happens: of one thread, of all that a browser has open, and of the gateway's requests."""

import asyncio
from functools import partial

from starlette.responses import Response

from everlong.core import Json
from everlong.errors import NoThread
from everlong.web.api.endpoint import LONGEST_EVENT_NAME, ApiRequest, event_stream, last_event
from everlong.web.app import EVERYBODY, LIVE, AppState
from everlong.web.fields import invalid
from everlong.web.live.hub import Wanted

__all__ = ["StreamEndpoints"]

MOST_THREADS = 100  # threads that one browser follows at once


class StreamEndpoints:
    """Endpoints whose answers continue until the page closes."""

    def __init__(self, app: AppState) -> None:
        self._app = app

    async def thread(self, request: ApiRequest) -> "Json | Response":
        """Stream the events of the thread in the path."""
        last = last_event(request) or request.query("last")[:LONGEST_EVENT_NAME]
        wanted = await self._wanted(request.thread, last)
        return event_stream(self._app.hub.listen([wanted]))

    async def live(self, request: ApiRequest) -> "Json | Response":
        """Stream the requests that go through the gateway: all of them, or those of the key that is sent along."""
        return event_stream(self._app.hub.listen([self._gateway(request, last_event(request))]))

    async def many(self, request: ApiRequest) -> "Json | Response":
        """Stream the events of several threads, and of the gateway if `live` is given.

        `thread=ID:LAST` names a thread and the last event that was received of it. `fresh` names the threads that a new
        tab opened, `quiet` those that no visible tab shows. A removed thread is left out: its page notices when it
        reads the rows.
        """
        query = request.http.query_params
        asked = dict(_name_and_last(text) for text in query.getlist("thread"))
        if len(asked) > MOST_THREADS:
            raise invalid(f"thread can be given at most {MOST_THREADS} times")
        fresh, quiet = set(query.getlist("fresh")), set(query.getlist("quiet"))
        wanted: list[Wanted] = []
        for name, last in asked.items():
            try:
                wanted.append(await self._wanted(name, last, fresh=name in fresh, quiet=name in quiet, name=name))
            except NoThread:
                continue
        if "live" in query:
            wanted.append(self._gateway(request, query["live"][:LONGEST_EVENT_NAME], name=""))
        return event_stream(self._app.hub.listen(wanted))

    async def _wanted(
        self, thread: str, last: str, *, fresh: bool = False, quiet: bool = False, name: str | None = None
    ) -> Wanted:
        """Return the subscription of a thread. Raises NoThread if the app has no such thread."""
        app = self._app
        await asyncio.to_thread(app.known, thread)
        await app.look(thread)
        await app.compactions.resume(thread)
        return Wanted(thread=thread, last=last, hello=partial(app.hello, thread), fresh=fresh, quiet=quiet, name=name)

    def _gateway(self, request: ApiRequest, last: str, *, name: str | None = None) -> Wanted:
        watched = self._app.setup.watched
        owner = EVERYBODY if watched is None else watched(request.http.headers.raw)
        return Wanted(thread=LIVE + owner, last=last, name=name)


def _name_and_last(text: str) -> tuple[str, str]:
    """Return a thread and the last event that was received of it. Example: "app-1:a7-12" -> ("app-1", "a7-12")"""
    name, _, last = text.rpartition(":")
    return name, last[:LONGEST_EVENT_NAME]

"""The apps of all users in one process: each user has an app, created when needed, on top of the shared parts.

No app sees what another app knows (settings, sources, models, turns, questions). They share only the store, of which
each sees its own part, and the hub, whose channels are opened only for threads that were checked.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from time import monotonic

from everlong.core import JsonObject
from everlong.web.app import EVERYBODY, LIVE, AppState
from everlong.web.live.leases import End
from everlong.web.live.site import Site
from everlong.web.users.accounts import User

__all__ = ["Apps"]

MOST_APPS = 500  # that are held at once; the least recently used one that does nothing goes first
IDLE = 900.0  # seconds without a request after which an app may go


class Apps:
    """The apps by owner. `make` creates the app of an owner. Start and close it in the event loop that it serves."""

    def __init__(self, site: Site, make: Callable[[str], AppState]) -> None:
        self.site = site
        self._make = make
        self._apps: OrderedDict[str, tuple[AppState, float]] = OrderedDict()
        self._lock = asyncio.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def start(self) -> None:
        """Listen to other processes, and take over the turns of dead ones."""
        self._loop = asyncio.get_running_loop()
        await self.site.start(self._heir, self._lose)

    async def close(self) -> None:
        """Close all apps."""
        self.site.hub.close()
        for app, _ in list(self._apps.values()):
            await app.close()
        self._apps.clear()
        await self.site.close()
        self._loop = None

    def end_streams(self) -> None:
        """End the streams of all pages. Safe in any thread and in a signal handler."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self.site.hub.close)

    def report_request(self, request: JsonObject, owner: str = EVERYBODY) -> None:
        """Report a request of the gateway to the pages that watch its owner."""
        self.site.hub.publish(LIVE + owner, request)

    async def of(self, user: User) -> AppState:
        """Return the app of a user."""
        return await self._of(user.owner)

    async def _of(self, owner: str) -> AppState:
        async with self._lock:
            known = self._apps.get(owner)
            if known is None:
                app = self._make(owner)
                await app.start()
                await self._make_room()
            else:
                app = known[0]
            self._apps[owner] = (app, monotonic())
            self._apps.move_to_end(owner)
            return app

    async def _make_room(self) -> None:
        """Close apps that were not used for a while, if there are too many."""
        for owner, (app, used) in list(self._apps.items()):
            if len(self._apps) < MOST_APPS or monotonic() - used < IDLE:
                return
            if app.idle:
                del self._apps[owner]
                await app.close()

    async def _heir(self, owner: str) -> End:
        return (await self._of(owner)).inherit

    def _lose(self, thread: str) -> None:
        for app, _ in self._apps.values():
            app.turns.lose(thread)

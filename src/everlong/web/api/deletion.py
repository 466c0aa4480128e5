"""Endpoints that delete, restore and erase messages. Open pages of the thread are updated."""

import asyncio

from everlong.core import Entry, Gone, Json, Message, Role
from everlong.errors import InputError, Refused
from everlong.web.api.endpoint import ApiRequest
from everlong.web.app import AppState
from everlong.web.fields import invalid

__all__ = ["DeletionEndpoints"]


class DeletionEndpoints:
    """Endpoints of deleted messages. They refuse while an answer is written: it may depend on the message."""

    def __init__(self, app: AppState) -> None:
        self._app = app

    async def delete(self, request: ApiRequest) -> Json:
        """Delete a message, which can be undone; with `erase=1` erase it from the store permanently."""
        thread, order = await self._idle(request), request.order
        erases = request.query("erase")
        if erases not in ("", "0", "1"):
            raise invalid("erase must be 1 or omitted")
        row = await asyncio.to_thread(self._app.view.row, thread, order)
        if not _may_go(row.entry, Gone if erases == "1" else Message):
            raise Refused("that row is not a message that can be deleted", status=404, kind="no_message")
        if erases != "1":
            return await self._publish_removal(thread, await self._app.engine.remove_messages(thread, [order]))
        erased = await self._app.engine.erase_messages(thread, [order])
        for name, orders in erased.items():
            self._app.hub.forget(name)  # the events that it keeps contain the erased words
            self._app.site.relay.call("forget", name)
            await self._publish_removal(name, orders, erased=True)
        return {"orders": [*erased.get(thread, ())]}

    async def restore(self, request: ApiRequest) -> Json:
        """Restore a deleted message, with everything that was deleted with it."""
        thread = await self._idle(request)
        try:
            orders = await self._app.engine.restore_messages(thread, [request.order])
        except InputError:
            orders = ()
        if not orders:
            raise Refused("there is no deleted message to restore", status=409, kind="not_deleted")
        self._app.hub.publish(thread, {"type": "restored", "orders": [*orders]})
        self._refresh(thread)
        return {"orders": [*orders]}

    async def _idle(self, request: ApiRequest) -> str:
        """Return the thread in the path. Raises Refused while a turn of it runs."""
        thread = (await asyncio.to_thread(self._app.known, request.thread)).id
        if await self._app.turns.busy(thread):
            raise Refused("the model is answering; stop it or wait until it is finished", status=409, kind="answering")
        return thread

    async def _publish_removal(self, thread: str, orders: tuple[int, ...], *, erased: bool = False) -> Json:
        """Publish what was deleted to the pages."""
        await self._app.turns.forget_failure(thread)
        self._app.hub.publish(thread, {"type": "removed", "orders": [*orders], "erased": erased})
        self._refresh(thread)
        return {"orders": [*orders]}

    def _refresh(self, thread: str) -> None:
        self._app.updates.refresh(thread)
        self._app.updates.spawn(self._app.updates.title(thread))


def _may_go(entry: Entry, also: type[Entry]) -> bool:
    """Return whether an entry may be deleted: a message that is not system text, or an entry of type `also`."""
    return entry.role is not Role.SYSTEM if isinstance(entry, Message) else isinstance(entry, also)

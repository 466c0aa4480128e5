"""Carry events of one process to the pages of all others, and a person's actions to the process that runs the turn.

Events are sent as they are, and numbered again by the receiver. Rows are not sent: the receivers read them from the
store. A call is a request to another process, such as "stop" to the one that runs a turn. In each thread, everything
arrives in order.
"""

import asyncio
import json
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import TypeAlias, cast
from uuid import uuid4

from everlong.core import Json, JsonObject
from everlong.errors import EverlongError
from everlong.web.live.hub import Hub, Place
from everlong.web.live.notices import Notices

__all__ = ["Relay", "Taker"]

MISSED_PAUSE = 0.2  # seconds in which several losses count as one
EVENT, ROWS, MISSED = "event", "rows", "missed"
log = logging.getLogger("everlong.web")

#: Takes a call of another process: the thread it is about, and its fields.
Taker: TypeAlias = Callable[[str, JsonObject], Awaitable[None]]
#: Takes an event of another process, with the place of its words, and returns the events for the pages here.
Listener: TypeAlias = Callable[[str, JsonObject, "Place | None"], Awaitable[list[JsonObject]]]


class Relay:
    """The link of one process to the others of its app. Belongs to one event loop."""

    def __init__(self, hub: Hub, notices: Notices) -> None:
        #: The name of this process, for as long as it runs.
        self.process = uuid4().hex
        self._hub = hub
        self._notices = notices
        self._takers: dict[str, list[Taker]] = {}
        self._listeners: list[Listener] = []
        self._waiting: dict[str, deque[JsonObject]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._missed = False
        if notices.shared:
            hub.outward = self._send_event

    @property
    def shared(self) -> bool:
        """Whether there can be other processes."""
        return self._notices.shared

    async def start(self) -> None:
        """Listen to the other processes from now on."""
        await self._notices.start(self._read_notice, self._miss)

    async def close(self) -> None:
        """Send what is left, and stop listening."""
        await self._notices.close()
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(list(self._tasks))

    def on(self, name: str, taker: Taker) -> None:
        """Pass calls of that name to a handler. Example: "stop", which is about the turn of a thread"""
        self._takers.setdefault(name, []).append(taker)

    def listen(self, listener: Listener) -> None:
        """Pass the events of other processes to a listener before the pages here get them."""
        self._listeners.append(listener)

    def leave(self, takers: Mapping[str, Taker], listener: Listener) -> None:
        """Remove these handlers and that listener."""
        for name, taker in takers.items():
            self._takers[name].remove(taker)
        self._listeners.remove(listener)

    def call(self, name: str, thread: str = "", **fields: Json) -> None:
        """Send a call to all other processes; those that it concerns carry it out."""
        self._notices.announce(json.dumps({"call": name, "thread": thread, "fields": fields}))

    def _send_event(self, thread: str, event: Mapping[str, Json], place: "Place | None") -> None:
        """Send an event to the other processes. For a row, send only its position: they read it from the store."""
        if event.get("type") == "row":
            row = cast("JsonObject", event["row"])
            self.call(ROWS, thread, until=cast("int", row["order"]) + 1)
            return
        notice: JsonObject = {"call": EVENT, "thread": thread, "fields": {"event": dict(event)}}
        if place is not None:
            cast("JsonObject", notice["fields"])["place"] = list(place)
        self._notices.announce(json.dumps(notice))

    def _read_notice(self, text: str) -> None:
        try:
            notice = json.loads(text)
            name, thread, fields = notice["call"], notice["thread"], notice["fields"]
        except (ValueError, KeyError, TypeError, RecursionError):
            log.warning("a notice from another process cannot be read")
            return
        if name in (EVENT, ROWS) and not self._hub.knows(thread):
            return
        self._enqueue(thread, {"name": name, "fields": fields})

    def _miss(self) -> None:
        """Handle a loss of events. Losses that come together are handled once."""
        if not self._missed:
            self._missed = True
            self._spawn(self._after_loss())

    async def _after_loss(self) -> None:
        await asyncio.sleep(MISSED_PAUSE)
        self._missed = False
        for thread in ("", *self._hub.known):
            self._enqueue(thread, {"name": MISSED, "fields": {}})

    def _enqueue(self, thread: str, work: JsonObject) -> None:
        """Do some work for a thread after what came before it."""
        waiting = self._waiting.get(thread)
        if waiting is not None:
            waiting.append(work)
            return
        self._waiting[thread] = deque([work])
        self._spawn(self._work_off(thread))

    def _spawn(self, work: "Awaitable[None]") -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _work_off(self, thread: str) -> None:
        waiting = self._waiting[thread]
        try:
            while waiting:
                work = waiting.popleft()
                with suppress(EverlongError):  # the thread is gone, or the store is away: the page reads again
                    await self._take(str(work["name"]), thread, cast("JsonObject", work["fields"]))
        finally:
            del self._waiting[thread]

    async def _take(self, name: str, thread: str, fields: JsonObject) -> None:
        if name != EVENT:
            for taker in list(self._takers.get(name, ())):
                await taker(thread, fields)
            return
        place = cast("list[int] | None", fields.get("place"))
        events = [cast("JsonObject", fields["event"])]
        for listener in list(self._listeners):
            events = [
                result
                for event in events
                for result in await listener(thread, event, None if place is None else (place[0], place[1]))
            ]
        for event in events:
            self._hub.repeat(thread, event)

"""The language model on this machine: downloaded and started on request, in the background, and monitored."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Literal, TypeAlias

from everlong.core import JsonObject
from everlong.errors import InputError, Refused
from everlong.llm import Fetch
from everlong.web.state.sources import Source

__all__ = ["LOCAL", "LocalModel", "StartLocal"]

LOCAL = "local"  # the name of its source
#: Fetches and starts the model, which may take minutes, and returns its source. Raises InputError.
StartLocal: TypeAlias = Callable[[Fetch], Source]
LocalState: TypeAlias = Literal["none", "off", "fetching", "starting", "on", "failed"]


class LocalModel:
    """Its state as the page shows it. `ready` gets the source once it runs. Belongs to one event loop."""

    def __init__(self, start: StartLocal | None, ready: Callable[[Source], None]) -> None:
        self._start = start
        self._ready = ready
        self._fetch = Fetch()
        self._task: asyncio.Task[None] | None = None
        self._reason = ""
        self.on = False

    @property
    def state(self) -> LocalState:
        """Its current state."""
        if self.on:
            return "on"
        if self._start is None:
            return "none"
        if self._task is not None and not self._task.done():
            fetch = self._fetch
            return "fetching" if fetch.size and fetch.done < fetch.size else "starting"
        return "failed" if self._reason else "off"

    def shown(self) -> JsonObject:
        """Return its state as the page reads it; `done` and `size` are bytes of the download."""
        fetch = self._fetch
        return {"state": self.state, "done": fetch.done, "size": fetch.size, "reason": self._reason}

    def begin(self) -> None:
        """Fetch and start it in the background, unless it runs or is starting. Raises Refused if there is none."""
        if self._start is None:
            raise Refused("this server cannot start a local model", status=409, kind="no_local")
        if self.state in ("off", "failed"):
            self._fetch, self._reason = Fetch(), ""
            self._task = asyncio.create_task(self._run(self._start, self._fetch), name="local model")

    async def _run(self, start: StartLocal, fetch: Fetch) -> None:
        try:
            source = await asyncio.to_thread(start, fetch)
        except InputError as error:
            self._reason = "" if fetch.cancelled else str(error)
            return
        self.on = True
        self._ready(source)

    async def cancel(self) -> None:
        """Cancel the download, and wait until nothing of it is left."""
        self._fetch.cancel()
        if self._task is not None:
            with suppress(asyncio.CancelledError):
                await asyncio.wait([self._task])

    async def close(self) -> None:
        """Cancel a start in progress. A model that runs ends with the server."""
        await self.cancel()

"""Clients of the upstreams for the gateway's own calls: a window asked for, a summary written with the client's key."""

import asyncio
from collections import OrderedDict
from dataclasses import replace

from everlong.gateway.parties import Client, Upstream
from everlong.llm.client import HttpModel

__all__ = ["UpstreamModels"]

MOST = 128


class UpstreamModels:
    """One model client for each upstream, format and key; the one used longest ago is closed."""

    def __init__(self) -> None:
        self._models: OrderedDict[tuple[str, str, str], HttpModel] = OrderedDict()
        self._closing: set[asyncio.Task[None]] = set()

    def of(self, upstream: Upstream, client: Client, fmt: str) -> HttpModel:
        """The model client for calls on behalf of a client."""
        key = upstream.endpoint.key or client.key
        name = (upstream.endpoint.name, fmt, key)
        found = self._models.get(name)
        if found is None:
            found = self._models[name] = HttpModel(replace(upstream.endpoint, fmt=fmt, key=key))
        self._models.move_to_end(name)
        while len(self._models) > MOST:
            self._close(self._models.popitem(last=False)[1])
        return found

    async def served(self, upstream: Upstream, client: Client, fmt: str, model: str) -> int | None:
        """The window that the upstream itself tells; asked once."""
        return await self.of(upstream, client, fmt).served_window(model)

    async def close(self) -> None:
        """Let go of all connections."""
        models, self._models = self._models, OrderedDict()
        for model in models.values():
            await model.close()
        for task in list(self._closing):
            await task

    def _close(self, model: HttpModel) -> None:
        task = asyncio.get_running_loop().create_task(model.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

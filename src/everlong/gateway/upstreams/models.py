"""Clients of the upstreams for the gateway's own calls: a window asked for, a summary written with the client's key."""

import asyncio
from collections import Counter, OrderedDict
from dataclasses import replace

from everlong.gateway.clients import Client
from everlong.gateway.upstreams.routing import Upstream
from everlong.llm import Endpoint, HttpModel

__all__ = ["UpstreamModels"]

MOST = 128


class UpstreamModels:
    """One model client for each upstream, format and key; the one used longest ago is closed."""

    def __init__(self) -> None:
        self._models: OrderedDict[Endpoint, HttpModel] = OrderedDict()
        self._waited_for: Counter[HttpModel] = Counter()
        self._closing: set[asyncio.Task[None]] = set()

    def of(self, upstream: Upstream, client: Client, fmt: str) -> HttpModel:
        """The model client for calls on behalf of a client."""
        endpoint = replace(upstream.endpoint, fmt=fmt, key=upstream.endpoint.key or client.key)
        found = self._models.get(endpoint)
        if found is None:
            found = self._models[endpoint] = HttpModel(endpoint)
        self._models.move_to_end(endpoint)
        self._make_room()
        return found

    async def served(self, upstream: Upstream, client: Client, fmt: str, model: str) -> int | None:
        """The window that the upstream itself tells; asked once."""
        asked = self.of(upstream, client, fmt)
        self._waited_for[asked] += 1
        try:
            return await asked.served_window(model)
        finally:
            self._waited_for[asked] -= 1
            self._waited_for += Counter()  # whoever nobody waits for is forgotten

    async def close(self) -> None:
        """Let go of all connections."""
        models, self._models = self._models, OrderedDict()
        for model in models.values():
            await model.close()
        for task in list(self._closing):
            await task

    def _make_room(self) -> None:
        if len(self._models) <= MOST:
            return
        for endpoint, model in list(self._models.items())[: len(self._models) - MOST]:
            if model not in self._waited_for:  # closed, it would leave a request without an answer
                del self._models[endpoint]
                self._close(model)

    def _close(self, model: HttpModel) -> None:
        task = asyncio.get_running_loop().create_task(model.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

"""The gateway as its clients meet it: over HTTP, on a free port, in a thread of its own."""

import asyncio
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Event, Thread
from time import monotonic
from types import TracebackType
from typing import Any, Self

import uvicorn

from everlong.gateway.config import GatewayConfig, load_config
from everlong.gateway.http.app import Beside, gateway_app
from everlong.gateway.http.server import server_settings
from everlong.gateway.operations.services import Services, services_for
from everlong.gateway.upstreams.providers import routes_from


class RunningGateway:
    """`with RunningGateway(upstream=server.url) as gateway: …`; options are those of the configuration.

    `beside` gives what else is served on its port, `ticks` is the clock of limits and circuits.
    """

    def __init__(
        self,
        *,
        environment: Mapping[str, str] | None = None,
        file: Path | None = None,
        beside: Callable[[GatewayConfig], Beside] | None = None,
        ticks: Callable[[], float] = monotonic,
        **options: Any,
    ) -> None:
        self._ticks = ticks
        options = {"store": "memory:", "port": 0, "access_log": False, **options}
        self._environment = dict(environment or {})
        self._config = load_config(None if file is None else str(file), options, self._environment)
        self._beside = {} if beside is None else {"beside": beside(self._config)}
        self._ready = Event()
        self._thread = Thread(target=self._run, name="gateway", daemon=True)
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port = self._socket.getsockname()[1]
        self._problem: BaseException | None = None
        self._services: Services | None = None

    @property
    def address(self) -> str:
        """What Anthropic clients take as their base URL."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        """What OpenAI clients take as their base URL."""
        return f"{self.address}/v1"

    @property
    def services(self) -> Services:
        assert self._services is not None
        return self._services

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait()
        if self._problem is not None:
            raise self._problem
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()

    def _made(self) -> Services:
        routes = routes_from(self._config, self._environment)
        self._services = services_for(self._config, routes, self._environment, ticks=self._ticks)
        return self._services

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:
            self._problem = error
            raise
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        app = gateway_app(self._config, self._made, **self._beside)
        self._server = uvicorn.Server(server_settings(self._config, app))
        self._server.config.timeout_graceful_shutdown = 5
        serving = asyncio.create_task(self._server.serve(sockets=[self._socket]))
        while not self._server.started and not serving.done():
            await asyncio.sleep(0.005)
        self._ready.set()
        await serving

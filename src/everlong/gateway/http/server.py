"""Running the gateway: one process, or several on one port and one store."""

import asyncio
import importlib.util
import json
import os
import signal
import socket
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from typing import Any

import uvicorn
from starlette.applications import Starlette

from everlong.engine import Observer, traces_events
from everlong.errors import InputError
from everlong.gateway.config import GatewayConfig, load_config
from everlong.gateway.http.app import Beside, gateway_app, use_one_heap
from everlong.gateway.operations.metrics import SHARED
from everlong.gateway.operations.reports import set_up_logging
from everlong.gateway.operations.services import Services, services_for
from everlong.gateway.upstreams.providers import routes_from
from everlong.llm import LocalServer, RefreshSettings, cache_folder, model_file, refresh_if_due, registry_now

__all__ = ["app_from_environment", "application", "config_from_environment", "serve"]

#: How the processes that serve are told what the first one was: the file and the options, as JSON.
TOLD = "EVERLONG_SERVING"
BACKLOG = 2_048
IDLE = 75  # seconds that a connection may be idle

Tell = Callable[[str], None]


def serve(
    file: str | None,
    options: Mapping[str, Any],
    *,
    local: bool = False,
    tell: Tell = lambda _: None,
    factory: str = "everlong.gateway.http.server:app_from_environment",
) -> None:
    """Serve until a signal ends it. Raises InputError, before anyone could connect, where something is wrong.

    `factory` names the function that makes the application of each process.
    """
    given = {name: value for name, value in options.items() if value is not None}
    with ExitStack() as stack:
        if local:
            tell("Starting the local model …")
            model = stack.enter_context(LocalServer(model_file(cache_folder(os.environ), tell)))
            given["upstream"] = model.url
        config = load_config(file, given, os.environ)
        names = asyncio.run(_check(config))
        listening = stack.enter_context(_listen(config))
        host, port = listening.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        tell(f"Everlong listens at http://{shown}:{port}/v1 (upstreams: {', '.join(names)}; mode {config.engine.mode})")
        if config.workers > 1:
            os.environ[SHARED] = stack.enter_context(tempfile.TemporaryDirectory(prefix="everlong-metrics-"))
        os.environ[TOLD] = json.dumps({"file": file, "options": given})
        settings = uvicorn.Config(
            factory,
            factory=True,
            workers=config.workers,
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            lifespan="on",
            timeout_keep_alive=IDLE,
            timeout_graceful_shutdown=round(config.grace),
        )
        with _ending_in_peace():
            if config.workers > 1:
                from uvicorn.supervisors import Multiprocess  # noqa: PLC0415 - only for several processes

                Multiprocess(settings, sockets=[listening]).run()
            else:
                _Server(settings).run(sockets=[listening])


class _Server(uvicorn.Server):
    """A server that tells when it begins to end: what would go on for ever can then end by itself."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End: first whoever asked to be told."""
        for end in self.config.loaded_app.state.services.ending:
            end()
        await super().shutdown(sockets)


def app_from_environment() -> Starlette:
    """The application of one process, as `serve` left word of it."""
    return application(config_from_environment())


def config_from_environment() -> GatewayConfig:
    """The configuration that `serve` left word of."""
    told = json.loads(os.environ.get(TOLD, "{}"))
    return load_config(told.get("file"), told.get("options", {}), os.environ)


def application(config: GatewayConfig, **beside: Beside) -> Starlette:
    """The gateway of a configuration, with what else is served on its port."""
    use_one_heap()
    set_up_logging(lines=config.access_log)
    return gateway_app(lambda: _services(config), **beside)


async def _check(config: GatewayConfig) -> list[str]:
    """The names of the upstreams. Everything is made once and let go: what is wrong is told before anyone listens."""
    routes = routes_from(config, os.environ)
    await services_for(config, routes, os.environ).close()
    return [upstream.name for upstream in routes.upstreams]


@contextmanager
def _ending_in_peace() -> Iterator[None]:
    """A signal that ends the server is raised again when all is over; it must not end the process before the local
    model and shared figures are put away."""

    def end(*_: object) -> None:
        raise SystemExit(0)

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _services(config: GatewayConfig) -> Services:
    folder = cache_folder(os.environ)
    refresh_if_due(folder, datetime.now(UTC), settings=RefreshSettings.from_environment(os.environ))
    return services_for(
        config,
        routes_from(config, os.environ),
        os.environ,
        registry=registry_now(folder),
        observers=_observers(),
    )


def _observers() -> tuple[Observer, ...]:
    """Traces, where OpenTelemetry is there; without a provider set up they cost next to nothing."""
    return (traces_events(),) if importlib.util.find_spec("opentelemetry") is not None else ()


def _listen(config: GatewayConfig) -> socket.socket:
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    try:
        made = socket.create_server((config.host, config.port), family=family, backlog=BACKLOG)
    except (OSError, OverflowError) as error:
        number = error.errno if isinstance(error, OSError) else None
        reason = os.strerror(number) if number and number > 0 else str(error)  # an unknown host has a number below 0
        raise InputError(f"cannot listen at {config.host}:{config.port}: {reason}") from None
    made.set_inheritable(True)
    return made

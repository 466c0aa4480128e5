"""Runs the gateway: one process, or several on one port and one store."""

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
from typing import Any, cast

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
from everlong.llm import (
    ArrivalLimits,
    GuardedHttp,
    LocalServer,
    RefreshSettings,
    cache_folder,
    local_file,
    raise_file_limit,
    refresh_if_due,
    registry_now,
)

__all__ = ["app_from_environment", "application", "config_from_environment", "serve", "server_settings"]

#: The variable that gives the file and the options, as JSON, to the processes that serve.
SERVING = "EVERLONG_SERVING"
BACKLOG = 2_048

ReportLine = Callable[[str], None]


def serve(
    file: str | None,
    options: Mapping[str, Any],
    *,
    local: str | None = None,
    report: ReportLine = lambda _: None,
    factory: str = "everlong.gateway.http.server:app_from_environment",
) -> None:
    """Serve until a signal ends it. Raises InputError before anyone can connect if something is wrong.

    `factory` names the function that makes the application of each process, `local` the file of a local model that
    answers everything: "" for a small one.
    """
    given = {name: value for name, value in options.items() if value is not None}
    with ExitStack() as stack:
        if local is not None:
            report("Starting the local model …")
            model = stack.enter_context(LocalServer(local_file(local, cache_folder(os.environ), report)))
            given["upstream"] = model.url
            os.environ.update({"EVERLONG_UPSTREAM": model.url, "EVERLONG_KEY": model.key, "EVERLONG_FORMAT": ""})
        config = load_config(file, given, os.environ)
        raise_file_limit()
        names = asyncio.run(_check(config))
        listening = stack.enter_context(_listen(config))
        host, port = listening.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        report(
            f"Everlong listens at http://{shown}:{port}/v1 (upstreams: {', '.join(names)}; mode {config.engine.mode})"
        )
        if config.workers > 1:
            os.environ[SHARED] = stack.enter_context(tempfile.TemporaryDirectory(prefix="everlong-metrics-"))
        os.environ[SERVING] = json.dumps({"file": file, "options": given})
        settings = server_settings(config, factory, factory=True, workers=config.workers)
        with _orderly_end():
            if config.workers > 1:
                from uvicorn.supervisors import Multiprocess  # noqa: PLC0415 - only for several processes

                Multiprocess(settings, sockets=[listening]).run()
            else:
                _Server(settings).run(sockets=[listening])


def server_settings(config: GatewayConfig, app: Any, **more: Any) -> uvicorn.Config:
    """Return the settings of the server of an application: what it does with connections is the configuration's."""
    limits = ArrivalLimits(
        header=config.header_timeout,
        body=config.body_timeout,
        idle=config.idle_timeout,
        write=config.write_timeout,
        connections=config.connections,
        per_address=config.connections_per_address,
        trusted=config.trusted_proxies,
    )
    return uvicorn.Config(
        app,
        http=cast(Any, GuardedHttp(limits, _note_closed)),
        ws="none",
        backlog=BACKLOG,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        lifespan="on",
        timeout_keep_alive=cast(int, limits.idle),  # any number of seconds serves
        timeout_graceful_shutdown=round(config.grace),
        **more,
    )


def _note_closed(settings: uvicorn.Config, reason: str) -> None:
    """Count a connection that was closed early."""
    settings.loaded_app.state.services.metrics.closed(reason)


class _Server(uvicorn.Server):
    """A server that announces its end, so that endless streams can end by themselves."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End, after everyone was called who wants to know."""
        for end in self.config.loaded_app.state.services.ending:
            end()
        await super().shutdown(sockets)


def app_from_environment() -> Starlette:
    """Return the application of one process that `serve` started."""
    return application(config_from_environment())


def config_from_environment() -> GatewayConfig:
    """Return the configuration that `serve` was given."""
    given = json.loads(os.environ.get(SERVING, "{}"))
    return load_config(given.get("file"), given.get("options", {}), os.environ)


def application(config: GatewayConfig, **beside: Beside) -> Starlette:
    """Return the gateway of a configuration, with what else is served on its port."""
    use_one_heap()
    set_up_logging(lines=config.access_log)
    return gateway_app(config, lambda: _services(config), **beside)


async def _check(config: GatewayConfig) -> list[str]:
    """Return the names of the upstreams. Makes everything once, so that errors are raised before anyone listens."""
    routes = routes_from(config, os.environ)
    await services_for(config, routes, os.environ).close()
    return [upstream.name for upstream in routes.upstreams]


@contextmanager
def _orderly_end() -> Iterator[None]:
    """Keep signals from ending the process before the local model and shared metrics are cleaned up.

    The server raises a signal that ended it again when it is over.
    """

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
    """Traces, if OpenTelemetry is installed; without a provider they cost next to nothing."""
    return (traces_events(),) if importlib.util.find_spec("opentelemetry") is not None else ()


def _listen(config: GatewayConfig) -> socket.socket:
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    try:
        listening = socket.create_server((config.host, config.port), family=family, backlog=BACKLOG)
    except (OSError, OverflowError) as error:
        number = error.errno if isinstance(error, OSError) else None
        reason = os.strerror(number) if number and number > 0 else str(error)  # an unknown host has a number below 0
        raise InputError(f"cannot listen at {config.host}:{config.port}: {reason}") from None
    listening.set_inheritable(True)
    return listening

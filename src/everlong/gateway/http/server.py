"""Runs the gateway: one process, or several on one port and one store."""

import asyncio
import errno
import importlib.util
import json
import os
import signal
import socket
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from time import monotonic
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakKeyDictionary

import uvicorn
from starlette.applications import Starlette

from everlong.engine import Observer, traces_events
from everlong.errors import InputError
from everlong.gateway.config import GatewayConfig, load_config
from everlong.gateway.http.app import Beside, gateway_app, use_one_heap
from everlong.gateway.http.drain import announce_end
from everlong.gateway.operations.metrics import SHARED
from everlong.gateway.operations.reports import set_up_logging
from everlong.gateway.operations.services import Services, services_for
from everlong.gateway.upstreams.providers import routes_from
from everlong.jobs import Period
from everlong.llm import (
    WITNESS,
    ArrivalLimits,
    Endpoint,
    GuardedHttp,
    LocalServer,
    RefreshSettings,
    WitnessServer,
    cache_folder,
    local_file,
    raise_file_limit,
    refresh_if_due,
    registry_now,
)

if TYPE_CHECKING:
    from uvicorn.supervisors import Multiprocess
    from uvicorn.supervisors.multiprocess import Process

__all__ = ["app_from_environment", "application", "config_from_environment", "serve", "server_settings", "services_of"]

#: The variable that passes the file and the options, as JSON, to the serving processes.
SERVING = "EVERLONG_SERVING"
BACKLOG = 2_048
STARTING = 60  # seconds that a worker may take to start, or to answer a ping
SOON = 1.0  # seconds in which it usually answers

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

    `factory` names the function that makes each process's application. `local` is the file of a local model that
    answers everything; "" means a small one.
    """
    given = {name: value for name, value in options.items() if value is not None}
    with ExitStack() as stack:
        if local is not None:
            report("Starting the local model …")
            model = stack.enter_context(LocalServer(local_file(local, cache_folder(os.environ), report)))
            given["upstream"] = _use(model.endpoint())
        elif given.get("upstream") == WITNESS:
            given["upstream"] = _use(stack.enter_context(WitnessServer()).endpoint())
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
                _workers(settings, listening).run()
            else:
                uvicorn.Server(settings).run(sockets=[listening])


def _workers(settings: uvicorn.Config, listening: socket.socket) -> "Multiprocess":
    """The serving processes. On SIGHUP each is replaced when its successor is ready, and finishes its streams."""
    from uvicorn.supervisors import Multiprocess  # noqa: PLC0415 - only for several processes

    seen: WeakKeyDictionary[object, float] = WeakKeyDictionary()

    class Workers(Multiprocess):
        def terminate_all(self) -> None:
            announce_end()
            super().terminate_all()

        def keep_subprocess_alive(self) -> None:
            # A worker that starts on a busy machine may be silent for long; it must not be mistaken for one that hangs.
            if not all(self.lives(worker) for worker in self.processes):
                super().keep_subprocess_alive()

        def lives(self, worker: "Process") -> bool:
            now = monotonic()
            if not worker.process.is_alive():
                return False
            if worker.ping(SOON):
                seen[worker] = now
            return now - seen.setdefault(worker, now) < STARTING

    return Workers(settings, sockets=[listening])


def _use(endpoint: Endpoint) -> str:
    """Let the serving processes use one of our own servers, and return its address."""
    os.environ.update({"EVERLONG_UPSTREAM": endpoint.url, "EVERLONG_KEY": endpoint.key, "EVERLONG_FORMAT": ""})
    return endpoint.url


def server_settings(config: GatewayConfig, app: Any, **more: Any) -> uvicorn.Config:
    """Return the server settings of an application; the configuration decides about connections."""
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
        timeout_keep_alive=cast(int, limits.idle),  # any number works
        timeout_graceful_shutdown=round(config.grace),
        timeout_worker_healthcheck=STARTING,
        **more,
    )


def _note_closed(settings: uvicorn.Config, reason: str) -> None:
    """Count a connection that was closed early."""
    settings.loaded_app.state.services.metrics.closed(reason)


def app_from_environment() -> Starlette:
    """Return the application of a process that `serve` started."""
    return application(config_from_environment())


def config_from_environment() -> GatewayConfig:
    """Return the configuration that `serve` received."""
    given = json.loads(os.environ.get(SERVING, "{}"))
    return load_config(given.get("file"), given.get("options", {}), os.environ)


def application(config: GatewayConfig, **beside: Beside) -> Starlette:
    """Return the gateway of a configuration, with everything else that its port serves."""
    use_one_heap()
    set_up_logging(lines=config.access_log)
    return gateway_app(config, lambda: services_of(config), **beside)


async def _check(config: GatewayConfig) -> list[str]:
    """Return the names of the upstreams. Creates everything once, so that errors are raised before the port is open."""
    routes = routes_from(config, os.environ)
    await services_for(config, routes, os.environ).close()
    return [upstream.name for upstream in routes.upstreams]


@contextmanager
def _orderly_end() -> Iterator[None]:
    """Keep signals from ending the process before the local model and shared metrics are cleaned up.

    When the server has ended, it raises the signal that ended it again.
    """

    def end(*_: object) -> None:
        raise SystemExit(0)

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def services_of(config: GatewayConfig) -> Services:
    """Return the services of a process, with its daily work on this machine."""
    folder = cache_folder(os.environ)
    services = services_for(
        config,
        routes_from(config, os.environ),
        os.environ,
        registry=registry_now(folder),
        observers=_observers(),
    )

    async def refresh() -> None:
        await refresh_if_due(folder, datetime.now(UTC), settings=RefreshSettings.from_environment(os.environ))

    services.jobs.every(Period.DAY, "registry", refresh, everywhere=True)  # the tables are files of this machine
    return services


def _observers() -> tuple[Observer, ...]:
    """Return the observers for traces, if OpenTelemetry is installed; without a provider they cost almost nothing."""
    return (traces_events(),) if importlib.util.find_spec("opentelemetry") is not None else ()


def _listen(config: GatewayConfig) -> socket.socket:
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    try:
        listening = socket.create_server((config.host, config.port), family=family, backlog=BACKLOG)
    except (OSError, OverflowError) as error:
        number = error.errno if isinstance(error, OSError) else None
        reason = os.strerror(number) if number and number > 0 else str(error)  # an unknown host has a negative number
        hint = "; --port chooses another" if number == errno.EADDRINUSE else ""
        raise InputError(f"cannot listen on {config.host}:{config.port}: {reason}{hint}") from None
    listening.set_inheritable(True)
    return listening

"""The application that `everlong serve` runs on one port: the gateway, and the chat app on the same store."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

from starlette.applications import Starlette
from starlette.routing import Route

from everlong.agent import AgentConfig, folder_config, sandbox_of
from everlong.cli.chat.sample import sample_talk
from everlong.cli.permissions import sandbox_settings
from everlong.core import Budget
from everlong.engine import counter_for
from everlong.gateway import Boundary, GatewayConfig, Report, Services, application, config_from_environment
from everlong.llm import LocalServer, cache_folder, model_file, registry_now
from everlong.web import (
    BUILT,
    EVERYBODY,
    OWNER,
    AppState,
    Choices,
    Guard,
    Setup,
    Source,
    environment_sources,
    is_loopback,
    sources_file,
    web_routes,
    with_choices,
)

__all__ = ["FACTORY", "app_from_environment", "chat_app", "lone_app", "serving_options"]

FACTORY = "everlong.cli.app:app_from_environment"
#: Variables by which the program tells its server process more than the gateway's own settings.
LOCAL, SAMPLE, TOOLS = "EVERLONG_SERVING_LOCAL", "EVERLONG_SERVING_SAMPLE", "EVERLONG_SERVING_TOOLS"
PASSWORD = "EVERLONG_PASSWORD"
REACHED_WITHOUT_A_KEY = ("", "ollama")

SMALL_WINDOW = 3_000  # tokens of the sample thread's window; two or three turns fill it
FILLED = 0.7  # of the threshold
SAMPLE_TITLE = "Lantern Books"


@contextmanager
def serving_options(*, local: str | None, sample: bool, tools: Mapping[str, object]) -> Iterator[None]:
    """Set the variables for the server process while this is entered; `tools` says what they may do unasked.

    `local` is as the option gives it: a file of the user's own is a model like others, the small one ("") is not.
    """
    said = any(tools.values())
    if said:
        _agent_config(tools)  # a wrong pattern is said now, in one line
    small = local is not None and not local
    options = {LOCAL: "1" if small else "", SAMPLE: "1" if sample else "", TOOLS: json.dumps(tools) if said else ""}
    os.environ.update({name: value for name, value in options.items() if value})
    try:
        yield
    finally:
        for name in options:
            os.environ.pop(name, None)


def app_from_environment() -> Starlette:
    """Return the application of one process; the chat app is in it only if that process is the only one.

    A page gets live updates of a thread only from the process that works on it.
    """
    config = config_from_environment()
    if not config.app or config.workers > 1:
        return application(config)
    return application(config, beside=partial(chat_app, config))


def lone_app(app: AppState, guard: Guard, built: Path = BUILT) -> Boundary:
    """Return an application that is the chat app alone, without a gateway, for this machine."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        await app.start()
        try:
            yield
        finally:
            await app.close()

    return Boundary(app=Starlette(routes=web_routes(app, guard, built), lifespan=lifespan))


@asynccontextmanager
async def chat_app(config: GatewayConfig, services: Services) -> AsyncIterator[Sequence[Route]]:
    """Run the chat app on the gateway's store and upstreams, as long as the gateway runs; yield its routes."""
    stack = ExitStack()

    def owner_of(headers: Sequence[tuple[bytes, bytes]]) -> str:
        return services.clients.identify(headers).scope

    guard = Guard.listening_at(config.host, os.environ.get(PASSWORD, ""))
    if guard.password and not os.environ.get(PASSWORD):
        print(f"The app's password is {guard.password}", file=sys.stderr, flush=True)  # noqa: T201 - printed once
    app = AppState(
        Setup(
            threads=services.state_store.store,
            sources=(*_sources(services), *_keyed(services)),
            sources_file=sources_file(os.environ),
            config=_agent_config(json.loads(os.environ.get(TOOLS, "{}"))),
            registry=registry_now(cache_folder(os.environ)),
            start_local=partial(_local_source, stack),
            watched=owner_of if config.keys else None,
            near=is_loopback(config.host),
        )
    )

    def forward(scope: str, report: Report) -> None:
        app.report_request(report.explanation(), scope if config.keys else EVERYBODY)

    await app.start()
    if not app.sandbox.kind:
        print(f"The app's shell: {app.sandbox.description}", file=sys.stderr, flush=True)  # noqa: T201 - said once
    if os.environ.get(SAMPLE):
        await _add_sample(app)
    services.recent.observers.append(forward)
    services.ending.append(app.end_streams)
    try:
        yield web_routes(app, guard)
    finally:
        services.recent.observers.remove(forward)
        await app.close()
        await asyncio.to_thread(stack.close)


def _agent_config(tools: Mapping[str, Any]) -> AgentConfig:
    """Return the agent's settings in this folder, with the options about permissions and the sandbox."""
    options = {"policy": tools.get("policy"), "approval": "always" if tools.get("yes") else None}
    options |= sandbox_settings(tools.get("sandbox"), off=tools.get("no_sandbox"), network=tools.get("network"))
    config, _ = folder_config(os.environ, Path(), options)
    config = config.with_patterns(tools.get("allow", ()), tools.get("deny", ()))
    config.permissions()  # raises if the policy file makes no sense
    sandbox_of(config)  # and if there is no such sandbox
    return config


def _sources(services: Services) -> list[Source]:
    """Return the upstreams that the app can use: those with a key of their own, or that need none."""
    local = bool(os.environ.get(LOCAL))
    reached = [
        upstream
        for upstream in services.routes.upstreams
        if upstream.endpoint.key or upstream.endpoint.provider in REACHED_WITHOUT_A_KEY
    ]
    if local:
        return [Source(name="local", endpoint=one.endpoint, models=("local",), local=True) for one in reached]
    return [Source(name=one.name, endpoint=one.endpoint) for one in reached]


def _local_source(stack: ExitStack) -> Source:
    """Start the local model, downloaded once; it ends with the app."""
    server = stack.enter_context(LocalServer(model_file(cache_folder(os.environ))))
    return Source(name="local", endpoint=server.endpoint(), models=("local",), local=True)


def _keyed(services: Services) -> list[Source]:
    """Return the providers whose keys are in the environment and that are not upstreams of the gateway already."""
    known = {upstream.endpoint.name for upstream in services.routes.upstreams}
    return [source for source in environment_sources(os.environ) if source.endpoint.name not in known]


async def _add_sample(app: AppState) -> None:
    """Add a thread that nearly fills a small window, so that a compaction is seen soon; only to an empty app."""
    if await asyncio.to_thread(partial(app.threads.threads, owner=OWNER, archived=None, limit=1)):
        return
    await app.models.refresh()
    model = await asyncio.to_thread(app.models.default)
    most = int(FILLED * Budget.of(SMALL_WINDOW).threshold_tokens)
    talk = sample_talk(counter_for(model.partition("/")[2]), most, latin=bool(os.environ.get(LOCAL)))
    metadata = with_choices("{}", Choices(model=model))
    thread = uuid4().hex
    await asyncio.to_thread(partial(app.threads.create, thread, owner=OWNER, title=SAMPLE_TITLE, metadata=metadata))
    await asyncio.to_thread(partial(app.threads.change, thread, settings=json.dumps({"window": SMALL_WINDOW})))
    await app.engine.append(thread, talk)

"""What `everlong serve` puts on one port: the gateway, and beside it the chat app on the same store."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from uuid import uuid4

from starlette.applications import Starlette
from starlette.routing import Route

from everlong.agent import folder_config
from everlong.cli.chat.sample import sample_talk
from everlong.core import Budget
from everlong.engine import counter_for
from everlong.gateway import GatewayConfig, Report, Services, application, config_from_environment
from everlong.llm import LocalServer, cache_folder, model_file, registry_now
from everlong.web import (
    OWNER,
    AppState,
    Choices,
    Guard,
    Setup,
    Source,
    environment_sources,
    sources_file,
    web_routes,
    with_choices,
)

__all__ = ["FACTORY", "app_from_environment", "told"]

FACTORY = "everlong.cli.app:app_from_environment"
#: What the process that serves is told by the one that started it, beside the gateway's own settings.
LOCAL, SAMPLE = "EVERLONG_SERVING_LOCAL", "EVERLONG_SERVING_SAMPLE"
PASSWORD = "EVERLONG_PASSWORD"
REACHED_WITHOUT_A_KEY = ("", "ollama")

SMALL_WINDOW = 3_000  # tokens, of the sample thread: two or three turns fill it
FILLED = 0.7  # of what may be sent before a cut
SAMPLE_TITLE = "Lantern Books"


@contextmanager
def told(*, local: bool, sample: bool) -> Iterator[None]:
    """Leave word for the process that serves."""
    said = {LOCAL: local, SAMPLE: sample}
    os.environ.update({name: "1" for name, wanted in said.items() if wanted})
    try:
        yield
    finally:
        for name in said:
            os.environ.pop(name, None)


def app_from_environment() -> Starlette:
    """The application of one process. A page hears of a thread from the process that works on it: there is one then."""
    config = config_from_environment()
    if not config.app or config.workers > 1:
        return application(config)
    return application(config, beside=partial(_app, config))


@asynccontextmanager
async def _app(config: GatewayConfig, services: Services) -> AsyncIterator[Sequence[Route]]:
    """The chat app, on the gateway's store and with its upstreams, for as long as the gateway runs."""
    stack = ExitStack()
    guard = Guard.listening_at(config.host, os.environ.get(PASSWORD, ""))
    if guard.password and not os.environ.get(PASSWORD):
        print(f"The app's password is {guard.password}", file=sys.stderr, flush=True)  # noqa: T201 - told once, here
    desk = AppState(
        Setup(
            threads=services.kept.store,
            sources=(*_sources(services), *_keyed(services)),
            sources_file=sources_file(os.environ),
            config=folder_config(os.environ, Path())[0],
            registry=registry_now(cache_folder(os.environ)),
            start_local=partial(_local_source, stack),
        )
    )

    def tell(report: Report) -> None:
        desk.tell_live(report.explained())

    await desk.start()
    if os.environ.get(SAMPLE):
        await _add_sample(desk)
    services.recent.told.append(tell)
    services.ending.append(desk.end_streams)
    try:
        yield web_routes(desk, guard)
    finally:
        services.recent.told.remove(tell)
        await desk.close()
        await asyncio.to_thread(stack.close)


def _sources(services: Services) -> list[Source]:
    """The upstreams that the app can reach: with a key of their own, or without any."""
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
    """The model of this machine, fetched once and started; it ends with the app."""
    server = stack.enter_context(LocalServer(model_file(cache_folder(os.environ))))
    return Source(name="local", endpoint=server.endpoint(), models=("local",), local=True)


def _keyed(services: Services) -> list[Source]:
    """Providers whose keys are in the environment, where the gateway has them not as upstreams already."""
    known = {upstream.endpoint.name for upstream in services.routes.upstreams}
    return [source for source in environment_sources(os.environ) if source.endpoint.name not in known]


async def _add_sample(desk: AppState) -> None:
    """A thread that nearly fills a small window, so that a compaction is seen soon; only where there is no thread."""
    if await asyncio.to_thread(partial(desk.threads.threads, owner=OWNER, archived=None, limit=1)):
        return
    await desk.models.refresh()
    model = await asyncio.to_thread(desk.models.default)
    room = int(FILLED * Budget.of(SMALL_WINDOW).high_mark)
    talk = sample_talk(counter_for(model.partition("/")[2]), room, latin=bool(os.environ.get(LOCAL)))
    metadata = with_choices("{}", Choices(model=model))
    thread = uuid4().hex
    await asyncio.to_thread(partial(desk.threads.create, thread, owner=OWNER, title=SAMPLE_TITLE, metadata=metadata))
    await asyncio.to_thread(partial(desk.threads.change, thread, settings=json.dumps({"window": SMALL_WINDOW})))
    await desk.engine.append(thread, talk)

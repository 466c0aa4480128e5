"""Tables of models and a server of them, for tests of the refresh."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from aiohttp import web

from everlong.core import Json, JsonObject
from everlong.windows import SOURCES, Source, bundled
from everlong.windows.entries import MODELS_DEV
from everlong.windows.sources.litellm import LITELLM

__all__ = ["Answers", "litellm_table", "models_dev_table", "never", "served"]

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def models_dev_table(**windows: int) -> JsonObject:
    """models.dev as the bundled snapshot knows it, with other windows for some of openai's models."""
    providers: dict[str, dict[str, Json]] = {}
    for entry in bundled():
        if entry.table == MODELS_DEV:
            limit: Json = {"context": entry.context, "input": entry.input, "output": entry.output}
            providers.setdefault(entry.provider, {})[entry.id] = {"limit": limit}
    for name, window in windows.items():
        providers["openai"][name.replace("_", "-")] = {"limit": {"context": window}}
    return {name: {"models": models} for name, models in providers.items()}


def litellm_table(**windows: int) -> JsonObject:
    """litellm's table as the bundled snapshot knows it, with other windows for some of openai's models."""
    rows: JsonObject = {
        f"{entry.provider}/{entry.id}": {"litellm_provider": entry.provider, "max_input_tokens": entry.window}
        for entry in bundled()
        if entry.table == LITELLM
    }
    for name, window in windows.items():
        rows[f"openai/{name.replace('_', '-')}"] = {"litellm_provider": "openai", "max_input_tokens": window}
    return rows


async def never(request: web.Request) -> web.StreamResponse:
    """An answer that begins and does not end."""
    response = web.StreamResponse()
    await response.prepare(request)
    await response.write(b"{")
    await asyncio.Event().wait()
    return response


@dataclass
class Answers:
    """What a server says for each of the two tables, and which of them it was asked for."""

    models_dev: "Json | bytes | Handler"
    litellm: "Json | bytes | Handler" = 404
    asked: list[str] = field(default_factory=list)
    began: asyncio.Event = field(default_factory=asyncio.Event)

    async def tell(self, request: web.Request) -> web.StreamResponse:
        """A number is a status, bytes are a body, a function does it itself, the rest is JSON."""
        name = request.match_info["table"]
        self.asked.append(name)
        self.began.set()
        answer = self.models_dev if name == MODELS_DEV else self.litellm
        if callable(answer):
            return await answer(request)
        if isinstance(answer, int):
            return web.Response(status=answer)
        if isinstance(answer, bytes):
            return web.Response(body=answer)
        return web.json_response(answer)


@asynccontextmanager
async def served(answers: Answers) -> AsyncGenerator[tuple[Source, ...], None]:
    """The two sources at a server of one's own."""
    app = web.Application()
    app.router.add_get("/{table}", answers.tell)
    runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    port = runner.addresses[0][1]
    try:
        yield tuple(replace(source, url=f"http://127.0.0.1:{port}/{source.table}") for source in SOURCES)
    finally:
        await runner.cleanup()

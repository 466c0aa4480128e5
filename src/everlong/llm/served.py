"""The windows that servers report, and the questions by which we learn them.

An Ollama gives each request the window that the request asks for, else that of the model's file, else its own default.
No path reports the default; it is seen only in a model that was loaded without asking for a window. If a request is
about to load the model anyway, we load it first and then ask about it.
"""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

import aiohttp

from everlong.core import Json
from everlong.llm.bodies import PACKED, read_whole
from everlong.llm.endpoints import KNOWN, Endpoint
from everlong.windows import Served, listing_window, llama_cpp_window, ollama_running_window, ollama_show_window
from everlong.wire import OPENAI_CHAT, format_named

__all__ = ["ASKED_FOR", "largest_window", "served_window"]

WINDOW_SECONDS = 3.0  # for all questions about a window together
LOADING_SECONDS = 300.0  # a model of many gigabytes, from a slow disk
LARGEST_LISTING = 4 * 1024 * 1024  # bytes; a listing of thousands of models fits
#: The window to assume for an Ollama that reports none (its oldest default), and to ask for if requests can ask.
OLDEST_DEFAULT, ASKED_FOR = 2_048, 4_096


@dataclass(frozen=True, slots=True)
class _Server:
    """A server that can be asked."""

    session: aiohttp.ClientSession
    endpoint: Endpoint

    @property
    def root(self) -> str:
        address = urlsplit(self.endpoint.url)
        return f"{address.scheme}://{address.netloc}"

    async def ask(self, method: str, url: str, body: Json = None) -> Json:
        """Return what the server answers; None for anything that is not JSON."""
        # Such servers often speak several formats and expect the key where OpenAI has it.
        own = format_named(self.endpoint.fmt).api.headers(self.endpoint.key)
        headers = {**PACKED, **OPENAI_CHAT.api.headers(self.endpoint.key), **own}
        try:
            async with self.session.request(
                method, url, json=body, headers=headers, allow_redirects=False, auto_decompress=False
            ) as response:
                if response.status != 200:
                    return None
                answer: Json = json.loads(await read_whole(response, LARGEST_LISTING))
                return answer
        except aiohttp.ClientConnectorError:
            raise
        except (aiohttp.ClientError, ConnectionError, ValueError, RecursionError):
            return None

    async def shown(self, model: str) -> Json:
        """Return what an Ollama shows of a model."""
        return await self.ask("POST", f"{self.root}/api/show", {"model": model})

    async def running(self, model: str) -> Served | None:
        """Return the window of a model that an Ollama has loaded."""
        return ollama_running_window(await self.ask("GET", f"{self.root}/api/ps"), model)


async def served_window(
    session: aiohttp.ClientSession, endpoint: Endpoint, model: str, *, loads: bool = False
) -> int | None:
    """Return the window that a server really serves; None if it does not say, which most do not.

    With `loads` a model that is about to be asked may be loaded to learn it. Hosted providers are not asked: the
    registry knows their windows. Raises aiohttp.ClientConnectorError if the server cannot be reached: ask again later.
    """
    if KNOWN.get(endpoint.provider, ("", "", ""))[2]:  # a hosted provider needs a key
        return None
    server, api = _Server(session, endpoint), format_named(endpoint.fmt).api
    questions: tuple[tuple[str, Callable[[Json], Served | None]], ...] = (
        (f"{endpoint.name}{api.models}", lambda raw: listing_window(raw, model)),
        (f"{server.root}/props", llama_cpp_window),
    )
    try:
        async with asyncio.timeout(WINDOW_SECONDS):
            for url, read in () if api.window else questions:
                served = read(await server.ask("GET", url))
                if served is not None and served.in_force:
                    return served.context
            shown = await server.shown(model)
            served = ollama_show_window(shown)
            if served is not None and served.in_force:
                return served.context
            if served is None or not loads:
                running = await server.running(model)
                return None if running is None else running.context
    except TimeoutError:
        return None
    return await _default_window(server, model, ASKED_FOR if api.window else OLDEST_DEFAULT)


async def largest_window(session: aiohttp.ClientSession, endpoint: Endpoint, model: str) -> int | None:
    """Return the largest window of a model, if the server is an Ollama; None if it does not say."""
    try:
        async with asyncio.timeout(WINDOW_SECONDS):
            shown = await _Server(session, endpoint).shown(model)
    except TimeoutError:
        return None
    facts = {name: value for name, value in shown.items() if name != "parameters"} if isinstance(shown, dict) else None
    served = ollama_show_window(facts)
    return None if served is None else served.context


async def _default_window(server: _Server, model: str, least: int) -> int:
    """Return the window that an Ollama gives to a request that asks for none; `least` if it is too old to tell."""
    try:
        async with asyncio.timeout(LOADING_SECONDS):
            await server.ask("POST", f"{server.root}/api/generate", {"model": model, "stream": False})
            running = await server.running(model)
    except TimeoutError:
        return least
    return least if running is None else running.context

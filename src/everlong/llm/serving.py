"""Asking a server for the window it really serves: in a few seconds, all ways together; most do not tell."""

import asyncio
import json
from collections.abc import Callable
from urllib.parse import urlsplit

import aiohttp

from everlong.core import Json
from everlong.llm.connections import read_whole
from everlong.llm.endpoints import Endpoint
from everlong.windows import Served, listing_window, llama_cpp_window, ollama_running_window, ollama_show_window

__all__ = ["served_window"]

SECONDS = 3.0  # for all ways together
LARGEST = 4 * 1024 * 1024  # bytes; a listing of thousands of models fits


async def served_window(session: aiohttp.ClientSession, endpoint: Endpoint, model: str) -> int | None:
    """The window in force for the model, or None. Hosted providers whose windows the registry knows are not asked.

    Raises aiohttp.ClientConnectorError where nobody listens: ask again when somebody does.
    """
    if endpoint.provider and endpoint.provider != "ollama":
        return None
    address = urlsplit(endpoint.url)
    root = f"{address.scheme}://{address.netloc}"
    headers = {"authorization": f"Bearer {endpoint.key}"} if endpoint.key else {}
    ways: tuple[tuple[str, str, Json, Callable[[Json], Served | None]], ...] = (
        ("GET", f"{endpoint.name}/models", None, lambda raw: listing_window(raw, model)),
        ("GET", f"{root}/props", None, llama_cpp_window),
        ("GET", f"{root}/api/ps", None, lambda raw: ollama_running_window(raw, model)),
        ("POST", f"{root}/api/show", {"model": model}, ollama_show_window),
    )
    try:
        async with asyncio.timeout(SECONDS):
            for method, url, body, read in ways:
                found = read(await _json(session, method, url, body, headers))
                if found is not None and found.in_force:
                    return found.context
    except TimeoutError:
        return None
    return None


async def _json(session: aiohttp.ClientSession, method: str, url: str, body: Json, headers: dict[str, str]) -> Json:
    """What the server answers, None for anything that is no JSON."""
    try:
        async with session.request(method, url, json=body, headers=headers, allow_redirects=False) as response:
            if response.status != 200:
                return None
            answer: Json = json.loads(await read_whole(response, LARGEST))
            return answer
    except aiohttp.ClientConnectorError:
        raise
    except (aiohttp.ClientError, ConnectionError, ValueError, RecursionError):
        return None

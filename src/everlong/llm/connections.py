"""Connections to one server: a pool for each event loop that uses them, closed with the loop at the latest.

Proxies are taken from the environment, passwords of ~/.netrc are not: a key is what its endpoint says, and goes
nowhere else, so that redirects are not followed either.
"""

import asyncio
from collections.abc import AsyncGenerator
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp

__all__ = ["Connections", "read_whole"]


class Connections:
    """Connections to the server at an address. They are made when first asked for."""

    def __init__(self, url: str, timeout: aiohttp.ClientTimeout) -> None:
        self._url = url
        self._timeout = timeout
        self._kept: dict[asyncio.AbstractEventLoop, AsyncGenerator[aiohttp.ClientSession, None]] = {}
        self._open: dict[asyncio.AbstractEventLoop, aiohttp.ClientSession] = {}

    async def here(self) -> aiohttp.ClientSession:
        """The pool of the event loop that runs."""
        loop = asyncio.get_running_loop()
        found = self._open.get(loop)
        if found is not None and not found.closed:
            return found
        for old in [old for old in self._open if old.is_closed()]:
            del self._open[old], self._kept[old]
        self._kept[loop] = self._until_the_loop_ends()
        self._open[loop] = await anext(self._kept[loop])
        return self._open[loop]

    async def close(self) -> None:
        """Let go of those of the event loop that runs; a second time does nothing."""
        loop = asyncio.get_running_loop()
        kept = self._kept.pop(loop, None)
        self._open.pop(loop, None)
        if kept is not None:
            await kept.aclose()

    async def _until_the_loop_ends(self) -> AsyncGenerator[aiohttp.ClientSession, None]:
        """An event loop that ends closes the generators that are still open: this one then closes its pool."""
        connector = aiohttp.TCPConnector(limit=0, ttl_dns_cache=300)
        session = aiohttp.ClientSession(connector=connector, timeout=self._timeout, proxy=_proxy_for(self._url))
        try:
            yield session
        finally:
            await session.close()


async def read_whole(response: aiohttp.ClientResponse, most: int) -> bytes:
    """The body, or as much of it as is wanted."""
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) >= most:
            break
    return bytes(body[:most])


def _proxy_for(url: str) -> str | None:
    address = urlsplit(url)
    proxy = getproxies().get(address.scheme)
    if not proxy or urlsplit(proxy).scheme not in ("http", "https") or proxy_bypass(address.netloc):
        return None
    return proxy

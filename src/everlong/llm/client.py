"""A model over HTTP: send a request, and stream its reply in pieces. A failure is a piece too.

Before the first piece, it retries what is worth retrying (connections, 429, 5xx), but never an overflow. Closing the
stream closes the connection, so the provider stops. Keys go into headers and nowhere else: redirects are not followed,
no password of ~/.netrc is used, and a key that a server repeats in an error is removed.
"""

import asyncio
import json
import logging
import os
import ssl
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import stamina
from aiohttp.abc import AbstractResolver

from everlong.core import expect, expect_text
from everlong.errors import EverlongError, ProviderError, RateLimited
from everlong.llm.bodies import PACKED, pieces_of, read_whole
from everlong.llm.endpoints import Endpoint, endpoint_of
from everlong.llm.served import ASKED_FOR, largest_window, served_window
from everlong.wire import (
    SSE,
    Failed,
    Finished,
    Framing,
    Outgoing,
    Reason,
    Reply,
    ReplyReader,
    ReplyStream,
    Request,
    as_error,
    classify,
    format_named,
    framing_of,
)

__all__ = ["Connections", "HttpModel", "Patience"]

LARGEST_ERROR = 64 * 1024  # bytes of an error page that are read
LARGEST_UNPACKED = 64 * 1024 * 1024  # bytes of a packed reply after unpacking
# Retries are logged. Without any handler, Python would print a bare name to standard error.
logging.getLogger("stamina").addHandler(logging.NullHandler())
SOON = 2.0  # seconds that a server may ask us to wait before a retry here; longer waits are left to the caller
WORTH_RETRYING = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
MOST_MODELS = 1_000  # names whose windows are remembered
LONGEST_FIGURE = 10  # characters
SHORTEST_SECRET = 8  # characters; a shorter text may be any word
HIDDEN = "[key]"


class _Again(Exception):
    """A failure after which the same request may succeed."""

    def __init__(self, error: ProviderError) -> None:
        super().__init__(str(error))
        self.error = error


class Patience:
    """Timeouts in seconds, and how often to try.

    - `connect`: the longest wait for a connection.
    - `silence`: the longest pause between two pieces of an answer.
    - `attempts`, `pause`: how many times to try, and the pause before the second try.
    """

    def __init__(self, *, connect: float = 10.0, silence: float = 300.0, attempts: int = 3, pause: float = 0.5) -> None:
        self.timeout = aiohttp.ClientTimeout(total=None, sock_connect=connect, sock_read=silence)
        self.attempts = attempts
        self.pause = pause


class HttpModel:
    """A model behind an HTTP endpoint. Create one per endpoint; it keeps its connections until it is closed.

    - `endpoint`: a provider such as "openai", a URL, or an `Endpoint`.
    - `name`: the model to use when a call names none.
    - `key`: the API key; by default the provider's environment variable, such as OPENAI_API_KEY.
    - `patience`: timeouts and retries.
    - `loads`: whether it may load a model on the server in order to learn its context window.

    Example: HttpModel("anthropic", "claude-sonnet-4-5")
    """

    def __init__(
        self,
        endpoint: Endpoint | str,
        name: str = "",
        *,
        key: str = "",
        patience: Patience | None = None,
        resolver: AbstractResolver | None = None,
        loads: bool = False,
    ) -> None:
        expect("endpoint", endpoint, (Endpoint, str), 'a provider, an address, or an endpoint, such as "openai"')
        expect_text("name", name, "a model's name")
        if isinstance(endpoint, str):
            endpoint = endpoint_of(endpoint, key=key, environment=os.environ)
        self.name = name
        self._format = format_named(endpoint.fmt)
        self.fmt = endpoint.fmt
        self.endpoint = endpoint.name
        self.provider = endpoint.provider
        self._at = endpoint
        self._patience = patience or Patience()
        self._connections = Connections(endpoint.url, self._patience.timeout, resolver)
        self._loads = loads
        self._served: dict[str, int | None] = {}
        self._largest: dict[str, int | None] = {}
        self._asking: dict[str, asyncio.Task[int | None]] = {}

    def __repr__(self) -> str:
        name = f"{self.name!r} " if self.name else ""
        return f"<HttpModel {name}at {self.endpoint} ({self.fmt})>"

    async def served_window(self, model: str) -> int | None:
        """Return the context window in force that the server reports; None if it does not say. Asks once per model."""
        if model in self._served:
            return self._served[model]
        task = self._asking.get(model)
        if task is None or task.get_loop() is not asyncio.get_running_loop():
            task = self._asking[model] = asyncio.create_task(self._ask_window(model))
        # If one caller is cancelled, the others still get the answer.
        return await asyncio.shield(task)

    async def largest_window(self, model: str) -> int | None:
        """Return the largest context window the model supports, if the server reports it; None if not."""
        if model not in self._largest:
            try:
                tokens = await largest_window(await self._connections.here(), self._at, model)
            except aiohttp.ClientConnectorError:
                return None
            _keep(self._largest, model, tokens)
        return self._largest[model]

    async def _ask_window(self, model: str) -> int | None:
        try:
            tokens = await served_window(await self._connections.here(), self._at, model, loads=self._loads)
            _keep(self._served, model, tokens)
        except aiohttp.ClientConnectorError:
            return None
        finally:
            self._asking.pop(model, None)
        return tokens

    async def stream(self, request: Request) -> AsyncGenerator[Reply, None]:
        """Stream the pieces of the reply; the last is Finished or Failed."""
        begun = False
        reader = self._format.reader()
        last: Finished | Failed
        try:
            response = await self._post(await self._outgoing(request))
            stream, decoder = ReplyStream(reader), self._framing(response).decoder()
            async with response, aclosing(pieces_of(response, most=LARGEST_UNPACKED)) as pieces:
                async for piece in pieces:
                    for reply in stream.feed(decoder.feed(piece)):
                        begun = True
                        yield reply
                for reply in [*stream.feed(decoder.close()), *stream.close()]:
                    begun = True
                    yield reply
            last = reader.finished()
        except (aiohttp.ClientError, OSError) as error:
            last = self._broken(reader, error, begun=begun)
        except ProviderError as error:
            last = Failed(self._without_keys(error), begun=begun)
        except (EverlongError, ValueError, RecursionError) as error:
            unreadable = ProviderError(f"the answer of {self.endpoint} cannot be read: {_words(error)}")
            last = Failed(self._without_keys(unreadable), begun=begun)
        yield last

    async def _outgoing(self, request: Request) -> Outgoing:
        """Return the request to send. If the format has a field for the window, it is the window used for counting."""
        outgoing, way, api = self._format.ask(request, self._at.key), self._at.way, self._format.api
        if api.window:
            window = await self.served_window(request.model) or ASKED_FOR
            outgoing = replace(outgoing, body=api.windowed(outgoing.body, window))
        return outgoing if way is None else way.request(outgoing, request.model, self._at.key)

    def _framing(self, response: aiohttp.ClientResponse) -> Framing:
        """Return the framing of a streamed response; SSE if its headers name none."""
        kind = response.headers.get("content-type", "").encode("latin-1", "replace")
        return framing_of(kind, self._format.api.framing) or SSE

    def _broken(self, reader: ReplyReader, error: BaseException, *, begun: bool) -> Finished | Failed:
        """Return the last piece. A connection that is lost after a complete reply does no harm."""
        return reader.finished() if reader.complete else Failed(self._unreached(error), begun=begun)

    async def _post(self, outgoing: Outgoing) -> aiohttp.ClientResponse:
        """Send the request, with retries; return the response once it begins. Raises the refusal."""
        try:
            async for attempt in stamina.retry_context(
                on=_Again,
                attempts=self._patience.attempts,
                wait_initial=self._patience.pause,
                wait_jitter=self._patience.pause,
                timeout=None,
            ):
                with attempt:
                    return await self._post_once(outgoing)
        except _Again as again:
            raise again.error from None
        raise AssertionError("unreachable: a retry returns or raises")

    async def _post_once(self, outgoing: Outgoing) -> aiohttp.ClientResponse:
        headers = {"content-type": "application/json", **PACKED, **outgoing.headers, **dict(self._at.headers)}
        body = json.dumps(outgoing.body, ensure_ascii=False).encode("utf-8", "backslashreplace")
        session = await self._connections.here()
        try:
            response = await session.post(
                self.endpoint + outgoing.path,
                data=body,
                headers=headers,
                allow_redirects=False,
                auto_decompress=False,
            )
        except (aiohttp.ClientConnectionError, OSError) as error:
            raise _Again(self._unreached(error)) from error
        if response.status in range(200, 300):
            return response
        async with response:
            text = (await read_whole(response, LARGEST_ERROR)).decode("utf-8", "replace")
        moved = response.headers.get("location", "")
        if response.status in range(300, 400) and moved:
            problem = f"{self.endpoint} redirects to {moved}"
            raise ProviderError(problem, status=response.status, reason=Reason.MOVED)
        refusal = self._without_keys(as_error(classify(text or response.reason or "", status=response.status)))
        refusal.after = _retry_after(response.headers.get("retry-after", "")) or refusal.after
        soon = refusal.after is None or refusal.after <= SOON
        if soon and response.status in WORTH_RETRYING and type(refusal) in (ProviderError, RateLimited):
            raise _Again(refusal)
        raise refusal

    def _unreached(self, error: BaseException) -> ProviderError:
        why, problem = _why_unreached(error), f"{self.endpoint} cannot be reached: {_words(error)}"
        return self._without_keys(ProviderError(problem, reason=why))

    def _without_keys(self, error: ProviderError) -> ProviderError:
        """Return the error without keys in its text: some servers repeat what they were sent."""
        text = str(error)
        for secret in (self._at.key, *(value for _, value in self._at.headers)):
            if len(secret) >= SHORTEST_SECRET:
                text = text.replace(secret, HIDDEN)
        error.args = (text,)
        return error

    async def close(self) -> None:
        """Close its connections. A second call does nothing."""
        for task in [*self._asking.values()]:
            task.cancel()
        await self._connections.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _keep(figures: dict[str, int | None], model: str, tokens: int | None) -> None:
    """Remember a figure; the oldest one is dropped if there are too many."""
    while len(figures) >= MOST_MODELS:
        figures.pop(next(iter(figures)))
    figures[model] = tokens


# --- connections -----------------------------------------------------------------------------------


class Connections:
    """Connections to one server: one pool per event loop, closed at the latest with the loop.

    A `resolver` looks up the host name for every connection; by default the system does.
    """

    def __init__(self, url: str, timeout: aiohttp.ClientTimeout, resolver: AbstractResolver | None = None) -> None:
        self._resolver = resolver
        self._url = url
        self._timeout = timeout
        self._closers: dict[asyncio.AbstractEventLoop, AsyncGenerator[aiohttp.ClientSession, None]] = {}
        self._open: dict[asyncio.AbstractEventLoop, aiohttp.ClientSession] = {}

    async def here(self) -> aiohttp.ClientSession:
        """Return the pool of the running event loop."""
        loop = asyncio.get_running_loop()
        pool = self._open.get(loop)
        if pool is not None and not pool.closed:
            return pool
        for old in [old for old in self._open if old.is_closed()]:
            del self._open[old], self._closers[old]
        self._closers[loop] = self._until_the_loop_ends()
        self._open[loop] = await anext(self._closers[loop])
        return self._open[loop]

    async def close(self) -> None:
        """Close the pool of the running event loop. A second call does nothing."""
        loop = asyncio.get_running_loop()
        closer = self._closers.pop(loop, None)
        self._open.pop(loop, None)
        if closer is not None:
            await closer.aclose()

    async def _until_the_loop_ends(self) -> AsyncGenerator[aiohttp.ClientSession, None]:
        """Yield a pool. An event loop that ends closes its open generators, and so this pool."""
        cached = self._resolver is None
        connector = aiohttp.TCPConnector(limit=0, use_dns_cache=cached, ttl_dns_cache=300, resolver=self._resolver)
        session = aiohttp.ClientSession(connector=connector, timeout=self._timeout, proxy=_proxy_for(self._url))
        try:
            yield session
        finally:
            await session.close()


def _proxy_for(url: str) -> str | None:
    address = urlsplit(url)
    proxy = getproxies().get(address.scheme)
    if not proxy or urlsplit(proxy).scheme not in ("http", "https") or proxy_bypass(address.netloc):
        return None
    return proxy


def _why_unreached(error: BaseException) -> Reason:
    """Return what went wrong with a connection."""
    match error:
        case aiohttp.ClientConnectorDNSError():
            return Reason.NO_NAME
        case aiohttp.ClientSSLError() | aiohttp.ClientConnectorCertificateError() | ssl.SSLError():
            return Reason.TLS
        case TimeoutError():
            return Reason.SLOW
        case aiohttp.ClientConnectorError():
            return Reason.CLOSED
        case _:
            return Reason.LOST


def _retry_after(header: str) -> float | None:
    """Return the seconds of a Retry-After header, which may be a date."""
    if header.replace(".", "", 1).isdecimal() and len(header) < LONGEST_FIGURE:
        return float(header)
    try:
        return max(0.0, (parsedate_to_datetime(header) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):  # not a date, or a date without a time zone
        return None


def _words(error: BaseException) -> str:
    return str(error) or type(error).__name__

"""Connections to upstreams: forwarded requests and their answers, and model clients for calls of our own.

Whatever an upstream sends becomes a clean answer or one error that names it. Follows no redirect, keeps no cookie,
buffers no chunk, and repeats a request only if a kept connection had died before it. It does not look into bodies.
"""

import asyncio
import io
import os
import re
from collections import Counter, OrderedDict
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field, replace

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from everlong.errors import ProviderError, Refused
from everlong.gateway.clients import Client, without_key
from everlong.gateway.request import ModelRequest
from everlong.gateway.surfaces import FORMATS
from everlong.gateway.upstreams.headers import Headers, headers_for, headers_from, key_header_for, stream_framing
from everlong.gateway.upstreams.routing import USUAL_BASE, Upstream
from everlong.llm import Connections, Endpoint, HttpModel, UnreadableBody, Way, encoding_of, pieces_of
from everlong.wire import SSE, Framing

__all__ = ["UpstreamConnections", "UpstreamModels", "UpstreamRequest", "UpstreamResponse"]

TARGET = re.compile(r"/[!\"$-~]*")  # no space, no control character, and nothing that ends it early
LONGEST_HEADER = 64 * 1024  # bytes of one line of a response's head
LARGEST_HEAD = 256 * 1024  # bytes of all headers of a response
LARGEST_UNPACKED = 64 * 1024 * 1024  # bytes of an answer that its upstream packed, though nobody asked for it
#: Answers that have no body, whatever their upstream sends after the head.
EMPTY = frozenset({204, 205, 304})
LARGE = 1024 * 1024  # bytes; a larger body is written in pieces, so that others get their turn
REPEATED_BY_POOL = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"})


#: What went wrong, in our own words; the first that fits counts.
REASONS: tuple[tuple[type[BaseException], str], ...] = (
    (aiohttp.ConnectionTimeoutError, "no connection in time"),
    (TimeoutError, "no answer in time"),
    (aiohttp.ClientConnectorDNSError, "its name cannot be resolved"),
    (aiohttp.ClientConnectorCertificateError, "its certificate is not trusted"),
    (aiohttp.ClientSSLError, "no secure connection"),
    (aiohttp.ClientConnectorError, "no connection"),
    (aiohttp.ServerDisconnectedError, "the connection was closed"),
    (aiohttp.ClientOSError, "the connection was closed"),
    (ConnectionError, "the connection was closed"),
    (aiohttp.ClientPayloadError, "the answer is incomplete"),
)


@dataclass(frozen=True, slots=True)
class UpstreamRequest:
    """A request to forward. `path` is below `base` at the upstream and begins with a slash; both it and `query` are
    written as in a request line."""

    method: str
    path: str
    query: str = ""
    headers: Headers = ()
    body: bytes = field(default=b"", repr=False)
    base: str = USUAL_BASE


@dataclass(slots=True)
class _Attempt:
    """One attempt: whether its connection had served before."""

    reused: bool = False


class UpstreamResponse:
    """An upstream's answer whose head has come. Read it with `chunks` or `whole`, or drop it with `close`."""

    def __init__(self, response: aiohttp.ClientResponse, upstream: str) -> None:
        self._response = response
        self._upstream = upstream
        self.status = response.status
        #: Whether it is one of those that have no body.
        self.empty = response.status in EMPTY
        #: Fit to be forwarded; the gateway sets the length itself.
        self.headers: list[tuple[bytes, bytes]] = headers_from(response.raw_headers)
        #: Whether it says that it is a stream.
        self.streamed = self.framing() is not None

    def framing(self, expected: Framing = SSE) -> Framing | None:
        """Return how its stream is written, given what was asked for; None if it is no stream."""
        return None if self.empty else stream_framing(self._response.raw_headers, expected)

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the bytes as they come. Raises ProviderError if they break off. Leaving early cancels it."""
        if self.empty:
            self.close()
            return
        whole = False
        try:
            async with aclosing(pieces_of(self._response, most=LARGEST_UNPACKED)) as pieces:
                async for piece in pieces:
                    yield piece
            whole = True
        except (aiohttp.ClientError, OSError) as error:
            raise _problem(self._upstream, error, "broke off") from error
        finally:
            if not whole:
                self.close()

    async def whole(self, most: int) -> bytes:
        """Return all of it. Raises ProviderError if it is longer than `most` bytes or breaks off."""
        parts, size = [], 0
        async with aclosing(self.chunks()) as chunks:
            async for chunk in chunks:
                parts.append(chunk)
                size += len(chunk)
                if size > most:
                    raise ProviderError(f"the answer of {self._upstream} has more than {most:,} bytes", status=502)
        return b"".join(parts)

    def close(self) -> None:
        """Drop the connection at once, so that the upstream stops; after a whole answer this does nothing."""
        self._response.close()


class UpstreamConnections:
    """Forwards requests. `connect` and `silence` are seconds: until a connection is made, and between two bytes."""

    def __init__(self, *, connect: float = 10.0, silence: float = 300.0) -> None:
        self._timeout = aiohttp.ClientTimeout(total=None, sock_connect=connect, sock_read=silence)
        self._pools: dict[str, Connections] = {}

    async def send(self, to: Upstream, client: Client, sent: UpstreamRequest) -> UpstreamResponse:
        """Return the answer, whatever its status, as soon as its head has come.

        Raises ProviderError if there is none, with the status for the client; Refused for a request that cannot be
        written as HTTP.
        """
        if to.endpoint.key or not client.key:  # the client's own is for an upstream without one
            sent = replace(sent, query=without_key(sent.query))
        address = to.address(sent.base) + _target(sent)
        headers = headers_for(to, client, sent.headers, sent.base)
        name = to.name
        try:
            response = await self._answer(to.endpoint.name, address, sent, headers)
        except aiohttp.ClientResponseError as error:
            raise ProviderError(f"{name} answers with something that is not HTTP", status=502) from error
        except (aiohttp.ClientError, OSError) as error:
            raise _problem(name, error, "cannot be reached") from error
        problem = _unfit(response)
        if problem:
            response.close()
            raise ProviderError(f"{name} {problem}", status=502)
        return UpstreamResponse(response, name)

    async def close(self) -> None:
        """Close all connections; a second time does nothing."""
        pools, self._pools = self._pools, {}
        for pool in pools.values():
            await pool.close()

    async def _answer(
        self, base: str, address: str, sent: UpstreamRequest, headers: CIMultiDict[str]
    ) -> aiohttp.ClientResponse:
        """The response; requested again if the kept connection turned out dead before a byte came back."""
        attempt = _Attempt()
        try:
            return await self._once(base, address, sent, headers, attempt)
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError, aiohttp.ClientConnectionResetError) as error:
            if not attempt.reused or _came_back(error) or sent.method in REPEATED_BY_POOL:
                raise
        return await self._once(base, address, sent, headers, _Attempt())

    async def _once(
        self, base: str, address: str, sent: UpstreamRequest, headers: CIMultiDict[str], attempt: _Attempt
    ) -> aiohttp.ClientResponse:
        pool = self._pools.get(base)
        if pool is None:
            pool = self._pools[base] = Connections(base, self._timeout)
        session = await pool.here()
        if REUSE not in session.trace_configs:
            session.trace_configs.append(REUSE)
        try:
            return await session.request(
                sent.method,
                URL(address, encoded=True),
                data=(io.BytesIO(sent.body) if len(sent.body) > LARGE else sent.body) if sent.body else None,
                headers=headers,
                skip_auto_headers=("accept", "content-type", "user-agent"),
                allow_redirects=False,
                auto_decompress=False,
                max_line_size=LONGEST_HEADER,
                max_field_size=LONGEST_HEADER,
                trace_request_ctx=attempt,
            )
        finally:
            # Before anything else runs: what one client's answer set must not go out with another's request.
            session.cookie_jar.clear()


def _unfit(response: aiohttp.ClientResponse) -> str:
    """Return what is wrong with the head of an answer; "" if it can be forwarded."""
    status = response.status
    if not 200 <= status <= 599:
        return f"answers with status {status}, which is no status of an answer"
    if 300 <= status < 400 and status != 304:
        return f"redirects (status {status}); redirects are not followed"
    if sum(len(name) + len(value) for name, value in response.raw_headers) > LARGEST_HEAD:
        return f"sends more than {LARGEST_HEAD:,} bytes of headers"
    try:
        encoding_of(response)
    except UnreadableBody as error:
        return f"cannot be read: {error}"
    return ""


def _target(sent: UpstreamRequest) -> str:
    """Path and query; nothing in them may lead out of the upstream's address or its request line."""
    target = f"{sent.path}?{sent.query}" if sent.query else sent.path
    if not TARGET.fullmatch(target):
        raise Refused("the path holds characters that are not allowed in a path", status=400, kind="invalid_path")
    return target


def _came_back(error: BaseException) -> bool:
    """Whether part of an answer was there when the connection was lost."""
    return isinstance(error, aiohttp.ServerDisconnectedError) and not isinstance(error.message, str)


def _problem(upstream: str, error: BaseException, what: str) -> ProviderError:
    """The error in one line, in our own words only: an error's text may hold addresses and keys."""
    status = 504 if isinstance(error, TimeoutError) else 502
    return ProviderError(f"{upstream} {what}: {_reason(error)}", status=status)


def _reason(error: BaseException) -> str:
    if isinstance(error, UnreadableBody):
        return str(error)
    if type(error) is aiohttp.ClientConnectorError and (error.errno or 0) > 0:
        return os.strerror(error.errno or 0).lower()
    return next((words for kind, words in REASONS if isinstance(error, kind)), type(error).__name__)


async def _note_reuse(_: object, context: object, __: object) -> None:
    attempt = getattr(context, "trace_request_ctx", None)
    if isinstance(attempt, _Attempt):
        attempt.reused = True


def _reuse_trace() -> aiohttp.TraceConfig:
    watch = aiohttp.TraceConfig()
    watch.on_connection_reuseconn.append(_note_reuse)
    watch.freeze()
    return watch


#: Notes that the pool took a connection it had kept.
REUSE = _reuse_trace()


MAX_MODELS = 128
#: The part of a query that says which version of an API is asked. Others may hold keys.
VERSION = "api-version="
STREAM_OPTIONS = "stream_options"
LEAST_GIVEN = 4_096  # tokens that a request asks for if nobody says what it would get


class UpstreamModels:
    """Clients for the gateway's own calls: one for each upstream, format and key; the one used longest ago is closed.

    They ask for windows, and write summaries with the client's key.
    """

    def __init__(self) -> None:
        self._models: OrderedDict[Endpoint, HttpModel] = OrderedDict()
        self._waited_for: Counter[HttpModel] = Counter()
        self._closing: set[asyncio.Task[None]] = set()

    def of(self, upstream: Upstream, client: Client, fmt: str, base: str = "", way: Way | None = None) -> HttpModel:
        """Return the model client for calls on behalf of a client; `base` and `way` if they are not the format's."""
        key = upstream.endpoint.key or client.key
        url = upstream.address(base if way or base else FORMATS[fmt].api.base)
        endpoint = replace(upstream.endpoint, url=url, fmt=fmt, key=key, way=way)
        found = self._models.get(endpoint)
        if found is None:
            found = self._models[endpoint] = HttpModel(endpoint, loads=True)
        self._models.move_to_end(endpoint)
        self._make_room()
        return found

    def beside(
        self, request: ModelRequest, model: str, *, upstream: Upstream, client: Client, headers: Headers, query: str
    ) -> HttpModel:
        """Return the model client for calls that go as a client's request went, and so work wherever it did."""
        way = _way_of(request, model, upstream=upstream, client=client, headers=headers, query=query)
        return self.of(upstream, client, request.fmt, request.address.surface.base, way)

    async def served(self, upstream: Upstream, client: Client, fmt: str, model: str) -> int | None:
        """Return the window that the upstream itself reports; it is requested once."""
        model_client = self.of(upstream, client, fmt)
        self._waited_for[model_client] += 1
        try:
            return await model_client.served_window(model)
        finally:
            self._waited_for[model_client] -= 1
            self._waited_for += Counter()  # clients that nobody waits for are forgotten

    async def given(self, upstream: Upstream, client: Client, request: ModelRequest, *, raised: int = 0) -> int:
        """Return the window for a request that may set it: what it asks for, else what it gets without asking.

        It is raised up to `raised`, and is never more than the model takes.
        """
        fmt, model = request.fmt, request.model
        base = request.window or await self.served(upstream, client, fmt, model) or LEAST_GIVEN
        largest = await self.of(upstream, client, fmt).largest_window(model)
        return base if largest is None else min(max(base, raised), largest)

    async def close(self) -> None:
        """Let go of all connections."""
        models, self._models = self._models, OrderedDict()
        for model in models.values():
            await model.close()
        for task in list(self._closing):
            await task

    def _make_room(self) -> None:
        if len(self._models) <= MAX_MODELS:
            return
        for endpoint, model in list(self._models.items())[: len(self._models) - MAX_MODELS]:
            if model not in self._waited_for:  # closed, it would leave a request without an answer
                del self._models[endpoint]
                self._close(model)

    def _close(self, model: HttpModel) -> None:
        task = asyncio.get_running_loop().create_task(model.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


def _way_of(
    request: ModelRequest, model: str, *, upstream: Upstream, client: Client, headers: Headers, query: str
) -> Way | None:
    """The way of a request for a model that its upstream may call otherwise; None if it is the usual one.

    A cloud has a format below a path with the model's name in it, wants the key in another header, and knows a model
    by the name that its customer chose.
    """
    surface, api = request.address.surface, request.format.api
    if not surface.cloud:
        return None if request.model == model else Way(model=model, sent=request.model)
    named, sign = {"model"} if surface.names_model else set(), surface.sign
    # If the path asks for the stream, or the client asked for none, no field does.
    quiet = {api.stream, STREAM_OPTIONS} if surface.stream is not None or not request.stream else set()
    return Way(
        model=model,
        sent=request.model,
        path=request.address.any_models,
        query="&".join(part for part in query.split("&") if part.startswith(VERSION)),
        fields=((sign, bytes(request.fields[sign]).decode()),) if sign in request.fields else (),
        without=frozenset(named | quiet),
        key_header=key_header_for(upstream, client, headers, surface.base),
    )

"""Connections to upstreams: forwarded requests and their answers, and model clients for our own calls.

Whatever an upstream sends becomes a clean answer or one error that names the upstream. Redirects are not followed,
cookies are not kept, chunks are not buffered. A request is repeated only if a reused connection was already dead, or at
another address of the same upstream. Bodies are not read.
"""

import asyncio
import io
import os
import re
from collections import Counter, OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from everlong.engine import Model
from everlong.errors import ProviderError, Refused
from everlong.gateway.clients import Client, without_key
from everlong.gateway.config import NO_LIMITS
from everlong.gateway.request import ModelRequest
from everlong.gateway.surfaces import FORMATS
from everlong.gateway.traces import NO_TRACES, Traces
from everlong.gateway.upstreams.circuits import Circuits
from everlong.gateway.upstreams.failover import NoAnswer, Tries
from everlong.gateway.upstreams.headers import (
    Headers,
    headers_for,
    headers_from,
    key_header_for,
    stream_framing,
    wait_of,
    without_allowances,
)
from everlong.gateway.upstreams.routing import USUAL_BASE, Upstream
from everlong.llm import Connections, Endpoint, HttpModel, UnreadableBody, Way, encoding_of, pieces_of
from everlong.wire import SSE, Framing

__all__ = ["UpstreamConnections", "UpstreamModels", "UpstreamRequest", "UpstreamResponse"]

TARGET = re.compile(r"/[!\"$-~]*")  # no space, no control character, and nothing that ends the target early
LONGEST_HEADER = 64 * 1024  # bytes of one line of a response's head
LARGEST_HEAD = 256 * 1024  # bytes of all headers of a response
LARGEST_UNPACKED = 64 * 1024 * 1024  # bytes of an answer that was compressed although nobody asked for it
#: Statuses without a body, whatever the upstream sends after the head.
EMPTY = frozenset({204, 205, 304})
LARGE = 1024 * 1024  # bytes; a larger body is written in pieces, so that others get their turn
REPEATED_BY_POOL = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"})


#: What went wrong, in our own words; the first match counts.
REASONS: tuple[tuple[type[BaseException], str], ...] = (
    (aiohttp.ConnectionTimeoutError, "the connection timed out"),
    (TimeoutError, "the answer timed out"),
    (aiohttp.ClientConnectorDNSError, "its name cannot be resolved"),
    (aiohttp.ClientConnectorCertificateError, "its certificate is not trusted"),
    (aiohttp.ClientSSLError, "the secure connection failed"),
    (aiohttp.ClientConnectorError, "no connection"),
    (aiohttp.ServerDisconnectedError, "the connection was closed"),
    (aiohttp.ClientOSError, "the connection was closed"),
    (ConnectionError, "the connection was closed"),
    (aiohttp.ClientPayloadError, "the answer is incomplete"),
)


@dataclass(frozen=True, slots=True)
class UpstreamRequest:
    """A request to forward. `path` is below `base` at the upstream and begins with a slash.

    Both `path` and `query` are written as in a request line.
    """

    method: str
    path: str
    query: str = ""
    headers: Headers = ()
    body: bytes = field(default=b"", repr=False)
    base: str = USUAL_BASE


@dataclass(slots=True)
class _Attempt:
    """One attempt: whether its connection had been used before."""

    reused: bool = False


class UpstreamResponse:
    """An upstream's answer whose head has arrived. Read it with `chunks` or `whole`, or drop it with `close`."""

    def __init__(self, response: aiohttp.ClientResponse, upstream: str) -> None:
        self._response = response
        self._upstream = upstream
        self.status = response.status
        #: Whether its status has no body.
        self.empty = response.status in EMPTY
        #: The headers that may be forwarded; the gateway sets the length itself.
        self.headers: list[tuple[bytes, bytes]] = headers_from(response.raw_headers)
        #: Whether it says that it is a stream.
        self.streamed = self.framing() is not None
        #: Seconds that it asks the client to wait; None if it does not say.
        self.wait = wait_of(response.raw_headers)

    def framing(self, expected: Framing = SSE) -> Framing | None:
        """Return the framing of its stream, given the expected one; None if it is not a stream."""
        return None if self.empty else stream_framing(self._response.raw_headers, expected)

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the bytes as they arrive. Raises ProviderError if they break off. Leaving early cancels the request."""
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
        """Return the whole body. Raises ProviderError if it is longer than `most` bytes or breaks off."""
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
    """Forwards requests.

    `connect` and `silence` are the longest times for connecting and between two bytes, in seconds.

    With `trace_upstream`, upstreams get the trace context.
    """

    def __init__(
        self,
        *,
        connect: float = 10.0,
        silence: float = 300.0,
        circuits: Circuits | None = None,
        traces: Traces = NO_TRACES,
        trace_upstream: bool = False,
    ) -> None:
        self._timeout = aiohttp.ClientTimeout(total=None, sock_connect=connect, sock_read=silence)
        self._pools: dict[str, Connections] = {}
        self.circuits = circuits or Circuits()
        self._traces = traces
        self._trace_upstream = trace_upstream

    def tries(self, sites: Sequence[Upstream]) -> Tries:
        """Return the attempts at an upstream's addresses, the best address first."""
        return Tries.among(self.circuits, sites)

    async def send(
        self,
        to: Upstream,
        client: Client,
        sent: UpstreamRequest,
        tries: Tries | None = None,
        *,
        rewrite: Callable[[], Awaitable[bytes]] | None = None,
    ) -> UpstreamResponse:
        """Return the answer, whatever its status, as soon as its head has arrived.

        If an address fails, the next one of `tries` is asked; without `tries`, `to` is the only one. `rewrite` returns
        the body for another address, where it may differ. Raises ProviderError, with the status for the client, if
        there is no answer, and Refused for a request that cannot be written as HTTP.
        """
        tries = tries or self.tries((to,))
        held: UpstreamResponse | None = None
        chosen = False
        try:
            while not chosen:
                if tries.begin() and rewrite is not None:
                    sent = replace(sent, body=await rewrite())
                answer = await self._ask(tries, client, sent)
                if answer is not None:
                    if held is not None:
                        held.close()
                    held, at = answer, tries.site
                    chosen = tries.answered(answer.status, answer.wait)
        except ProviderError:
            if held is None:
                raise
            chosen, tries.site = True, at  # an earlier address's refusal says more than no answer
        finally:
            if not chosen:
                tries.abandon()
                if held is not None:
                    held.close()
        assert held is not None
        return held

    async def _ask(self, tries: Tries, client: Client, sent: UpstreamRequest) -> UpstreamResponse | None:
        """Return the answer of an address; None if it gave none and another one can be asked."""
        try:
            return await self._send_to(tries.site, client, sent)
        except NoAnswer as error:
            if not tries.failed(error):
                raise
            return None

    async def _send_to(self, to: Upstream, client: Client, sent: UpstreamRequest) -> UpstreamResponse:
        """The answer of one address."""
        if to.endpoint.key or not client.key:  # the client's own key is only for an upstream without one
            sent = replace(sent, query=without_key(sent.query))
        address = to.address(sent.base) + _target(sent)
        headers = headers_for(to, client, sent.headers, sent.base)
        name = to.name
        try:
            with self._traces.upstream(name, to.place, headers if self._trace_upstream else None):
                response = await self._answer(to.endpoint.name, address, sent, headers)
        except aiohttp.ClientResponseError as error:
            problem = f"{name} does not answer with HTTP"
            raise NoAnswer(problem, status=502, reached=True, elsewhere=False) from error
        except (aiohttp.ClientError, OSError) as error:
            raise _no_answer(name, error) from error
        problem = _unfit(response)
        if problem:
            response.close()
            raise NoAnswer(f"{name} {problem}", status=502, reached=True, elsewhere=False)
        answer = UpstreamResponse(response, name)
        if client.limits != NO_LIMITS:  # it sees its own limits, not those that all clients share
            answer.headers = without_allowances(answer.headers)
        return answer

    async def close(self) -> None:
        """Close all connections. A second call does nothing."""
        pools, self._pools = self._pools, {}
        for pool in pools.values():
            await pool.close()

    async def _answer(
        self, base: str, address: str, sent: UpstreamRequest, headers: CIMultiDict[str]
    ) -> aiohttp.ClientResponse:
        """Return the response; the request is sent again if a reused connection was dead before a byte came back."""
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
            # Before anything else runs: cookies from one client's answer must not go out with another's request.
            session.cookie_jar.clear()


def _unfit(response: aiohttp.ClientResponse) -> str:
    """Return what is wrong with the head of an answer; "" if the answer can be forwarded."""
    status = response.status
    if not 200 <= status <= 599:
        return f"answers with status {status}, which is not a valid status"
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
    """Path and query; nothing in them may lead away from the upstream's address or end the request line."""
    target = f"{sent.path}?{sent.query}" if sent.query else sent.path
    if not TARGET.fullmatch(target):
        raise Refused("the path contains characters that are not allowed", status=400, kind="invalid_path")
    return target


def _came_back(error: BaseException) -> bool:
    """Whether part of an answer had arrived when the connection was lost."""
    return isinstance(error, aiohttp.ServerDisconnectedError) and not isinstance(error.message, str)


def _problem(upstream: str, error: BaseException, what: str) -> ProviderError:
    """The error as one line, only in our own words: an error's text may contain addresses and keys."""
    status = 504 if isinstance(error, TimeoutError) else 502
    return ProviderError(f"{upstream} {what}: {_reason(error)}", status=status)


def _no_answer(upstream: str, error: BaseException) -> NoAnswer:
    """Return the error for an address that gave no answer. It says whether another address may be asked.

    Not after a silence, because the model may have worked and its answer may be charged. A connection that was closed
    before a byte came back may belong to a server that died, so another address may be asked.
    """
    reached = not isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError)
    silent = isinstance(error, TimeoutError) and reached
    return NoAnswer(
        f"{upstream} cannot be reached: {_reason(error)}",
        status=504 if isinstance(error, TimeoutError) else 502,
        reached=reached,
        elsewhere=not silent and not _came_back(error),
    )


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


#: Records that the pool reused a connection.
REUSE = _reuse_trace()


MAX_MODELS = 128
#: The part of a query with the version of an API. Other parts may contain keys.
VERSION = "api-version="
STREAM_OPTIONS = "stream_options"
LEAST_GIVEN = 4_096  # tokens of the window to assume if nobody reports one


class UpstreamModels:
    """Clients for the gateway's own calls: one per upstream, format and key; the least recently used is closed.

    They ask for windows, and write summaries with the client's key.
    """

    def __init__(self) -> None:
        self._models: OrderedDict[Endpoint, HttpModel] = OrderedDict()
        #: Endpoints that were made before, because most requests take the same few ways.
        self._known: dict[tuple[str, str, str, str, Way | None], tuple[Upstream, Endpoint]] = {}
        self._waited_for: Counter[HttpModel] = Counter()
        self._closing: set[asyncio.Task[None]] = set()

    def of(self, upstream: Upstream, client: Client, fmt: str, base: str = "", way: Way | None = None) -> HttpModel:
        """Return the model client for calls on behalf of a client; `base` and `way` if they are not the format's."""
        place = (upstream.name, client.key, fmt, base, way)
        known = self._known.get(place)
        if known is not None and known[0] is upstream and known[1] in self._models:
            self._models.move_to_end(known[1])
            return self._models[known[1]]
        key = upstream.endpoint.key or client.key
        url = upstream.address(base if way or base else FORMATS[fmt].api.base)
        endpoint = replace(upstream.endpoint, url=url, fmt=fmt, key=key, way=way)
        found = self.at(endpoint)
        if len(self._known) >= MAX_MODELS:
            self._known.clear()
        self._known[place] = (upstream, endpoint)
        return found

    def beside(
        self, request: ModelRequest, model: str, *, upstream: Upstream, client: Client, headers: Headers, query: str
    ) -> HttpModel:
        """Return the model client for calls on the path of a client's request, so that they work wherever it works."""
        way = _way_of(request, model, upstream=upstream, client=client, headers=headers, query=query)
        return self.of(upstream, client, request.fmt, request.address.surface.base, way)

    def at(self, endpoint: Endpoint) -> HttpModel:
        """Return the model client for an endpoint."""
        found = self._models.get(endpoint)
        if found is None:
            found = self._models[endpoint] = HttpModel(endpoint, loads=True)
        self._models.move_to_end(endpoint)
        self._make_room()
        return found

    def endpoint_of(self, model: Model) -> Endpoint | None:
        """Return the endpoint of one of our model clients; None if it is not ours."""
        return next((endpoint for endpoint, one in list(self._models.items()) if one is model), None)

    async def served(self, upstream: Upstream, client: Client, fmt: str, model: str) -> int | None:
        """Return the window that the upstream itself reports; it is requested only once."""
        model_client = self.of(upstream, client, fmt)
        self._waited_for[model_client] += 1
        try:
            return await model_client.served_window(model)
        finally:
            self._waited_for[model_client] -= 1
            if not self._waited_for[model_client]:  # forget clients that nobody waits for
                del self._waited_for[model_client]

    async def given(self, upstream: Upstream, client: Client, request: ModelRequest, *, raised: int = 0) -> int:
        """Return the window for a request that may set it: the one it asks for, else the one it gets without asking.

        If the model's largest window is known, the window is raised to `raised` if that is larger, but never above the
        largest.
        """
        fmt, model = request.fmt, request.model
        base = request.window or await self.served(upstream, client, fmt, model) or LEAST_GIVEN
        largest = await self.of(upstream, client, fmt).largest_window(model)
        return base if largest is None else min(max(base, raised), largest)

    async def close(self) -> None:
        """Release all connections."""
        models, self._models = self._models, OrderedDict()
        for model in models.values():
            await model.close()
        for task in list(self._closing):
            await task

    def _make_room(self) -> None:
        if len(self._models) <= MAX_MODELS:
            return
        for endpoint, model in list(self._models.items())[: len(self._models) - MAX_MODELS]:
            if model not in self._waited_for:  # closing it would leave a request without an answer
                del self._models[endpoint]
                self._close(model)

    def _close(self, model: HttpModel) -> None:
        task = asyncio.get_running_loop().create_task(model.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


def _way_of(
    request: ModelRequest, model: str, *, upstream: Upstream, client: Client, headers: Headers, query: str
) -> Way | None:
    """Return how to call a model on the path of a request; None if that is the usual way.

    A cloud has a format below a path with the model's name in it, expects the key in another header, and knows a model
    by the name that its customer chose.
    """
    surface, api = request.address.surface, request.format.api
    if not surface.cloud:
        return None if request.model == model else Way(model=model, sent=request.model)
    named, sign = {"model"} if surface.names_model else set(), surface.sign
    # If the path decides about streaming, or the client asked for no stream, the fields for it are left out.
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

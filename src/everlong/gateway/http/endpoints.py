"""The endpoints of models: their answers, and the tokens of a request.

Every endpoint identifies the client, reads the request, reports errors in the client's format, and reports the end. The
exchange decides about a model's request; `families` has the endpoints that only forward.
"""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from time import perf_counter
from typing import Any, TypeAlias
from uuid import uuid4

from everlong.engine import Call, calibration_of, counter_for
from everlong.errors import EverlongError, ProviderError, Refused
from everlong.gateway.chains.watch import Watch
from everlong.gateway.clients import Client, is_signed, request_mode
from everlong.gateway.config import GatewayConfig
from everlong.gateway.exchange.answer import forward_bytes
from everlong.gateway.exchange.exchange import Exchange
from everlong.gateway.exchange.response import GONE, Headers, ResponseWriter, Send, status_of, until_disconnect
from everlong.gateway.keys.accounts import SPENT
from everlong.gateway.keys.limits import BYTES_PER_TOKEN
from everlong.gateway.operations.reports import Report, log_request
from everlong.gateway.operations.services import HEAVY, Services
from everlong.gateway.request import ModelRequest, decoded, encoded, parse_request
from everlong.gateway.surfaces import DEFAULT_FORMAT, FORMATS, Address, checked_path
from everlong.gateway.upstreams.connections import UpstreamRequest, UpstreamResponse
from everlong.gateway.upstreams.routing import Routes, Upstream
from everlong.wire import SSE, Format, Framing

__all__ = [
    "Endpoint",
    "HttpRequest",
    "ModelEndpoint",
    "Scope",
    "TokenCountEndpoint",
    "format_of",
    "raw_path",
    "read_body",
    "refuse_compressed",
]

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]

log = logging.getLogger("everlong.gateway")

FOREIGN = "the gateway does not know the format of the body"
SIGNED = "the client signed the request, so it cannot be changed"
BAD_REQUEST, TOO_MANY = 400, 429
CLIENT_GONE = 499  # the usual status for a client that disconnected
FAILED = 500
BROKE_OFF = 502
UNAVAILABLE = 503
THREAD_HEADER = b"x-everlong-thread"
ENCODING_HEADER = b"content-encoding"
ONE_MODEL = "/models/"
LONGEST_SHOWN = 200  # characters of a path and of a model's name in reports
LONGEST_MODEL = 1_000  # characters of a model's name; facts about the model are stored under it
LONGEST_NAME = 200  # characters of a conversation's name
LARGEST_COUNT = 1024 * 1024  # bytes of an answer with a count
LARGEST_LIST = 16 * 1024 * 1024  # bytes of a list of models
LONGEST_START = 1_024  # bytes at the beginning of a body


# --- what every endpoint does ----------------------------------------------------------------------


@dataclass(slots=True, kw_only=True)
class HttpRequest:
    """One request at an endpoint, and its response."""

    scope: Scope
    receive: Receive
    writer: ResponseWriter
    format: Format
    client: Client
    report: Report
    started: float

    @property
    def headers(self) -> Headers:
        """The client's headers, unchanged."""
        headers: Headers = self.scope["headers"]
        return headers

    @property
    def query(self) -> str:
        """The query string, unchanged."""
        query: bytes = self.scope["query_string"]
        return query.decode("latin-1")

    async def body(self, config: GatewayConfig, most: int | None = None) -> bytes:
        """Return the body, within the limits; `most` is a lower limit than the usual one."""
        largest = min(config.largest_body, most or config.largest_body)
        body = await read_body(self.scope, self.receive, most=largest, seconds=config.body_timeout)
        self.report.bytes_in = len(body)
        return body

    def note_upstream(self, upstream: Upstream, model: str) -> None:
        """Report the upstream and the model that answer."""
        self.report.upstream, self.report.model = upstream.name, model[:LONGEST_SHOWN]

    def note_added_time(self) -> None:
        """Count the time so far as added by the gateway; from here on it is the upstream's."""
        self.report.added_ms = (perf_counter() - self.started) * 1000

    async def send_json(self, status: int, body: bytes) -> None:
        """Send one of our own answers."""
        self.note_added_time()
        headers = [(b"content-type", b"application/json"), *self.report.headers()]
        await self.writer.send_whole(status, headers, body)


class Endpoint(ABC):
    """An endpoint as an ASGI application. It never raises for errors of clients or upstreams; `answer` may."""

    def __init__(self, services: Services) -> None:
        self.services = services

    @abstractmethod
    async def answer(self, request: HttpRequest) -> None:
        """Answer one request. Errors that the client must see are raised."""

    def format(self, scope: Scope) -> Format:
        """Return the format for answers to the client."""
        return format_of(scope["headers"])

    def framing(self, scope: Scope) -> Framing:  # noqa: ARG002 - of some paths it is another
        """Return how the client reads streams."""
        return SSE

    @asynccontextmanager
    async def admitted(self, request: HttpRequest, tokens: int = 0, dollars: float = 0.0) -> AsyncIterator[None]:
        """Serve a request within the limits of its key. Raises Refused (429) before that."""
        client = request.client
        admission = self.services.keys.limiter.admit(client.account, client.limits, tokens, dollars)
        try:
            await admission.enter()
        finally:
            headers = request.format.server.allowances(admission.left, datetime.now(UTC))
            request.report.left = [(name.encode(), value.encode()) for name, value in headers]
        request.report.asked = admission.asked
        try:
            yield
        finally:
            admission.leave()

    async def pass_on(
        self, upstream: Upstream, sent: UpstreamRequest, request: HttpRequest, *, anywhere: bool = True
    ) -> None:
        """Forward a request and its answer unchanged, without reading either."""
        request.note_added_time()
        writer = request.writer
        answer = await self.sent(upstream, sent, request, anywhere=anywhere)
        request.report.streamed = answer.streamed
        watch = Watch(self.services.chains, request.client.scope, sent.method, sent.path, sent.body)
        try:
            await forward_bytes(answer, writer, request.report.headers, watch.feed, lambda: watch.end(answer.status))
            await writer.end()
        except ProviderError as error:
            if not writer.begun:
                raise
            # The meaning of the answer is unknown here: the connection breaks as it did there.
            raise ConnectionAbortedError(str(error)) from error
        finally:
            answer.close()

    async def sent(
        self, upstream: Upstream, sent: UpstreamRequest, request: HttpRequest, *, anywhere: bool = True
    ) -> UpstreamResponse:
        """Return the answer to a request that is not a conversation.

        Without `anywhere`, only the first address is asked.
        """
        forwarding = self.services.forwarding
        tries = forwarding.tries(upstream.sites or (upstream,))
        if not anywhere:
            tries = forwarding.tries(tries.left[:1])
        try:
            return await forwarding.send(upstream, request.client, sent, tries)
        finally:
            request.report.note_address(tries)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request and report it."""
        with self.services.metrics.under_way():
            await self._answer(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = perf_counter()
        format_, path = self.format(scope), scope["path"][:LONGEST_SHOWN]
        method = scope["method"]
        report = Report(id=uuid4().hex[:16], time=datetime.now(UTC), method=method, path=path, fmt=format_.name)
        writer = ResponseWriter(send, format_.server.errors, report.early_headers, self.framing(scope))
        with self.services.traces.request(scope["headers"], report):
            await self._answer_reported(scope, receive, writer, report, started)

    async def _answer_reported(
        self, scope: Scope, receive: Receive, writer: ResponseWriter, report: Report, started: float
    ) -> None:
        format_ = self.format(scope)
        client: Client | None = None
        try:
            query = scope["query_string"] if format_.api.key_query else b""
            client = self.services.clients.identify(scope["headers"], query)
            report.client = client.name or client.scope[:8]
            request = HttpRequest(
                scope=scope,
                receive=receive,
                writer=writer,
                format=format_,
                client=client,
                report=report,
                started=started,
            )
            await self.answer(request)
        except EverlongError as error:
            await self._send_error(writer, format_, error, report, started)
        except ConnectionAbortedError as error:  # the upstream broke off, so the answer does too
            report.end_early("upstream", BROKE_OFF, "upstream_broke_off", str(error))
        except ConnectionError:
            report.end_early("client", CLIENT_GONE)
        except asyncio.CancelledError:
            report.end_early("shutdown", UNAVAILABLE)
            raise
        except Exception:  # our own error: the client learns that something failed, even inside a stream
            log.exception("an answer failed")
            await self._send_error(writer, format_, EverlongError(), report, started)
        finally:
            self._report(report, writer, client, started)

    def note_gone(self, request: HttpRequest) -> None:
        """Report a client that disconnected before it had the whole answer."""
        if not request.writer.over:
            request.report.end_early("client", CLIENT_GONE)
            self.services.metrics.gone()

    async def _send_error(
        self, writer: ResponseWriter, format_: Format, error: EverlongError, report: Report, started: float
    ) -> None:
        status, kind, message = status_of(error, format_.server.errors)
        report.end_early("upstream" if isinstance(error, ProviderError) else "gateway", status, kind, message)
        report.added_ms = report.added_ms or (perf_counter() - started) * 1000
        self.services.metrics.refused(kind)
        headers = report.headers()
        after = error.after if isinstance(error, Refused | ProviderError) else None
        if after is not None:
            headers.append((b"retry-after", b"%d" % after))
        if status == TOO_MANY and isinstance(error, Refused) and (after is None or kind == SPENT):
            headers.append((b"x-should-retry", b"false"))  # SDKs would retry within a minute, which does not help
        await writer.send_error(status, kind, message, headers)

    def _report(self, report: Report, writer: ResponseWriter, client: Client | None, started: float) -> None:
        report.status = report.status or writer.status or FAILED
        report.seconds = perf_counter() - started
        report.bytes_out = writer.sent
        self.services.metrics.answered(report)
        if client is not None and client.name and report.asked is not None:
            self.services.keys.note(client.name, report.asked, _model_to_price(report), report.usage)
        self.services.hints.observe_request(report)
        log_request(report)
        if client is not None:
            self.services.recent.add(client.scope, report)


def _model_to_price(report: Report) -> str:
    """Return the model whose cost no engine event reports; "" if there is none."""
    if report.usage is not None:
        return report.model if report.unmanaged else ""
    paid = report.status < BAD_REQUEST or report.ended_by in ("client", "shutdown")
    return report.model if report.upstream and paid else ""


def raw_path(scope: Scope) -> str:
    """Return the path as written in the request, still encoded."""
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    return raw.partition(b"?")[0].decode("latin-1")


def address_of(scope: Scope) -> Address:
    """Return the address that the route found in the path."""
    address: Address = scope["address"]
    return address


def format_of(headers: Headers) -> Format:
    """Return the format that a client speaks, by a header that only this kind of client sends."""
    names = {name.lower() for name, _ in headers} - {b""}
    return next((each for each in FORMATS.values() if each.server.client_header in names), DEFAULT_FORMAT)


async def read_body(scope: Scope, receive: Receive, *, most: int, seconds: float) -> bytes:
    """Return the body of a request. Raises Refused if it is too large or too slow.

    Raises ConnectionError if the client disconnects.
    """
    length = dict(scope["headers"]).get(b"content-length", b"")
    if length.isdigit() and int(length) > most:
        raise _too_large(most)
    parts, size = [], 0
    try:
        async with asyncio.timeout(seconds):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ConnectionResetError("the client disconnected while it sent the request")
                part = message.get("body", b"")
                size += len(part)
                if size > most:
                    raise _too_large(most)
                parts.append(part)
                if not message.get("more_body", False):
                    return parts[0] if len(parts) == 1 else b"".join(parts)
    except TimeoutError:
        raise Refused(f"the request did not arrive within {seconds:g} s", status=408, kind="too_slow") from None


def _too_large(most: int) -> Refused:
    return Refused(f"a request must have at most {most:,} bytes", status=413, kind="too_large")


def refuse_compressed(headers: Headers) -> None:
    """Raise Refused for a compressed body, which could not be read."""
    encodings = [value.strip().lower() for name, value in headers if name.lower() == ENCODING_HEADER]
    if any(encoding not in (b"", b"identity") for encoding in encodings):
        raise Refused(
            "compressed requests are not supported: send the body uncompressed", status=415, kind="compressed_body"
        )


# --- models that answer ----------------------------------------------------------------------------


class ModelEndpoint(Endpoint):
    """Answers at model paths: a request is admitted, read, and run as an exchange."""

    def format(self, scope: Scope) -> Format:
        """Return the format of the path."""
        return address_of(scope).surface.format

    def framing(self, scope: Scope) -> Framing:
        """Return the framing of the format's streams; other answers use the default."""
        surface = address_of(scope).surface
        query: bytes = scope["query_string"]
        if surface.stream is False:
            return SSE
        return surface.framing or surface.format.api.stream_framing(query.decode("latin-1"))

    async def _parsed(self, request: HttpRequest, body: bytes) -> ModelRequest:
        """Return the request in a body; a large one is parsed outside the event loop."""
        address = address_of(request.scope)
        checked_path(address.path)
        if len(body) <= HEAVY:
            return parse_request(address, body)
        async with self.services.turn(len(body)):
            return await asyncio.to_thread(parse_request, address, body)

    async def answer(self, request: HttpRequest) -> None:
        """Run the exchange for as long as the client waits."""
        services, report, headers = self.services, request.report, request.headers
        mode = request_mode(headers, request.client, services.config.engine.mode)
        refuse_compressed(headers)
        body = await request.body(services.config)
        tokens, dollars, early = len(body) // BYTES_PER_TOKEN, 0.0, None
        if request.client.limits.by_dollars:
            early = await self._parsed(request, body)
            dollars = services.keys.price(early.model, tokens, early.max_tokens)
        async with self.admitted(request, tokens, dollars):
            model_request, upstream = _route(services.routes, early or await self._parsed(request, body))
            request.note_upstream(upstream, model_request.model)
            report.mode, report.streamed = mode, model_request.stream
            report.unmanaged = _reason_to_pass(model_request, upstream, headers)
            if report.unmanaged:
                await self._pass(request, model_request, upstream)
                return
            exchange = Exchange(
                services=services,
                client=request.client,
                request=model_request,
                upstream=upstream,
                writer=request.writer,
                headers=headers,
                query=request.query,
                mode=mode,
                name=_conversation_name(headers),
                started=request.started,
                report=report,
            )
            if await until_disconnect(request.receive, exchange.run()) is GONE and not exchange.complete:
                self.note_gone(request)

    async def _pass(self, request: HttpRequest, asked: ModelRequest, upstream: Upstream) -> None:
        """Forward a request that must not be changed."""
        address = asked.address
        sent = UpstreamRequest("POST", address.path, request.query, request.headers, asked.body, address.surface.base)
        anywhere = request.report.unmanaged != SIGNED  # a signature is valid for one host
        if await until_disconnect(request.receive, self.pass_on(upstream, sent, request, anywhere=anywhere)) is GONE:
            self.note_gone(request)


def _reason_to_pass(request: ModelRequest, upstream: Upstream, headers: Headers) -> str:
    """Return why the request must be forwarded unchanged; "" if it may be changed."""
    if request.foreign:
        return FOREIGN
    return SIGNED if is_signed(headers) and not upstream.endpoint.key else ""


def _route(routes: Routes, request: ModelRequest) -> tuple[ModelRequest, Upstream]:
    """Return the upstream of a request, and the request with the upstream's name for the model."""
    surface = request.address.surface
    upstream = routes.choose(request.model, request.fmt, surface.cloud)
    if len(request.model) > LONGEST_MODEL:
        raise Refused(f"a model name has at most {LONGEST_MODEL} characters", status=404, kind="unknown_model")
    name = routes.model_sent(upstream, request.model)
    return (request if name == request.model else request.with_model(name)), upstream


def _conversation_name(headers: Headers) -> str:
    """Return the client's own name for the conversation; "" if it has none."""
    name = next((value for header, value in headers if header.lower() == THREAD_HEADER), b"").decode("latin-1").strip()
    if len(name) > LONGEST_NAME or not name.isprintable():
        raise Refused(
            f"x-everlong-thread must have at most {LONGEST_NAME} printable characters", status=400, kind="bad_header"
        )
    return name


# --- token counts ----------------------------------------------------------------------------------


class TokenCountEndpoint(ModelEndpoint):
    """Counts the tokens of a request without sending it: the format's maker counts, for any other upstream we do."""

    async def answer(self, request: HttpRequest) -> None:
        """Answer with the count."""
        services, report, server = self.services, request.report, request.format.server
        refuse_compressed(request.headers)
        body = await request.body(services.config)
        async with self.admitted(request):
            model_request, upstream = _route(services.routes, await self._parsed(request, body))
            request.note_upstream(upstream, model_request.model)
            if upstream.endpoint.provider != (model_request.address.surface.cloud or server.maker):
                async with services.turn(len(body)):
                    tokens = await asyncio.to_thread(self._count, model_request, upstream)
                await request.send_json(200, encoded(server.counted(tokens)))
                return
            request.note_added_time()
            address = model_request.address
            sent = UpstreamRequest(
                "POST", address.path, request.query, request.headers, model_request.body, address.surface.base
            )
            answer = await self.sent(upstream, sent, request)
            counted = await answer.whole(LARGEST_COUNT)
            await request.writer.send_whole(answer.status, [*answer.headers, *report.headers()], counted)

    def _count(self, request: ModelRequest, upstream: Upstream) -> int:
        """Return our count, corrected by earlier reports of the upstream."""
        document = request.format.read_body(decoded(request.as_read))
        model = self.services.config.deployment(request.model).model
        counter = counter_for(model)
        counted = counter.messages(document.messages) + counter.tools(document.tools)
        call = Call(model=model, endpoint=upstream.endpoint.name)
        return calibration_of(self.services.engine.threads, call, counter).expected(counted)

"""The endpoints that models answer: a request is admitted, read, and run as an exchange."""

import asyncio
from contextlib import aclosing
from typing import cast
from urllib.parse import unquote

from everlong.core import Json, JsonObject
from everlong.engine import Call, calibration_of, counter_for
from everlong.errors import EverlongError, ProviderError, Refused
from everlong.gateway.clients import Client, request_mode
from everlong.gateway.exchange.exchange import Exchange
from everlong.gateway.exchange.response import GONE, Headers, until_disconnect
from everlong.gateway.http.endpoint import CLIENT_GONE, Endpoint, HttpRequest, Scope
from everlong.gateway.operations.limits import BYTES_PER_TOKEN
from everlong.gateway.operations.services import Services
from everlong.gateway.raw_json import decoded, encoded, pieces_of_object
from everlong.gateway.request import DIALECTS, Dialect, ModelRequest, parse_request
from everlong.gateway.upstreams.connections import UpstreamRequest
from everlong.gateway.upstreams.routing import Routes, Upstream, upstream_path
from everlong.wire import FORMATS

__all__ = [
    "ModelEndpoint",
    "ModelListEndpoint",
    "PassThroughEndpoint",
    "TokenCountEndpoint",
    "refuse_compressed",
    "route",
]

THREAD_HEADER = b"x-everlong-thread"
ENCODING_HEADER = b"content-encoding"
LONGEST_MODEL = 1_000  # characters of a model's name; what is learned of a model is held under it
LONGEST_NAME = 200  # characters of a conversation's name


class ModelEndpoint(Endpoint):
    """The endpoint of one format."""

    def __init__(self, services: Services, dialect: Dialect) -> None:
        super().__init__(services)
        self._dialect = dialect

    def fmt(self, headers: Headers) -> str:  # noqa: ARG002 - the path says it
        """The endpoint's own."""
        return self._dialect.fmt

    async def answer(self, visit: HttpRequest) -> None:
        """Run the exchange, for as long as the client waits for it."""
        services, report, headers = self.services, visit.report, visit.headers
        mode = request_mode(headers, visit.client, services.config.mode)
        refuse_compressed(headers)
        body = await visit.body(services.config)
        with services.limiter.admit(visit.client, len(body) // BYTES_PER_TOKEN):
            asked, upstream = route(services.routes, parse_request(self._dialect, body))
            visit.goes_to(upstream, asked.model)
            report.mode, report.streamed = mode, asked.stream
            exchange = Exchange(
                services=services,
                client=visit.client,
                asked=asked,
                upstream=upstream,
                outlet=visit.outlet,
                headers=headers,
                query=visit.query,
                mode=mode,
                name=_name_in(headers),
                started=visit.started,
                report=report,
            )
            if await until_disconnect(visit.receive, exchange.run()) is GONE and not exchange.complete:
                report.status = CLIENT_GONE
                services.metrics.gone()


def route(routes: Routes, asked: ModelRequest) -> tuple[ModelRequest, Upstream]:
    """The upstream of a request, and the request with the model's name as it is known there."""
    upstream = routes.choose(asked.model, asked.fmt)
    if len(asked.model) > LONGEST_MODEL:
        raise Refused(f"no model's name has more than {LONGEST_MODEL} characters", status=404, kind="unknown_model")
    name = routes.model_sent(upstream, asked.model)
    return (asked if name == asked.model else asked.with_model(name)), upstream


def refuse_compressed(headers: Headers) -> None:
    """Raises Refused for a body that is compressed: what it says could not be read."""
    if any(
        name.lower() == ENCODING_HEADER and value.strip().lower() not in (b"", b"identity") for name, value in headers
    ):
        raise Refused("compressed requests are not read: send the body as it is", status=415, kind="compressed_body")


def _name_in(headers: Headers) -> str:
    """The client's own name for the conversation."""
    name = next((value for header, value in headers if header.lower() == THREAD_HEADER), b"").decode("latin-1").strip()
    if len(name) > LONGEST_NAME or not name.isprintable():
        raise Refused(f"x-everlong-thread has at most {LONGEST_NAME} plain characters", status=400, kind="bad_header")
    return name


COUNT_PATH = "/messages/count_tokens"
LARGEST_ANSWER = 1024 * 1024


class TokenCountEndpoint(Endpoint):
    """Counts what a client would send, without sending it."""

    def fmt(self, headers: Headers) -> str:  # noqa: ARG002 - only Anthropic's has it
        """Anthropic's."""
        return "anthropic"

    async def answer(self, visit: HttpRequest) -> None:
        """Answer one question."""
        services, report = self.services, visit.report
        refuse_compressed(visit.headers)
        body = await visit.body(services.config)
        with services.limiter.admit(visit.client):
            asked, upstream = route(services.routes, parse_request(DIALECTS["anthropic"], body))
            visit.goes_to(upstream, asked.model)
            if upstream.endpoint.provider != "anthropic":
                tokens = await asyncio.to_thread(self._count, asked, upstream)
                await visit.tell(200, encoded({"input_tokens": tokens}))
                return
            visit.asks_upstream()
            sent = UpstreamRequest("POST", COUNT_PATH, visit.query, visit.headers, asked.body)
            answered = await services.forwarding.send(upstream, visit.client, sent)
            told = await answered.whole(LARGEST_ANSWER)
            await visit.outlet.whole(answered.status, [*answered.headers, *report.headers()], told)

    def _count(self, asked: ModelRequest, upstream: Upstream) -> int:
        """Ours, corrected by what the upstream reported before."""
        document = FORMATS["anthropic"].read_body(decoded(asked.body))
        counter = counter_for(asked.model)
        counted = counter.messages(document.messages) + counter.tools(document.tools)
        call = Call(model=asked.model, endpoint=upstream.endpoint.name)
        return calibration_of(self.services.engine.threads, call, counter).expected(counted)


LARGEST_LIST = 16 * 1024 * 1024
LONGEST_START = 1_024  # bytes in which a body begins
ONE_MODEL = "/models/"
UNBUFFERED = (b"x-accel-buffering", b"no")


class PassThroughEndpoint(Endpoint):
    """Everything below /v1 that has no endpoint of its own goes to the upstream of its model, or the first there is."""

    async def answer(self, visit: HttpRequest) -> None:
        """Hand one request on, and its answer back."""
        path = upstream_path(_raw_path(visit.scope))
        body = await visit.body(self.services.config)
        tokens = len(body) // BYTES_PER_TOKEN if _is_object(body) else 0  # a picture or a recording has none
        with self.services.limiter.admit(visit.client, tokens):
            upstream, body = self._routed(path, body, visit)
            sent = UpstreamRequest(visit.scope["method"], path, visit.query, visit.headers, body)
            if await until_disconnect(visit.receive, self._handed_on(upstream, sent, visit)) is GONE:
                visit.report.status = CLIENT_GONE
                self.services.metrics.gone()

    def _routed(self, path: str, body: bytes, visit: HttpRequest) -> tuple[Upstream, bytes]:
        """By the model that the body or the path names, if one does, as its upstream knows it."""
        routes, fmt = self.services.routes, visit.report.fmt
        model = _model_in(body)
        if model:
            upstream = routes.choose(model, fmt)
            name = routes.model_sent(upstream, model)
            if name != model:
                body = encoded(cast(JsonObject, decoded(body)) | {"model": name})
        elif path.startswith(ONE_MODEL):
            model = unquote(path.removeprefix(ONE_MODEL))
            upstream = routes.choose(model, fmt)
        else:
            upstream = routes.default(fmt)
        visit.goes_to(upstream, model)
        return upstream, body

    async def _handed_on(self, upstream: Upstream, sent: UpstreamRequest, visit: HttpRequest) -> None:
        visit.asks_upstream()
        outlet = visit.outlet
        answered = await self.services.forwarding.send(upstream, visit.client, sent)
        visit.report.streamed = answered.streamed
        own = [UNBUFFERED] if answered.streamed else []
        try:
            await outlet.begin(answered.status, [*answered.headers, *own, *visit.report.headers()])
            async with aclosing(answered.chunks()) as chunks:
                async for chunk in chunks:
                    await outlet.chunk(chunk)
            await outlet.end()
        except ProviderError as error:
            # What it means is not known here: the connection breaks as it did there.
            visit.report.error = str(error)
            raise ConnectionAbortedError(str(error)) from error
        finally:
            answered.close()


class ModelListEndpoint(PassThroughEndpoint):
    """The models of all upstreams, as one list; an upstream that does not tell is left out."""

    async def answer(self, visit: HttpRequest) -> None:
        """Answer with the list; that of a lone upstream as it is."""
        upstreams = [one for one in self.services.routes.upstreams if visit.report.fmt in one.formats]
        if len(upstreams) == 1:
            await super().answer(visit)
            return
        with self.services.limiter.admit(visit.client):
            lists = await asyncio.gather(*(self._rows(one, visit.client, visit.headers) for one in upstreams))
        rows: list[Json] = [row for one in lists for row in one]
        await visit.tell(200, encoded({"object": "list", "data": rows, "has_more": False}))

    async def _rows(self, upstream: Upstream, client: Client, headers: Headers) -> list[Json]:
        try:
            answered = await self.services.forwarding.send(
                upstream, client, UpstreamRequest("GET", "/models", "", headers)
            )
            body = decoded(await answered.whole(LARGEST_LIST))
        except EverlongError:
            return []
        data = body.get("data") if isinstance(body, dict) else None
        return data if isinstance(data, list) else []


def _model_in(body: bytes) -> str:
    """The model that a JSON body names; "" if there is none. The rest of it, which may be long, is not read."""
    try:
        said = decoded(pieces_of_object(body).get("model", b"null")) if _is_object(body) else None
    except Refused:
        return ""
    return said if isinstance(said, str) else ""


def _is_object(body: bytes) -> bool:
    """Whether it looks like JSON with fields."""
    return body[:LONGEST_START].lstrip().startswith(b"{")


def _raw_path(scope: Scope) -> str:
    """The path as it was written, below /v1."""
    raw = scope.get("raw_path") or scope["path"].encode()
    path: str = raw.partition(b"?")[0].decode("latin-1")
    return path.removeprefix("/v1") or "/"

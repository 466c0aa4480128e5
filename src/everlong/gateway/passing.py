"""Endpoints that are not ours, handed on as they are, and lists of models. No engine, no state."""

import asyncio
from contextlib import aclosing
from typing import cast
from urllib.parse import unquote

from everlong.core import Json, JsonObject
from everlong.errors import EverlongError, ProviderError, Refused
from everlong.gateway.decoding import decoded, encoded, pieces_of_object
from everlong.gateway.endpoint import CLIENT_GONE, Endpoint, Scope, Visit
from everlong.gateway.forwarding import Sent
from everlong.gateway.keepalive import GONE, until_gone
from everlong.gateway.limits import BYTES_PER_TOKEN
from everlong.gateway.outlet import Headers
from everlong.gateway.parties import Client, Upstream
from everlong.gateway.routing import upstream_path

__all__ = ["Models", "Passing"]

LARGEST_LIST = 16 * 1024 * 1024
LONGEST_START = 1_024  # bytes in which a body begins
ONE_MODEL = "/models/"
UNBUFFERED = (b"x-accel-buffering", b"no")


class Passing(Endpoint):
    """Everything below /v1 that has no endpoint of its own goes to the upstream of its model, or the first there is."""

    async def answer(self, visit: Visit) -> None:
        """Hand one request on, and its answer back."""
        path = upstream_path(_raw_path(visit.scope))
        body = await visit.body(self.services.config)
        tokens = len(body) // BYTES_PER_TOKEN if _is_object(body) else 0  # a picture or a recording has none
        with self.services.limiter.admit(visit.client, tokens):
            upstream, body = self._routed(path, body, visit)
            sent = Sent(visit.scope["method"], path, visit.query, visit.headers, body)
            if await until_gone(visit.receive, self._handed_on(upstream, sent, visit)) is GONE:
                visit.report.status = CLIENT_GONE
                self.services.metrics.gone()

    def _routed(self, path: str, body: bytes, visit: Visit) -> tuple[Upstream, bytes]:
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

    async def _handed_on(self, upstream: Upstream, sent: Sent, visit: Visit) -> None:
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


class Models(Passing):
    """The models of all upstreams, as one list; an upstream that does not tell is left out."""

    async def answer(self, visit: Visit) -> None:
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
            answered = await self.services.forwarding.send(upstream, client, Sent("GET", "/models", "", headers))
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

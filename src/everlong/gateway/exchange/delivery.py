"""The way of one request to its upstream: the address that it goes to, sending it, and a refusal that comes back.

Nothing is decided here about the contents of the request: the exchange knows what to send, and when.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from time import perf_counter
from typing import TypeVar

from everlong.errors import EverlongError, ProviderError
from everlong.gateway.chains.continuation import Continuation
from everlong.gateway.chains.provider import Provider
from everlong.gateway.clients import Client
from everlong.gateway.exchange.answer import Refusal
from everlong.gateway.exchange.response import Headers, ResponseWriter, with_comments
from everlong.gateway.operations.reports import Report
from everlong.gateway.operations.services import Services
from everlong.gateway.request import ModelRequest
from everlong.gateway.upstreams.connections import UpstreamRequest, UpstreamResponse
from everlong.gateway.upstreams.failover import Tries, conversation_key, in_preference
from everlong.gateway.upstreams.routing import Upstream
from everlong.llm import HttpModel

__all__ = ["Delivery"]

T = TypeVar("T")


@dataclass(slots=True, kw_only=True)
class Delivery:
    """How one client's request gets to its upstream, with the client's headers and query. `started` is in seconds."""

    services: Services
    client: Client
    upstream: Upstream
    writer: ResponseWriter
    headers: Headers
    query: str
    started: float
    report: Report
    #: The attempts at the addresses of the upstream, if it has several.
    _tries: Tries | None = None

    def choose_site(self, request: ModelRequest, name: str, continuation: Continuation | None) -> None:
        """Choose the address of the upstream: the conversation's own, or the one that stores what it continues.

        `name` is the client's own name for the conversation.
        """
        if not self.upstream.sites:
            return
        # If answers are stored that we do not see, all requests stay with the first address.
        unseen = bool(request.format.api.held_elsewhere) and continuation is None
        key = "" if unseen else conversation_key(request, self.client.scope, name)
        self._tries = self.services.forwarding.tries(in_preference(self.upstream, key))
        if continuation is not None:
            self._tries.prefer(continuation.held_at)
            continuation.upstream = self.site.held_as
        if request.partial:
            self._tries.stay()

    @property
    def site(self) -> Upstream:
        """The address that the request goes to."""
        return self.upstream if self._tries is None else self._tries.site

    async def send(
        self, request: ModelRequest, body: bytes, rewrite: Callable[[], Awaitable[bytes]] | None = None
    ) -> UpstreamResponse:
        """Return the answer. `rewrite` returns the body for another address, if it may differ there."""
        self.report.added_ms = (perf_counter() - self.started) * 1000 - self.report.waited_ms
        before = perf_counter()
        address = request.address
        sent = UpstreamRequest("POST", address.path, self.query, self.headers, body, address.surface.base)
        try:
            answer = await self.services.forwarding.send(self.upstream, self.client, sent, self._tries, rewrite=rewrite)
        finally:
            self.report.waited_ms += (perf_counter() - before) * 1000
            if self._tries is not None:
                self.report.note_address(self._tries)
        if answer.empty:
            answer.close()
            raise ProviderError(f"{self.upstream.name} answers without content (status {answer.status})", status=502)
        return answer

    async def forward_refusal(self, refusal: Refusal, final: EverlongError) -> None:
        """Answer the client with the upstream's refusal, unchanged if it can be read."""
        self.report.error = str(final)
        headers = self.report.headers()
        if refusal.body is None or not refusal.readable:
            self.report.ended_by = "upstream"
            status = refusal.status if refusal.status >= 400 else 502
            after = refusal.error.after
            headers += [] if after is None else [(b"retry-after", b"%d" % after)]
            await self.writer.send_error(status, "upstream_refused", str(final), headers)
        elif self.writer.begun:
            await self.writer.send_error(refusal.status, "upstream_refused", str(final), headers)
        else:
            await self.writer.send_whole(refusal.status, [*refusal.headers, *headers], refusal.body)

    async def with_comments(self, request: ModelRequest, work: Awaitable[T]) -> T:
        """Return the result of the work, and send comments to a client that waits for a stream."""
        if not request.stream:
            return await work
        config, send = self.services.config, self.writer.send_comment
        return await with_comments(work, send, after=config.keepalive_after, every=config.keepalive_every)

    # --- our own requests, on the same path --------------------------------------------------------

    def own_model(self, request: ModelRequest) -> HttpModel:
        """Return the model client for our own calls."""
        return self.services.models.beside(
            request,
            self.services.config.deployment(request.model).model,
            upstream=self.site,
            client=self.client,
            headers=self.headers,
            query=self.query,
        )

    def provider(self, request: ModelRequest, continuation: Continuation) -> Provider:
        """Return the provider's storage of conversations."""
        held, base = continuation.held, request.address.surface.base
        return Provider(self.services.forwarding, self.site, self.client, self.headers, held, base, self.query)

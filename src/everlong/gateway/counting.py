"""`/v1/messages/count_tokens`: the provider's own count where it has one, ours for every other model."""

import asyncio

from everlong.engine import Call, calibration_of, counter_for
from everlong.gateway.answering import refuse_packed, routed
from everlong.gateway.asking import Asked, asked_in
from everlong.gateway.decoding import decoded, encoded
from everlong.gateway.dialects import DIALECTS
from everlong.gateway.endpoint import Endpoint, Visit
from everlong.gateway.forwarding import Sent
from everlong.gateway.outlet import Headers
from everlong.gateway.parties import Upstream
from everlong.wire import BODY_FORMATS

__all__ = ["CountingTokens"]

PATH = "/messages/count_tokens"
LARGEST_ANSWER = 1024 * 1024


class CountingTokens(Endpoint):
    """Counts what a client would send, without sending it."""

    def fmt(self, headers: Headers) -> str:  # noqa: ARG002 - only Anthropic's has it
        """Anthropic's."""
        return "anthropic"

    async def answer(self, visit: Visit) -> None:
        """Answer one question."""
        services, report = self.services, visit.report
        refuse_packed(visit.headers)
        body = await visit.body(services.config)
        with services.limiter.admit(visit.client):
            asked, upstream = routed(services.routes, asked_in(DIALECTS["anthropic"], body))
            visit.goes_to(upstream, asked.model)
            if upstream.endpoint.provider != "anthropic":
                tokens = await asyncio.to_thread(self._count, asked, upstream)
                await visit.tell(200, encoded({"input_tokens": tokens}))
                return
            visit.asks_upstream()
            sent = Sent("POST", PATH, visit.query, visit.headers, asked.body)
            answered = await services.forwarding.send(upstream, visit.client, sent)
            told = await answered.whole(LARGEST_ANSWER)
            await visit.outlet.whole(answered.status, [*answered.headers, *report.headers()], told)

    def _count(self, asked: Asked, upstream: Upstream) -> int:
        """Ours, corrected by what the upstream reported before."""
        document = BODY_FORMATS["anthropic"].parse_body(decoded(asked.body))
        counter = counter_for(asked.model)
        counted = counter.messages(document.messages) + counter.tools(document.tools)
        call = Call(model=asked.model, endpoint=upstream.endpoint.name)
        return calibration_of(self.services.engine.threads, call, counter).expected(counted)

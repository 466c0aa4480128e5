"""The endpoints that models answer: a request is admitted, read, and run as an exchange."""

from everlong.errors import Refused
from everlong.gateway.asking import Asked, asked_in
from everlong.gateway.clients import request_mode
from everlong.gateway.dialects import Dialect
from everlong.gateway.endpoint import CLIENT_GONE, Endpoint, Visit
from everlong.gateway.exchange import Exchange
from everlong.gateway.keepalive import GONE, until_gone
from everlong.gateway.limits import BYTES_PER_TOKEN
from everlong.gateway.outlet import Headers
from everlong.gateway.parties import Upstream
from everlong.gateway.routing import Routes
from everlong.gateway.services import Services

__all__ = ["Answering", "refuse_packed", "routed"]

THREAD = b"x-everlong-thread"
PACKED = b"content-encoding"
LONGEST_MODEL = 1_000  # characters of a model's name; what is learned of a model is held under it
LONGEST_NAME = 200  # characters of a conversation's name


class Answering(Endpoint):
    """The endpoint of one format."""

    def __init__(self, services: Services, dialect: Dialect) -> None:
        super().__init__(services)
        self._dialect = dialect

    def fmt(self, headers: Headers) -> str:  # noqa: ARG002 - the path says it
        """The endpoint's own."""
        return self._dialect.fmt

    async def answer(self, visit: Visit) -> None:
        """Run the exchange, for as long as the client waits for it."""
        services, report, headers = self.services, visit.report, visit.headers
        mode = request_mode(headers, visit.client, services.config.mode)
        refuse_packed(headers)
        body = await visit.body(services.config)
        with services.limiter.admit(visit.client, len(body) // BYTES_PER_TOKEN):
            asked, upstream = routed(services.routes, asked_in(self._dialect, body))
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
            if await until_gone(visit.receive, exchange.run()) is GONE and not exchange.complete:
                report.status = CLIENT_GONE
                services.metrics.gone()


def routed(routes: Routes, asked: Asked) -> tuple[Asked, Upstream]:
    """The upstream of a request, and the request with the model's name as it is known there."""
    upstream = routes.choose(asked.model, asked.fmt)
    if len(asked.model) > LONGEST_MODEL:
        raise Refused(f"no model's name has more than {LONGEST_MODEL} characters", status=404, kind="unknown_model")
    name = routes.model_sent(upstream, asked.model)
    return (asked if name == asked.model else asked.with_model(name)), upstream


def refuse_packed(headers: Headers) -> None:
    """Raises Refused for a body that is compressed: what it says could not be read."""
    if any(name.lower() == PACKED and value.strip().lower() not in (b"", b"identity") for name, value in headers):
        raise Refused("compressed requests are not read: send the body as it is", status=415, kind="compressed_body")


def _name_in(headers: Headers) -> str:
    """The client's own name for the conversation."""
    name = next((value for header, value in headers if header.lower() == THREAD), b"").decode("latin-1").strip()
    if len(name) > LONGEST_NAME or not name.isprintable():
        raise Refused(f"x-everlong-thread has at most {LONGEST_NAME} plain characters", status=400, kind="bad_header")
    return name

"""What every endpoint does: find out who asks, read what is asked, tell errors in the client's words, tell of the end.

What is answered is the business of each endpoint; here nothing is decided about it.
"""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from datetime import UTC, datetime
from time import perf_counter
from typing import Any, TypeAlias
from uuid import uuid4

from everlong.errors import EverlongError, Refused
from everlong.gateway.clients import Client
from everlong.gateway.config import GatewayConfig
from everlong.gateway.exchange.errors import status_of
from everlong.gateway.exchange.response import Headers, ResponseWriter, Send
from everlong.gateway.operations.reports import Report, log_request
from everlong.gateway.operations.services import Services
from everlong.gateway.upstreams.routing import Upstream

__all__ = ["CLIENT_GONE", "Endpoint", "HttpRequest", "Receive", "Scope", "format_of", "read_body"]

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]

log = logging.getLogger("everlong.gateway")

CLIENT_GONE = 499  # as the status of a client that did not wait is usually written
FAILED = 500
BROKE_OFF = 502
LONGEST_PATH = LONGEST_MODEL = 200  # characters of a path and of a model's name that are told of


@dataclass(slots=True, kw_only=True)
class HttpRequest:
    """One request at an endpoint, and the way back."""

    scope: Scope
    receive: Receive
    outlet: ResponseWriter
    client: Client
    report: Report
    started: float

    @property
    def headers(self) -> Headers:
        """The client's, as they came."""
        headers: Headers = self.scope["headers"]
        return headers

    @property
    def query(self) -> str:
        """What stands behind the question mark, as it came."""
        query: bytes = self.scope["query_string"]
        return query.decode("latin-1")

    async def body(self, config: GatewayConfig) -> bytes:
        """What was sent, within the limits."""
        body = await read_body(self.scope, self.receive, most=int(config.largest_body), seconds=config.body_timeout)
        self.report.bytes_in = len(body)
        return body

    def goes_to(self, upstream: Upstream, model: str) -> None:
        """Who answers, and with which model, as it is told of."""
        self.report.upstream, self.report.model = upstream.name, model[:LONGEST_MODEL]

    def asks_upstream(self) -> None:
        """From here on the time is the upstream's."""
        self.report.added_ms = (perf_counter() - self.started) * 1000

    async def tell(self, status: int, body: bytes) -> None:
        """An answer of ours, as JSON."""
        self.asks_upstream()
        headers = [(b"content-type", b"application/json"), *self.report.headers()]
        await self.outlet.whole(status, headers, body)


class Endpoint(ABC):
    """An endpoint as ASGI. It never raises for what a client or an upstream did; `answer` may."""

    def __init__(self, services: Services) -> None:
        self.services = services

    @abstractmethod
    async def answer(self, visit: HttpRequest) -> None:
        """Answer one request. What the client must hear of ours is raised."""

    def fmt(self, headers: Headers) -> str:
        """The format in which the client wants to be answered."""
        return format_of(headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request and tell of it."""
        started = perf_counter()
        fmt, path = self.fmt(scope["headers"]), scope["path"][:LONGEST_PATH]
        report = Report(id=uuid4().hex[:16], time=datetime.now(UTC), path=path, fmt=fmt)
        outlet = ResponseWriter(send, fmt, report.headers)
        client: Client | None = None
        try:
            client = self.services.clients.identify(scope["headers"])
            report.client = client.name or client.scope[:8]
            await self.answer(
                HttpRequest(scope=scope, receive=receive, outlet=outlet, client=client, report=report, started=started)
            )
        except EverlongError as error:
            await self._refuse(outlet, error, report, started)
        except ConnectionAbortedError:  # the upstream broke off, and so does the answer
            report.status = BROKE_OFF
        except (ConnectionError, asyncio.CancelledError) as error:
            report.status = report.status or CLIENT_GONE
            if isinstance(error, asyncio.CancelledError):
                raise
        except Exception:  # ours: the client hears that something failed, also in the middle of a stream
            log.exception("an answer failed")
            await self._refuse(outlet, EverlongError(), report, started)
        finally:
            self._tell(report, outlet, client, started)

    async def _refuse(self, outlet: ResponseWriter, error: EverlongError, report: Report, started: float) -> None:
        status, kind, message = status_of(error, report.fmt)
        report.kind, report.error = kind, message
        report.added_ms = report.added_ms or (perf_counter() - started) * 1000
        self.services.metrics.refused(kind)
        headers = report.headers()
        after = error.after if isinstance(error, Refused) else None
        if after is not None:
            headers.append((b"retry-after", b"%d" % after))
        await outlet.refuse(status, kind, message, headers)

    def _tell(self, report: Report, outlet: ResponseWriter, client: Client | None, started: float) -> None:
        report.status = report.status or outlet.status or FAILED
        report.seconds = perf_counter() - started
        report.bytes_out = outlet.sent
        self.services.metrics.answered(report)
        log_request(report)
        if client is not None:
            self.services.recent.add(client.scope, report)


def format_of(headers: Headers) -> str:
    """The format that a client speaks, by what only its kind sends."""
    return "anthropic" if any(name.lower() == b"anthropic-version" for name, _ in headers) else "openai-chat"


async def read_body(scope: Scope, receive: Receive, *, most: int, seconds: float) -> bytes:
    """The body of a request. Raises Refused where it is too large or too slow.

    ConnectionError where the client goes away.
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
                    raise ConnectionResetError("the client went away while it sent its request")
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
    return Refused(f"a request has at most {most:,} bytes", status=413, kind="too_large")

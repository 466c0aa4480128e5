"""The engine over HTTP, for programs in any language that call their models themselves.

Every endpoint identifies its client, is admitted like a model's request, and reads a bounded body. No model is called.
"""

import asyncio
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from time import monotonic
from typing import cast
from urllib.parse import parse_qsl

from everlong import __version__
from everlong.core import Json, JsonObject, expect_number, expect_text
from everlong.errors import InputError
from everlong.gateway.clients import request_mode
from everlong.gateway.fitting.asked import checked_pin, checked_thread, read_asked, read_fields
from everlong.gateway.fitting.pins import Pins
from everlong.gateway.fitting.service import Fitting
from everlong.gateway.http.endpoints import Endpoint, HttpRequest, refuse_compressed
from everlong.gateway.keys.limits import BYTES_PER_TOKEN
from everlong.gateway.operations.services import Services
from everlong.gateway.request import decoded, encoded

__all__ = ["engine_endpoints"]

BASE = "/everlong"
LARGEST_QUESTION = 256 * 1024  # bytes of a request without messages
USUAL_HITS = 5
#: The endpoints, with one line each.
DESCRIBED: Mapping[str, str] = {
    "POST /everlong/fit": "bring messages of any wire format, or a whole request body, under a model's window",
    "POST /everlong/count": "count the tokens of messages and tools",
    "POST /everlong/recall": "return what left a thread's window, by reference or by a few words",
    "POST /everlong/pin": "keep a text in every request of a thread",
    "POST /everlong/unpin": "remove a pin",
    "GET /everlong/pins": "list the pins of a thread",
    "GET /everlong/requests": "list recent requests of this key, and what was done to each",
    "GET /everlong/keys": "for operators: the keys, their limits and what they spent",
    "GET /everlong/spend": "for operators: what was spent, by key and day",
}


def engine_endpoints(services: Services) -> Iterator[tuple[str, str, "EngineEndpoint"]]:
    """Yield the method, the path and the endpoint of each engine operation."""
    fitting = Fitting(services, Pins(services.state_store, monotonic))
    yield "POST", f"{BASE}/fit", _Fit(services, fitting)
    yield "POST", f"{BASE}/count", _Count(services, fitting)
    yield "POST", f"{BASE}/recall", _Recall(services, fitting)
    yield "POST", f"{BASE}/pin", _Pin(services, fitting)
    yield "POST", f"{BASE}/unpin", _Unpin(services, fitting)
    yield "GET", f"{BASE}/pins", _Pinned(services, fitting)
    yield "GET", BASE, _Description(services, fitting)


class EngineEndpoint(Endpoint):
    """Reads a body and answers it outside the event loop."""

    #: Whether bodies contain messages: then they may be as large as a model's request, and count as much.
    heavy = False

    def __init__(self, services: Services, fitting: Fitting) -> None:
        super().__init__(services)
        self.fitting = fitting

    async def answer(self, request: HttpRequest) -> None:
        """Answer one request."""
        services = self.services
        refuse_compressed(request.headers)
        body = await request.body(services.config, None if self.heavy else LARGEST_QUESTION)
        async with self.admitted(request, len(body) // BYTES_PER_TOKEN if self.heavy else 0):
            async with services.turn(len(body)):
                answer = await asyncio.to_thread(self.work, request, body)
            await request.send_json(200, answer)

    @abstractmethod
    def work(self, request: HttpRequest, body: bytes) -> bytes:
        """Return the answer to a body, as JSON. Not in the event loop."""


class _Fit(EngineEndpoint):
    heavy = True

    def work(self, request: HttpRequest, body: bytes) -> bytes:
        mode = request_mode(request.headers, request.client, self.services.config.engine.mode)
        return self.fitting.fit(request.client, read_asked(body), mode, request.report)


class _Count(EngineEndpoint):
    heavy = True

    def work(self, request: HttpRequest, body: bytes) -> bytes:
        return encoded(self.fitting.count(request.client, read_asked(body), request.report))


class _Recall(EngineEndpoint):
    def work(self, request: HttpRequest, body: bytes) -> bytes:
        values = _values(body, "thread", "what", "limit", "start")
        limit, start = values.get("limit", USUAL_HITS), values.get("start", 0)
        expect_number("limit", limit, "the most messages to return", least=1)
        expect_number("start", start, "the first character of the original to return")
        what = _needed(values, "what", "a reference, or a few words")
        found = self.fitting.recall(
            request.client, _thread(values), what, limit=cast(int, limit), start=cast(int, start)
        )
        return encoded(found)


class _Pin(EngineEndpoint):
    def work(self, request: HttpRequest, body: bytes) -> bytes:
        values = _values(body, "thread", "text")
        text = checked_pin(_needed(values, "text", "the text to pin"))
        return encoded(self.fitting.pin(request.client, _thread(values), text))


class _Unpin(EngineEndpoint):
    def work(self, request: HttpRequest, body: bytes) -> bytes:
        values = _values(body, "thread", "pin")
        return encoded(self.fitting.unpin(request.client, _thread(values), _needed(values, "pin", "the name of a pin")))


class _Pinned(EngineEndpoint):
    def work(self, request: HttpRequest, body: bytes) -> bytes:  # noqa: ARG002 - a GET has none
        values: JsonObject = {**dict(parse_qsl(request.query))}
        return encoded(self.fitting.listed(request.client, _thread(values)))


class _Description(EngineEndpoint):
    def work(self, request: HttpRequest, body: bytes) -> bytes:  # noqa: ARG002 - see _Pinned
        return encoded({"version": __version__, "endpoints": {**DESCRIBED}})


def _values(body: bytes, *names: str) -> JsonObject:
    return {name: decoded(raw) for name, raw in read_fields(body, names).items()}


def _needed(values: Mapping[str, Json], name: str, what: str) -> str:
    if name not in values:
        raise InputError(f"{name} is missing: {what}")
    expect_text(name, values[name], what)
    return str(values[name])


def _thread(values: Mapping[str, Json]) -> str:
    if "thread" not in values:
        raise InputError("thread is missing: send the name that you gave to /everlong/fit")
    return checked_thread(values["thread"])

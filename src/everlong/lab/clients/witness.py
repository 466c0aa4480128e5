"""The witness: a proxy between a client and its server that records every exchange and changes no byte of a body.

Each request gets a header with its number, which the server forwards, so that each request at the model can be matched
to the client's request. The witness knows nothing about formats except the signs of an error inside a stream.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Event as Signal, Thread
from types import TracebackType
from typing import Self

from aiohttp import ClientSession, ClientTimeout, web

from everlong.errors import EverlongError
from everlong.llm import guarded_site

__all__ = ["MARK", "Exchange", "Witness"]

#: The header with the number of the exchange.
MARK = "x-witness"
LARGEST_BODY = 64 * 1024 * 1024
#: Headers of the connection, not of the message.
HOP = frozenset({"connection", "content-length", "host", "keep-alive", "transfer-encoding", "accept-encoding"})
#: The signs of an error inside a stream.
STREAM_ERRORS = (b"event: error", b'"type":"error"', b'"type": "error"', b"response.failed", b'data: {"error"')


@dataclass(slots=True)
class Exchange:
    """A request of the client and its answer. `trouble` is the beginning of an answer that was an error."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    status: int = 0
    trouble: str = ""
    answer_headers: dict[str, str] = field(default_factory=dict)


class Witness:
    """Records what passes to the server at `target` while it is entered; `exchanges` are in order."""

    def __init__(self, target: str) -> None:
        self.target = target.rstrip("/")
        self.exchanges: list[Exchange] = []
        self.port = 0
        self._ready = Signal()
        self._leave: Callable[[], object] = lambda: None
        self._thread = Thread()

    @property
    def address(self) -> str:
        """Return the address of the proxy."""
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._thread = Thread(target=self._run, name="witness", daemon=True)
        self._thread.start()
        self._ready.wait()
        if not self.port:
            raise EverlongError("the witness did not start: no port is free on this machine")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()
        self._thread.join()

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        stop, loop = asyncio.Event(), asyncio.get_running_loop()
        app = web.Application(client_max_size=LARGEST_BODY)
        async with ClientSession(auto_decompress=False, timeout=ClientTimeout(total=None)) as session:
            app.router.add_route("*", "/{path:.*}", self._handler(session))
            async with guarded_site(app) as self.port:
                self._leave = lambda: loop.call_soon_threadsafe(stop.set)
                self._ready.set()
                await stop.wait()

    def _handler(self, session: ClientSession) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def handle(request: web.Request) -> web.StreamResponse:
            return await self._forward(request, session)

        return handle

    async def _forward(self, request: web.Request, session: ClientSession) -> web.StreamResponse:
        exchange = Exchange(request.method, request.path_qs, dict(request.headers), await request.read())
        headers = {name: value for name, value in request.headers.items() if name.lower() not in HOP}
        headers[MARK] = str(len(self.exchanges))
        self.exchanges.append(exchange)
        target = self.target + request.path_qs
        async with session.request(request.method, target, headers=headers, data=exchange.body or None) as answer:
            exchange.status = answer.status
            exchange.answer_headers = dict(answer.headers)
            kept = {name: value for name, value in answer.headers.items() if name.lower() not in HOP}
            response = web.StreamResponse(status=answer.status, headers=kept)
            await response.prepare(request)
            with suppress(ConnectionError):  # a client may leave after the last event, before the stream ends
                async for chunk in answer.content.iter_any():
                    if not exchange.trouble and (answer.status >= 400 or any(mark in chunk for mark in STREAM_ERRORS)):
                        exchange.trouble = chunk[:500].decode("utf-8", "replace")
                    await response.write(chunk)
                await response.write_eof()
        return response

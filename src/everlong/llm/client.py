"""A model over HTTP: one request, its answer as a stream of pieces, every failure a piece too.

Retries what is worth retrying before the first piece (connections, 429, 5xx), never an overflow. Closing the stream
closes the connection, so the provider stops. Keys go into headers and nowhere else: not to where a server redirects
to, and not into an error where a server repeats them.
"""

import asyncio
import json
from collections.abc import AsyncGenerator
from types import TracebackType
from typing import Self

import aiohttp
import stamina

from everlong.errors import EverlongError, ProviderError, RateLimited
from everlong.llm.connections import Connections, read_whole
from everlong.llm.endpoints import Endpoint
from everlong.llm.serving import served_window
from everlong.wire import (
    Failed,
    Finished,
    Outgoing,
    Reply,
    ReplyReader,
    ReplyStream,
    Request,
    as_error,
    classify,
    format_named,
)

__all__ = ["HttpModel", "Patience"]

LARGEST_ERROR = 64 * 1024  # bytes of an error page that are read
WORTH_RETRYING = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
MOST_MODELS = 1_000  # names whose windows are remembered
SHORTEST_SECRET = 8  # characters; what is shorter may be any word
HIDDEN = "[key]"


class _Again(Exception):
    """A failure after which the same request may pass."""

    def __init__(self, error: ProviderError) -> None:
        super().__init__(str(error))
        self.error = error


class Patience:
    """How long to wait and how often to try, in seconds and attempts."""

    def __init__(self, *, connect: float = 10.0, silence: float = 300.0, attempts: int = 3, pause: float = 0.5) -> None:
        self.timeout = aiohttp.ClientTimeout(total=None, sock_connect=connect, sock_read=silence)
        self.attempts = attempts
        self.pause = pause


class HttpModel:
    """A model behind an endpoint. One for each endpoint; it keeps its connections until it is closed."""

    def __init__(self, endpoint: Endpoint, *, patience: Patience | None = None) -> None:
        self._format = format_named(endpoint.fmt)
        self.fmt = endpoint.fmt
        self.endpoint = endpoint.name
        self.provider = endpoint.provider
        self._at = endpoint
        self._patience = patience or Patience()
        self._connections = Connections(endpoint.url, self._patience.timeout)
        self._served: dict[str, int | None] = {}
        self._asking: dict[str, asyncio.Task[int | None]] = {}

    async def served_window(self, model: str) -> int | None:
        """The window in force that the server itself tells; asked once a model, and again where nobody was there."""
        if model in self._served:
            return self._served[model]
        task = self._asking.get(model)
        if task is None or task.get_loop() is not asyncio.get_running_loop():
            task = self._asking[model] = asyncio.create_task(self._ask_window(model))
        # Who goes away leaves the others their answer.
        return await asyncio.shield(task)

    async def _ask_window(self, model: str) -> int | None:
        try:
            told = await served_window(await self._connections.here(), self._at, model)
            while len(self._served) >= MOST_MODELS:
                self._served.pop(next(iter(self._served)))
            self._served[model] = told
        except aiohttp.ClientConnectorError:
            return None
        finally:
            self._asking.pop(model, None)
        return told

    async def stream(self, request: Request) -> AsyncGenerator[Reply, None]:
        """The pieces of the answer; the last is Finished or Failed."""
        begun = False
        reader = self._format.reader()
        last: Finished | Failed
        try:
            response = await self._asked(self._format.ask(request, self._at.key))
            stream = ReplyStream(reader)
            async with response:
                async for chunk in response.content.iter_any():
                    for reply in stream.feed(chunk):
                        begun = True
                        yield reply
                for reply in stream.close():
                    begun = True
                    yield reply
            last = reader.finished()
        except (aiohttp.ClientError, OSError) as error:
            last = self._broken(reader, error, begun=begun)
        except ProviderError as error:
            last = Failed(self._without_keys(error), begun=begun)
        except (EverlongError, ValueError, RecursionError) as error:
            told = ProviderError(f"{self.endpoint} gave no readable answer: {_words(error)}")
            last = Failed(self._without_keys(told), begun=begun)
        yield last

    def _broken(self, reader: ReplyReader, error: BaseException, *, begun: bool) -> Finished | Failed:
        """A connection that is lost after the end of an answer takes nothing from it."""
        return reader.finished() if reader.complete else Failed(self._unreached(error), begun=begun)

    async def _asked(self, outgoing: Outgoing) -> aiohttp.ClientResponse:
        """The response whose stream begins; the refusal is raised."""
        try:
            async for attempt in stamina.retry_context(
                on=_Again,
                attempts=self._patience.attempts,
                wait_initial=self._patience.pause,
                wait_jitter=self._patience.pause,
                timeout=None,
            ):
                with attempt:
                    return await self._once(outgoing)
        except _Again as again:
            raise again.error from None
        raise AssertionError("a retry either returns or raises")

    async def _once(self, outgoing: Outgoing) -> aiohttp.ClientResponse:
        headers = {"content-type": "application/json", **outgoing.headers, **dict(self._at.headers)}
        body = json.dumps(outgoing.body, ensure_ascii=False).encode("utf-8", "backslashreplace")
        session = await self._connections.here()
        try:
            response = await session.post(
                self.endpoint + outgoing.path, data=body, headers=headers, allow_redirects=False
            )
        except (aiohttp.ClientConnectionError, OSError) as error:
            raise _Again(self._unreached(error)) from error
        if response.status in range(200, 300):
            return response
        async with response:
            text = (await read_whole(response, LARGEST_ERROR)).decode("utf-8", "replace")
        moved = response.headers.get("location", "")
        if response.status in range(300, 400) and moved:
            raise ProviderError(f"{self.endpoint} sends elsewhere, to {moved}", status=response.status)
        refusal = self._without_keys(as_error(classify(text or response.reason or "", status=response.status)))
        if response.status in WORTH_RETRYING and type(refusal) in (ProviderError, RateLimited):
            raise _Again(refusal)
        raise refusal

    def _unreached(self, error: BaseException) -> ProviderError:
        return self._without_keys(ProviderError(f"{self.endpoint} cannot be reached: {_words(error)}"))

    def _without_keys(self, error: ProviderError) -> ProviderError:
        """The error, without keys in its words: some servers repeat what they were sent."""
        said = str(error)
        for secret in (self._at.key, *(value for _, value in self._at.headers)):
            if len(secret) >= SHORTEST_SECRET:
                said = said.replace(secret, HIDDEN)
        error.args = (said,)
        return error

    async def close(self) -> None:
        """Let go of its connections; a second time does nothing."""
        for task in [*self._asking.values()]:
            task.cancel()
        await self._connections.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _words(error: BaseException) -> str:
    return str(error) or type(error).__name__

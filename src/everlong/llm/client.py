"""A model over HTTP: one request, its answer as a stream of pieces, every failure a piece too.

Retries what is worth retrying before the first piece (connections, 429, 5xx), never an overflow. Closing the stream
closes the connection, so the provider stops. Keys go into headers and nowhere else.
"""

import json
from collections.abc import AsyncGenerator, Mapping
from types import TracebackType
from typing import Self

import aiohttp
import stamina

from everlong.core.messages import JsonObject
from everlong.engine.replies import Failed, Reply, Request
from everlong.errors import EverlongError, ProviderError, RateLimited
from everlong.llm.endpoints import Endpoint
from everlong.llm.formats import anthropic_messages, gemini, openai_chat, openai_responses
from everlong.llm.formats.shape import Answering, Asking, Format
from everlong.llm.serving import served_window
from everlong.llm.sse import Events
from everlong.wire.refusals import as_error, classify

__all__ = ["HttpModel", "Patience"]

FORMATS: Mapping[str, Format] = {
    module.FORMAT: module for module in (anthropic_messages, gemini, openai_chat, openai_responses)
}
LARGEST_ERROR = 64 * 1024  # bytes of an error page that are read
LARGEST_ANSWER = 64 * 1024 * 1024  # bytes of an answer that is not streamed
WORTH_RETRYING = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})


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
        if endpoint.fmt not in FORMATS:
            raise EverlongError(f"no client speaks {endpoint.fmt!r}; there are {', '.join(sorted(FORMATS))}")
        self.fmt = endpoint.fmt
        self.endpoint = endpoint.name
        self.provider = endpoint.provider
        self._at = endpoint
        self._format = FORMATS[endpoint.fmt]
        self._patience = patience or Patience()
        self._session: aiohttp.ClientSession | None = None
        self._served: dict[str, int | None] = {}

    async def served_window(self, model: str) -> int | None:
        """The window in force that the server itself tells; asked once a model."""
        if model not in self._served:
            self._served[model] = await served_window(self._open(), self._at, model)
        return self._served[model]

    async def stream(self, request: Request) -> AsyncGenerator[Reply, None]:
        """The pieces of the answer; the last is Finished or Failed."""
        begun = False
        try:
            response = await self._asked(self._format.asking(request, self._at.key))
            async with response:
                answer = self._format.answering()
                async for reply in _read(response, answer):
                    begun = True
                    yield reply
                yield answer.finished()
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            yield Failed(ProviderError(_told(error, self.endpoint)), begun=begun)
        except ProviderError as error:
            yield Failed(error, begun=begun)

    async def _asked(self, asking: Asking) -> aiohttp.ClientResponse:
        """The response whose stream begins; the refusal is raised."""
        try:
            async for attempt in stamina.retry_context(
                on=_Again, attempts=self._patience.attempts, wait_initial=self._patience.pause, timeout=None
            ):
                with attempt:
                    return await self._once(asking)
        except _Again as again:
            raise again.error from None
        raise AssertionError("a retry either returns or raises")

    async def _once(self, asking: Asking) -> aiohttp.ClientResponse:
        headers = {"content-type": "application/json", **asking.headers, **dict(self._at.headers)}
        body = json.dumps(asking.body, ensure_ascii=False).encode("utf-8", "backslashreplace")
        try:
            response = await self._open().post(self.endpoint + asking.path, data=body, headers=headers)
        except (aiohttp.ClientConnectionError, TimeoutError, OSError) as error:
            raise _Again(ProviderError(_told(error, self.endpoint))) from error
        if response.ok:
            return response
        async with response:
            text = (await response.content.read(LARGEST_ERROR)).decode("utf-8", "replace")
        refusal = as_error(classify(text or response.reason or "", status=response.status))
        if response.status in WORTH_RETRYING and type(refusal) in (ProviderError, RateLimited):
            raise _Again(refusal)
        raise refusal

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None or self._session.closed:
            connector = aiohttp.TCPConnector(limit=0, ttl_dns_cache=300)
            self._session = aiohttp.ClientSession(connector=connector, timeout=self._patience.timeout, trust_env=True)
        return self._session

    async def close(self) -> None:
        """Let go of its connections; a second time does nothing."""
        if self._session is not None:
            await self._session.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


async def _read(response: aiohttp.ClientResponse, answer: Answering) -> AsyncGenerator[Reply, None]:
    """The pieces of a stream, or of a whole answer where the server does not stream."""
    if response.content_type == "application/json":
        raw = json.loads(await response.content.read(LARGEST_ANSWER))
        for reply in _taken(answer, raw) if isinstance(raw, dict) else []:
            yield reply
        if not answer.complete:
            raise ProviderError("the answer is neither a stream nor a whole message")
        return
    events = Events()
    async for chunk in response.content.iter_any():
        for event in events.feed(chunk):
            for reply in _taken(answer, event):
                yield reply
    for event in events.close():
        for reply in _taken(answer, event):
            yield reply
    if not answer.complete and not events.done:
        raise ProviderError("the stream broke off before its end")


def _taken(answer: Answering, event: JsonObject) -> list[Reply]:
    if event.get("error"):
        raise as_error(classify(event))
    return answer.take(event)


def _told(error: BaseException, endpoint: str) -> str:
    said = str(error) or type(error).__name__
    return f"{endpoint} cannot be reached: {said}"

"""An upstream's answer handed on: as it comes, heard on the way, its end always told.

Until the first event of a stream is whole nothing is handed on, so that a refusal that comes as a stream is still a
refusal. A stream that breaks off, or just stops, ends with an error in the client's own format.
"""

from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass

from everlong.core import Message
from everlong.engine import Finished
from everlong.errors import ProviderError
from everlong.gateway.exchange.reader import AnswerReader
from everlong.gateway.exchange.response import Headers, ResponseWriter
from everlong.gateway.exchange.usage import PromptSizes, UsageRewriter, rewritten_body
from everlong.gateway.recall.exchange import RecallExchange
from everlong.gateway.upstreams.connections import UpstreamResponse
from everlong.wire import as_error, classify

__all__ = ["AnswerForwarder", "Refusal"]

LARGEST_ERROR = 1024 * 1024  # bytes of a refusal
LARGEST_ANSWER = 256 * 1024 * 1024  # bytes of a plain answer
HELD = 64 * 1024  # bytes of a stream that are held until its first event is whole
BROKE_OFF = "the upstream's answer ended before its end"


@dataclass(frozen=True, slots=True)
class Refusal:
    """What an upstream said instead of an answer; `body` as it came, None where it said nothing at all."""

    error: ProviderError
    status: int
    headers: Headers = ()
    body: bytes | None = None


class StreamFilters:
    """What a stream goes through on its way: our tool's calls are hidden, usage is told as it should be."""

    def __init__(self, fmt: str, figures: PromptSizes, recalling: RecallExchange | None) -> None:
        self._rewriting = UsageRewriter(fmt, figures)
        self._recalling = recalling
        self._hiding = None if recalling is None else recalling.filter()

    @property
    def held(self) -> bool:
        """Whether the end of the stream is held back."""
        return self._hiding is not None and self._hiding.alone

    @property
    def response(self) -> str:
        """The provider's own name for the answer, if it has one."""
        return "" if self._hiding is None else self._hiding.response

    def feed(self, chunk: bytes) -> bytes:
        """What can be handed on now."""
        return self._rewriting.feed(chunk if self._hiding is None else self._hiding.feed(chunk))

    def close(self, *, ending: bool) -> bytes:
        """What is left; with `ending` an end that was held back too."""
        if self._hiding is None or self._recalling is None:
            return self._rewriting.close()
        last = self._hiding.close()
        if ending and self._hiding.alone:
            last += self._hiding.ending()
        self._recalling.streamed(self._hiding)
        return self._rewriting.feed(last) + self._rewriting.close()


@dataclass(slots=True)
class AnswerForwarder:
    """Hands one answer on. `headers` gives ours, `opening` is told right before the first byte.

    `ending` is told right before the bytes with which the client has the whole answer, and may ask again.
    """

    fmt: str
    outlet: ResponseWriter
    headers: Callable[[], Headers]
    figures: PromptSizes
    opening: Callable[[], None]
    ending: Callable[[Message], None]
    recalling: RecallExchange | None = None
    finished: Finished | None = None
    #: Whether the answer goes on in another one: its end was not handed on.
    goes_on: bool = False
    #: The provider's own name for the answer, in Responses.
    response: str = ""
    #: Why it ended early, if it did.
    broken: str = ""

    async def refused(self, answered: UpstreamResponse) -> Refusal:
        """An answer that is none."""
        body = await answered.whole(LARGEST_ERROR)
        error = as_error(classify(body.decode("utf-8", "replace"), status=answered.status))
        return Refusal(error, answered.status, answered.headers, body)

    async def heard(self, answered: UpstreamResponse) -> tuple[bytes, Refusal | None]:
        """A plain answer, all of it, and the refusal that it may be. Nothing is handed on yet."""
        body = await answered.whole(LARGEST_ANSWER)
        listening = AnswerReader(self.fmt, streamed=False, status=answered.status)
        listening.hear(body)
        self.finished = listening.finished()
        error = listening.error
        return body, None if error is None else Refusal(error, answered.status, answered.headers, body)

    async def plain(self, answered: UpstreamResponse, body: bytes) -> None:
        """Hand a plain answer on, or keep it until the answer that it goes on in is there."""
        self.opening()
        if self.finished is not None:
            self.ending(self.finished.message)
        if self.recalling is not None:
            if self.recalling.goes_on(self.finished):
                self.goes_on = True
                self.recalling.plain(body)
                return
            body = self.recalling.told(body)
        told = rewritten_body(self.fmt, body, self.figures)
        if self.outlet.begun:  # a stream was promised: there is no head any more to say otherwise
            told = b"data: " + told.replace(b"\n", b" ") + b"\n\n"
        await self.outlet.whole(answered.status, [*answered.headers, *self.headers()], told)

    async def streamed(self, answered: UpstreamResponse) -> Refusal | None:
        """Hand a stream on; the refusal, where it is one from its first event on."""
        listening = AnswerReader(self.fmt, streamed=True, status=answered.status)
        try:
            return await self._handed_on(answered, listening)
        finally:
            if self.finished is None and listening.complete:  # the client left with all of it
                self.finished = listening.finished()

    async def _handed_on(self, answered: UpstreamResponse, listening: AnswerReader) -> Refusal | None:
        stages = StreamFilters(self.fmt, self.figures, self.recalling)
        held, opened = b"", False
        try:
            async with aclosing(answered.chunks()) as chunks:
                async for chunk in chunks:
                    self._hear(listening, chunk)
                    if opened:
                        await self.outlet.chunk(stages.feed(chunk))
                        continue
                    held += chunk
                    if listening.error is not None and not listening.begun:
                        return Refusal(listening.error, answered.status, answered.headers, held)
                    if listening.events or len(held) > HELD:
                        opened = True
                        await self._open(answered)
                        await self.outlet.chunk(stages.feed(held))
        except ProviderError as error:
            if not opened:
                return Refusal(error, error.status or 502)
            await self._break(str(error), error.status or 502)
            return None
        if not opened:
            listening.end()
            if listening.error is not None:
                return Refusal(listening.error, answered.status, answered.headers, held)
            await self._open(answered)
            await self.outlet.chunk(stages.feed(held))
        self.finished = listening.finished()
        self.goes_on = self.recalling is not None and stages.held and self.recalling.goes_on(self.finished)
        self.response = stages.response
        await self.outlet.chunk(stages.close(ending=not self.goes_on))
        if not self.goes_on:
            await self._end(listening)
        return None

    def _hear(self, listening: AnswerReader, chunk: bytes) -> None:
        over = listening.complete
        listening.hear(chunk)
        if listening.complete and not over:
            message = listening.message()
            if message is not None:
                self.ending(message)

    async def untouched(self, answered: UpstreamResponse) -> None:
        """Every byte as it came, whatever it is."""
        listening = AnswerReader(self.fmt, answered.streamed, status=answered.status)
        await self._open(answered)
        try:
            async with aclosing(answered.chunks()) as chunks:
                async for chunk in chunks:
                    listening.hear(chunk)
                    await self.outlet.chunk(chunk)
        except ProviderError as error:
            await self._break(str(error), error.status or 502, event=answered.streamed)
            return
        finally:
            self.finished = listening.finished() if listening.complete or not answered.streamed else None
        if answered.streamed:
            await self._end(listening)
        await self.outlet.end()

    async def _open(self, answered: UpstreamResponse) -> None:
        self.opening()
        own = [(b"x-accel-buffering", b"no")] if answered.streamed else []
        await self.outlet.begin(answered.status, [*answered.headers, *own, *self.headers()])

    async def _end(self, listening: AnswerReader) -> None:
        self.finished = listening.finished()
        if listening.complete or listening.error is not None:
            await self.outlet.end()
        else:
            await self._break(BROKE_OFF, 502)

    async def _break(self, reason: str, status: int, *, event: bool = True) -> None:
        self.broken = reason
        if event:
            await self.outlet.refuse(status, "upstream_broke_off", reason)
        else:
            # Half of a plain answer must not pass for a whole one: the connection breaks here as it did there.
            raise ConnectionAbortedError(reason)

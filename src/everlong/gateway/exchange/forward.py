"""Forwards an upstream's answer as it comes, reads it on the way, and always reports its end.

Nothing is forwarded until the first event of a stream is whole, so that a refusal that comes as a stream is still a
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
from everlong.wire import Format, as_error, classify

__all__ = ["AnswerForwarder", "Refusal"]

LARGEST_ERROR = 1024 * 1024  # bytes of a refusal
LARGEST_ANSWER = 256 * 1024 * 1024  # bytes of a plain answer
HELD = 64 * 1024  # bytes of a stream that are held until its first event is whole
BROKE_OFF = "the upstream's answer ended before its end"


@dataclass(frozen=True, slots=True)
class Refusal:
    """What an upstream sent instead of an answer; `body` as it came, None where it sent nothing at all."""

    error: ProviderError
    status: int
    headers: Headers = ()
    body: bytes | None = None


class StreamFilters:
    """Changes a stream on its way: hides calls of the recall tool, rewrites usage."""

    def __init__(self, format_: Format, sizes: PromptSizes, recall: RecallExchange | None) -> None:
        self._usage = UsageRewriter(format_.server.usage, sizes)
        self._recall = recall
        self._hiding = None if recall is None else recall.filter()

    @property
    def held(self) -> bool:
        """Whether the end of the stream is held back."""
        return self._hiding is not None and self._hiding.alone

    @property
    def response(self) -> str:
        """The provider's own id of the answer, if it has one."""
        return "" if self._hiding is None else self._hiding.response

    def feed(self, chunk: bytes) -> bytes:
        """Return what can be forwarded now."""
        return self._usage.feed(chunk if self._hiding is None else self._hiding.feed(chunk))

    def close(self, *, ending: bool) -> bytes:
        """Return what is left; with `ending` an end that was held back too."""
        if self._hiding is None or self._recall is None:
            return self._usage.close()
        last = self._hiding.close()
        if ending and self._hiding.alone:
            last += self._hiding.ending()
        self._recall.end_stream(self._hiding)
        return self._usage.feed(last) + self._usage.close()


@dataclass(slots=True)
class AnswerForwarder:
    """Forwards one answer. `headers` gives ours; `opening` is called right before the first byte.

    `ending` is called right before the bytes with which the client has the whole answer, and may ask again.
    """

    format: Format
    writer: ResponseWriter
    headers: Callable[[], Headers]
    sizes: PromptSizes
    opening: Callable[[], None]
    ending: Callable[[Message], None]
    recall: RecallExchange | None = None
    finished: Finished | None = None
    #: Whether the answer continues in another one: its end was not forwarded.
    continues: bool = False
    #: The provider's own id of the answer, in Responses.
    response: str = ""
    #: Why it ended early, if it did.
    broken: str = ""

    async def read_refusal(self, answer: UpstreamResponse) -> Refusal:
        """Return the refusal that an answer with an error's status is."""
        body = await answer.whole(LARGEST_ERROR)
        error = as_error(classify(body.decode("utf-8", "replace"), status=answer.status))
        return Refusal(error, answer.status, answer.headers, body)

    async def read_plain(self, answer: UpstreamResponse) -> tuple[bytes, Refusal | None]:
        """Return a plain answer, all of it, and the refusal that it may be. Nothing is forwarded yet."""
        body = await answer.whole(LARGEST_ANSWER)
        reader = AnswerReader(self.format, streamed=False, status=answer.status)
        reader.feed(body)
        self.finished = reader.finished()
        error = reader.error
        return body, None if error is None else Refusal(error, answer.status, answer.headers, body)

    async def forward_plain(self, answer: UpstreamResponse, body: bytes) -> None:
        """Forward a plain answer, or hold it until the answer that it continues in is there."""
        self.opening()
        if self.finished is not None:
            self.ending(self.finished.message)
        if self.recall is not None:
            if self.recall.continues_after(self.finished):
                self.continues = True
                self.recall.hold_body(body)
                return
            body = self.recall.shown_body(body)
        shown = rewritten_body(self.format.server.usage, body, self.sizes)
        if self.writer.begun:  # a stream was promised, and its head cannot be taken back
            shown = b"data: " + shown.replace(b"\n", b" ") + b"\n\n"
        await self.writer.send_whole(answer.status, [*answer.headers, *self.headers()], shown)

    async def forward_stream(self, answer: UpstreamResponse) -> Refusal | None:
        """Forward a stream; return the refusal, where it is one from its first event on."""
        reader = AnswerReader(self.format, streamed=True, status=answer.status)
        try:
            return await self._forward(answer, reader)
        finally:
            if self.finished is None and reader.complete:  # the client left with all of it
                self.finished = reader.finished()

    async def _forward(self, answer: UpstreamResponse, reader: AnswerReader) -> Refusal | None:
        filters = StreamFilters(self.format, self.sizes, self.recall)
        held, opened = b"", False
        try:
            async with aclosing(answer.chunks()) as chunks:
                async for chunk in chunks:
                    self._read(reader, chunk)
                    if opened:
                        await self.writer.write(filters.feed(chunk))
                        continue
                    held += chunk
                    if reader.error is not None and not reader.begun:
                        return Refusal(reader.error, answer.status, answer.headers, held)
                    if reader.events or len(held) > HELD:
                        opened = True
                        await self._open(answer)
                        await self.writer.write(filters.feed(held))
        except ProviderError as error:
            if not opened:
                return Refusal(error, error.status or 502)
            await self._break(str(error), error.status or 502)
            return None
        if not opened:
            reader.end()
            if reader.error is not None:
                return Refusal(reader.error, answer.status, answer.headers, held)
            await self._open(answer)
            await self.writer.write(filters.feed(held))
        self.finished = reader.finished()
        self.continues = self.recall is not None and filters.held and self.recall.continues_after(self.finished)
        self.response = filters.response
        await self.writer.write(filters.close(ending=not self.continues))
        if not self.continues:
            await self._end(reader)
        return None

    def _read(self, reader: AnswerReader, chunk: bytes) -> None:
        over = reader.complete
        reader.feed(chunk)
        if reader.complete and not over:
            message = reader.message()
            if message is not None:
                self.ending(message)

    async def forward_unchanged(self, answer: UpstreamResponse) -> None:
        """Forward every byte as it came, whatever it is."""
        reader = AnswerReader(self.format, answer.streamed, status=answer.status)
        await self._open(answer)
        try:
            async with aclosing(answer.chunks()) as chunks:
                async for chunk in chunks:
                    reader.feed(chunk)
                    await self.writer.write(chunk)
        except ProviderError as error:
            await self._break(str(error), error.status or 502, event=answer.streamed)
            return
        finally:
            self.finished = reader.finished() if reader.complete or not answer.streamed else None
        if answer.streamed:
            await self._end(reader)
        await self.writer.end()

    async def _open(self, answer: UpstreamResponse) -> None:
        self.opening()
        own = [(b"x-accel-buffering", b"no")] if answer.streamed else []
        await self.writer.begin(answer.status, [*answer.headers, *own, *self.headers()])

    async def _end(self, reader: AnswerReader) -> None:
        self.finished = reader.finished()
        if reader.complete or reader.error is not None:
            await self.writer.end()
        else:
            await self._break(BROKE_OFF, 502)

    async def _break(self, reason: str, status: int, *, event: bool = True) -> None:
        self.broken = reason
        if event:
            await self.writer.send_error(status, "upstream_broke_off", reason)
        else:
            # Half of a plain answer must not pass for a whole one: the connection breaks here as it did there.
            raise ConnectionAbortedError(reason)

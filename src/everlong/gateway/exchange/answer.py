"""An upstream's answer: read while it is forwarded; its end is always reported.

Nothing is forwarded before the first event of a stream is complete, so that a refusal inside a stream is still treated
as a refusal. A stream that breaks off, or just stops, ends with an error in the client's own format.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import cast

import msgspec

from everlong.core import Json, JsonObject, Message
from everlong.engine import Finished
from everlong.errors import EverlongError, ProviderError
from everlong.gateway.exchange.response import UNBUFFERED, Headers, ResponseWriter
from everlong.gateway.exchange.usage import PromptSizes, UsageRewriter, rewritten_body
from everlong.gateway.recall.exchange import RecallExchange
from everlong.gateway.upstreams.connections import UpstreamResponse
from everlong.wire import (
    BYTE_ORDER_MARK,
    DONE,
    SSE,
    Deltas,
    Format,
    Framing,
    Place,
    SseEvent,
    SseReader,
    as_error,
    classify,
)

__all__ = ["AnswerForwarder", "AnswerReader", "Refusal", "forward_bytes"]

LARGEST_EVENT = 1024 * 1024  # bytes of one event that is parsed
LARGEST_READ = 16 * 1024 * 1024  # bytes of an answer that is assembled
LONGEST_ERROR = 64 * 1024  # bytes of an error page that are read
MAX_PIECES = 1_024  # pieces of a text that are joined before they are read
LARGEST_ERROR = 1024 * 1024  # bytes of a refusal
SMALL = 256 * 1024  # bytes of an answer that is read in the event loop
LARGEST_ANSWER = 64 * 1024 * 1024  # bytes of a plain answer
HELD = 64 * 1024  # bytes of a stream that are held until its first event is complete
JSON_TYPE = (b"content-type", b"application/json")
BROKE_OFF = "the upstream's answer is incomplete"
END = DONE.encode()
#: How a whole body begins, and how a stream does; if neither fits, the content type decides.
WHOLE = (b"{", b"[", b"<")
STREAM = (b"data:", b"event:", b"id:", b"retry:", b":")
#: For a format whose events are all read one by one.
NO_DELTAS = Deltas(split=lambda _: None, join=lambda _place, _text: {})


# --- reading ---------------------------------------------------------------------------------------


class AnswerReader:
    """Reads one answer: whether it has begun, an error, its end, and finally the whole message.

    `streamed` and `status` come from its head. It changes nothing and never raises. Memory is bounded: events and
    answers above a size are not parsed and assembled. Neighbouring pieces of the same text are read as one, so that a
    stream of thousands of small events costs little.
    """

    def __init__(self, format_: Format, streamed: bool, *, status: int = 200) -> None:
        self._reply = format_.reader()
        self._deltas = format_.deltas or NO_DELTAS
        self._streamed = streamed
        self._status = status
        self._read: Callable[[bytes], None] = self._read_start
        self._events = SseReader(LARGEST_EVENT)
        self._parts: list[bytes] = []  # the pieces of a plain body
        self._size = 0  # their bytes
        self._place: Place | None = None
        self._texts: list[str] = []
        self._taken = 0  # bytes of events that are part of the answer
        self._done = False
        self._over = False
        #: Whole events so far.
        self.events = 0
        #: Whether text, thinking or a call was read.
        self.begun = False
        #: The upstream's error; for a body that is not a stream, it is known only after `end`.
        self.error: ProviderError | None = None

    @property
    def complete(self) -> bool:
        """Whether the answer reported its own end."""
        return self._done or self._reply.complete

    @property
    def name(self) -> str:
        """The provider's id of the whole answer; "" if the answer cannot be continued by an id."""
        return self._reply.name

    def feed(self, chunk: bytes) -> None:
        """Read the next bytes."""
        self._read(chunk)

    def end(self) -> None:
        """Read what is left when there are no more bytes. A second call does nothing."""
        if self._over:
            return
        self._over = True
        if self._read == self._read_start:
            start, self._parts = b"".join(self._parts), []
            self._decide(start)
            self._read(start)
        if self._read == self._read_stream:
            self._read_stream(b"\n\n")
        else:
            self._read_body(b"".join(self._parts))
        self._parts = []
        self._flush()

    def finished(self) -> Finished | None:
        """Return the whole answer; None if it is incomplete, an error, or too large to assemble."""
        self.end()
        if not self.complete or self.error is not None or self._taken > LARGEST_READ:
            return None
        try:
            return self._reply.finished()
        except (EverlongError, ValueError, RecursionError):
            return None

    def message(self) -> Message | None:
        """Return the message so far; None if it cannot be assembled."""
        self._flush()
        if self.error is not None or self._taken > LARGEST_READ:
            return None
        try:
            return self._reply.message()
        except (EverlongError, ValueError, RecursionError):
            return None

    def _read_start(self, chunk: bytes) -> None:
        """Wait until the kind of body is clear: some servers send a plain answer with the content type of a stream."""
        self._parts.append(chunk)
        start = b"".join(self._parts).removeprefix(BYTE_ORDER_MARK).lstrip()
        if len(start) >= len(b"retry:") or start.startswith(WHOLE):
            self._parts = []
            self._decide(start)
            self._read(start)

    def _decide(self, start: bytes) -> None:
        whole = start.startswith(WHOLE) or (not self._streamed and not start.startswith(STREAM))
        self._read = self._hold_body if whole else self._read_stream

    def _hold_body(self, chunk: bytes) -> None:
        if self._size <= LARGEST_READ:
            self._parts.append(chunk)
            self._size += len(chunk)

    def _read_body(self, body: bytes) -> None:
        if self._size > LARGEST_READ:
            self._taken = self._size
            return
        value = _decoded(body)
        if self._error_status is not None or not isinstance(value, dict):
            reported = value if isinstance(value, dict) else body[:LONGEST_ERROR].decode("utf-8", "replace")
            self.error = as_error(classify(reported, status=self._error_status))
        else:
            self._understand(value)

    def _read_stream(self, chunk: bytes) -> None:
        for event in self._events.feed(chunk):
            self._read_event(event)

    def _read_event(self, event: SseEvent) -> None:
        data = event.data
        if data is None and not event.too_long:
            return
        self.events += 1
        if data == END:
            self._done = True
            return
        self._taken += len(data or b"")
        if data is None or self._taken > LARGEST_READ:
            self._done = self._done or event.name.decode("utf-8", "replace") in self._deltas.endings
            return
        value = _decoded(data)
        if event.name == b"error" and not (isinstance(value, dict) and "error" in value):
            value = {"error": value}
        if isinstance(value, dict) and self.error is None:
            self._take(value)

    def _take(self, event: JsonObject) -> None:
        piece = self._deltas.split(event)
        if piece is None:
            self._flush()
            self._understand(event)
            return
        place, text = piece
        if place != self._place or len(self._texts) >= MAX_PIECES:
            self._flush()
            self._place = place
        self._texts.append(text)
        self.begun = self.begun or bool(text)

    def _flush(self) -> None:
        """Read the pieces that were held back to be joined."""
        if self._place is not None:
            event = self._deltas.join(self._place, "".join(self._texts))
            self._place, self._texts = None, []
            self._understand(event)

    def _understand(self, event: JsonObject) -> None:
        try:
            if event.get("error") or "error" in (event.get("object"), event.get("type")):
                self.error = as_error(classify(event, status=self._error_status))
            elif self._reply.take(event):
                self.begun = True
        except ProviderError as error:
            self.error = error
            self._done = self._done or str(event.get("type")) in self._deltas.endings
        except (EverlongError, ValueError, RecursionError):
            return

    @property
    def _error_status(self) -> int | None:
        return self._status if self._status >= 400 else None


def _decoded(data: bytes) -> Json:
    """Return the JSON value; None for anything else."""
    try:
        return cast(Json, msgspec.json.decode(data))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


# --- forwarding ------------------------------------------------------------------------------------


async def forward_bytes(
    answer: UpstreamResponse,
    writer: ResponseWriter,
    headers: Callable[[], Headers],
    seen: Callable[[bytes], None] = lambda _: None,
    ending: Callable[[], None] = lambda: None,
) -> None:
    """Forward every byte of an answer, but not its end. `headers` returns ours; `seen` gets every piece.

    `ending` is called when everything has arrived, before a client can have seen the end.

    The head of a plain answer waits for the first bytes, so that an answer that breaks off there is an error and not
    half an answer. Raises ProviderError if the answer breaks off.
    """
    held, size = [], 0
    framing = answer.framing(writer.framing)
    if framing is not None:  # any kind of stream: its bytes are forwarded unchanged
        await writer.begin(answer.status, [*answer.headers, *UNBUFFERED, *headers()])
    async with aclosing(answer.chunks()) as chunks:
        async for chunk in chunks:
            seen(chunk)
            if writer.begun:
                await writer.write(chunk)
                continue
            held.append(chunk)
            size += len(chunk)
            if size > HELD:
                await writer.begin(answer.status, [*answer.headers, *headers()])
                await writer.write(b"".join(held))
    ending()
    if not writer.begun:
        await writer.send_whole(answer.status, [*answer.headers, *headers()], b"".join(held))


def _without_type(headers: Headers) -> list[tuple[bytes, bytes]]:
    return [(name, value) for name, value in headers if name != JSON_TYPE[0]]


async def _begin(
    answer: UpstreamResponse, writer: ResponseWriter, headers: Callable[[], Headers], framing: Framing
) -> None:
    """Send the head of a stream, with the upstream's content type unless the client uses another framing."""
    upstream_headers = answer.headers
    if framing is not writer.framing:
        upstream_headers = [(JSON_TYPE[0], writer.framing.content_type), *_without_type(upstream_headers)]
    await writer.begin(answer.status, [*upstream_headers, *UNBUFFERED, *headers()])


@dataclass(frozen=True, slots=True)
class Refusal:
    """What an upstream sent instead of an answer; `body` is unchanged, or None if there was no response."""

    error: ProviderError
    status: int
    headers: Headers = ()
    body: bytes | None = None

    @property
    def readable(self) -> bool:
        """Whether a client can read the body: an error, or a body in its format."""
        return self.body is not None and (self.status >= 400 or self.body.lstrip().startswith((b"{", *STREAM)))


def _short_refusal(answer: UpstreamResponse, reader: AnswerReader, held: bytes) -> Refusal | None:
    """Return the refusal in a stream that ended before its first event was complete; None if it is an answer."""
    reader.end()
    if reader.error is not None:
        return Refusal(reader.error, answer.status, answer.headers, held)
    nothing = not reader.events and not reader.complete
    return Refusal(ProviderError(BROKE_OFF, status=502), 502) if nothing else None


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
        """Return what is left; with `ending`, also an end that was held back."""
        if self._hiding is None or self._recall is None:
            return self._usage.close()
        last = self._hiding.close()
        if ending and self._hiding.alone:
            last += self._hiding.ending()
        self._recall.end_stream(self._hiding)
        return self._usage.feed(last) + self._usage.close()


@dataclass(slots=True)
class AnswerForwarder:
    """Forwards one answer. `headers` returns ours; `opening` is called directly before the first byte.

    `ending` is called with the message and its id at the provider directly before the last bytes, and `settle` is
    awaited. After those bytes the client has the whole answer and may send the next request.
    """

    format: Format
    writer: ResponseWriter
    headers: Callable[[], Headers]
    sizes: PromptSizes
    opening: Callable[[], None]
    ending: Callable[[Message, str], None]
    settle: Callable[[], Awaitable[None]]
    recall: RecallExchange | None = None
    finished: Finished | None = None
    #: Whether the answer continues in another one; then its end was not forwarded.
    continues: bool = False
    #: The provider's own id of the answer, in Responses.
    response: str = ""
    #: Why it ended early, if it did.
    broken: str = ""

    async def read_refusal(self, answer: UpstreamResponse) -> Refusal:
        """Return the refusal in an answer with an error status."""
        body = await answer.whole(LARGEST_ERROR)
        error = as_error(classify(body.decode("utf-8", "replace"), status=answer.status))
        return Refusal(error, answer.status, answer.headers, body)

    async def read_plain(self, answer: UpstreamResponse) -> tuple[bytes, Refusal | None]:
        """Return the whole plain answer, and the refusal if it is one. Nothing is forwarded yet."""
        body = await answer.whole(LARGEST_ANSWER)
        reader = AnswerReader(self.format, streamed=False, status=answer.status)
        reader.feed(body)
        # Reading a large answer takes a while, so it does not block the event loop.
        self.finished = reader.finished() if len(body) <= SMALL else await asyncio.to_thread(reader.finished)
        error = reader.error
        return body, None if error is None else Refusal(error, answer.status, answer.headers, body)

    async def forward_plain(self, answer: UpstreamResponse, body: bytes) -> None:
        """Forward a plain answer, or hold it until the answer that continues it has arrived."""
        self.opening()
        if self.finished is not None:
            self.ending(self.finished.message, self.finished.name)
            await self.settle()
        if self.recall is not None:
            if self.recall.continues_after(self.finished):
                self.continues = True
                self.recall.hold_body(body)
                return
            body = self.recall.shown_body(body)
        shown = body if len(body) > LARGEST_READ else rewritten_body(self.format.server.usage, body, self.sizes)
        if self.writer.begun:  # the head of a stream has been sent already
            await self.writer.write_events(b"data: " + shown.replace(b"\n", b" ") + b"\n\n")
            await self.writer.end()
            return
        # What could be read is JSON, whatever its content type says.
        headers = answer.headers if self.finished is None else [JSON_TYPE, *_without_type(answer.headers)]
        await self.writer.send_whole(answer.status, [*headers, *self.headers()], shown)

    async def forward_stream(self, answer: UpstreamResponse, framing: Framing) -> Refusal | None:
        """Forward a stream in this framing; return the refusal if its first event is one."""
        reader = AnswerReader(self.format, streamed=True, status=answer.status)
        try:
            return await self._forward(answer, framing, reader)
        finally:
            if self.finished is None and reader.complete:  # the client left after it had all of it
                self.finished = reader.finished()

    async def _forward(self, answer: UpstreamResponse, framing: Framing, reader: AnswerReader) -> Refusal | None:
        filters, decoder = StreamFilters(self.format, self.sizes, self.recall), framing.decoder()
        held, raw, opened = b"", b"", False
        try:
            async with aclosing(answer.chunks()) as chunks:
                async for chunk in chunks:
                    events = decoder.feed(chunk)
                    await self._read(reader, events)
                    if opened:
                        await self.writer.write_events(filters.feed(events))
                        continue
                    held, raw = held + events, raw + chunk
                    if reader.error is not None and not reader.begun:
                        return Refusal(reader.error, answer.status, answer.headers, raw)
                    if reader.events or len(held) > HELD:
                        opened = True
                        await self._open(answer, framing)
                        await self.writer.write_events(filters.feed(held))
            last = decoder.close()
            await self._read(reader, last)
            if not opened:
                refusal = _short_refusal(answer, reader, raw)
                if refusal is not None:
                    return refusal
                opened, last = True, held + last
                await self._open(answer, framing)
            await self.writer.write_events(filters.feed(last))
            self.finished = reader.finished()
            self.continues = self.recall is not None and filters.held and self.recall.continues_after(self.finished)
            self.response = filters.response
            await self.writer.write_events(filters.close(ending=not self.continues))
        except ProviderError as error:
            if not opened:
                return Refusal(error, error.status or 502)
            await self._break(str(error), error.status or 502)
            return None
        if not self.continues:
            await self._end(reader)
        return None

    async def _read(self, reader: AnswerReader, chunk: bytes) -> None:
        over = reader.complete
        reader.feed(chunk)
        if reader.complete and not over:
            message = reader.message()
            if message is not None:
                self.ending(message, reader.name)
            await self.settle()

    async def forward_unchanged(self, answer: UpstreamResponse) -> None:
        """Forward every byte unchanged, whatever the answer is. Raises ProviderError if nothing was sent yet."""
        framing = answer.framing(self.writer.framing)
        reader = AnswerReader(self.format, framing is not None, status=answer.status)
        decoder = (framing or SSE).decoder()
        accepts_event = framing is not None and framing.gap != b""
        self.opening()
        try:
            await forward_bytes(answer, self.writer, self.headers, lambda chunk: reader.feed(decoder.feed(chunk)))
            reader.feed(decoder.close())
        except ProviderError as error:
            if not self.writer.begun:
                raise
            await self._break(str(error), error.status or 502, event=accepts_event)
            return
        finally:
            self.finished = reader.finished() if reader.complete or framing is None else None
        if framing is not None:
            await self._end(reader, accepts_event=accepts_event)
        await self.writer.end()

    async def _open(self, answer: UpstreamResponse, framing: Framing) -> None:
        self.opening()
        await _begin(answer, self.writer, self.headers, framing)

    async def _end(self, reader: AnswerReader, *, accepts_event: bool = True) -> None:
        self.finished = reader.finished()
        if reader.complete or reader.error is not None:
            await self.writer.end()
        else:
            await self._break(BROKE_OFF, 502, event=accepts_event)

    async def _break(self, reason: str, status: int, *, event: bool = True) -> None:
        self.broken = reason
        if event:
            await self.writer.send_error(status, "upstream_broke_off", reason)
        else:
            # Half an answer must not look like a whole one: the connection is closed here as it was there.
            raise ConnectionAbortedError(reason)

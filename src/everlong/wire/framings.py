"""The framings of streams: server-sent events, one object per line, one JSON array, or AWS's frames.

Internally, every stream is server-sent events. A `Framing` decodes a provider's bytes into them and encodes them for a
client. Both take chunks of any size and hold at most one event.
"""

import json
import re
from abc import ABC, abstractmethod
from base64 import b64decode, b64encode
from collections.abc import Callable
from dataclasses import dataclass

from everlong.core import Json, JsonObject
from everlong.errors import ProviderError
from everlong.wire.aws_frames import Frame, FrameReader, frame_bytes
from everlong.wire.framing import DONE, LONGEST, SseReader, sse_bytes

__all__ = ["AWS_FRAMES", "JSON_ARRAY", "NDJSON", "SSE", "Decoder", "Encoder", "Framing", "framing_of"]

START, END = b"data: ", b"\n\n"
NOT_AN_OBJECT = DONE.encode()
#: Raw line ends in JSON are only between tokens, where a space means the same.
ONE_LINE = bytes.maketrans(b"\r\n", b"  ")


class Decoder(ABC):
    """Turns a stream into server-sent events. How the stream is split into chunks makes no difference."""

    @abstractmethod
    def feed(self, chunk: bytes) -> bytes:
        """Return the events, or parts of one, in a chunk."""

    def close(self) -> bytes:
        """Return the rest after the last chunk."""
        return b""


class Encoder(ABC):
    """Writes server-sent events, or parts of them, in another framing."""

    @abstractmethod
    def feed(self, events: bytes) -> bytes:
        """Return what can be written now. Raises ProviderError for an event that is too long."""

    def cut(self) -> None:  # noqa: B027 - most have nothing to drop
        """Drop an incomplete event of which no more will come."""

    def close(self) -> bytes:
        """Return the end of the stream."""
        return b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Framing:
    """One way to write a stream."""

    name: str
    #: The content type to send to clients; the types, without parameters, by which a stream is recognised.
    content_type: bytes
    types: frozenset[bytes]
    #: Bytes that every reader skips, to keep an idle stream open.
    comment: bytes
    decoder: Callable[[], Decoder]
    encoder: Callable[[], Encoder]
    #: How complete events end, and what ends a truncated one, so that another can follow it. If `gap` is empty, none
    #: can.
    ends: tuple[bytes, ...] = ()
    gap: bytes = b""
    #: Returns the body of an error response that is sent instead of a stream.
    error_body: Callable[[bytes], bytes] = lambda body: body

    def gap_after(self, tail: bytes) -> bytes:
        """Return what to write after the last bytes, before another event."""
        return b"" if not tail or tail.endswith(self.ends) else self.gap


# --- server-sent events ----------------------------------------------------------------------------


class _SameBytes(Decoder, Encoder):
    """Passes bytes through unchanged."""

    def feed(self, chunk: bytes) -> bytes:
        return chunk

    def close(self) -> bytes:
        return b""


SSE = Framing(
    name="sse",
    content_type=b"text/event-stream; charset=utf-8",
    types=frozenset({b"text/event-stream"}),
    comment=b": everlong is making room\n\n",
    decoder=_SameBytes,
    encoder=_SameBytes,
    ends=(b"\n\n", b"\r\n\r\n"),
    gap=END,
)


# --- whole events, one by one ----------------------------------------------------------------------


class _EachEncoder(Encoder):
    """Writes the data of each event once it is complete, without comments, names and the end mark."""

    def __init__(self, longest: int = LONGEST) -> None:
        self._longest = longest
        self._events = SseReader(longest)
        self._too_long = False  # events before it are returned first

    @abstractmethod
    def written(self, data: bytes) -> bytes:
        """Return one object as written."""

    def feed(self, events: bytes) -> bytes:
        out: list[bytes] = []
        for event in () if self._too_long else self._events.feed(events):
            self._too_long = event.too_long
            if event.too_long:
                break
            data = event.data
            if data and data != NOT_AN_OBJECT:
                out.append(self.written(data.translate(ONE_LINE)))
        self._too_long = self._too_long or self._events.too_long
        if self._too_long and not out:
            raise ProviderError(f"the stream has an event of more than {self._longest:,} bytes", status=502)
        return b"".join(out)

    def cut(self) -> None:
        self._events, self._too_long = SseReader(self._longest), False

    def close(self) -> bytes:
        return self.feed(b"")


# --- one object per line ---------------------------------------------------------------------------


class _LineDecoder(Decoder):
    """Turns each line into an event; blank lines, and blanks before an object, are skipped."""

    def __init__(self) -> None:
        self._inside = False

    def feed(self, chunk: bytes) -> bytes:
        *lines, rest = chunk.split(b"\n")
        out = []
        for line in lines:
            out.append(self._part(line))
            if self._inside:
                self._inside = False
                out.append(END)
        out.append(self._part(rest))
        return b"".join(out)

    def _part(self, part: bytes) -> bytes:
        part = part.replace(b"\r", b" ")
        if self._inside:
            return part
        part = part.lstrip()
        self._inside = bool(part)
        return START + part if part else b""

    def close(self) -> bytes:
        ended, self._inside = self._inside, False
        return END if ended else b""


class _LineEncoder(_EachEncoder):
    def written(self, data: bytes) -> bytes:
        return data + b"\n"


#: One object per line, as Ollama writes. For readers of lines, a blank line is a broken object, but they skip spaces.
NDJSON = Framing(
    name="ndjson",
    content_type=b"application/x-ndjson",
    types=frozenset({b"application/x-ndjson", b"application/ndjson", b"application/jsonl", b"application/x-jsonlines"}),
    comment=b" ",
    decoder=_LineDecoder,
    encoder=_LineEncoder,
    ends=(b"\n",),
    gap=b"\n",
)


# --- one JSON array --------------------------------------------------------------------------------


class _ArrayDecoder(Decoder):
    """Turns each object in an array, or a single object instead of an array, into an event."""

    #: Matches up to the end of a string or of the chunk, without a backslash at the very end.
    STRING = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)
    SIGN = re.compile(rb'["{}\[\]]')

    def __init__(self) -> None:
        self._depth = 0  # of brackets inside an object
        self._quoted = False
        self._escaped = False  # the next byte belongs to an escape

    def feed(self, chunk: bytes) -> bytes:
        out: list[bytes] = []
        at = start = 0  # everything before `start` is in `out`
        while at < len(chunk):
            if self._quoted:
                at = self._past_string(chunk, at)
                continue
            found = self.SIGN.search(chunk, at)
            if found is None:
                break
            at, sign = found.end(), found[0]
            if sign == b'"':
                self._quoted = True
            elif self._depth or sign == b"{":
                if not self._depth:
                    out.append(START)
                    start = at - 1
                self._depth += 1 if sign in b"{[" else -1
                if not self._depth:
                    out += [chunk[start:at].translate(ONE_LINE), END]
        if self._depth:
            out.append(chunk[start:].translate(ONE_LINE))
        return b"".join(out)

    def _past_string(self, chunk: bytes, at: int) -> int:
        """Return the position after the open string, or the end of the chunk."""
        if self._escaped:
            self._escaped = False
            at += 1
        found = self.STRING.match(chunk, at)
        end = found.end() if found else at
        if end >= len(chunk):
            return len(chunk)
        self._quoted = chunk[end : end + 1] != b'"'
        self._escaped = self._quoted
        return end + 1


class _ArrayEncoder(_EachEncoder):
    def __init__(self, longest: int = LONGEST) -> None:
        super().__init__(longest)
        self._begun = False

    def written(self, data: bytes) -> bytes:
        before = b",\r\n" if self._begun else b"["
        self._begun = True
        return before + data

    def close(self) -> bytes:
        return super().close() + (b"]\n" if self._begun else b"[]\n")


#: One JSON array whose items come one by one, as Gemini streams unless it is asked for events.
JSON_ARRAY = Framing(
    name="json-array",
    content_type=b"application/json; charset=utf-8",
    types=frozenset({b"application/json"}),
    comment=b" ",
    decoder=_ArrayDecoder,
    encoder=_ArrayEncoder,
    error_body=lambda body: b"[" + body + b"]\n",
)


# --- AWS's frames ----------------------------------------------------------------------------------


class _FrameDecoder(Decoder):
    """Turns each frame with an event into an event, and each exception into an error event."""

    def __init__(self) -> None:
        self._frames = FrameReader()

    def feed(self, chunk: bytes) -> bytes:
        return b"".join(map(_event_in, self._frames.feed(chunk)))

    def close(self) -> bytes:
        if not self._frames.between:
            raise ProviderError("the stream ends inside a frame", status=502)
        return b""


def _event_in(frame: Frame) -> bytes:
    """Return the event in a frame; b"" if there is none."""
    headers, body = frame.headers, _object(frame.payload)
    if headers.get(":message-type") in ("exception", "error"):
        kind = headers.get(":exception-type") or headers.get(":error-code") or "internalServerException"
        message = body.get("message") or headers.get(":error-message") or frame.payload.decode("utf-8", "replace")
        return sse_bytes("error", {"type": "error", "error": {"type": kind, "message": message}})
    held = body.get("bytes")
    if not isinstance(held, str):
        return b""
    try:
        data = b64decode(held)
    except ValueError:
        raise ProviderError("the stream has a frame that is not base64", status=502) from None
    named = _object(data).get("type")
    name = f"event: {named}\n".encode() if isinstance(named, str) and named.isidentifier() else b""
    return name + START + data.translate(ONE_LINE) + END


def _object(data: bytes) -> JsonObject:
    """Return the object in JSON; an empty one for anything else."""
    try:
        value: Json = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


class _FrameEncoder(_EachEncoder):
    def written(self, data: bytes) -> bytes:
        body = _object(data) if b'"error"' in data else {}
        error = body.get("error")
        if body.get("type") != "error" or not isinstance(error, dict):
            return _chunk(data)
        kind = str(error.get("type"))
        headers = {
            ":exception-type": kind if kind.endswith("Exception") else EXCEPTIONS.get(kind, "internalServerException"),
            ":content-type": "application/json",
            ":message-type": "exception",
        }
        return frame_bytes(headers, json.dumps({"message": str(error.get("message"))}).encode())


def _chunk(data: bytes) -> bytes:
    headers = {":event-type": "chunk", ":content-type": "application/json", ":message-type": "event"}
    return frame_bytes(headers, b'{"bytes":"' + b64encode(data) + b'"}')


#: Anthropic's names of errors -> AWS's.
EXCEPTIONS = {
    "invalid_request_error": "validationException",
    "rate_limit_error": "throttlingException",
    "overloaded_error": "serviceUnavailableException",
    "timeout_error": "modelTimeoutException",
}
#: As Bedrock streams the events of a model. The only frame that readers skip is the model's own ping event.
AWS_FRAMES = Framing(
    name="aws-frames",
    content_type=b"application/vnd.amazon.eventstream",
    types=frozenset({b"application/vnd.amazon.eventstream"}),
    comment=_chunk(b'{"type":"ping"}'),
    decoder=_FrameDecoder,
    encoder=_FrameEncoder,
)


def framing_of(content_type: bytes, expected: Framing = SSE) -> Framing | None:
    """Return the framing of a stream with this content type; None if it is not a stream.

    Example: b"text/event-stream; charset=utf-8" -> SSE; b"application/json" -> None, or JSON_ARRAY if that is expected
    """
    kind = content_type.partition(b";")[0].strip().lower()
    return next((each for each in (expected, SSE, NDJSON, AWS_FRAMES) if kind in each.types), None)

"""Server-sent events: bytes to events and back, with chunks of any size, any line ends and bounded memory.

`SseReader` returns the events unchanged, `JsonEvents` the JSON object in each. A reply that is one JSON document, or an
array of them, is not framed: `ReplyStream` reads it whole. `json_files` reads files with one record per line.
"""

import json
import re
from collections.abc import Iterator, Sequence

from everlong.core import Json, JsonObject
from everlong.errors import ProviderError

__all__ = ["BYTE_ORDER_MARK", "DONE", "JsonEvents", "SseEvent", "SseReader", "json_bytes", "sse_bytes"]

#: The data of the event that ends OpenAI's streams.
DONE = "[DONE]"
LONGEST = 64 * 1024 * 1024  # bytes of one event: enough for an image, not for a runaway server
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
LINE_END = re.compile(rb"\r\n?|\n")
BLANK = (b"\n", b"\r\n", b"\r")


class SseEvent:
    """One server-sent event: its lines, unchanged, including the blank line at the end."""

    __slots__ = ("lines", "too_long")

    def __init__(self, lines: Sequence[bytes], *, too_long: bool = False) -> None:
        self.lines = lines
        #: Whether it was too long; then its data is dropped and only its name is left.
        self.too_long = too_long

    @classmethod
    def of(cls, raw: bytes) -> "SseEvent":
        """Return the event in these bytes."""
        return cls(raw.removeprefix(BYTE_ORDER_MARK).splitlines(keepends=True))

    @property
    def raw(self) -> bytes:
        """The bytes of the event."""
        return b"".join(self.lines)

    @property
    def name(self) -> bytes:
        """The event's name; b"" if it has none."""
        return next((line[6:].strip() for line in reversed(self.lines) if line.startswith(b"event:")), b"")

    @property
    def data(self) -> bytes | None:
        """The event's data without surrounding spaces; None if it has no data line."""
        found = [line for line in self.lines if line.startswith(b"data:")]
        if len(found) == 1:
            return found[0][5:].strip()
        return b"\n".join(line[5:].rstrip(b"\r\n").removeprefix(b" ") for line in found).strip() if found else None

    def with_data(self, value: Json) -> bytes:
        """Return the bytes of the event with other data. Everything else stays."""
        others = [line.rstrip(b"\r\n") for line in self.lines if not line.startswith(b"data:") and line not in BLANK]
        return b"\n".join([*others, b"data: " + json_bytes(value)]) + b"\n\n"


class SseReader:
    """Splits a stream into events. Of an event that is too long, only the name is kept."""

    def __init__(self, longest: int = LONGEST) -> None:
        self._longest = longest
        self._parts: list[bytes] = []  # of an incomplete line
        self._lines: list[bytes] = []  # of the incomplete event
        self._size = 0  # bytes in both
        self._begun = False
        #: Whether the incomplete event is already too long.
        self.too_long = False

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """Return the events that are complete now."""
        if b"\n" not in chunk and b"\r" not in chunk:
            self._hold(chunk)
            return []
        lines = (b"".join([*self._parts, chunk]) if self._parts else chunk).splitlines(keepends=True)
        self._size -= sum(map(len, self._parts))
        self._parts = []
        rest = b"" if lines[-1].endswith(b"\n") else lines.pop()  # a final carriage return may be half a line end
        if not self._begun and lines:
            self._begun = True
            lines[0] = lines[0].removeprefix(BYTE_ORDER_MARK)
        events = [event for line in lines if (event := self._take(line)) is not None]
        if rest:
            self._hold(rest)
        return events

    def close(self) -> list[SseEvent]:
        """Return the last event if the stream ended without its blank line."""
        return self.feed(b"\n\n")

    def _take(self, line: bytes) -> SseEvent | None:
        if line in BLANK:
            event = SseEvent([*self._lines, line], too_long=self.too_long) if self._lines or self.too_long else None
            self._lines, self._size, self.too_long = [], 0, False
            return event
        self._lines.append(line)
        self._size += len(line)
        self._bound()
        return None

    def _hold(self, part: bytes) -> None:
        self._parts.append(part)
        self._size += len(part)
        self._bound()

    def _bound(self) -> None:
        if self._size > self._longest:
            self.too_long = True
            self._lines = [line for line in self._lines if line.startswith(b"event:") and len(line) < self._longest]
            self._parts = [b":"] if self._parts else []  # the rest of the line becomes a comment
            self._size = sum(map(len, self._lines)) + len(self._parts)


class JsonEvents:
    """Returns the JSON object of every complete event in a stream of chunks. Events without an object are skipped."""

    def __init__(self, longest: int = LONGEST) -> None:
        self._reader = SseReader(longest)
        self._longest = longest
        #: Whether the stream sent OpenAI's end mark.
        self.done = False

    def feed(self, chunk: bytes) -> Iterator[JsonObject]:
        """Yield the objects that are complete now. Raises ProviderError for data that is not JSON or too long."""
        return self._objects(self._reader.feed(chunk))

    def close(self) -> Iterator[JsonObject]:
        """Yield the last object if the stream ended without its blank line."""
        return self._objects(self._reader.close())

    def _objects(self, events: Sequence[SseEvent]) -> Iterator[JsonObject]:
        for event in events:
            value = self._object(event)
            if value is not None:
                yield value
        if self._reader.too_long:
            raise self._too_long()

    def _object(self, event: SseEvent) -> JsonObject | None:
        if event.too_long:
            raise self._too_long()
        text = (event.data or b"").decode("utf-8", "replace").strip()
        if text == DONE:
            self.done = True
            return None
        if not text:
            return None
        try:
            value: Json = json.loads(text)
        except (ValueError, RecursionError):
            raise ProviderError(f"the stream has an event that is not JSON: {text[:80]!r}") from None
        if event.name == b"error" and not (isinstance(value, dict) and "error" in value):
            return {"error": value}
        return value if isinstance(value, dict) else None

    def _too_long(self) -> ProviderError:
        return ProviderError(f"the stream has an event of more than {self._longest:,} bytes")


def json_bytes(value: Json) -> bytes:
    """Return JSON that any reader accepts; a lone surrogate becomes an escape."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")


def sse_bytes(name: str, data: Json) -> bytes:
    """Return the bytes of an event. Text is written unchanged, anything else as JSON. `name` may be ""."""
    text = data.encode() if isinstance(data, str) else json_bytes(data)
    return (f"event: {name}\n".encode() if name else b"") + b"data: " + text + b"\n\n"

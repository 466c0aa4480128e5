"""Server-sent events out of bytes, as they come: any split, any line end, bounded memory."""

import json
from collections.abc import Iterator

from everlong.core.messages import Json, JsonObject
from everlong.errors import ProviderError

__all__ = ["DONE", "Events"]

DONE = "[DONE]"
LONGEST = 64 * 1024 * 1024  # bytes of one event; a picture fits, a runaway server does not


class Events:
    """Feed it chunks; it gives the JSON object of every whole event. What is no event is skipped."""

    def __init__(self, longest: int = LONGEST) -> None:
        self._longest = longest
        self._rest = bytearray()
        self._looked = 0  # up to here there is no line end in the rest
        self._data: list[bytes] = []
        self._size = 0
        #: Whether the stream said that it is over, as OpenAI's do.
        self.done = False

    def feed(self, chunk: bytes) -> Iterator[JsonObject]:
        """The events that are whole now."""
        self._rest += chunk
        while (end := self._line_end()) >= 0:
            line = bytes(self._rest[:end]).rstrip(b"\r")
            del self._rest[: end + 1]
            self._looked = 0
            if line:
                self._take(line)
            elif (event := self._whole()) is not None:
                yield event
        self._check(len(self._rest) + self._size)

    def close(self) -> Iterator[JsonObject]:
        """The event that the end of the stream left without its blank line, if there is one."""
        yield from self.feed(b"\n\n")

    def _line_end(self) -> int:
        end = self._rest.find(b"\n", self._looked)
        if end < 0:
            self._looked = len(self._rest)
        return end

    def _take(self, line: bytes) -> None:
        field, _, value = line.partition(b":")
        if field == b"data":
            value = value.removeprefix(b" ")
            self._data.append(value)
            self._size += len(value)
            self._check(self._size)

    def _whole(self) -> JsonObject | None:
        text = b"\n".join(self._data).decode("utf-8", "replace").strip()
        self._data, self._size = [], 0
        if text == DONE:
            self.done = True
            return None
        if not text:
            return None
        try:
            event: Json = json.loads(text)
        except (ValueError, RecursionError):
            raise ProviderError(f"the stream holds an event that is no JSON: {text[:80]!r}") from None
        return event if isinstance(event, dict) else None

    def _check(self, size: int) -> None:
        if size > self._longest:
            raise ProviderError(f"the stream holds an event of more than {self._longest:,} bytes")

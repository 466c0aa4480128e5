"""Server-sent events out of bytes, as they come: any split, any line end, bounded memory."""

import json
import re
from collections.abc import Iterator

from everlong.core import Json, JsonObject
from everlong.errors import ProviderError

__all__ = ["BYTE_ORDER_MARK", "DONE", "Events"]

DONE = "[DONE]"
LONGEST = 64 * 1024 * 1024  # bytes of one event; a picture fits, a runaway server does not
LINE_END = re.compile(rb"\r\n?|\n")
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Events:
    """Feed it chunks; it gives the JSON object of every whole event. What is no event is skipped."""

    def __init__(self, longest: int = LONGEST) -> None:
        self._longest = longest
        self._rest = bytearray()
        self._looked = 0  # up to here there is no line end in the rest
        self._name = b""
        self._data: list[bytes] = []
        self._size = 0
        self._begun = False
        #: Whether the stream said that it is over, as OpenAI's do.
        self.done = False

    def feed(self, chunk: bytes) -> Iterator[JsonObject]:
        """The events that are whole now."""
        self._rest += chunk
        while (line := self._line()) is not None:
            if line:
                self._take(line)
            elif (event := self._whole()) is not None:
                yield event
        self._check(len(self._rest) + self._size)

    def close(self) -> Iterator[JsonObject]:
        """The event that the end of the stream left without its blank line, if there is one."""
        yield from self.feed(b"\n\n")

    def _line(self) -> bytes | None:
        """The next whole line. A carriage return at the very end may be half a line end: it waits."""
        end = LINE_END.search(self._rest, self._looked)
        if end is None or (end.end() == len(self._rest) and end[0] == b"\r"):
            self._looked = len(self._rest) if end is None else end.start()
            return None
        line = bytes(self._rest[: end.start()])
        after = end.end()
        del end  # a match holds on to the bytes it was found in, and they could not be taken away
        del self._rest[:after]
        self._looked = 0
        if not self._begun:
            self._begun = True
            return line.removeprefix(BYTE_ORDER_MARK)
        return line

    def _take(self, line: bytes) -> None:
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"event":
            self._name = value
        elif field == b"data":
            self._data.append(value)
            self._size += len(value) + 1
            self._check(self._size)

    def _whole(self) -> JsonObject | None:
        text = b"\n".join(self._data).decode("utf-8", "replace").strip()
        failed = self._name == b"error"
        self._name, self._data, self._size = b"", [], 0
        if text == DONE:
            self.done = True
            return None
        if not text:
            return None
        try:
            event: Json = json.loads(text)
        except (ValueError, RecursionError):
            raise ProviderError(f"the stream holds an event that is no JSON: {text[:80]!r}") from None
        if failed and not (isinstance(event, dict) and "error" in event):
            return {"error": event}
        return event if isinstance(event, dict) else None

    def _check(self, size: int) -> None:
        if size > self._longest:
            raise ProviderError(f"the stream holds an event of more than {self._longest:,} bytes")

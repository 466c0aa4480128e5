"""What an answer says, heard while it passes: begun or not, an error, its end, and at last the whole message.

Changes nothing and never raises. Memory is bounded: an event above a size is not looked into, and an answer above
another is not put together. Neighbouring pieces of the same text are taken as one, so that a stream of thousands of
small events costs little.
"""

from collections.abc import Callable
from typing import cast

import msgspec

from everlong.core import Json, JsonObject, Message
from everlong.engine import Finished
from everlong.errors import EverlongError, ProviderError
from everlong.wire import BYTE_ORDER_MARK, DONE, Deltas, Format, Place, as_error, classify

__all__ = ["AnswerReader"]

LARGEST_EVENT = 1024 * 1024  # bytes of one event that is looked into
LARGEST_ANSWER = 16 * 1024 * 1024  # bytes of an answer that is put together
LONGEST_ERROR = 64 * 1024  # bytes of an error page that are read
MOST_PIECES = 1_024  # that wait to be taken as one
#: How a body begins that is whole, and how one that is a stream; where neither holds, its type decides.
WHOLE = (b"{", b"[", b"<")
STREAM = (b"data:", b"event:", b"id:", b"retry:", b":")
#: Of a format whose events are all read one by one.
NO_DELTAS = Deltas(split=lambda _: None, join=lambda _place, _text: {})


class AnswerReader:
    """Reads one answer; `streamed` and `status` are what its head says."""

    def __init__(self, format_: Format, streamed: bool, *, status: int = 200) -> None:
        self._answer = format_.reader()
        self._deltas = format_.deltas or NO_DELTAS
        self._streamed = streamed
        self._status = status
        self._read: Callable[[bytes], None] = self._read_start
        self._parts: list[bytes] = []  # of a line, or of a body, that goes on
        self._size = 0  # bytes in them
        self._data: list[bytes] = []  # the event that goes on
        self._data_size = 0
        self._name = b""
        self._skips = False
        self._place: Place | None = None
        self._texts: list[str] = []
        self._taken = 0  # bytes of events that went into the answer
        self._done = False
        self._over = False
        #: Whole events so far.
        self.events = 0
        #: Whether text, thinking or a call was read.
        self.begun = False
        #: What the upstream says went wrong; of a body that is no stream only known after `end`.
        self.error: ProviderError | None = None

    @property
    def complete(self) -> bool:
        """Whether the answer said its own end."""
        return self._done or self._answer.complete

    def feed(self, chunk: bytes) -> None:
        """Read the next bytes, as they came."""
        self._read(chunk)

    def end(self) -> None:
        """There are no more bytes. A second time does nothing."""
        if self._over:
            return
        self._over = True
        if self._read == self._read_start:
            self._decide(b"".join(self._parts))
        if self._read == self._read_events:
            self._read_events(b"\n\n")
        else:
            self._read_body(b"".join(self._parts))
        self._parts = []
        self._flush()

    def finished(self) -> Finished | None:
        """The whole answer; None where it is not whole, is an error, or was too large to put together."""
        self.end()
        if not self.complete or self.error is not None or self._taken > LARGEST_ANSWER:
            return None
        try:
            return self._answer.finished()
        except (EverlongError, ValueError, RecursionError):
            return None

    def message(self) -> Message | None:
        """What was said so far; None where it could not be put together."""
        self._flush()
        if self.error is not None or self._taken > LARGEST_ANSWER:
            return None
        try:
            return self._answer.message()
        except (EverlongError, ValueError, RecursionError):
            return None

    # --- bytes ---

    def _read_start(self, chunk: bytes) -> None:
        """Until it is clear what the body is: servers that answer whole often name the type of a stream."""
        self._parts.append(chunk)
        start = b"".join(self._parts).removeprefix(BYTE_ORDER_MARK).lstrip()
        if len(start) >= len(b"retry:") or start.startswith(WHOLE):
            self._parts = []
            self._decide(start)
            self._read(start)

    def _decide(self, start: bytes) -> None:
        whole = start.startswith(WHOLE) or (not self._streamed and not start.startswith(STREAM))
        self._read = self._hold_body if whole else self._read_events

    def _hold_body(self, chunk: bytes) -> None:
        if self._size <= LARGEST_ANSWER:
            self._parts.append(chunk)
            self._size += len(chunk)

    def _read_events(self, chunk: bytes) -> None:
        if b"\n" not in chunk and b"\r" not in chunk:
            self._hold(chunk)
            return
        lines = (b"".join([*self._parts, chunk]) if self._parts else chunk).splitlines(keepends=True)
        self._parts, self._size = [], 0
        if not lines[-1].endswith(b"\n"):  # a carriage return at the very end may be half a line end
            self._hold(lines.pop())
        for line in lines:
            if line.startswith(b"data:"):
                self._data.append(line)
                self._data_size += len(line)
            elif line in (b"\n", b"\r\n", b"\r"):
                self._dispatch()
            elif line.startswith(b"event:"):
                self._name = line[6:].strip()
        if self._data_size > LARGEST_EVENT:
            self._data, self._data_size, self._skips = [], 0, True

    def _hold(self, part: bytes) -> None:
        self._parts.append(part)
        self._size += len(part)
        if self._size + self._data_size > LARGEST_EVENT:
            # What is left of the line is a comment; the event ends with the next blank line all the same.
            self._parts, self._size, self._data, self._data_size, self._skips = [b":"], 1, [], 0, True

    # --- events ---

    def _dispatch(self) -> None:
        lines, name, skips = self._data, self._name, self._skips or self._data_size > LARGEST_EVENT
        self._data, self._data_size, self._name, self._skips = [], 0, b"", False
        if skips:
            self.events += 1
            self._done = self._done or self._ends(name)
            return
        if not lines:
            return
        self.events += 1
        data = (lines[0][5:] if len(lines) == 1 else b"\n".join(line[5:].rstrip(b"\r\n") for line in lines)).strip()
        if data == DONE.encode():
            self._done = True
            return
        self._taken += len(data)
        if self._taken > LARGEST_ANSWER:
            self._done = self._done or self._ends(name)
            return
        event = _decoded(data)
        if name == b"error" and not (isinstance(event, dict) and "error" in event):
            event = {"error": event}
        if isinstance(event, dict) and self.error is None:
            self._take(event)

    def _take(self, event: JsonObject) -> None:
        piece = self._deltas.split(event)
        if piece is None:
            self._flush()
            self._understand(event)
            return
        place, text = piece
        if place != self._place or len(self._texts) >= MOST_PIECES:
            self._flush()
            self._place = place
        self._texts.append(text)
        self.begun = self.begun or bool(text)

    def _flush(self) -> None:
        """Hand the pieces on that waited for more of their kind."""
        if self._place is not None:
            event = self._deltas.join(self._place, "".join(self._texts))
            self._place, self._texts = None, []
            self._understand(event)

    def _understand(self, event: JsonObject) -> None:
        try:
            if event.get("error") or "error" in (event.get("object"), event.get("type")):
                self.error = as_error(classify(event, status=self._failed_status))
            elif self._answer.take(event):
                self.begun = True
        except ProviderError as error:
            self.error = error
            self._done = self._done or event.get("type") in self._deltas.endings
        except (EverlongError, ValueError, RecursionError):
            return

    def _read_body(self, body: bytes) -> None:
        if self._size > LARGEST_ANSWER:
            self._taken = self._size
            return
        raw = _decoded(body)
        if self._failed_status is not None or not isinstance(raw, dict):
            said = raw if isinstance(raw, dict) else body[:LONGEST_ERROR].decode("utf-8", "replace")
            self.error = as_error(classify(said, status=self._failed_status))
        else:
            self._understand(raw)

    def _ends(self, name: bytes) -> bool:
        """Whether an event of this name says by its name already that it is the last."""
        return name.decode("utf-8", "replace") in self._deltas.endings

    @property
    def _failed_status(self) -> int | None:
        return self._status if self._status >= 400 else None


def _decoded(data: bytes) -> Json:
    """The JSON that stands there; None for anything else."""
    try:
        return cast(Json, msgspec.json.decode(data))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None

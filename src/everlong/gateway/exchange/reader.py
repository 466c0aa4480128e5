"""What an answer says, heard while it passes: begun or not, an error, its end, and at last the whole message.

Changes nothing and never raises. Memory is bounded: an event above a size is not looked into, and an answer above
another is not put together. Neighbouring pieces of the same text are taken as one, so that a stream of thousands of
small events costs little.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias, cast

import msgspec

from everlong.core import Json, JsonObject, Message
from everlong.engine import Finished
from everlong.errors import EverlongError, ProviderError
from everlong.wire import BYTE_ORDER_MARK, FORMATS, as_error, classify

__all__ = ["AnswerReader"]

LARGEST_EVENT = 1024 * 1024  # bytes of one event that is looked into
LARGEST_ANSWER = 16 * 1024 * 1024  # bytes of an answer that is put together
LONGEST_ERROR = 64 * 1024  # bytes of an error page that are read
MOST_PIECES = 1_024  # that wait to be taken as one
#: How a body begins that is whole, and how one that is a stream; where neither holds, its type decides.
WHOLE = (b"{", b"[", b"<")
STREAM = (b"data:", b"event:", b"id:", b"retry:", b":")
#: Events that say the end by their name already.
ENDINGS = frozenset({b"message_stop", b"response.completed", b"response.incomplete", b"response.failed"})

#: Which text a piece belongs to. Pieces of the same place that follow each other are one.
Place: TypeAlias = tuple[str, int]


# --- pieces of text, per format ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Pieces:
    """`split` gives place and text of an event that holds nothing else, None for any other; `join` the event again."""

    split: Callable[[JsonObject], tuple[Place, str] | None]
    join: Callable[[Place, str], JsonObject]


OTHER_CHOICE: Place = ("choices", 1)  # of several answers to one chat the first is heard
CHAT_TEXTS = ("content", "reasoning_content", "reasoning")
BLOCK_TEXTS: Mapping[str, str] = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "input_json_delta": "partial_json",
}
RESPONSE_TEXTS = frozenset(
    {
        "response.function_call_arguments.delta",
        "response.output_text.delta",
        "response.reasoning_summary_text.delta",
        "response.reasoning_text.delta",
    }
)


def _chat_piece(event: JsonObject) -> tuple[Place, str] | None:
    choices = event.get("choices")
    if not isinstance(choices, list) or len(choices) != 1 or event.get("usage"):
        return None
    choice = choices[0]
    if isinstance(choice, dict) and choice.get("index"):
        return OTHER_CHOICE, ""
    if not isinstance(choice, dict) or choice.get("finish_reason") or choice.get("usage"):
        return None
    delta = choice.get("delta")
    if not isinstance(delta, dict):
        return None
    told = [(name, value) for name, value in delta.items() if value and name != "role"]
    if len(told) != 1:
        return None
    name, value = told[0]
    if isinstance(value, str) and name in CHAT_TEXTS:
        return (name, 0), value
    return _argument_piece(value) if name == "tool_calls" else None


def _argument_piece(calls: Json) -> tuple[Place, str] | None:
    """More of the arguments of a call whose name is known."""
    call = calls[0] if isinstance(calls, list) and len(calls) == 1 else None
    if not isinstance(call, dict) or call.keys() != {"index", "function"}:
        return None
    index, function = call["index"], call["function"]
    if not isinstance(index, int) or not isinstance(function, dict) or function.keys() != {"arguments"}:
        return None
    more = function["arguments"]
    return (("arguments", index), more) if isinstance(more, str) else None


def _chat_event(place: Place, text: str) -> JsonObject:
    name, index = place
    if place == OTHER_CHOICE:
        return {}
    delta: JsonObject = {name: text}
    if name == "arguments":
        delta = {"tool_calls": [{"index": index, "function": delta}]}
    return {"choices": [{"index": 0, "delta": delta}]}


def _block_piece(event: JsonObject) -> tuple[Place, str] | None:
    delta, index = event.get("delta"), event.get("index")
    if event.get("type") != "content_block_delta" or not isinstance(delta, dict) or not isinstance(index, int):
        return None
    kind = delta.get("type")
    text = delta.get(BLOCK_TEXTS[kind]) if isinstance(kind, str) and kind in BLOCK_TEXTS else None
    return ((cast(str, kind), index), text) if isinstance(text, str) and len(delta) == 2 else None


def _block_event(place: Place, text: str) -> JsonObject:
    kind, index = place
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, BLOCK_TEXTS[kind]: text}}


def _response_piece(event: JsonObject) -> tuple[Place, str] | None:
    kind, text, index = event.get("type"), event.get("delta"), event.get("output_index")
    if not isinstance(kind, str) or kind not in RESPONSE_TEXTS:
        return None
    return ((kind, index), text) if isinstance(text, str) and isinstance(index, int) else None


def _response_event(place: Place, text: str) -> JsonObject:
    return {"type": place[0], "output_index": place[1], "delta": text}


PIECES: Mapping[str, _Pieces] = {
    "openai-chat": _Pieces(_chat_piece, _chat_event),
    "anthropic": _Pieces(_block_piece, _block_event),
    "openai-responses": _Pieces(_response_piece, _response_event),
}


# --- the listener --------------------------------------------------------------------------------


class AnswerReader:
    """Hears an answer in format `fmt`; `streamed` and `status` are what its head says."""

    def __init__(self, fmt: str, streamed: bool, *, status: int = 200) -> None:
        self._answer = FORMATS[fmt].reader()
        self._pieces = PIECES[fmt]
        self._streamed = streamed
        self._status = status
        self._hears: Callable[[bytes], None] = self._hear_start
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
        #: Whether text, thinking or a call was heard.
        self.begun = False
        #: What the upstream says went wrong; of a body that is no stream only known after `end`.
        self.error: ProviderError | None = None

    @property
    def complete(self) -> bool:
        """Whether the answer said its own end."""
        return self._done or self._answer.complete

    def hear(self, chunk: bytes) -> None:
        """The next bytes, as they came."""
        self._hears(chunk)

    def end(self) -> None:
        """There are no more bytes. A second time does nothing."""
        if self._over:
            return
        self._over = True
        if self._hears == self._hear_start:
            self._decide(b"".join(self._parts))
        if self._hears == self._hear_events:
            self._hear_events(b"\n\n")
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

    def _hear_start(self, chunk: bytes) -> None:
        """Until it is clear what the body is: servers that answer whole often name the type of a stream."""
        self._parts.append(chunk)
        start = b"".join(self._parts).removeprefix(BYTE_ORDER_MARK).lstrip()
        if len(start) >= len(b"retry:") or start.startswith(WHOLE):
            self._parts = []
            self._decide(start)
            self._hears(start)

    def _decide(self, start: bytes) -> None:
        whole = start.startswith(WHOLE) or (not self._streamed and not start.startswith(STREAM))
        self._hears = self._hear_body if whole else self._hear_events

    def _hear_body(self, chunk: bytes) -> None:
        if self._size <= LARGEST_ANSWER:
            self._parts.append(chunk)
            self._size += len(chunk)

    def _hear_events(self, chunk: bytes) -> None:
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
            self._done = self._done or name in ENDINGS
            return
        if not lines:
            return
        self.events += 1
        data = (lines[0][5:] if len(lines) == 1 else b"\n".join(line[5:].rstrip(b"\r\n") for line in lines)).strip()
        if data == b"[DONE]":
            self._done = True
            return
        self._taken += len(data)
        if self._taken > LARGEST_ANSWER:
            self._done = self._done or name in ENDINGS
            return
        event = _decoded(data)
        if name == b"error" and not (isinstance(event, dict) and "error" in event):
            event = {"error": event}
        if isinstance(event, dict) and self.error is None:
            self._take(event)

    def _take(self, event: JsonObject) -> None:
        piece = self._pieces.split(event)
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
            event = self._pieces.join(self._place, "".join(self._texts))
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
            self._done = self._done or event.get("type") == "response.failed"
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

    @property
    def _failed_status(self) -> int | None:
        return self._status if self._status >= 400 else None


def _decoded(data: bytes) -> Json:
    """The JSON that stands there; None for anything else."""
    try:
        return cast(Json, msgspec.json.decode(data))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None

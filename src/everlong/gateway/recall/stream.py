"""A stream of server-sent events without the calls of our tool, byte for byte where there are none.

    upstream ──▶ Hiding ──▶ client        our tool alone called: the end is held back, the model gets its result,
    upstream ──▶ Continuing ──▶ client    and the stream of the continuation follows as if it were one answer

Events are passed on when they are whole, which is when a client can read them. An event that is edited is written
anew; all others are the upstream's bytes.
"""

import json
import re
from collections.abc import Mapping

from everlong.core import Json, JsonObject
from everlong.errors import ProviderError
from everlong.gateway.recall.chat_stream import ChatEditing
from everlong.gateway.recall.editor import Event, Shown, StreamEditor
from everlong.gateway.recall.messages_stream import MessagesEditing
from everlong.gateway.recall.responses_stream import ResponsesEditing
from everlong.wire import BYTE_ORDER_MARK, DONE

__all__ = ["ContinuedFilter", "RecallFilter", "json_bytes"]

#: Two line ends in a row. The groups are atomic: a carriage return and its line feed are one.
EVENT_END = re.compile(rb"(?>\r\n|\n|\r)(?>\r\n|\n|\r)")
LINE_END = re.compile(rb"\r\n|\n|\r")
#: Bytes of an event that is waited for. No event that begins a call is larger; once all must be read, the second.
WAITED_FOR = 1024 * 1024
READ = 64 * 1024 * 1024

EDITINGS: Mapping[str, type[StreamEditor]] = {
    "anthropic": MessagesEditing,
    "openai-chat": ChatEditing,
    "openai-responses": ResponsesEditing,
}


class RecallFilter:
    """Feed it the chunks of a stream; it gives what the client gets."""

    def __init__(self, fmt: str, earlier: Shown | None = None) -> None:
        self._editing = EDITINGS[fmt](earlier)
        self._rest = bytearray()
        self._looked = 0  # up to here no event ends in the rest
        self._passing = False  # in the middle of an event that was too large to wait for

    @property
    def called(self) -> bool:
        """Whether our tool was called."""
        return self._editing.called

    @property
    def alone(self) -> bool:
        """Whether our tool alone was called and the answer is over: its end is held back."""
        return self._editing.held

    @property
    def response(self) -> str:
        """The id under which the provider keeps this answer, in Responses, once it is over; "" elsewhere."""
        return self._editing.response

    @property
    def shown(self) -> Shown:
        """What the client has seen, for `Continuing`."""
        return self._editing.shown()

    def feed(self, chunk: bytes) -> bytes:
        """What can go to the client now."""
        if not self._rest and self._is_plain(chunk):
            return chunk
        self._rest += chunk
        out: list[bytes] = []
        while (event := self._event()) is not None:
            out.append(self._edited(event))
        self._bound(out)
        return b"".join(out)

    def close(self) -> bytes:
        """What the end of the stream left without its blank line."""
        rest = bytes(self._rest)
        self._rest.clear()
        return rest if self._passing or not rest else self._edited(rest)

    def ending(self) -> bytes:
        """The end that was held back, as of an answer that called nothing: for when there is no continuation."""
        return b"".join(_written(event) for event in self._editing.ending())

    def _is_plain(self, chunk: bytes) -> bool:
        """Whether it is whole events, none of interest: by far the most are."""
        whole = not self._editing.touched and not self._passing and chunk.endswith((b"\n\n", b"\r\n\r\n"))
        return whole and not any(sign in chunk for sign in self._editing.SIGNS)

    def _event(self) -> bytes | None:
        end = EVENT_END.search(self._rest, self._looked)
        if end is None:
            self._looked = max(0, len(self._rest) - 3)
            return None
        after = end.end()
        del end  # a match holds on to the bytes it was found in, and they could not be taken away
        event = bytes(self._rest[:after])
        del self._rest[:after]
        self._looked = 0
        return event

    def _edited(self, event: bytes) -> bytes:
        if self._passing:
            self._passing = False
            return event
        editing = self._editing
        if not editing.touched and not any(sign in event for sign in editing.SIGNS):
            return event
        data = _data(event)
        if data == DONE.encode():
            editing.held = editing.held or editing.alone
            return b"" if editing.held else event
        value = _json_object(data)
        if value is None:
            return event
        edited = editing.edited(value)
        if edited is None:
            return b""
        return event if edited is value else _rewritten(event, edited)

    def _bound(self, out: list[bytes]) -> None:
        size = len(self._rest)
        if self._editing.touched and not self._passing:
            if size > READ:
                raise ProviderError(f"the stream holds an event of more than {READ:,} bytes")
        elif self._passing or size > WAITED_FOR:
            written = len(self._rest.rstrip(b"\r\n"))  # line ends wait: they may be half of the event's end
            out.append(bytes(self._rest[:written]))
            del self._rest[:written]
            self._passing, self._looked = True, 0


class ContinuedFilter(RecallFilter):
    """The stream of a continuation, going on where an earlier one was held back; our tool is hidden here too."""

    def __init__(self, fmt: str, earlier: Shown) -> None:
        super().__init__(fmt, earlier)


# --- one event -------------------------------------------------------------------------------------


def json_bytes(value: Json) -> bytes:
    """JSON that any reader takes; half of a surrogate pair becomes its escape."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")


def _lines(event: bytes) -> list[bytes]:
    return [line for line in LINE_END.split(event.removeprefix(BYTE_ORDER_MARK)) if line]


def _data(event: bytes) -> bytes:
    values = [line[5:].removeprefix(b" ") for line in _lines(event) if line.startswith(b"data:")]
    return b"\n".join(values).strip()


def _json_object(data: bytes) -> JsonObject | None:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _rewritten(event: bytes, value: JsonObject) -> bytes:
    """The event with other data; its name and whatever else stands in it stay."""
    others = [line for line in _lines(event) if not line.startswith(b"data:")]
    return b"\n".join([*others, b"data: " + json_bytes(value)]) + b"\n\n"


def _written(event: Event) -> bytes:
    name, data = event
    text = data.encode() if isinstance(data, str) else json_bytes(data)
    return (f"event: {name}\n".encode() if name else b"") + b"data: " + text + b"\n\n"

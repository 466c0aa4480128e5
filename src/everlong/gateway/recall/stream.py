"""Answers without the calls of the recall tool: streams (byte for byte if there are none) and whole bodies.

    upstream ──▶ RecallFilter ──▶ client    our tool alone called: the end is held back, the model gets its result,
    upstream ──▶ RecallFilter ──▶ client    and the stream of the continuation follows as if it were one answer

Events are passed on when they are whole, which is when a client can read them. An edited event is written
again; all others are the upstream's bytes.
"""

import json
import re

from everlong.core import JsonObject
from everlong.errors import ProviderError
from everlong.gateway.recall.tool import NAME
from everlong.wire import DONE, HiddenTool, Shown, SseEvent, added_usage, json_bytes, sse_bytes

__all__ = ["RecallFilter", "hidden_body", "joined_body"]

#: Two consecutive line ends. The groups are atomic: a carriage return and its line feed are one line end.
EVENT_END = re.compile(rb"(?>\r\n|\n|\r)(?>\r\n|\n|\r)")
#: The largest events that are waited for, in bytes. No event that begins a call is larger than the first limit; the
#: second applies once every event has to be read.
WAITED_FOR = 1024 * 1024
READ = 64 * 1024 * 1024


class RecallFilter:
    """Takes the chunks of a stream and returns what the client gets. With `earlier` it continues that stream."""

    def __init__(self, tool: HiddenTool, earlier: Shown | None = None) -> None:
        self._editor = tool.editor(NAME, earlier)
        self._rest = bytearray()
        self._looked = 0  # no event ends before this position in the rest
        self._passing = False  # inside an event that was too large to wait for

    @property
    def called(self) -> bool:
        """Whether our tool was called."""
        return self._editor.called

    @property
    def alone(self) -> bool:
        """Whether only our tool was called and the answer is complete; then its end is held back."""
        return self._editor.held

    @property
    def response(self) -> str:
        """The provider's id of this answer in Responses, once it is complete; "" in other formats."""
        return self._editor.response

    @property
    def shown(self) -> Shown:
        """What the client has seen, for the filter of the next stream."""
        return self._editor.shown()

    def feed(self, chunk: bytes) -> bytes:
        """Return what can go to the client now."""
        if not self._rest and self._is_plain(chunk):
            return chunk
        self._rest += chunk
        out: list[bytes] = []
        while (event := self._event()) is not None:
            out.append(self._edited(event))
        self._bound(out)
        return b"".join(out)

    def close(self) -> bytes:
        """Return what is left at the end of the stream: an event without its blank line."""
        rest = bytes(self._rest)
        self._rest.clear()
        return rest if self._passing or not rest else self._edited(rest)

    def ending(self) -> bytes:
        """Return the end that was held back, as if nothing had been called: used if there is no continuation."""
        return b"".join(sse_bytes(name, data) for name, data in self._editor.ending())

    def _is_plain(self, chunk: bytes) -> bool:
        """Whether the chunk is complete events of no interest, as most chunks are."""
        whole = not self._editor.touched and not self._passing and chunk.endswith((b"\n\n", b"\r\n\r\n"))
        return whole and not any(sign in chunk for sign in self._editor.SIGNS)

    def _event(self) -> bytes | None:
        end = EVENT_END.search(self._rest, self._looked)
        if end is None:
            self._looked = max(0, len(self._rest) - 3)
            return None
        after = end.end()
        del end  # a match keeps the buffer locked, so that bytes could not be deleted
        event = bytes(self._rest[:after])
        del self._rest[:after]
        self._looked = 0
        return event

    def _edited(self, event: bytes) -> bytes:
        if self._passing:
            self._passing = False
            return event
        editor = self._editor
        if not editor.touched and not any(sign in event for sign in editor.SIGNS):
            return event
        read = SseEvent.of(event)
        data = read.data or b""
        if data == DONE.encode():
            editor.held = editor.held or editor.alone
            return b"" if editor.held else event
        value = _json_object(data)
        if value is None:
            return event
        edited = editor.edited(value)
        if edited is None:
            return b""
        return event if edited is value else read.with_data(edited)

    def _bound(self, out: list[bytes]) -> None:
        size = len(self._rest)
        if self._editor.touched and not self._passing:
            if size > READ:
                raise ProviderError(f"the stream has an event of more than {READ:,} bytes")
        elif self._passing or size > WAITED_FOR:
            written = len(self._rest.rstrip(b"\r\n"))  # line ends wait, because they may be half of an event's end
            out.append(bytes(self._rest[:written]))
            del self._rest[:written]
            self._passing, self._looked = True, 0


# --- whole answers ---------------------------------------------------------------------------------


def hidden_body(tool: HiddenTool, body: bytes) -> bytes:
    """Return the answer without calls of our tool; unchanged if there are none. With no call left, it just ends."""
    if NAME.encode() not in body:
        return body
    answer = _json_object(body)
    if answer is None:
        return body
    hidden = tool.hide(answer, NAME)
    return body if hidden is answer else json_bytes(hidden)


def joined_body(tool: HiddenTool, first: bytes, second: bytes) -> bytes:
    """Return two answers as one: the first, and the second, which continues after its call of our tool."""
    one, other = _json_object(first), _json_object(second)
    if one is None or other is None:
        return second
    one, other = tool.hide(one, NAME), tool.hide(other, NAME)
    whole = tool.join(one, other)
    if isinstance(one.get("usage"), dict) or isinstance(other.get("usage"), dict):
        whole["usage"] = added_usage(one.get("usage"), other.get("usage"))
    return json_bytes(whole)


def _json_object(data: bytes) -> JsonObject | None:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None

"""Shared code for requests to models and for reading their replies. No I/O."""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from everlong.core import Json, JsonObject, Message
from everlong.errors import ProviderError
from everlong.wire.fields import load
from everlong.wire.formats.validation import clean_json
from everlong.wire.framing import BYTE_ORDER_MARK, JsonEvents
from everlong.wire.refusals.classify import as_error, classify
from everlong.wire.refusals.reasons import Reason
from everlong.wire.replies import Finished, Reply, Request
from everlong.wire.usage import Usage, merged, read_usage

__all__ = ["STOPS", "Outgoing", "ReplyReader", "ReplyStream", "body_fields", "finished_from", "text_of", "tools_of"]

LARGEST_REPLY = 64 * 1024 * 1024  # bytes of a reply that is not streamed
START = 4_096  # first bytes of a body, kept to report what it is if it is not a reply
#: How JSON and web pages begin, but never a stream of events.
WHOLE = (b"{", b"[", b"<")

#: The providers' stop reasons -> our own.
STOPS: Mapping[str, str] = {
    "stop": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "completed": "stop",
    "STOP": "stop",
    "length": "length",
    "max_tokens": "length",
    "max_output_tokens": "length",
    "MAX_TOKENS": "length",
    "model_length": "length",
    "tool_calls": "calls",
    "function_call": "calls",
    "tool_use": "calls",
    "content_filter": "refusal",
    "refusal": "refusal",
    "SAFETY": "refusal",
    "PROHIBITED_CONTENT": "refusal",
    "BLOCKLIST": "refusal",
    "RECITATION": "refusal",
    "SPII": "refusal",
}


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A request as it is sent: its path below the endpoint's address, its body and its headers."""

    path: str
    body: JsonObject
    headers: Mapping[str, str]


class ReplyReader(ABC):
    """Reads one reply: takes the events of its stream one by one and returns their pieces."""

    def __init__(self) -> None:
        self.usage: Usage | None = None
        self.stop = ""
        #: The provider's id of the answer, if a later request can name it.
        self.name = ""
        #: Whether the stream said that it is complete; if it just ends, it was cut off.
        self.complete = False

    @abstractmethod
    def take(self, event: JsonObject) -> list[Reply]:
        """Return the pieces of one event. Raises ProviderError for an error that comes as an event."""

    @abstractmethod
    def message(self) -> Message:
        """Return the answer so far as one message."""

    def finished(self) -> Finished:
        """Return the last piece. An answer with calls has the stop reason "calls", even if the server says "stop"."""
        message, stop = self.message(), STOPS.get(self.stop, self.stop)
        stop = "calls" if message.calls and stop in ("", "stop") else stop
        return Finished(message, self.usage, stop, self.name)

    def note_usage(self, raw: Json, style: str) -> None:
        """Add a usage report. Streams send several, and each figure only grows."""
        reported = read_usage(raw, style)
        if reported is not None:
            self.usage = reported if self.usage is None else merged(self.usage, reported)


class ReplyStream:
    """The body of a successful response, read as what it is: a stream of events, a whole reply, or an error.

    The content type is ignored, because servers that answer with a whole reply or a page often declare a stream.
    """

    def __init__(self, reader: ReplyReader) -> None:
        self._reader = reader
        self._events = JsonEvents()
        self._start = b""
        self._body = bytearray()
        self._seen = False  # whether there was an event

    def feed(self, chunk: bytes) -> Iterator[Reply]:
        """Return the pieces in a chunk. Raises ProviderError for an error."""
        if len(self._start) < START and not self._seen:
            self._start = (self._start + chunk).removeprefix(BYTE_ORDER_MARK).lstrip()[:START]
        if self._start.startswith(WHOLE) and not self._seen:
            self._body += chunk
            if len(self._body) > LARGEST_REPLY:
                raise ProviderError(f"the answer has more than {LARGEST_REPLY:,} bytes")
            return
        for event in self._events.feed(chunk):
            yield from self._take(event)

    def close(self) -> Iterator[Reply]:
        """Return the remaining pieces. Raises ProviderError if the end of the reply is missing."""
        for event in [*self._whole(), *self._events.close()]:
            yield from self._take(event)
        if not self._reader.complete and not self._events.done:
            raise self._incomplete()

    def _whole(self) -> Iterator[Json]:
        """Yield the objects of a JSON body or array; nothing if the body is not JSON."""
        try:
            raw = json.loads(self._body.decode("utf-8-sig", "replace")) if self._body else []
        except (ValueError, RecursionError):
            return
        yield from raw if isinstance(raw, list) else [raw]

    def _take(self, event: Json) -> list[Reply]:
        self._seen = True
        if not isinstance(event, dict):
            return []
        if event.get("error") or "error" in (event.get("object"), event.get("type")):
            raise as_error(classify(event))
        return self._reader.take(event)

    def _incomplete(self) -> ProviderError:
        if self._start and (not self._seen or self._start.startswith(WHOLE)):
            return as_error(classify(self._start.decode("utf-8", "replace")))
        return ProviderError("the stream ended before the answer was complete", reason=Reason.LOST)


def finished_from(reader: ReplyReader, events: Iterable[Json]) -> Finished:
    """Return a complete reply, from one object or the events of a stream. Raises ProviderError for an error."""
    for event in events:
        if isinstance(event, dict) and event.get("error"):
            raise as_error(classify(event))
        if isinstance(event, dict):
            reader.take(event)
    return reader.finished()


def body_fields(request: Request) -> JsonObject:
    """Return the caller's own fields of the body, cleaned for writing. Our fields override them."""
    extra = load(clean_json(request.extra)) if request.extra else {}
    return dict(extra) if isinstance(extra, dict) else {}


def tools_of(request: Request) -> list[Json]:
    """Return the tool schemas, decoded and cleaned for writing."""
    return [load(clean_json(tool)) for tool in request.tools]


def text_of(value: Json) -> str:
    """Return the value if it is text, otherwise ""."""
    return value if isinstance(value, str) else ""

"""What the formats share in asking a model and in reading its reply. Nothing here waits for anything."""

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
from everlong.wire.replies import Finished, Reply, Request
from everlong.wire.usage import Usage, merged, read_usage

__all__ = ["STOPS", "Outgoing", "ReplyReader", "ReplyStream", "body_fields", "finished_from", "text_of", "tools_of"]

LARGEST_REPLY = 64 * 1024 * 1024  # bytes of a reply that is not streamed
START = 4_096  # bytes that are kept of a body that is neither
#: What JSON and pages begin with, and no stream of events.
WHOLE = (b"{", b"[", b"<")

#: The words of the providers for how a reply ended, and the one form of each.
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
    """A request as it goes out: its path below the endpoint's address, body and headers."""

    path: str
    body: JsonObject
    headers: Mapping[str, str]


class ReplyReader(ABC):
    """Reads one reply: takes the events of its stream one by one and gives the pieces they hold."""

    def __init__(self) -> None:
        self.usage: Usage | None = None
        self.stop = ""
        #: The provider's id of the whole answer, if it may be asked for it again.
        self.name = ""
        #: Whether the stream said itself that it is over; one that just ends was cut.
        self.complete = False

    @abstractmethod
    def take(self, event: JsonObject) -> list[Reply]:
        """The pieces in one event. Raises ProviderError for an error that comes as an event."""

    @abstractmethod
    def message(self) -> Message:
        """Everything said so far as one message."""

    def finished(self) -> Finished:
        """The last piece. An answer with calls ended because of them, whatever reason the server gives."""
        message, stop = self.message(), STOPS.get(self.stop, self.stop)
        stop = "calls" if message.calls and stop in ("", "stop") else stop
        return Finished(message, self.usage, stop, self.name)

    def note_usage(self, raw: Json, style: str) -> None:
        """Take in a report; streams send several, each figure only grows."""
        reported = read_usage(raw, style)
        if reported is not None:
            self.usage = reported if self.usage is None else merged(self.usage, reported)


class ReplyStream:
    """The body of a success, read as what it is: a stream of events, a whole reply, or an error after all.

    The content type is not asked: servers that answer whole, or with a page, often name the type of a stream.
    """

    def __init__(self, reader: ReplyReader) -> None:
        self._reader = reader
        self._events = JsonEvents()
        self._start = b""
        self._body = bytearray()
        self._seen = False  # an event

    def feed(self, chunk: bytes) -> Iterator[Reply]:
        """The pieces that came with a chunk. Raises ProviderError for an error."""
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
        """The pieces that were left at the end. Raises ProviderError if the end of the reply is missing."""
        for event in [*self._whole(), *self._events.close()]:
            yield from self._take(event)
        if not self._reader.complete and not self._events.done:
            raise self._incomplete()

    def _whole(self) -> Iterator[Json]:
        """The objects of a body that is JSON, or an array of them; nothing of one that is not."""
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
        return ProviderError("the stream broke off before its end")


def finished_from(reader: ReplyReader, events: Iterable[Json]) -> Finished:
    """Return a reply that came as a whole: one object, or the events of a stream. Raises ProviderError for an error."""
    for event in events:
        if isinstance(event, dict) and event.get("error"):
            raise as_error(classify(event))
        if isinstance(event, dict):
            reader.take(event)
    return reader.finished()


def body_fields(request: Request) -> JsonObject:
    """The caller's own fields of the body, as they can be written; ours go over them."""
    extra = load(clean_json(request.extra)) if request.extra else {}
    return dict(extra) if isinstance(extra, dict) else {}


def tools_of(request: Request) -> list[Json]:
    """The tool schemas, decoded, as they can be written."""
    return [load(clean_json(tool)) for tool in request.tools]


def text_of(value: Json) -> str:
    """The value if it is text, else ""."""
    return value if isinstance(value, str) else ""

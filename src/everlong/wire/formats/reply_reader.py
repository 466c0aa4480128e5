"""What the formats share in asking a model and in reading its reply. Nothing here waits for anything."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

from everlong.core import Json, JsonObject, Message
from everlong.wire.fields import load
from everlong.wire.replies import Finished, Reply, Request
from everlong.wire.usage import Usage, merged, read_usage

__all__ = ["STOPS", "Outgoing", "ReplyReader", "body_fields", "text_of", "tools_of"]

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
    """A request as it goes out: where to, below the endpoint's address, and what it carries."""

    path: str
    body: JsonObject
    headers: Mapping[str, str]


class ReplyReader(ABC):
    """Reads one reply: takes the events of its stream one by one and gives the pieces they hold."""

    def __init__(self) -> None:
        self.usage: Usage | None = None
        self.stop = ""
        #: Whether the stream said itself that it is over; one that just ends was cut.
        self.complete = False

    @abstractmethod
    def take(self, event: JsonObject) -> list[Reply]:
        """The pieces in one event. Raises ProviderError for an error that comes as an event."""

    @abstractmethod
    def message(self) -> Message:
        """Everything said so far as one message."""

    def finished(self) -> Finished:
        """The last piece. An answer with calls ended for them, whatever the server calls it."""
        message, stop = self.message(), STOPS.get(self.stop, self.stop)
        return Finished(message, self.usage, "calls" if message.calls and stop in ("", "stop") else stop)

    def note_usage(self, raw: Json, style: str) -> None:
        """Take in a report; streams send several, each figure only grows."""
        reported = read_usage(raw, style)
        if reported is not None:
            self.usage = reported if self.usage is None else merged(self.usage, reported)


def body_fields(request: Request) -> JsonObject:
    """The caller's own fields of the body; ours go over them."""
    extra = load(request.extra) if request.extra else {}
    return dict(extra) if isinstance(extra, dict) else {}


def tools_of(request: Request) -> list[Json]:
    """The tool schemas, decoded."""
    return [load(tool) for tool in request.tools]


def text_of(value: Json) -> str:
    """The text that stands there; "" for anything else."""
    return value if isinstance(value, str) else ""

"""What a server between clients and providers has to know of a format: errors, one form, usage, opaque parts, tools.

A format with a `ServerSide` can be served by the gateway; its folder says everything else.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from everlong.core import Json, JsonObject
from everlong.wire.formats.hidden_tool import Event, HiddenTool
from everlong.wire.formats.opaque import OpaqueParts

__all__ = ["Canonical", "Errors", "ServerSide", "UsageShape"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """How the format's maker tells errors. Messages hold only what can be written as UTF-8."""

    #: The body of an error response: HTTP status, kind for programs, message for people.
    body: Callable[[int, str, str], JsonObject]
    #: The events that end a stream which has begun, on which clients raise; the same, and the next event's number.
    events: Callable[[int, str, str, int], list[Event]]
    #: The words for a request that does not fit: the limit and the size in tokens, where they are known.
    overflow: Callable[[int | None, int | None], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Canonical:
    """How the ways to write a message become one, so that a conversation is found again whoever resends it."""

    #: A message as it is forwarded; the order of its fields is not decided here.
    form: Callable[[JsonObject], JsonObject]
    #: A message in that form as it is compared, where that differs: what says the same is the same.
    compared: Callable[[JsonObject], JsonObject] | None = None
    #: Fields that say nothing about what was said: streams leave them behind, servers name things with them.
    noise: frozenset[str] = frozenset()
    #: The system text that stands in a field of its own, as it is compared, where that differs.
    system: Callable[[Json], Json] | None = None
    #: Whether an object of this type and role is the assistant's, where several in a row are one message.
    of_assistant: Callable[[str | None, str | None], bool] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageShape:
    """Where an answer keeps its usage: its fields, and `beside` those that the prompt's figure leaves out.

    An event with usage holds one of `marks`. A whole answer stands in the event's field `inner`, if it has that, and is
    known by one of `whole` in field `known_by`. Where it `repeats` the answer it may be long.
    """

    prompt: str
    output: str
    total: str = ""
    details: str = ""
    beside: tuple[str, ...] = ()
    inner: str = ""
    known_by: str
    whole: tuple[bytes, ...]
    marks: tuple[bytes, ...]
    repeats: bool = False
    #: Fields that all chunks share, where usage comes as a chunk of its own that a server may leave out.
    frame: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSide:
    """One format as clients speak it to a server between them and the provider."""

    #: The provider whose own format it is.
    maker: str
    #: A header that only clients of this format send.
    client_header: bytes = b""
    #: The answer of the API's `count_path`, given the tokens.
    counted: Callable[[int], JsonObject] = lambda tokens: {"tokens": tokens}
    #: The message that a plain text stands for where a list of messages may be one.
    text_message: Callable[[str], JsonObject] | None = None
    #: The field that names an earlier answer which the provider holds.
    continues: str = ""
    errors: Errors
    canonical: Canonical
    usage: UsageShape
    opaque: OpaqueParts
    tool: HiddenTool


def error_type(types: Mapping[int, str], status: int) -> str:
    """Return the name of a status; one without a name is told as 400 or 500."""
    return types.get(status) or types[500 if status >= 500 else 400]


def writable(message: str) -> str:
    """Return the message without what cannot be written as UTF-8: an error may repeat half a character."""
    return message.encode(errors="replace").decode()

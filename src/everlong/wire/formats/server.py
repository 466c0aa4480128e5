"""What a server between clients and providers needs to know about a format.

Errors, the canonical form of messages, usage, opaque parts and hidden tools. A format with a `ServerSide` is served by
the gateway, whose table of providers says which upstreams speak it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from everlong.core import Json, JsonObject
from everlong.wire.formats.hidden_tool import Event, HiddenTool
from everlong.wire.formats.opaque import OpaqueParts

__all__ = ["Canonical", "Errors", "Held", "ServerSide", "UsageShape"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """How the format's maker writes errors. Messages hold only what can be written as UTF-8."""

    #: The body of an error response: HTTP status, kind for programs, message for people.
    body: Callable[[int, str, str], JsonObject]
    #: The events that end a stream with an error, so that clients raise: the same arguments, and the next event's
    #: number.
    events: Callable[[int, str, str, int], list[Event]]
    #: The message for a request that is too long: the limit and the size in tokens, None if not known.
    overflow: Callable[[int | None, int | None], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Canonical:
    """The one form of a message that can be written in several ways, so that a resent conversation is recognised."""

    #: A message as it is forwarded; the order of its fields is not decided here.
    form: Callable[[JsonObject], JsonObject]
    #: A message in that form as it is compared, if that differs: messages that say the same become equal.
    compared: Callable[[JsonObject], JsonObject] | None = None
    #: Fields that say nothing about the content, such as ids that servers add and leftovers of streams.
    noise: frozenset[str] = frozenset()
    #: The system text of a field of its own as it is compared, if that differs.
    system: Callable[[Json], Json] | None = None
    #: Whether an object of this type and role is the assistant's, if several in a row are one message.
    of_assistant: Callable[[str | None, str | None], bool] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageShape:
    """How an answer reports its usage: the names of the fields, and in `beside` those that `prompt` does not include.

    An event with usage contains one of `marks`. The whole answer is the event itself, or its field `inner` if it has
    one; its field `known_by` holds one of `whole`. If the event `repeats` the answer, it may be long.
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
    #: Fields that all chunks share, if usage comes as a chunk of its own that a server may leave out.
    frame: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """How the provider holds conversations for its clients: such a request has only what is new.

    Fields of a request, and the paths below the base address at which the provider shows what it holds.
    """

    #: The field that names an earlier answer, and the one that names a conversation: a text, or an object with an id.
    previous: str
    conversation: str
    #: The field that is false if the answer is not to be kept.
    store: str
    #: The paths of kept answers and of conversations; below one of them, of what was said.
    answers: str
    inputs: str
    conversations: str
    items: str
    #: The field of an answer that holds what was said, and the values of `status` of one that is whole.
    output: str
    whole: frozenset[str]
    #: The items of an answer as they may be sent again, to whoever does not hold it.
    resent: Callable[[Sequence[Json]], list[JsonObject]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSide:
    """One format as clients speak it to a server between them and the provider."""

    #: The provider whose own format it is, and the name by which people know its clients.
    maker: str
    title: str
    #: How the base URL of such a client usually ends.
    client_base: str = ""
    #: A header that only clients of this format send.
    client_header: bytes = b""
    #: The answer of the API's `count_path`, given the tokens.
    counted: Callable[[int], JsonObject] = lambda tokens: {"tokens": tokens}
    #: The message for a plain text, if a request may have one instead of a list of messages.
    text_message: Callable[[str], JsonObject] | None = None
    #: None if the provider holds nothing: every request is the whole conversation.
    held: Held | None = None
    errors: Errors
    canonical: Canonical
    usage: UsageShape
    opaque: OpaqueParts
    tool: HiddenTool


def error_type(types: Mapping[int, str], status: int) -> str:
    """Return the name of a status; one without a name gets that of 400 or 500."""
    return types.get(status) or types[500 if status >= 500 else 400]


def writable(message: str) -> str:
    """Return the message without what cannot be written as UTF-8: an error may repeat half a character."""
    return message.encode(errors="replace").decode()

"""What a server between clients and providers needs to know about a format.

Errors, the canonical form of messages, usage, opaque parts and hidden tools. A format with a `ServerSide` is served by
the gateway, whose table of providers says which upstreams speak it.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from everlong.core import History, Json, JsonObject
from everlong.wire.formats.allowances import Allowance, openai_allowances
from everlong.wire.formats.hidden_tool import Event, HiddenTool
from everlong.wire.formats.opaque import OpaqueParts

__all__ = ["Canonical", "Compaction", "Errors", "Held", "LongContext", "ServerSide", "UsageShape"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """How the provider writes errors. Messages contain only valid UTF-8."""

    #: The body of an error response: HTTP status, kind for programs, message for people.
    body: Callable[[int, str, str], JsonObject]
    #: The events that end a stream with an error, so that clients raise: the same arguments, and the next event's
    #: number.
    events: Callable[[int, str, str, int], list[Event]]
    #: The message for a request that is too long: the limit and the size in tokens, None if not known.
    overflow: Callable[[int | None, int | None], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Canonical:
    """One form for messages that can be written in several ways, so that a repeated conversation is recognised."""

    #: A message as it is forwarded; the order of its fields is not decided here.
    form: Callable[[JsonObject], JsonObject]
    #: A message in that form as it is compared, if that differs: messages that say the same become equal.
    compared: Callable[[JsonObject], JsonObject] | None = None
    #: Fields that say nothing about the content, such as ids that servers add and leftovers of streams.
    noise: frozenset[str] = frozenset()
    #: The system text of a field of its own as it is compared, if that differs.
    system: Callable[[Json], Json] | None = None
    #: Pairs results with their calls in messages that were read one by one, given those before and the new ones; None
    #: if every result names its call.
    pair: Callable[[Sequence[History], Sequence[History]], list[History]] | None = None
    #: Whether an object of this type and role is the assistant's, if several in a row are one message.
    of_assistant: Callable[[str | None, str | None], bool] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageShape:
    """How an answer reports its usage: the names of the fields, and in `beside` those that `prompt` leaves out.

    An event with usage contains one of `marks`. The whole answer is the event itself, or its field `inner` if it has
    one; its field `known_by` contains one of `whole`. If the event `repeats` the answer, it may be long.
    """

    #: The field with the usage; "" if its figures are fields of the answer itself.
    field: str = "usage"
    prompt: str
    output: str
    total: str = ""
    #: The field with details of the prompt, or the one with the tokens of it that were cached.
    details: str = ""
    cached: str = ""
    beside: tuple[str, ...] = ()
    #: Output fields that `output` does not include.
    output_beside: tuple[str, ...] = ()
    inner: str = ""
    known_by: str
    whole: tuple[bytes, ...]
    marks: tuple[bytes, ...]
    repeats: bool = False
    #: Fields that all chunks share, if usage comes as a chunk of its own that a server may leave out.
    frame: frozenset[str] = frozenset()


#: Headers as they came: names and values.
Headers = Sequence[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True, kw_only=True)
class LongContext:
    """How a request asks for a larger window than usual: by a beta, or by a suffix of the model's name."""

    #: The window that is asked for.
    tokens: int
    #: The header and the field of the body that list betas, and the beta, whose date does not matter.
    header: bytes
    field: str
    beta: str
    #: The suffix that clients add to a model's name; the maker itself does not know it.
    suffix: str
    #: Models without a larger window, whatever a request asks for.
    without: re.Pattern[str]

    def asked(self, model: str, headers: Headers, listed: Json = None) -> int | None:
        """Return the larger window that a request asks for; None if it asks for none, or if the model has none.

        `listed` are the betas in the body.
        """
        wanted = model.lower().endswith(self.suffix) or self._has_beta(headers, listed)
        return self.tokens if wanted and not self.without.search(model.lower()) else None

    def for_maker(self, model: str, headers: Headers) -> tuple[str, Headers]:
        """Return the model's name without the suffix, and the headers with the beta in its place."""
        if not model.lower().endswith(self.suffix):
            return model, headers
        name = model[: -len(self.suffix)]
        if self._has_beta(headers, None):
            return name, headers
        betas = [value for header, value in headers if header.lower() == self.header]
        others = [(header, value) for header, value in headers if header.lower() != self.header]
        return name, [*others, (self.header, b",".join([*betas, self.beta.encode()]))]

    def _has_beta(self, headers: Headers, listed: Json) -> bool:
        lists = (value.decode("latin-1").split(",") for name, value in headers if name.lower() == self.header)
        named = [*(name for names in lists for name in names), *(listed if isinstance(listed, list) else ())]
        begins = self.beta.rstrip("-0123456789") + "-"
        return any(isinstance(name, str) and name.strip().startswith(begins) for name in named)


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """How the provider stores conversations for its clients: such a request has only what is new.

    It lists the fields of a request, and the paths below the base address at which the provider shows what it stores.
    """

    #: The field that names an earlier answer, and the one that names a conversation: a text, or an object with an id.
    previous: str
    conversation: str
    #: The field that is false if the answer should not be stored.
    store: str
    #: The paths of stored answers and conversations, and below one of them, of their contents.
    answers: str
    inputs: str
    conversations: str
    items: str
    #: The field of an answer with its output, and the values of `status` of a complete answer.
    output: str
    whole: frozenset[str]
    #: The items of an answer as they may be sent again to a server that does not store it.
    resent: Callable[[Sequence[Json]], list[JsonObject]]


def _unchanged(messages: Sequence[JsonObject]) -> Sequence[JsonObject]:
    return messages


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """How the provider compacts conversations itself, and how its clients ask for it."""

    #: Fields of a request that ask for it, each with a function that returns the rest of its value; None if nothing is
    #: left.
    fields: Mapping[str, Callable[[Json], Json]]
    #: Bytes in a request with a message that replaces those before it, and a function that returns the messages as the
    #: model gets them; the same list if there is no such message.
    sign: bytes
    read: Callable[[Sequence[JsonObject]], Sequence[JsonObject]] = _unchanged
    #: Whether only we can read such a message, so that it must always be read here.
    ours: bool = False
    #: The type of a last message that asks for a compaction instead of an answer; "" if there is none.
    trigger: str = ""
    #: Functions that return: one message for a compacted history, given the history and its source; the answer with it,
    #: given the model and the time; that answer in place of a model's answer, whole and as events.
    sealed: Callable[[Sequence[JsonObject], Sequence[JsonObject]], JsonObject] | None = None
    answer: Callable[[JsonObject, str, int], JsonObject] | None = None
    response: Callable[[JsonObject], JsonObject] | None = None
    events: Callable[[JsonObject], Iterator[Event]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSide:
    """What a server between clients and provider needs to serve clients of one format."""

    #: The provider whose own format it is, and the name of its clients for people.
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
    #: None if the provider stores nothing: every request is the whole conversation.
    held: Held | None = None
    #: How a request asks for a larger window, if it can.
    long_context: LongContext | None = None
    #: None if the provider does not compact conversations.
    compaction: Compaction | None = None
    #: The headers that report what is left of a client's limits.
    allowances: Callable[[Sequence[Allowance], datetime], list[tuple[str, str]]] = openai_allowances
    errors: Errors
    canonical: Canonical
    usage: UsageShape
    opaque: OpaqueParts
    tool: HiddenTool


def error_type(types: Mapping[int, str], status: int) -> str:
    """Return the name of a status; without one, the name of 400 or 500."""
    return types.get(status) or types[500 if status >= 500 else 400]


def writable(message: str) -> str:
    """Return the message as valid UTF-8: an error may quote half a character."""
    return message.encode(errors="replace").decode()

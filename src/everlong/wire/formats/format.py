"""The description of a wire format: one value with everything about it.

Each folder beside this module exports one `FORMAT`; `everlong.wire.formats` has the table of them. Code for all formats
takes a `Format`; nothing outside a format's folder compares names of formats. To describe something new, add a field
here and fill it in in each folder.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from everlong.core import History, Json, JsonObject, JsonText, Message, Role
from everlong.errors import InputError
from everlong.wire.document import Document
from everlong.wire.formats.reply_reader import Outgoing, ReplyReader
from everlong.wire.formats.reply_writer import ReplyWriter
from everlong.wire.formats.server import ServerSide
from everlong.wire.formats.validation import Problem, unwritable_problems
from everlong.wire.framings import SSE, Framing
from everlong.wire.replies import Request

__all__ = ["Api", "CacheMarks", "Deltas", "Format", "Place", "Rules", "Signs", "Tools"]

ANYTHING = re.compile(r"(?=.*\S).+", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """The paths and headers of a format's API, and the fields of a request body."""

    #: Below the base address; "{model}" is replaced by the model's name.
    path: str
    #: The path that answers as a stream, if it is another one.
    stream_path: str = ""
    #: The path that counts the tokens of a request; "" if there is none.
    count_path: str = ""
    #: The path that completes a single prompt, with its answers in the same form; "" if there is none.
    prompt_path: str = ""
    #: The path that compacts a conversation; "" if there is none.
    compact_path: str = ""
    #: The end of the provider's base address; the ends that clients may write instead; further bases with the same
    #: paths.
    base: str = "/v1"
    base_aliases: tuple[str, ...] = ()
    other_bases: tuple[str, ...] = ()
    #: How a path may begin instead of "/models/".
    other_heads: tuple[str, ...] = ()
    #: The field of the messages.
    messages: str
    #: The field of the system text; "" if it is a message.
    system: str = ""
    #: The field that asks for a stream; "" if the path does.
    stream: str = "stream"
    #: Whether a request that does not say gets a stream.
    streams_unasked: bool = False
    #: The framing of its streams, and the part of a query that asks for server-sent events instead, if any.
    framing: Framing = SSE
    events_query: str = ""
    #: Fields ("a.b" for one inside another) with the tokens that thinking may take; the first that is there counts.
    thinking: tuple[str, ...] = ()
    #: Fields ("a.b" for one inside another) that limit the length of the reply. If the caller set none,
    #: the first is written.
    lengths: tuple[str, ...]
    #: The field ("a.b" for one inside another) for nucleus sampling.
    top_p: str = "top_p"
    #: Whether a request without such a limit is refused.
    needs_length: bool = False
    #: The field with which a request sets its window; "" if the server decides. Such a server continues past the window
    #: and forgets the beginning, unless the length of the reply is limited.
    window: str = ""
    #: Fields that make a server refuse a prompt that is too long instead of silently cutting it.
    uncut: Mapping[str, Json] = field(default_factory=dict)
    #: Whether a request may come without messages, to load a model.
    loads: bool = False
    #: Fields that name a conversation that the server stores, so that the request is not complete.
    held_elsewhere: tuple[str, ...] = ()
    #: Other spellings of fields with the usual ones, and lists that may be written as their only item.
    spellings: Mapping[str, str] = field(default_factory=dict)
    lone: tuple[str, ...] = ()
    #: The field of a counting request that may contain the request to count.
    counted_inside: str = ""
    #: Whether a stream reports its usage only if `stream_options.include_usage` asks for it.
    usage_on_request: bool = False
    #: The list of models, below the base address.
    models: str = "/models"
    #: The header of the key, and the text before the key in it.
    key_header: str = "authorization"
    key_prefix: str = "Bearer "
    #: The query parameter that may contain the key instead; "" if there is none.
    key_query: str = ""
    #: Headers of every request.
    fixed_headers: Mapping[str, str]

    @property
    def bases(self) -> tuple[str, ...]:
        """The possible ends of a server's base address."""
        return (self.base, *self.other_bases)

    def headers(self, key: str) -> dict[str, str]:
        """Return the headers of a request with this key; without a key, only those that every request has."""
        return {**self.fixed_headers, **({self.key_header: f"{self.key_prefix}{key}"} if key else {})}

    def windowed(self, body: JsonObject, tokens: int) -> JsonObject:
        """Return a body that asks for a window of this many tokens, unless it already does, and for no truncation."""
        outer, _, inner = self.window.partition(".")
        settings = body.get(outer)
        asked: JsonObject = {inner: tokens, **(settings if isinstance(settings, dict) else {})}
        return {**self.uncut, **body, outer: asked}

    def drawn_from(self, share: float) -> JsonObject:
        """Return the fields that set nucleus sampling to this share."""
        outer, _, inner = self.top_p.partition(".")
        return {outer: {inner: share} if inner else share}

    def drawn_from_all(self, body: JsonObject) -> JsonObject:
        """Return a body without nucleus sampling."""
        outer, _, inner = self.top_p.partition(".")
        settings = body.get(outer)
        rest = {name: value for name, value in body.items() if name != outer}
        if inner and isinstance(settings, dict):
            left = {name: value for name, value in settings.items() if name != inner}
            return {**rest, outer: left} if left else rest
        return rest

    def stream_framing(self, query: str) -> Framing:
        """Return the framing of a stream that was requested with this query."""
        return SSE if self.events_query and self.events_query in query.split("&") else self.framing

    def length(self, body: JsonObject) -> int | None:
        """Return the longest reply that a body asks for; None if it does not say."""
        return _tokens_in(body, self.lengths)

    def thinking_length(self, body: JsonObject) -> int:
        """Return how much of the reply is reserved for thinking."""
        return _tokens_in(body, self.thinking) or 0


def _tokens_in(body: JsonObject, names: Sequence[str]) -> int | None:
    """Return the number in the first of these fields that holds one ("a.b" for one inside another); None if none."""
    for name in names:
        value: Json = body
        for key in name.split("."):
            value = value.get(key) if isinstance(value, dict) else None
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Signs:
    """How to recognise messages and bodies of the format."""

    #: How strongly a message points to this format; 0 if other formats write the same.
    message: Callable[[JsonObject], int]
    #: Whether a body can be a request of this format.
    body: Callable[[JsonObject], bool]
    #: Whether other fields of a body show the format, for formats that keep messages in the same field.
    beside: Callable[[JsonObject], bool] = lambda body: False  # noqa: ARG005 - usually no field does
    #: Describes its messages in the error for a body that has them in another format's field; "" if they are read as
    #: messages of that other format.
    oddity: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What the provider insists on, for repair."""

    #: The name of the format.
    fmt: str
    #: What a call id must look like; an id that does not gets a new one that begins with `id_prefix`.
    call_id: re.Pattern[str] = ANYTHING
    id_prefix: str = "call"
    #: The same for calls that came in another format, if that is stricter.
    foreign_call_id: re.Pattern[str] | None = None
    #: Whether an id may not be used again in a later turn. Within a message it never may.
    unique_ids: bool = False
    #: What a tool's name must look like, and what is removed from it.
    tool_name: re.Pattern[str] = ANYTHING
    not_in_tool_name: re.Pattern[str] = re.compile(r"(?!)")
    longest_tool_name: int = 128
    #: Whether a result repeats the name of its call.
    results_named: bool = False
    object_arguments: bool = False
    #: Whether a result may be empty.
    silent_results: bool = False
    #: Whether a message with calls may have blank text.
    blank_beside_calls: bool = False
    #: Whether an item that has an id may be sent only once.
    items_once: bool = False
    #: Whether a message with only opaque parts may come before the user's first message.
    opaque_before_user: bool = False
    #: Whether system text in the list must follow the user.
    system_after_user: bool = False
    #: Whether a final assistant message may not end in white space.
    trimmed_ending: bool = False
    #: Whether neighbouring assistant messages are sent as one, so that results come after the last.
    joins_assistants: bool = True
    #: The roles whose neighbouring messages are sent as one: calls and results apart would be refused.
    joined: frozenset[Role] = frozenset()
    #: If turns must alternate: the voice of each role. Neighbouring messages of one voice are sent as one.
    voices: Mapping[Role, str] = field(default_factory=dict)
    #: Whether thinking is accepted only from this very provider, and only with its signature.
    own_thinking: bool = True
    signed_thinking: bool = False
    #: Whether thinking without a signature must have text.
    worded_thinking: bool = False
    #: Whether thinking must be followed by the item it led to.
    led_thinking: bool = False
    #: The roles whose messages may contain images.
    pictures: frozenset[Role] = frozenset({Role.USER, Role.TOOL})
    #: Rewrites a message of this format whose shape we read but the provider does not accept.
    usual_shape: Callable[[Message], Message]


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheMarks:
    """How a request marks the prefix that the provider should cache."""

    #: The field that is a mark, and how many a request may have.
    field: str
    most: int
    #: The mark for a cache that should live this many seconds.
    mark: Callable[[float], JsonObject]
    #: Whether a block, and whether a tool, may have a mark.
    may_bear: Callable[[Json], bool]
    tool_may_bear: Callable[[Json], bool]
    #: A body with marks on the messages at these places, and a body without any.
    add: Callable[[JsonObject, Sequence[int], JsonObject], JsonObject]
    remove: Callable[[JsonObject], JsonObject]
    #: A history as it is sent, and for each sent message how many messages of the history it ends after.
    write_history: Callable[[Sequence[Message]], tuple[JsonObject, list[int]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """How a tool is declared, and how a request forbids calls."""

    #: The declaration of a tool: name, description and JSON schema of its parameters.
    declare: Callable[[str, str, Json], JsonObject]
    #: Fields that make the model answer with text. The tools stay declared, because earlier calls need them.
    forbid: JsonText


#: Which text a piece of a stream belongs to: a name, and the number of the block, item or call.
Place = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Deltas:
    """Events of a stream that only add to one text, so that neighbours can be read as one."""

    #: Place and text of such an event; None for any other.
    split: Callable[[JsonObject], tuple[Place, str] | None]
    #: The event again.
    join: Callable[[Place, str], JsonObject]
    #: Types of events that end a stream.
    endings: frozenset[str] = frozenset()


class ReadMessage(Protocol):
    """Reads one message. `where` names its place in an error."""

    def __call__(self, raw: Json, where: str = "") -> Message:
        """Return the message. Raises WireError if it is not a message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One wire format: everything we know about it."""

    #: The name in files and commands: "openai-chat".
    name: str
    api: Api
    signs: Signs
    #: Read and write a request body. For a document of another format, only the conversation is written.
    read_body: Callable[[Json], Document]
    write_body: Callable[[Document], JsonObject]
    #: Writes a document of this format as its provider accepts it, if that differs from how it came.
    sent_body: Callable[[Document], JsonObject]
    #: Read one message, and the list of messages of a body.
    read_message: ReadMessage
    read_messages: Callable[[Sequence[Json]], History]
    #: Write a message as objects, and a history of any format as the fields of a body.
    write_message: Callable[[Message], list[JsonObject]]
    write_history: Callable[[Sequence[Message]], JsonObject]
    #: Whether each object in the list is one message, so that its index names it.
    item_is_message: bool = True
    #: Write a streaming request with a key, and make a reader for its reply.
    ask: Callable[[Request, str], Outgoing]
    reader: Callable[[], ReplyReader]
    deltas: Deltas | None = None
    #: Writes replies, for our own servers.
    writer: ReplyWriter
    #: The row of `usage.STYLES` for its usage reports.
    usage: str
    #: Find what its provider rejects in the conversation of a body, without our own readers and writers, and in its
    #: other fields, such as tools and system text; `rules` is for repair.
    faults: Callable[[JsonObject], Iterator[Problem]]
    faults_beside: Callable[[JsonObject], Iterator[Problem]]
    rules: Rules
    tools: Tools
    #: None if the provider caches without marks.
    marks: CacheMarks | None = None
    #: What a server needs in order to serve clients of this format; None if they cannot be served.
    server_side: ServerSide | None = None

    @property
    def server(self) -> ServerSide:
        """What a server needs in order to serve clients of this format. Raises InputError if they cannot be served."""
        if self.server_side is None:
            raise InputError(f"clients that use {self.name} cannot be served")
        return self.server_side

    def problems(self, body: JsonObject) -> list[Problem]:
        """Return every reason for which the provider would reject the body; [] if it is valid."""
        return [*self.faults(body), *self.faults_beside(body), *unwritable_problems(body)]

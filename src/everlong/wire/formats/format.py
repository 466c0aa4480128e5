"""What a wire format is: one value that says everything about it.

Each folder beside this module exports one `FORMAT`; `everlong.wire.formats` has the table of them. Code that serves any
format takes a `Format` and asks it; nothing outside a format's folder compares names of formats. Whoever needs to know
something more of a format adds a field here and fills it in each folder.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from everlong.core import History, Json, JsonObject, JsonText, Message, Role
from everlong.errors import InputError
from everlong.wire.document import Document
from everlong.wire.formats.reply_reader import Outgoing, ReplyReader
from everlong.wire.formats.reply_writer import ReplyWriter
from everlong.wire.formats.server import ServerSide
from everlong.wire.formats.validation import Problem, surrogate_problems
from everlong.wire.replies import Request

__all__ = ["Api", "CacheMarks", "Deltas", "Format", "Place", "Rules", "Signs", "Tools"]

ANYTHING = re.compile(r"(?=.*\S).+", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """Where a format's API is, and where things stand in the body of a request."""

    #: Below the base address; "{model}" stands for the model's name where the path holds it.
    path: str
    #: The path that answers as a stream, where it is another one.
    stream_path: str = ""
    #: The path that counts the tokens of a request; "" if there is none.
    count_path: str = ""
    #: How the base address of its provider ends.
    base: str = "/v1"
    #: The field of the messages.
    messages: str
    #: The field of the system text; "" where it is a message.
    system: str = ""
    #: The field that asks for a stream; "" where another path does.
    stream: str = "stream"
    #: Fields ("a.b" for one inside another) that limit the length of the reply; the first is written where the caller
    #: set none.
    lengths: tuple[str, ...]
    #: Whether a request without such a limit is refused.
    needs_length: bool = False
    #: Fields that name a conversation which the server holds, so that the request is not all there is.
    held_elsewhere: tuple[str, ...] = ()
    #: Whether a stream reports its usage only where `stream_options.include_usage` asks for it.
    usage_on_request: bool = False
    #: The list of models, below the base address.
    models: str = "/models"
    #: The header of the key, and what stands before the key in it.
    key_header: str = "authorization"
    key_prefix: str = "Bearer "
    #: Headers of every request.
    fixed_headers: Mapping[str, str]

    def headers(self, key: str) -> dict[str, str]:
        """Return the headers of a request with this key; without one, only those that every request has."""
        return {**self.fixed_headers, **({self.key_header: f"{self.key_prefix}{key}"} if key else {})}

    def length(self, body: JsonObject) -> int | None:
        """Return how long the reply to a body may be; None if it does not say."""
        for name in self.lengths:
            value: Json = body
            for key in name.split("."):
                value = value.get(key) if isinstance(value, dict) else None
            if isinstance(value, int) and not isinstance(value, bool):
                return value
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Signs:
    """How messages and bodies of the format are told from those of the others."""

    #: How strong a sign a message is that only this format writes; 0 where others write the same.
    message: Callable[[JsonObject], int]
    #: Whether a body can be a request of this format.
    body: Callable[[JsonObject], bool]
    #: Whether something beside the messages shows it, where two formats keep messages in the same field.
    beside: Callable[[JsonObject], bool] = lambda body: False  # noqa: ARG005 - nothing does, usually
    #: What is odd about its messages where another format keeps its own; "" if they are taken for those.
    oddity: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What the provider insists on, as far as repair has to know it."""

    #: The name of the format.
    fmt: str
    #: What a call id must look like; an id that does not gets a new one that begins with `id_prefix`.
    call_id: re.Pattern[str] = ANYTHING
    id_prefix: str = "call"
    #: The same for calls that came in another format, where that is stricter.
    foreign_call_id: re.Pattern[str] | None = None
    #: Whether an id may not come again in a later turn. Within a message it never may.
    unique_ids: bool = False
    #: What a tool's name must look like, and what cannot stay in it.
    tool_name: re.Pattern[str] = ANYTHING
    not_in_tool_name: re.Pattern[str] = re.compile(r"(?!)")
    longest_tool_name: int = 128
    #: Whether a result repeats the name of its call.
    results_named: bool = False
    object_arguments: bool = False
    #: Whether a result may be empty.
    silent_results: bool = False
    #: Whether blank text may stand beside calls.
    blank_beside_calls: bool = False
    #: Whether an item that has an id may be sent only once.
    items_once: bool = False
    #: Whether a message of opaque parts alone may stand before the first word of the user.
    opaque_before_user: bool = False
    #: Whether system text in the list must follow the user.
    system_after_user: bool = False
    #: Whether the last words of the assistant may not end in white space.
    trimmed_ending: bool = False
    #: Whether neighbouring assistant messages are sent as one, so that results stand after the last.
    joins_assistants: bool = True
    #: Whether thinking is accepted only from this very provider, and only with its signature.
    own_thinking: bool = True
    signed_thinking: bool = False
    #: Whether thinking without a signature must have words.
    worded_thinking: bool = False
    #: Whether thinking must be followed by what it led to.
    led_thinking: bool = False
    #: Who may show a picture.
    pictures: frozenset[Role] = frozenset({Role.USER, Role.TOOL})
    #: A message of this format without a way of writing that was read but is not accepted.
    usual_shape: Callable[[Message], Message]


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheMarks:
    """How a request marks the prefix that the provider should cache."""

    #: The field that is a mark, and how many a request may bear.
    field: str
    most: int
    #: The mark for a cache that should live so many seconds.
    mark: Callable[[float], JsonObject]
    #: Whether a block, and whether a tool, may bear a mark.
    may_bear: Callable[[Json], bool]
    tool_may_bear: Callable[[Json], bool]
    #: A body with marks on the messages at these places, and a body without any.
    add: Callable[[JsonObject, Sequence[int], JsonObject], JsonObject]
    remove: Callable[[JsonObject], JsonObject]
    #: A history as it is sent, and for each message that is sent how many of the history it and those before it hold.
    write_history: Callable[[Sequence[Message]], tuple[JsonObject, list[int]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """How a tool is declared, and how a request forbids calls."""

    #: The declaration of a tool: name, description and JSON schema of its parameters.
    declare: Callable[[str, str, Json], JsonObject]
    #: Fields of a body by which the model answers in words. The tools stay declared: earlier calls need them.
    forbid: JsonText


#: Which text a piece of a stream belongs to: a name, and the number of the block, item or call.
Place = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Deltas:
    """Events of a stream that hold nothing but more of one text, so that neighbours can be read as one."""

    #: Place and text of such an event; None for any other.
    split: Callable[[JsonObject], tuple[Place, str] | None]
    #: The event again.
    join: Callable[[Place, str], JsonObject]
    #: Types of events that end a stream.
    endings: frozenset[str] = frozenset()


class ReadMessage(Protocol):
    """Reads one message. `where` names its place in an error."""

    def __call__(self, raw: Json, where: str = "") -> Message:
        """Return the message. Raises WireError for what is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One wire format: all that is known of it."""

    #: As people write it in a file or a command: "openai-chat".
    name: str
    api: Api
    signs: Signs
    #: A request body to a document and back; of a document of another format only the conversation is written.
    read_body: Callable[[Json], Document]
    write_body: Callable[[Document], JsonObject]
    #: One message, and the messages in a list as it stands in a body.
    read_message: ReadMessage
    read_messages: Callable[[Sequence[Json]], History]
    #: A message as the objects it becomes, and any history as the fields of a body, whoever made its messages.
    write_message: Callable[[Message], list[JsonObject]]
    write_history: Callable[[Sequence[Message]], JsonObject]
    #: Whether each object in the list is one message, so that its index names it.
    item_is_message: bool = True
    #: A request with a key as it goes out, answered as a stream; a new reader of the reply.
    ask: Callable[[Request, str], Outgoing]
    reader: Callable[[], ReplyReader]
    deltas: Deltas | None = None
    #: How a reply is written in it, for servers of ours.
    writer: ReplyWriter
    #: Which row of `usage.STYLES` its reports are written in.
    usage: str
    #: What its provider rejects in a body, found without our own readers and writers; and what repair has to know.
    faults: Callable[[JsonObject], Iterator[Problem]]
    rules: Rules
    tools: Tools
    #: None where the provider caches without being told.
    marks: CacheMarks | None = None
    #: What a server of ours has to know to serve clients of this format; None where none does.
    server_side: ServerSide | None = None

    @property
    def server(self) -> ServerSide:
        """What a server of ours has to know to serve clients of this format. Raises InputError where none does."""
        if self.server_side is None:
            raise InputError(f"clients that speak {self.name} cannot be served")
        return self.server_side

    def problems(self, body: JsonObject) -> list[Problem]:
        """Return everything for which the provider would reject the body; [] if it is valid."""
        return [*self.faults(body), *surrogate_problems(body)]

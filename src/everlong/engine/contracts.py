"""The contracts of the engine: stores, models, calls and what is prepared for them.

One thread is an append-only log. Nothing that was appended changes or goes; a compaction is an appended point,
undoing it an appended withdrawal. The one exception is `remove`, of a whole thread. Calls to a store may wait for a
disk or a database: the engine makes them off the event loop.
"""

import inspect
import json
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import TracebackType
from typing import Any, Protocol, Self, TypeAlias, cast

from everlong.core import (
    Budget,
    Edit,
    Entry,
    Event,
    History,
    Hit,
    JsonText,
    Message,
    Opened,
    Pin,
    Role,
    Row,
    Thread,
    expect,
    expect_list,
    expect_number,
    expect_text,
    head_length,
)
from everlong.engine.functions import DeclaredTool, ToolFunction, tool_function
from everlong.errors import InputError, WireError
from everlong.windows import Window
from everlong.wire import (
    HEADING,
    Caching,
    CallGrew,
    Failed,
    Finished,
    Library,
    Reply,
    Request,
    Restarted,
    Said,
    Thought,
    Unit,
    breakpoints,
    dump,
    format_named,
    given_back,
)

__all__ = [
    "Caching",
    "Call",
    "CallGrew",
    "Failed",
    "Finished",
    "HeldHistory",
    "Model",
    "Prepared",
    "Provider",
    "Reply",
    "Request",
    "Restarted",
    "Said",
    "Thought",
    "Threads",
    "ToolLike",
    "before_tail",
    "beginning",
    "breakpoints",
    "schema_texts",
    "with_beside",
    "with_standing",
    "without_tail",
]


class Threads(Protocol):
    """A store of threads. Every method may be called from any thread of the process.

    Orders, limits and counts below zero count as zero. Settings and metadata are JSON objects, anything else is refused
    with StoreError, as is any use after `close`. Times are kept in UTC. `at` is when something happened, for what comes
    from elsewhere; else it happens now.
    """

    @property
    def warnings(self) -> tuple[str, ...]:
        """What could not be read since the store was opened: each by its place, never by its text.

        One bad row costs itself alone: a note stands in its place, what surrounds it is read. The bytes stay.
        """

    # Threads

    def create(
        self, thread: str, *, owner: str = "", title: str = "", metadata: JsonText = "{}", at: datetime | None = None
    ) -> Thread:
        """A new, empty thread. Raises ThreadExists."""

    def thread(self, thread: str) -> Thread:
        """What is known of a thread; reads no bodies. Raises NoThread, as all methods with a thread do."""

    def threads(
        self, *, owner: str | None = None, archived: bool | None = False, limit: int | None = None, skip: int = 0
    ) -> list[Thread]:
        """Threads, the latest changed first; reads no bodies. `owner` None: of all; `archived` None: both kinds."""

    def change(
        self,
        thread: str,
        *,
        title: str | None = None,
        archived: bool | None = None,
        settings: JsonText | None = None,
        metadata: JsonText | None = None,
        at: datetime | None = None,
    ) -> Thread:
        """Rename, archive, set; what is None stays. The log is untouched."""

    def branch(self, thread: str, order: int, new: str, *, title: str = "", at: datetime | None = None) -> Thread:
        """A new thread of the same owner that starts with the first `order` rows of this one, points and pins too."""

    def remove(self, thread: str) -> None:
        """Remove a thread with all that belongs to it: rows, points, pins, events, what a search finds it by.

        History never changes; this is the one deliberate exception, for retention and privacy, and it is never a part
        of anything else: no engine, no compaction calls it. All of it goes or nothing. What branches or other threads
        share with it stays theirs. Who appends to it meanwhile comes before, or gets NoThread. Token counts stay:
        they are known by content hashes, not by threads.
        """

    # The log

    def append(
        self,
        thread: str,
        entries: Sequence[Entry],
        *,
        ids: Sequence[str] | None = None,
        expected: int | None = None,
        at: datetime | None = None,
    ) -> tuple[Row, ...]:
        """Add entries, all or none, durable when it returns; their rows.

        `ids` name the rows (else the store makes names); the same ids again give the rows that are there and add
        nothing, so a caller may repeat what it does not know to have succeeded. With `expected`, raises
        ThreadChanged unless the thread has just that many rows. Points and withdrawals refer to rows that are there.
        Rows never come before the thread's last change: of a time `at` that does, the next moment is kept.
        """

    def read(self, thread: str, start: int = 0, stop: int | None = None) -> Iterator[Row]:
        """The rows from `start` to `stop` (exclusive), in their order; few at a time are held."""

    def last(self, thread: str, messages: int) -> list[Row]:
        """The rows of the last so many messages, oldest first; no points or withdrawals."""

    def row(self, thread: str, name: str) -> Row | None:
        """The row whose id is `name`."""

    def open(self, thread: str, before: int | None = None) -> Opened:
        """What the view is made of; with `before`, as it was when the thread had only that many rows.

        Reads the leading system text, the newest standing point and what follows its boundary, not the rest.
        """

    def points(self, thread: str) -> list[tuple[Row, bool]]:
        """Every compaction point, oldest first, and whether it is in force."""

    # Pins

    def pin(self, thread: str, order: int | None, text: str = "") -> Pin:
        """Keep a message, or a text, in every view. The same pin again gives the one that is there."""

    def unpin(self, thread: str, pin: str) -> None:
        """Remove a pin; one that does not exist is not an error."""

    def pins(self, thread: str) -> tuple[Pin, ...]:
        """The pins, in the order they were made."""

    # Events

    def record(self, thread: str, events: Sequence[Event]) -> None:
        """Keep events, in order. An outcome names, as its parent, a start of its kind that has none yet; anything else
        is refused with StoreError, and nothing of the batch is kept.

        An event whose id is there already is not kept twice.
        """

    def events(self, thread: str, *, after: str = "", kinds: Sequence[str] = ()) -> list[Event]:
        """The events in the order they were recorded; only those after the event of that id, only of these kinds."""

    def unfinished(self, thread: str) -> list[Event]:
        """Starts without an outcome: what a crash left behind."""

    # Finding what left the window

    def original(self, thread: str, ref: str) -> bytes | None:
        """The bytes of a message or part by its reference (a content hash); None if the thread does not have it."""

    def search(
        self, query: str, *, thread: str | None = None, owner: str | None = None, limit: int = 10, around: int = 1
    ) -> list[Hit]:
        """Messages that answer a query, best first, in one thread or all of an owner (None: all), with neighbours."""

    # What was learned

    def counts(self, vocabulary: str, refs: Sequence[str]) -> dict[str, int]:
        """Token counts that were kept, by message reference; what is not known is left out."""

    def keep_counts(self, vocabulary: str, counts: Mapping[str, int]) -> None:
        """Keep token counts."""

    def fact(self, kind: str, key: str) -> JsonText | None:
        """What was learned under that name: a window, a calibration. One indexed look-up."""

    def keep_fact(self, kind: str, key: str, value: JsonText) -> None:
        """Store the fact; the newest value counts."""

    def facts(self, kind: str) -> dict[str, JsonText]:
        """All of one kind, by key."""

    def drop_facts(self, kind: str, before: datetime) -> int:
        """Forget the facts of a kind that were last kept before that time; how many went. No zone: local time."""

    def close(self) -> None:
        """Close files and connections; a second call does nothing."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...


class Model(Protocol):
    """A model behind some endpoint. Closing the iterator cancels the call upstream."""

    #: The wire format it speaks: one of `wire.FORMATS`.
    fmt: str
    #: What figures learned about it are kept under; two servers never share a name.
    endpoint: str
    #: The provider's name in the registry; "" if the registry does not know it.
    provider: str

    def stream(self, request: Request) -> AsyncGenerator[Reply, None]:
        """Stream the pieces of the answer; the last is Finished or Failed."""

    async def served_window(self, model: str) -> int | None:
        """Return the window that the server itself reports, asked once; None if it does not say."""


#: A tool as people give it: its schema as a dict or as JSON text, a function, or an object that declares itself.
ToolLike: TypeAlias = Mapping[str, Any] | JsonText | ToolFunction | DeclaredTool | Callable[..., Any]

#: What the texts of a call are, as errors say it.
TEXTS: Mapping[str, str] = {
    "model": "a model's name",
    "fmt": "the name of a wire format",
    "extra": "further fields of the request as JSON text, such as '{\"top_p\": 0.9}'",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """What a caller asks of a model; the messages come from the thread.

    `endpoint` names the server for what is learned of it, `provider` is its name in the registry, `served` the window
    that the server itself reports, `asked` the one that the request asks for, such as a beta. `parent` is the event
    this call belongs to, such as an agent's turn.

    `standing` and `tail` are sent and counted but never kept: they come with each call, no compaction and no summary
    touches them. `standing` is system text and follows the thread's own; it changes seldom, for a change costs the
    cached prefix. `tail` may change with every call: it stands before the last user message, in a tool loop at the end.
    """

    model: str
    fmt: str = "openai-chat"
    endpoint: str = ""
    provider: str = ""
    served: int | None = None
    asked: int | None = None
    #: The tools: schemas in the call's format, as dicts or JSON texts, or functions.
    tools: Sequence[ToolLike] = ()
    max_tokens: int | None = None
    #: Tokens of the answer that thinking may take; the answer is never asked to be shorter than that.
    thinking: int = 0
    temperature: float | None = None
    extra: JsonText = ""
    parent: str = ""
    #: The tool by which the model can ask for what left, named in markers; "" if it has none.
    recall_tool: str = ""
    standing: History = ()
    tail: History = ()
    #: Whether requests mark what the provider should cache, if it needs marks.
    breakpoints: bool = True

    def __post_init__(self) -> None:
        for name in ("model", "fmt", "endpoint", "provider", "extra", "parent", "recall_tool"):
            expect_text(name, getattr(self, name), TEXTS.get(name, "a text"))
        for name in ("served", "asked", "max_tokens"):
            if getattr(self, name) is not None:
                expect_number(name, getattr(self, name), "a number of tokens")
        expect_number("thinking", self.thinking, "a number of tokens")
        if self.temperature is not None:
            expect("temperature", self.temperature, (int, float), "a number")
        for name in ("standing", "tail"):
            expect_list(name, getattr(self, name), "a list of messages")
            for at, message in enumerate(getattr(self, name)):
                expect(f"{name}[{at}]", message, Message, "a message, such as Message(Role.SYSTEM, (Text('…'),))")
        object.__setattr__(self, "tools", _checked_tools(self.tools))

    @property
    def schemas(self) -> tuple[JsonText, ...]:
        """The tools as the call's format declares them, one JSON text each."""
        return schema_texts(self.tools, self.fmt)


@dataclass(frozen=True, slots=True)
class HeldHistory:
    """A history that someone else holds: its items, and the messages that they say."""

    library: Library[Any]
    units: tuple[Unit[Any], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A request that fits, and all that is known about it.

    `tokens` is what the provider is expected to count for messages and tools, `counted` what the counter says of the
    messages. `edits` are those of this preparation, `turn` the id of its first event, `attempt` counts recoveries.
    """

    thread: str
    call: Call
    request: Request
    window: Window
    budget: Budget
    tokens: int
    counted: int
    edits: tuple[Edit, ...] = ()
    turn: str = ""
    attempt: int = 0
    #: The event of the overflow that this request is to recover from, and what was tried for other refusals.
    overflow: str = ""
    remedies: frozenset[str] = frozenset()
    #: The provider's tokens, tools included, from which a compaction is due.
    threshold: int = 0
    #: Tokens of messages that must be new before another compaction may come.
    renewal: int = 0
    #: Rows of the thread that the view was made of.
    length: int = 0
    #: How many times what was sent before was replaced: requests of the same number extend each other.
    compactions: int = 0
    #: The history that was followed, if someone else holds it.
    held: "HeldHistory | None" = field(default=None, repr=False)

    @property
    def messages(self) -> list[Any]:
        """What to send, system text included: of the kind that the caller holds, else dicts of the call's format.

        Of a history that the caller holds, what was not touched is the very object that was given.
        """
        if self.held is not None:
            return given_back(self.held.library, self.held.units, self.request.messages)
        return cast("list[Any]", self.body()[format_named(self.call.fmt).api.messages])

    def body(self) -> dict[str, Any]:
        """Return the whole request in the call's format, for those who call an SDK themselves; it asks for no stream.

        Example: `client.chat.completions.create(**prepared.body())`
        """
        form = format_named(self.call.fmt)
        body = dict(form.ask(self.request, "").body)
        for name in (form.api.stream, "stream_options"):
            body.pop(name, None)
        return body

    def with_reply(self, prompt: int) -> int:
        """Return the tokens of such a prompt and the answer that was asked for: most providers count both."""
        return prompt + (self.request.max_tokens or self.budget.reply)


def schema_texts(tools: Iterable[ToolLike], fmt: str = "openai-chat") -> tuple[JsonText, ...]:
    """Return tools as the JSON texts of their schemas; a function is declared as the format does it.

    Raises InputError for what is no list of tools.
    """
    return tuple(tool if isinstance(tool, str) else _declared(tool, fmt) for tool in _checked_tools(tools))


def _checked_tools(tools: Iterable[ToolLike]) -> tuple[JsonText | ToolFunction, ...]:
    expect_list("tools", tools, "a list of tool schemas or functions")
    return tuple(_checked_tool(f"tools[{at}]", tool) for at, tool in enumerate(tools))


def _checked_tool(name: str, tool: object) -> JsonText | ToolFunction:
    """The schema as text, or the function, which has one for each format."""
    if isinstance(tool, ToolFunction) or (isinstance(tool, str) and tool.lstrip()[:1] == "{"):
        return tool
    if inspect.isfunction(tool):
        return tool_function(tool)
    if isinstance(tool, DeclaredTool):
        return ToolFunction(tool.name, tool.description, tool.parameters)
    expect(name, tool, Mapping, 'a tool schema, such as {"type": "function", "function": {…}}, or a function')
    try:
        return dump(dict(cast("Mapping[str, Any]", tool)))
    except (TypeError, ValueError, WireError) as error:
        raise InputError(f"{name} cannot be written as JSON: {error}") from None


def _declared(tool: ToolFunction, fmt: str) -> JsonText:
    return dump(format_named(fmt).tools.declare(tool.name, tool.description, json.loads(tool.parameters)))


class Provider(Protocol):
    """A history that is kept elsewhere, such as a table of one's own: see `Engine.follow`."""

    async def load(self, thread: str) -> Sequence[Message] | Sequence[Mapping[str, Any]]:
        """Return what was said in a thread, oldest first: messages, or dicts of any wire format."""


def with_beside(messages: History, call: Call) -> History:
    """Return the messages of a thread with what is sent beside them, in its place.

    Standing text follows the system text, inside the prefix that providers cache. The tail is never inside it: it
    stands before the last user message, so that the question comes last, and in a tool loop at the end.
    Example: system, user, a, user -> system, standing, user, a, tail, user
    """
    placed = with_standing(messages, call)
    if not call.tail:
        return placed
    at = before_tail(placed, call)
    return (*placed[:at], *call.tail, *placed[at:])


def before_tail(messages: History, call: Call) -> int:
    """Return how many of the messages stand before the volatile tail: all of them if there is none."""
    question_last = bool(call.tail and messages) and messages[-1].role is Role.USER
    return len(messages) - question_last


def with_standing(messages: History, call: Call) -> History:
    """Return the messages with the standing text, which is part of the cached prefix, and without the tail.

    A summary that a preset puts into the system text stays at its end.
    """
    if not call.standing:
        return messages
    head = head_length(messages)
    if head and messages[head - 1].text.startswith(HEADING):
        head -= 1
    return (*messages[:head], *call.standing, *messages[head:])


def without_tail(messages: History, call: Call) -> History:
    """Return the part of the messages sent for a call that the next request repeats."""
    return tuple(message for message in messages if message not in call.tail) if call.tail else messages


def beginning(request: Request, until: int) -> Request:
    """Return the first messages of a request, marked where an earlier one ended: read from the cache, not written.

    What is sent ends in a question or in results, so there is no end behind an answer.
    """
    messages, caching = request.messages[:until], request.caching
    if caching is None:
        return replace(request, messages=messages)
    lasting = min(until, caching.lasting)
    while until < caching.lasting and lasting and messages[lasting - 1].role is Role.ASSISTANT:
        lasting -= 1
    return replace(request, messages=messages, caching=replace(caching, lasting=lasting))

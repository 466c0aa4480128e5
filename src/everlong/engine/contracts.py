"""The contracts of the engine: stores, models, calls and prepared requests.

A thread is an append-only log. Stored entries do not change: a compaction is an appended point, undoing it appends a
withdrawal, and deleting messages appends a removal. Only `remove`, for a whole thread, and `erase`, for messages, take
something out. Store calls may wait for a disk or a database, so the engine makes them off the event loop.
"""

import inspect
import json
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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
    Row,
    Thread,
    expect,
    expect_list,
    expect_number,
    expect_text,
)
from everlong.engine.functions import DeclaredTool, ToolFunction, tool_function
from everlong.errors import InputError, WireError
from everlong.relevance import Likeness
from everlong.windows import Window
from everlong.wire import (
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
    "Vectors",
    "breakpoints",
    "schema_texts",
]


class Threads(Protocol):
    """A store of threads. Every method may be called from any thread of the process.

    Orders, limits and counts below zero are treated as zero. Settings and metadata are JSON objects; anything else, and
    any use after `close`, raises StoreError. Times are stored in UTC. `at` is when something happened, for imported
    data; the default is now.
    """

    @property
    def warnings(self) -> tuple[str, ...]:
        """What could not be read since the store was opened: the place of each problem, never its text.

        An unreadable row affects only itself: a note replaces it, and the rows around it are read. Its bytes stay.
        """

    # Threads

    def create(
        self, thread: str, *, owner: str = "", title: str = "", metadata: JsonText = "{}", at: datetime | None = None
    ) -> Thread:
        """Create an empty thread. Raises ThreadExists."""

    def thread(self, thread: str) -> Thread:
        """Return what is known of a thread without reading its messages. Raises NoThread, like all methods below."""

    def threads(
        self, *, owner: str | None = None, archived: bool | None = False, limit: int | None = None, skip: int = 0
    ) -> list[Thread]:
        """Return threads, most recently changed first, without reading their messages.

        An `owner` of None means all owners; `archived` None means archived or not.
        """

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
        """Rename, archive or configure a thread. Values that are None stay as they are; the log does not change."""

    def branch(self, thread: str, order: int, new: str, *, title: str = "", at: datetime | None = None) -> Thread:
        """Create a thread of the same owner from the first `order` rows of this one, with their points and pins."""

    def remove(self, thread: str) -> None:
        """Remove a thread with everything that belongs to it: rows, points, pins, events, vectors and search terms.

        This and `erase` are the only operations that change history. They exist for retention and privacy, and nothing
        calls them automatically. Either everything is removed or nothing. Rows that other threads share stay with them.
        A concurrent append happens before the removal or raises NoThread. Token counts stay: they belong to content
        hashes, not to threads.
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
        """Add entries to a thread, all or none, and return their rows. They are durable when this returns.

        - `ids`: names for the rows; by default the store makes them. Appending the same ids again returns the existing
          rows and adds nothing, so a retry is safe.
        - `expected`: raises ThreadChanged unless the thread has exactly this many rows.

        Points, withdrawals and removals must refer to existing rows. What a removal names reads as `Gone` until it is
        restored: it is not among the messages, points and pins, not in search, not in a view, and not in an earlier
        state. A branch made meanwhile never has it. If `at` is before the thread's last change, the next possible
        moment is stored instead.
        """

    def read(self, thread: str, start: int = 0, stop: int | None = None) -> Iterator[Row]:
        """Yield the rows from `start` to `stop` (exclusive), in order, with only a few in memory at a time."""

    def last(self, thread: str, messages: int) -> list[Row]:
        """Return the rows of the last messages, oldest first, without points and withdrawals."""

    def row(self, thread: str, name: str) -> Row | None:
        """Return the row with the id `name`, or None."""

    def open(self, thread: str, before: int | None = None) -> Opened:
        """Return what a view is made from; with `before`, as it was when the thread had only that many rows.

        Reads only the leading system text, the newest compaction point in force and the rows after its boundary.
        """

    def points(self, thread: str) -> list[tuple[Row, bool]]:
        """Return every compaction point, oldest first, and whether it is in force."""

    def erase(self, thread: str, orders: Sequence[int]) -> dict[str, tuple[int, ...]]:
        """Erase messages from the store permanently. Returns the orders of the erased rows, by thread.

        Everything about them is erased too: results of their calls, compactions that cover them, recalled text, pins,
        search terms, token counts, vectors, and text in error records. A marker stays in each place. Other threads of
        the owner that share the rows lose them too. Either everything is erased or nothing; when this returns, the data
        is in no file. Erasing again is not an error. Raises StoreError for an order that is not a message.
        """

    # Pins

    def pin(self, thread: str, order: int | None, text: str = "") -> Pin:
        """Keep a message, or a text, in every view. Pinning the same thing again returns the existing pin."""

    def unpin(self, thread: str, pin: str) -> None:
        """Remove a pin. A pin that does not exist is not an error."""

    def pins(self, thread: str) -> tuple[Pin, ...]:
        """Return the pins, in the order they were made."""

    # Events

    def record(self, thread: str, events: Sequence[Event]) -> None:
        """Store events, in order and all or none.

        The parent of an outcome must be a start of its kind that has no outcome yet; otherwise this raises StoreError.
        An event whose id exists is not stored again.
        """

    def events(self, thread: str, *, after: str = "", kinds: Sequence[str] = ()) -> list[Event]:
        """Return the events in the order they were recorded.

        `after` is the id of an event: only later ones are returned. `kinds` selects the kinds; () means all.
        """

    def unfinished(self, thread: str) -> list[Event]:
        """Return the starts without an outcome: what a crash left behind."""

    # Finding what left the window

    def original(self, thread: str, ref: str) -> bytes | None:
        """Return the bytes of a message or part by its reference, a content hash; None if the thread lacks it."""

    def search(
        self, query: str, *, thread: str | None = None, owner: str | None = None, limit: int = 10, around: int = 1
    ) -> list[Hit]:
        """Return messages that answer a query, best first, with their neighbours.

        Searches one thread, or all threads of an owner (None: of all owners).
        """

    # What was learned

    def counts(self, vocabulary: str, refs: Sequence[str]) -> dict[str, int]:
        """Return the stored token counts by message reference. Unknown references are left out."""

    def keep_counts(self, vocabulary: str, counts: Mapping[str, int]) -> None:
        """Store token counts."""

    def vectors(self, thread: str, model: str, start: int = 0, stop: int | None = None) -> dict[int, bytes]:
        """Return the vectors that a model made of messages, by order, from `start` to `stop` (exclusive)."""

    def keep_vectors(self, thread: str, model: str, vectors: Mapping[int, bytes]) -> None:
        """Store vectors of messages, replacing earlier ones. They are removed with the message and with the thread.

        An order that is not a message is ignored: the message may have been erased meanwhile.
        """

    def fact(self, kind: str, key: str) -> JsonText | None:
        """Return a learned fact, such as a window or a calibration, or None. One indexed lookup."""

    def keep_fact(self, kind: str, key: str, value: JsonText) -> None:
        """Store a fact, replacing an earlier value."""

    def keep_facts(self, kind: str, values: Mapping[str, JsonText]) -> None:
        """Store several facts of a kind at once, by key, all or none."""

    def change_fact(self, kind: str, key: str, change: Callable[[JsonText | None], JsonText | None]) -> JsonText | None:
        """Read, change and store a fact in one step across threads and processes. Returns the new value.

        `change` gets the current value and returns the new one: None removes it, and the same text writes nothing. It
        may be called several times, and the last call counts; it must not use the store. The change is durable when
        this returns and is made exactly once, even if the connection is lost meanwhile. If this raises StoreError, it
        was made once or not at all.
        """

    def facts(self, kind: str) -> dict[str, JsonText]:
        """Return all facts of a kind, by key."""

    def drop_fact(self, kind: str, key: str) -> None:
        """Remove a fact. A fact that does not exist is not an error."""

    def drop_facts(self, kind: str, before: datetime) -> int:
        """Remove the facts of a kind that were last stored before a time, and return how many. No zone: local time."""

    def close(self) -> None:
        """Close files and connections. A second call does nothing."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...


class Vectors(Protocol):
    """Vectors of the messages in threads. No request waits for them."""

    def arrive(self, thread: str) -> None:
        """Compute vectors for what is new in a thread. Returns at once."""

    def likeness(self, thread: str, orders: Sequence[int]) -> Likeness:
        """Return how similar a question is to the messages with these orders. Computes only the question's vector."""

    def take_failure(self) -> str:
        """Return why a vector could not be computed, once; "" if there is nothing new to report."""

    def drain(self) -> None:
        """Wait until all vectors have been computed."""

    def close(self) -> None:
        """Stop the background work; call it before the store is closed."""


class Model(Protocol):
    """A model behind an endpoint. Closing the iterator of `stream` cancels the call at the provider."""

    #: The wire format it speaks: one of `wire.FORMATS`.
    fmt: str
    #: The name under which learned figures are stored. Two servers never share a name.
    endpoint: str
    #: The provider's name in the registry; "" if it is not there.
    provider: str

    def stream(self, request: Request) -> AsyncGenerator[Reply, None]:
        """Stream the pieces of the answer; the last is Finished or Failed."""

    async def served_window(self, model: str) -> int | None:
        """Return the context window that the server reports, asked for once; None if it does not say."""


#: A tool: its schema as a dict or as JSON text, a function, or an object with a name, description and parameters.
ToolLike: TypeAlias = Mapping[str, Any] | JsonText | ToolFunction | DeclaredTool | Callable[..., Any]

#: What each text of a call must be, for errors.
TEXTS: Mapping[str, str] = {
    "model": "a model's name",
    "fmt": "the name of a wire format",
    "extra": "other fields of the request as JSON text, such as '{\"top_p\": 0.9}'",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call of a model: everything about the request except the messages, which come from the thread.

    - `model`: the model's name.
    - `fmt`: the wire format of the request.
    - `endpoint`: the name of the server. What is learned about it is stored under this name.
    - `provider`: the provider's name in the model registry; "" if unknown.
    - `served`: the context window in tokens that the server reports.
    - `asked`: the context window that the request asks for, for example with a beta header.
    - `tools`: functions, or schemas in the call's format as dicts or JSON texts.
    - `max_tokens`: the longest reply in tokens.
    - `thinking`: the tokens of the reply that reasoning may use. The reply is never limited to fewer.
    - `temperature`: the sampling temperature.
    - `extra`: other fields of the request as JSON text, such as '{"top_p": 0.9}'.
    - `parent`: the id of the event that this call belongs to, such as an agent's turn.
    - `recall_tool`: the tool with which the model can fetch what was left out, named in markers; "" if there is none.
    - `standing`: system messages that follow the thread's own. A change invalidates the provider's prompt cache.
    - `tail`: messages that may change with every call. They stand before the last user message, or at the end in a tool
      loop.
    - `breakpoints`: whether requests mark what the provider should cache, if the provider needs marks.

    `standing` and `tail` are sent and counted, but never stored, compacted or summarised.
    """

    model: str
    fmt: str = "openai-chat"
    endpoint: str = ""
    provider: str = ""
    served: int | None = None
    asked: int | None = None
    tools: Sequence[ToolLike] = ()
    max_tokens: int | None = None
    thinking: int = 0
    temperature: float | None = None
    extra: JsonText = ""
    parent: str = ""
    recall_tool: str = ""
    standing: History = ()
    tail: History = ()
    breakpoints: bool = True

    def __post_init__(self) -> None:
        for name in ("model", "fmt", "endpoint", "provider", "extra", "parent", "recall_tool"):
            expect_text(name, getattr(self, name), TEXTS.get(name, "a string"))
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
    """A history that the caller keeps: its items, and the messages they stand for."""

    library: Library[Any]
    units: tuple[Unit[Any], ...]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Prepared:
    """A request that fits, with everything known about it.

    - `messages`, `body()`: what to send.
    - `tokens`: the tokens that the provider is expected to count for messages and tools.
    - `counted`: the tokens of the messages according to the counter.
    - `edits`: the changes that this preparation made.
    - `window`, `budget`: the context window with its source, and how it is divided.
    - `threshold`, `limit`: the tokens, tools included, at which a compaction is due, and the most that may be sent.
    - `renewal`: the tokens of new messages that are needed before the next compaction.
    - `compactions`: how many times earlier messages were replaced. Requests with the same number extend each other.
    - `attempt`: how many times the engine has recovered from a refusal.
    - `turn`: the id of the first event of this turn.
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
    #: The event of the overflow that this request recovers from, and the remedies tried for other refusals.
    overflow: str = ""
    remedies: frozenset[str] = frozenset()
    threshold: int = 0
    limit: int = 0
    renewal: int = 0
    #: The number of rows in the thread when this was prepared.
    length: int = 0
    compactions: int = 0
    #: The counted and the reported tokens of the request that this one extends, if it was prepared from sizes alone,
    #: and whether its own count is approximate.
    extends: tuple[int, int] | None = None
    rough: bool = False
    #: The caller's history, if the caller keeps it.
    held: "HeldHistory | None" = None

    def __repr__(self) -> str:
        messages, edits = len(self.request.messages), len(self.edits)
        return (
            f"<Prepared {self.call.fmt}: thread {self.thread!r}, {self.call.model}, "
            f"{messages:,} message{'s' * (messages != 1)}, "
            f"{self.tokens:,} of {self.window.context:,} tokens, {edits:,} edit{'s' * (edits != 1)}>"
        )

    @property
    def messages(self) -> list[Any]:
        """The messages to send, system text included: of your own kind if you keep the history, otherwise dicts.

        An unchanged message of a history that you keep is the same object as in the input.
        """
        if self.held is not None:
            return given_back(self.held.library, self.held.units, self.request.messages)
        return cast("list[Any]", self.body()[format_named(self.call.fmt).api.messages])

    def body(self) -> dict[str, Any]:
        """Return the whole request body in the call's format, without streaming, to send it with an SDK yourself.

        Example: `client.chat.completions.create(**prepared.body())`
        """
        form = format_named(self.call.fmt)
        body = dict(form.ask(self.request, "").body)
        for name in (form.api.stream, "stream_options"):
            body.pop(name, None)
        return body

    def with_reply(self, prompt: int) -> int:
        """Return the tokens of a prompt plus the reply it asks for: most providers count both."""
        return prompt + (self.request.max_tokens or self.budget.reply)


def schema_texts(tools: Iterable[ToolLike], fmt: str = "openai-chat") -> tuple[JsonText, ...]:
    """Return tools as the JSON texts of their schemas. Functions are declared in the given format.

    Raises InputError if `tools` is not a list of tools.
    """
    checked = _checked_tools(tools)
    if all(type(tool) is str for tool in checked):
        return cast("tuple[JsonText, ...]", checked)
    return tuple(tool if isinstance(tool, str) else _declared(tool, fmt) for tool in checked)


def _checked_tools(tools: Iterable[ToolLike]) -> tuple[JsonText | ToolFunction, ...]:
    if type(tools) is tuple and all(type(tool) is str and tool[:1] == "{" for tool in tools):
        return tools
    expect_list("tools", tools, "a list of tool schemas or functions")
    return tuple(_checked_tool(f"tools[{at}]", tool) for at, tool in enumerate(tools))


def _checked_tool(name: str, tool: object) -> JsonText | ToolFunction:
    """The schema as text, or the function, which has one schema per format."""
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
    """A history that you store elsewhere, such as in your own table: see `Engine.follow`."""

    async def load(self, thread: str) -> Sequence[Message] | Sequence[Mapping[str, Any]]:
        """Return the messages of a thread, oldest first, as messages or as dicts of any wire format."""

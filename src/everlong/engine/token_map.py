"""What fills the window: the tokens of each message, round, role and tool, what is protected, what repeats.

The terminal, the HTML page, `--json` and the tests all read this value. Nothing is changed.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from everlong.core import (
    History,
    Image,
    JsonText,
    Message,
    Opaque,
    Part,
    Reasoning,
    Ref,
    Role,
    Text,
    ToolCall,
    ToolResult,
    pairs_of,
    protected,
    ref_of,
    rounds_of,
)
from everlong.tokens import Counter
from everlong.wire import arguments_object

__all__ = [
    "FRAMING",
    "TITLE_LENGTH",
    "MessageWeight",
    "Repeat",
    "RoundWeight",
    "TokenMap",
    "ToolWeight",
    "call_title",
    "map_tokens",
    "message_title",
    "text_title",
]

TITLE_LENGTH = 120  # characters
LOOKED_AT = 2_000  # characters of a text; a title is at its beginning or nowhere
LARGEST_PARSED = 1_000_000  # characters of arguments
CALLS_NAMED = 3
ARGUMENT_LENGTH = 60
PATH_LENGTH = 32

#: Clients wrap what the user typed: <command-name>/init</command-name>. A title leaves out the tags.
TAG = re.compile(r"</?[A-Za-z][\w:.-]*(?:\s[^<>]*)?>")
CHANGE_FOLDER = re.compile(r"^\s*cd \S+ (?:&&|;)\s*")  # what agents put before every command
#: The argument that says most about a call, best first.
TELLING = (
    "path",
    "file_path",
    "filePath",
    "filename",
    "file",
    "command",
    "cmd",
    "query",
    "pattern",
    "url",
    "text",
    "name",
)


def text_title(text: str) -> str:
    """Return the first words of a text, on one line.

    Example: "<command-name>/init</command-name>\\n  please" -> "/init please"
    """
    head = text.lstrip()[:LOOKED_AT]
    bare = " ".join(TAG.sub(" ", head).split()).lstrip("# ")
    return _shortened(bare or " ".join(head.split()), TITLE_LENGTH)


def call_title(call: ToolCall) -> str:
    """Return the tool and its most telling argument. Example: read_file {"path": "a.py"} -> "read_file a.py" """
    return f"{call.name} {_telling(call.arguments)}".strip()


def message_title(message: Message, calls: Sequence[ToolCall] = ()) -> str:
    """Return a title for a message; "" if it has only images. `calls` are the calls that it makes or answers."""
    called = " · ".join(call_title(call) for call in calls[:CALLS_NAMED])
    if len(calls) > CALLS_NAMED:
        called += f" · +{len(calls) - CALLS_NAMED}"
    if message.role is Role.TOOL and called:
        return _shortened(called, TITLE_LENGTH)
    said = text_title(message.text) or called
    if said:
        return _shortened(said, TITLE_LENGTH)
    for part in message.parts:
        if isinstance(part, Reasoning) and part.text.strip():
            return text_title(part.text)
        if isinstance(part, Opaque):
            return _shortened(part.kind, TITLE_LENGTH)
    return ""


def _telling(arguments: JsonText) -> str:
    if len(arguments) > LARGEST_PARSED:
        return _shortened(" ".join(arguments[:LOOKED_AT].split()), ARGUMENT_LENGTH)
    fields = arguments_object(arguments)
    words = {name: value for name, value in fields.items() if isinstance(value, str) and value.strip()}
    chosen = next((words[name] for name in TELLING if name in words), next(iter(words.values()), ""))
    line = " ".join(CHANGE_FOLDER.sub("", chosen[:LOOKED_AT]).split())
    if "/" in line and " " not in line and "://" not in line:
        return _path_end(line)
    return _shortened(line, ARGUMENT_LENGTH)


def _path_end(path: str) -> str:
    """Return the end of a long path, which says the most.

    Example: "/home/ada/code/shop/src/till/layout.py" -> "…/code/shop/src/till/layout.py"
    """
    if len(path) <= PATH_LENGTH:
        return path
    end = path[-PATH_LENGTH:]
    return "…" + (end[end.index("/") :] if "/" in end else end)


def _shortened(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


SMALLEST_REPEAT = 40  # tokens; shorter texts repeat by nature
UNKNOWN_TOOL = "(unknown tool)"
FRAMING = "framing"  # roles, names and separators: what a message costs beyond its parts


@dataclass(frozen=True, slots=True)
class MessageWeight:
    """The tokens of one message. `kind` is what most of it is; `protected` says why it must stay, or is ""."""

    index: int
    role: Role
    tokens: int
    tools: tuple[str, ...]
    protected: str
    title: str
    kind: str
    #: Its parts in order, neighbours of one kind together: (kind, tokens).
    pieces: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class RoundWeight:
    """The tokens of one round, named after what the user asked."""

    start: int
    stop: int
    tokens: int
    title: str


@dataclass(frozen=True, slots=True)
class ToolWeight:
    """One tool: how often it was called, and the tokens of its calls and results."""

    name: str
    calls: int
    call_tokens: int
    result_tokens: int

    @property
    def tokens(self) -> int:
        """Calls and results together."""
        return self.call_tokens + self.result_tokens


@dataclass(frozen=True, slots=True)
class Repeat:
    """A text that occurs in the history more than once; `wasted` is what the copies cost."""

    ref: Ref
    messages: tuple[int, ...]
    tokens: int
    title: str

    @property
    def wasted(self) -> int:
        """Tokens of all copies but one."""
        return self.tokens * (len(self.messages) - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenMap:
    """The tokens of a whole history. The kinds plus the tool schemas add up to the total, and so do the roles."""

    model: str
    vocabulary: str
    exact: bool
    total: int
    schemas: int
    messages: tuple[MessageWeight, ...]
    rounds: tuple[RoundWeight, ...]
    by_role: tuple[tuple[Role, int, int], ...]
    by_kind: tuple[tuple[str, int], ...]
    by_tool: tuple[ToolWeight, ...]
    repeats: tuple[Repeat, ...]

    @property
    def heaviest(self) -> tuple[MessageWeight, ...]:
        """The messages, heaviest first; equal ones oldest first."""
        return tuple(sorted(self.messages, key=lambda message: (-message.tokens, message.index)))


def map_tokens(messages: Sequence[Message], counter: Counter, tools: Iterable[JsonText] = ()) -> TokenMap:
    """Return the token map of a history for one model."""
    history = tuple(messages)
    sizes = [counter.message(message) for message in history]
    parts = [tuple(map(counter.part, message.parts)) for message in history]
    schemas = counter.tools(tools)
    calls = _calls(history)
    weights = tuple(_weights(history, sizes, parts, calls))
    return TokenMap(
        model=counter.model,
        vocabulary=counter.vocabulary.name,
        exact=counter.exact,
        total=sum(sizes) + schemas,
        schemas=schemas,
        messages=weights,
        rounds=tuple(
            RoundWeight(r.start, r.stop, sum(sizes[r.start : r.stop]), weights[r.start].title)
            for r in rounds_of(history)
        ),
        by_role=_by_role(history, sizes),
        by_kind=_by_kind(history, sizes, parts),
        by_tool=_by_tool(history, parts, calls),
        repeats=_repeats(history, counter, weights),
    )


def _calls(history: History) -> list[tuple[ToolCall, ...]]:
    """The call that each call or result part of a message is about, in order of the parts."""
    answered = {pair.result: history[pair.call[0]].parts[pair.call[1]] for pair in pairs_of(history)}
    found = []
    for at, message in enumerate(history):
        calls = []
        for index, part in enumerate(message.parts):
            if isinstance(part, ToolCall):
                calls.append(part)
            elif isinstance(part, ToolResult):
                call = answered.get((at, index))
                calls.append(call if isinstance(call, ToolCall) else ToolCall(part.call, part.name or UNKNOWN_TOOL, ""))
        found.append(tuple(calls))
    return found


def _weights(
    history: History, sizes: Sequence[int], parts: Sequence[tuple[int, ...]], calls: Sequence[tuple[ToolCall, ...]]
) -> Iterator[MessageWeight]:
    guarded = protected(history)
    for at, message in enumerate(history):
        pieces = _pieces(message, parts[at])
        by_kind: dict[str, int] = defaultdict(int)
        for kind, tokens in pieces:
            by_kind[kind] += tokens
        yield MessageWeight(
            index=at,
            role=message.role,
            tokens=sizes[at],
            tools=tuple(call.name for call in calls[at]),
            protected=guarded.get(at, ""),
            title=message_title(message, calls[at]),
            kind=max(by_kind, key=lambda kind: by_kind[kind]) if by_kind else "text",
            pieces=pieces,
        )


def _pieces(message: Message, parts: Sequence[int]) -> tuple[tuple[str, int], ...]:
    pieces: list[tuple[str, int]] = []
    for part, tokens in zip(message.parts, parts, strict=True):
        kind = _kind(part)
        if pieces and pieces[-1][0] == kind:
            tokens += pieces.pop()[1]
        pieces.append((kind, tokens))
    return tuple(pieces)


def _by_role(history: History, sizes: Sequence[int]) -> tuple[tuple[Role, int, int], ...]:
    tokens: dict[Role, int] = defaultdict(int)
    count: dict[Role, int] = defaultdict(int)
    for message, size in zip(history, sizes, strict=True):
        tokens[message.role] += size
        count[message.role] += 1
    return tuple((role, tokens[role], count[role]) for role in Role if count[role])


KINDS: tuple[tuple[type, str], ...] = (
    (Text, "text"),
    (Reasoning, "reasoning"),
    (ToolCall, "calls"),
    (ToolResult, "results"),
    (Image, "images"),
)


def _kind(part: Part) -> str:
    return next((name for cls, name in KINDS if isinstance(part, cls)), "other")


def _by_kind(history: History, sizes: Sequence[int], parts: Sequence[tuple[int, ...]]) -> tuple[tuple[str, int], ...]:
    tokens: dict[str, int] = defaultdict(int)
    for message, size, counted in zip(history, sizes, parts, strict=True):
        for part, part_size in zip(message.parts, counted, strict=True):
            tokens[_kind(part)] += part_size
        tokens[FRAMING] += size - sum(counted)
    return tuple(sorted(((kind, n) for kind, n in tokens.items() if n), key=lambda row: -row[1]))


def _by_tool(
    history: History, parts: Sequence[tuple[int, ...]], calls: Sequence[tuple[ToolCall, ...]]
) -> tuple[ToolWeight, ...]:
    made: dict[str, int] = defaultdict(int)
    asked: dict[str, int] = defaultdict(int)
    answered: dict[str, int] = defaultdict(int)
    for message, counted, found in zip(history, parts, calls, strict=True):
        used = iter(found)
        for part, tokens in zip(message.parts, counted, strict=True):
            if isinstance(part, ToolCall):
                name = next(used).name
                made[name] += 1
                asked[name] += tokens
            elif isinstance(part, ToolResult):
                answered[next(used).name] += tokens
    weights = [ToolWeight(name, made[name], asked[name], answered[name]) for name in {**asked, **answered}]
    return tuple(sorted(weights, key=lambda tool: (-tool.tokens, tool.name)))


def _repeats(history: History, counter: Counter, weights: Sequence[MessageWeight]) -> tuple[Repeat, ...]:
    places: dict[str, list[int]] = defaultdict(list)
    for at, message in enumerate(history):
        for text in (message.text, *(result.text for result in message.results)):
            if text:
                places[text].append(at)
    found = [
        Repeat(ref_of(text), tuple(where), counter.text(text), weights[where[0]].title)
        for text, where in places.items()
        if len(where) > 1
    ]
    return tuple(sorted((r for r in found if r.tokens >= SMALLEST_REPEAT), key=lambda r: (-r.wasted, r.messages)))

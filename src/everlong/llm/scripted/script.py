"""Scripts for the scripted model: what it receives and how it responds. Values and a few ready scripts; no I/O.

A script is a function from a request to one step: an answer, a refusal, a broken connection, or bytes that are not an
answer at all.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from everlong.core import CallId, History, JsonText, Message, Reasoning, Role, Text, ToolCall
from everlong.wire import Usage, WrittenReply

__all__ = [
    "Answer",
    "Broken",
    "Raw",
    "ReceivedRequest",
    "Refusal",
    "Script",
    "Step",
    "echo",
    "in_turn",
    "message_of",
    "reads_files",
    "reply_of",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedRequest:
    """One request as the model received it.

    `tokens` counts the whole prompt with its tools, and `cached` the part that an earlier request began with too.
    `body`, `headers` and `fmt` are set if the request came over HTTP.
    """

    number: int
    model: str
    messages: History
    tools: tuple[JsonText, ...] = ()
    max_tokens: int | None = None
    temperature: float | None = None
    stream: bool = True
    tokens: int = 0
    cached: int = 0
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    fmt: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A scripted answer: text, reasoning and tool calls, each call as (name, JSON arguments).

    - `usage`: the usage to report; None reports the true figures.
    - `reported`: whether to report usage at all.
    - `stop`: why the answer ended; by default "calls" or "stop".
    - `before`, `between`: the seconds to wait before the first piece and between pieces.
    """

    text: str = ""
    thinking: str = ""
    calls: tuple[tuple[str, JsonText], ...] = ()
    usage: Usage | None = None
    reported: bool = True
    stop: str = ""
    before: float = 0.0
    between: float = 0.0


@dataclass(frozen=True, slots=True)
class Refusal:
    """A scripted HTTP error with its body, as a provider would send it."""

    status: int
    body: str
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Broken:
    """A scripted answer whose connection breaks after `pieces` pieces."""

    answer: Answer
    pieces: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Raw:
    """A scripted success whose body is `chunk`, repeated `times` times: bytes that no provider should send."""

    chunk: bytes
    times: int = 1
    content_type: str = "text/event-stream"


Step: TypeAlias = Answer | Refusal | Broken | Raw
Script: TypeAlias = Callable[[ReceivedRequest], Step]


def echo(asked: ReceivedRequest) -> Answer:
    """A script that answers with the last user message."""
    said = next((message.text for message in reversed(asked.messages) if message.role is Role.USER), "")
    return Answer(text=said or "…")


def in_turn(steps: Sequence[Step], *, then: Script = echo) -> Script:
    """Return a script that uses one step after another, and `then` when they are used up."""
    left = list(reversed(steps))

    def script(asked: ReceivedRequest) -> Step:
        return left.pop() if left else then(asked)

    return script


def reads_files(rounds: int) -> Script:
    """Return the script of a working agent: after each user message it makes `rounds` tool calls, then answers."""

    made = 0  # remembered, because what was called before may have left the request

    def script(asked: ReceivedRequest) -> Answer:
        nonlocal made
        if not asked.messages or asked.messages[-1].role is Role.USER:
            made = 0
        if made >= rounds:
            return Answer(text=f"Done with step {asked.number}.")
        made += 1
        path = f"src/file_{asked.number}.py"
        return Answer(text=f"Reading {path}.", calls=(("read_file", f'{{"path": "{path}"}}'),))

    return script


def message_of(answer: Answer, number: int) -> Message:
    """Return the answer as a message. The call ids contain the number of the request."""
    thoughts = (Reasoning(answer.thinking),) if answer.thinking else ()
    words = (Text(answer.text),) if answer.text else ()
    calls = (ToolCall(CallId(f"call_{number}_{at}"), *call) for at, call in enumerate(answer.calls))
    return Message(Role.ASSISTANT, (*thoughts, *words, *calls))


def reply_of(asked: ReceivedRequest, answer: Answer) -> WrittenReply:
    """Return the answer in the form that a wire format writes."""
    return WrittenReply(
        number=asked.number,
        model=asked.model,
        text=answer.text,
        thinking=answer.thinking,
        calls=answer.calls,
        stop=answer.stop,
        usage=answer.usage if answer.reported else None,
    )

"""Scripts: what a scripted model receives and what it does then. Values and a few ready scripts; no I/O.

A script is any function from a request to one step: an answer, a refusal, a connection that breaks, or bytes that are
not an answer at all.
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
    """One request as the model saw it. `tokens` are the whole prompt, tools too; `cached` those of a known prefix."""

    number: int
    model: str
    messages: History
    tools: tuple[JsonText, ...] = ()
    max_tokens: int | None = None
    temperature: float | None = None
    stream: bool = True
    tokens: int = 0
    cached: int = 0
    #: The body and the headers of the request, where it came over HTTP, and the format it was in.
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    fmt: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Words, thoughts and calls. `usage` None reports the truth; `reported` False reports nothing.

    `before` and `between` are seconds of waiting before the first piece and between pieces.
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
    """An HTTP error with its body, as a provider would send it."""

    status: int
    body: str
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Broken:
    """An answer of which only so many pieces arrive before the connection is gone."""

    answer: Answer
    pieces: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Raw:
    """A success whose body is these bytes, repeated `times` times: what no provider should send."""

    chunk: bytes
    times: int = 1
    content_type: str = "text/event-stream"


Step: TypeAlias = Answer | Refusal | Broken | Raw
Script: TypeAlias = Callable[[ReceivedRequest], Step]


def echo(asked: ReceivedRequest) -> Answer:
    """Answer with the last text of the user."""
    said = next((message.text for message in reversed(asked.messages) if message.role is Role.USER), "")
    return Answer(text=said or "…")


def in_turn(steps: Sequence[Step], *, then: Script = echo) -> Script:
    """Return a script that takes one step after the other, and `then` when they are used up."""
    left = list(reversed(steps))

    def script(asked: ReceivedRequest) -> Step:
        return left.pop() if left else then(asked)

    return script


def reads_files(rounds: int) -> Script:
    """Return the script of an agent at work: after each user message so many tool calls, then an answer."""

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
    """Return the answer as a message; call ids are made of the number of the request."""
    thoughts = (Reasoning(answer.thinking),) if answer.thinking else ()
    words = (Text(answer.text),) if answer.text else ()
    calls = (ToolCall(CallId(f"call_{number}_{at}"), *call) for at, call in enumerate(answer.calls))
    return Message(Role.ASSISTANT, (*thoughts, *words, *calls))


def reply_of(asked: ReceivedRequest, answer: Answer) -> WrittenReply:
    """Return the answer as a format writes it."""
    return WrittenReply(
        number=asked.number,
        model=asked.model,
        text=answer.text,
        thinking=answer.thinking,
        calls=answer.calls,
        stop=answer.stop,
        usage=answer.usage if answer.reported else None,
    )

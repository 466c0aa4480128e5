"""Where the tokens of a request go, by what they are: for the map of `/context`."""

from collections.abc import Iterable
from dataclasses import dataclass

from everlong.core import Message, Reasoning, Recalled, Role, ToolCall, ToolResult
from everlong.engine import Engine, Prepared, counter_for
from everlong.summarize import is_framed
from everlong.tokens import Counter

__all__ = ["GROUPS", "Share", "shares_of"]

#: What a request is made of, in the order it is told.
GROUPS = ("system", "summary", "recalled", "user", "assistant", "thinking", "tools", "schemas")


@dataclass(frozen=True, slots=True)
class Share:
    """One group of a request: its messages and their tokens. A message that calls tools counts in two groups."""

    group: str
    tokens: int
    messages: int


def shares_of(engine: Engine, prepared: Prepared) -> tuple[Share, ...]:
    """Where the tokens of a request go, by group, as the counter of its model counts them."""
    counter = counter_for(prepared.call.model)
    opened = engine.threads.open(prepared.thread)
    recalled = frozenset(row.entry.message for row in opened.rows if isinstance(row.entry, Recalled))
    tokens: dict[str, int] = {}
    count: dict[str, int] = {}
    for message in prepared.request.messages:
        for group, size in _split(message, counter, recalled):
            tokens[group] = tokens.get(group, 0) + size
            count[group] = count.get(group, 0) + 1
    schemas = counter.tools(prepared.request.tools)
    if schemas:
        tokens["schemas"], count["schemas"] = schemas, len(prepared.request.tools)
    return tuple(Share(group, tokens[group], count[group]) for group in GROUPS if group in tokens)


def _split(message: Message, counter: Counter, recalled: frozenset[Message]) -> Iterable[tuple[str, int]]:
    """A message by what it is; of an answer calls and thoughts are told apart, the rest is its words."""
    whole = counter.message(message)
    if message.role is not Role.ASSISTANT:
        yield _group(message, recalled), whole
        return
    calls = sum(counter.part(part) for part in message.parts if isinstance(part, ToolCall))
    thoughts = sum(counter.part(part) for part in message.parts if isinstance(part, Reasoning))
    if thoughts:
        yield "thinking", thoughts
    if calls:
        yield "tools", calls
    yield "assistant", whole - calls - thoughts


def _group(message: Message, recalled: frozenset[Message]) -> str:
    if message in recalled:
        return "recalled"
    if message.role is Role.SYSTEM:
        return "system"
    if message.role is Role.TOOL or any(isinstance(part, ToolResult) for part in message.parts):
        return "tools"
    return "summary" if is_framed(message.text) else "user"  # what stands in place of what left

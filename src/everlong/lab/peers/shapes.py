"""What an adapter offers: a way to fit, or a way to count. Standard library only: it runs in every environment."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["FAILURES", "SUMMARY", "Counting", "Fitting", "Message", "split_system", "without_empty_calls"]

Message = dict[str, Any]

#: The answer of every stub model that a peer asks for a summary: always the same, about 60 tokens.
SUMMARY = (
    "The user asked for several fixes in the workspace and named a ticket with each. The agent read files, logs and "
    "search results, found a pool that leaks under load and a retry without a limit, changed both, and ran the tests. "
    "Open: the last log still shows one error; nobody has looked at it yet."
)


#: How a library fails on unexpected input; an adapter adds the errors of its library.
FAILURES: tuple[type[Exception], ...] = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RuntimeError,
    TypeError,
    ValueError,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitting:
    """One way to bring a history under a budget.

    Only `fit` is timed, on what `read` made of the OpenAI messages, because a user of that library has them in its own
    form. `write` makes OpenAI messages again; it gets the original ones, to keep what the library did not change.
    """

    read: Callable[[list[Message]], Any]
    fit: Callable[[Any, int], Any]
    write: Callable[[Any, list[Message]], list[Message]]
    failures: tuple[type[Exception], ...] = FAILURES


def split_system(messages: list[Message]) -> tuple[list[Message], list[Message]]:
    """Return the system prompt, if there is one, and the rest. Example: system, user -> [system], [user]"""
    first = 1 if messages and messages[0]["role"] == "system" else 0
    return messages[:first], messages[first:]


def without_empty_calls(messages: list[Message]) -> list[Message]:
    """Return the messages without empty lists of calls."""
    return [{key: value for key, value in message.items() if key != "tool_calls" or value} for message in messages]


@dataclass(frozen=True, slots=True, kw_only=True)
class Counting:
    """One way to count. `count` is timed on what `read` made of the messages; `forget` clears its cache.

    `grow` takes a history that has been counted and returns a function that counts it with one more message, given as a
    list of one.
    """

    read: Callable[[list[dict[str, Any]]], Any]
    count: Callable[[Any], int]
    grow: Callable[[Any], Callable[[Any], int]]
    forget: Callable[[], None] = lambda: None

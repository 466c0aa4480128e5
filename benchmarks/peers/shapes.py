"""What a peer's module offers: ways to fit and ways to count. Runs in every environment, so standard library only."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["SUMMARY", "Counting", "Fitting", "Message"]

Message = dict[str, Any]

#: What every stub model answers when a peer asks for a summary: the same text for all, about 60 tokens.
SUMMARY = (
    "The user asked for several fixes in the workspace and named a ticket with each. The agent read files, logs and "
    "search results, found a pool that leaks under load and a retry without a limit, changed both, and ran the tests. "
    "Open: the last log still shows one error; nobody has looked at it yet."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitting:
    """One way to bring a history under a budget.

    `fit` alone is timed, on what `read` made of the OpenAI messages: a user of that peer holds them in its own form.
    `write` gives OpenAI messages again; it is handed the original ones, to take over what the peer did not touch.
    """

    read: Callable[[list[Message]], Any]
    fit: Callable[[Any, int], Any]
    write: Callable[[Any, list[Message]], list[Message]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Counting:
    """One way to count. `count` is timed on what `read` made of the messages; `forget` drops what it remembers.

    `grow` takes the whole history, which has been counted, and gives the function that says the new total once a
    message has been added (itself read as a list of one).
    """

    read: Callable[[list[Message]], Any]
    count: Callable[[Any], int]
    grow: Callable[[Any], Callable[[Any], int]]
    forget: Callable[[], None] = lambda: None

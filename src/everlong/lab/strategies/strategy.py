"""What a strategy is: anything that brings a history under a budget.

A strategy begins once for each conversation and budget. The histories that it then gets are prefixes of one
conversation, each at least as long as the one before (a dialogue ends in different questions). It may remember what it
has seen to save time, but not to select differently.
"""

import reprlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from time import process_time
from typing import Any, TypeAlias, cast

from everlong.core import History, JsonObject, Message
from everlong.engine import counter_for
from everlong.errors import BudgetImpossible, InputError, WireError
from everlong.tokens import Counter
from everlong.wire import OPENAI_CHAT, plain as plain_copy

__all__ = ["MODEL", "Chat", "Select", "Strategy", "counter", "from_chat", "plain", "rendered"]

MODEL = "gpt-4o"  # all budgets of the lab are counted with its vocabulary (o200k)

Select: TypeAlias = Callable[[History, int], History]
#: Your own function: takes OpenAI messages and a budget, returns OpenAI messages.
Chat: TypeAlias = Callable[[list[dict[str, Any]], int], Sequence[dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class Strategy:
    """A strategy with its name. `begin` returns the selection for one conversation and budget.

    `clock` measures a selection in seconds: CPU time, which a busy machine changes little, unless another process does
    the work.
    """

    name: str
    begin: Callable[[], Select]
    clock: Callable[[], float] = process_time


def counter() -> Counter:
    """Return the counter for every budget in the lab."""
    return counter_for(MODEL)


def plain(name: str, select: Select) -> Strategy:
    """Return a strategy that remembers nothing."""
    return Strategy(name, lambda: select)


def from_chat(name: str, function: Chat) -> Strategy:
    """Return a strategy that works on OpenAI messages.

    Any error of the function becomes an InputError, in any process.
    """

    def select(messages: History, budget: int) -> History:
        copies = [_copy(raw) for message in messages for raw in rendered(message)]
        try:
            answer = list(function(copies, budget))
        except BudgetImpossible:
            raise
        except Exception as error:  # foreign code: its author gets the reason in one line
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            raise InputError(f"{name} failed at {len(copies)} messages: {reason}") from error
        return tuple(_read(name, at, raw) for at, raw in enumerate(answer))

    return plain(name, select)


def _read(name: str, at: int, raw: object) -> Message:
    if not isinstance(raw, Mapping):
        raise InputError(f"{name} does not return messages: its item {at} is {reprlib.repr(raw)}")
    try:
        return OPENAI_CHAT.read_message(dict(raw), f"messages[{at}]")
    except WireError as error:  # its fields cannot be pickled
        raise InputError(f"{name} does not return messages: {error}") from error


def _copy(raw: JsonObject) -> dict[str, Any]:
    """Return a copy that may be changed, because every strategy gets the same rendered messages."""
    return cast("dict[str, Any]", plain_copy(raw))


@lru_cache(maxsize=20_000)
def rendered(message: Message) -> tuple[JsonObject, ...]:
    """Return a message as OpenAI messages. They are cached and must not be changed."""
    return tuple(OPENAI_CHAT.write_message(message))

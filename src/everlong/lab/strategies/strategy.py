"""What a strategy is: anything that brings a history under a budget.

A strategy is begun once for each conversation and budget, and may remember what it saw: the histories it is handed
are beginnings of one conversation, each at least as long as the one before (a dialogue ends in other questions).
What it remembers may save time; it may not change what it selects.
"""

import reprlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from time import process_time
from typing import Any, TypeAlias, cast

from everlong.core import History, JsonObject, Message
from everlong.engine import copied, counter_for
from everlong.errors import BudgetImpossible, InputError, WireError
from everlong.tokens import Counter
from everlong.wire import OPENAI_CHAT

__all__ = ["MODEL", "Chat", "Select", "Strategy", "counter", "from_chat", "plain", "rendered"]

MODEL = "gpt-4o"  # whose vocabulary (o200k) counts every budget of the lab

Select: TypeAlias = Callable[[History, int], History]
#: Anyone's own: OpenAI messages and a budget in, OpenAI messages out.
Chat: TypeAlias = Callable[[list[dict[str, Any]], int], Sequence[dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class Strategy:
    """A way to select, by its name. `begin` gives the selection for one conversation and budget.

    `clock` tells what a selection costs, in seconds: CPU time, which a busy machine changes little, unless the work
    is done by another process.
    """

    name: str
    begin: Callable[[], Select]
    clock: Callable[[], float] = process_time


def counter() -> Counter:
    """The counter of every budget in the lab."""
    return counter_for(MODEL)


def plain(name: str, select: Select) -> Strategy:
    """A strategy that remembers nothing."""
    return Strategy(name, lambda: select)


def from_chat(name: str, function: Chat) -> Strategy:
    """A strategy that works on OpenAI messages. What it does wrong is one InputError, in any process."""

    def select(messages: History, budget: int) -> History:
        given = [_own(raw) for message in messages for raw in rendered(message)]
        try:
            answer = list(function(given, budget))
        except BudgetImpossible:
            raise
        except Exception as error:  # anyone's own code: who wrote it gets its reason in one line
            said = " ".join(f"{type(error).__name__}: {error}".split())
            raise InputError(f"{name} failed at {len(given)} messages: {said}") from error
        return tuple(_read(name, at, raw) for at, raw in enumerate(answer))

    return plain(name, select)


def _read(name: str, at: int, raw: object) -> Message:
    if not isinstance(raw, Mapping):
        raise InputError(f"{name} gives no message: its item {at} is {reprlib.repr(raw)}")
    try:
        return OPENAI_CHAT.read_message(dict(raw), f"messages[{at}]")
    except WireError as error:  # its fields do not survive the way out of another process
        raise InputError(f"{name} gives no message: {error}") from error


def _own(raw: JsonObject) -> dict[str, Any]:
    """A copy that may be changed: what is rendered once is handed to every strategy."""
    return cast("dict[str, Any]", copied(raw))


@lru_cache(maxsize=20_000)
def rendered(message: Message) -> tuple[JsonObject, ...]:
    """A message as OpenAI messages; made once, not to be changed."""
    return tuple(OPENAI_CHAT.write_message(message))

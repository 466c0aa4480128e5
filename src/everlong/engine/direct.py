"""Counting for those who hold their own messages: plain values in, a number out, no event loop."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Any, cast

from everlong.core import Json, Message
from everlong.engine.growing import copied, gained, parsed, shared
from everlong.tokens import Counter
from everlong.wire import document_of, dump, openai_chat

__all__ = ["count", "counter_for", "forget_counts"]

Messages = Sequence[Mapping[str, Any]] | Sequence[Message] | Mapping[str, Any]

REMEMBERED_LISTS = 8  # the newest list of so many models


@dataclass(frozen=True, slots=True)
class _Counted:
    """A list that was counted: a copy of each message, so that a changed one is noticed, and the tokens up to it."""

    copies: tuple[Json, ...]
    totals: tuple[int, ...]


_counted: dict[str, _Counted] = {}


@lru_cache(maxsize=64)
def counter_for(model: str) -> Counter:
    """The counter of a model, shared, so that what was counted once stays counted."""
    return Counter(model)


def count(messages: Messages, *, model: str = "", tools: Sequence[Mapping[str, Any]] = ()) -> int:
    """Tokens of messages in any wire format (or a whole request body), with the tool schemas.

    A list that begins as the last one did costs what is new.

    >>> count([{"role": "user", "content": "hello world"}], model="gpt-4o")
    6
    """
    counter = counter_for(model)
    schemas = counter.tools(dump(dict(tool)) for tool in tools)
    if isinstance(messages, Mapping):
        document = document_of(dict(messages))
        return counter.messages(document.messages) + counter.tools(document.tools) + schemas
    if all(isinstance(message, Message) for message in messages):
        return counter.messages(cast("Sequence[Message]", messages)) + schemas
    return _count_list([cast(Json, row) for row in messages], model, counter) + schemas


def forget_counts() -> None:
    """Forget every list and every message that was counted: for those who measure."""
    _counted.clear()
    counter_for.cache_clear()


def _count_list(rows: list[Json], model: str, counter: Counter) -> int:
    known = _counted.get(model, _Counted((), ()))
    start = shared(rows, known.copies)
    new = gained(rows, start) if start else None
    if new is None:
        start, new = 0, tuple(map(copied, rows))
        document = document_of(list(new))
        messages: Iterable[Message] = document.messages
        if document.fmt != openai_chat.FORMAT:
            return counter.messages(messages)
    else:
        messages = parsed(new, start)
    sizes = map(counter.message, messages)
    totals = tuple(accumulate(sizes, initial=known.totals[start - 1] if start else 0))[1:]
    known = _Counted((*known.copies[:start], *new), (*known.totals[:start], *totals))
    _counted.pop(model, None)
    _counted[model] = known
    for oldest in list(_counted)[:-REMEMBERED_LISTS]:
        _counted.pop(oldest, None)
    return known.totals[-1] if known.totals else 0

"""`count`: the tokens of a list of messages. If a list has grown since the last call, only new messages are counted."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, cast

from everlong.core import Json, Message, expect_list, expect_text
from everlong.engine.budget import counter_for
from everlong.engine.contracts import ToolLike, schema_texts
from everlong.engine.histories.given import (
    CONVERSATION,
    format_of_lists,
    gained,
    parsed_from,
    read_conversation,
    shared,
)
from everlong.tokens import Counter
from everlong.wire import object_library, plain

__all__ = ["count", "forget_counts"]

REMEMBERED_LISTS = 8  # models whose newest list is remembered


@dataclass(frozen=True, slots=True)
class _Counted:
    """A counted list: copies of the messages, to notice changes, and the total tokens up to each message."""

    copies: tuple[Json, ...]
    totals: tuple[int, ...]


_counted: dict[str, _Counted] = {}


def count(
    messages: Sequence[Any] | Mapping[str, Any],
    *,
    model: str = "",
    tools: Sequence[ToolLike] = (),
) -> int:
    """Return the number of tokens of messages and tool schemas.

    `messages` can be anything that `fit` accepts, including a whole request body. When a list begins like the one
    counted before, only the new messages are counted.

    >>> count([{"role": "user", "content": "hello world"}], model="gpt-4o")
    6
    """
    expect_text("model", model, "a model's name")
    counter = counter_for(model)
    schemas = counter.tools(schema_texts(tools))
    if isinstance(messages, Mapping):
        document = read_conversation(plain(messages))
        return counter.messages(document.messages) + counter.tools(document.tools) + schemas
    expect_list("messages", messages, CONVERSATION)
    library = object_library(messages)
    if library is not None:
        return counter.messages([message for unit in library.read(messages) for message in unit.messages]) + schemas
    return _count_list([cast(Json, row) for row in messages], model, counter) + schemas


def forget_counts() -> None:
    """Forget every list and message that was counted, for benchmarks."""
    _counted.clear()
    counter_for.cache_clear()


def _count_list(rows: list[Json], model: str, counter: Counter) -> int:
    known = _counted.get(model, _Counted((), ()))
    start = shared(rows, known.copies)
    new = gained(rows, start) if start else None
    if new is None:
        start, new = 0, tuple(map(plain, rows))
        document = read_conversation(list(new))
        messages: Iterable[Message] = document.messages
        if format_of_lists(document.fmt) is None:
            return counter.messages(messages)
    else:
        messages = parsed_from(new, start)
    sizes = map(counter.message, messages)
    totals = tuple(accumulate(sizes, initial=known.totals[start - 1] if start else 0))[1:]
    known = _Counted((*known.copies[:start], *new), (*known.totals[:start], *totals))
    _counted.pop(model, None)
    _counted[model] = known
    for oldest in list(_counted)[:-REMEMBERED_LISTS]:
        _counted.pop(oldest, None)
    return known.totals[-1] if known.totals else 0

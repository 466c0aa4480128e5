"""everlong as a user calls it, with plain dicts in and out; and its counter on values that are kept."""

from collections.abc import Callable
from typing import cast

import everlong
from everlong.core import History, Json, Message as Value
from everlong.engine import forget_counts
from everlong.errors import EverlongError
from everlong.lab.peers.shapes import FAILURES, Counting, Fitting, Message
from everlong.lab.speed.transcripts import TOOLS
from everlong.tokens import Counter, Tally
from everlong.wire import OPENAI_CHAT

MODEL = "gpt-4o"


def _fitted(messages: list[Message], budget: int) -> list[Message]:
    """Fit the messages. The schemas count against the budget too, unlike in any peer."""
    return everlong.fit(messages, model=MODEL, budget=budget, tools=TOOLS).messages


STRATEGIES = {
    "fit": Fitting(read=list, fit=_fitted, write=lambda messages, _: messages, failures=(*FAILURES, EverlongError))
}


def _values(messages: list[Message]) -> History:
    return OPENAI_CHAT.read_body(cast(Json, messages)).messages


def _grown_list(messages: list[Message]) -> Callable[[list[Message]], int]:
    return lambda more: everlong.count([*messages, *more], model=MODEL)


def _tally(values: History) -> Callable[[tuple[Value, ...]], int]:
    tally = Tally(Counter(MODEL), values)
    return tally.extend


COUNTERS = {
    "count": Counting(
        read=list,
        count=lambda messages: everlong.count(messages, model=MODEL),
        grow=_grown_list,
        forget=forget_counts,
    ),
    "values": Counting(read=_values, count=lambda values: Counter(MODEL).messages(values), grow=_tally),
}

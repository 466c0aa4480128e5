"""langchain's `trim_messages`: as in its documentation, with an exact counter, and with only the defaults."""

from typing import Any

from langchain_core.messages import BaseMessage, trim_messages

from everlong.lab.peers.adapters.langchain_messages import exact, read, write
from everlong.lab.peers.shapes import Fitting


def _documented(messages: list[BaseMessage], budget: int, counter: Any = "approximate") -> list[BaseMessage]:
    return trim_messages(
        messages, max_tokens=budget, strategy="last", token_counter=counter, start_on="human", include_system=True
    )


def _exact(messages: list[BaseMessage], budget: int) -> list[BaseMessage]:
    return _documented(messages, budget, exact)


def _defaults(messages: list[BaseMessage], budget: int) -> list[BaseMessage]:
    return trim_messages(messages, max_tokens=budget, token_counter="approximate")


STRATEGIES = {
    "documented": Fitting(read=read, fit=_documented, write=write),
    "exact": Fitting(read=read, fit=_exact, write=write),
    "defaults": Fitting(read=read, fit=_defaults, write=write),
}

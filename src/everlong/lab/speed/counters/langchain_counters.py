"""langchain's `count_tokens_approximately`: a quarter of the characters."""

from collections.abc import Callable

from langchain_core.messages import BaseMessage, convert_to_messages
from langchain_core.messages.utils import count_tokens_approximately

from everlong.lab.peers.shapes import Counting


def _grown(messages: list[BaseMessage]) -> Callable[[list[BaseMessage]], int]:
    return lambda more: count_tokens_approximately([*messages, *more])


COUNTERS = {"approximate": Counting(read=convert_to_messages, count=count_tokens_approximately, grow=_grown)}

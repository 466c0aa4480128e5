"""litellm's `token_counter` on OpenAI messages."""

from collections.abc import Callable

from litellm import token_counter

from everlong.lab.peers.shapes import Counting, Message


def _count(messages: list[Message]) -> int:
    return token_counter(model="gpt-4o", messages=messages)


def _grown(messages: list[Message]) -> Callable[[list[Message]], int]:
    return lambda more: _count([*messages, *more])


COUNTERS = {"token_counter": Counting(read=list, count=_count, grow=_grown)}

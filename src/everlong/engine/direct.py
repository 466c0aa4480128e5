"""The functions for those who hold their own messages: plain values in, plain values out, no event loop."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from everlong.core.messages import JsonText, Message
from everlong.tokens.counter import Counter
from everlong.wire.fields import dump
from everlong.wire.read import document_of

__all__ = ["count", "counter_for"]

Messages = Sequence[Mapping[str, Any]] | Sequence[Message] | Mapping[str, Any]


@lru_cache(maxsize=64)
def counter_for(model: str) -> Counter:
    """The counter of a model, shared, so that what was counted once stays counted."""
    return Counter(model)


def count(messages: Messages, *, model: str = "", tools: Sequence[Mapping[str, Any]] = ()) -> int:
    """Tokens of messages in any wire format (or a whole request body), with the tool schemas.

    >>> count([{"role": "user", "content": "hello world"}], model="gpt-4o")
    6
    """
    counter = counter_for(model)
    history, schemas = _history(messages)
    return counter.messages(history) + counter.tools((*schemas, *(dump(dict(tool)) for tool in tools)))


def _history(messages: Messages) -> tuple[Sequence[Message], tuple[JsonText, ...]]:
    if not isinstance(messages, Mapping):
        values = [message for message in messages if isinstance(message, Message)]
        if len(values) == len(messages):
            return values, ()
        document = document_of([dict(message) for message in messages if isinstance(message, Mapping)])
    else:
        document = document_of(dict(messages))
    return document.messages, document.tools

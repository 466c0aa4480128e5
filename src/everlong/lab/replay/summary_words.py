"""A summary as a model would write it, made of a conversation's own words: what was said last, in sentences."""

import json

from everlong.core import History, Message, Role, Text
from everlong.summarize import clipped, one_line
from everlong.tokens import Counter

__all__ = ["summary_of"]

MOST_TOKENS = 800  # about what our own instruction asks for: lists of short sentences
LONGEST = 300  # characters of one item


def summary_of(asked: History, counter: Counter) -> Message:
    """The answer to a request for a summary: JSON in the form that is asked for."""
    said = [one_line(message.text) for message in asked if message.role is Role.ASSISTANT and message.text.strip()]
    items: list[str] = []
    left = MOST_TOKENS
    for text in reversed(said):
        item = clipped(text, LONGEST)
        left -= counter.text(item) + 4
        if left < 0:
            break
        items.insert(0, item)
    context = items[-1] if items else "The conversation goes on with the same work as before."
    body = {"context": context, "done": items[:-1], "next": []}
    return Message(Role.ASSISTANT, (Text(json.dumps(body, ensure_ascii=False)),))

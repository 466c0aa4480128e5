"""A history in parts that one call can read: whole steps, in order, nothing left out."""

from collections.abc import Sequence

from everlong.core import History, Message, steps_of
from everlong.summarize.transcripts import lines_of, shown
from everlong.tokens import Counter

__all__ = ["chunks"]

#: Characters of one result and of one message as a part is first reckoned; larger ones are clamped when read.
RESULT, MESSAGE = 3_000, 20_000
FRAME = 32  # tokens of the two tags around a part
LINE_END = 1  # token between two steps


def chunks(messages: Sequence[Message], *, counter: Counter, room: int) -> list[History]:
    """Parts whose transcripts fit `room` tokens, each as full as it gets: no fewer parts can hold these steps in order.

    A step that alone is larger is a part of its own, and is clamped when read.
    Example: ten steps of 400 tokens, room 1 000 -> five parts of two steps
    """
    parts: list[History] = []
    part: list[Message] = []
    used = FRAME
    for step in steps_of(messages):
        members = messages[step.start : step.stop]
        size = LINE_END + counter.text(shown(lines_of(members, "en"), result=RESULT, message=MESSAGE))
        if part and used + size > room:
            parts.append(tuple(part))
            part, used = [], FRAME
        part += members
        used += size
    return [*parts, tuple(part)] if part else parts

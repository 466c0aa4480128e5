"""The static buffer: which messages are still in it. Told by the log alone, so that every process says the same.

The buffer grows until a user message makes it too long; then it shrinks at once to its least, from a user message on,
and grows again. Between two such cuts nothing in front of it changes.
"""

from collections.abc import Sequence

from everlong.core import Message, Role, head_length

__all__ = ["BUFFER_LEAST", "BUFFER_LIMIT", "buffer_start"]

BUFFER_LIMIT, BUFFER_LEAST = 50, 10  # messages


def buffer_start(messages: Sequence[Message], *, limit: int = BUFFER_LIMIT, least: int = BUFFER_LEAST) -> int:
    """Where the buffer begins; what stands before, system text aside, was evicted.

    Example: 55 messages, users at every even place -> 44, eleven are left; two more messages -> still 44
    """
    start = head_length(messages)
    asked: list[int] = []
    for at in range(start, len(messages)):
        if messages[at].role is not Role.USER:
            continue
        asked.append(at)
        if at + 1 - start <= limit:
            continue
        kept = [place for place in asked if place <= at + 1 - least]
        if kept and kept[-1] > start:
            start = kept[-1]
            asked = [place for place in asked if place >= start]
    return start

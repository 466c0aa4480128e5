"""`static-buffer`: a buffer of messages in front of which nothing changes until it is full, then it shrinks at once.

The buffer grows until a user message makes it too long; then it keeps its least, from a user message on, and grows
again. What it evicted is summarised in the system text. The log alone decides, so every process agrees.
"""

from collections.abc import Sequence
from functools import partial

from everlong.compress.preset import HistoryWindow, Preset, SummaryPolicy
from everlong.compress.steps.newest import newest
from everlong.core import Message, Role, head_length

__all__ = ["BUFFER_LEAST", "BUFFER_LIMIT", "STATIC_BUFFER", "buffer_start"]

BUFFER_LIMIT, BUFFER_LEAST = 50, 10  # messages


def buffer_start(messages: Sequence[Message], *, limit: int = BUFFER_LIMIT, least: int = BUFFER_LEAST) -> int:
    """Return where the buffer begins; what is before it, apart from system text, was evicted.

    Example: 55 messages, users at every even place -> 44, eleven are left; two more messages -> still 44
    """
    start = head_length(messages)
    questions: list[int] = []
    for at in range(start, len(messages)):
        if messages[at].role is not Role.USER:
            continue
        questions.append(at)
        if at + 1 - start <= limit:
            continue
        early = [place for place in questions if place <= at + 1 - least]
        if early and early[-1] > start:
            start = early[-1]
            questions = [place for place in questions if place >= start]
    return start


STATIC_BUFFER = Preset(
    name="static-buffer",
    compaction=(partial(newest, most_messages=BUFFER_LIMIT, least_messages=BUFFER_LEAST),),
    every_call=True,
    history=HistoryWindow(messages=BUFFER_LIMIT, start=buffer_start),
    summary=SummaryPolicy(style="buffer", evicts_before=buffer_start, in_system=True),
)

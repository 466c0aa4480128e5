"""`static-buffer`: a buffer of messages in front of which nothing changes until it is full, then it shrinks at once.

The buffer grows until a user message makes it too long; then it keeps its least, from a user message on, and grows
again. What it evicted is summarised in the system text. The log alone decides, so every process agrees.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import cast

from everlong.compress.options import Option, Scalar
from everlong.compress.preset import HistoryWindow, Preset, SummaryPolicy
from everlong.compress.steps.choice.newest import newest
from everlong.core import Message, Role, frames_in, head_length

__all__ = ["BUFFER_LEAST", "BUFFER_LIMIT", "STATIC_BUFFER", "buffer_start"]

BUFFER_LIMIT, BUFFER_LEAST = 50, 10  # messages
OPTIONS = (
    Option(
        name="message_buffer_limit",
        kind=int,
        default=BUFFER_LIMIT,
        help="The number of messages above which the buffer is compacted.",
        least=1,
        subject="messages",
    ),
    Option(
        name="message_buffer_min",
        kind=int,
        default=BUFFER_LEAST,
        help="The fewest messages that stay when the buffer is compacted.",
        least=1,
    ),
)


def buffer_start(messages: Sequence[Message], *, limit: int = BUFFER_LIMIT, least: int = BUFFER_LEAST) -> int:
    """Return where the buffer begins; what is before it, apart from system text, was evicted.

    Example: 55 messages, users at every even place -> 40: the 51st cut it; it grows to 90 messages before the next cut
    """
    start, frames = head_length(messages), frames_in(messages)
    questions: list[int] = []
    for at in range(start, len(messages)):
        if messages[at].role is not Role.USER or at in frames:
            continue
        questions.append(at)
        if at + 1 - start <= limit:
            continue
        early = [place for place in questions if place <= at + 1 - least]
        if early and early[-1] > start:
            start = early[-1]
            questions = [place for place in questions if place >= start]
    return start


def static_buffer(limit: int = BUFFER_LIMIT, least: int = BUFFER_LEAST) -> Preset:
    """Return the preset with a buffer of this many messages, of which the least stay when it is full."""
    start = partial(buffer_start, limit=limit, least=min(least, limit))
    return Preset(
        name="static-buffer",
        compaction=(partial(newest, most_messages=limit, least_messages=min(least, limit)),),
        every_call=True,
        history=HistoryWindow(messages=limit, start=start),
        summary=SummaryPolicy(style="buffer", evicts_before=start, in_system=True),
        options=OPTIONS,
        configure=_configured,
    )


def _configured(options: Mapping[str, Scalar]) -> Preset:
    return static_buffer(cast(int, options["message_buffer_limit"]), cast(int, options["message_buffer_min"]))


STATIC_BUFFER = static_buffer()

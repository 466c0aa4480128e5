"""Shorten long messages of the user and the assistant to their head and tail.

System text never changes, nor by default the last round. If a message has several texts, the short ones stay whole and
the long ones share the rest. The result is within the limit.
"""

from collections.abc import Iterator

from everlong.compress.draft import Draft, Task, last_round_at
from everlong.compress.text.boundaries import Cut, cut_characters, fair_cap
from everlong.compress.text.changes import Cause, Change, Origins, rewrite, sealed
from everlong.compress.text.markers import gap_in_message
from everlong.core import Message, Ref, Role, Text

__all__ = ["long_messages"]

CAUSE = Cause("long_messages", "the message is longer than its limit")

SMALLEST = 400  # characters; with less, there would be little besides the marker
MARKER_CHARACTERS = 150  # reserved for the marker


def long_messages(
    draft: Draft,
    task: Task,
    *,
    user: int = 30_000,
    assistant: int = 20_000,
    shares: tuple[float, float] = (0.75, 0.25),
    keep_last_round: bool = True,
) -> Draft:
    """Shorten messages above a number of characters (0: never). `shares` of the limit are for beginning and end.

    Example: a user message of 50 000 characters -> about its first 22 400 and its last 7 450, and a marker
    """
    limits = {Role.USER: user, Role.TOOL: user, Role.ASSISTANT: assistant}
    spared = last_round_at(draft) if keep_last_round else len(draft.history)
    origins = Origins(draft)
    changes = []
    for position, slot in draft.open():
        limit = limits.get(slot.message.role, 0)
        if limit <= 0 or slot.at >= spared:
            continue
        for index, part, cap in _too_long(slot.message, limit):
            ref = origins.ref(slot, index)
            now = Text(_shortened(part.text, cap, shares, ref, task), part.extra)
            changes.append(Change(position, index, now, ref))
    return rewrite(draft, task, CAUSE, changes)


def _too_long(message: Message, limit: int) -> Iterator[tuple[int, Text, int]]:
    """Yield the texts to shorten, each with its index and the characters that it may have."""
    texts = [(index, part) for index, part in enumerate(message.parts) if isinstance(part, Text)]
    lengths = [len(part.text) for _, part in texts]
    if sum(lengths) <= limit:
        return
    cap = max(SMALLEST, fair_cap(lengths, limit))
    yield from ((index, part, cap) for index, part in texts if len(part.text) > cap and not sealed(part))


def _shortened(text: str, cap: int, shares: tuple[float, float], ref: Ref, task: Task) -> str:
    head, tail = shares
    kept = min(int(cap * (head + tail)), cap - MARKER_CHARACTERS)
    cut = cut_characters(Cut(text, len(text), 0), kept, tail / (head + tail))
    return cut.joined(gap_in_message(cut, ref, task))

"""Compaction points: how an append-only log becomes the view that is sent.

A log only grows. A compaction appends a `Point`; undoing it appends a `Withdrawal`. Positions in the
log are the only identity here. The view is the leading system text, what the newest point that still
stands left in place of what it covers, and every message after.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from everlong.core.edits import Edit
from everlong.core.messages import History, Message
from everlong.core.rounds import head_length

__all__ = ["Entry", "Log", "Point", "Withdrawal", "newest_point", "view"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """Everything in the log before position `boundary`, system text aside, is said by `summary` from here on."""

    boundary: int
    summary: History
    tokens_before: int = 0
    tokens_after: int = 0
    reason: str = ""
    focus: str = ""
    #: What was done to the covered messages, `at` being positions in the log.
    edits: tuple[Edit, ...] = ()


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """The point at log position `point` no longer counts."""

    point: int


Entry: TypeAlias = Message | Point | Withdrawal
Log: TypeAlias = tuple[Entry, ...]


def newest_point(log: Sequence[Entry]) -> tuple[int, Point] | None:
    """The newest point that was not withdrawn, with its position."""
    withdrawn = {entry.point for entry in log if isinstance(entry, Withdrawal)}
    for at in range(len(log) - 1, -1, -1):
        entry = log[at]
        if isinstance(entry, Point) and at not in withdrawn:
            return at, entry
    return None


def view(log: Sequence[Entry]) -> History:
    """What stands to be sent.

    Example: system, user, assistant, user, Point(boundary=3, summary=S) -> system, S, user
    """
    found = newest_point(log)
    messages = tuple(entry for entry in log if isinstance(entry, Message))
    if found is None:
        return messages
    _, point = found
    covered = sum(1 for entry in log[: point.boundary] if isinstance(entry, Message))
    head = head_length(messages)
    return messages[:head] + point.summary + messages[max(head, covered) :]

"""Where a history may be cut.

Owns the pairing of calls and results: a result belongs to the nearest call before it that has its
id (some servers count ids from zero in every turn). A history is rounds (from one user message to
the next) made of steps (an assistant message with the results of its calls). Steps and rounds are
the only units of cutting; no other module compares call ids to decide a cut. `protected` says which
messages law 4 keeps byte for byte; no other module decides that.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from everlong.core.messages import CallId, Message, Role, ToolCall, ToolResult

__all__ = [
    "Pair",
    "Protection",
    "Round",
    "Step",
    "head_length",
    "last_user_index",
    "pairs_of",
    "protected",
    "rounds_of",
    "safe_cuts",
    "steps_of",
]


@dataclass(frozen=True, slots=True)
class Pair:
    """A result and its call, each as (message index, part index)."""

    call: tuple[int, int]
    result: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Step:
    """Messages `start` to `stop` (exclusive) that stay or go together."""

    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Round:
    """A user message and all that follows it up to the next one; the first may lack its user message."""

    start: int
    stop: int
    steps: tuple[Step, ...]


def pairs_of(messages: Sequence[Message]) -> tuple[Pair, ...]:
    """Each result that has a call before it, in order of the results.

    Example: user, calls(a, b), result(b), result(a), result(x) -> a and b paired, x not.
    """
    newest: dict[CallId, tuple[int, int]] = {}
    pairs = []
    for at, message in enumerate(messages):
        for index, part in enumerate(message.parts):
            if isinstance(part, ToolResult):
                call = newest.get(part.call)
                if call is not None:
                    pairs.append(Pair(call, (at, index)))
            elif isinstance(part, ToolCall):
                newest[part.id] = (at, index)
    return tuple(pairs)


def safe_cuts(messages: Sequence[Message]) -> tuple[int, ...]:
    """Indexes i such that no call stands before i with a result at or after it; 0 and the end included.

    Example: user, call 1, result 1, user -> (0, 1, 3, 4)
    """
    closed_at = list(range(len(messages) + 1))
    for pair in pairs_of(messages):
        call_at, result_at = pair.call[0], pair.result[0]
        if result_at > call_at:
            closed_at[call_at] = max(closed_at[call_at], result_at)
    cuts, reach = [0], 0
    for at in range(len(messages)):
        reach = max(reach, closed_at[at])
        if reach <= at:
            cuts.append(at + 1)
    return tuple(cuts)


def steps_of(messages: Sequence[Message]) -> tuple[Step, ...]:
    """The history as its smallest pieces that can stay or go alone."""
    cuts = safe_cuts(messages)
    return tuple(Step(start, stop) for start, stop in pairwise(cuts))


def head_length(messages: Sequence[Message]) -> int:
    """How many system messages stand at the very front."""
    for at, message in enumerate(messages):
        if message.role is not Role.SYSTEM:
            return at
    return len(messages)


def rounds_of(messages: Sequence[Message]) -> tuple[Round, ...]:
    """Everything after the leading system messages, as rounds.

    Example: system, user, call, result, assistant, user -> rounds [1, 5) and [5, 6)
    """
    head = head_length(messages)
    rounds: list[list[Step]] = []
    for step in steps_of(messages):
        if step.start < head:
            continue
        if not rounds or messages[step.start].role is Role.USER:
            rounds.append([])
        rounds[-1].append(step)
    return tuple(Round(steps[0].start, steps[-1].stop, tuple(steps)) for steps in rounds)


def last_user_index(messages: Sequence[Message]) -> int | None:
    """Where the last user message stands, or None if nobody asked anything."""
    for at in range(len(messages) - 1, -1, -1):
        if messages[at].role is Role.USER:
            return at
    return None


class Protection(StrEnum):
    """Why a message stays byte for byte."""

    SYSTEM = "system text"
    ASKED = "last user message"
    UNREAD = "result not read yet"
    PINNED = "pinned"


def protected(messages: Sequence[Message], pins: Sequence[int] | frozenset[int] = ()) -> dict[int, Protection]:
    """Index -> reason, for the leading system text, the last user message, unread results and pins.

    A result is unread until an assistant message follows it.
    Example: system, user, call, result -> {0: SYSTEM, 1: ASKED, 3: UNREAD}
    """
    reasons = dict.fromkeys((at for at in pins if 0 <= at < len(messages)), Protection.PINNED)
    for at in range(len(messages) - 1, -1, -1):
        if messages[at].role is Role.ASSISTANT:
            break
        if messages[at].results:
            reasons[at] = Protection.UNREAD
    last_user = last_user_index(messages)
    if last_user is not None:
        reasons[last_user] = Protection.ASKED
    return reasons | dict.fromkeys(range(head_length(messages)), Protection.SYSTEM)

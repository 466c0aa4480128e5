"""Find where a history may be cut.

This module pairs calls with results: a result belongs to the nearest earlier call with its id (some servers count ids
from zero in every turn). A history consists of rounds (from one user message to the next), and a round of steps (an
assistant message with the results of its calls). A result in the user role belongs to the step that it answers and
begins no round. Histories are cut only between steps or rounds; no other module compares call ids to decide a cut. Only
`protected` decides which messages law 4 keeps.
"""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from everlong.core.messages import CallId, Message, Role, ToolCall, ToolResult
from everlong.core.observations import Framed, FrameKind, frames_in, is_nudge

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
    "task_index",
]


@dataclass(frozen=True, slots=True)
class Pair:
    """A result and its call, each as (message index, part index)."""

    call: tuple[int, int]
    result: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Step:
    """The messages `start` to `stop` (exclusive), which stay or go together."""

    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Round:
    """A user message and everything after it up to the next one. The first round may lack its user message."""

    start: int
    stop: int
    steps: tuple[Step, ...]


def pairs_of(messages: Sequence[Message]) -> tuple[Pair, ...]:
    """Return the pairs of calls and results, in order of the results. Results without an earlier call are left out.

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
    """Return the indexes where a history can be divided without separating a call from its result.

    0 and the end are included. Example: user, call 1, result 1, user -> (0, 1, 3, 4)
    """
    return _safe_cuts(messages, frames_in(messages))


def _safe_cuts(messages: Sequence[Message], frames: Mapping[int, Framed]) -> tuple[int, ...]:
    closed_at = list(range(len(messages) + 1))
    for pair in pairs_of(messages):
        call_at, result_at = pair.call[0], pair.result[0]
        if result_at > call_at:
            closed_at[call_at] = max(closed_at[call_at], result_at)
    for at, framed in frames.items():
        if framed.kind is FrameKind.RESULT:
            closed_at[framed.answers] = max(closed_at[framed.answers], at)
    cuts, reach = [0], 0
    for at in range(len(messages)):
        reach = max(reach, closed_at[at])
        if reach <= at:
            cuts.append(at + 1)
    return tuple(cuts)


def steps_of(messages: Sequence[Message]) -> tuple[Step, ...]:
    """Return the history as steps: the smallest pieces that can stay or go alone."""
    return _steps(messages, frames_in(messages))


def _steps(messages: Sequence[Message], frames: Mapping[int, Framed]) -> tuple[Step, ...]:
    return tuple(Step(start, stop) for start, stop in pairwise(_safe_cuts(messages, frames)))


def head_length(messages: Sequence[Message]) -> int:
    """Return the number of leading system messages."""
    for at, message in enumerate(messages):
        if message.role is not Role.SYSTEM:
            return at
    return len(messages)


def rounds_of(messages: Sequence[Message], ours: Container[int] = ()) -> tuple[Round, ...]:
    """Return everything after the leading system messages as rounds. Messages at the indexes `ours` begin no round.

    Example: system, user, call, result, assistant, user -> rounds [1, 5) and [5, 6)
    """
    head, frames = head_length(messages), frames_in(messages)
    rounds: list[list[Step]] = []
    for step in _steps(messages, frames):
        at = step.start
        if at < head:
            continue
        if not rounds or (messages[at].role is Role.USER and at not in frames and at not in ours):
            rounds.append([])
        rounds[-1].append(step)
    return tuple(Round(steps[0].start, steps[-1].stop, tuple(steps)) for steps in rounds)


def last_user_index(messages: Sequence[Message]) -> int | None:
    """Return the index of the last message that a user wrote, or None.

    If every user message is a tool result or context, the last of them counts.
    """
    return _last_user(messages, frames_in(messages))


def _last_user(messages: Sequence[Message], frames: Mapping[int, Framed]) -> int | None:
    newest = None
    for at in range(len(messages) - 1, -1, -1):
        if messages[at].role is Role.USER:
            if at not in frames:
                return at
            newest = at if newest is None else newest
    return newest


class Protection(StrEnum):
    """Why a message stays. Most stay byte for byte; the task and context may be shortened if they are too large."""

    SYSTEM = "system text"
    ASKED = "last user message"
    UNREAD = "result not read yet"
    PINNED = "pinned"
    TASK = "task"
    CONTEXT = "sent again by the client"


def protected(
    messages: Sequence[Message], pins: Sequence[int] | frozenset[int] = (), *, keeps_task: bool = True
) -> dict[int, Protection]:
    """Return which messages must stay and why: system text, the last user message, unread results, pins, the task.

    A result is unread until an assistant message follows it. The task is the first user message and, if the last one
    only says to continue, also the newest one that says more. The newest version of what a client sends repeatedly
    stays too. Without `keeps_task`, neither the task nor this context is protected.
    Example: system, user, call, result -> {0: SYSTEM, 1: ASKED, 3: UNREAD}
    """
    frames = frames_in(messages)
    asked = _last_user(messages, frames)
    reasons: dict[int, Protection] = {}
    if keeps_task:
        newest = {framed.name: at for at, framed in frames.items() if framed.kind is FrameKind.CONTEXT}
        reasons |= dict.fromkeys(newest.values(), Protection.CONTEXT)
        reasons |= dict.fromkeys(_tasks(messages, frames, asked, pins), Protection.TASK)
    reasons |= dict.fromkeys((at for at in pins if 0 <= at < len(messages)), Protection.PINNED)
    for at in range(len(messages) - 1, -1, -1):
        if messages[at].role is Role.ASSISTANT:
            break
        if messages[at].results or (at in frames and frames[at].kind is FrameKind.RESULT):
            reasons[at] = Protection.UNREAD
    if asked is not None:
        reasons[asked] = Protection.ASKED
    system = (at for at, message in enumerate(messages) if message.role is Role.SYSTEM)
    return reasons | dict.fromkeys(system, Protection.SYSTEM)


def _tasks(
    messages: Sequence[Message], frames: Mapping[int, Framed], asked: int | None, pins: Container[int]
) -> list[int]:
    """Return the index of the task and, if the last message only says to continue, of what it refers to."""
    start = _start(frames)
    first = _first_words(messages, frames, start, pins)
    found = [] if first is None else [first]
    if asked is not None and asked not in frames and is_nudge(messages[asked]):
        earlier = (at for at in range(asked - 1, start - 1, -1) if _are_words(messages, frames, at))
        began = next((at for at in earlier if not is_nudge(messages[at])), None)
        found += [] if began is None else [began]
    return found


def task_index(messages: Sequence[Message]) -> int | None:
    """Return the index of the first message that a user wrote, or None."""
    frames = frames_in(messages)
    return _first_words(messages, frames, _start(frames), ())


def _start(frames: Mapping[int, Framed]) -> int:
    """Return where the conversation begins, after a client's examples."""
    return max((at for at, framed in frames.items() if framed.kind is FrameKind.RESTART), default=-1) + 1


def _first_words(
    messages: Sequence[Message], frames: Mapping[int, Framed], start: int, pins: Container[int]
) -> int | None:
    """Return the index of the first user message, or None. Pinned texts directly before it are skipped."""
    first = None
    for at in range(start, len(messages)):
        if _are_words(messages, frames, at):
            first = at
            if at not in pins:
                break
        elif first is not None and messages[at].role is not Role.USER and messages[at].role is not Role.SYSTEM:
            break
    return first


def _are_words(messages: Sequence[Message], frames: Mapping[int, Framed], at: int) -> bool:
    return messages[at].role is Role.USER and at not in frames

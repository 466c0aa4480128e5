"""Baselines that look only at position and role: what most programs do, in a few lines each.

Those for agents' work drop reasoning first, keep the system text, cut only between steps (a call and its results), and
fill the rest with the newest steps until one no longer fits. One is for talk with an assistant: the user's turns come
first.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

from everlong.core import History, Message, Reasoning, Role, Text, ToolResult, head_length, steps_of
from everlong.lab.strategies.strategy import counter

__all__ = [
    "CLEARED",
    "cleared",
    "ends_of",
    "newest",
    "newest_steps",
    "old_before",
    "trimmed",
    "user_newest",
    "whole",
    "with_results",
    "without_reasoning",
]

KEPT_STEPS = 4  # assistant messages at the end whose results stay unchanged
KEPT_CHARACTERS = 1_500  # at each end of an old result
CLEARED = "[Old tool result content cleared]"


def whole(messages: History, budget: int) -> History:  # noqa: ARG001 - it ignores the budget
    """Cut nothing: no strategy can find more."""
    return messages


def newest(messages: History, budget: int) -> History:
    """Keep the newest steps; calls stay with their results."""
    return newest_steps(without_reasoning(messages), budget)


def trimmed(messages: History, budget: int) -> History:
    """Cut old tool results to their first and last 1,500 characters, then keep the newest steps."""
    return newest_steps(_old_results(without_reasoning(messages), ends_of), budget)


def cleared(messages: History, budget: int) -> History:
    """Replace old tool results with a line, then keep the newest steps."""
    return newest_steps(_old_results(without_reasoning(messages), lambda _: CLEARED), budget)


def user_newest(messages: History, budget: int) -> History:
    """Keep the user's turns, newest first, then the assistant's; a turn that does not fit is skipped."""
    count = counter().message
    head = head_length(messages)
    last = len(messages) - 1
    kept = {*range(head), last}
    left = budget - sum(count(messages[at]) for at in kept)
    turns = [at for at in range(last - 1, head - 1, -1) if not messages[at].calls and not messages[at].results]
    for at in sorted(turns, key=lambda at: messages[at].role is not Role.USER):
        cost = count(messages[at])
        if cost <= left:
            kept.add(at)
            left -= cost
    return tuple(messages[at] for at in sorted(kept))


def newest_steps(messages: History, budget: int) -> History:
    """Return the system text and the newest steps that fit, without gaps."""
    count = counter().message
    head = head_length(messages)
    left = budget - sum(map(count, messages[:head]))
    start = len(messages)
    for step in reversed(steps_of(messages)):
        left -= sum(map(count, messages[step.start : step.stop]))
        if step.start < head or left < 0:
            break
        start = step.start
    return (*messages[:head], *messages[start:])


def without_reasoning(messages: History) -> History:
    """Return the messages without reasoning. A message with nothing else is dropped."""
    return tuple(bare for bare in map(_bare, messages) if bare.parts)


@lru_cache(maxsize=100_000)
def _bare(message: Message) -> Message:
    if not any(isinstance(part, Reasoning) for part in message.parts):
        return message
    return message.with_parts(tuple(part for part in message.parts if not isinstance(part, Reasoning)))


def _old_results(messages: History, shorten: Callable[[str], str]) -> History:
    old = old_before(messages)
    return (*(with_results(message, shorten) for message in messages[:old]), *messages[old:])


def old_before(messages: History) -> int:
    """Return where the newest assistant messages begin. Results before that are old."""
    replies = [at for at, message in enumerate(messages) if message.role is Role.ASSISTANT]
    return replies[-KEPT_STEPS] if len(replies) >= KEPT_STEPS else 0


def with_results(message: Message, shorten: Callable[[str], str]) -> Message:
    """Return the message with `shorten` applied to the text of each tool result."""
    if not message.results:
        return message
    return message.with_parts(
        tuple(
            replace(part, content=(Text(shorten(part.text)),)) if isinstance(part, ToolResult) else part
            for part in message.parts
        )
    )


def ends_of(text: str) -> str:
    """Return the first and last 1,500 characters of a long text; a short text unchanged."""
    if len(text) <= 2 * KEPT_CHARACTERS:
        return text
    return f"{text[:KEPT_CHARACTERS]}\n[…]\n{text[-KEPT_CHARACTERS:]}"

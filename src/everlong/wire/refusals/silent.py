"""Overflows that no error tells of: the request was taken, and not all of it was read.

Some servers accept more than they can use, some cut the head off, some fill the window and have no room to
answer. What gives them away are the figures of the reply.
"""

from enum import StrEnum

from everlong.wire.usage import Usage

__all__ = ["SilentOverflow", "silent_overflow", "truncated_window"]

FULL = 0.99  # of the window; servers keep a few tokens back
LAST_TOKENS = 16  # this near to its end a reply was stopped by the window
CUT_BY_LENGTH = frozenset({"incomplete", "length", "max_output_tokens", "max_tokens"})
CUT_BY_WINDOW = frozenset({"model_context_window_exceeded", "model_length"})

TRUNCATED = 0.6  # of the estimate; a counter that errs is not this far off
TRUNCATED_BY = 512  # tokens at least
NEAR_BELOW = 0.98  # of the served window; a server that drops the head fills it almost
NEAR_ABOVE = 16  # tokens; 16 387 were reported for 16 384
SERVED_WINDOWS = tuple(1 << power for power in range(11, 21))  # 2 048 to 1 048 576: what servers are started with


class SilentOverflow(StrEnum):
    """What gave it away."""

    SAID_SO = "the reply ended because the window was full"
    ABOVE_WINDOW = "more tokens were reported than the window holds"
    NO_ROOM = "the prompt filled the window and left no room for an answer"
    REPLY_CUT = "the answer was cut where the window ended"


def silent_overflow(usage: Usage, window: int, *, finish: str, output: int | None = None) -> SilentOverflow | None:
    """Whether a reply that looks like a success hides an overflow.

    `finish` is the provider's finish or stop reason, `output` how much the reply really said (0: nothing), where that
    is better known than `usage.output`.
    """
    reason = finish.lower()
    said = usage.output if output is None else output
    if reason in CUT_BY_WINDOW:
        return SilentOverflow.SAID_SO
    if usage.prompt > window:
        return SilentOverflow.ABOVE_WINDOW
    if reason not in CUT_BY_LENGTH:
        return None
    if said == 0 and usage.prompt >= FULL * window:
        return SilentOverflow.NO_ROOM
    return SilentOverflow.REPLY_CUT if said and usage.prompt + usage.output >= window - LAST_TOKENS else None


def truncated_window(usage: Usage, estimate: int) -> int | None:
    """The window a server really serves, if it read far less than was sent and stopped where such windows end.

    Example: estimate 160 000, reported 16 387 -> 16 384
    """
    if usage.prompt > TRUNCATED * estimate or estimate - usage.prompt < TRUNCATED_BY:
        return None
    return next((size for size in SERVED_WINDOWS if NEAR_BELOW * size <= usage.prompt <= size + NEAR_ABOVE), None)

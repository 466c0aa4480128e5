"""Which messages law 4 protects. No other module decides whether a message may be changed."""

from collections.abc import Sequence
from enum import StrEnum

from everlong.core.messages import Message, Role
from everlong.core.rounds import head_length, last_user_index

__all__ = ["Protection", "protected"]


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

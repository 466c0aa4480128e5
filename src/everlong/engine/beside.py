"""What is sent beside a thread: standing context and its volatile tail, put in their places. Never kept, never cut.

Standing text follows the system text of the thread, inside the prefix that providers cache. The tail is never inside
it: it stands before the last user message, so that the question comes last, and in a tool loop at the end.
"""

from everlong.core import History, Role, head_length
from everlong.engine.calls import Call

__all__ = ["before_tail", "with_beside", "with_standing", "without_tail"]


def with_beside(messages: History, call: Call) -> History:
    """The messages of a thread with what the call brings.

    Example: system, user, a, user -> system, standing, user, a, tail, user
    """
    placed = with_standing(messages, call)
    if not call.tail:
        return placed
    at = before_tail(placed, call)
    return (*placed[:at], *call.tail, *placed[at:])


def before_tail(messages: History, call: Call) -> int:
    """How many of the messages stand before the volatile tail: all of them, where there is none."""
    asked = bool(call.tail and messages) and messages[-1].role is Role.USER
    return len(messages) - asked


def with_standing(messages: History, call: Call) -> History:
    """With what is part of the prefix alone."""
    if not call.standing:
        return messages
    head = head_length(messages)
    return (*messages[:head], *call.standing, *messages[head:])


def without_tail(messages: History, call: Call) -> History:
    """What was sent for a call, as far as the next request repeats it."""
    return tuple(message for message in messages if message not in call.tail) if call.tail else messages

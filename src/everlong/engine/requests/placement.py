"""Where the standing text and the tail of a call stand among the messages of its thread.

Both are sent with every request of the call and never stored. Standing text is part of the prefix that providers cache;
the tail is not.
"""

from dataclasses import replace

from everlong.core import History, Role, head_length
from everlong.engine.contracts import Call, Request
from everlong.wire import HEADING

__all__ = ["before_tail", "beginning", "with_beside", "with_standing", "without_tail"]


def with_beside(messages: History, call: Call) -> History:
    """Return the messages of a thread with the standing text and the tail in their places.

    Standing text follows the system text, inside the prefix that providers cache. The tail is never inside that prefix:
    it stands before the last user message, so that the question comes last, or at the end in a tool loop. Example:
    system, user, a, user -> system, standing, user, a, tail, user
    """
    placed = with_standing(messages, call)
    if not call.tail:
        return placed
    at = before_tail(placed, call)
    return (*placed[:at], *call.tail, *placed[at:])


def before_tail(messages: History, call: Call) -> int:
    """Return how many messages come before the tail: all but a user message at the end; all if there is no tail."""
    question_last = bool(call.tail and messages) and messages[-1].role is Role.USER
    return len(messages) - question_last


def with_standing(messages: History, call: Call) -> History:
    """Return the messages with the standing text, which is part of the cached prefix, and without the tail.

    A summary that a preset puts into the system text stays at its end.
    """
    if not call.standing:
        return messages
    head = head_length(messages)
    if head and messages[head - 1].text.startswith(HEADING):
        head -= 1
    return (*messages[:head], *call.standing, *messages[head:])


def without_tail(messages: History, call: Call) -> History:
    """Return the messages of a request that the next request repeats."""
    return tuple(message for message in messages if message not in call.tail) if call.tail else messages


def beginning(request: Request, until: int) -> Request:
    """Return the first messages of a request, with the cache mark where an earlier request ended.

    The provider then reads the cached prefix instead of writing a new one. Requests end in a question or in results, so
    no mark follows an answer.
    """
    messages, caching = request.messages[:until], request.caching
    if caching is None:
        return replace(request, messages=messages)
    lasting = min(until, caching.lasting)
    while until < caching.lasting and lasting and messages[lasting - 1].role is Role.ASSISTANT:
        lasting -= 1
    return replace(request, messages=messages, caching=replace(caching, lasting=lasting))

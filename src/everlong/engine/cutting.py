"""A cut, and the point that keeps it: what every later request begins with, in this process and any other.

The view after a cut is the head, what the point left in place of what it covers, and a tail of messages as they
are. The point stores the middle; head and tail come from the log.
"""

from dataclasses import replace

from everlong.compress.draft import OURS
from everlong.core.messages import History
from everlong.core.points import Point
from everlong.core.rounds import head_length
from everlong.core.threads import Pin
from everlong.engine.live import pinned_texts
from everlong.engine.past import LEFT_BEFORE, Past
from everlong.engine.view import View, Wish, arrived, cut_view

__all__ = ["cut_past"]


def cut_past(past: Past, pins: tuple[Pin, ...], wish: Wish, *, before: int, reason: str) -> Point:
    """The point that brings the past down to the wish's target. `before` is what the view took until now, in tokens."""
    texts = pinned_texts(pins)
    head = head_length(past.history)
    history = (*past.history[:head], *texts, *past.history[head:])
    orders = (*past.orders[:head], *(LEFT_BEFORE for _ in texts), *past.orders[head:])
    pinned = {pin.order for pin in pins if pin.order is not None}
    held = frozenset(at for at, order in enumerate(orders) if order in pinned) | frozenset(
        range(head, head + len(texts))
    )
    view = cut_view(history, replace(wish, pins=held), past.index)
    tail = _tail_length(view, arrived(history, wish), orders)
    boundary = orders[len(history) - tail] if tail else past.length
    middle = _without(view.messages[head : len(view.messages) - tail], texts)
    return Point(
        boundary=boundary,
        summary=middle,
        tokens_before=before,
        tokens_after=view.tokens,
        reason=reason,
        model=wish.counter.model,
        limit=wish.limit,
        edits=tuple(replace(edit, at=orders[edit.at]) for edit in view.edits if orders[edit.at] != LEFT_BEFORE),
    )


def _tail_length(view: View, shaped: History, orders: tuple[int, ...]) -> int:
    """How many messages at the end are sent as they arrived, none left out between them."""
    places = view.places or tuple(range(len(view.messages)))
    length = 0
    while length < min(len(view.messages), len(shaped)):
        back = length + 1
        same = places[-back] == len(shaped) - back and view.messages[-back] == shaped[-back]
        if (
            not same
            or places[-back] == OURS
            or orders[-back] == LEFT_BEFORE
            or back > len(shaped) - head_length(shaped)
        ):
            break
        length = back
    return length


def _without(messages: History, texts: History) -> History:
    """The messages without the pinned texts, which stand in front of every view by themselves."""
    return tuple(message for message in messages if message not in texts)

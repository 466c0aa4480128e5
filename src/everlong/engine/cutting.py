"""A cut, and the point that keeps it: what every later request begins with, in this process and any other.

The view after a cut is the head, what the point left in place of what it covers, and a tail of messages as they
are. The point stores the middle; head and tail come from the log.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from everlong.compress import OURS
from everlong.core import Action, Edit, History, Opened, Pin, Point, head_length
from everlong.engine.accounts import account_message, summary_limit
from everlong.engine.live import pinned_texts
from everlong.engine.past import LEFT_BEFORE, Past
from everlong.engine.view import View, Wish, arrived, cut_view
from everlong.summarize import Summary, encode_summary

__all__ = ["Cause", "Held", "cut_past", "held_past"]


@dataclass(frozen=True, slots=True)
class Held:
    """A past with what is ours in front: pinned texts, a summary. `pins` are the messages in it that must stay."""

    history: History
    orders: tuple[int, ...]
    pins: frozenset[int]


def held_past(past: Past, pins: tuple[Pin, ...], told: History = ()) -> Held:
    """The past with what is pinned, and what is told of what left before."""
    texts = (*pinned_texts(pins), *told)
    head = head_length(past.history)
    orders = (*past.orders[:head], *(LEFT_BEFORE for _ in texts), *past.orders[head:])
    pinned = {pin.order for pin in pins if pin.order is not None}
    return Held(
        (*past.history[:head], *texts, *past.history[head:]),
        orders,
        frozenset(at for at, order in enumerate(orders) if order in pinned) | frozenset(range(head, head + len(texts))),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Why a cut is made, what the view took until now in tokens, and the summary that is to stand in front of it."""

    reason: str
    before: int
    account: Summary | None = None


def cut_past(past: Past, opened: Opened, wish: Wish, cause: Cause) -> Point:
    """The point that brings the past down to the wish's target."""
    account = cause.account
    told = () if account is None else (account_message(account, wish.counter, summary_limit(wish.limit)),)
    held = held_past(past, opened.pins, told)
    history, orders = held.history, held.orders
    head = head_length(past.history)
    wish = replace(wish, pins=held.pins)
    view = cut_view(history, wish, past.index)
    tail = _tail_length(view, arrived(history, wish), orders)
    boundary = orders[len(history) - tail] if tail else past.length
    ours = (*pinned_texts(opened.pins), *told)
    middle = _without(view.messages[head : len(view.messages) - tail], ours)
    return Point(
        boundary=boundary,
        summary=(*told, *middle),
        tokens_before=cause.before,
        tokens_after=view.tokens,
        reason=cause.reason,
        focus="" if account is None else account.focus,
        account="" if account is None else encode_summary(account),
        model=wish.counter.model,
        limit=wish.limit,
        edits=tuple(_news(view, orders, opened)),
    )


def _news(view: View, orders: tuple[int, ...], opened: Opened) -> Iterator[Edit]:
    """The edits with their place in the thread; what had left the view before is told of by an earlier point."""
    point = opened.point.entry if opened.point is not None else None
    known = point.boundary if isinstance(point, Point) else 0
    whole = point.summary if isinstance(point, Point) else ()
    told = point.edits if isinstance(point, Point) else ()
    shortened = {edit.at for edit in told if edit.action not in (Action.DROP, Action.INSERT)}
    for edit in view.edits:
        order = orders[edit.at]
        stood = order >= known or order in shortened or view.history[edit.at] in whole
        if order != LEFT_BEFORE and (stood or edit.action is Action.INSERT):
            yield replace(edit, at=order)


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


def _without(messages: History, ours: History) -> History:
    """The messages without what stands in front of them by itself."""
    return tuple(message for message in messages if message not in ours)

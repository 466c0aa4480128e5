"""Compact a thread: plan the point that stores a compaction, append it, and report it.

After a compaction the view is the head, what the point left of the messages that it covers, and a tail of unchanged
messages. The point stores the middle; head and tail come from the log. So every later request begins with the same
bytes, in this process and any other.
"""

from collections import Counter as Tally
from collections.abc import Iterator
from dataclasses import replace

from everlong.compress import OURS
from everlong.core import Action, Edit, EventKind, Figures, History, Opened, Point, head_length
from everlong.engine.events import compression_data
from everlong.engine.raw_history import LEFT_BEFORE, RawHistory, pinned_texts
from everlong.engine.requests.assembly import standing
from everlong.engine.requests.situation import situation, summary_message_limit
from everlong.engine.thread import CallContext, summary_in, summary_message
from everlong.engine.view import View, arrived, bytes_of, compacted_view, without_images
from everlong.errors import BudgetImpossible, ThreadChanged
from everlong.summarize import Summary, encode_summary

__all__ = ["compact_now", "lighter_target", "messages_before", "planned_point", "report_compaction"]

ATTEMPTS = 4  # another process may append meanwhile; each attempt reads again


def compact_now(
    context: CallContext,
    reason: str,
    before: int,
    *,
    limit: int | None = None,
    target: int | None = None,
    refused: bool = False,
) -> View:
    """Compact, store the point, and return the new view. Raises BudgetImpossible if it cannot fit.

    `before` are the tokens that the view has taken until now. If that view was `refused`, the new one is smaller, or
    the error is raised. The current summary is kept.
    """
    most = context.budget.compacted_limit if limit is None else limit
    summary = situation(context)
    aim = min(context.budget.target if target is None else target, most)
    for _ in range(ATTEMPTS):
        try:
            point = planned_point(context, reason, before, limit=most, target=aim, summary=summary)
        except BudgetImpossible as impossible:
            if limit is not None:
                raise
            most = context.budget.without_reserve(most, impossible)
            if refused:  # the provider has decided: the same view must not be sent again
                most = min(most, before - 1)
            point = planned_point(context, reason, before, limit=most, target=most, summary=summary)
        if limit is not None:
            point = replace(point, limit=0)  # made because of a refusal: a larger window does not undo it
        elif not point.edits and point.tokens_after >= before:
            return standing(context)  # nothing can be moved
        try:
            context.engine.threads.append(context.thread, [point], expected=context.length)
        except ThreadChanged:
            context.refresh()
            continue
        messages = len(context.state.prefix) + len(context.state.since)
        context.refresh()
        view = standing(context)
        report_compaction(context, point, view, messages)
        if view.tokens <= most:
            return view
        aim -= view.tokens - most
    raise ThreadChanged(f"thread {context.thread!r} keeps changing: it could not be compacted in {ATTEMPTS} attempts")


def planned_point(
    context: CallContext, reason: str, before: int, *, limit: int, target: int, summary: Summary | None = None
) -> Point:
    """Return the point that a compaction would make, without storing it. Raises BudgetImpossible if it cannot fit.

    Without a new summary, the current one is kept.
    """
    opened, counter = context.state.opened, context.budget.counter
    summary = summary_in(opened.point) if summary is None else summary
    summary_messages = (
        () if summary is None else (summary_message(summary, counter, summary_message_limit(context, summary, limit)),)
    )
    raw = context.raw_history().with_background(opened.pins, summary_messages)
    vectors = context.engine.vectors
    options = replace(
        context.view_options(limit=limit, target=target),
        pins=raw.pins,
        index=raw.index,
        likeness=None if vectors is None else vectors.likeness(context.thread, raw.orders),
    )
    try:
        view = compacted_view(raw.history, options)
    except BudgetImpossible as error:
        raise context.budget.of_the_window(error) from None
    tail = _tail_length(view, arrived(raw.history, options), raw.orders)
    ours = (*pinned_texts(opened.pins), *summary_messages)
    middle = view.messages[head_length(raw.history) : len(view.messages) - tail]
    return Point(
        boundary=raw.orders[len(raw.history) - tail] if tail else raw.length,
        summary=(*summary_messages, *(message for message in middle if message not in ours)),
        tokens_before=before,
        tokens_after=view.tokens,
        reason=reason,
        focus="" if summary is None else summary.focus,
        account="" if summary is None else encode_summary(summary),
        model=counter.model,
        limit=context.budget.empty_limit,
        edits=tuple(_new_edits(view, raw.orders, opened)),
        figures=_figures(context, raw, view, tail, before),
    )


def _tail_length(view: View, shaped: History, orders: tuple[int, ...]) -> int:
    """Return how many messages at the end are sent unchanged, without gaps."""
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


def _new_edits(view: View, orders: tuple[int, ...], opened: Opened) -> Iterator[Edit]:
    """Return the edits with their places in the thread, without those that an earlier point has already reported."""
    point = opened.point.entry if opened.point is not None else None
    known = point.boundary if isinstance(point, Point) else 0
    whole = point.summary if isinstance(point, Point) else ()
    earlier = point.edits if isinstance(point, Point) else ()
    shortened = {edit.at for edit in earlier if edit.action not in (Action.DROP, Action.INSERT)}
    stood = shortened | _stood_whole(view.history, orders, known, whole)
    for edit in view.edits:
        order = orders[edit.at]
        if order != LEFT_BEFORE and (order >= known or order in stood or edit.action is Action.INSERT):
            yield replace(edit, at=order)


def _stood_whole(history: History, orders: tuple[int, ...], boundary: int, left: History) -> set[int]:
    """Return the orders of the messages before the boundary that a point left unchanged; of equal ones, the newest."""
    waiting = Tally(left)
    stood = set()
    for message, order in zip(reversed(history), reversed(orders), strict=True):
        if LEFT_BEFORE < order < boundary and waiting[message] > 0:
            waiting[message] -= 1
            stood.add(order)
    return stood


def _figures(context: CallContext, raw: RawHistory, view: View, tail: int, before: int) -> Figures:
    """Return the figures of the compaction. The provider has not counted the new view, so its size is unanchored."""
    head, end = head_length(raw.history), len(raw.history) - tail
    shorter = {edit.at for edit in view.edits if edit.action in (Action.SHORTEN, Action.DROP)}
    places = {at for at in view.places or range(len(view.messages)) if at != OURS}
    sent = [at for at in places if head <= at < end and raw.orders[at] != LEFT_BEFORE]
    shortened = sum(at in shorter for at in sent)
    return Figures(
        messages=messages_before(context, raw, len(raw.history) - tail),
        kept=len(sent) - shortened,
        shortened=shortened,
        before=context.budget.true(before),
        after=context.budget.unanchored().true(view.tokens),
    )


def messages_before(context: CallContext, raw: RawHistory, end: int) -> int:
    """Return how many messages the thread has before a place in its raw history, without leading system text."""
    later = sum(order != LEFT_BEFORE for order in raw.orders[end:])
    return max(0, context.state.opened.thread.messages - head_length(raw.history) - later)


def report_compaction(context: CallContext, point: Point, view: View, messages: int) -> None:
    """Record a compaction with its figures; `messages` is how many were sent before."""
    before, after = point.sizes
    context.journal.note(
        EventKind.CONTEXT_COMPRESSED,
        parent=context.turn,
        model=context.call.model,
        reason=point.reason,
        tokens_before=before,
        tokens_after=after,
        messages_before=messages,
        messages_after=len(view.messages),
        data=compression_data(context.budget.preset, messages, len(view.messages), point.figures),
    )


def lighter_target(context: CallContext, messages: History, counted: int) -> int:
    """Return the target in tokens for a provider that limits the bytes of a request; half of them are for texts."""
    most, texts = context.budget.bytes or 0, bytes_of(without_images(messages), context.call.schemas)
    return min(counted - 1, context.budget.target, int(counted * most / (2 * texts)) if texts > most // 2 else counted)

"""Prepare the next request of a thread: its view, compacted if due, with what the question needs from earlier.

    view (head, newest point, later messages) -> below the threshold: sent as it is, the prefix untouched
                                              -> above it: a compaction, stored as a point
                                              -> a question or a step about messages that left: recalled, once

After a compaction the view is the head, what the point left of the messages that it covers, and a tail of unchanged
messages. The point stores the middle; head and tail come from the log. So every later request begins with the same
bytes, in this process and any other.
"""

from collections import Counter as Tally
from collections.abc import Iterator
from dataclasses import replace

from everlong.compress import OURS
from everlong.core import (
    Action,
    Edit,
    EventKind,
    Figures,
    History,
    Message,
    Opened,
    Point,
    Role,
    Text,
    Withdrawal,
    clamp_reply,
    head_length,
)
from everlong.engine.budget import Due, due_of
from everlong.engine.contracts import Call, Prepared, before_tail, with_beside, with_standing
from everlong.engine.events import ASSEMBLED, CUT_NEAR, compression_data, narrow_hint, window_hint
from everlong.engine.recall.block import recall_needed
from everlong.engine.situation import asks_model, situation, summary_message_limit
from everlong.engine.thread import (
    LEFT_BEFORE,
    CallContext,
    EngineContext,
    RawHistory,
    pinned_texts,
    summary_in,
    summary_limit,
    summary_message,
    work_on,
)
from everlong.engine.view import (
    View,
    arrived,
    assembled_view,
    bytes_of,
    compacted_view,
    grown_view,
    view_of,
    without_images,
)
from everlong.errors import BudgetImpossible, EverlongError, ThreadChanged
from everlong.summarize import Summary, as_system_section, encode_summary, written
from everlong.wire import Caching, Request, format_named

__all__ = [
    "BOUNDED_STYLES",
    "assembled_with",
    "compact_now",
    "lighter_target",
    "messages_before",
    "next_due",
    "planned_point",
    "prefix_to_cache",
    "prepare",
    "prepared_from",
    "remember",
    "report_compaction",
    "standing",
    "upcoming",
]

ATTEMPTS = 4  # another process may append meanwhile; each attempt reads again
WARNED_AT = 0.9  # of the threshold
NARROW = 0.15  # of the window; with less to move, compactions are frequent, and the user learns what fills the window
SAME_SIZE = 0.9  # of what fits now; a point made for a smaller size was made for another window
WORTH_RESTORING = 0.8  # of what fits now; a point made for a smaller size may no longer be needed
#: Styles of presets that bound the summary's length: only the model's text is sent, the copied facts stay in the store.
BOUNDED_STYLES = frozenset({"free", "buffer", "rolling"})


def prepare(engine: EngineContext, thread: str, call: Call) -> Prepared:
    """Return the request to send for the thread now. Raises BudgetImpossible if nothing can fit."""
    with engine.states.lock(thread), engine.journal(thread) as journal:
        state = engine.state(thread)
        turn = journal.note(EventKind.TURN_STARTED, parent=call.parent, model=call.model)
        try:
            context = work_on(engine, state, call, journal, turn)
            if not context.budget.window.known and state.view is None:
                hint = window_hint(context.budget.window, summarises=not context.budget.preset.summary.needs_window)
                journal.note(EventKind.CONTEXT_WARNED, parent=turn, model=call.model, reason=hint)
            view = _view(context)
        except EverlongError as error:
            journal.note(EventKind.TURN_FAILED, parent=turn, model=call.model, reason=str(error))
            raise
        _report_narrow_window(context)
        remember(context, view)
        prepared = prepared_from(context, view)
        _report_shorter_reply(context, prepared)
        if engine.vectors is not None:
            engine.vectors.arrive(thread)
            if failure := engine.vectors.take_failure():
                journal.note(EventKind.CONTEXT_WARNED, parent=turn, model=call.model, reason=failure)
        return prepared


def _view(context: CallContext) -> View:
    if context.settings.untouched:
        return _untouched(context)
    _check_pins(context)
    if context.budget.preset.every_call:
        return _assembled_again(context)
    _restore(context)
    view = standing(context)
    reason = _reason_to_compact(context, view)
    if reason:
        return compact_now(context, reason, view.tokens)
    if context.budget.bytes is not None and bytes_of(view.messages, context.call.schemas) > context.budget.bytes:
        return _lighter(context, view)
    if recall_needed(context, view):
        view = standing(context)
    _warn(context, view)
    return view


def _untouched(context: CallContext) -> View:
    """Return the history of the thread, byte for byte: the mode or the preset changes nothing."""
    messages = (*context.state.prefix, *context.state.since)
    return View(messages, messages, context.budget.counter.messages(messages))


def upcoming(context: CallContext) -> View:
    """Return what would be sent now, before any compaction; nothing is recorded. Raises BudgetImpossible."""
    if not context.state.opened.thread.messages:
        return View((), (), 0)
    if context.budget.preset.every_call and not context.settings.untouched:
        return assembled_with(context, summary_in(context.state.opened.point))
    return standing(context)


def standing(context: CallContext) -> View:
    """Return the view of the thread now, which begins with the same bytes as the last one."""
    state = context.state
    history = (*state.prefix, *state.since)
    if state.view is not None and state.made_for == _made_for(context):
        grown = grown_view(history, context.view_options(), state.view)
        if grown is not None:
            return grown
    context.state = replace(state, view=None, anchor=None)
    context.budget = context.budget.unanchored()
    return assembled_view(state.prefix, state.since, context.view_options())


def _made_for(context: CallContext) -> tuple[str, ...]:
    return (context.call.fmt, context.budget.preset.name, context.call.model)


def remember(context: CallContext, view: View) -> None:
    """Remember the view that is sent now, for the next call."""
    context.remember(view, _made_for(context))


# --- compaction ------------------------------------------------------------------------------------------------------


def _reason_to_compact(context: CallContext, view: View) -> str:
    """Return why a compaction is due now; "" if none is."""
    budget, state = context.budget, context.state
    if view.tokens > budget.limit:  # the limit excludes the answer and the margin: the prompt alone may still fit
        return "larger than the window" if budget.true(view.tokens) > budget.parts.window else "threshold reached"
    if state.undone or view.tokens <= _renewed_at(context):
        return ""
    if view.tokens > budget.threshold:
        return "threshold reached"
    idle = None if state.called_at is None else (context.engine.clock() - state.called_at).total_seconds()
    wanted = max(0, budget.limit - budget.parts.fixed) * budget.parts.threshold / context.settings.threshold_share
    cold = budget.parts.fixed + context.settings.cold_mark * wanted  # also scaled to a soft cap
    if idle is not None and idle > context.settings.cache_seconds and view.tokens > cold:
        return "cold cache"
    return ""


def _renewed_at(context: CallContext) -> int:
    """Return the size of a view up to which too little is new since the last compaction for another one.

    What must stay may be larger than the target. -1 if there was no compaction, or if it was for another model or
    window.
    """
    row = context.state.opened.point
    if row is None or not isinstance(row.entry, Point) or row.entry.model != context.call.model:
        return -1
    made_for_this = row.entry.limit > SAME_SIZE * context.budget.empty_limit
    return row.entry.tokens_after + context.budget.renewal - 1 if made_for_this else -1


def next_due(context: CallContext) -> Due | None:
    """Return when the next compaction of the thread comes; None if its preset does not use the threshold.

    That is at the threshold. After an undo it is at the limit, where a compaction is unavoidable. After a compaction it
    is not before enough is new.
    """
    budget, settings = context.budget, context.settings
    if not settings.heeds_threshold or settings.untouched:
        return None
    most, threshold = budget.messages + budget.parts.tools, budget.true_threshold
    early = asks_model(settings, context.state)
    if context.state.undone:
        return due_of(budget, most, early=early)
    renewed = _renewed_at(context)
    if budget.preset.every_call:
        new = context.state.new_tokens(0)
        stuck = new is not None and -new + budget.parts.tools >= threshold
        renewed = budget.renewal - (new or 0) if stuck else -1
    at = threshold if renewed <= budget.threshold else max(threshold, budget.true(renewed))
    return due_of(budget, min(at, most), early=early)


def _lighter(context: CallContext, view: View) -> View:
    """Compact because a view has too many bytes. If nothing can be removed, send it and let the provider decide."""
    target = lighter_target(context, view.messages, view.tokens)
    try:
        return compact_now(context, "larger than the limit in bytes", view.tokens, limit=view.tokens - 1, target=target)
    except BudgetImpossible:
        return view


def lighter_target(context: CallContext, messages: History, counted: int) -> int:
    """Return the target in tokens for a provider that limits the bytes of a request; half of them are for texts."""
    most, texts = context.budget.bytes or 0, bytes_of(without_images(messages), context.call.schemas)
    return min(counted - 1, context.budget.target, int(counted * most / (2 * texts)) if texts > most // 2 else counted)


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
            most = _given_way(context, most, impossible)
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


def _given_way(context: CallContext, limit: int, impossible: BudgetImpossible) -> int:
    """Return how many tokens may be sent without any reserve: no margins, and the shortest answer.

    If sizes are estimated or the window is guessed from refusals, a request that seems too large is sent anyway, as
    small as possible, and the provider decides. Raises the error if the request cannot fit by an exact count.
    """
    budget = context.budget
    smallest = impossible.needed - sum(size for _, size in budget.other_parts)
    if max(limit, budget.widest_limit) >= smallest:
        return max(limit, budget.widest_limit)
    if budget.certain:
        raise impossible
    return smallest


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
        raise _of_the_window(error, context) from None
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


def _of_the_window(error: BudgetImpossible, context: CallContext) -> BudgetImpossible:
    """Return the same error for the whole window, with tools, reply and margin among its parts."""
    return BudgetImpossible(context.budget.parts.window, [*error.parts, *context.budget.other_parts])


# --- presets that assemble every request again -----------------------------------------------------------------------


def _assembled_again(context: CallContext) -> View:
    """Return the view of a preset that assembles each request from the raw history. Nothing is stored."""
    view = assembled_with(context, summary_in(context.state.opened.point))
    before = context.budget.counter.messages(view.history)
    if view.tokens < before:
        preset = context.budget.preset
        context.journal.note(
            EventKind.CONTEXT_COMPRESSED,
            parent=context.turn,
            model=context.call.model,
            reason=f"{ASSEMBLED}{preset.name}",
            tokens_before=context.budget.true(before),
            tokens_after=context.budget.true(view.tokens),
            messages_before=len(view.history),
            messages_after=len(view.messages),
            data=compression_data(preset, len(view.history), len(view.messages)),
        )
    return view


def assembled_with(context: CallContext, summary: Summary | None) -> View:
    """Return what a preset that assembles each request would send with this summary. Raises BudgetImpossible."""
    plain = context.raw_history().with_background(context.state.opened.pins)
    if summary is None or (context.budget.preset.summary.when_needed and _has_covered_messages(plain, summary)):
        view = _made_again(context, plain, None)
        if summary is not None and any(edit.action is Action.DROP for edit in view.edits):
            view = _made_again(context, plain, summary)
    else:
        view = _made_again(context, plain, summary)
    return view


def _has_covered_messages(raw: RawHistory, summary: Summary) -> bool:
    """Return whether the thread still has messages that the summary covers; another program may have dropped them."""
    spoken = zip(raw.history, raw.orders, strict=True)
    return any(LEFT_BEFORE < order < summary.covers for message, order in spoken if message.role is not Role.SYSTEM)


def _made_again(context: CallContext, plain: RawHistory, summary: Summary | None) -> View:
    """The view of the raw history with a summary, or without one."""
    raw, newest = _with_summary(context, plain, summary)
    context.orders = raw.orders
    limit = context.budget.compacted_limit
    options = replace(
        context.view_options(limit=limit, target=limit),
        pins=raw.pins,
        newest=newest,
        uncovered=_uncovered(context, raw) if context.settings.summarises else None,
    )
    try:
        return view_of(raw.history, options)
    except BudgetImpossible as error:
        most = _given_way(context, limit, _of_the_window(error, context))
        return view_of(raw.history, replace(options, limit=most, target=most))


def _uncovered(context: CallContext, raw: RawHistory) -> int:
    """Return the index of the first message that no summary covers; the length of the history if all are covered."""
    summary = summary_in(context.state.opened.point)
    covers = 0 if summary is None else summary.covers
    return next((at for at, order in enumerate(raw.orders) if order >= covers), len(raw.orders))


def _with_summary(context: CallContext, raw: RawHistory, summary: Summary | None) -> tuple[RawHistory, int | None]:
    """Return the history with the summary in its place, and how many of the newest messages are sent; None for all."""
    preset, policy = context.budget.preset, context.budget.preset.summary
    start = 0
    if preset.history.start is not None:
        start = preset.history.start(raw.history)
    elif policy.replaces and summary is not None:
        covers = summary.covers
        start = next((at for at, order in enumerate(raw.orders) if order >= covers), 0)
    if summary is not None:
        raw = raw.with_summary(_summary_message(context, summary))
        start += 1
    head = head_length(raw.history)
    if start <= head:
        return raw, None
    return raw, len(raw.history) - start + sum(head <= pin < start for pin in raw.pins)


def _summary_message(context: CallContext, summary: Summary) -> Message:
    counter, limit = context.budget.counter, summary_limit(context.budget.compacted_limit)
    if not context.budget.preset.summary.in_system:
        return summary_message(summary, counter, limit)
    text = written(summary, counter=counter, limit=limit, facts=summary.style not in BOUNDED_STYLES)
    return Message(Role.SYSTEM, (Text(as_system_section(text, summary.language)),))


# --- what else belongs to a view -------------------------------------------------------------------------------------


def _restore(context: CallContext) -> None:
    """Withdraw points that a larger window no longer needs, so that the raw history is sent again."""
    while True:
        row = context.state.opened.point
        if row is None or not isinstance(row.entry, Point):
            return
        point = row.entry
        if not point.limit or point.limit > WORTH_RESTORING * context.budget.empty_limit:
            return
        since = context.budget.counter.messages(context.state.since)
        if point.tokens_before + since > context.budget.threshold:
            return
        try:
            context.engine.threads.append(context.thread, [Withdrawal(row.order)], expected=context.length)
        except ThreadChanged:
            context.refresh()
            continue
        context.journal.note(
            EventKind.CONTEXT_RESTORED,
            parent=context.turn,
            model=context.call.model,
            reason="a larger window",
            tokens_before=point.sizes[1],
            tokens_after=point.sizes[0],
        )
        context.refresh()


def _warn(context: CallContext, view: View) -> None:
    earlier = 0 if context.state.view is None else context.state.view.tokens
    if earlier <= WARNED_AT * context.budget.threshold < view.tokens:
        context.journal.note(
            EventKind.CONTEXT_WARNED,
            parent=context.turn,
            model=context.call.model,
            reason=CUT_NEAR,
            tokens_before=view.tokens,
        )


def _report_narrow_window(context: CallContext) -> None:
    """Report once what fills the window, if a compaction can free only little."""
    budget, state = context.budget, context.state
    if state.narrow_reported or context.settings.untouched or budget.preset.every_call:
        return
    if budget.messages - budget.parts.fixed >= NARROW * budget.parts.window:
        return
    fixed = {} if state.fixed is None else state.fixed[1]
    parts = [*((str(why), size) for why, size in fixed.items()), *budget.other_parts]
    parts += [] if budget.least_reply else [("the answer", budget.parts.reply)]
    hint = narrow_hint(max(0, budget.messages - budget.parts.fixed), budget.parts.window, parts)
    context.state = replace(state, narrow_reported=True)
    context.journal.note(EventKind.CONTEXT_WARNED, parent=context.turn, model=context.call.model, reason=hint)


def _report_shorter_reply(context: CallContext, prepared: Prepared) -> None:
    """Report that the reply is limited to less than the caller asked for."""
    asked, allowed = context.call.max_tokens, prepared.request.max_tokens
    if asked is not None and allowed is not None and allowed < asked:
        context.journal.note(
            EventKind.REPLY_SHORTENED,
            parent=context.turn,
            model=context.call.model,
            reason=f"the prompt of {prepared.tokens:,} tokens leaves less in the window of {prepared.budget.window:,}",
            tokens_before=asked,
            tokens_after=allowed,
        )


def _check_pins(context: CallContext) -> None:
    """Raise BudgetImpossible for pins above their share. Pins are never dropped silently."""
    pins = context.state.opened.pins
    if not pins:
        return
    counter, most = context.budget.counter, int(context.settings.pin_share * context.budget.messages)
    sizes = [("pinned text", counter.message(text)) for text in pinned_texts(pins)]
    for pin in pins:
        if pin.order is not None:
            rows = context.engine.threads.read(context.thread, pin.order, pin.order + 1)
            entries = [(row.order, row.entry) for row in rows]
            sizes += [(f"pinned message {order}", counter.message(m)) for order, m in entries if isinstance(m, Message)]
    if sum(size for _, size in sizes) > most:
        raise BudgetImpossible(most, sizes)


# --- the request -----------------------------------------------------------------------------------------------------


def prepared_from(context: CallContext, view: View, *, attempt: int = 0) -> Prepared:
    """Return the request for a view."""
    call, budget = context.call, context.budget
    tokens = budget.true(view.tokens)
    reply = call.max_tokens
    if reply is None and format_named(call.fmt).api.needs_length:
        reply = budget.parts.reply
    if reply is not None and context.settings.mode != "off":
        used = tokens + budget.parts.margin
        reply = clamp_reply(reply, window=budget.parts.window, used=used, least=budget.least_reply)
    return Prepared(
        thread=context.thread,
        call=call,
        request=Request(
            model=call.model,
            messages=with_beside(view.messages, call),
            tools=call.schemas,
            max_tokens=reply,
            temperature=call.temperature,
            extra=call.extra,
            caching=prefix_to_cache(context, view),
        ),
        window=budget.window,
        budget=budget.parts,
        tokens=tokens,
        counted=view.tokens,
        threshold=budget.true_threshold,
        limit=budget.messages + budget.parts.tools,
        renewal=budget.renewal,
        edits=_all_edits(context, view),
        turn=context.turn,
        attempt=attempt,
        length=context.length,
        compactions=context.state.opened.thread.points,
    )


def _all_edits(context: CallContext, view: View) -> tuple[Edit, ...]:
    """The edits of the messages that are sent now: the newest point's and later ones. `at` are orders of the thread."""
    point = context.state.opened.point if not context.orders else None
    earlier = point.entry.edits if point is not None and isinstance(point.entry, Point) else ()
    if not view.edits:
        return earlier
    orders = context.orders or context.state.orders
    placed = (replace(edit, at=orders[edit.at]) for edit in view.edits)
    return (*earlier, *(edit for edit in placed if edit.at != LEFT_BEFORE))


def prefix_to_cache(context: CallContext, view: View) -> Caching | None:
    """Return which part of a request will be sent again; None if the caller does not want cache marks."""
    call = context.call
    if not call.breakpoints:
        return None
    lasting = before_tail(with_standing(view.messages, call), call)
    if context.orders:  # assembled for each call: only what the last request had too may come again
        lasting, stable = min(lasting, _repeated(context.state.view, view) + len(call.standing)), 0
    else:
        stable = _stable(view, len(context.state.prefix)) + len(call.standing)
    return Caching(stable=min(stable, lasting), lasting=lasting, seconds=context.settings.cache_seconds)


def _stable(view: View, prefix: int) -> int:
    """Return how many messages of a view come from the prefix of the thread, including those that a repair added."""
    if not view.places:
        return min(prefix, len(view.messages))
    return next((at for at, place in enumerate(view.places) if place >= prefix), len(view.places))


def _repeated(before: View | None, view: View) -> int:
    """Return how many messages will probably be sent again: those that begin the last view too; all if it only grew."""
    pairs = zip(before.messages if before is not None else (), view.messages, strict=False)
    return next((at for at, (one, other) in enumerate(pairs) if one != other), len(view.messages))

"""Prepare the next request of a thread: its view, compacted if due, with what the question needs from earlier.

view (head, newest point, later messages) -> below the threshold: sent as it is, the prefix untouched
                                          -> above it: a compaction, stored as a point
                                          -> a question or a step about messages that left: recalled, once
"""

from dataclasses import replace

from everlong.core import Edit, EventKind, Message, Point, Withdrawal, clamp_reply
from everlong.engine.contracts import Call, Prepared
from everlong.engine.events import CUT_NEAR, narrow_hint, window_hint
from everlong.engine.raw_history import LEFT_BEFORE, pinned_texts
from everlong.engine.recall.block import recall_needed
from everlong.engine.requests.assembly import assembled_again, remember, standing
from everlong.engine.requests.compaction import compact_now, lighter_target
from everlong.engine.requests.due import reason_to_compact
from everlong.engine.requests.placement import before_tail, with_beside, with_standing
from everlong.engine.thread import CallContext, EngineContext, work_on
from everlong.engine.view import View, bytes_of
from everlong.errors import BudgetImpossible, EverlongError, ThreadChanged
from everlong.wire import Caching, Request, format_named

__all__ = ["prefix_to_cache", "prepare", "prepared_from"]

WARNED_AT = 0.9  # of the threshold
NARROW = 0.15  # of the window; with less to move, compactions are frequent, and the user learns what fills the window
WORTH_RESTORING = 0.8  # of what fits now; a point made for a smaller size may no longer be needed


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
        return assembled_again(context)
    _restore(context)
    view = standing(context)
    reason = reason_to_compact(context, view)
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


def _lighter(context: CallContext, view: View) -> View:
    """Compact because a view has too many bytes. If nothing can be removed, send it and let the provider decide."""
    target = lighter_target(context, view.messages, view.tokens)
    try:
        return compact_now(context, "larger than the limit in bytes", view.tokens, limit=view.tokens - 1, target=target)
    except BudgetImpossible:
        return view


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
    requested, allowed = context.call.max_tokens, prepared.request.max_tokens
    if requested is not None and allowed is not None and allowed < requested:
        context.journal.note(
            EventKind.REPLY_SHORTENED,
            parent=context.turn,
            model=context.call.model,
            reason=f"the prompt of {prepared.tokens:,} tokens leaves less in the window of {prepared.budget.window:,}",
            tokens_before=requested,
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
    return next((at for at, (earlier, now) in enumerate(pairs) if earlier != now), len(view.messages))

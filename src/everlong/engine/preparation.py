"""Prepare the next request of a thread: its view, compacted if that is due, with what the question needs from before.

    view (head, newest point, later messages) -> below the threshold: sent as it is, the prefix untouched
                                              -> above it: a compaction, stored as a point
                                              -> a question about messages that left the view: they are recalled, once

After a compaction the view is the head, what the point left of the messages that it covers, and a tail of unchanged
messages. The point stores the middle; head and tail come from the log. So every later request begins with the same
bytes, in this process and any other.
"""

from collections import Counter as Tally
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from everlong.compress import OURS
from everlong.core import (
    Action,
    Edit,
    EventKind,
    FrameKind,
    History,
    Message,
    Opened,
    Point,
    Recalled,
    Role,
    Row,
    Text,
    Withdrawal,
    clamp_reply,
    frames_in,
    head_length,
)
from everlong.engine.contracts import Call, Prepared, before_tail, with_beside, with_standing
from everlong.engine.events import CUT_NEAR, compression_data, narrow_hint, window_hint
from everlong.engine.recall import recalled_block
from everlong.engine.thread import (
    LEFT_BEFORE,
    CallContext,
    EngineContext,
    RawHistory,
    ThreadState,
    left_by,
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
LOOKED_BACK = 8  # rows, to tell a question from a result
LARGEST_RECALL = 2_000  # tokens; a larger one costs more than it helps: it is paid for until the next compaction
NARROW = 0.15  # of the window; with less to move compactions come often, and the user is told what takes the window
SAME_SIZE = 0.9  # of what fits now; a point that was made for less was made for another window
WORTH_RESTORING = 0.8  # of what fits now; a point that was made for less may no longer be needed
#: Styles whose documents bound the length: the facts that code copied stay in the store, the model's words are sent.
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
        _tell_narrow(context)
        remember(context, view)
        prepared = prepared_from(context, view)
        _tell_shorter(context, prepared)
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
    if _recall(context, view):
        view = standing(context)
    _warn(context, view)
    return view


def _untouched(context: CallContext) -> View:
    """Off means off: the history of the thread, byte for byte."""
    messages = (*context.state.prefix, *context.state.since)
    return View(messages, messages, context.budget.counter.messages(messages))


def upcoming(context: CallContext) -> View:
    """Return what would be sent now, before any compaction; nothing is noted. Raises BudgetImpossible."""
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
    """Why a compaction is due now; "" if none is."""
    budget, state = context.budget, context.state
    if view.tokens > budget.limit:
        return "more than the window takes"
    if state.undone or _too_soon(context, view):
        return ""
    if view.tokens > budget.threshold:
        return "high mark"
    idle = None if state.called_at is None else (context.engine.clock() - state.called_at).total_seconds()
    wanted = max(0, budget.limit - budget.parts.fixed) * budget.parts.threshold / context.settings.threshold_share
    cold = budget.parts.fixed + context.settings.cold_mark * wanted  # of a soft cap too
    if idle is not None and idle > context.settings.cache_seconds and view.tokens > cold:
        return "cold cache"
    return ""


def _too_soon(context: CallContext, view: View) -> bool:
    """Whether too little is new since the last compaction for another: what stays may be larger than the target."""
    row = context.state.opened.point
    if row is None or not isinstance(row.entry, Point) or row.entry.model != context.call.model:
        return False
    made_for_this = row.entry.limit > SAME_SIZE * context.budget.empty_limit
    new = context.state.new_tokens(view.tokens)
    return made_for_this and new is not None and new < context.budget.renewal


def _lighter(context: CallContext, view: View) -> View:
    """Compact because of the bytes of a view; where nothing can go the provider decides."""
    target = lighter_target(context, view.messages, view.tokens)
    try:
        return compact_now(context, "more bytes than it takes", view.tokens, limit=view.tokens - 1, target=target)
    except BudgetImpossible:
        return view


def lighter_target(context: CallContext, messages: History, counted: int) -> int:
    """Return the tokens to go down to where a provider takes only so many bytes: half of them are for texts."""
    most, texts = context.budget.bytes or 0, bytes_of(without_images(messages), context.call.schemas)
    return min(counted - 1, context.budget.target, int(counted * most / (2 * texts)) if texts > most // 2 else counted)


def compact_now(
    context: CallContext, reason: str, before: int, *, limit: int | None = None, target: int | None = None
) -> View:
    """Compact, store the point, and return the new view. Raises BudgetImpossible if it cannot fit.

    `before` are the tokens that the view took until now. The current summary is carried on.
    """
    most = context.budget.compacted_limit if limit is None else limit
    aim = min(context.budget.target if target is None else target, most)
    for _ in range(ATTEMPTS):
        try:
            point = planned_point(context, reason, before, limit=most, target=aim)
        except BudgetImpossible as impossible:
            if limit is not None:
                raise
            most = _given_way(context, most, impossible)
            point = planned_point(context, reason, before, limit=most, target=most)
        if limit is not None:
            point = replace(point, limit=0)  # made because of a refusal, not for a size: it is never restored
        elif not point.edits and point.tokens_after >= before:
            return standing(context)  # there is nothing to move: all of it must stay
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
    """What may be sent if all that was kept free gives way: margins, and the answer down to its shortest.

    Where sizes are estimated or the window is guessed from refusals, what seems too large is sent all the same, as
    small as it gets: the provider decides.
    Raises the error where it cannot fit by an exact count.
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

    Without a new summary the current one is carried on.
    """
    opened, counter = context.state.opened, context.budget.counter
    summary = summary_in(opened.point) if summary is None else summary
    told = (
        ()
        if summary is None
        else (summary_message(summary, counter, summary_limit(min(limit, context.budget.movable))),)
    )
    raw = context.raw_history().with_background(opened.pins, told)
    options = replace(context.view_options(limit=limit, target=target), pins=raw.pins, index=raw.index)
    try:
        view = compacted_view(raw.history, options)
    except BudgetImpossible as error:
        raise _of_the_window(error, context) from None
    tail = _tail_length(view, arrived(raw.history, options), raw.orders)
    ours = (*pinned_texts(opened.pins), *told)
    middle = view.messages[head_length(raw.history) : len(view.messages) - tail]
    return Point(
        boundary=raw.orders[len(raw.history) - tail] if tail else raw.length,
        summary=(*told, *(message for message in middle if message not in ours)),
        tokens_before=before,
        tokens_after=view.tokens,
        reason=reason,
        focus="" if summary is None else summary.focus,
        account="" if summary is None else encode_summary(summary),
        model=counter.model,
        limit=context.budget.empty_limit,
        edits=tuple(_new_edits(view, raw.orders, opened)),
    )


def _new_edits(view: View, orders: tuple[int, ...], opened: Opened) -> Iterator[Edit]:
    """The edits with their place in the thread; what had left the view before is reported by an earlier point."""
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
    """The orders of the messages before the boundary that a point left as they are; of equal ones the newest."""
    waiting = Tally(left)
    stood = set()
    for message, order in zip(reversed(history), reversed(orders), strict=True):
        if LEFT_BEFORE < order < boundary and waiting[message] > 0:
            waiting[message] -= 1
            stood.add(order)
    return stood


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


def report_compaction(context: CallContext, point: Point, view: View, messages: int) -> None:
    """Note that a compaction was made; `messages` is how many there were before."""
    _note_compressed(context, point.reason, point.tokens_before, view, messages)


def _note_compressed(context: CallContext, reason: str, before: int, view: View, messages: int) -> None:
    context.journal.note(
        EventKind.CONTEXT_COMPRESSED,
        parent=context.turn,
        model=context.call.model,
        reason=reason,
        tokens_before=before,
        tokens_after=view.tokens,
        messages_before=messages,
        messages_after=len(view.messages),
        data=compression_data(context.budget.preset, messages, len(view.messages)),
    )


def _of_the_window(error: BudgetImpossible, context: CallContext) -> BudgetImpossible:
    """The same error against the whole window: tools, reply and margin take their part of it."""
    return BudgetImpossible(context.budget.parts.window, [*error.parts, *context.budget.other_parts])


# --- presets that assemble every request again -----------------------------------------------------------------------


def _assembled_again(context: CallContext) -> View:
    """The view of a preset whose document wants its steps before each call: from the raw history, nothing is kept."""
    view = assembled_with(context, summary_in(context.state.opened.point))
    before = context.budget.counter.messages(view.history)
    if view.tokens < before:
        _note_compressed(context, f"preset {context.budget.preset.name}", before, view, len(view.history))
    return view


def assembled_with(context: CallContext, summary: Summary | None) -> View:
    """Return what such a preset would send now, with that summary. Raises BudgetImpossible if it cannot fit."""
    plain = context.raw_history().with_background(context.state.opened.pins)
    if summary is None or (context.budget.preset.summary.when_needed and _told_in(plain, summary)):
        view = _made_again(context, plain, None)
        if summary is not None and any(edit.action is Action.DROP for edit in view.edits):
            view = _made_again(context, plain, summary)
    else:
        view = _made_again(context, plain, summary)
    return view


def _told_in(raw: RawHistory, summary: Summary) -> bool:
    """Whether messages that the summary covers are in the thread; another program may have dropped them."""
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
    """From which message of the history on no summary covers it."""
    summary = summary_in(context.state.opened.point)
    covers = 0 if summary is None else summary.covers
    return next((at for at, order in enumerate(raw.orders) if order >= covers), len(raw.orders))


def _with_summary(context: CallContext, raw: RawHistory, summary: Summary | None) -> tuple[RawHistory, int | None]:
    """The history with its summary where the preset puts it, and how many newest messages it sends, if it says."""
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


# --- what else belongs to a view
# ---------------------------------------------------------------------------------------


def _restore(context: CallContext) -> None:
    """Withdraw points that a larger window no longer needs: the raw history is sent again."""
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
            tokens_before=point.tokens_after,
            tokens_after=point.tokens_before,
        )
        context.refresh()


def _recall(context: CallContext, view: View) -> bool:
    """Append what a new question asks about and the view lacks; return whether there was anything."""
    question = _unsent_question(context.state)
    if question is None or context.state.opened.point is None or not context.settings.recall_share:
        return False
    budget, threads = context.budget, context.engine.threads
    share = int(context.settings.recall_share * budget.movable)
    most = min(share, LARGEST_RECALL, budget.threshold - view.tokens)
    block = recalled_block(threads, context.state.opened, view.messages, question, budget.counter, most)
    if block is None:
        return False
    try:
        threads.append(context.thread, [Recalled(question.order, block)], expected=context.length)
    except ThreadChanged:
        return False  # someone else goes on with the thread; the question is theirs too
    context.refresh()
    tokens = budget.counter.message(block)
    context.journal.note(EventKind.RECALLED, parent=context.turn, model=context.call.model, tokens_after=tokens)
    return True


def _unsent_question(state: ThreadState) -> Row | None:
    """The words of the user at the end, if nothing was recalled for them and no compaction knew them. The log alone
    decides. What a client sends behind them in each request is not looked at, and a result is no question.
    """
    rows = state.opened.rows
    said = [(row, row.entry) for row in islice(reversed(rows), LOOKED_BACK) if isinstance(row.entry, Message)][::-1]
    frames, at = frames_in([message for _, message in said]), len(said) - 1
    while at in frames and frames[at].kind is not FrameKind.RESULT:
        at -= 1
    if at < 0 or at in frames or said[at][1].role is not Role.USER:
        return None
    last = said[at][0]
    if any(isinstance(row.entry, Recalled) and row.entry.before == last.order for row in rows):
        return None
    point = state.opened.point
    return last if point is None or _made_at(state, point) < last.order else None


def _made_at(state: ThreadState, point: Row) -> int:
    """When the compaction of a point was made: a point that only keeps a summary beside it came later."""
    return next((row.order for row in state.opened.rows if left_by(row) == left_by(point)), point.order)


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


def _tell_narrow(context: CallContext) -> None:
    """Say once what takes the window, if a compaction can move only little of it."""
    budget, state = context.budget, context.state
    if state.told_narrow or context.settings.untouched or budget.preset.every_call:
        return
    if budget.messages - budget.parts.fixed >= NARROW * budget.parts.window:
        return
    fixed = {} if state.fixed is None else state.fixed[1]
    parts = [*((str(why), size) for why, size in fixed.items()), *budget.other_parts]
    parts += [] if budget.least_reply else [("the answer", budget.parts.reply)]
    hint = narrow_hint(max(0, budget.messages - budget.parts.fixed), budget.parts.window, parts)
    context.state = replace(state, told_narrow=True)
    context.journal.note(EventKind.CONTEXT_WARNED, parent=context.turn, model=context.call.model, reason=hint)


def _tell_shorter(context: CallContext, prepared: Prepared) -> None:
    """Say that the answer is asked to be shorter than the caller wanted."""
    asked, allowed = context.call.max_tokens, prepared.request.max_tokens
    if asked is not None and allowed is not None and allowed < asked:
        context.journal.note(
            EventKind.REPLY_SHORTENED,
            parent=context.turn,
            model=context.call.model,
            reason=f"beside {prepared.tokens:,} tokens the window of {prepared.budget.window:,} leaves less",
            tokens_before=asked,
            tokens_after=allowed,
        )


def _check_pins(context: CallContext) -> None:
    """Raise BudgetImpossible for pins above their share: they are never dropped in silence."""
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


# --- the request
# ---------------------------------------------------------------------------------------------------------


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
        renewal=budget.renewal,
        edits=_all_edits(context, view),
        turn=context.turn,
        attempt=attempt,
        length=context.length,
        compactions=context.state.opened.thread.points,
    )


def _all_edits(context: CallContext, view: View) -> tuple[Edit, ...]:
    """The edits of the messages that are sent now, at the newest point and since; `at` are orders of the thread."""
    point = context.state.opened.point if not context.orders else None
    earlier = point.entry.edits if point is not None and isinstance(point.entry, Point) else ()
    if not view.edits:
        return earlier
    orders = context.orders or context.state.orders
    placed = (replace(edit, at=orders[edit.at]) for edit in view.edits)
    return (*earlier, *(edit for edit in placed if edit.at != LEFT_BEFORE))


def prefix_to_cache(context: CallContext, view: View) -> Caching | None:
    """Return which part of the request for a view will be sent again; None if the caller wants no cache marks."""
    call = context.call
    if not call.breakpoints:
        return None
    lasting = before_tail(with_standing(view.messages, call), call)
    if (
        context.orders
    ):  # assembled again for each call: what was sent the last time may come again, the rest is not known
        lasting, stable = min(lasting, _repeated(context.state.view, view) + len(call.standing)), 0
    else:
        stable = _stable(view, len(context.state.prefix)) + len(call.standing)
    return Caching(stable=min(stable, lasting), lasting=lasting, seconds=context.settings.cache_seconds)


def _stable(view: View, prefix: int) -> int:
    """How many messages of a view come from the prefix of the thread, with what a repair put between them."""
    if not view.places:
        return min(prefix, len(view.messages))
    return next((at for at, place in enumerate(view.places) if place >= prefix), len(view.places))


def _repeated(before: View | None, view: View) -> int:
    """How many messages of a view are likely to come again: all, if it only grew since the last one."""
    pairs = zip(before.messages if before is not None else (), view.messages, strict=False)
    return next((at for at, (one, other) in enumerate(pairs) if one != other), len(view.messages))

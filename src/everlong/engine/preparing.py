"""Before every call: what goes into the window. The walk of a message, one path for all callers.

what stands (head, newest point, what came after) -> fits: sent as it is, the prefix untouched
                                                  -> high mark: a cut, kept as a point
                                                  -> a question about what left: recalled, once
"""

from dataclasses import replace

from everlong.core import Edit, EventKind, Message, Point, Recalled, Role, Row, Withdrawal, clamp_reply
from everlong.engine.accounts import account_in
from everlong.engine.beside import with_beside
from everlong.engine.caching import caching_of
from everlong.engine.calls import Call, Prepared
from everlong.engine.cutting import Cause, cut_past, held_past
from everlong.engine.live import Live, left_by, pinned_texts, refreshed
from everlong.engine.means import Means
from everlong.engine.past import LEFT_BEFORE
from everlong.engine.placing import with_account
from everlong.engine.recalling import recalled_block
from everlong.engine.replies import Request
from everlong.engine.sizing import Sizes
from everlong.engine.telling import compression_data, window_hint
from everlong.engine.view import View, assembled, grown_view, view_of
from everlong.engine.work import Work, work_on
from everlong.errors import BudgetImpossible, EverlongError, ThreadChanged
from everlong.relevance import Index

__all__ = ["cut_now", "cut_planned", "prepare", "prepared_from", "remember", "standing", "tell_cut"]

ATTEMPTS = 4  # another process may append meanwhile; each attempt reads again
WARNED_AT = 0.9  # of the high mark
LARGEST_RECALL = 2_000  # tokens; more of it costs more than it brings, and it is paid for until the next cut
STUCK = 0.9  # of the high mark; a cut that stays above it is repeated only when the limit itself is passed,
GROWN = 2  # or when the view is so many times what that cut left: with a soft cap the limit may be far away
NEEDS_LENGTH = frozenset({"anthropic"})  # formats in which a request must say how long the answer may be
WORTH_RESTORING = 0.8  # a point made for less than this share of what fits now may have been made in vain


def prepare(means: Means, thread: str, call: Call) -> Prepared:
    """What is to be sent for the thread now. Raises BudgetImpossible where nothing can fit."""
    with means.lives.lock(thread), means.journal(thread) as journal:
        live = refreshed(means.threads, thread, means.lives.get(thread))
        turn = journal.note(EventKind.TURN_STARTED, parent=call.parent, model=call.model)
        try:
            work = work_on(means, live, call, journal, turn)
            if not work.sizes.window.known and live.view is None:
                hint = window_hint(work.sizes.window)
                journal.note(EventKind.CONTEXT_WARNED, parent=turn, model=call.model, reason=hint)
            view = _view(work)
        except EverlongError as error:
            journal.note(EventKind.TURN_FAILED, parent=turn, model=call.model, reason=str(error))
            raise
        remember(work, view)
        return prepared_from(work, view)


def _view(work: Work) -> View:
    if work.settings.mode == "off" or work.settings.preset == "off":
        return _untouched(work)
    _check_pins(work)
    if work.sizes.preset.every_call:
        return _every_call(work)
    _restore(work)
    view = standing(work)
    reason = _why_cut(work, view)
    if reason:
        return cut_now(work, Cause(reason=reason, before=view.tokens))
    if _recall(work, view):
        view = standing(work)
    _warn(work, view)
    return view


def _untouched(work: Work) -> View:
    """Off means off: what stands, byte for byte."""
    said = (*work.live.front, *work.live.since)
    return View(said, said, work.sizes.counter.messages(said), (), 0, Index())


def standing(work: Work) -> View:
    """What stands, with the same bytes first as the last time."""
    live, key = work.live, _made_for(work)
    history = (*live.front, *live.since)
    if live.view is not None and live.made_for == key:
        grown = grown_view(history, work.wish(), live.view)
        if grown is not None:
            return grown
    work.live = replace(live, view=None, anchor=None)
    work.sizes = replace(work.sizes, gauge=work.sizes.gauge.unanchored())
    return assembled(live.front, live.since, work.wish(), Index())


def _made_for(work: Work) -> tuple[str, ...]:
    return (work.call.fmt, work.sizes.preset.name, work.call.model)


def _why_cut(work: Work, view: View) -> str:
    """Why a cut is due now; "" if none is."""
    sizes, live = work.sizes, work.live
    if view.tokens > sizes.limit:
        return "more than the window takes"
    point = live.opened.point
    stuck = (
        point is not None
        and isinstance(point.entry, Point)
        and max(STUCK * sizes.high, view.tokens / GROWN) < point.entry.tokens_after
        and point.entry.limit > STUCK * sizes.cut_limit
    )
    if live.undone or stuck:
        return ""
    if view.tokens > sizes.high:
        return "high mark"
    idle = None if live.called is None else (work.means.clock() - live.called).total_seconds()
    cold = work.settings.cold_mark * sizes.limit * sizes.budget.high / work.settings.threshold  # of a soft cap too
    if idle is not None and idle > work.settings.cache_seconds and view.tokens > cold:
        return "cold cache"
    return ""


def cut_now(work: Work, cause: Cause, *, limit: int | None = None, target: int | None = None) -> View:
    """Cut, keep the point, and put together what stands then. Raises BudgetImpossible where it cannot fit.

    Without a new summary the one that stands is carried on.
    """
    most = work.sizes.cut_limit if limit is None else limit
    aim = min(work.sizes.low if target is None else target, most)
    for _ in range(ATTEMPTS):
        point = cut_planned(work, cause, limit=most, target=aim)
        if limit is not None:
            point = replace(point, limit=0)  # what was refused is no size that anything was made for
        try:
            work.means.threads.append(work.thread, [point], expected=work.live.opened.thread.length)
        except ThreadChanged:
            work.refresh()
            continue
        messages = len(work.live.front) + len(work.live.since)
        work.refresh()
        view = standing(work)
        tell_cut(work, point, view, messages)
        if view.tokens <= most:
            return view
        aim -= view.tokens - most
    raise ThreadChanged(f"thread {work.thread!r} keeps changing; a cut of it was tried {ATTEMPTS} times")


def cut_planned(work: Work, cause: Cause, *, limit: int, target: int) -> Point:
    """The point that a cut would make; nothing is kept yet. Raises BudgetImpossible where it cannot fit."""
    wish = work.wish(limit=limit, target=target)
    if cause.account is None:
        cause = replace(cause, account=account_in(work.live.opened.point))
    try:
        return cut_past(work.past(), work.live.opened, wish, cause)
    except BudgetImpossible as error:
        raise _with_other_parts(error, work.sizes) from None


def tell_cut(work: Work, point: Point, view: View, messages: int) -> None:
    """Write down that a cut was made; `messages` is how many there were before."""
    work.journal.note(
        EventKind.CONTEXT_COMPRESSED,
        parent=work.turn,
        model=work.call.model,
        reason=point.reason,
        tokens_before=point.tokens_before,
        tokens_after=view.tokens,
        messages_before=messages,
        messages_after=len(view.messages),
        data=compression_data(work.sizes.preset, messages, len(view.messages)),
    )


def _every_call(work: Work) -> View:
    """A preset whose document wants its steps before each call: made anew from the raw past, nothing is kept."""
    held, preset = with_account(work, held_past(work.past(), work.live.opened.pins))
    work.orders = held.orders
    limit = work.sizes.cut_limit
    try:
        view = view_of(held.history, replace(work.wish(limit=limit, target=limit), pins=held.pins, preset=preset))
    except BudgetImpossible as error:
        raise _with_other_parts(error, work.sizes) from None
    before = work.sizes.counter.messages(held.history)
    if view.tokens < before:
        work.journal.note(
            EventKind.CONTEXT_COMPRESSED,
            parent=work.turn,
            model=work.call.model,
            reason=f"preset {work.sizes.preset.name}",
            tokens_before=before,
            tokens_after=view.tokens,
            messages_before=len(held.history),
            messages_after=len(view.messages),
            data=compression_data(work.sizes.preset, len(held.history), len(view.messages)),
        )
    return view


def _restore(work: Work) -> None:
    """A larger window brings raw history back: points that it makes needless are withdrawn."""
    while True:
        row = work.live.opened.point
        if row is None or not isinstance(row.entry, Point):
            return
        point = row.entry
        if not point.limit or point.limit > WORTH_RESTORING * work.sizes.cut_limit:
            return
        since = work.sizes.counter.messages(work.live.since)
        if point.tokens_before + since > work.sizes.high:
            return
        try:
            work.means.threads.append(work.thread, [Withdrawal(row.order)], expected=work.live.opened.thread.length)
        except ThreadChanged:
            work.refresh()
            continue
        work.journal.note(
            EventKind.CONTEXT_RESTORED,
            parent=work.turn,
            model=work.call.model,
            reason="a larger window",
            tokens_before=point.tokens_after,
            tokens_after=point.tokens_before,
        )
        work.refresh()


def _recall(work: Work, view: View) -> bool:
    """Bring back what a new question asks about and the view lacks; whether anything was appended."""
    asked = _unsent_question(work.live)
    if asked is None or work.live.opened.point is None or not work.settings.recall_share:
        return False
    share = int(work.settings.recall_share * work.sizes.limit)
    room = min(share, LARGEST_RECALL, work.sizes.high - view.tokens)
    block = recalled_block(work.means.threads, work.live.opened, view.messages, asked, work.sizes.counter, room)
    if block is None:
        return False
    try:
        entry = Recalled(asked.order, block)
        work.means.threads.append(work.thread, [entry], expected=work.live.opened.thread.length)
    except ThreadChanged:
        return False  # someone else goes on with the thread; the question is theirs too
    work.refresh()
    tokens = work.sizes.counter.message(block)
    work.journal.note(EventKind.RECALLED, parent=work.turn, model=work.call.model, tokens_after=tokens)
    return True


def _unsent_question(live: Live) -> Row | None:
    """The user message at the end, if nothing was recalled for it and no cut knew it. The log alone decides."""
    rows = live.opened.rows
    last = next((row for row in reversed(rows) if isinstance(row.entry, Message)), None)
    if last is None or not isinstance(last.entry, Message) or last.entry.role is not Role.USER:
        return None
    if any(isinstance(row.entry, Recalled) and row.entry.before == last.order for row in rows):
        return None
    point = live.opened.point
    return last if point is None or _made_at(live, point) < last.order else None


def _made_at(live: Live, point: Row) -> int:
    """When the cut was made that a point tells of: one that only keeps a summary beside it came later."""
    return next((row.order for row in live.opened.rows if left_by(row) == left_by(point)), point.order)


def _warn(work: Work, view: View) -> None:
    earlier = 0 if work.live.view is None else work.live.view.tokens
    mark = WARNED_AT * work.sizes.high
    if earlier <= mark < view.tokens:
        work.journal.note(
            EventKind.CONTEXT_WARNED,
            parent=work.turn,
            model=work.call.model,
            reason="a cut is near",
            tokens_before=view.tokens,
        )


def _check_pins(work: Work) -> None:
    """Pins above their share are an error that says so, never silently dropped."""
    pins = work.live.opened.pins
    if not pins:
        return
    counter, most = work.sizes.counter, int(work.settings.pin_share * work.sizes.room)
    rows = [row for pin in pins if pin.order is not None for row in _row(work, pin.order)]
    sizes = [("pinned text", counter.message(text)) for text in pinned_texts(pins)]
    sizes += [
        (f"pinned message {row.order}", counter.message(row.entry)) for row in rows if isinstance(row.entry, Message)
    ]
    if sum(size for _, size in sizes) > most:
        raise BudgetImpossible(most, sizes)


def _row(work: Work, order: int) -> list[Row]:
    return list(work.means.threads.read(work.thread, order, order + 1))


def _with_other_parts(error: BudgetImpossible, sizes: Sizes) -> BudgetImpossible:
    """The same, reckoned against the whole window: tools, reply and margin take their part of it."""
    return BudgetImpossible(sizes.budget.window, [*error.parts, *sizes.other_parts])


def remember(work: Work, view: View) -> None:
    """Keep what is sent now, for the next call."""
    kept = replace(work.live, view=view, made_for=_made_for(work), called=work.means.clock())
    work.means.lives.put(work.thread, kept)


def _all_edits(work: Work, view: View) -> tuple[Edit, ...]:
    """What was done to what is sent now, at the newest point and since; `at` are orders of the thread."""
    point = work.live.opened.point if not work.orders else None
    earlier = point.entry.edits if point is not None and isinstance(point.entry, Point) else ()
    if not view.edits:
        return earlier
    orders = work.orders or work.live.orders
    placed = (replace(edit, at=orders[edit.at]) for edit in view.edits)
    return (*earlier, *(edit for edit in placed if edit.at != LEFT_BEFORE))


def prepared_from(work: Work, view: View, *, attempt: int = 0) -> Prepared:
    """The request for a view."""
    call, sizes = work.call, work.sizes
    tokens = sizes.true(view.tokens)
    reply = call.max_tokens
    if reply is None and call.fmt in NEEDS_LENGTH:
        reply = sizes.budget.reply
    if reply is not None and work.settings.mode != "off":
        reply = clamp_reply(reply, window=sizes.budget.window, used=tokens + sizes.budget.margin)
    return Prepared(
        thread=work.thread,
        call=call,
        request=Request(
            model=call.model,
            messages=with_beside(view.messages, call),
            tools=call.tools,
            max_tokens=reply,
            temperature=call.temperature,
            extra=call.extra,
            caching=caching_of(work, view),
        ),
        window=sizes.window,
        budget=sizes.budget,
        tokens=tokens,
        counted=view.tokens,
        edits=_all_edits(work, view),
        turn=work.turn,
        attempt=attempt,
        length=work.live.opened.thread.length,
        cuts=work.live.opened.thread.points,
    )

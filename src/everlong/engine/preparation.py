"""Before every call: what goes into the window. The walk of a message, one path for all callers.

what stands (head, newest point, what came after) -> fits: sent as it is, the prefix untouched
                                                  -> high mark: a cut, kept as a point
                                                  -> a question about what left: recalled, once
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from everlong.compress import OURS, Preset, newest
from everlong.core import (
    Action,
    Edit,
    EventKind,
    History,
    Message,
    Opened,
    Pin,
    Point,
    Recalled,
    Role,
    Row,
    Text,
    Withdrawal,
    clamp_reply,
    head_length,
)
from everlong.engine.budget import Sizes
from everlong.engine.contracts import Caching, Call, Prepared, Request, before_tail, with_beside, with_standing
from everlong.engine.events import compression_data, window_hint
from everlong.engine.recall import recalled_block
from everlong.engine.thread import (
    LEFT_BEFORE,
    Live,
    Means,
    Past,
    Work,
    account_in,
    account_message,
    left_by,
    pinned_texts,
    refreshed,
    summary_limit,
    work_on,
)
from everlong.engine.view import View, Wish, arrived, assembled, cut_view, grown_view, view_of
from everlong.errors import BudgetImpossible, EverlongError, ThreadChanged
from everlong.relevance import Index
from everlong.summarize import Summary, as_system_section, encode_summary, written

__all__ = [
    "BUFFER_LEAST",
    "BUFFER_LIMIT",
    "Cause",
    "Held",
    "buffer_start",
    "caching_of",
    "cut_now",
    "cut_past",
    "cut_planned",
    "held_past",
    "prepare",
    "prepared_from",
    "remember",
    "standing",
    "tell_cut",
    "with_account",
]


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


BUFFER_LIMIT, BUFFER_LEAST = 50, 10  # messages


def buffer_start(messages: Sequence[Message], *, limit: int = BUFFER_LIMIT, least: int = BUFFER_LEAST) -> int:
    """Where the buffer begins; what stands before, system text aside, was evicted.

    Example: 55 messages, users at every even place -> 44, eleven are left; two more messages -> still 44
    """
    start = head_length(messages)
    asked: list[int] = []
    for at in range(start, len(messages)):
        if messages[at].role is not Role.USER:
            continue
        asked.append(at)
        if at + 1 - start <= limit:
            continue
        kept = [place for place in asked if place <= at + 1 - least]
        if kept and kept[-1] > start:
            start = kept[-1]
            asked = [place for place in asked if place >= start]
    return start


BUFFER = "static-buffer"
IN_SYSTEM = frozenset({BUFFER, "nanobot", "nanobot-v3"})
WHEN_NEEDED = frozenset({"nanobot", "nanobot-v3"})
FROM_THE_POINT = frozenset({"chatbox"})
#: Styles whose length their documents bound: what code copied stays in the store, the model's words are sent.
WORDS_ALONE = frozenset({"free", "buffer"})


def with_account(work: Work, held: Held) -> tuple[Held, Preset]:
    """What is held of a thread with its summary in its place, if there is one; the preset, with what goes before it."""
    preset = work.sizes.preset
    account = account_in(work.live.opened.point)
    start = _start(preset, held, account)
    if preset.name in WHEN_NEEDED and work.sizes.counter.messages(held.history) <= work.sizes.cut_limit:
        account = None
    if account is not None:
        held = _with(held, _message(work, account, in_system=preset.name in IN_SYSTEM))
        start += 1
    return held, _from(preset, held, start)


def _start(preset: Preset, held: Held, account: Summary | None) -> int:
    """The first message that is sent as it is; those before it go, whatever room there is."""
    if preset.name == BUFFER:
        return buffer_start(held.history)
    if preset.name in FROM_THE_POINT and account is not None:
        return next((at for at, order in enumerate(held.orders) if order >= account.covers), 0)
    return 0


def _from(preset: Preset, held: Held, start: int) -> Preset:
    """The preset whose newest messages are those from `start` on, beside the pinned ones."""
    head = head_length(held.history)
    if start <= head:
        return preset
    many = len(held.history) - start + sum(head <= pin < start for pin in held.pins)
    step = partial(newest, most_messages=many, least_messages=many)
    return replace(preset, cut=tuple(step if _is_newest(other) else other for other in preset.cut))


def _is_newest(step: Callable[..., object]) -> bool:
    return step is newest or (isinstance(step, partial) and step.func is newest)


def _message(work: Work, account: Summary, *, in_system: bool) -> Message:
    counter, limit = work.sizes.counter, summary_limit(work.sizes.cut_limit)
    if not in_system:
        return account_message(account, counter, limit)
    text = written(account, counter=counter, limit=limit, facts=account.style not in WORDS_ALONE)
    return Message(Role.SYSTEM, (Text(as_system_section(text, account.language)),))


def _with(held: Held, message: Message) -> Held:
    """With the message right behind the system text; what is not system text must not be left out."""
    head = head_length(held.history)
    pins = {pin + 1 if pin >= head else pin for pin in held.pins}
    if message.role is not Role.SYSTEM:
        pins.add(head)
    return Held(
        (*held.history[:head], message, *held.history[head:]),
        (*held.orders[:head], LEFT_BEFORE, *held.orders[head:]),
        frozenset(pins),
    )


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


def caching_of(work: Work, view: View) -> Caching | None:
    """What of the request for a view comes again; None where the caller wants no marks."""
    call = work.call
    if not call.breakpoints:
        return None
    lasting = before_tail(with_standing(view.messages, call), call)
    if work.orders:  # made anew for each call: what was sent the last time may come again, the rest is not known
        lasting, stable = min(lasting, _repeated(work.live.view, view) + len(call.standing)), 0
    else:
        stable = _stable(view, len(work.live.front)) + len(call.standing)
    return Caching(stable=min(stable, lasting), lasting=lasting, seconds=work.settings.cache_seconds)


def _stable(view: View, front: int) -> int:
    """How many messages of a view come from the front of what stands, with what a repair put between them."""
    if not view.places:
        return min(front, len(view.messages))
    return next((at for at, place in enumerate(view.places) if place >= front), len(view.places))


def _repeated(before: View | None, view: View) -> int:
    """How many messages of a view are likely to come again: all, if it only grew since the last one."""
    pairs = zip(before.messages if before is not None else (), view.messages, strict=False)
    return next((at for at, (one, other) in enumerate(pairs) if one != other), len(view.messages))

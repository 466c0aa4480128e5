"""Assemble the view of a thread: what is sent if nothing is compacted now.

For most presets it is the last view with the new messages, so that every request begins with the same bytes. Some
presets assemble each request again from the raw history, and place the summary themselves.
"""

from dataclasses import replace

from everlong.core import Action, EventKind, Message, Role, Text, head_length
from everlong.engine.events import ASSEMBLED, compression_data
from everlong.engine.raw_history import LEFT_BEFORE, RawHistory
from everlong.engine.thread import CallContext, summary_in, summary_limit, summary_message
from everlong.engine.view import View, assembled_view, grown_view, view_of
from everlong.errors import BudgetImpossible
from everlong.summarize import Summary, as_system_section, written

__all__ = ["assembled_again", "assembled_with", "remember", "standing", "upcoming"]

#: Styles of presets that bound the summary's length: only the model's text is sent, the copied facts stay in the store.
BOUNDED_STYLES = frozenset({"free", "buffer", "rolling"})


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


def remember(context: CallContext, view: View) -> None:
    """Remember the view that is sent now, for the next call."""
    context.remember(view, _made_for(context))


def _made_for(context: CallContext) -> tuple[str, ...]:
    return (context.call.fmt, context.budget.preset.name, context.call.model)


# --- presets that assemble every request again -----------------------------------------------------------------------


def assembled_again(context: CallContext) -> View:
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
        most = context.budget.without_reserve(limit, context.budget.of_the_window(error))
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

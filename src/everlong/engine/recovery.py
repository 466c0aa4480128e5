"""Recover from a refusal: find a request that may pass instead, or raise one clear error. Every attempt is smaller.

An overflow teaches the window, if the error names it, else bounds of it: what was refused, what passed. It is answered
with a harder compaction, at most twice. A body of too many bytes teaches that limit in the same way. A
history that the provider calls malformed is sent once more as plain words, pictures that it refuses are left out
once, a reply that is too long for it is asked for shorter. Any other error is the caller's.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from everlong.core import EventKind, History, user_text
from everlong.engine.budget import (
    calibration_of,
    counter_for,
    keep_calibration,
    keep_limits,
    learn_window,
    learned_limits,
    learned_window,
)
from everlong.engine.contracts import Prepared
from everlong.engine.events import Journal
from everlong.engine.preparation import compact_now, lighter_target, prepared_from, remember
from everlong.engine.thread import CallContext, EngineContext, work_on
from everlong.engine.usage import record_failure
from everlong.engine.view import bytes_of, flattened, without_images
from everlong.errors import (
    BudgetImpossible,
    ContextOverflow,
    MalformedHistory,
    MediaRefused,
    NotRecovered,
    ProviderError,
    ReplyLimitExceeded,
    StoreError,
)
from everlong.relevance import in_language, language_of
from everlong.windows import Bounds
from everlong.wire import repair_history

__all__ = ["recover"]

MOST_ATTEMPTS = 2
HARDER = 0.6  # of the refused size, for each attempt; if no window is known, it is the only figure
LEAST_TOKENS = 2_500  # of a prompt; what is smaller and refused says nothing about a window
LEAST_BYTES = 400_000  # of a body that is refused as too large; what is smaller has too many tokens
WITHIN = 0.95  # of a limit in bytes: how a body is written is not ours alone
WORDS = {
    "en": (
        "The conversation does not fit this model's window{limit}, and a shorter form was refused too. "
        "Start a new thread, remove large attachments or pins, or choose a model with a larger window.",
        " of {limit:,} tokens",
    ),
    "zh": (
        "对话超出了该模型的上下文窗口{limit}，压缩后仍被拒绝。请新建对话、移除较大的附件或固定内容，或选择窗口更大的模型。",
        "（{limit:,} 个 token）",
    ),
}


def recover(engine: EngineContext, prepared: Prepared, error: ProviderError) -> Prepared:
    """Return the next request to try. Raises the error itself if nothing helps, NotRecovered after the last attempt."""
    if engine.settings_of(prepared.thread).untouched:
        record_failure(engine, prepared, str(error))
        raise error
    if isinstance(error, ContextOverflow):
        return _smaller(engine, prepared, error)
    for remedy in REMEDIES:
        if isinstance(error, remedy.answers) and remedy.name not in prepared.remedies:
            changed = remedy.apply(prepared, error)
            if changed is not None:
                return replace(changed, remedies=prepared.remedies | {remedy.name})
    record_failure(engine, prepared, str(error))
    raise error


def _smaller(engine: EngineContext, prepared: Prepared, error: ContextOverflow) -> Prepared:
    thread, call = prepared.thread, prepared.call
    with engine.states.lock(thread), engine.journal(thread) as journal:
        started = prepared.overflow or journal.note(
            EventKind.OVERFLOW_DETECTED,
            parent=prepared.turn,
            model=call.model,
            reason=str(error),
            tokens_before=prepared.tokens,
            tokens_after=None if error.in_bytes else error.limit,
        )
        prepared = replace(prepared, overflow=started)
        _learn(engine, journal, prepared, error)
        if prepared.attempt >= MOST_ATTEMPTS:
            raise _given_up(journal, prepared, error)
        state = engine.state(thread)
        try:
            context = work_on(engine, state, call, journal, prepared.turn)
            context.budget = replace(context.budget, preset=context.budget.preset.after_overflow)
            harder = _aim(context, prepared)
            if context.budget.bytes is not None:
                harder = min(harder, lighter_target(context, prepared.request.messages, prepared.counted))
            most = prepared.counted - 1 if prepared.counted <= context.budget.compacted_limit else None
            view = compact_now(context, "overflow", prepared.counted, limit=most, target=harder)
        except BudgetImpossible as impossible:
            bare = _bare(prepared) if error.in_bytes else None
            if bare is None:
                raise _given_up(journal, prepared, error, impossible) from impossible
            return replace(bare, attempt=prepared.attempt + 1)
        except StoreError as broken:
            _note_failure(journal, prepared, str(broken))
            raise
        remember(context, view)
        again = prepared_from(context, view, attempt=prepared.attempt + 1)
        again = _as_before(replace(again, overflow=started), prepared)
        return _lighter(again, prepared, context.budget.bytes) if error.in_bytes else again


def _lighter(again: Prepared, refused: Prepared, most: int | None) -> Prepared:
    """The request without pictures, if those that must stay leave it too large: the second attempt has none anyway."""
    size = _size(again)
    if size < _size(refused) and (most is None or size <= most) and not refused.attempt:
        return again
    return _bare(again) or again


def _bare(prepared: Prepared) -> Prepared | None:
    """The request without its pictures; None if it has none."""
    bare = _with_messages(prepared, _without_pictures(prepared.request.messages, prepared.call.fmt))
    return None if bare is None else replace(bare, remedies=prepared.remedies | {"no pictures"})


def _size(prepared: Prepared) -> int:
    """The bytes of a request."""
    return bytes_of(prepared.request.messages, prepared.request.tools)


def _aim(context: CallContext, prepared: Prepared) -> int:
    """The tokens that the next request goes down to; a preset's own steps after an overflow know how far they go."""
    if context.budget.preset.overflow is not None and not prepared.attempt:
        return prepared.counted - 1
    return min(context.budget.target, int(prepared.counted * HARDER))


def _as_before(again: Prepared, refused: Prepared) -> Prepared:
    """Apply to the new request the remedies that this call already needed for other refusals."""
    messages = again.request.messages
    for remedy in REMEDIES:
        if remedy.name in refused.remedies and remedy.view is not None:
            messages = remedy.view(messages, again.call.fmt)
    longest = [length for length in (again.request.max_tokens, refused.request.max_tokens) if length is not None]
    shorter = replace(again.request, max_tokens=min(longest, default=None))
    again = replace(again, request=shorter, remedies=refused.remedies)
    return _with_messages(again, messages) or again


def _learn(engine: EngineContext, journal: Journal, prepared: Prepared, error: ContextOverflow) -> None:
    """Learn the true window and the true size of what was sent, as far as the error names them; else their bounds."""
    if error.in_bytes and _learn_size(engine, journal, prepared, error):
        return
    call, before = prepared.call, learned_window(engine.threads, prepared.call)
    reason = "an overflow told it"
    if error.limit is not None and error.limit > 0 and not error.ceiling:
        learn_window(engine.threads, call, error.limit)
    prompt = prepared.tokens
    if error.requested:
        reply = prepared.request.max_tokens or 0
        known = calibration_of(engine.threads, call, counter_for(call.model))
        counted = prepared.counted + prepared.budget.tools
        # Some providers include the reserve for the answer in the size they report. If the figure is large enough for
        # that, subtract it: the smaller figure is the careful one to learn from.
        prompt = error.requested - reply if error.requested > reply + counted else error.requested
        observed = known.observe(counted, prompt)
        if observed != known:
            keep_calibration(engine.threads, call, observed)
    guessed = not error.ceiling and prompt >= LEAST_TOKENS
    if guessed and (error.limit is None or (not error.requested and prepared.with_reply(prompt) <= error.limit)):
        _learn_bounds(engine, prepared, prompt)
        reason = "larger requests were refused"
    _refute(engine, prepared, error)
    learned = learned_window(engine.threads, call)
    if learned is not None and learned != before:
        journal.note(
            EventKind.WINDOW_LEARNED,
            parent=prepared.turn,
            model=call.model,
            reason=reason,
            tokens_before=prepared.budget.window,
            tokens_after=learned,
        )


def _learn_size(engine: EngineContext, journal: Journal, prepared: Prepared, error: ContextOverflow) -> bool:
    """Learn how many bytes the provider takes; return False where a refusal as too large can only be about tokens."""
    size = _size(prepared)
    if error.limit is None and size < LEAST_BYTES:
        return False
    known = learned_limits(engine.threads, prepared.call)
    if error.limit is None:
        bounds = known.size.after_refusal(size)
    else:  # what it named beats any bounds
        bounds = Bounds().after_refusal(error.limit + 1, passed=int(error.limit * WITHIN))
    keep_limits(engine.threads, prepared.call, replace(known, size=bounds))
    journal.note(
        EventKind.WINDOW_LEARNED,
        parent=prepared.turn,
        model=prepared.call.model,
        reason=f"larger requests were refused: at most {bounds.limit:,} bytes from now on",
    )
    return True


def _learn_bounds(engine: EngineContext, prepared: Prepared, size: int) -> None:
    """What was refused is above the limit; what the provider read of this thread before is not."""
    call, known = prepared.call, learned_limits(engine.threads, prepared.call)
    state = engine.states.get(prepared.thread)
    anchor = None if state is None else state.anchor
    passed = anchor.reported if anchor is not None and anchor.model == call.model else None
    fixed = min(size, prepared.budget.fixed + prepared.budget.tools)
    total = known.total.after_refusal(
        prepared.with_reply(size),
        fixed=fixed,
        passed=None if passed is None else prepared.with_reply(passed),
    )
    prompt = known.prompt.after_refusal(size, fixed=fixed, passed=passed)
    keep_limits(engine.threads, call, replace(known, total=total, prompt=prompt))


def _refute(engine: EngineContext, prepared: Prepared, error: ContextOverflow) -> None:
    """Note that a window which a person set does not hold: what was refused was within it."""
    told = prepared.window.context if prepared.window.source == "user" else None
    known = learned_limits(engine.threads, prepared.call)
    if told is not None and not error.ceiling and known.refuted != told:
        keep_limits(engine.threads, prepared.call, replace(known, refuted=told))


def _given_up(
    journal: Journal,
    prepared: Prepared,
    error: ContextOverflow,
    impossible: BudgetImpossible | None = None,
) -> NotRecovered:
    spoken = (user_text(message) for message in reversed(prepared.request.messages))
    text, limited = in_language(WORDS, language_of([text for text in spoken if text][:12]))
    limit = error.limit if error.limit is not None and not error.in_bytes else prepared.budget.window
    message = text.format(limit=limited.format(limit=limit))
    parts = () if impossible is None else impossible.parts
    if parts:
        message = f"{message} ({', '.join(f'{name} {size:,}' for name, size in parts)})"
    _note_failure(journal, prepared, str(error))
    return NotRecovered(message, limit=limit, requested=error.requested or prepared.tokens, parts=parts)


def _note_failure(journal: Journal, prepared: Prepared, reason: str) -> None:
    for kind, parent in ((EventKind.OVERFLOW_FAILED, prepared.overflow), (EventKind.TURN_FAILED, prepared.turn)):
        journal.note(kind, parent=parent, model=prepared.call.model, reason=reason)


@dataclass(frozen=True, slots=True)
class Remedy:
    """What is tried once for one kind of refusal: another form of the messages, or else a shorter reply."""

    name: str
    answers: type[ProviderError]
    view: Callable[[History, str], History] | None = None

    def apply(self, prepared: Prepared, error: ProviderError) -> Prepared | None:
        """Return the request to try; None if it would be the same."""
        if self.view is None:
            return _with_shorter_reply(prepared, error)
        return _with_messages(prepared, self.view(prepared.request.messages, prepared.call.fmt))


def _as_words(messages: History, fmt: str) -> History:
    return repair_history(flattened(messages), fmt).messages


def _without_pictures(messages: History, fmt: str) -> History:
    return repair_history(without_images(messages), fmt).messages


def _with_shorter_reply(prepared: Prepared, error: ProviderError) -> Prepared | None:
    requested = prepared.request.max_tokens or prepared.budget.reply
    shorter = error.limit if isinstance(error, ReplyLimitExceeded) and error.limit else requested // 2
    if not 0 < shorter < requested:
        return None
    return replace(prepared, request=replace(prepared.request, max_tokens=shorter))


def _with_messages(prepared: Prepared, messages: History) -> Prepared | None:
    if messages == prepared.request.messages:
        return None
    counter, call = counter_for(prepared.call.model), prepared.call
    counted = max(0, counter.messages(messages) - counter.messages((*call.standing, *call.tail)))
    caching = prepared.request.caching
    if caching is not None:  # this form is sent once; the system text in front of it stays
        caching = replace(caching, stable=0, lasting=0)
    request = replace(prepared.request, messages=messages, caching=caching)
    return replace(prepared, request=request, counted=counted)


REMEDIES = (
    Remedy("words", MalformedHistory, _as_words),
    Remedy("no pictures", MediaRefused, _without_pictures),
    Remedy("shorter reply", ReplyLimitExceeded),
)

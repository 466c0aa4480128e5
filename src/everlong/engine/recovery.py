"""Recover from a refusal: find a request that may pass instead, or raise one clear error.

An overflow teaches the window, if the error names it; otherwise it teaches bounds: the sizes that were refused and
accepted. It is answered with a harder compaction, at most twice, and each attempt is smaller. A body with too many
bytes teaches that limit in the same way. A history that the provider calls malformed is sent once more as plain text;
pictures that it refuses are left out; a reply limit that it refuses is lowered; a parameter that it refuses is left
out. Any other error goes to the caller.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace

from everlong.core import EventKind, History, user_text
from everlong.engine.budget import (
    SHORTEST_ANSWER,
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
from everlong.engine.requests.assembly import remember
from everlong.engine.requests.compaction import compact_now, lighter_target
from everlong.engine.requests.preparation import prepared_from
from everlong.engine.thread import CallContext, EngineContext, work_on
from everlong.engine.usage import record_failure
from everlong.engine.view import bytes_of, flattened, without_images
from everlong.errors import (
    BudgetImpossible,
    ContextOverflow,
    MalformedHistory,
    MediaRefused,
    NotRecovered,
    ParameterRefused,
    ProviderError,
    ReplyLimitExceeded,
    StoreError,
)
from everlong.relevance import in_language, language_of
from everlong.windows import Bounds
from everlong.wire import format_named, repair_history

__all__ = ["may_recover", "recover"]

MOST_ATTEMPTS = 2
HARDER = 0.6  # of the refused size, for each attempt; the only figure if no window is known
LEAST_TOKENS = 2_500  # of a prompt; a smaller one that is refused says nothing about the window
LEAST_BYTES = 400_000  # of a body that is refused as too large; in a smaller one, the tokens are the problem
WITHIN = 0.95  # of a limit in bytes: we do not know exactly how the body is written
WORDS = {
    "en": (
        "The conversation does not fit into this model's context window{limit}, and a shorter version was refused too. "
        "Start a new thread, remove large attachments or pins, or choose a model with a larger window.",
        " of {limit:,} tokens",
    ),
    "zh": (
        "对话超出了该模型的上下文窗口{limit}，压缩后仍被拒绝。请新建对话、移除较大的附件或固定内容，或选择窗口更大的模型。",
        "（{limit:,} 个 token）",
    ),
}
#: The same if no shorter version was sent.
NOTHING_SHORTER = {
    "en": (
        "The conversation does not fit into this model's context window{limit}, and it cannot be made shorter. "
        "Shorten its largest part, start a new thread, or choose a model with a larger window.",
        WORDS["en"][1],
    ),
    "zh": (
        "对话超出了该模型的上下文窗口{limit}，且无法再压缩。请缩短其中最大的部分、新建对话，或选择窗口更大的模型。",
        WORDS["zh"][1],
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


def may_recover(error: ProviderError) -> bool:
    """Return whether another request may help after this refusal. If not, the error is final."""
    return isinstance(error, ContextOverflow) or any(isinstance(error, remedy.answers) for remedy in REMEDIES)


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
            raise _given_up(engine, journal, prepared, error)
        state = engine.state(thread)
        try:
            context = work_on(engine, state, call, journal, prepared.turn)
            context.budget = replace(context.budget, preset=context.budget.preset.after_overflow)
            harder = _aim(context, prepared)
            if context.budget.bytes is not None:
                harder = min(harder, lighter_target(context, prepared.request.messages, prepared.counted))
            most = prepared.counted - 1 if prepared.counted <= context.budget.compacted_limit else None
            view = compact_now(context, "overflow", prepared.counted, limit=most, target=harder, refused=True)
        except BudgetImpossible as impossible:
            bare = _bare(prepared) if error.in_bytes else None
            if bare is None:
                raise _given_up(engine, journal, prepared, error, impossible) from impossible
            return replace(bare, attempt=prepared.attempt + 1)
        except StoreError as broken:
            _note_failure(journal, prepared, str(broken))
            raise
        remember(context, view)
        again = prepared_from(context, view, attempt=prepared.attempt + 1)
        again = _as_before(replace(again, overflow=started), prepared)
        return _lighter(again, prepared, context.budget.bytes) if error.in_bytes else again


def _lighter(again: Prepared, refused: Prepared, most: int | None) -> Prepared:
    """Return the new request: without images if it is still too large, and always at the second attempt."""
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
    """The target of the next request in tokens; at the first attempt, a preset's own overflow steps set their own."""
    if context.budget.preset.overflow is not None and not prepared.attempt:
        return prepared.counted - 1
    return min(context.budget.target, int(prepared.counted * HARDER))


def _as_before(again: Prepared, refused: Prepared) -> Prepared:
    """Apply the remedies that this call has needed for other refusals to the new request."""
    messages = again.request.messages
    for remedy in REMEDIES:
        if remedy.name in refused.remedies and remedy.view is not None:
            messages = remedy.view(messages, again.call.fmt)
    longest = [length for length in (again.request.max_tokens, refused.request.max_tokens) if length is not None]
    before = refused.request
    taken = replace(
        again.request, max_tokens=min(longest, default=None), temperature=before.temperature, extra=before.extra
    )
    again = replace(again, request=taken, remedies=refused.remedies)
    return _with_messages(again, messages) or again


def _learn(engine: EngineContext, journal: Journal, prepared: Prepared, error: ContextOverflow) -> None:
    """Learn the true window and the true size of the request, as far as the error names them; else their bounds."""
    if error.in_bytes and _learn_size(engine, journal, prepared, error):
        return
    call, before = prepared.call, learned_window(engine.threads, prepared.call)
    reason = "learned from an overflow"
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
    """Learn how many bytes the provider accepts; return False if the refusal can only be about tokens."""
    size = _size(prepared)
    if error.limit is None and size < LEAST_BYTES:
        return False
    known = learned_limits(engine.threads, prepared.call)
    if error.limit is None:
        bounds = known.size.after_refusal(size)
    else:  # a limit that the provider names is better than bounds
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
    """Learn bounds: the limit is below a refused size and not below an accepted one."""
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
    """Record that a window set by the user is wrong, because a request within it was refused."""
    user_window = prepared.window.context if prepared.window.source == "user" else None
    known = learned_limits(engine.threads, prepared.call)
    if user_window is not None and not error.ceiling and known.refuted != user_window:
        keep_limits(engine.threads, prepared.call, replace(known, refuted=user_window))


def _given_up(
    engine: EngineContext,
    journal: Journal,
    prepared: Prepared,
    error: ContextOverflow,
    impossible: BudgetImpossible | None = None,
) -> NotRecovered:
    spoken = (user_text(message) for message in reversed(prepared.request.messages))
    words = WORDS if prepared.attempt else NOTHING_SHORTER
    text, limited = in_language(words, language_of([text for text in spoken if text][:12]))
    limit = error.limit if error.limit is not None and not error.in_bytes else prepared.budget.window
    message = text.format(limit=limited.format(limit=limit))
    parts = () if impossible is None else _true_parts(engine, prepared, impossible)
    if parts:
        message = f"{message} ({', '.join(f'{name} {size:,}' for name, size in parts)})"
    _note_failure(journal, prepared, str(error))
    return NotRecovered(message, limit=limit, requested=error.requested or prepared.tokens, parts=parts)


def _true_parts(engine: EngineContext, prepared: Prepared, impossible: BudgetImpossible) -> tuple[tuple[str, int], ...]:
    """Return the parts that must stay, in the provider's tokens if known, because its limit is in them too."""
    factor = calibration_of(engine.threads, prepared.call, counter_for(prepared.call.model)).factor
    return tuple((name, size if name == SHORTEST_ANSWER else round(size * factor)) for name, size in impossible.parts)


def _note_failure(journal: Journal, prepared: Prepared, reason: str) -> None:
    for kind, parent in ((EventKind.OVERFLOW_FAILED, prepared.overflow), (EventKind.TURN_FAILED, prepared.turn)):
        journal.note(kind, parent=parent, model=prepared.call.model, reason=reason)


@dataclass(frozen=True, slots=True)
class Remedy:
    """A remedy for one kind of refusal, tried once: another form of the messages, or another request."""

    name: str
    answers: type[ProviderError]
    view: Callable[[History, str], History] | None = None
    change: Callable[[Prepared, ProviderError], Prepared | None] | None = None

    def apply(self, prepared: Prepared, error: ProviderError) -> Prepared | None:
        """Return the request to try; None if it would be the same."""
        if self.view is not None:
            return _with_messages(prepared, self.view(prepared.request.messages, prepared.call.fmt))
        return None if self.change is None else self.change(prepared, error)


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


def _without_parameter(prepared: Prepared, error: ProviderError) -> Prepared | None:
    """The request without the refused parameter; None if this request did not set it."""
    name, request = error.parameter if isinstance(error, ParameterRefused) else "", prepared.request
    if name == "temperature" and request.temperature is not None:
        return replace(prepared, request=replace(request, temperature=None))
    if name != "top_p" or not request.extra:
        return None
    body = json.loads(request.extra)
    less = format_named(prepared.call.fmt).api.drawn_from_all(body)
    extra = json.dumps(less) if less else ""
    return None if less == body else replace(prepared, request=replace(request, extra=extra))


def _with_messages(prepared: Prepared, messages: History) -> Prepared | None:
    if messages == prepared.request.messages:
        return None
    counter, call = counter_for(prepared.call.model), prepared.call
    counted = max(0, counter.messages(messages) - counter.messages((*call.standing, *call.tail)))
    caching = prepared.request.caching
    if caching is not None:  # this form is sent only once, so no part of it is worth caching
        caching = replace(caching, stable=0, lasting=0)
    request = replace(prepared.request, messages=messages, caching=caching)
    return replace(prepared, request=request, counted=counted)


REMEDIES = (
    Remedy("words", MalformedHistory, _as_words),
    Remedy("no pictures", MediaRefused, _without_pictures),
    Remedy("shorter reply", ReplyLimitExceeded, change=_with_shorter_reply),
    Remedy("no temperature", ParameterRefused, change=_without_parameter),
    Remedy("no other parameter", ParameterRefused, change=_without_parameter),
)

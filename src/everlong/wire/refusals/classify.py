"""Classify why a provider refused. Only this module interprets providers' wordings.

    classify({"error": {"message": "prompt is too long: 213462 tokens > 200000 maximum"}}, status=400)
    -> Refusal(kind=OVERFLOW, limit=200000, requested=213462, provider="anthropic", …)

The most certain sign counts: a code that names the reason, then figures, then words, then the status alone. Pure; other
modules decide what to do.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, assert_never

from everlong.core import Json
from everlong.errors import (
    ContextOverflow,
    MalformedHistory,
    MediaRefused,
    ParameterRefused,
    ProviderError,
    RateLimited,
    ReplyLimitExceeded,
)
from everlong.wire.refusals.error_text import HEAD, ErrorText, read_error
from everlong.wire.refusals.overflow import NO_FIGURES, Figures, Overflow, believable, compiled, figures_of, overflow_in
from everlong.wire.refusals.reasons import Reason, is_web_page, reason_of, seconds_to_wait
from everlong.wire.refusals.shape_signs import SHAPE_SIGNS
from everlong.wire.refusals.signs import PARAMETER_SIGNS, REPLY_SIGNS, SIZE_SIGNS, VETO_SIGNS, Kind, RefusalSign

__all__ = ["Kind", "Refusal", "as_error", "classify"]

SERVER_ERRORS = 500
LONGEST_MESSAGE = 300  # characters; it is shown to people

#: Codes with only one meaning.
CODES: dict[str, Kind] = {
    "1261": Kind.OVERFLOW,  # GLM: prompt too long
    "context_length_exceeded": Kind.OVERFLOW,
    "context_limit_exceeded": Kind.OVERFLOW,
    "context_overflow": Kind.OVERFLOW,
    "context_window_exceeded": Kind.OVERFLOW,
    "exceed_context_size_error": Kind.OVERFLOW,
    "invalid_encrypted_content": Kind.MALFORMED_HISTORY,
    "invalid_request_message_order": Kind.MALFORMED_HISTORY,
    "model_context_window_exceeded": Kind.OVERFLOW,
    "model_max_prompt_tokens_exceeded": Kind.OVERFLOW,
    "prompt_too_long": Kind.OVERFLOW,
    "tokens_limit_reached": Kind.OVERFLOW,
}

#: Statuses that are enough if nothing else was understood.
STATUSES: dict[int, Kind] = {413: Kind.TOO_LARGE, 429: Kind.RATE_LIMIT, 529: Kind.RATE_LIMIT}

# Both figures must be tokens and in one clause: a limit on requests says nothing about tokens.
CEILING = (
    r"(?:tokens per (?:min|minute|hour|day)|\bTP[MD]\b)[^.\n]{0,30}?"
    r"limit:? <limit>(?:, used:? \d+)?, requested:? <requested>"
)
NO_BODY = r"\b400(?: status code)? \(no body\)"  # how Cerebras and Mistral refuse a prompt that is too long


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a provider refused. Sizes are tokens, or bytes if the body is too large; None if the error has none."""

    kind: Kind
    #: One line of the provider's own text.
    message: str
    #: The provider whose wording matched; "" if a code or the status decided.
    provider: str = ""
    status: int | None = None
    limit: int | None = None
    requested: int | None = None
    #: The part of `requested` that was reserved for the answer.
    reply: int | None = None
    #: The parameter that the model does not accept.
    parameter: str = ""
    #: Why no other request would be accepted either; None if that is unknown, or if another request would be.
    reason: Reason | None = None
    #: The seconds to wait, as requested by the provider.
    after: float | None = None

    @property
    def smaller_may_pass(self) -> bool:
        """Whether a smaller request may be accepted."""
        return self.kind in (Kind.OVERFLOW, Kind.TOO_LARGE, Kind.CEILING)


@dataclass(frozen=True, slots=True)
class _Said:
    """The input of the rules."""

    error: ErrorText
    text: str
    status: int | None
    overflow: Overflow | None
    #: The original error, if it was a text.
    raw: str = ""


_Rule: TypeAlias = Callable[[_Said], Refusal | None]


def classify(error: Json, *, status: int | None = None, code: str = "") -> Refusal:
    """Return why a provider refused, from its error text or decoded body, and the HTTP status and code if known."""
    parsed = read_error(error)
    if code:
        parsed = replace(parsed, codes=parsed.codes | {code.lower()})
    raw = error[:HEAD] if isinstance(error, str) else ""
    said = _Said(parsed, parsed.text, parsed.status if status is None else status, overflow_in(parsed.text), raw)
    found = next((refusal for refusal in (rule(said) for rule in _RULES) if refusal), None)
    return found or _refusal(said, Kind.OTHER)


def as_error(refusal: Refusal) -> ProviderError:
    """Return the exception to raise for a classified refusal."""
    message, provider, status = refusal.message, refusal.provider, refusal.status
    reason = "" if refusal.reason is None else refusal.reason.value
    match refusal.kind:
        case Kind.OVERFLOW | Kind.TOO_LARGE | Kind.CEILING:
            return ContextOverflow(
                message,
                provider=provider,
                status=status,
                limit=refusal.limit,
                requested=refusal.requested,
                ceiling=refusal.kind is Kind.CEILING,
                in_bytes=refusal.kind is Kind.TOO_LARGE,
            )
        case Kind.REPLY_LIMIT:
            return ReplyLimitExceeded(message, provider=provider, status=status, limit=refusal.limit)
        case Kind.MALFORMED_HISTORY:
            return MalformedHistory(message, provider=provider, status=status)
        case Kind.PARAMETER:
            return ParameterRefused(message, provider=provider, status=status, parameter=refusal.parameter)
        case Kind.MEDIA:
            return MediaRefused(message, provider=provider, status=status)
        case Kind.RATE_LIMIT:
            return RateLimited(message, provider=provider, status=status, reason=reason, after=refusal.after)
        case Kind.OTHER:
            return ProviderError(message, provider=provider, status=status, reason=reason, after=refusal.after)
        case _:
            assert_never(refusal.kind)


# --- the rules, in order -----------------------------------------------------------------------


def _by_code(said: _Said) -> Refusal | None:
    kind = next((CODES[code] for code in sorted(said.error.codes) if code in CODES), None)
    return None if kind is None else _overflow(said) if kind is Kind.OVERFLOW else _refusal(said, kind)


def _by_ceiling(said: _Said) -> Refusal | None:
    for match in compiled(CEILING).finditer(said.text):
        figures = figures_of(match)
        if figures.limit is not None and figures.requested is not None and figures.requested > figures.limit:
            return _refusal(said, Kind.CEILING, at=match.start(), figures=figures)
    return None


def _by_figures(said: _Said) -> Refusal | None:
    return _overflow(said) if said.overflow and said.overflow.sure else None


def _by_shape(said: _Said) -> Refusal | None:
    return _by_signs(said, SHAPE_SIGNS)


def _by_reply(said: _Said) -> Refusal | None:
    return _by_signs(said, REPLY_SIGNS)


def _by_parameter(said: _Said) -> Refusal | None:
    return _by_signs(said, PARAMETER_SIGNS)


def _by_veto(said: _Said) -> Refusal | None:
    return _by_signs(said, VETO_SIGNS)


def _by_words(said: _Said) -> Refusal | None:
    return _overflow(said) if said.overflow else None


def _by_size(said: _Said) -> Refusal | None:
    return _by_signs(said, SIZE_SIGNS)


def _by_status(said: _Said) -> Refusal | None:
    silent = not said.error.lines and not said.error.codes
    if compiled(NO_BODY).search(said.text) or (silent and said.status == 400):
        return _refusal(said, Kind.OVERFLOW)
    kind = STATUSES.get(said.status or 0)
    return None if kind is None else _refusal(said, kind)


_RULES: tuple[_Rule, ...] = (
    _by_code,
    _by_ceiling,
    _by_figures,
    _by_shape,
    _by_reply,
    _by_parameter,
    _by_veto,
    _by_words,
    _by_size,
    _by_status,
)


def _by_signs(said: _Said, signs: Sequence[RefusalSign]) -> Refusal | None:
    for sign in signs:
        match = compiled(sign.pattern).search(said.text)
        if match:
            found = _refusal(said, sign.kind, provider=sign.provider, at=match.start(), figures=figures_of(match))
            return replace(found, parameter=sign.parameter)
    return None


def _overflow(said: _Said) -> Refusal:
    """Return an overflow with the best figures: those in its text, or in llama.cpp's fields."""
    figures = said.overflow.figures if said.overflow else NO_FIGURES
    if figures.limit is None or figures.requested is None:
        fields = believable(said.error.figure("n_ctx"), said.error.figure("n_prompt_tokens"))
        figures = figures if fields.limit is None else fields
    provider, at = (said.overflow.sign.provider, said.overflow.at) if said.overflow else ("", 0)
    return _refusal(said, Kind.OVERFLOW, provider=provider, at=at, figures=figures)


def _refusal(said: _Said, kind: Kind, *, provider: str = "", at: int = 0, figures: Figures = NO_FIGURES) -> Refusal:
    after = seconds_to_wait(said.raw or said.text)
    return Refusal(
        kind=kind,
        message=_line_at(said, at),
        provider=provider,
        status=said.status,
        limit=figures.limit,
        requested=figures.requested,
        reply=figures.reply,
        reason=_reason(said, kind, after),
        after=after,
    )


def _reason(said: _Said, kind: Kind, after: float | None) -> Reason | None:
    """Return why the request was refused, if a smaller or repaired one would be refused too; otherwise None."""
    if kind not in (Kind.OTHER, Kind.RATE_LIMIT):
        return None
    if kind is Kind.OTHER and is_web_page(said.raw) and (said.status or 0) < SERVER_ERRORS:
        return Reason.PAGE
    found = reason_of(said.text, said.status, after)
    if kind is Kind.RATE_LIMIT:
        return found if found in (Reason.OVERLOADED, Reason.QUOTA) else Reason.RATE
    return found


def _line_at(said: _Said, at: int) -> str:
    """Return the line around a position of the text, shortened for people; never empty."""
    if not said.error.lines:
        return said.text or f"the provider refused without a reason (status {said.status or 'unknown'})"
    before = said.text.count("\n", 0, at)
    line = said.error.lines[before if before < len(said.error.lines) else 0]
    if len(line) <= LONGEST_MESSAGE:
        return line
    column = at - (said.text.rfind("\n", 0, at) + 1)
    first = max(0, min(column - LONGEST_MESSAGE // 3, len(line) - LONGEST_MESSAGE))
    return line[first : first + LONGEST_MESSAGE].strip()

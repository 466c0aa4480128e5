"""Why a provider refused, as a value: the one place that reads its words.

    classify({"error": {"message": "prompt is too long: 213462 tokens > 200000 maximum"}}, status=400)
    -> Refusal(kind=OVERFLOW, limit=200000, requested=213462, provider="anthropic", …)

What is certain goes first: a code that names the reason, then figures, then words, then the status alone.
Pure data in, a value out; what to do about it is decided elsewhere.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, assert_never

from everlong.core import Json
from everlong.errors import (
    ContextOverflow,
    MalformedHistory,
    MediaRefused,
    ProviderError,
    RateLimited,
    ReplyLimitExceeded,
)
from everlong.wire.refusals.error_text import ErrorText, read_error
from everlong.wire.refusals.overflow import NO_FIGURES, Figures, Overflow, believable, compiled, figures_of, overflow_in
from everlong.wire.refusals.shape_signs import SHAPE_SIGNS
from everlong.wire.refusals.signs import REPLY_SIGNS, SIZE_SIGNS, VETO_SIGNS, Kind, RefusalSign

__all__ = ["Kind", "Refusal", "as_error", "classify"]

LONGEST_MESSAGE = 300  # characters; a person reads it

#: Codes that leave no doubt.
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

#: Statuses that say enough where nothing else was understood.
STATUSES: dict[int, Kind] = {413: Kind.TOO_LARGE, 429: Kind.RATE_LIMIT, 529: Kind.RATE_LIMIT}

# The figures must be in tokens and in one clause: a limit of requests says nothing about tokens.
CEILING = (
    r"(?:tokens per (?:min|minute|hour|day)|\bTP[MD]\b)[^.\n]{0,30}?"
    r"limit:? <limit>(?:, used:? \d+)?, requested:? <requested>"
)
NO_BODY = r"\b400(?: status code)? \(no body\)"  # Cerebras and Mistral on a prompt that is too long


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a provider refused. Sizes are tokens, bytes where the body is too large, None where it named none."""

    kind: Kind
    #: One line in the provider's own words.
    message: str
    #: Whose wording it was; "" where a code or the status told.
    provider: str = ""
    status: int | None = None
    limit: int | None = None
    requested: int | None = None
    #: How much of `requested` was asked for the answer.
    reply: int | None = None

    @property
    def smaller_may_pass(self) -> bool:
        """A request with less in it is worth a try."""
        return self.kind in (Kind.OVERFLOW, Kind.TOO_LARGE, Kind.CEILING)


@dataclass(frozen=True, slots=True)
class _Said:
    """What the rules look at."""

    error: ErrorText
    text: str
    status: int | None
    overflow: Overflow | None


_Rule: TypeAlias = Callable[[_Said], Refusal | None]


def classify(error: Json, *, status: int | None = None, code: str = "") -> Refusal:
    """Why a provider refused, from its error as text or decoded body, with the HTTP status and code if known."""
    told = read_error(error)
    if code:
        told = replace(told, codes=told.codes | {code.lower()})
    said = _Said(told, told.text, told.status if status is None else status, overflow_in(told.text))
    found = next((refusal for refusal in (rule(said) for rule in _RULES) if refusal), None)
    return found or _refusal(said, Kind.OTHER)


def as_error(refusal: Refusal) -> ProviderError:
    """The exception to raise for it."""
    message, provider, status = refusal.message, refusal.provider, refusal.status
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
        case Kind.MEDIA:
            return MediaRefused(message, provider=provider, status=status)
        case Kind.RATE_LIMIT:
            return RateLimited(message, provider=provider, status=status)
        case Kind.OTHER:
            return ProviderError(message, provider=provider, status=status)
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
    _by_veto,
    _by_words,
    _by_size,
    _by_status,
)


def _by_signs(said: _Said, signs: Sequence[RefusalSign]) -> Refusal | None:
    for sign in signs:
        match = compiled(sign.pattern).search(said.text)
        if match:
            return _refusal(said, sign.kind, provider=sign.provider, at=match.start(), figures=figures_of(match))
    return None


def _overflow(said: _Said) -> Refusal:
    """An overflow with the best figures there are: those in its words, or llama.cpp's fields."""
    figures = said.overflow.figures if said.overflow else NO_FIGURES
    if figures.limit is None or figures.requested is None:
        fields = believable(said.error.figure("n_ctx"), said.error.figure("n_prompt_tokens"))
        figures = figures if fields.limit is None else fields
    provider, at = (said.overflow.sign.provider, said.overflow.at) if said.overflow else ("", 0)
    return _refusal(said, Kind.OVERFLOW, provider=provider, at=at, figures=figures)


def _refusal(said: _Said, kind: Kind, *, provider: str = "", at: int = 0, figures: Figures = NO_FIGURES) -> Refusal:
    return Refusal(
        kind=kind,
        message=_line_at(said, at),
        provider=provider,
        status=said.status,
        limit=figures.limit,
        requested=figures.requested,
        reply=figures.reply,
    )


def _line_at(said: _Said, at: int) -> str:
    """The sentence around a position of the text, shortened to what a person reads; never empty."""
    if not said.error.lines:
        return said.text or f"the provider refused without a word (status {said.status or 'unknown'})"
    before = said.text.count("\n", 0, at)
    line = said.error.lines[before if before < len(said.error.lines) else 0]
    if len(line) <= LONGEST_MESSAGE:
        return line
    column = at - (said.text.rfind("\n", 0, at) + 1)
    first = max(0, min(column - LONGEST_MESSAGE // 3, len(line) - LONGEST_MESSAGE))
    return line[first : first + LONGEST_MESSAGE].strip()

"""How a refusal looks: the gateway's own errors, in the words and the shape of the format that the client speaks.

Tells a client what it can act on, and nothing of the inside: an unforeseen error has one plain sentence.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from everlong.errors import (
    BudgetImpossible,
    ContextOverflow,
    EverlongError,
    InputError,
    ProviderError,
    RateLimited,
    Refused,
    StoreError,
)

__all__ = ["OVERFLOW", "refusal_body", "refusal_event", "status_of"]

#: The kind of a request that does not fit; OpenAI's own word for it.
OVERFLOW = "context_length_exceeded"
UNFORESEEN = "something went wrong inside the gateway; its log says more"

#: One encoder for all; writing JSON needs no state between two calls.
_WRITE = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Words:
    """What a status is called."""

    openai: str
    anthropic: str
    #: OpenAI's code, where the kind does not tell more.
    code: str


#: Statuses that are not here are told as 400 or 500.
STATUSES: Mapping[int, Words] = {
    400: Words("invalid_request_error", "invalid_request_error", "invalid_request"),
    401: Words("authentication_error", "authentication_error", "invalid_api_key"),
    402: Words("insufficient_quota", "billing_error", "insufficient_quota"),
    403: Words("permission_error", "permission_error", "permission_denied"),
    404: Words("not_found_error", "not_found_error", "not_found"),
    408: Words("timeout_error", "timeout_error", "request_timeout"),
    413: Words("invalid_request_error", "request_too_large", "request_too_large"),
    429: Words("rate_limit_error", "rate_limit_error", "rate_limit_exceeded"),
    500: Words("server_error", "api_error", "server_error"),
    502: Words("server_error", "api_error", "server_error"),
    503: Words("server_error", "overloaded_error", "server_is_overloaded"),
    504: Words("server_error", "timeout_error", "server_error"),
    529: Words("server_error", "overloaded_error", "server_is_overloaded"),
}

#: Kinds of ours that OpenAI has a code for.
OPENAI_CODES: Mapping[str, str] = {
    "invalid_key": "invalid_api_key",
    "missing_key": "invalid_api_key",
    "too_many_requests": "rate_limit_exceeded",
    "unknown_model": "model_not_found",
}

#: What a failed response of OpenAI's Responses API holds besides its error.
FAILED_RESPONSE: Mapping[str, Any] = {
    "id": "resp_everlong",
    "object": "response",
    "created_at": 0,
    "status": "failed",
    "incomplete_details": None,
    "instructions": None,
    "metadata": {},
    "model": "",
    "output": [],
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "usage": None,
}


def refusal_body(fmt: str, status: int, kind: str, message: str) -> bytes:
    """The body of an error response.

    Example: "anthropic", 429 -> {"type": "error", "error": {"type": "rate_limit_error", "message": …}}
    """
    return _WRITE(_anthropic(status, message) if fmt == "anthropic" else {"error": _openai(status, kind, message)})


def refusal_event(fmt: str, kind: str, message: str, status: int = 500, sequence: int = 0) -> bytes:
    """The end of a stream that has begun and cannot go on: whole server-sent events, on which clients raise.

    `sequence` is the number of the next event, where the format counts them.
    """
    match fmt:
        case "anthropic":
            return _event("error", _anthropic(status, message))
        case "openai-responses":
            return _responses_event(_openai(status, kind, message), sequence)
        case _:
            return _event("", {"error": _openai(status, kind, message)}) + b"data: [DONE]\n\n"


def status_of(error: EverlongError, fmt: str = "openai-chat") -> tuple[int, str, str]:
    """What to answer for an error: the HTTP status, the kind for programs, the message for people.

    A request that does not fit is told in the words of the format's maker, which clients look for.
    """
    match error:
        case Refused():
            return error.status, error.kind, str(error)
        case BudgetImpossible():
            return 400, OVERFLOW, f"{_overflow_words(fmt, error.limit, error.needed)} {error}"
        case ContextOverflow(ceiling=False):
            words = _overflow_words(fmt, error.limit, error.requested)
            return 400, OVERFLOW, str(error) if words in str(error) else f"{words} {error}"
        case ContextOverflow() | RateLimited():
            return _failed(error.status, 429), "too_many_requests", str(error)
        case ProviderError():
            return _failed(error.status, 502), "upstream_error", str(error)
        case InputError():
            return 400, "invalid_request", str(error)
        case StoreError():
            return 503, "storage", "the gateway's storage cannot be reached at the moment"
        case _:
            return 500, "internal_error", UNFORESEEN


def _overflow_words(fmt: str, limit: int | None, needed: int | None) -> str:
    """A request that does not fit, as the maker of the format says it, with the figures that there are."""
    known = limit is not None and needed is not None
    if fmt == "anthropic":
        return f"prompt is too long: {needed} tokens > {limit} maximum." if known else "prompt is too long."
    if limit is None:
        return "Your input exceeds the context window of this model."
    longest = f"This model's maximum context length is {limit} tokens."
    return f"{longest} However, your messages resulted in {needed} tokens." if known else longest


def _failed(status: int | None, otherwise: int) -> int:
    """The upstream's status, if it says that something failed."""
    return status if status is not None and 400 <= status <= 599 else otherwise


def _words(status: int) -> Words:
    return STATUSES.get(status) or STATUSES[500 if status >= 500 else 400]


def _anthropic(status: int, message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": _words(status).anthropic, "message": _writable(message)}}


def _openai(status: int, kind: str, message: str) -> dict[str, Any]:
    words = _words(status)
    code = OPENAI_CODES.get(kind) or (kind if kind and status < 500 else words.code)
    return {"message": _writable(message), "type": words.openai, "param": None, "code": code}


def _responses_event(error: dict[str, Any], sequence: int) -> bytes:
    """An `error`, on which OpenAI's SDK raises, then a `response.failed`, which is what Codex waits for.

    The error has its fields twice, within and beside: documented is one, sent by OpenAI the other.
    """
    beside = {name: error[name] for name in ("code", "message", "param")}
    first = {"type": "error", "sequence_number": sequence, **beside, "error": error}
    response = {**FAILED_RESPONSE, "error": {name: error[name] for name in ("code", "message")}}
    last = {"type": "response.failed", "sequence_number": sequence + 1, "response": response}
    return _event("error", first) + _event("response.failed", last)


def _event(name: str, data: dict[str, Any]) -> bytes:
    return (f"event: {name}\n".encode() if name else b"") + b"data: " + _WRITE(data) + b"\n\n"


def _writable(message: str) -> str:
    """The message without what cannot be written as UTF-8: an error may repeat half a character."""
    return message.encode(errors="replace").decode()

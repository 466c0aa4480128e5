"""Errors as OpenAI writes them, in both of its formats."""

from collections.abc import Mapping

from everlong.core import JsonObject
from everlong.wire.formats.server import error_type, writable

__all__ = ["ERROR_TYPES", "error_body", "error_object", "overflow_text"]

#: OpenAI's type and code for a spent budget, with status 429.
NO_QUOTA = "insufficient_quota"
#: The names of statuses.
ERROR_TYPES: Mapping[int, str] = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: NO_QUOTA,
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    413: "invalid_request_error",
    429: "rate_limit_error",
    500: "server_error",
    502: "server_error",
    503: "server_error",
    504: "server_error",
    529: "server_error",
}
#: The code of a status, if the kind of error has none.
STATUS_CODES: Mapping[int, str] = {
    400: "invalid_request",
    401: "invalid_api_key",
    402: NO_QUOTA,
    403: "permission_denied",
    404: "not_found",
    408: "request_timeout",
    413: "request_too_large",
    429: "rate_limit_exceeded",
    500: "server_error",
    502: "server_error",
    503: "server_is_overloaded",
    504: "server_error",
    529: "server_is_overloaded",
}
#: Our kinds of errors -> OpenAI's codes.
KIND_CODES: Mapping[str, str] = {
    "invalid_key": "invalid_api_key",
    "missing_key": "invalid_api_key",
    "too_many_requests": "rate_limit_exceeded",
    "unknown_model": "model_not_found",
}


def error_object(status: int, kind: str, message: str) -> JsonObject:
    """Return the error object for a body or an event."""
    code = KIND_CODES.get(kind) or (kind if kind and status < 500 else error_type(STATUS_CODES, status))
    named = kind if kind == NO_QUOTA else error_type(ERROR_TYPES, status)
    return {"message": writable(message), "type": named, "param": None, "code": code}


def error_body(status: int, kind: str, message: str) -> JsonObject:
    """Return the body of an error response."""
    return {"error": error_object(status, kind, message)}


def overflow_text(limit: int | None, needed: int | None) -> str:
    """Return OpenAI's message for a request that does not fit."""
    if limit is None:
        return "Your input exceeds the context window of this model."
    longest = f"This model's maximum context length is {limit} tokens."
    return f"{longest} However, your messages resulted in {needed} tokens." if needed is not None else longest

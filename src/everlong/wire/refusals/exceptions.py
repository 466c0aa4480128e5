"""Read a refusal from an exception of an SDK or a framework: its status, its body, its text.

No SDK is imported: they use the same names, and frameworks raise their own errors from those of the SDKs.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from everlong.core import Json
from everlong.errors import ProviderError
from everlong.wire.refusals.classify import Kind, Refusal, as_error, classify

__all__ = ["error_from"]

DEEPEST = 8  # exceptions in a chain
STATUSES = ("status_code", "http_status", "status", "code")
BODIES = ("body", "error", "details", "message")


def error_from(error: BaseException) -> ProviderError:
    """Return the refusal behind an exception, even if it is only the cause of another one.

    Example: openai.BadRequestError with code "context_length_exceeded" -> ContextOverflow
    """
    first: Refusal | None = None
    for raised in _chain(error):
        if isinstance(raised, ProviderError):
            return raised
        for refusal in _refusals(raised):
            if refusal.kind is not Kind.OTHER:
                return as_error(refusal)
            first = first or refusal
    return ProviderError(str(error) or type(error).__name__, status=first.status if first is not None else None)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield the exception, its causes, and the members of groups."""
    waiting, seen = [error], 0
    while waiting and seen < DEEPEST:
        raised = waiting.pop(0)
        if raised is None:
            continue
        seen += 1
        yield raised
        if isinstance(raised, BaseExceptionGroup):
            waiting += raised.exceptions
        waiting += [raised.__cause__, raised.__context__]


def _refusals(error: BaseException) -> Iterator[Refusal]:
    response = getattr(error, "response", None)
    status = _status(error, response)
    if isinstance(response, Mapping):  # botocore: the decoded response
        yield classify(_json(response.get("Error", response)), status=status)
    for name in BODIES:
        body = getattr(error, name, None)
        if isinstance(body, str | dict | list) and body:
            yield classify(_json(body), status=status)
    yield classify(str(error), status=status)


def _status(error: BaseException, response: Any) -> int | None:
    if isinstance(response, Mapping):
        metadata = response.get("ResponseMetadata")
        found = metadata.get("HTTPStatusCode") if isinstance(metadata, Mapping) else None
        return found if isinstance(found, int) else None
    for holder in (error, response):
        for name in STATUSES:
            status = getattr(holder, name, None)
            if isinstance(status, int) and 400 <= status < 600:
                return int(status)
    return None


def _json(value: Any) -> Json:
    return value if isinstance(value, str | list) else dict(value)

"""An endpoint of the API: check the caller, read the body within limits, answer errors as JSON.

Knows no route and no subject: a handler gets an `ApiRequest` and returns JSON or a response of its own.
"""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from everlong.core import Json, JsonObject
from everlong.errors import (
    BudgetImpossible,
    EverlongError,
    InputError,
    NoThread,
    Refused,
    StoreBusy,
    StoreError,
    ThreadChanged,
    ThreadExists,
)
from everlong.web.api.guard import Guard
from everlong.web.fields import LARGEST_NUMBER, invalid
from everlong.web.users.accounts import NOBODY, User

__all__ = [
    "LARGEST_TURN",
    "LONGEST_EVENT_NAME",
    "ApiRequest",
    "Endpoint",
    "Handler",
    "event_stream",
    "json_response",
    "last_event",
    "read_body",
    "too_large",
]

LARGEST_BODY = 1024 * 1024  # bytes
LARGEST_TURN = 40 * 1024 * 1024  # bytes, with pictures
LONGEST_EVENT_NAME = 80  # characters
NO_STORE = {"cache-control": "no-store"}
EVENT_STREAM = {"content-type": "text/event-stream", "x-accel-buffering": "no", **NO_STORE}
#: Status and kind that the page gets for an error; the first that fits counts.
ERRORS: tuple[tuple[type[EverlongError], int, str], ...] = (
    (NoThread, 404, "no_thread"),
    (ThreadExists, 409, "exists"),
    (ThreadChanged, 409, "changed"),
    (StoreBusy, 503, "busy"),
    (BudgetImpossible, 422, "no_room"),
    (InputError, 400, "input"),
    (StoreError, 400, "store"),
    (EverlongError, 500, "failed"),
)


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """A request: its path, its query and its JSON body."""

    http: Request
    body: JsonObject
    #: The user who sent it.
    user: User = NOBODY

    @property
    def thread(self) -> str:
        """The thread in the path."""
        return str(self.http.path_params["thread"])

    def path_name(self, name: str) -> str:
        """Return another name in the path."""
        return str(self.http.path_params[name])

    @property
    def order(self) -> int:
        """The order of a row in the path."""
        return int(self.http.path_params["order"])

    def query(self, name: str) -> str:
        """Return a field of the query, "" if it is missing."""
        return self.http.query_params.get(name, "")

    def count(self, name: str, default: int | None, most: int = LARGEST_NUMBER) -> int | None:
        """Return a number of the query, at least 0, cut to `most`. Raises Refused if it is not a number."""
        text = self.query(name)
        if not text:
            return default
        if not text.isdecimal() or not text.isascii() or len(text) > 10:
            raise invalid(f"{name} must be a whole number of at least 0")
        return min(int(text), most)


#: Answers a request with a JSON value, or with a response of its own.
Handler: TypeAlias = "Callable[[ApiRequest], Awaitable[Json | Response]]"
#: Returns the handler for the requests of a user.
Choose: TypeAlias = Callable[[User], Awaitable[Handler]]


class Endpoint:
    """One endpoint as an ASGI application; `choose` returns the handler for a user. Only logging in needs no login.

    With `upload` the body is a file, which the handler reads itself, within limits of its own.
    """

    def __init__(
        self,
        guard: Guard,
        choose: Choose,
        *,
        status: int = 200,
        largest: int = LARGEST_BODY,
        login_needed: bool = True,
        upload: bool = False,
    ) -> None:
        self._guard = guard
        self._choose = choose
        self._status = status
        self._largest = largest
        self._login_needed = login_needed
        self._upload = upload

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        request = Request(scope, receive)
        try:
            response = await self._response(request)
        except ClientDisconnect:
            return
        except EverlongError as error:
            response = _error_response(error)
        await response(scope, receive, send)

    async def _response(self, request: Request) -> Response:
        user = await self._guard.check(request, login_needed=self._login_needed)
        body: JsonObject = {}
        if request.method not in ("GET", "HEAD") and not self._upload:
            body = _json_object(await read_body(request, self._largest))
        handler = await self._choose(user)
        answer = await handler(ApiRequest(request, body, user))
        return answer if isinstance(answer, Response) else json_response(answer, self._status)


def json_response(value: Json, status: int = 200) -> Response:
    """Return a JSON answer. Lone surrogates are sent as escapes."""
    body = json.dumps(value, ensure_ascii=False).encode("utf-8", "backslashreplace")
    return Response(body, status, {"content-type": "application/json", **NO_STORE})


def event_stream(events: AsyncIterator[str]) -> Response:
    """Return an answer that sends server-sent events until the page leaves."""
    return StreamingResponse(events, headers=EVENT_STREAM)


def last_event(request: ApiRequest) -> str:
    """Return the name of the event that the page saw last; "" if it names none."""
    return request.http.headers.get("last-event-id", "")[:LONGEST_EVENT_NAME]


async def read_body(request: Request, most: int) -> bytes:
    """Return the body of a request. Raises Refused if it is too large."""
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length) > most:
        raise too_large(most)
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > most:
            raise too_large(most)
    return bytes(body)


def too_large(most: int) -> Refused:
    """Return the refusal of a body that is too large."""
    return Refused(f"a request can have at most {most:,} bytes", status=413, kind="too_large")


def _json_object(body: bytes) -> JsonObject:
    if not body.strip():
        return {}
    try:
        value: Any = json.loads(body)
    except (ValueError, RecursionError):
        raise invalid("the body is not JSON") from None
    if not isinstance(value, dict):
        raise invalid("the body must be a JSON object")
    return value


def _error_response(error: EverlongError) -> Response:
    if isinstance(error, Refused):
        status, kind = error.status, error.kind
    else:
        status, kind = next((status, kind) for known, status, kind in ERRORS if isinstance(error, known))
    response = json_response({"error": {"kind": kind, "message": str(error)}}, status)
    if isinstance(error, Refused) and error.after is not None:
        response.headers["retry-after"] = str(error.after)
    return response

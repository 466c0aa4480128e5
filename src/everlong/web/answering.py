"""Every endpoint of the API: guarded, its body read within limits, its errors told as JSON. Decides nothing itself."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
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
from everlong.web.fields import wrong
from everlong.web.guarding import HEADERS, Guard

__all__ = ["LARGEST_TURN", "Answer", "Asked", "Endpoint", "as_json"]

LARGEST = 1024 * 1024  # bytes of a request
LARGEST_TURN = 40 * 1024 * 1024  # with pictures
NO_STORE = {"cache-control": "no-store"}
#: What each error is to a page: its status and its word; the first that fits.
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
class Asked:
    """One request: its path's names and its query, and what its body says."""

    request: Request
    said: JsonObject

    @property
    def thread(self) -> str:
        """The thread that the path names."""
        return str(self.request.path_params["thread"])

    def named(self, name: str) -> str:
        """Another name of the path."""
        return str(self.request.path_params[name])

    def order(self) -> int:
        """The order that the path names."""
        return int(self.request.path_params["order"])

    def query(self, name: str) -> str:
        """A field of the query, "" if it is not there."""
        return self.request.query_params.get(name, "")

    def count(self, name: str, usual: int | None, most: int = 1 << 31) -> int | None:
        """A number of the query from 0 on, at most `most`. Raises Refused."""
        text = self.query(name)
        if not text:
            return usual
        if not text.isdecimal() or not text.isascii() or len(text) > 10:
            raise wrong(f"{name} is a whole number from 0 on")
        return min(int(text), most)


#: Answers a request with a value for JSON, or with a response of its own.
Answer: TypeAlias = "Callable[[Asked], Awaitable[Json | Response]]"


class Endpoint:
    """An endpoint as ASGI. `login_needed` False is for logging in itself."""

    def __init__(
        self, guard: Guard, answer: Answer, *, status: int = 200, largest: int = LARGEST, login_needed: bool = True
    ) -> None:
        self._guard = guard
        self._answer = answer
        self._status = status
        self._largest = largest
        self._login_needed = login_needed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        request = Request(scope, receive)
        try:
            response = await self._response(request)
        except ClientDisconnect:
            return
        except EverlongError as error:
            response = _refusal(error)
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        await response(scope, receive, send)

    async def _response(self, request: Request) -> Response:
        self._guard.check(request, login_needed=self._login_needed)
        said: JsonObject = {}
        if request.method not in ("GET", "HEAD"):
            said = _object(await _body(request, self._largest))
        answer = await self._answer(Asked(request, said))
        return answer if isinstance(answer, Response) else as_json(answer, self._status)


def as_json(value: Json, status: int = 200) -> Response:
    """A value as an answer; halves of characters survive as escapes."""
    body = json.dumps(value, ensure_ascii=False).encode("utf-8", "backslashreplace")
    return Response(body, status, {"content-type": "application/json", **NO_STORE})


async def _body(request: Request, most: int) -> bytes:
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length) > most:
        raise _too_large(most)
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > most:
            raise _too_large(most)
    return bytes(body)


def _too_large(most: int) -> Refused:
    return Refused(f"a request has at most {most:,} bytes", status=413, kind="too_large")


def _object(body: bytes) -> JsonObject:
    if not body.strip():
        return {}
    try:
        said: Any = json.loads(body)
    except (ValueError, RecursionError):
        raise wrong("the body is no JSON") from None
    if not isinstance(said, dict):
        raise wrong("the body is a JSON object")
    return said


def _refusal(error: EverlongError) -> Response:
    if isinstance(error, Refused):
        status, kind = error.status, error.kind
    else:
        status, kind = next((status, kind) for known, status, kind in ERRORS if isinstance(error, known))
    response = as_json({"error": {"kind": kind, "message": str(error)}}, status)
    if isinstance(error, Refused) and error.after is not None:
        response.headers["retry-after"] = str(error.after)
    return response

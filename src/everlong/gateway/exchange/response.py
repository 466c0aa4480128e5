"""The response to one client: one head, then bytes, comments while it waits, errors in its format.

Neither `with_comments` nor `until_disconnect` leaves a task behind: when the waiting ends, the work has ended too.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from enum import Enum
from typing import Any, Final, Literal, TypeAlias, TypeVar

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
from everlong.wire import SSE, Errors, Framing, json_bytes, sse_bytes

__all__ = [
    "GONE",
    "UNBUFFERED",
    "Gone",
    "Headers",
    "ResponseWriter",
    "Send",
    "error_events",
    "status_of",
    "until_disconnect",
    "with_comments",
]

T = TypeVar("T")
Headers: TypeAlias = Sequence[tuple[bytes, bytes]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Receive: TypeAlias = Callable[[], Awaitable[Mapping[str, Any]]]
#: Waits for a future, but not longer than this many seconds.
Wait: TypeAlias = Callable[["asyncio.Future[Any]", float], Awaitable[object]]

#: Headers of a stream: no proxy between us and the client may buffer it.
UNBUFFERED: Headers = ((b"cache-control", b"no-cache"), (b"x-accel-buffering", b"no"))
#: The kind of error for a request that does not fit; OpenAI's own name for it.
OVERFLOW = "context_length_exceeded"
UNFORESEEN = "internal error in the gateway; see its log"


class ResponseWriter:
    """Writes one response. `status` is the status of its head, 0 before it was sent; `framing` is that of streams."""

    def __init__(self, send: Send, errors: Errors, own: Callable[[], Headers] = tuple, framing: Framing = SSE) -> None:
        self._send = send
        self._errors = errors
        self._own = own  # our headers, if a comment is sent first
        self.framing = framing
        self._encoder = framing.encoder()
        self._framed = False  # whether events were written
        self._comments = 0  # bytes of comments
        self._tail = b""  # the last bytes that were sent
        self.status = 0
        self.sent = 0
        self.over = False

    @property
    def _bodiless(self) -> bool:
        """Whether the response has no body, by its HTTP status."""
        return self.status in (204, 304)

    @property
    def begun(self) -> bool:
        """Whether a head was sent; from then on, an error is an event."""
        return self.status != 0

    async def begin(self, status: int, headers: Headers) -> None:
        """Send the head, once. If a comment was sent before, its head counts."""
        if not self.begun:
            self.status = status
            await self._send({"type": "http.response.start", "status": status, "headers": list(headers)})

    async def write_events(self, events: bytes) -> None:
        """Send events, or parts of one, in the client's framing."""
        self._framed = True
        await self.write(self._encoder.feed(events))

    async def write(self, data: bytes) -> None:
        """Send bytes at once, unchanged."""
        if data and not self._bodiless:
            self.sent += len(data)
            self._tail = data[-4:] if len(data) >= 4 else (self._tail + data)[-4:]
            await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def end(self) -> None:
        """End the response. A second call does nothing."""
        if self.over:
            return
        last = self._encoder.close() if self._framed and not self._bodiless else b""
        self.over = True
        self.sent += len(last)
        await self._send({"type": "http.response.body", "body": last, "more_body": False})

    async def send_whole(self, status: int, headers: Headers, body: bytes) -> None:
        """Send a response whose body is complete."""
        if not self.begun:
            self.status = status
            length = [] if self._bodiless else [(b"content-length", b"%d" % len(body))]
            await self._send({"type": "http.response.start", "status": status, "headers": [*headers, *length]})
        body = b"" if self._bodiless else body
        self.sent += len(body)
        self.over = True
        await self._send({"type": "http.response.body", "body": body, "more_body": False})

    async def send_comment(self) -> None:
        """Send a comment, which every reader of the stream skips, unless the answer itself has begun."""
        if self.sent > self._comments or (self.begun and not self._comments):
            return
        await self.begin(200, [(b"content-type", self.framing.content_type), *UNBUFFERED, *self._own()])
        self._comments += len(self.framing.comment)
        await self.write(self.framing.comment)

    async def send_error(self, status: int, kind: str, message: str, headers: Headers = ()) -> None:
        """Send one of our errors in the client's own format: as a response, or as events if the answer has begun."""
        if self.over:
            return
        if self.begun:
            # If the answer broke off inside an event, the error must not become part of it.
            self._encoder.cut()
            await self.write(self.framing.gap_after(self._tail) if self.sent > self._comments else b"")
            await self.write_events(error_events(self._errors, status, kind, message))
            await self.end()
            return
        body = self.framing.error_body(json_bytes(self._errors.body(status, kind, message)))
        await self.send_whole(status, [(b"content-type", b"application/json"), *headers], body)


# --- errors ----------------------------------------------------------------------------------------


def error_events(errors: Errors, status: int, kind: str, message: str, sequence: int = 0) -> bytes:
    """Return the end of a stream that has begun and cannot continue: complete events that make clients raise.

    `sequence` is the number of the next event, if the format numbers them.
    """
    return b"".join(sse_bytes(name, data) for name, data in errors.events(status, kind, message, sequence))


def status_of(error: EverlongError, errors: Errors) -> tuple[int, str, str]:
    """Return the answer to an error: the HTTP status, the kind for programs, the message for people.

    A client learns what it can act on, and nothing about internals. A request that does not fit is reported in the
    words of the format's maker, which clients look for.
    """
    match error:
        case Refused():
            return error.status, error.kind, str(error)
        case BudgetImpossible():
            return 400, OVERFLOW, f"{errors.overflow(error.limit, error.needed)} {error}"
        case ContextOverflow(ceiling=False):
            words = errors.overflow(error.limit, error.requested)
            return 400, OVERFLOW, str(error) if words in str(error) else f"{words} {error}"
        case ContextOverflow() | RateLimited():
            return _failed(error.status, 429), "too_many_requests", str(error)
        case ProviderError():
            return _failed(error.status, 502), "upstream_error", str(error)
        case InputError():
            return 400, "invalid_request", str(error)
        case StoreError():
            return 503, "storage", "the gateway's store cannot be reached right now"
        case _:
            return 500, "internal_error", UNFORESEEN


def _failed(status: int | None, otherwise: int) -> int:
    """The upstream's status if it is an error status, else another one."""
    return status if status is not None and 400 <= status <= 599 else otherwise


# --- a client that waits ---------------------------------------------------------------------------


class Gone(Enum):
    """The client disconnected before the work was done."""

    GONE = "gone"


GONE: Final = Gone.GONE


async def _at_most(work: "asyncio.Future[Any]", seconds: float) -> None:
    await asyncio.wait((work,), timeout=seconds)


async def with_comments(
    work: Awaitable[T],
    send_comment: Callable[[], Awaitable[None]],
    *,
    after: float,
    every: float,
    wait: Wait = _at_most,
) -> T:
    """Return the result of the work. Send a comment after `after` seconds, then every `every` seconds until it is done.

    A comment that cannot be sent ends the work.
    """
    task = asyncio.ensure_future(work)
    try:
        await wait(task, after)
        while not task.done():
            await send_comment()
            await wait(task, every)
        return task.result()
    finally:
        await _ended(task)


async def until_disconnect(receive: Receive, work: Awaitable[T]) -> T | Literal[Gone.GONE]:
    """Return the result of the work; if the client disconnects first, cancel the work and return GONE.

    `receive` is ASGI's. The request's body may have been read before or not.
    """
    working = asyncio.ensure_future(work)
    watching = asyncio.ensure_future(_disconnected(receive))
    try:
        await asyncio.wait((working, watching), return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        watching.result()
        return GONE
    finally:
        await _ended(working, watching)


async def _disconnected(receive: Receive) -> None:
    """Return when the client is gone."""
    whole = False
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        if whole:
            # A server that repeats the end of a body would do so forever, so nothing more is read.
            await asyncio.get_running_loop().create_future()
        whole = not message.get("more_body", False)


async def _ended(*tasks: "asyncio.Future[Any]") -> None:
    """Cancel what is still running and wait for its end, even if the waiting itself is cancelled."""
    running = [task for task in tasks if not task.done()]
    for task in running:
        task.cancel()
    interrupted = False
    while not all(task.done() for task in running):
        try:
            await asyncio.wait(running)
        except asyncio.CancelledError:
            interrupted = True
    for task in tasks:
        if not task.cancelled():
            task.exception()  # read here, so that asyncio does not warn about it later
    if interrupted:
        raise asyncio.CancelledError

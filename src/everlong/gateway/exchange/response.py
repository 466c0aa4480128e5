"""What goes back to the client, in order: a head once, then bytes. Owns the sign of life while nothing is there yet."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from enum import Enum
from typing import Any, Final, Literal, TypeAlias, TypeVar

from everlong.gateway.exchange.errors import refusal_body, refusal_event

__all__ = ["GONE", "Gone", "Headers", "ResponseWriter", "Send", "until_disconnect", "with_comments"]

Headers: TypeAlias = Sequence[tuple[bytes, bytes]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]

COMMENT = b": everlong is making room\n\n"
EVENT_ENDS = (b"\n\n", b"\r\n\r\n")
STREAM: Headers = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
)


class ResponseWriter:
    """The way back to one client. `begun` is whether a head was sent, `status` which one."""

    def __init__(self, send: Send, fmt: str, own: Callable[[], Headers] = tuple) -> None:
        self._send = send
        self._fmt = fmt
        self._own = own  # what is told of the request, where the head is a sign of life
        self._signs = 0  # bytes of signs of life
        self._tail = b""  # the last bytes that were sent
        self.status = 0
        self.sent = 0
        self.over = False

    @property
    def begun(self) -> bool:
        """Whether a head was sent: from then on an error is an event."""
        return self.status != 0

    async def begin(self, status: int, headers: Headers) -> None:
        """The head, once; where a sign of life was sent before, that was it."""
        if not self.begun:
            self.status = status
            await self._send({"type": "http.response.start", "status": status, "headers": list(headers)})

    async def chunk(self, data: bytes) -> None:
        """Bytes, at once."""
        if data:
            self.sent += len(data)
            self._tail = data[-4:] if len(data) >= 4 else (self._tail + data)[-4:]
            await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def end(self) -> None:
        """There is no more; a second time does nothing."""
        if not self.over:
            self.over = True
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def whole(self, status: int, headers: Headers, body: bytes) -> None:
        """An answer that is all there."""
        if not self.begun:
            self.status = status
            length = (b"content-length", b"%d" % len(body))
            await self._send({"type": "http.response.start", "status": status, "headers": [*headers, length]})
        self.sent += len(body)
        self.over = True
        await self._send({"type": "http.response.body", "body": body, "more_body": False})

    async def comment(self) -> None:
        """A sign of life that every reader of events skips. Once an answer has begun it is one itself."""
        if self.sent > self._signs or (self.begun and not self._signs):
            return
        await self.begin(200, [*STREAM, *self._own()])
        self._signs += len(COMMENT)
        await self.chunk(COMMENT)

    async def refuse(self, status: int, kind: str, message: str, headers: Headers = ()) -> None:
        """An error of ours in the client's own format: an answer, or an event where the answer has begun."""
        if self.over:
            return
        if self.begun:
            # What broke off in the middle of an event must not swallow the error.
            apart = b"" if not self._tail or self._tail.endswith(EVENT_ENDS) else b"\n\n"
            await self.chunk(apart + refusal_event(self._fmt, kind, message, status=status))
            await self.end()
            return
        body = refusal_body(self._fmt, status, kind, message)
        await self.whole(status, [(b"content-type", b"application/json"), *headers], body)


T = TypeVar("T")
Receive: TypeAlias = Callable[[], Awaitable[Mapping[str, Any]]]
#: Waits for a future, but not longer than so many seconds.
Wait: TypeAlias = Callable[["asyncio.Future[Any]", float], Awaitable[object]]


class Gone(Enum):
    """The client went away before the work was done."""

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
    """What the work gives. Past `after` seconds a comment is sent, and then `every` so many until it is done.

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
    """What the work gives, or GONE where the client disconnects first: then the work is cancelled, and over.

    `receive` is ASGI's. Whether the request's body was read before makes no difference.
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
    """Returns when the client is gone."""
    whole = False
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        if whole:
            # A server that hands out the end of a body again and again would do so for ever: it tells nothing.
            await asyncio.get_running_loop().create_future()
        whole = not message.get("more_body", False)


async def _ended(*tasks: "asyncio.Future[Any]") -> None:
    """Cancel what still runs and wait for its end, even where the waiting is cancelled meanwhile."""
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
            task.exception()  # looked at, so that nobody is told of it later
    if interrupted:
        raise asyncio.CancelledError

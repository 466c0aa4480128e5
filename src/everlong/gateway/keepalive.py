"""Work that a client waits for: signs of life while it takes long, and its end when the client goes away.

Neither function leaves a task behind: whatever ends the waiting has also ended the work.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from enum import Enum
from typing import Any, Final, Literal, TypeAlias, TypeVar

__all__ = ["GONE", "Gone", "kept_alive", "until_gone"]

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


async def kept_alive(
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


async def until_gone(receive: Receive, work: Awaitable[T]) -> T | Literal[Gone.GONE]:
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

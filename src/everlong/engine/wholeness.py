"""Work that is never left half-done: who is cancelled while it runs waits until it is over."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

__all__ = ["whole"]

T = TypeVar("T")


async def whole(work: Coroutine[Any, Any, T]) -> T:
    """What comes of it. Who is cancelled meanwhile waits until it is done: the store is never left half-written."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is None:
        return task.result()
    if not task.cancelled():
        task.exception()  # looked at, so that nobody hears of it twice
    raise cancelled

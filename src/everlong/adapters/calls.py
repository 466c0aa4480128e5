"""Model calls of a framework: which conversation they belong to, what is sent, and what follows a refusal.

For adapters that wrap a framework's model, streaming or not, with or without an event loop. An error that cannot be
recovered is raised unchanged.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from hashlib import sha256
from types import TracebackType
from typing import Any, TypeVar

from everlong.adapters.keeper import Keeper
from everlong.core import Role
from everlong.engine import Prepared
from everlong.wire import Usage, library_of

__all__ = ["asend", "astream", "send", "stream", "thread_of"]

T = TypeVar("T")


def thread_of(name: str, items: Sequence[Any]) -> str:
    """Return the thread of a conversation without an id, which is recognised by its system text and its first message.

    An agent's other conversations with the same model, such as those about its plan, begin with another message.
    """
    library, beginning = library_of(items), sha256()
    for item in items:
        messages = [message for unit in library.read([item]) for message in unit.messages]
        for message in messages:
            beginning.update(f"{message.role}\n{message.text}\n".encode("utf-8", "surrogatepass"))
        if any(message.role is not Role.SYSTEM for message in messages):
            break
    return f"{name}-{beginning.hexdigest()[:12]}"


class _Attempt:
    """A request in progress. Leaving it reports the outcome to the keeper; then there may be another one to send."""

    def __init__(self, keeper: Keeper, prepared: Prepared) -> None:
        self.keeper = keeper
        self.prepared = prepared
        self.usage: Usage | None = None
        #: Whether a piece of the answer was forwarded: then another request comes too late.
        self.begun = False
        #: Whether there is no other request to send.
        self.over = False

    def __enter__(self) -> Prepared:
        return self.prepared

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> bool:
        if error is None:
            self._go_on(self.keeper.answered(self.prepared, self.usage))
            return False
        if self.begun or not isinstance(error, Exception):
            self.keeper.failed(self.prepared, type(error).__name__)
            return False
        return self._go_on(self.keeper.refused(self.prepared, error))

    async def __aenter__(self) -> Prepared:
        return self.prepared

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> bool:
        if error is None:
            self._go_on(await self.keeper.aanswered(self.prepared, self.usage))
            return False
        if self.begun or not isinstance(error, Exception):
            self.keeper.failed(self.prepared, type(error).__name__)  # a cancelled task cannot await
            return False
        return self._go_on(await self.keeper.arefused(self.prepared, error))

    def _go_on(self, another: Prepared | None) -> bool:
        """Take the next request, if there is one and it is not too late; return whether it should be sent."""
        self.over = another is None or self.begun
        if another is not None:
            self.prepared = another
        return not self.over


def send(keeper: Keeper, prepared: Prepared, model: Callable[[Prepared], T], usage: Callable[[T], Usage | None]) -> T:
    """Return the model's answer to the prepared request, or to another request after a refusal."""
    attempt = _Attempt(keeper, prepared)
    while True:
        with attempt as request:
            answer = model(request)
            attempt.usage = usage(answer)
        if attempt.over:
            return answer


async def asend(
    keeper: Keeper, prepared: Prepared, model: Callable[[Prepared], Awaitable[T]], usage: Callable[[T], Usage | None]
) -> T:
    """Do what `send` does, in an event loop."""
    attempt = _Attempt(keeper, prepared)
    while True:
        async with attempt as request:
            answer = await model(request)
            attempt.usage = usage(answer)
        if attempt.over:
            return answer


def stream(
    keeper: Keeper, prepared: Prepared, model: Callable[[Prepared], Iterator[T]], usage: Callable[[T], Usage | None]
) -> Iterator[T]:
    """Yield the pieces of the model's answer. A refusal before the first piece is recovered."""
    attempt = _Attempt(keeper, prepared)
    while not attempt.over:
        with attempt as request:
            for piece in model(request):
                attempt.begun = True
                attempt.usage = usage(piece) or attempt.usage
                yield piece


async def astream(
    keeper: Keeper,
    prepared: Prepared,
    model: Callable[[Prepared], Awaitable[AsyncIterator[T]]],
    usage: Callable[[T], Usage | None],
) -> AsyncIterator[T]:
    """Do what `stream` does, in an event loop."""
    attempt = _Attempt(keeper, prepared)
    while not attempt.over:
        async with attempt as request:
            async for piece in await model(request):
                attempt.begun = True
                attempt.usage = usage(piece) or attempt.usage
                yield piece

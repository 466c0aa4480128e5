"""One call of a model from its preparation to its outcome: every turn that starts ends in exactly one.

Shared by all who make calls, whether they read an answer piece by piece or hand its bytes on.
"""

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from everlong.core import Message, Reasoning, Text
from everlong.engine.contracts import Call, Failed, Finished, Model, Prepared, Reply, Restarted
from everlong.engine.engine import Engine
from everlong.errors import ContextOverflow, EverlongError, ProviderError

__all__ = ["Turn", "converse", "whole"]

CANCELLED = "cancelled by the caller"


@dataclass(slots=True)
class Turn:
    """A turn under way. `prepared` is what is to be sent for it, `ended` whether its outcome is written down.

    `quick` says that the store never waits for anything: what takes no time is then done where the turn is.
    """

    engine: Engine
    prepared: Prepared | None = None
    ended: bool = False
    quick: bool = False

    @property
    def request(self) -> Prepared:
        """What is to be sent."""
        assert self.prepared is not None, "a turn is prepared first"
        return self.prepared

    async def prepare(self, thread: str, call: Call) -> None:
        """Make the request for the thread as it stands."""
        self.prepared = await self.engine.prepare(thread, call)

    async def answered(self, finished: Finished) -> ContextOverflow | None:
        """The answer is there. An overflow that came as a success is given back, and the turn is not over."""
        said, usage, stop = _says_something(finished.message), finished.usage, finished.stop
        with self._at_once() as now:
            if now:
                hidden = self.engine.blocking.record_usage(self.request, usage, stop=stop, said=said)
            else:
                hidden = await self.engine.record_usage(self.request, usage, stop=stop, said=said)
        self.ended = hidden is None
        return hidden

    @contextmanager
    def _at_once(self) -> Iterator[bool]:
        """Whether the thread can be had here and now: nobody works on it, and nothing has to be waited for."""
        lock = self.engine.blocking.means.lives.lock(self.request.thread)
        if not self.quick or not lock.acquire(blocking=False):
            yield False
            return
        try:
            yield True
        finally:
            lock.release()

    async def refused(self, error: ProviderError) -> None:
        """Make another request after a refusal. Where there is none it is over; what the caller must hear is raised."""
        try:
            self.prepared = await self.engine.recover(self.request, error)
        except EverlongError:
            self.ended = True
            raise

    async def failed(self, reason: str) -> None:
        """It came to nothing."""
        self.ended = True
        await self.engine.record_failure(self.request, reason)

    def abandon(self) -> None:
        """The caller is gone; a turn without an outcome gets one."""
        if self.prepared is not None and not self.ended:
            self.ended = True
            self.engine.blocking.record_failure(self.prepared, CANCELLED)


def _says_something(message: Message) -> bool:
    """Whether there is anything in it but white space and thoughts."""
    return any(
        bool(part.text.strip()) if isinstance(part, Text) else not isinstance(part, Reasoning) for part in message.parts
    )


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


NO_END = Failed(ProviderError("the model's stream ended without an end"), begun=False)


async def converse(engine: Engine, model: Model, thread: str, call: Call) -> AsyncGenerator[Reply, None]:
    """The answer to a thread as it stands, piece by piece; the last is Finished, and kept, or Failed.

    Raises BudgetImpossible before anything is sent where nothing can fit, StoreError where the store fails. Whatever
    goes wrong later is a Failed.
    """
    turn = Turn(engine)
    try:
        await whole(turn.prepare(thread, await _addressed(call, model)))
        while not turn.ended:
            outcome: Finished | Failed = NO_END
            begun = False
            try:
                async with aclosing(model.stream(turn.request.request)) as pieces:
                    async for reply in pieces:
                        if isinstance(reply, Finished | Failed):
                            outcome = reply
                            break
                        begun = True
                        yield reply
            except EverlongError as error:  # an answer that cannot be read is the provider's failure too
                outcome = Failed(ProviderError(str(error)), begun=begun)
            last = await whole(_settled(turn, outcome, begun=begun))
            if isinstance(last, Finished):
                for told in engine.after_turn:
                    told(turn.request, model)
            if last is not None:
                yield last
    finally:
        turn.abandon()


async def _settled(turn: Turn, outcome: Finished | Failed, *, begun: bool) -> Reply | None:
    """Write down how the call ended; what the caller hears of it, if anything. Without an end another is made."""
    match outcome:
        case Finished(message):
            hidden = await turn.answered(outcome)
            if hidden is None:
                await turn.engine.append(turn.request.thread, [message])
                return outcome
            return await _recovered(turn, hidden, begun=begun)
        case Failed(error) if begun:
            await turn.failed(str(error))
            return Failed(error, begun=True)
        case Failed(error):
            return await _recovered(turn, error, begun=False)


async def _recovered(turn: Turn, error: ProviderError, *, begun: bool) -> Reply | None:
    try:
        await turn.refused(error)
    except ProviderError as final:
        return Failed(final, begun=begun)
    return Restarted(str(error)) if begun else None


async def _addressed(call: Call, model: Model) -> Call:
    """The call with what is known of the model it goes to."""
    served = call.served if call.served is not None else await model.served_window(call.model)
    provider = call.provider or model.provider
    return replace(call, fmt=model.fmt, endpoint=model.endpoint, provider=provider, served=served)

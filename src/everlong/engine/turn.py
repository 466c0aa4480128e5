"""One call of a model, from its preparation to its outcome: every turn that starts has exactly one.

`converse` is the call that user messages, background events and sub-agents share: prepare, stream, and before the
first piece of an answer recover from whatever the provider refuses. `Turn` is for callers who forward the bytes of an
answer instead.
"""

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from everlong.core import Message, Reasoning, Text, expect
from everlong.engine.contracts import Call, Failed, Finished, Model, Prepared, Reply, Restarted
from everlong.engine.engine import Engine
from everlong.errors import ContextOverflow, EverlongError, ProviderError

__all__ = ["Turn", "converse", "whole"]

CANCELLED = "cancelled by the caller"
NO_END = Failed(ProviderError("the model's stream ended without an end"), begun=False)
T = TypeVar("T")


@dataclass(slots=True)
class Turn:
    """A turn under way. `prepared` is what is to be sent for it, `ended` whether its outcome is recorded.

    `quick` says that the store never waits for anything: short work is then done in the event loop itself.
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
        """Prepare the request for the thread as it is now."""
        self.prepared = await self.engine.prepare(thread, call)

    async def answered(self, finished: Finished) -> ContextOverflow | None:
        """Record the answer. Returns an overflow that came as a success; then the turn is not over."""
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
        """Take the thread's lock if it is free; return whether it was."""
        lock = self.engine.blocking.context.states.lock(self.request.thread)
        if not self.quick or not lock.acquire(blocking=False):
            yield False
            return
        try:
            yield True
        finally:
            lock.release()

    async def refused(self, error: ProviderError) -> None:
        """Prepare another request after a refusal. If there is none, the turn ends and the error is raised."""
        try:
            self.prepared = await self.engine.recover(self.request, error)
        except EverlongError:
            self.ended = True
            raise

    async def failed(self, reason: str) -> None:
        """Record that the turn failed."""
        self.ended = True
        await self.engine.record_failure(self.request, reason)

    def abandon(self) -> None:
        """Record a cancelled turn: the caller is gone, and a turn without an outcome gets one."""
        if self.prepared is not None and not self.ended:
            self.ended = True
            self.engine.blocking.record_failure(self.prepared, CANCELLED)


def _says_something(message: Message) -> bool:
    """Whether there is anything in a message but white space and thoughts."""
    return any(
        bool(part.text.strip()) if isinstance(part, Text) else not isinstance(part, Reasoning) for part in message.parts
    )


async def converse(engine: Engine, model: Model, thread: str, call: Call) -> AsyncGenerator[Reply, None]:
    """Stream the answer to a thread as it is now; the last piece is Finished, which is stored, or Failed.

    Raises BudgetImpossible before anything is sent if nothing can fit, StoreError if the store fails. Whatever
    goes wrong later is a Failed.
    """
    expect("engine", engine, Engine, "an engine, such as Engine(open_store('chat.db'))")
    expect("call", call, Call, 'what is asked of a model, such as Call(model="gpt-4o")')
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
            last = await whole(_settle(turn, outcome, begun=begun))
            if isinstance(last, Finished):
                for listener in engine.after_turn:
                    listener(turn.request, model)
            if last is not None:
                yield last
    finally:
        turn.abandon()


async def _settle(turn: Turn, outcome: Finished | Failed, *, begun: bool) -> Reply | None:
    """Record how the call ended; return the piece for the caller, if any. Without one another request is made."""
    match outcome:
        case Finished(message):
            hidden = await turn.answered(outcome)
            if hidden is None:
                await turn.engine.append(turn.request.thread, [message])
                return outcome
            return await _recover(turn, hidden, begun=begun)
        case Failed(error) if begun:
            await turn.failed(str(error))
            return Failed(error, begun=True)
        case Failed(error):
            return await _recover(turn, error, begun=False)


async def _recover(turn: Turn, error: ProviderError, *, begun: bool) -> Reply | None:
    try:
        await turn.refused(error)
    except ProviderError as final:
        return Failed(final, begun=begun)
    return Restarted(str(error)) if begun else None


async def _addressed(call: Call, model: Model) -> Call:
    """Return the call with what is known of the model it goes to."""
    served = call.served if call.served is not None else await model.served_window(call.model)
    provider = call.provider or model.provider
    return replace(call, fmt=model.fmt, endpoint=model.endpoint, provider=provider, served=served)


async def whole(work: Coroutine[Any, Any, T]) -> T:
    """Run work to its end and return the result. A cancelled caller waits for it: nothing is left half-written."""
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
        task.exception()  # retrieved, so that it is not logged as never retrieved
    raise cancelled

"""The one call that every caller shares: user message, background event and sub-agent alike.

Prepare, stream, and before the first piece of an answer recover from whatever the provider refuses. What was said
is appended to the thread; every turn that starts ends in exactly one outcome, also when the caller goes away.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, replace

from everlong.core.messages import Message, Reasoning, Text
from everlong.engine.calls import Call, Prepared
from everlong.engine.engine import Engine
from everlong.engine.replies import Failed, Finished, Model, Reply, Restarted
from everlong.engine.whole import whole
from everlong.errors import EverlongError, ProviderError

__all__ = ["converse"]

CANCELLED = "cancelled by the caller"
NO_END = Failed(ProviderError("the model's stream ended without an end"), begun=False)


async def converse(engine: Engine, model: Model, thread: str, call: Call) -> AsyncGenerator[Reply, None]:
    """The answer to a thread as it stands, piece by piece; the last is Finished, and kept, or Failed.

    Raises BudgetImpossible before anything is sent where nothing can fit, StoreError where the store fails. Whatever
    goes wrong later is a Failed.
    """
    turn = _Turn(engine)
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
            last = await whole(turn.settle(outcome, begun=begun))
            if isinstance(last, Finished):
                for told in engine.after_turn:
                    told(turn.request, model)
            if last is not None:
                yield last
    finally:
        turn.abandon()


@dataclass(slots=True)
class _Turn:
    """A turn under way. `prepared` is what is to be sent for it, `ended` whether its outcome is written down."""

    engine: Engine
    prepared: Prepared | None = None
    ended: bool = False

    @property
    def request(self) -> Prepared:
        assert self.prepared is not None, "a turn is prepared first"
        return self.prepared

    async def prepare(self, thread: str, call: Call) -> None:
        self.prepared = await self.engine.prepare(thread, call)

    async def settle(self, outcome: Finished | Failed, *, begun: bool) -> Reply | None:
        """Write down how the call ended; what the caller hears of it, if anything. Without an end another is made."""
        match outcome:
            case Finished(message, usage, stop):
                hidden = await self.engine.record_usage(self.request, usage, stop=stop, said=_says_something(message))
                if hidden is None:
                    self.ended = True
                    await self.engine.append(self.request.thread, [message])
                    return outcome
                return await self._recover(hidden, begun=begun)
            case Failed(error) if begun:
                self.ended = True
                await self.engine.record_failure(self.request, str(error))
                return Failed(error, begun=True)
            case Failed(error):
                return await self._recover(error, begun=False)

    async def _recover(self, error: ProviderError, *, begun: bool) -> Reply | None:
        try:
            self.prepared = await self.engine.recover(self.request, error)
        except ProviderError as final:
            self.ended = True
            return Failed(final, begun=begun)
        except EverlongError:
            self.ended = True
            raise
        return Restarted(str(error)) if begun else None

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


async def _addressed(call: Call, model: Model) -> Call:
    """The call with what is known of the model it goes to."""
    served = call.served if call.served is not None else await model.served_window(call.model)
    provider = call.provider or model.provider
    return replace(call, fmt=model.fmt, endpoint=model.endpoint, provider=provider, served=served)

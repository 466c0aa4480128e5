"""The one call that every caller shares: user message, background event and sub-agent alike.

Prepare, stream, and before the first piece of an answer recover from whatever the provider refuses. What was said
is appended to the thread; every turn that starts ends in exactly one outcome, also when the caller goes away.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace

from everlong.engine.calls import Call
from everlong.engine.engine import Engine
from everlong.engine.replies import Failed, Finished, Model, Reply, Restarted
from everlong.engine.turns import Turn
from everlong.engine.wholeness import whole
from everlong.errors import EverlongError, ProviderError

__all__ = ["converse"]

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

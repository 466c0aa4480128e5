"""The one call that every caller shares: user message, background event and sub-agent alike.

Prepare, stream, and before the first piece of an answer recover from whatever the provider refuses. What was said
is appended to the thread; every turn that starts ends in exactly one outcome, also when the caller goes away.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace

from everlong.engine.calls import Call, Prepared
from everlong.engine.engine import Engine
from everlong.engine.replies import Failed, Finished, Model, Reply, Restarted
from everlong.errors import ProviderError

__all__ = ["converse"]

CANCELLED = "cancelled by the caller"
NO_END = Failed(ProviderError("the model's stream ended without an end"), begun=False)


async def converse(engine: Engine, model: Model, thread: str, call: Call) -> AsyncGenerator[Reply, None]:
    """The answer to a thread as it stands, piece by piece; the last is Finished, and kept, or Failed.

    Raises BudgetImpossible before anything is sent where nothing can fit. Whatever goes wrong later is a Failed.
    """
    prepared = await engine.prepare(thread, await _addressed(call, model))
    ended = False
    try:
        while not ended:
            outcome: Finished | Failed = NO_END
            begun = False
            async with aclosing(model.stream(prepared.request)) as pieces:
                async for reply in pieces:
                    if isinstance(reply, Finished | Failed):
                        outcome = reply
                        break
                    begun = True
                    yield reply
            error = await _settled(engine, prepared, outcome)
            if error is None:
                ended = True
                yield outcome
            elif isinstance(outcome, Failed) and begun:
                ended = True
                await engine.record_failure(prepared, str(error))
                yield Failed(error, begun=True)
            else:
                try:
                    prepared = await engine.recover(prepared, error)
                except ProviderError as final:
                    ended = True
                    yield Failed(final, begun=begun)
                else:
                    if begun:
                        yield Restarted(str(error))
    finally:
        if not ended:
            engine.blocking.record_failure(prepared, CANCELLED)


async def _addressed(call: Call, model: Model) -> Call:
    """The call with what is known of the model it goes to."""
    served = call.served if call.served is not None else await model.served_window(call.model)
    provider = call.provider or model.provider
    return replace(call, fmt=model.fmt, endpoint=model.endpoint, provider=provider, served=served)


async def _settled(engine: Engine, prepared: Prepared, outcome: Finished | Failed) -> ProviderError | None:
    """Write down how the call ended; the error to recover from, if it did not end well."""
    match outcome:
        case Failed(error):
            return error
        case Finished(message, usage, stop):
            hidden = await engine.record_usage(prepared, usage, stop=stop, said=bool(message.parts))
            if hidden is None:
                await engine.append(prepared.thread, [message])
            return hidden

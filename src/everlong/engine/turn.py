"""One call of a model, from its preparation to its outcome: every turn that starts has exactly one.

`converse` is the call that user messages, background events and sub-agents share: prepare, stream, and before the
first piece of an answer recover from whatever the provider refuses. `Turn` is for callers who forward the bytes of an
answer instead.
"""

import asyncio
import inspect
import json
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from everlong.core import Message, Reasoning, Role, Text, ToolCall, ToolResult, expect
from everlong.engine.contracts import Call, Failed, Finished, Model, Prepared, Reply, Restarted, ToolLike
from everlong.engine.functions import Function, checked, tool_function
from everlong.errors import ContextOverflow, EverlongError, InputError, ProviderError, ThreadBusy

if TYPE_CHECKING:
    from everlong.engine.engine import Engine

__all__ = [
    "Turn",
    "Turns",
    "answer_call",
    "call_of",
    "converse",
    "run_function",
    "says_something",
    "value_text",
    "whole",
]

CANCELLED = "cancelled by the caller"
NO_END = Failed(ProviderError("the model's stream ended without an end"), begun=False)
T = TypeVar("T")
LONGEST_MESSAGE = 2_000  # characters of an exception


@dataclass(slots=True)
class Turn:
    """A turn under way. `prepared` is what is to be sent for it, `ended` whether its outcome is recorded.

    `quick` says that the store never waits for anything: short work is then done in the event loop itself.
    """

    engine: "Engine"
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
        said, usage, stop = says_something(finished.message), finished.usage, finished.stop
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


def says_something(message: Message) -> bool:
    """Return whether there is anything in a message but white space and thoughts."""
    return any(
        bool(part.text.strip()) if isinstance(part, Text) else not isinstance(part, Reasoning) for part in message.parts
    )


async def converse(engine: "Engine", model: Model, thread: str, call: Call) -> AsyncGenerator[Reply, None]:
    """Stream the answer to a thread as it is now; the last piece is Finished, which is stored, or Failed.

    Raises BudgetImpossible before anything is sent if nothing can fit, StoreError if the store fails. Whatever
    goes wrong later is a Failed.
    """
    if not hasattr(engine, "blocking"):
        raise InputError(f"engine must be an engine, not {engine!r:.60}: write open_engine('chat.db')")
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


# --- one turn of a thread at a time ----------------------------------------------------------------------------------


class Turns:
    """Lets one turn of a thread happen at a time; the next one waits, or is refused. Event loops may differ."""

    def __init__(self, *, refuses: bool) -> None:
        self._refuses = refuses
        self._waiting: dict[str, deque[Future[None]]] = {}
        self._mine = Lock()

    @asynccontextmanager
    async def turn(self, thread: str) -> AsyncIterator[None]:
        """Wait until no other turn of the thread is under way. Raises ThreadBusy if that is refused."""
        mine = self._enter(thread)
        try:
            if mine is not None:
                await asyncio.wrap_future(mine)
        except asyncio.CancelledError:
            self._give_up(thread, mine)
            raise
        try:
            yield
        finally:
            self._leave(thread)

    def _enter(self, thread: str) -> Future[None] | None:
        """None if the turn may begin; else what is done when it may."""
        with self._mine:
            queue = self._waiting.get(thread)
            if queue is None:
                self._waiting[thread] = deque()
                return None
            if self._refuses:
                raise ThreadBusy(f"another turn of thread {thread!r} is under way: wait for it, or stop it")
            mine: Future[None] = Future()
            queue.append(mine)
            return mine

    def _leave(self, thread: str) -> None:
        with self._mine:
            queue = self._waiting[thread]
            while queue:
                if queue[0].set_running_or_notify_cancel():
                    queue.popleft().set_result(None)
                    return
                queue.popleft()
            del self._waiting[thread]

    def _give_up(self, thread: str, mine: "Future[None] | None") -> None:
        """A caller that was cancelled while it waited: if its turn had come, the next one's has."""
        if mine is not None and mine.done() and not mine.cancelled():
            self._leave(thread)


# --- calls and tools of a turn ---------------------------------------------------------------------------------------


def call_of(model: Model, call: Call | None, tools: Sequence[ToolLike], system: str) -> Call:
    """Return what is asked of a model: everything in `call`, with these tools and this system text."""
    if not hasattr(model, "stream"):
        raise InputError(f'model must be a model, such as HttpModel("openai", "gpt-4o"), not {model!r:.60}')
    expect("call", call, (Call, type(None)), 'what is asked of a model, such as Call(model="gpt-4o")')
    name = call.model if call is not None else getattr(model, "name", "")
    if not name:
        raise InputError(
            'the model has no name: write HttpModel("openai", "gpt-4o"), or give call=Call(model="gpt-4o")'
        )
    asked = call or Call(model=name)
    standing = (*asked.standing, Message(Role.SYSTEM, (Text(system),))) if system else asked.standing
    return replace(asked, fmt=model.fmt, tools=(*asked.tools, *tools), standing=standing)


async def answer_call(functions: Mapping[str, Function], call: ToolCall) -> ToolResult:
    """Return the result of the function that the model called; what it raises is a result too."""
    function = functions.get(call.name)
    if function is None:
        told = f"there is no tool {call.name!r}; there are: {', '.join(functions) or 'none'}"
        return ToolResult(call.id, (Text(told),), call.name, failed=True)
    try:
        arguments = json.loads(call.arguments or "{}")
    except ValueError:
        arguments = None
    if not isinstance(arguments, dict):
        return ToolResult(call.id, (Text("the arguments are not a JSON object"),), call.name, failed=True)
    values, complaints = checked(arguments, tool_function(function).signature)
    if complaints:
        return ToolResult(call.id, (Text(complaints),), call.name, failed=True)
    text, raised = await run_function(function, values, value_text)
    return ToolResult(call.id, (Text(raised if text is None else text),), call.name, failed=text is None)


async def run_function(
    function: Function, values: Mapping[str, Any], shape: Callable[[Any], T]
) -> tuple[T | None, str]:
    """Call a function, in a thread if it is not async. Return its value in shape, or None and what it raised."""
    failure = _Failure()
    with failure:
        if inspect.iscoroutinefunction(function):
            return shape(await function(**values)), ""
        return await asyncio.to_thread(_run_in_thread, function, values, shape)
    return None, failure.text


def _run_in_thread(function: Function, values: Mapping[str, Any], shape: Callable[[Any], T]) -> tuple[T | None, str]:
    failure = _Failure()  # inside the thread: a StopIteration cannot travel from a thread to the event loop
    with failure:
        return shape(function(**values)), ""
    return None, failure.text


class _Failure:
    """Takes what a function raises as text. Cancellations and the interrupt key pass."""

    text = ""

    def __enter__(self) -> None:
        return

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        # A tool is somebody's code: the model reads what it raised, and can do something about it.
        if not isinstance(error, Exception | SystemExit):
            return False
        text = str(error) if isinstance(error, EverlongError) else f"{type(error).__name__}: {error}"
        self.text = text[:LONGEST_MESSAGE].rstrip(": ")
        return True


def value_text(value: object) -> str:
    """Return what a function gave back as the model reads it: text as it is, anything else as JSON."""
    if isinstance(value, str):
        return value
    return "done" if value is None else msgspec.json.encode(value, enc_hook=str).decode()

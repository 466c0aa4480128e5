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
from dataclasses import dataclass, field, replace
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from everlong.core import Ending, Message, Reasoning, Role, Text, ToolCall, ToolResult, expect
from everlong.engine.contracts import Call, Failed, Finished, Model, Prepared, Reply, Restarted, Said, Thought, ToolLike
from everlong.engine.functions import Function, checked, tool_function
from everlong.errors import ContextOverflow, EverlongError, InputError, ProviderError, ThreadBusy

if TYPE_CHECKING:
    from everlong.engine.engine import Engine

__all__ = [
    "PartialAnswer",
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
NO_END = Failed(ProviderError("the model's stream stopped before the answer was complete"), begun=False)
T = TypeVar("T")
LONGEST_MESSAGE = 2_000  # characters of an exception


@dataclass(slots=True)
class PartialAnswer:
    """The text and reasoning of an answer so far. Tool calls are left out: half a call cannot be made."""

    text: str = ""
    thinking: str = ""

    def add(self, reply: Reply) -> None:
        """Add a piece of the answer."""
        match reply:
            case Said(text):
                self.text += text
            case Thought(text):
                self.thinking += text
            case Restarted():
                self.text = self.thinking = ""
            case _:
                pass

    def message(self, model: str, ending: Ending) -> Message | None:
        """Return the answer as a message with its ending; None if it has no text."""
        if not self.text.strip() and not self.thinking.strip():
            return None
        thoughts = (Reasoning(self.thinking),) if self.thinking.strip() else ()
        words = (Text(self.text),) if self.text.strip() else ()
        return Message(Role.ASSISTANT, (*thoughts, *words), model=model, ending=ending)


@dataclass(slots=True)
class Turn:
    """A turn that is running. `prepared` is the request to send; `ended` says whether the outcome is recorded.

    `quick` means that the store never blocks, so short work runs in the event loop itself.
    """

    engine: "Engine"
    prepared: Prepared | None = None
    ended: bool = False
    quick: bool = False
    #: The answer so far.
    partial: PartialAnswer = field(default_factory=PartialAnswer)

    @property
    def request(self) -> Prepared:
        """The request to send."""
        assert self.prepared is not None, "a turn is prepared first"
        return self.prepared

    async def prepare(self, thread: str, call: Call) -> None:
        """Prepare the request for the thread as it is now."""
        self.prepared = await self.engine.prepare(thread, call)

    async def answered(self, finished: Finished) -> ContextOverflow | None:
        """Record the answer. Returns an overflow that the provider reported as a success; then the turn continues."""
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
        """Prepare another request after a refusal. If none is possible, the turn ends and the error is raised."""
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
        """Record a cancelled turn. The text that arrived before stays in the thread."""
        if self.prepared is not None and not self.ended:
            self.ended = True
            self.engine.blocking.record_failure(self.prepared, CANCELLED)
            message = self.partial.message(self.prepared.call.model, self.engine.cut_short)
            if message is not None:
                self.engine.blocking.append(self.prepared.thread, [message])


def says_something(message: Message) -> bool:
    """Return whether a message has anything but white space and reasoning."""
    return any(
        bool(part.text.strip()) if isinstance(part, Text) else not isinstance(part, Reasoning) for part in message.parts
    )


async def converse(engine: "Engine", model: Model, thread: str, call: Call) -> AsyncGenerator[Reply, None]:
    """Send a thread to a model as it is now and stream the answer; the last piece is Finished or Failed.

    A Finished answer has already been added to the thread. Use `Engine.stream` to add a user message first and to run
    tools. Raises BudgetImpossible before anything is sent if nothing can fit, and StoreError if the store fails. Any
    later error arrives as Failed.
    """
    if not hasattr(engine, "blocking"):
        raise InputError(f"engine must be an Engine, such as open_engine('chat.db'), not {engine!r:.60}")
    expect("call", call, Call, 'a Call, such as Call(model="gpt-4o")')
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
                        turn.partial.add(reply)
                        yield reply
            except EverlongError as error:  # an unreadable answer is the provider's failure too
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
    """Record how the call ended and return the piece for the caller. None means that another request follows."""
    match outcome:
        case Finished(message):
            hidden = await turn.answered(outcome)
            if hidden is None:
                message = replace(message, model=turn.request.call.model, ending=_ending_of(outcome))
                await turn.engine.append(turn.request.thread, [message])
                return replace(outcome, message=message)
            return await _recover(turn, hidden, begun=begun)
        case Failed(error) if begun:
            await turn.failed(str(error))
            broken = turn.partial.message(turn.request.call.model, "broken off")
            if broken is not None:
                await turn.engine.append(turn.request.thread, [broken])
            return Failed(error, begun=True)
        case Failed(error):
            return await _recover(turn, error, begun=False)


def _ending_of(answer: Finished) -> Ending:
    if not says_something(answer.message):
        return "empty"
    return "length" if answer.stop == "length" else ""


async def _recover(turn: Turn, error: ProviderError, *, begun: bool) -> Reply | None:
    try:
        await turn.refused(error)
    except ProviderError as final:
        return Failed(final, begun=begun)
    if not begun:
        return None
    restarted = Restarted(str(error))
    turn.partial.add(restarted)
    return restarted


async def _addressed(call: Call, model: Model) -> Call:
    """Return the call with the format, endpoint, provider and window of the model it goes to."""
    served = call.served if call.served is not None else await model.served_window(call.model)
    provider = call.provider or model.provider
    return replace(call, fmt=model.fmt, endpoint=model.endpoint, provider=provider, served=served)


async def whole(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end and return the result. A cancelled caller waits for it to finish."""
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
        task.exception()  # read here, so that asyncio does not log it as never retrieved
    raise cancelled


# --- one turn of a thread at a time ----------------------------------------------------------------------------------


class Turns:
    """Allows one turn per thread at a time, across event loops. The next one waits or is refused."""

    def __init__(self, *, refuses: bool) -> None:
        self._refuses = refuses
        self._waiting: dict[str, deque[Future[None]]] = {}
        self._mine = Lock()

    @asynccontextmanager
    async def turn(self, thread: str) -> AsyncIterator[None]:
        """Wait until no other turn of the thread is running. Raises ThreadBusy if the engine refuses a second turn."""
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
        """Return None if the turn may begin; otherwise a future that is done when it may."""
        with self._mine:
            queue = self._waiting.get(thread)
            if queue is None:
                self._waiting[thread] = deque()
                return None
            if self._refuses:
                raise ThreadBusy(f"another turn of thread {thread!r} is running: wait for it, or stop it")
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
        """Handle a caller that was cancelled while it waited: if its turn had come, start the next one."""
        if mine is not None and mine.done() and not mine.cancelled():
            self._leave(thread)


# --- calls and tools of a turn ---------------------------------------------------------------------------------------


def call_of(model: Model, call: Call | None, tools: Sequence[ToolLike], system: str) -> Call:
    """Return the call for a model: `call` with these tools and this system text added."""
    if not hasattr(model, "stream"):
        raise InputError(f'model must be a model, such as HttpModel("openai", "gpt-4o"), not {model!r:.60}')
    expect("call", call, (Call, type(None)), 'a Call, such as Call(model="gpt-4o")')
    name = call.model if call is not None else getattr(model, "name", "")
    if not name:
        raise InputError(
            'the model has no name: write HttpModel("openai", "gpt-4o"), or pass call=Call(model="gpt-4o")'
        )
    asked = call or Call(model=name)
    standing = (*asked.standing, Message(Role.SYSTEM, (Text(system),))) if system else asked.standing
    return replace(asked, fmt=model.fmt, tools=(*asked.tools, *tools), standing=standing)


async def answer_call(functions: Mapping[str, Function], call: ToolCall) -> ToolResult:
    """Run the function that the model called and return its result. An exception becomes a failed result."""
    function = functions.get(call.name)
    if function is None:
        problem = f"there is no tool {call.name!r}; available tools: {', '.join(functions) or 'none'}"
        return ToolResult(call.id, (Text(problem),), call.name, failed=True)
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
    """Call a function, in a thread if it is not async. Returns its shaped value, or None and the exception text."""
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
    """Catches what a function raises and keeps it as text. Cancellations and keyboard interrupts pass through."""

    text = ""

    def __enter__(self) -> None:
        return

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        # A tool is the user's code: the model reads the exception and can react to it.
        if not isinstance(error, Exception | SystemExit):
            return False
        text = str(error) if isinstance(error, EverlongError) else f"{type(error).__name__}: {error}"
        self.text = text[:LONGEST_MESSAGE].rstrip(": ")
        return True


def value_text(value: object) -> str:
    """Return a function's value as the model reads it: a string as it is, anything else as JSON."""
    if isinstance(value, str):
        return value
    return "done" if value is None else msgspec.json.encode(value, enc_hook=str).decode()

"""The engine: it prepares every request, learns from every answer and recovers from every refusal.

`Engine` runs turns in the event loop, and the work of `BlockingEngine` in worker threads.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from datetime import datetime
from inspect import isfunction
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias, get_args

from everlong.core import Ending, Message, Pin, Point, Role, Row, expect
from everlong.engine.blocking_engine import Appended, BlockingEngine
from everlong.engine.contracts import Call, Failed, Finished, Model, Prepared, Provider, Reply, Threads, ToolLike
from everlong.engine.events import Observer
from everlong.engine.functions import tool_function
from everlong.engine.histories.vectors import thread_vectors
from everlong.engine.preview import Preview
from everlong.engine.recall.request import RecallResult
from everlong.engine.settings import DEFAULT_SETTINGS, Settings
from everlong.engine.thread import EngineContext
from everlong.engine.turn import Turns, answer_call, call_of, converse
from everlong.errors import ContextOverflow, InputError, ProviderError
from everlong.windows import Registry
from everlong.wire import Usage

__all__ = ["Busy", "Engine"]

MOST_ROUNDS = 50  # rounds of calls and results in one turn
#: What a second turn of a thread does while the first is running.
Busy: TypeAlias = Literal["wait", "refuse"]


class Engine:
    """Runs conversations that are kept in a store. Create one for the whole program.

    - `threads`: the store, from `open_store`.
    - `settings`: the settings for all threads; a thread can override them.
    - `registry`: the model registry; None for the bundled one.
    - `clock`, `new_id`: functions that return the current time and new ids, for tests.
    - `observers`: functions that are called with every event.
    - `busy`: what a second turn of a thread does while the first is running: "wait", or "refuse" with ThreadBusy.

    All methods are async; `engine.blocking` has the same methods for programs without an event loop. Counting,
    compacting and store access run in worker threads, so the event loop never waits for them.
    """

    def __init__(  # noqa: PLR0913 - the store, and what else an engine may be given by name
        self,
        threads: Threads,
        *,
        settings: Settings = DEFAULT_SETTINGS,
        registry: Registry | None = None,
        clock: Callable[[], datetime] | None = None,
        new_id: Callable[[], str] | None = None,
        observers: Sequence[Observer] = (),
        busy: Busy = "wait",
    ) -> None:
        if busy not in get_args(Busy):
            raise InputError(f"busy must be 'wait' or 'refuse', not {busy!r:.60}")
        if not hasattr(threads, "keep_fact"):  # no list, dict or path has this method
            raise InputError(f"threads must be a store, such as open_store('chat.db'), not {threads!r:.60}")
        expect("settings", settings, Settings, 'a Settings value, such as Settings(preset="auto")')
        given: dict[str, Any] = {"clock": clock, "new_id": new_id}
        chosen = {name: value for name, value in given.items() if value is not None}
        context = EngineContext(
            threads=threads,
            settings=settings,
            registry=registry,
            observers=tuple(observers),
            vectors=thread_vectors(threads, settings.semantic),
            **chosen,
        )
        #: Functions that are called in the event loop with every answered request and its model; they must not block.
        self.after_turn: list[Callable[[Prepared, Model], None]] = []
        #: How a cancelled answer is marked. A server that shuts down uses "broken off", because nobody stopped it.
        self.cut_short: Ending = "stopped"
        #: The same engine for programs without an event loop.
        self.blocking = BlockingEngine(context, self)
        self._turns = Turns(refuses=busy == "refuse")

    @property
    def threads(self) -> Threads:
        """The store that the engine works on."""
        return self.blocking.context.threads

    async def append(
        self, thread: str, messages: Appended, *, owner: str | None = None, ids: Sequence[str] | None = None
    ) -> tuple[Row, ...]:
        """Add one or more messages to a thread, and create the thread if it does not exist.

        - `messages`: a string (a user message), one message, or a list of any kind that `fit` accepts.
        - `owner`: the owner of a new thread. Raises NoThread if the thread exists and belongs to someone else.
        - `ids`: names for the rows. Appending the same ids again adds nothing, so a retry is safe.

        Returns the rows.
        """
        return await asyncio.to_thread(self.blocking.append, thread, messages, owner=owner, ids=ids)

    async def follow(self, thread: str, provider: Provider) -> tuple[Row, ...]:
        """Add the new messages of a history that you store elsewhere, and create the thread if it does not exist.

        `provider` loads the history. Only the text of user, assistant and system messages is compared; tool calls and
        results stay in the thread. Returns the new rows. Raises InputError if messages that were read before have
        changed.
        """
        return await asyncio.to_thread(self.blocking.follow, thread, await provider.load(thread))

    async def ask(  # noqa: PLR0913 - see stream
        self,
        thread: str,
        text: Appended,
        *,
        model: Model,
        tools: Sequence[ToolLike] = (),
        system: str = "",
        call: Call | None = None,
        owner: str | None = None,
    ) -> Finished:
        """Add a user message to a thread, send the thread to the model, and return the answer.

        The arguments are those of `stream`. Both messages are in the thread when this returns. Raises a ProviderError
        if there is no answer.
        """
        last: Reply | None = None
        replies = self.stream(thread, text, model=model, tools=tools, system=system, call=call, owner=owner)
        async with aclosing(replies):
            async for reply in replies:
                last = reply
        if isinstance(last, Finished):
            return last
        raise last.error if isinstance(last, Failed) else ProviderError("the model gave no answer")

    async def stream(  # noqa: PLR0913 - who says what to whom, with what; all but that by name
        self,
        thread: str,
        text: Appended,
        *,
        model: Model,
        tools: Sequence[ToolLike] = (),
        system: str = "",
        call: Call | None = None,
        owner: str | None = None,
    ) -> AsyncGenerator[Reply, None]:
        """Add a user message to a thread, send the thread to the model, and stream the answer.

        - `text`: the user message: a string, a message, or a list of messages.
        - `model`: the model to ask, such as `HttpModel("openai", "gpt-4o")`.
        - `tools`: functions or schemas. Functions are called and their results sent back until the model makes no more
          calls. A call of a tool that is only a schema ends the turn.
        - `system`: system text for this turn. It is sent but not stored.
        - `call`: everything else about the request, such as `max_tokens`.
        - `owner`: the owner of the thread; see `append`.

        The last piece is Finished, which is stored in the thread, or Failed. If another turn of the thread is running,
        this one waits, or raises ThreadBusy if the engine was created with `busy="refuse"`.
        """
        call = call_of(model, call, tools, system)
        functions = {known.name: each for each in tools if isfunction(each) and (known := tool_function(each))}
        async with self._turns.turn(thread):
            await self.append(thread, text, owner=owner)
            for _ in range(MOST_ROUNDS):
                last: Reply | None = None
                async with aclosing(converse(self, model, thread, call)) as replies:
                    async for reply in replies:
                        last = reply
                        yield reply
                calls = last.message.calls if isinstance(last, Finished) else ()
                schemas = len(call.tools) > len(functions)  # the caller runs calls of tools that are only schemas
                if not calls or (schemas and any(each.name not in functions for each in calls)):
                    return
                results = await asyncio.gather(*(answer_call(functions, each) for each in calls))
                await self.append(thread, [Message(Role.TOOL, (result,)) for result in results])
            yield Failed(ProviderError(f"the model was still calling tools after {MOST_ROUNDS} rounds"), begun=True)

    async def prepare(
        self,
        thread: str,
        call: Call,
        *,
        history: Sequence[Any] | None = None,
        library: str = "",
        owner: str | None = None,
    ) -> Prepared:
        """Return the next request of a thread. It fits, it is valid, and it begins like the request before it.

        A compaction, if one is due, happens here and is the only thing that changes what was sent before.

        - `call`: the model, the tools and everything else about the request.
        - `history`: your own complete list of messages, of any kind that `fit` accepts, if you keep it yourself.
          `Prepared.messages` then has the same kind.
        - `library`: the name of that kind, if its messages are plain dicts that do not show it, such as "strands".
        - `owner`: raises NoThread if the thread belongs to someone else.

        Raises BudgetImpossible if what must stay is larger than the budget.
        """
        return await asyncio.to_thread(
            self.blocking.prepare, thread, call, history=history, library=library, owner=owner
        )

    async def answered(self, prepared: Prepared, response: object) -> Prepared | None:
        """Record the answer to a request and add it to the thread.

        `response` is what an SDK returned, its JSON, the events of a stream, a Finished, or only the Usage. Returns
        another request to send if the server silently cut the prompt; otherwise None. Nothing is added to a history
        that you keep yourself.
        """
        return await asyncio.to_thread(self.blocking.answered, prepared, response)

    async def refused(self, prepared: Prepared, error: BaseException) -> Prepared:
        """Return another request to send after an SDK or a framework raised an exception.

        Raises the error to report if no other request can help.
        """
        return await asyncio.to_thread(self.blocking.refused, prepared, error)

    async def preview(self, thread: str, call: Call) -> Preview:
        """Return how full the context window is: what the next request would hold, without sending it."""
        return await asyncio.to_thread(self.blocking.preview, thread, call)

    async def record_usage(
        self, prepared: Prepared, usage: Usage | None, *, stop: str = "stop", said: bool = True
    ) -> ContextOverflow | None:
        """Record the usage of an answer, for programs that call the model themselves.

        Returns a ContextOverflow if the provider reported success but had cut the prompt: pass it to `recover`. Most
        programs use `answered`, which does both.
        """
        return await asyncio.to_thread(self.blocking.record_usage, prepared, usage, stop=stop, said=said)

    async def record_failure(self, prepared: Prepared, reason: str) -> None:
        """Record that the call failed and end its turn."""
        await asyncio.to_thread(self.blocking.record_failure, prepared, reason)

    async def recover(self, prepared: Prepared, error: ProviderError) -> Prepared:
        """Return another request to try after a refusal. Raises the error to report if no other request can help."""
        return await asyncio.to_thread(self.blocking.recover, prepared, error)

    async def compact(self, thread: str, call: Call) -> Point | None:
        """Compact a thread now, down to the target. Returns the compaction point.

        Returns None if a compaction would save too little.
        """
        return await asyncio.to_thread(self.blocking.compact, thread, call)

    async def undo(self, thread: str) -> Row | None:
        """Undo the newest compaction of a thread. Returns its row, or None if there is none.

        The next request is what it would have been without the compaction.
        """
        return await asyncio.to_thread(self.blocking.undo, thread)

    async def remove_messages(self, thread: str, orders: Sequence[int]) -> tuple[int, ...]:
        """Delete messages from a thread: from requests, recall, search, titles and summaries.

        `orders` are the positions of the messages in the thread. A call is deleted with its results, and a compaction
        that covers a deleted message is undone. Returns the orders of everything that was deleted; `restore_messages`
        brings it back. If a turn of the thread is running, this waits for it, or raises ThreadBusy if the engine was
        created with `busy="refuse"`.
        """
        async with self._turns.turn(thread):
            return await asyncio.to_thread(self.blocking.remove_messages, thread, orders)

    async def restore_messages(self, thread: str, orders: Sequence[int]) -> tuple[int, ...]:
        """Restore deleted messages, with everything that was deleted with them. Returns the orders of the messages."""
        async with self._turns.turn(thread):
            return await asyncio.to_thread(self.blocking.restore_messages, thread, orders)

    async def erase_messages(self, thread: str, orders: Sequence[int]) -> dict[str, tuple[int, ...]]:
        """Erase messages from the store permanently, whether they were deleted before or not.

        Other threads that share the messages lose them too. This cannot be undone. Returns the orders of the erased
        rows, by thread.
        """
        async with self._turns.turn(thread):
            return await asyncio.to_thread(self.blocking.erase_messages, thread, orders)

    async def pin(self, thread: str, order: int | None = None, text: str = "") -> Pin:
        """Keep a message in every request, given by its order in the thread, or a text of your own."""
        return await asyncio.to_thread(self.blocking.pin, thread, order, text)

    async def unpin(self, thread: str, pin: str) -> None:
        """Remove a pin, by its id."""
        await asyncio.to_thread(self.blocking.unpin, thread, pin)

    async def recall(self, thread: str, what: str, *, limit: int = 10, owner: str | None = None) -> RecallResult:
        """Return the original behind a reference, byte for byte, or the messages that answer a query.

        `what` is a reference (as in edits and markers) or a query, and `limit` the most messages to return.
        """
        return await asyncio.to_thread(self.blocking.recall, thread, what, limit=limit, owner=owner)

    async def expect_owner(self, thread: str, owner: str | None) -> None:
        """Raise NoThread if the thread exists and belongs to someone else.

        An `owner` of None checks nothing; "" is the owner of threads without one.
        """
        await asyncio.to_thread(self.blocking.expect_owner, thread, owner)

    def close(self) -> None:
        """Close the store."""
        if self.blocking.context.vectors is not None:
            self.blocking.context.vectors.close()
        self.threads.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        await asyncio.to_thread(self.close)

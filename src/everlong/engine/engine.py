"""The engine: every call prepared, every answer learned from, every refusal recovered, off the event loop."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from datetime import datetime
from inspect import isfunction
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias, cast, get_args

from everlong.core import (
    EventKind,
    History,
    Json,
    Message,
    Part,
    Pin,
    Point,
    Role,
    Row,
    Text,
    Withdrawal,
    expect,
    expect_list,
    expect_number,
    expect_text,
)
from everlong.engine.contracts import (
    Call,
    Failed,
    Finished,
    Model,
    Prepared,
    Provider,
    Reply,
    Threads,
    ToolLike,
)
from everlong.engine.events import Observer
from everlong.engine.functions import tool_function
from everlong.engine.histories.followed import FollowedHistories, held_history
from everlong.engine.preparation import compact_now, planned_point, prepare, remember, standing
from everlong.engine.preview import Preview, preview
from everlong.engine.recall import MOST_RECALLED, RecallResult, recall, recall_text
from everlong.engine.recovery import recover
from everlong.engine.settings import DEFAULT_SETTINGS, Settings
from everlong.engine.thread import EngineContext, newest_compaction, work_on
from everlong.engine.turn import Turns, answer_call, call_of, converse, says_something
from everlong.engine.usage import record_failure, record_usage
from everlong.errors import ContextOverflow, InputError, NoThread, ProviderError, ThreadExists
from everlong.windows import Registry
from everlong.wire import Usage, error_from, finished_from, format_named, library_of, plain

__all__ = ["BlockingEngine", "Engine"]

MESSAGES = 'a list of messages, such as [{"role": "user", "content": "hello"}]'
BY_HAND = "asked for"
MOST_ROUNDS = 50  # of calls and results in one turn
#: What a second turn of a thread does while the first is under way.
Busy: TypeAlias = Literal["wait", "refuse"]
#: What is added to a thread: words of the user, one message, or many, of any kind that `fit` takes.
Appended: TypeAlias = str | Message | Mapping[str, Any] | Sequence[Any]
LITTLE = 0.95  # a compaction by hand that would leave more than this share is not worth its point


class BlockingEngine:
    """The engine for callers without an event loop: prepares every request, learns from every answer, recovers.

    Safe to use from several threads; waits for the store if it must.
    """

    def __init__(self, context: EngineContext, engine: "Engine") -> None:
        self.context = context
        self._engine = engine
        self._histories = FollowedHistories(context)

    def ask(  # noqa: PLR0913 - see Engine.stream
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
        """Return the answer to what the user says; both are in the thread then. See `Engine.ask`."""
        answer = self._engine.ask(thread, text, model=model, tools=tools, system=system, call=call, owner=owner)
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(answer)
        answer.close()
        raise InputError("there is an event loop here: write `await engine.ask(…)`, without blocking")

    def append(self, thread: str, messages: Appended, *, owner: str | None = None) -> tuple[Row, ...]:
        """Add to a thread what the user says, one message or many, of any kind; a thread that is not there is created.

        Raises NoThread if the thread belongs to someone else than the owner that is given.
        """
        self.expect_owner(thread, owner)
        threads, values = self.context.threads, _values(messages)
        try:
            return threads.append(thread, values)
        except NoThread:
            with suppress(ThreadExists):  # two may come first at once
                threads.create(thread, owner=owner or "")
            return threads.append(thread, values)

    def follow(self, thread: str, messages: Sequence[Message] | Sequence[Mapping[str, Any]]) -> tuple[Row, ...]:
        """Add what is new in a history that is kept elsewhere; see `Engine.follow`."""
        _expect_thread(thread)
        values = [message for message in _values(messages) if _said(message)]
        with self.context.states.lock(thread):
            try:
                entries = [row.entry for row in self.context.threads.read(thread)]
            except NoThread:
                entries = []
            known = [said for entry in entries if isinstance(entry, Message) and (said := _said(entry))]
            if any(before != _said(now) for before, now in zip(known, values, strict=False)):
                raise InputError(f"the history of {thread!r} changed where it was read before: remove the thread first")
            new = values[len(known) :]
            return self.append(thread, new) if new else ()

    def prepare(
        self,
        thread: str,
        call: Call,
        *,
        history: Sequence[Any] | None = None,
        library: str = "",
        owner: str | None = None,
    ) -> Prepared:
        """Return what to send now: it fits, is valid, and begins as the request before unless a compaction was due.

        `history` is one that the caller holds, whole, of any kind that `fit` takes; `Prepared.messages` gives it back.
        `library` names that kind where its messages are plain dicts and so do not show it, such as "strands".
        """
        _expect_call(thread, call)
        self.expect_owner(thread, owner)
        if history is None:
            return prepare(self.context, thread, call)
        expect_list("history", history, MESSAGES)
        held = held_history(history, call.fmt, library)
        now, with_head = self._histories.follow(thread, held, call, owner=owner)
        return replace(prepare(self.context, now, with_head), held=held)

    def preview(self, thread: str, call: Call) -> Preview:
        """Return how full the window is: what would be sent now, looked at without sending it."""
        _expect_call(thread, call)
        return preview(self.context, self._histories.current(thread), call)

    def record_usage(
        self, prepared: Prepared, usage: Usage | None, *, stop: str = "stop", said: bool = True
    ) -> ContextOverflow | None:
        """Record an answer. Returns an overflow that came as a success: recover from it."""
        _expect_prepared(prepared)
        return record_usage(self.context, prepared, usage, stop=stop, said=said)

    def record_failure(self, prepared: Prepared, reason: str) -> None:
        """Record that the call failed; its turn is over."""
        _expect_prepared(prepared)
        record_failure(self.context, prepared, reason)

    def recover(self, prepared: Prepared, error: ProviderError) -> Prepared:
        """Return another request to try after a refusal. Raises the error to report if there is none."""
        _expect_prepared(prepared)
        expect("error", error, ProviderError, "the refusal, a ProviderError")
        return recover(self.context, prepared, error)

    def answered(self, prepared: Prepared, response: object) -> Prepared | None:
        """Record the answer to a request and add it to the thread. Returns another request to send, None if it is done.

        `response` is what an SDK gave back, its JSON, the events of a stream, a Finished, or the Usage alone. Another
        request follows if the server cut the prompt and said nothing. Nothing is added to a history that the caller
        holds.
        """
        _expect_prepared(prepared)
        usage, finished = _answer(prepared.call.fmt, response)
        stop = "stop" if finished is None else finished.stop
        said = finished is None or says_something(finished.message)
        hidden = self.record_usage(prepared, usage, stop=stop, said=said)
        if hidden is not None:
            return self.refused(prepared, hidden)
        if finished is not None and prepared.held is None:
            self.append(prepared.thread, [finished.message])
        return None

    def refused(self, prepared: Prepared, error: BaseException) -> Prepared:
        """Return another request to send after an exception of an SDK or a framework. Raises the error to report."""
        expect("error", error, BaseException, "what the call raised")
        again = self.recover(prepared, error_from(error))
        return replace(again, held=prepared.held)

    def compact(self, thread: str, call: Call) -> Point | None:
        """Compact now, down to the target, because someone asks for it. None if there is nothing worth compacting."""
        _expect_call(thread, call)
        engine, thread = self.context, self._histories.current(thread)
        with engine.states.lock(thread), engine.journal(thread) as journal:
            context = work_on(engine, engine.state(thread), call, journal, call.parent)
            before = standing(context).tokens
            limit, fixed = context.budget.compacted_limit, context.budget.parts.fixed
            target = min(context.budget.target, fixed + max(0, before - fixed) // 2)
            if context.budget.preset.every_call:
                return None
            planned = planned_point(context, BY_HAND, before, limit=limit, target=min(target, limit))
            if planned.tokens_after > LITTLE * before:
                return None
            view = compact_now(context, BY_HAND, before, target=target)
            remember(context, view)
            point = context.state.opened.point
            return point.entry if point is not None and isinstance(point.entry, Point) else None

    def undo(self, thread: str) -> Row | None:
        """Withdraw the newest compaction: the next request is what it would have been without. None if there is none.

        A summary that was only kept beside what a compaction left goes together with that compaction.
        """
        _expect_thread(thread)
        engine, thread = self.context, self._histories.current(thread)
        with engine.states.lock(thread), engine.journal(thread) as journal:
            point = engine.threads.open(thread).point
            if point is None or not isinstance(point.entry, Point):
                return None
            engine.threads.append(thread, [Withdrawal(row.order) for row in newest_compaction(engine.threads, thread)])
            journal.note(
                EventKind.CONTEXT_RESTORED,
                reason="undone",
                tokens_before=point.entry.tokens_after,
                tokens_after=point.entry.tokens_before,
            )
            return point

    def pin(self, thread: str, order: int | None = None, text: str = "") -> Pin:
        """Keep a message, or a text of one's own, in every request."""
        _expect_thread(thread)
        expect_text("text", text)
        if (order is None) == (not text):
            raise InputError("pin either a message by its order, or a text")
        if order is not None:
            expect_number("order", order, "the place of a message in its thread")
        return self.context.threads.pin(self._histories.current(thread), order, text)

    def unpin(self, thread: str, pin: str) -> None:
        """Remove a pin."""
        _expect_thread(thread)
        expect_text("pin", pin, "the id of a pin")
        self.context.threads.unpin(self._histories.current(thread), pin)

    def recall(self, thread: str, what: str, *, limit: int = 10, owner: str | None = None) -> RecallResult:
        """Return what a reference names, byte for byte, or what answers a query."""
        _expect_thread(thread)
        self.expect_owner(thread, owner)
        expect_text("what", what, "a reference or a query")
        expect_number("limit", limit, "how many answers are wanted")
        return recall(self.context.threads, self._histories.current(thread), what, limit=limit)

    def recall_text(self, thread: str, what: str, *, start: int = 0, most: int = MOST_RECALLED) -> str:
        """Return what a model reads that calls a tool to recall: a reference, or a few words; see `recall`."""
        _expect_thread(thread)
        expect_text("what", what, "a reference or a query")
        return recall_text(self.context.threads, self._histories.current(thread), what, start=start, most=most)

    def expect_owner(self, thread: str, owner: str | None) -> None:
        """Raise NoThread if an owner is given and the thread belongs to someone else. "" owns what has no owner."""
        _expect_thread(thread)
        if owner is None:
            return
        expect_text("owner", owner, "the name of an owner")
        try:
            known = self.context.threads.thread(thread)
        except NoThread:  # whoever comes first creates it
            return
        if known.owner != owner:
            raise NoThread(f"there is no thread {thread!r} of {owner!r}")

    def forget(self, thread: str) -> None:
        """Drop what is held in memory of a thread; nothing stored changes."""
        state = self.context.states.get(thread)
        if state is not None:
            self.context.states.put(thread, replace(state, view=None, raw=None, anchor=None))


def _said(message: Message) -> tuple[Role, str] | None:
    """Return who said what, as a table keeps it; None for calls and results."""
    text = message.text
    return (message.role, text) if text and message.role is not Role.TOOL else None


def _expect_thread(thread: str) -> None:
    expect_text("thread", thread, "the name of a thread")


def _expect_call(thread: str, call: Call) -> None:
    _expect_thread(thread)
    expect("call", call, Call, 'what is asked of a model, such as Call(model="gpt-4o")')


def _expect_prepared(prepared: Prepared) -> None:
    expect("prepared", prepared, Prepared, "what prepare returned")


def _values(messages: Appended) -> History:
    if isinstance(messages, str):
        return (Message(Role.USER, (Text(messages),)),)
    items = [messages] if isinstance(messages, Message | Mapping) else messages
    expect_list("messages", items, f"what the user says, a message, or {MESSAGES}")
    for at, message in enumerate(items):
        if message is None or isinstance(message, str | bytes | int | float):
            expect(
                f"messages[{at}]", message, (Message, Mapping), "a message, such as {'role': 'user', 'content': '…'}"
            )
        if isinstance(message, Message):
            expect(f"messages[{at}].role", message.role, Role, "a Role, such as Role.USER")
            for part in message.parts:
                expect(f"a part of messages[{at}]", part, get_args(Part), "a part, such as Text('hello')")
    library = library_of(items)
    return tuple(message for unit in library.read(items) for message in unit.messages)


def _answer(fmt: str, response: object) -> tuple[Usage | None, Finished | None]:
    """The usage, and the answer itself if it is there."""
    if isinstance(response, Usage) or response is None:
        return response, None
    if isinstance(response, Finished):
        return response.usage, response
    events = plain(list(response) if isinstance(response, Sequence) else [response])
    finished = finished_from(format_named(fmt).reader(), cast("list[Json]", events))
    return finished.usage, finished


class Engine:
    """Runs conversations that are kept in a store. One for a whole program.

    Counting, compacting and waiting for the store happen in worker threads; the event loop goes on meanwhile.
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
        if not hasattr(threads, "keep_fact"):  # what no list, dict or path has
            raise InputError(f"threads must be a store, not {threads!r:.60}: write Engine(open_store('chat.db'))")
        expect("settings", settings, Settings, 'a Settings value, such as Settings(preset="auto")')
        given: dict[str, Any] = {"clock": clock, "new_id": new_id}
        chosen = {name: value for name, value in given.items() if value is not None}
        context = EngineContext(
            threads=threads, settings=settings, registry=registry, observers=tuple(observers), **chosen
        )
        #: Called with every request that was answered and its model, in the event loop; they must not wait.
        self.after_turn: list[Callable[[Prepared, Model], None]] = []
        #: The same engine for those without an event loop.
        self.blocking = BlockingEngine(context, self)
        self._turns = Turns(refuses=busy == "refuse")

    @property
    def threads(self) -> Threads:
        """The store."""
        return self.blocking.context.threads

    async def append(self, thread: str, messages: Appended, *, owner: str | None = None) -> tuple[Row, ...]:
        """Add to a thread what the user says, one message or many, of any kind; a thread that is not there is created.

        Raises NoThread if the thread belongs to someone else than the owner that is given.
        """
        return await asyncio.to_thread(self.blocking.append, thread, messages, owner=owner)

    async def follow(self, thread: str, provider: Provider) -> tuple[Row, ...]:
        """Add what is new in a history of one's own to the thread; it is created if it does not exist yet.

        The words of user, assistant and system count; calls of tools and their results are in the thread alone. Raises
        InputError if what was read before is different now.
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
        """Return the answer to what the user says; both are in the thread then. See `stream`.

        Raises the ProviderError if there is no answer.
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
        """Stream the answer to what the user says; the last piece is Finished, which is kept, or Failed.

        Functions among the tools are called and their results answered, until the model has no more calls; calls of
        tools that are only schemas end the turn. `system` is sent as system text and not kept. `call` has everything
        else that can be asked for. While another turn of the thread is under way, this one waits, or raises ThreadBusy
        if the engine was made with busy="refuse".
        """
        asked = call_of(model, call, tools, system)
        functions = {known.name: each for each in tools if isfunction(each) and (known := tool_function(each))}
        async with self._turns.turn(thread):
            await self.append(thread, text, owner=owner)
            for _ in range(MOST_ROUNDS):
                last: Reply | None = None
                async with aclosing(converse(self, model, thread, asked)) as replies:
                    async for reply in replies:
                        last = reply
                        yield reply
                calls = last.message.calls if isinstance(last, Finished) else ()
                schemas = len(asked.tools) > len(functions)  # calls of these are the caller's
                if not calls or (schemas and any(each.name not in functions for each in calls)):
                    return
                results = await asyncio.gather(*(answer_call(functions, each) for each in calls))
                await self.append(thread, [Message(Role.TOOL, (result,)) for result in results])
            yield Failed(ProviderError(f"the model went on calling tools for {MOST_ROUNDS} rounds"), begun=True)

    async def prepare(
        self,
        thread: str,
        call: Call,
        *,
        history: Sequence[Any] | None = None,
        library: str = "",
        owner: str | None = None,
    ) -> Prepared:
        """Return what to send now: it fits, is valid, and begins as the request before unless a compaction was due.

        `history` is one that the caller holds, whole, of any kind that `fit` takes; `Prepared.messages` gives it back.
        `library` names that kind where its messages are plain dicts and so do not show it, such as "strands".
        """
        return await asyncio.to_thread(
            self.blocking.prepare, thread, call, history=history, library=library, owner=owner
        )

    async def answered(self, prepared: Prepared, response: object) -> Prepared | None:
        """Record the answer to a request and add it to the thread. Returns another request to send, None if it is done.

        `response` is what an SDK gave back, its JSON, the events of a stream, a Finished, or the Usage alone.
        """
        return await asyncio.to_thread(self.blocking.answered, prepared, response)

    async def refused(self, prepared: Prepared, error: BaseException) -> Prepared:
        """Return another request to send after an exception of an SDK or a framework. Raises the error to report."""
        return await asyncio.to_thread(self.blocking.refused, prepared, error)

    async def preview(self, thread: str, call: Call) -> Preview:
        """Return how full the window is: what would be sent now, looked at without sending it."""
        return await asyncio.to_thread(self.blocking.preview, thread, call)

    async def record_usage(
        self, prepared: Prepared, usage: Usage | None, *, stop: str = "stop", said: bool = True
    ) -> ContextOverflow | None:
        """Record an answer. Returns an overflow that came as a success: recover from it."""
        return await asyncio.to_thread(self.blocking.record_usage, prepared, usage, stop=stop, said=said)

    async def record_failure(self, prepared: Prepared, reason: str) -> None:
        """Record that the call failed; its turn is over."""
        await asyncio.to_thread(self.blocking.record_failure, prepared, reason)

    async def recover(self, prepared: Prepared, error: ProviderError) -> Prepared:
        """Return another request to try after a refusal. Raises the error to report if there is none."""
        return await asyncio.to_thread(self.blocking.recover, prepared, error)

    async def compact(self, thread: str, call: Call) -> Point | None:
        """Compact now, because someone asks for it. None if there is nothing worth compacting."""
        return await asyncio.to_thread(self.blocking.compact, thread, call)

    async def undo(self, thread: str) -> Row | None:
        """Withdraw the newest compaction. None if there is none."""
        return await asyncio.to_thread(self.blocking.undo, thread)

    async def pin(self, thread: str, order: int | None = None, text: str = "") -> Pin:
        """Keep a message, or a text of one's own, in every request."""
        return await asyncio.to_thread(self.blocking.pin, thread, order, text)

    async def unpin(self, thread: str, pin: str) -> None:
        """Remove a pin."""
        await asyncio.to_thread(self.blocking.unpin, thread, pin)

    async def recall(self, thread: str, what: str, *, limit: int = 10, owner: str | None = None) -> RecallResult:
        """Return what a reference names, byte for byte, or what answers a query."""
        return await asyncio.to_thread(self.blocking.recall, thread, what, limit=limit, owner=owner)

    async def expect_owner(self, thread: str, owner: str | None) -> None:
        """Raise NoThread if an owner is given and the thread belongs to someone else. "" owns what has no owner."""
        await asyncio.to_thread(self.blocking.expect_owner, thread, owner)

    def close(self) -> None:
        """Close the store."""
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

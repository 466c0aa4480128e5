"""The engine: every call prepared, every answer learned from, every refusal recovered, off the event loop."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any, cast, get_args

from everlong.core import (
    EventKind,
    Message,
    Part,
    Pin,
    Point,
    Role,
    Row,
    Withdrawal,
    expect,
    expect_list,
    expect_number,
    expect_text,
)
from everlong.engine.contracts import Call, Model, Prepared, Provider, Threads
from everlong.engine.events import Observer
from everlong.engine.preparation import compact_now, planned_point, prepare, remember, standing
from everlong.engine.preview import Preview, preview
from everlong.engine.recall import RecallResult, recall
from everlong.engine.recovery import recover
from everlong.engine.settings import DEFAULT_SETTINGS, Settings
from everlong.engine.thread import EngineContext, newest_compaction, work_on
from everlong.engine.usage import record_failure, record_usage
from everlong.errors import ContextOverflow, InputError, NoThread, ProviderError, ThreadExists
from everlong.windows import Registry
from everlong.wire import Usage, document_of

__all__ = ["BlockingEngine", "Engine"]

MESSAGES = 'a list of messages, such as [{"role": "user", "content": "hello"}]'
BY_HAND = "asked for"
LITTLE = 0.95  # a compaction by hand that would leave more than this share is not worth its point


class BlockingEngine:
    """The engine for callers without an event loop: prepares every request, learns from every answer, recovers.

    Safe to use from several threads; waits for the store if it must.
    """

    def __init__(self, context: EngineContext) -> None:
        self.context = context

    def append(
        self, thread: str, messages: Sequence[Message] | Sequence[Mapping[str, Any]], *, owner: str = ""
    ) -> tuple[Row, ...]:
        """Add messages to a thread, values or dicts of any wire format; a thread that does not exist yet is created."""
        _expect_thread(thread)
        threads, values = self.context.threads, _values(messages)
        try:
            return threads.append(thread, values)
        except NoThread:
            with suppress(ThreadExists):  # two may come first at once
                threads.create(thread, owner=owner)
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

    def prepare(self, thread: str, call: Call) -> Prepared:
        """Return what to send now: it fits, is valid, and begins as the request before unless a compaction was due."""
        _expect_call(thread, call)
        return prepare(self.context, thread, call)

    def preview(self, thread: str, call: Call) -> Preview:
        """Return how full the window is: what would be sent now, looked at without sending it."""
        _expect_call(thread, call)
        return preview(self.context, thread, call)

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

    def compact(self, thread: str, call: Call) -> Point | None:
        """Compact now, down to the target, because someone asks for it. None if there is nothing worth compacting."""
        _expect_call(thread, call)
        engine = self.context
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
        engine = self.context
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
        return self.context.threads.pin(thread, order, text)

    def unpin(self, thread: str, pin: str) -> None:
        """Remove a pin."""
        _expect_thread(thread)
        expect_text("pin", pin, "the id of a pin")
        self.context.threads.unpin(thread, pin)

    def recall(self, thread: str, what: str, *, limit: int = 10) -> RecallResult:
        """Return what a reference names, byte for byte, or what answers a query."""
        _expect_thread(thread)
        expect_text("what", what, "a reference or a query")
        expect_number("limit", limit, "how many answers are wanted")
        return recall(self.context.threads, thread, what, limit=limit)

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


def _values(messages: Sequence[Message] | Sequence[Mapping[str, Any]]) -> tuple[Message, ...]:
    expect_list("messages", messages, MESSAGES)
    for at, message in enumerate(messages):
        expect(f"messages[{at}]", message, (Message, Mapping), "a Message or a dict of a wire format")
        if isinstance(message, Message):
            expect(f"messages[{at}].role", message.role, Role, "a Role, such as Role.USER")
            for part in message.parts:
                expect(f"a part of messages[{at}]", part, get_args(Part), "a part, such as Text('hello')")
    if all(isinstance(message, Message) for message in messages):
        return tuple(cast("Sequence[Message]", messages))
    if any(isinstance(message, Message) for message in messages):
        raise InputError("messages are either all Messages or all dicts")
    return document_of([dict(cast("Mapping[str, Any]", message)) for message in messages]).messages


class Engine:
    """Runs conversations that are kept in a store. One for a whole program.

    Counting, compacting and waiting for the store happen in worker threads; the event loop goes on meanwhile.
    """

    def __init__(
        self,
        threads: Threads,
        *,
        settings: Settings = DEFAULT_SETTINGS,
        registry: Registry | None = None,
        clock: Callable[[], datetime] | None = None,
        new_id: Callable[[], str] | None = None,
        observers: Sequence[Observer] = (),
    ) -> None:
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
        self.blocking = BlockingEngine(context)

    @property
    def threads(self) -> Threads:
        """The store."""
        return self.blocking.context.threads

    async def append(
        self, thread: str, messages: Sequence[Message] | Sequence[Mapping[str, Any]], *, owner: str = ""
    ) -> tuple[Row, ...]:
        """Add messages to a thread, values or dicts of any wire format; a thread that does not exist yet is created."""
        return await asyncio.to_thread(self.blocking.append, thread, messages, owner=owner)

    async def follow(self, thread: str, provider: Provider) -> tuple[Row, ...]:
        """Add what is new in a history of one's own to the thread; it is created if it does not exist yet.

        The words of user, assistant and system count; calls of tools and their results are in the thread alone. Raises
        InputError if what was read before is different now.
        """
        return await asyncio.to_thread(self.blocking.follow, thread, await provider.load(thread))

    async def prepare(self, thread: str, call: Call) -> Prepared:
        """Return what to send now: it fits, is valid, and begins as the request before unless a compaction was due."""
        return await asyncio.to_thread(self.blocking.prepare, thread, call)

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

    async def recall(self, thread: str, what: str, *, limit: int = 10) -> RecallResult:
        """Return what a reference names, byte for byte, or what answers a query."""
        return await asyncio.to_thread(self.blocking.recall, thread, what, limit=limit)

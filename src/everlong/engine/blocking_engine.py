"""The engine without an event loop: every method does its work in the calling thread, and may wait for the store."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias, cast, get_args

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
from everlong.engine.contracts import Call, Finished, Model, Prepared, ToolLike
from everlong.engine.histories.deleted import erase_messages, remove_messages, restore_messages
from everlong.engine.histories.followed import FollowedHistories, held_history
from everlong.engine.histories.sizes import Sizes, prepare_by_sizes
from everlong.engine.preview import Preview, preview
from everlong.engine.recall.request import MOST_RECALLED, RecallResult, recall, recall_text
from everlong.engine.recovery import recover
from everlong.engine.requests.assembly import remember, standing
from everlong.engine.requests.compaction import compact_now, planned_point
from everlong.engine.requests.preparation import prepare
from everlong.engine.thread import EngineContext, newest_compaction, work_on
from everlong.engine.turn import says_something
from everlong.engine.usage import record_failure, record_usage
from everlong.errors import ContextOverflow, InputError, NoThread, ProviderError, ThreadExists
from everlong.wire import Usage, error_from, finished_from, format_named, library_of, plain

if TYPE_CHECKING:
    from everlong.engine.engine import Engine

__all__ = ["Appended", "BlockingEngine"]

MESSAGES = 'a list of messages, such as [{"role": "user", "content": "hello"}]'
BY_HAND = "requested"
LITTLE = 0.95  # a requested compaction that would leave more than this share is not worth making
#: What `append` accepts: user text, one message, or a list of messages of any kind that `fit` accepts.
Appended: TypeAlias = str | Message | Mapping[str, Any] | Sequence[Any]


class BlockingEngine:
    """The engine without an event loop: the same methods as `Engine`, as plain functions. Get it as `engine.blocking`.

    Safe to use from several threads. A call waits for the store if necessary.
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
        """Add a user message to a thread, send the thread to the model, and return the answer. See `Engine.ask`."""
        answer = self._engine.ask(thread, text, model=model, tools=tools, system=system, call=call, owner=owner)
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(answer)
        answer.close()
        raise InputError("engine.blocking cannot be used in a running event loop: write `await engine.ask(…)` instead")

    def append(
        self, thread: str, messages: Appended, *, owner: str | None = None, ids: Sequence[str] | None = None
    ) -> tuple[Row, ...]:
        """Add one or more messages to a thread, and create the thread if it does not exist. See `Engine.append`."""
        self.expect_owner(thread, owner)
        threads, values = self.context.threads, _values(messages)
        try:
            rows = threads.append(thread, values, ids=ids)
        except NoThread:
            with suppress(ThreadExists):  # another caller may create it at the same moment
                threads.create(thread, owner=owner or "")
            rows = threads.append(thread, values, ids=ids)
        if self.context.vectors is not None:
            self.context.vectors.arrive(thread)
        return rows

    def follow(self, thread: str, messages: Sequence[Message] | Sequence[Mapping[str, Any]]) -> tuple[Row, ...]:
        """Add the new messages of a history that you store elsewhere. See `Engine.follow`."""
        _expect_thread(thread)
        values = [message for message in _values(messages) if _line(message)]
        with self.context.states.lock(thread):
            try:
                entries = [row.entry for row in self.context.threads.read(thread)]
            except NoThread:
                entries = []
            known = [line for entry in entries if isinstance(entry, Message) and (line := _line(entry))]
            if any(before != _line(now) for before, now in zip(known, values, strict=False)):
                raise InputError(
                    f"earlier messages of {thread!r} have changed: remove the thread, then follow it again"
                )
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
        """Return the next request of a thread: it fits, it is valid, and its prefix is stable. See `Engine.prepare`."""
        _expect_call(thread, call)
        self.expect_owner(thread, owner)
        if history is None:
            return prepare(self.context, thread, call)
        expect_list("history", history, MESSAGES)
        held = held_history(history, call.fmt, library)
        now, with_head = self._histories.follow(thread, held, call, owner=owner)
        return replace(prepare(self.context, now, with_head), held=held)

    def prepare_by_sizes(self, thread: str, call: Call, sizes: Sizes, own: str = "{}") -> Prepared | None:
        """Prepare a request whose messages the caller sends unchanged, by their sizes alone; see `histories.sizes`."""
        return prepare_by_sizes(self.context, thread, call, sizes, own)

    def preview(self, thread: str, call: Call) -> Preview:
        """Return how full the context window is, without sending anything. See `Engine.preview`."""
        _expect_call(thread, call)
        return preview(self.context, self._histories.current(thread), call)

    def record_usage(
        self, prepared: Prepared, usage: Usage | None, *, stop: str = "stop", said: bool = True
    ) -> ContextOverflow | None:
        """Record the usage of an answer, for programs that call the model themselves. See `Engine.record_usage`."""
        _expect_prepared(prepared)
        return record_usage(self.context, prepared, usage, stop=stop, said=said)

    def record_failure(self, prepared: Prepared, reason: str) -> None:
        """Record that the call failed and end its turn."""
        _expect_prepared(prepared)
        record_failure(self.context, prepared, reason)

    def recover(self, prepared: Prepared, error: ProviderError) -> Prepared:
        """Return another request to try after a refusal. See `Engine.recover`."""
        _expect_prepared(prepared)
        expect("error", error, ProviderError, "a ProviderError")
        return recover(self.context, prepared, error)

    def answered(self, prepared: Prepared, response: object) -> Prepared | None:
        """Record the answer to a request and add it to the thread. See `Engine.answered`."""
        _expect_prepared(prepared)
        usage, finished = _answer(prepared.call.fmt, response)
        stop = "stop" if finished is None else finished.stop
        has_text = finished is None or says_something(finished.message)
        hidden = self.record_usage(prepared, usage, stop=stop, said=has_text)
        if hidden is not None:
            return self.refused(prepared, hidden)
        if finished is not None and prepared.held is None:
            self.append(prepared.thread, [finished.message])
        return None

    def refused(self, prepared: Prepared, error: BaseException) -> Prepared:
        """Return another request to send after an SDK or a framework raised an exception. See `Engine.refused`."""
        expect("error", error, BaseException, "the exception that the call raised")
        again = self.recover(prepared, error_from(error))
        return replace(again, held=prepared.held)

    def compact(self, thread: str, call: Call) -> Point | None:
        """Compact a thread now, down to the target. See `Engine.compact`."""
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
        """Undo the newest compaction of a thread. See `Engine.undo`."""
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
                tokens_before=point.entry.sizes[1],
                tokens_after=point.entry.sizes[0],
            )
            return point

    def remove_messages(self, thread: str, orders: Sequence[int]) -> tuple[int, ...]:
        """Delete messages from a thread; `restore_messages` brings them back. See `Engine.remove_messages`."""
        return remove_messages(self.context, self._deletable(thread, orders), orders)

    def restore_messages(self, thread: str, orders: Sequence[int]) -> tuple[int, ...]:
        """Restore deleted messages, with everything that was deleted with them. Returns the orders of the messages."""
        return restore_messages(self.context, self._deletable(thread, orders), orders)

    def erase_messages(self, thread: str, orders: Sequence[int]) -> dict[str, tuple[int, ...]]:
        """Erase messages from the store permanently. See `Engine.erase_messages`."""
        return erase_messages(self.context, self._deletable(thread, orders), orders)

    def _deletable(self, thread: str, orders: Sequence[int]) -> str:
        _expect_thread(thread)
        expect_list("orders", orders, "a list of positions of messages in the thread")
        for at, order in enumerate(orders):
            expect_number(f"orders[{at}]", order, "the position of a message in the thread")
        if not orders:
            raise InputError("orders is empty: name at least one message")
        return self._histories.current(thread)

    def pin(self, thread: str, order: int | None = None, text: str = "") -> Pin:
        """Keep a message, or a text of your own, in every request. See `Engine.pin`."""
        _expect_thread(thread)
        expect_text("text", text)
        if (order is None) == (not text):
            raise InputError("pin needs either the order of a message or a text")
        if order is not None:
            expect_number("order", order, "the position of a message in the thread")
        return self.context.threads.pin(self._histories.current(thread), order, text)

    def unpin(self, thread: str, pin: str) -> None:
        """Remove a pin, by its id."""
        _expect_thread(thread)
        expect_text("pin", pin, "the id of a pin")
        self.context.threads.unpin(self._histories.current(thread), pin)

    def recall(self, thread: str, what: str, *, limit: int = 10, owner: str | None = None) -> RecallResult:
        """Return the original behind a reference, or the messages that answer a query. See `Engine.recall`."""
        _expect_thread(thread)
        self.expect_owner(thread, owner)
        expect_text("what", what, "a reference or a query")
        expect_number("limit", limit, "the most messages to return")
        return recall(self.context.threads, self._histories.current(thread), what, limit=limit)

    def recall_text(self, thread: str, what: str, *, start: int = 0, most: int = MOST_RECALLED) -> str:
        """Return the text that a model reads when it calls the recall tool with a reference or a few words."""
        _expect_thread(thread)
        expect_text("what", what, "a reference or a query")
        return recall_text(self.context.threads, self._histories.current(thread), what, start=start, most=most)

    def expect_owner(self, thread: str, owner: str | None) -> None:
        """Raise NoThread if the thread exists and belongs to someone else. See `Engine.expect_owner`."""
        _expect_thread(thread)
        if owner is None:
            return
        expect_text("owner", owner, "the name of an owner")
        try:
            known = self.context.threads.thread(thread)
        except NoThread:  # the first append creates it
            return
        if known.owner != owner:
            raise NoThread(f"there is no thread {thread!r} that belongs to {owner!r}")

    def forget(self, thread: str) -> None:
        """Drop what is held in memory about a thread. Nothing stored changes."""
        state = self.context.states.get(thread)
        if state is not None:
            self.context.states.put(thread, replace(state, view=None, raw=None, anchor=None))


def _line(message: Message) -> tuple[Role, str] | None:
    """Return role and text, as a table stores them; None for calls and results."""
    text = message.text
    return (message.role, text) if text and message.role is not Role.TOOL else None


def _expect_thread(thread: str) -> None:
    expect_text("thread", thread, "the name of a thread")


def _expect_call(thread: str, call: Call) -> None:
    _expect_thread(thread)
    expect("call", call, Call, 'a Call, such as Call(model="gpt-4o")')


def _expect_prepared(prepared: Prepared) -> None:
    expect("prepared", prepared, Prepared, "the result of prepare")


def _values(messages: Appended) -> History:
    if isinstance(messages, str):
        return (Message(Role.USER, (Text(messages),)),)
    items = [messages] if isinstance(messages, Message | Mapping) else messages
    expect_list("messages", items, f"a string, a message, or {MESSAGES}")
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
    """Return the usage, and the answer itself if the response has it."""
    if isinstance(response, Usage) or response is None:
        return response, None
    if isinstance(response, Finished):
        return response.usage, response
    events = plain(list(response) if isinstance(response, Sequence) else [response])
    finished = finished_from(format_named(fmt).reader(), cast("list[Json]", events))
    return finished.usage, finished

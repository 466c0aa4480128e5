"""The agent: which turn runs. One turn at a time for each thread, any number of threads side by side.

Owns the lanes (who runs, who waits, who is interrupted) and what a turn is given. What happens in one is in `turn`.
"""

import asyncio
import json
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal, TypeAlias

from everlong.agent.calls import CallContext, close_calls, make_typed
from everlong.agent.config import DEFAULT_CONFIG, AgentConfig
from everlong.agent.definitions import Outcome, Place, Tool
from everlong.agent.events import AgentEvent, Report, TurnEnded
from everlong.agent.permissions.action import Action, Answer
from everlong.agent.permissions.permissions import Permissions
from everlong.agent.standing_context import NO_STANDING_CONTEXT, StandingContext
from everlong.agent.tools.recall import RECALL
from everlong.agent.turn import Turn
from everlong.agent.words import Words, words_in
from everlong.core import CallId, History, Json, JsonObject, JsonText, Message, Role, Row, Text, ToolCall
from everlong.engine import Call, Engine, Model, whole
from everlong.errors import InputError, NoThread, ThreadExists
from everlong.relevance import language_of
from everlong.wire import format_named

__all__ = ["Agent", "Kind", "schemas_of"]

#: Who speaks: a person, or something that happened (a timer, a background job). again: the message is the last of the
#: thread already, and is answered once more.
Kind: TypeAlias = Literal["user", "system", "again"]


@dataclass(slots=True, eq=False)
class _Pending:
    """A message for a thread. `awaited`: its sender runs a turn for it; `taken`: a turn has it."""

    message: Message
    awaited: bool
    again: bool = False
    #: Whether a person said it; an event of the system names no files that may be changed.
    spoken: bool = True
    taken: bool = False


@dataclass(slots=True)
class _Lane:
    """One thread: the turn that runs, and the messages that came meanwhile."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    pending: deque[_Pending] = field(default_factory=deque)
    task: "asyncio.Task[None] | None" = None

    def take(self, last: bool) -> History:
        """Take the messages that came meanwhile; at the end of a turn only those that no other turn will answer."""
        chosen = [entry for entry in self.pending if not entry.again and not (last and entry.awaited)]
        for entry in chosen:
            entry.taken = True
            self.pending.remove(entry)
        return tuple(entry.message for entry in chosen)

    @property
    def running(self) -> bool:
        return self.task is not None and not self.task.done()

    @property
    def idle(self) -> bool:
        return self.task is None and not self.pending and not self.lock.locked()


class Agent:
    """Runs turns with tools on the threads of an engine. Belongs to one event loop.

    `permissions` decides what its tools may do; without it the configuration alone does, and nobody is asked.
    """

    def __init__(
        self,
        engine: Engine,
        model: Model,
        tools: Sequence[Tool] = (),
        config: AgentConfig = DEFAULT_CONFIG,
        standing: StandingContext = NO_STANDING_CONTEXT,
        permissions: Permissions | None = None,
    ) -> None:
        self.engine = engine
        self.model = model
        self.config = config
        self.standing = standing
        self.tools = tuple(tool for tool in tools if config.allows(tool.name))
        self._permissions = config.permissions() if permissions is None else permissions
        self._lanes: dict[str, _Lane] = {}
        _check_names(self.tools)
        self._schemas = schemas_of(self.tools, model.fmt)

    async def turn(self, thread: str, message: Message | str, kind: Kind = "user") -> AsyncGenerator[AgentEvent, None]:
        """Answer a message; yield what happens, event by event. The last is TurnEnded. Closing it interrupts the turn.

        While another turn of the thread runs, the message enters that one at its next step ("joined"), or has its own
        turn afterwards. Raises StoreError where the store fails.
        """
        lane = self._lanes.setdefault(thread, _Lane())
        entry = _Pending(self._message(message, kind), awaited=True, again=kind == "again", spoken=kind != "system")
        lane.pending.append(entry)
        if lane.running and entry.spoken:
            self._permissions.gate(thread).hear(entry.message, more=True)
        try:
            async with lane.lock:
                if entry.taken:
                    yield TurnEnded("joined", 0)
                    return
                lane.pending.remove(entry)
                entry.taken = True
                queue: asyncio.Queue[AgentEvent | None] = asyncio.Queue()
                lane.task = asyncio.create_task(
                    self._work(thread, lane, entry, queue.put_nowait), name=f"turn {thread}"
                )
                try:
                    async for event in _events(lane.task, queue):
                        yield event
                finally:
                    await _stop(lane.task)
                    lane.task = None
        finally:
            with suppress(ValueError):
                lane.pending.remove(entry)
            if lane.idle:
                self._lanes.pop(thread, None)

    def steer(self, thread: str, message: Message | str, kind: Kind = "user") -> bool:
        """Give the running turn a message; it enters at the next step. False, and nothing is kept, if none runs."""
        lane = self._lanes.get(thread)
        if lane is None or not lane.running:
            return False
        entry = _Pending(self._message(message, kind), awaited=False)
        lane.pending.append(entry)
        if kind == "user":
            self._permissions.gate(thread).hear(entry.message, more=True)
        return True

    def interrupt(self, thread: str) -> bool:
        """Stop the running turn; return whether there was one. Its last event says so, and the thread stays valid."""
        lane = self._lanes.get(thread)
        return lane is not None and lane.task is not None and lane.task.cancel()

    async def run_typed(self, thread: str, name: str, arguments: JsonObject) -> Outcome:
        """Run a tool as a person typed it in a thread; the outcome enters no thread.

        Having typed it is the answer to what would be asked; what is denied stays denied, and the sandbox is the same.
        Raises InputError, in one line, if it is denied or there is no such tool.
        """
        if not any(tool.name == name for tool in self.tools):
            raise InputError(f"there is no tool {name} here")
        gate = replace(self._permissions, ask=_answer_once).gate(thread)
        text = json.dumps(arguments)
        context = self._context(thread, self._words(text))
        place = replace(context.place(""), gate=gate)
        return await make_typed(ToolCall(CallId(""), name, text), replace(context, place=lambda _: place))

    def running(self, thread: str) -> bool:
        """Whether a turn of the thread runs."""
        lane = self._lanes.get(thread)
        return lane is not None and lane.running

    async def call(self, thread: str, *, parent: str = "") -> Call:
        """Return the call that the next step would make: model, tools, and the standing context as it is now."""
        stable, volatile = await asyncio.to_thread(self.standing.now, thread)
        return Call(
            model=self.config.model,
            tools=self._schemas,
            max_tokens=self.config.max_tokens,
            temperature=self.config.temperature,
            parent=parent,
            recall_tool=RECALL if any(tool.name == RECALL for tool in self.tools) else "",
            standing=stable,
            tail=volatile,
        )

    async def _work(self, thread: str, lane: _Lane, entry: _Pending, report: Report) -> None:
        """Run the turn from its first append to its last event. An interrupted one ends as a turn too."""
        words = self._words(entry.message)
        turn = None
        if entry.spoken:
            self._permissions.gate(thread).hear(entry.message)
        try:
            await close_calls(self.engine, thread, words.crashed)
            row = await whole(self._begin(thread, entry))
            turn = Turn(
                engine=self.engine,
                model=self.model,
                thread=thread,
                context=self._context(thread, words),
                call=partial(self.call, thread, parent=row.id),
                take_pending=lane.take,
                unanswered=(entry.message,),
                report=report,
                most_steps=self.config.most_steps,
                most_tokens=self.config.most_tokens,
            )
            end = await turn.run()
        except asyncio.CancelledError:
            end = TurnEnded("interrupted", *((turn.steps, turn.tokens) if turn else (0, 0)))
        finally:
            await close_calls(self.engine, thread, words.interrupted)
        messages = lane.take(last=True)
        if messages:  # they were meant for a turn that is over: kept, and read with the next
            await whole(self._append(thread, messages))
        report(end)

    async def _begin(self, thread: str, entry: _Pending) -> Row:
        """Append the message, to a new thread after the system text; return its row. One that stands there is found."""
        if entry.again:
            newest = await asyncio.to_thread(self.engine.threads.last, thread, 1)
            if newest:
                return newest[-1]
        system: History = ()
        try:
            stored = await asyncio.to_thread(self.engine.threads.thread, thread)
            empty = stored.length == 0
        except NoThread:
            empty = True
            with suppress(ThreadExists):
                await asyncio.to_thread(partial(self.engine.threads.create, thread, owner=self.config.owner))
        if empty and self.config.system:
            system = (Message(Role.SYSTEM, (Text(self.config.system),)),)
        return (await self._append(thread, (*system, entry.message)))[-1]

    async def _append(self, thread: str, messages: History) -> tuple[Row, ...]:
        return await self.engine.append(thread, messages, owner=self.config.owner or None)

    def _context(self, thread: str, words: Words) -> CallContext:
        place = Place(
            thread=thread,
            call="",
            workspace=self.config.workspace,
            allowed=self.config.allowed,
            gate=self._permissions.gate(thread),
        )
        return CallContext(
            tools={tool.name: tool for tool in self.tools},
            place=lambda call: replace(place, call=call),
            seconds=self.config.tool_seconds,
            grace=self.config.stop_seconds,
            words=words,
        )

    def _message(self, message: Message | str, kind: Kind) -> Message:
        if isinstance(message, Message):
            if message.role is not Role.USER:
                raise InputError(f"an agent answers user messages, not a message of {message.role}")
            return message
        text = self._words(message).event.format(text=message) if kind == "system" else message
        return Message(Role.USER, (Text(text),))

    def _words(self, message: Message | str) -> Words:
        """Return the texts in the language of the message, unless the configuration names one."""
        if self.config.language != "auto":
            return words_in(self.config.language)
        return words_in(language_of([message if isinstance(message, str) else message.text]))


async def _answer_once(_: Action) -> Answer:
    return Answer.ONCE


def schemas_of(tools: Sequence[Tool], fmt: str) -> tuple[JsonText, ...]:
    """Return the tools in the order given, as the format declares them.

    Raises InputError for a tool whose parameters are not JSON.
    """
    declare = format_named(fmt).tools.declare
    schemas = []
    for tool in tools:
        try:
            parameters: Json = json.loads(tool.parameters)
        except ValueError as error:
            raise InputError(f"the parameters of tool {tool.name!r} are not a JSON schema: {error}") from None
        schemas.append(json.dumps(declare(tool.name, tool.description, parameters), ensure_ascii=False))
    return tuple(schemas)


def _check_names(tools: Sequence[Tool]) -> None:
    names = [tool.name for tool in tools]
    duplicates = sorted({name for name in names if names.count(name) > 1})
    if duplicates:
        raise InputError(f"two tools have the same name: {', '.join(duplicates)}")


async def _events(
    task: "asyncio.Task[None]", queue: "asyncio.Queue[AgentEvent | None]"
) -> AsyncGenerator[AgentEvent, None]:
    """Yield the events of a turn until it is over; raise what the store raised."""
    task.add_done_callback(lambda _: queue.put_nowait(None))
    last: AgentEvent | None = None
    while (event := await queue.get()) is not None:
        last = event
        yield event
    if task.cancelled() and not isinstance(last, TurnEnded):
        yield TurnEnded("interrupted", 0)
    elif not task.cancelled():
        task.result()


async def _stop(task: "asyncio.Task[None]") -> None:
    """Stop the turn if it still runs, and wait until every call has its result."""
    if not task.done():
        task.cancel()
        await whole(_wait(task))


async def _wait(task: "asyncio.Task[None]") -> None:
    await asyncio.wait((task,))

"""The agent: schedule turns. One turn at a time per thread, any number of threads in parallel.

Owns the lanes (which turn runs, which messages wait, what is interrupted) and the context of a turn. `turn` runs one.
"""

import asyncio
import json
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal, TypeAlias
from uuid import uuid4

from everlong.agent.calls import CallContext, close_calls, make_typed
from everlong.agent.config import DEFAULT_CONFIG, AgentConfig
from everlong.agent.definitions import Outcome, Place, Tool
from everlong.agent.events import AgentEvent, Report, TurnEnded
from everlong.agent.permissions.action import Action, Answer
from everlong.agent.permissions.permissions import Permissions
from everlong.agent.standing_context import NO_STANDING_CONTEXT, StandingContext
from everlong.agent.tools.recall import RECALL
from everlong.agent.turn import Saying, Turn
from everlong.agent.words import Words, words_in
from everlong.core import CallId, Json, JsonObject, JsonText, Message, Role, Row, Text, ToolCall
from everlong.engine import Call, Engine, Model, whole
from everlong.errors import InputError, NoThread, ThreadExists
from everlong.relevance import language_of
from everlong.wire import format_named

__all__ = ["Agent", "Kind", "schemas_of"]

#: What starts the turn. user: a person's message. system: an event, such as a timer or a background job. again: answer
#: the last message of the thread once more. continue: write the rest of the last answer, which broke off.
Kind: TypeAlias = Literal["user", "system", "again", "continue"]


@dataclass(slots=True, eq=False)
class _Pending:
    """A message for a thread. `awaited`: its sender runs a turn for it; `taken`: a turn has it."""

    saying: Saying
    awaited: bool
    again: bool = False
    #: Whether the rest of the last answer is wanted.
    rest: bool = False
    #: Whether a person wrote it. A system event grants no permission to change the files that it names.
    spoken: bool = True
    taken: bool = False

    @property
    def message(self) -> Message:
        return self.saying.message


@dataclass(slots=True)
class _Lane:
    """The state of one thread: its running turn, and the messages that arrived during it."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    pending: deque[_Pending] = field(default_factory=deque)
    task: "asyncio.Task[None] | None" = None

    def take(self, last: bool) -> tuple[Saying, ...]:
        """Take the messages that arrived during the turn; with `last`, only those that no other turn will answer."""
        chosen = [entry for entry in self.pending if not entry.again and not (last and entry.awaited)]
        for entry in chosen:
            entry.taken = True
            self.pending.remove(entry)
        return tuple(entry.saying for entry in chosen)

    @property
    def running(self) -> bool:
        return self.task is not None and not self.task.done()

    @property
    def idle(self) -> bool:
        return self.task is None and not self.pending and not self.lock.locked()


class Agent:
    """An agent: runs turns with tools on the threads of an engine. Use it in one event loop only.

    - `engine`, `model`: the engine, and the model that answers.
    - `tools`: the tools, from `@tool`, `everlong.agent` or an MCP server. The configuration may exclude some.
    - `config`: model name, workspace, limits and everything else that can be configured.
    - `standing`: text that is rebuilt for every request, such as the contents of instruction files.
    - `permissions`: what its tools may do. Without it the configuration decides, and nobody is asked.
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

    async def turn(
        self, thread: str, message: Message | str, kind: Kind = "user", name: str = ""
    ) -> AsyncGenerator[AgentEvent, None]:
        """Answer a message and yield what happens, event by event. The last event is TurnEnded.

        Closing the iterator interrupts the turn. If another turn of the thread is running, the message joins it at its
        next step ("joined"), or gets its own turn afterwards. `name` is the id of the message's row in the thread.
        Raises StoreError if the store fails.
        """
        lane = self._lanes.setdefault(thread, _Lane())
        entry = _Pending(
            self._saying(message, kind, name),
            awaited=True,
            again=kind in ("again", "continue"),
            rest=kind == "continue",
            spoken=kind != "system",
        )
        lane.pending.append(entry)
        if lane.running and entry.spoken:
            self._permissions.gate(thread).note_message(entry.message, more=True)
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

    def steer(self, thread: str, message: Message | str, kind: Kind = "user", name: str = "") -> bool:
        """Add a message to the running turn at its next step. Returns False, storing nothing, if no turn is running."""
        lane = self._lanes.get(thread)
        if lane is None or not lane.running:
            return False
        entry = _Pending(self._saying(message, kind, name), awaited=False)
        lane.pending.append(entry)
        if kind == "user":
            self._permissions.gate(thread).note_message(entry.message, more=True)
        return True

    def interrupt(self, thread: str) -> bool:
        """Stop the running turn and return whether there was one. Its last event reports it; the thread stays valid."""
        lane = self._lanes.get(thread)
        return lane is not None and lane.task is not None and lane.task.cancel()

    async def run_typed(self, thread: str, name: str, arguments: JsonObject) -> Outcome:
        """Run a tool that a person typed. The outcome is not added to the thread.

        Typing it counts as permission, but what is denied stays denied, and the sandbox is the same. Raises InputError
        if the tool is denied or does not exist.
        """
        if not any(tool.name == name for tool in self.tools):
            raise InputError(f"there is no tool {name}")
        gate = replace(self._permissions, ask=_answer_once).gate(thread)
        text = json.dumps(arguments)
        context = self._context(thread, self._words(text))
        place = replace(context.place(""), gate=gate)
        return await make_typed(ToolCall(CallId(""), name, text), replace(context, place=lambda _: place))

    def running(self, thread: str) -> bool:
        """Return whether a turn of the thread is running."""
        lane = self._lanes.get(thread)
        return lane is not None and lane.running

    async def call(self, thread: str, *, parent: str = "") -> Call:
        """Return the call that the next step would make: the model, the tools and the current standing context."""
        stable, volatile = await asyncio.to_thread(self.standing.now, thread)
        return Call(
            model=self.config.model,
            tools=self._schemas,
            max_tokens=self.config.max_tokens,
            temperature=self.config.temperature,
            extra=self.config.extra,
            parent=parent,
            recall_tool=RECALL if any(tool.name == RECALL for tool in self.tools) else "",
            standing=stable,
            tail=volatile,
        )

    async def _work(self, thread: str, lane: _Lane, entry: _Pending, report: Report) -> None:
        """Run a turn from its first append to its last event. An interrupted turn reports its end too."""
        words = self._words(entry.message)
        turn = None
        if entry.spoken:
            self._permissions.gate(thread).note_message(entry.message)
        try:
            await close_calls(self.engine, thread, words.crashed)
            row = await whole(self._begin(thread, entry))
            turn = Turn(
                engine=self.engine,
                model=self.model,
                thread=thread,
                context=self._context(thread, words),
                call=partial(self.call, thread, parent=row.id),
                first_note=words.go_on if entry.rest else "",
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
        sayings = lane.take(last=True)
        if sayings:  # they came too late for this turn: store them, and the next turn reads them
            await whole(self._append(thread, sayings))
        report(end)

    async def _begin(self, thread: str, entry: _Pending) -> Row:
        """Append the message, after the system text if the thread is empty; return its row. `again`: it is stored."""
        if entry.again:
            newest = await asyncio.to_thread(self.engine.threads.last, thread, 1)
            if newest:
                return newest[-1]
        system: tuple[Saying, ...] = ()
        try:
            stored = await asyncio.to_thread(self.engine.threads.thread, thread)
            empty = stored.length == 0
        except NoThread:
            empty = True
            with suppress(ThreadExists):
                await asyncio.to_thread(partial(self.engine.threads.create, thread, owner=self.config.owner))
        if empty and self.config.system:
            system = (Saying(Message(Role.SYSTEM, (Text(self.config.system),)), _new_name()),)
        return (await self._append(thread, (*system, entry.saying)))[-1]

    async def _append(self, thread: str, sayings: Sequence[Saying]) -> tuple[Row, ...]:
        messages, names = [one.message for one in sayings], [one.name for one in sayings]
        return await self.engine.append(thread, messages, owner=self.config.owner or None, ids=names)

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

    def _saying(self, message: Message | str, kind: Kind, name: str) -> Saying:
        return Saying(self._message(message, kind), name or _new_name())

    def _message(self, message: Message | str, kind: Kind) -> Message:
        if isinstance(message, Message):
            if message.role is not Role.USER:
                raise InputError(f"an agent answers user messages, not {message.role} messages")
            return message
        text = self._words(message).event.format(text=message) if kind == "system" else message
        return Message(Role.USER, (Text(text),))

    def _words(self, message: Message | str) -> Words:
        """Return the texts in the language of the message, unless the configuration names one."""
        if self.config.language != "auto":
            return words_in(self.config.language)
        return words_in(language_of([message if isinstance(message, str) else message.text]))


def _new_name() -> str:
    return uuid4().hex


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
    """Yield the events of a turn until it ends, then raise its error, if it had one."""
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

"""The agent: whose turn it is. One turn at a time for each thread, as many threads as there are.

Owns the lanes (who runs, who waits, who is interrupted) and what a turn is given; what happens in one is in `turns`.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal, TypeAlias

from everlong.agent.calls import CRASHED, INTERRUPTED, Bench, close_calls
from everlong.agent.config import DEFAULT_CONFIG, AgentConfig
from everlong.agent.definitions import Approve, Place, Tool, schemas_of
from everlong.agent.events import AgentEvent, Tell, TurnEnded
from everlong.agent.standing_context import NOTHING, Standing
from everlong.agent.turn import Turn
from everlong.core import History, Message, Role, Row, Text
from everlong.engine import Call, Engine, Model, whole
from everlong.errors import InputError, NoThread, ThreadExists
from everlong.relevance import language_of

__all__ = ["Agent", "Kind"]

#: Who speaks: a person, or something that happened (a timer, a background job). again: what is said stands last in the
#: thread already, and is answered once more.
Kind: TypeAlias = Literal["user", "system", "again"]

RECALL = "recall"  # the tool that returns what left the window, where there is one
EVENT = {
    "en": "[An event of the system, not a message of the user]\n{text}",
    "zh": "[系统事件，不是用户的消息]\n{text}",
}


async def _nobody(name: str, what: str) -> bool:  # noqa: ARG001 - nobody to ask
    return False


@dataclass(slots=True, eq=False)
class _Said:
    """Something said to a thread. `waits` is whether who said it will run a turn for it; `taken` whether one has it."""

    message: Message
    waits: bool
    again: bool = False
    taken: bool = False


@dataclass(slots=True)
class _Lane:
    """One thread: the turn that runs, and what was said meanwhile."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    said: deque[_Said] = field(default_factory=deque)
    task: "asyncio.Task[None] | None" = None

    def take(self, last: bool) -> History:
        """What was said since; at the end of a turn only what nobody else waits to answer."""
        chosen = [said for said in self.said if not said.again and not (last and said.waits)]
        for said in chosen:
            said.taken = True
            self.said.remove(said)
        return tuple(said.message for said in chosen)

    @property
    def idle(self) -> bool:
        return self.task is None and not self.said and not self.lock.locked()


class _Queue(Tell):
    """Events on their way to whoever reads the turn; None is the end."""

    def __init__(self) -> None:
        self.events: asyncio.Queue[AgentEvent | None] = asyncio.Queue()

    def __call__(self, event: AgentEvent | None) -> None:
        self.events.put_nowait(event)


class Agent:
    """Runs turns with tools on the threads of an engine. Belongs to one event loop.

    `approve` is asked before tools act on the world, as `config.approval` says.
    """

    def __init__(
        self,
        engine: Engine,
        model: Model,
        tools: Sequence[Tool] = (),
        config: AgentConfig = DEFAULT_CONFIG,
        standing: Standing = NOTHING,
        approve: Approve = _nobody,
    ) -> None:
        self.engine = engine
        self.model = model
        self.config = config
        self.standing = standing
        self.tools = tuple(tool for tool in tools if config.allows(tool.name))
        self._approve = config.approving(approve)
        self._lanes: dict[str, _Lane] = {}
        _check_names(self.tools)
        self._schemas = schemas_of(self.tools, model.fmt)

    async def turn(self, thread: str, said: Message | str, kind: Kind = "user") -> AsyncGenerator[AgentEvent, None]:
        """What comes of it, event by event; the last is TurnEnded. Closing it interrupts the turn.

        While another turn of the thread runs, what is said enters that one at its next step ("joined"), or has its own
        turn afterwards. Raises StoreError where the store fails.
        """
        lane = self._lanes.setdefault(thread, _Lane())
        entry = _Said(_message(said, kind, self._language(said)), waits=True, again=kind == "again")
        lane.said.append(entry)
        try:
            async with lane.lock:
                if entry.taken:
                    yield TurnEnded("joined", 0)
                    return
                lane.said.remove(entry)
                entry.taken = True
                queue = _Queue()
                lane.task = asyncio.create_task(self._work(thread, lane, entry, queue), name=f"turn {thread}")
                try:
                    async for event in _told(lane.task, queue):
                        yield event
                finally:
                    await _ended(lane.task)
                    lane.task = None
        finally:
            with suppress(ValueError):
                lane.said.remove(entry)
            if lane.idle:
                self._lanes.pop(thread, None)

    def steer(self, thread: str, said: Message | str, kind: Kind = "user") -> bool:
        """Say something to the turn that runs; it enters at the next step. False, and nothing is kept, if none runs."""
        lane = self._lanes.get(thread)
        if lane is None or lane.task is None or lane.task.done():
            return False
        lane.said.append(_Said(_message(said, kind, self._language(said)), waits=False))
        return True

    def interrupt(self, thread: str) -> bool:
        """Stop the turn that runs; whether one did. Its last event says so, and the thread stays valid."""
        lane = self._lanes.get(thread)
        return lane is not None and lane.task is not None and lane.task.cancel()

    def running(self, thread: str) -> bool:
        """Whether a turn of the thread runs."""
        lane = self._lanes.get(thread)
        return lane is not None and lane.task is not None and not lane.task.done()

    async def call(self, thread: str, *, parent: str = "") -> Call:
        """The call that the next step would make: model, tools, and standing context as it is now."""
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

    async def _work(self, thread: str, lane: _Lane, entry: _Said, tell: "_Queue") -> None:
        """The turn from its first append to its last event. Interrupted, it ends as a turn too."""
        message = entry.message
        language = self._language(message)
        turn = None
        try:
            await close_calls(self.engine, thread, CRASHED[language])
            begun = await whole(self._begin(thread, entry))
            turn = Turn(
                engine=self.engine,
                model=self.model,
                thread=thread,
                bench=self._bench(thread, language),
                assembled=partial(self.call, thread, parent=begun.id),
                waiting=lane.take,
                asked=(message,),
                tell=tell,
                most_steps=self.config.most_steps,
                most_tokens=self.config.most_tokens,
            )
            ended = await turn.run()
        except asyncio.CancelledError:
            ended = TurnEnded("interrupted", *((turn.steps, turn.tokens) if turn else (0, 0)))
        finally:
            await close_calls(self.engine, thread, INTERRUPTED[language])
        left = lane.take(last=True)
        if left:  # said to a turn that is no more: kept, and read with the next
            await whole(self._append(thread, left))
        tell(ended)

    async def _begin(self, thread: str, entry: _Said) -> Row:
        """Append what was said, to a new thread the system text first; its row. What is there already is only found."""
        if entry.again:
            last = await asyncio.to_thread(self.engine.threads.last, thread, 1)
            if last:
                return last[-1]
        message = entry.message
        first: History = ()
        try:
            known = await asyncio.to_thread(self.engine.threads.thread, thread)
            empty = known.length == 0
        except NoThread:
            empty = True
            with suppress(ThreadExists):
                await asyncio.to_thread(partial(self.engine.threads.create, thread, owner=self.config.owner))
        if empty and self.config.system:
            first = (Message(Role.SYSTEM, (Text(self.config.system),)),)
        return (await self._append(thread, (*first, message)))[-1]

    async def _append(self, thread: str, messages: History) -> tuple[Row, ...]:
        return await self.engine.append(thread, messages, owner=self.config.owner)

    def _bench(self, thread: str, language: str) -> Bench:
        place = Place(
            thread=thread,
            call="",
            workspace=self.config.workspace,
            allowed=self.config.allowed,
            approve=self._approve,
        )
        return Bench(
            tools={tool.name: tool for tool in self.tools},
            place=lambda call: replace(place, call=call),
            seconds=self.config.tool_seconds,
            longer={"spawn": self.config.subagents.seconds},
            grace=self.config.stop_seconds,
            language=language,
        )

    def _language(self, said: Message | str) -> str:
        if self.config.language != "auto":
            return self.config.language
        return language_of([said if isinstance(said, str) else said.text])


def _message(said: Message | str, kind: Kind, language: str) -> Message:
    if isinstance(said, Message):
        if said.role is not Role.USER:
            raise InputError(f"what is said to an agent is a user message, not one of {said.role}")
        return said
    return Message(Role.USER, (Text(EVENT[language].format(text=said) if kind == "system" else said),))


def _check_names(tools: Sequence[Tool]) -> None:
    names = [tool.name for tool in tools]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"two tools have the same name: {', '.join(twice)}")


async def _told(task: "asyncio.Task[None]", queue: _Queue) -> AsyncGenerator[AgentEvent, None]:
    """The events of a turn until it is over; what the store raised is raised here."""
    task.add_done_callback(lambda _: queue(None))
    told: AgentEvent | None = None
    while (event := await queue.events.get()) is not None:
        told = event
        yield event
    if task.cancelled() and not isinstance(told, TurnEnded):
        yield TurnEnded("interrupted", 0)
    elif not task.cancelled():
        task.result()


async def _ended(task: "asyncio.Task[None]") -> None:
    """Stop it if it still runs, and wait until every call has its result."""
    if not task.done():
        task.cancel()
        await whole(_over(task))


async def _over(task: "asyncio.Task[None]") -> None:
    await asyncio.wait((task,))

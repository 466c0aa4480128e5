"""What tests of the agent share: tools of a few lines, an agent on a memory store, and a turn read to its end."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from everlong.agent.agent import Agent, Kind
from everlong.agent.config import AgentConfig
from everlong.agent.definitions import Outcome, Place, Tool, call_action
from everlong.agent.events import AgentEvent, CallEnded, TurnEnded
from everlong.agent.standing_context import NO_STANDING_CONTEXT, StandingContext
from everlong.core import History, JsonObject, Message, Role
from everlong.engine import Engine, Model, Settings, Threads
from everlong.errors import NoThread
from everlong.llm import Answer, ReceivedRequest
from everlong.store import MemoryThreads
from everlong.wire import valid

__all__ = ["CONFIG", "Act", "Ran", "asks_once", "calls_then", "ended", "reads", "run", "tool_of", "unanswered"]

T = TypeVar("T")
LONGEST = 120.0  # seconds; a test that waits for ever ends
CONFIG = AgentConfig(model="gpt-4o", max_tokens=500, system="Work carefully.", language="en")
ANY = '{"type": "object"}'
TAIL = ("[State of the work", "[Kept by the system")


def run(work: Awaitable[T]) -> T:
    """Run it in a loop of its own."""

    async def limited() -> T:
        return await asyncio.wait_for(work, LONGEST)

    return asyncio.run(limited())


@dataclass
class Ran:
    """Every call a tool was run for, by its arguments, in order."""

    calls: list[tuple[str, JsonObject]] = field(default_factory=list)

    def tool(
        self, name: str = "read", answer: Callable[[JsonObject], str] | None = None, *, asks: bool = False
    ) -> Tool:
        """A tool that writes down each call."""

        async def ran(arguments: JsonObject, place: Place) -> Outcome:
            self.calls.append((place.call, arguments))
            return Outcome(answer(arguments) if answer else f"result of {json.dumps(arguments)}")

        return tool_of(ran, name, asks=asks)


def tool_of(work: Callable[[JsonObject, Place], Awaitable[Outcome]], name: str = "read", *, asks: bool = False) -> Tool:
    acts = (lambda arguments, _: call_action(name, arguments)) if asks else None
    return Tool(name=name, description=f"The tool {name}.", parameters=ANY, run=work, action=acts)


def calls_then(rounds: Sequence[Sequence[tuple[str, str]]], text: str = "Done.") -> Callable[[ReceivedRequest], Answer]:
    """A script: one answer with these calls after the other, then words."""
    left = list(reversed(list(rounds)))

    def script(asked: ReceivedRequest) -> Answer:
        return Answer(calls=tuple(left.pop())) if left else Answer(text=text)

    return script


def reads(rounds: int) -> Callable[[ReceivedRequest], Answer]:
    """A script: after each user message so many calls, then an answer. What stands at the tail is no user message."""
    made = 0

    def script(asked: ReceivedRequest) -> Answer:
        nonlocal made
        said = [message for message in asked.messages if not message.text.startswith(TAIL)]
        made = 0 if said[-1].role is Role.USER else made
        made += 1
        if made > rounds:
            return Answer(text=f"Done with step {asked.number}.")
        return Answer(calls=(("read_file", f'{{"path": "src/file_{asked.number}.py"}}'),))

    return script


def asks_once(name: str = "read", arguments: str = "{}") -> Callable[[ReceivedRequest], Answer]:
    """A script that makes one call, then answers."""
    return calls_then([[(name, arguments)]])


@dataclass
class Act:
    """An agent with a thread."""

    model: Model
    tools: Sequence[Tool] = ()
    config: AgentConfig = CONFIG
    standing: StandingContext = NO_STANDING_CONTEXT
    threads: Threads = field(default_factory=MemoryThreads)
    thread: str = "t"

    def __post_init__(self) -> None:
        self.engine = Engine(self.threads, settings=self.config.engine)
        self.agent = Agent(self.engine, self.model, self.tools, self.config, self.standing)

    async def say(self, text: str, kind: Kind = "user") -> list[AgentEvent]:
        return [event async for event in self.agent.turn(self.thread, text, kind)]

    @property
    def stored(self) -> History:
        return tuple(row.entry for row in self.threads.read(self.thread) if isinstance(row.entry, Message))

    @property
    def results(self) -> list[str]:
        return [result.text for message in self.stored for result in message.results]

    def kinds(self) -> list[str]:
        try:
            return [event.kind.value for event in self.threads.events(self.thread)]
        except NoThread:
            return []

    def sound(self) -> None:
        """Every call has exactly one result, and every provider takes the thread as it is stored."""
        assert not unanswered(self.stored)
        for fmt in ("openai-chat", "anthropic"):
            assert valid(fmt, self.stored)


def unanswered(messages: History) -> list[str]:
    """Calls that have not exactly one result."""
    calls = [call.id for message in messages for call in message.calls]
    results = [result.call for message in messages for result in message.results]
    return [call for call in calls if results.count(call) != 1]


def ended(events: Sequence[AgentEvent]) -> TurnEnded:
    """How a turn ended: its last event, and only that."""
    assert [event for event in events if isinstance(event, TurnEnded)] == [events[-1]]
    last = events[-1]
    assert isinstance(last, TurnEnded)
    return last


def outcomes(events: Sequence[AgentEvent]) -> list[Outcome]:
    return [event.outcome for event in events if isinstance(event, CallEnded)]


def with_engine(**settings: object) -> AgentConfig:
    """The usual configuration with other settings of the engine."""
    return replace(CONFIG, engine=Settings(**settings))  # type: ignore[arg-type]


def roles(messages: History) -> list[Role]:
    return [message.role for message in messages]

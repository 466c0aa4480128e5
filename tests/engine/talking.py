"""What engine tests share: a thread, a model and turns between them, in process or over HTTP."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TypeVar

from everlong.core import OUTCOMES, Event, History, Message, Text, ToolResult
from everlong.engine.contracts import Call, Failed, Finished, Model, Reply, Threads
from everlong.engine.engine import Engine
from everlong.engine.settings import Settings
from everlong.engine.turn import converse
from everlong.llm import Endpoint, HttpModel, Patience, ScriptedServer
from everlong.store import MemoryThreads
from everlong.wire import format_named, valid
from tests.core.build import result, system, user

__all__ = ["FORMATS", "IMPATIENT", "Talk", "lawful", "over_http", "pages"]

FORMATS = ("anthropic", "gemini", "ollama", "openai-chat", "openai-responses")
IMPATIENT = Patience(connect=5.0, silence=20.0, attempts=1, pause=0.0)
LONGEST = 3_600.0  # seconds; a test that waits for ever ends
SYSTEM = "Work carefully."
T = TypeVar("T")


def pages(number: int, lines: int = 60) -> str:
    """A tool result of so many lines, different for each number."""
    return "\n".join(f"def function_{number}_{line}(): return {line * number}" for line in range(lines))


@dataclass
class Talk:
    """A conversation in a thread of its own."""

    model: Model
    settings: Settings = field(default_factory=Settings)
    call: Call = field(default_factory=lambda: Call(model="gpt-4o", max_tokens=500))
    thread: str = "talk"
    threads: Threads = field(default_factory=MemoryThreads)
    lines: int = 60

    def __post_init__(self) -> None:
        self.engine = Engine(self.threads, settings=self.settings)
        self.threads.create(self.thread)
        self.threads.append(self.thread, [system(SYSTEM)])

    async def say(self, text: str) -> list[Reply]:
        """A user message and all that comes of it: tools are answered until the model is done or fails."""
        await self.engine.append(self.thread, [user(text)])
        replies: list[Reply] = []
        while True:
            said = await self.ask()
            replies += said
            last = said[-1]
            if isinstance(last, Failed) or not last.message.calls:  # type: ignore[union-attr]
                return replies
            assert isinstance(last, Finished)
            await self.engine.append(self.thread, [self.answered(call.id) for call in last.message.calls])

    async def ask(self) -> list[Reply]:
        """One call for the thread as it stands."""
        return [reply async for reply in converse(self.engine, self.model, self.thread, self.call)]

    async def stream(self) -> AsyncGenerator[Reply, None]:
        """The same, piece by piece; closed when it is left."""
        async with aclosing(converse(self.engine, self.model, self.thread, self.call)) as replies:
            async for reply in replies:
                yield reply

    def answered(self, call: str) -> Message:
        """The result of a call."""
        return result(call, pages(sum(map(ord, call)), self.lines))

    @property
    def stored(self) -> History:
        """Every message of the thread."""
        return tuple(row.entry for row in self.threads.read(self.thread) if isinstance(row.entry, Message))

    @property
    def events(self) -> list[Event]:
        """What happened, with its figures."""
        return self.threads.events(self.thread)

    def kinds(self) -> list[str]:
        """What happened, in order."""
        return [event.kind.value for event in self.events]

    def one_outcome_each(self) -> None:
        """Every start has exactly one outcome."""
        events = self.events
        for event in events:
            if event.kind in OUTCOMES:
                ends = [other for other in events if other.parent == event.id and other.kind in OUTCOMES[event.kind]]
                assert len(ends) == 1, event


def over_http(server: ScriptedServer, run: Callable[[HttpModel], Awaitable[T]], fmt: str = "openai-chat") -> T:
    """Run something with a client of the server, in a loop of its own."""

    async def connected() -> T:
        base = server.address + format_named(fmt).api.base
        async with HttpModel(Endpoint(url=base, fmt=fmt, key="secret"), patience=IMPATIENT) as model:
            return await run(model)

    return asyncio.run(asyncio.wait_for(connected(), LONGEST))


def lawful(requests: Sequence[History], fmt: str = "openai-chat") -> None:
    """Laws 3 and 4 on what was sent: every request is valid and its last user message is the user's own."""
    for messages in requests:
        assert valid(fmt, messages)
        assert any(isinstance(part, Text | ToolResult) for part in messages[-1].parts)

"""What engine tests share: a thread, a model and turns between them."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from everlong.core.messages import History, Message, Text, ToolResult
from everlong.engine.calls import Call
from everlong.engine.conversing import converse
from everlong.engine.engine import Engine
from everlong.engine.replies import Failed, Finished, Model, Reply
from everlong.engine.settings import Settings
from everlong.store.memory import MemoryThreads
from everlong.wire.repair import valid
from tests.core.build import result, system, user

__all__ = ["Talk", "lawful", "pages"]


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
    threads: MemoryThreads = field(default_factory=MemoryThreads)
    lines: int = 60

    def __post_init__(self) -> None:
        self.engine = Engine(self.threads, settings=self.settings)
        self.threads.create(self.thread)
        self.threads.append(self.thread, [system("Work carefully.")])

    async def say(self, text: str) -> list[Reply]:
        """A user message and all that comes of it: tools are answered until the model is done or fails."""
        await self.engine.append(self.thread, [user(text)])
        replies: list[Reply] = []
        while True:
            said = [reply async for reply in converse(self.engine, self.model, self.thread, self.call)]
            replies += said
            last = said[-1]
            if isinstance(last, Failed) or not last.message.calls:  # type: ignore[union-attr]
                return replies
            assert isinstance(last, Finished)
            await self.engine.append(self.thread, [self.answered(call.id) for call in last.message.calls])

    def answered(self, call: str) -> Message:
        """The result of a call."""
        return result(call, pages(sum(map(ord, call)), self.lines))

    @property
    def stored(self) -> History:
        """Every message of the thread."""
        return tuple(row.entry for row in self.threads.read(self.thread) if isinstance(row.entry, Message))

    def kinds(self) -> list[str]:
        """What happened, in order."""
        return [event.kind.value for event in self.threads.events(self.thread)]


def lawful(requests: Sequence[History], fmt: str = "openai-chat") -> None:
    """Laws 3 and 4 on what was sent: every request is valid and its last user message is the user's own."""
    for messages in requests:
        assert valid(fmt, messages)
        assert any(isinstance(part, Text | ToolResult) for part in messages[-1].parts)

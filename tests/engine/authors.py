"""What tests of summaries share: authors that answer well, wait, or do whatever a script says."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import TypeVar

from everlong.core import Event, EventKind, Point
from everlong.engine.contracts import Reply, Request
from everlong.engine.summaries.author import Author
from everlong.llm import Answer, Endpoint, HttpModel, ReceivedRequest, ScriptedModel, ScriptedServer, Step, Window
from everlong.llm.scripted.script import Script
from everlong.wire import format_named
from tests.engine.talking import IMPATIENT, Talk

__all__ = [
    "HONEST",
    "Gate",
    "accounts",
    "author",
    "both",
    "is_asked_to_summarise",
    "of_kind",
    "over_http_with",
    "points",
    "structured",
]

T = TypeVar("T")


def structured(**parts: object) -> str:
    """An answer in the structured style."""
    return json.dumps(parts, ensure_ascii=False)


HONEST = structured(
    context="The user asks what each function does; the files are read one after the other.",
    decisions=["Each question is answered from the file that was read."],
    constraints=[],
    open_questions=[],
    file_changes=[],
    done=["The questions so far were answered."],
    next=[],
)
ASKED = ("Stop here and summarise", "请停在这里")


def is_asked_to_summarise(asked: ReceivedRequest) -> bool:
    """Whether this request wants a summary, or its correction."""
    return any(sign in message.text for message in asked.messages[-3:] for sign in ASKED)


def both(talk: Script, summary: Script | str = HONEST) -> Script:
    """One model for both: it talks as one script says, and summarises as the other does."""

    def script(asked: ReceivedRequest) -> Step:
        if not is_asked_to_summarise(asked):
            return talk(asked)
        return Answer(text=summary) if isinstance(summary, str) else summary(asked)

    return script


def author(script: Script | str = HONEST, *, name: str = "gpt-4o-mini", window: int | None = None) -> Author:
    """An author in process, with an endpoint of its own."""
    said = (lambda _: Answer(text=script)) if isinstance(script, str) else script
    model = ScriptedModel(said, Window(window or 1 << 40), endpoint=f"author {name}")
    return Author(model=model, name=name, window=window, seconds=20.0)


@dataclass
class Gate:
    """An author that says nothing until the gate is opened; `waiting` tells that it was asked."""

    answer: str = HONEST
    fmt: str = "openai-chat"
    endpoint: str = "gate"
    provider: str = ""
    opened: asyncio.Event = field(default_factory=asyncio.Event)
    waiting: asyncio.Event = field(default_factory=asyncio.Event)
    requests: list[Request] = field(default_factory=list)

    async def served_window(self, _: str) -> int | None:
        return None

    async def stream(self, request: Request) -> AsyncGenerator[Reply, None]:
        self.requests.append(request)
        self.waiting.set()
        await self.opened.wait()
        async for reply in ScriptedModel(lambda _: Answer(text=self.answer)).stream(request):
            yield reply

    def author(self, seconds: float = 60.0) -> Author:
        return Author(model=self, name="gpt-4o-mini", seconds=seconds)


def points(talk: Talk) -> list[Point]:
    """The points that stand, oldest first."""
    found = talk.threads.points(talk.thread)
    return [row.entry for row, stands in found if stands and isinstance(row.entry, Point)]


def accounts(talk: Talk) -> list[Point]:
    """Those made for a summary."""
    return [point for point in points(talk) if point.reason == "summary"]


def of_kind(talk: Talk, *kinds: EventKind) -> list[Event]:
    """What happened of these kinds."""
    return [event for event in talk.events if event.kind in kinds]


def over_http_with(
    servers: tuple[ScriptedServer, ...], run: Callable[..., Awaitable[T]], fmt: str = "openai-chat"
) -> T:
    """Run something with a client of each server, in a loop of its own."""

    async def connected() -> T:
        async with AsyncExitStack() as stack:
            models = []
            for server in servers:
                base = server.address + format_named(fmt).api.base
                endpoint = Endpoint(url=base, fmt=fmt, key="secret")
                models.append(await stack.enter_async_context(HttpModel(endpoint, patience=IMPATIENT)))
            return await run(*models)

    return asyncio.run(asyncio.wait_for(connected(), 300))

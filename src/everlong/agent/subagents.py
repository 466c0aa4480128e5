"""Sub-agents: a tool that gives a task to another agent, with its own thread, model, window and budget.

It runs the same turn through the same engine, so it compacts by its own window. Its result is bounded and begins with
one line of JSON that says how it ended; the whole work stays in its thread, which `read_subagent` reads. A sub-agent
never ends the turn of the agent that started it: whatever happens to it is a result.
"""

import asyncio
import json
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from everlong.agent.agent import Agent
from everlong.agent.config import DEFAULT_CONFIG, AgentConfig
from everlong.agent.definitions import Outcome, Place, Tool
from everlong.agent.events import AgentEvent, CallEnded, TurnEnded
from everlong.agent.standing_context import NO_STANDING_CONTEXT, StandingContext
from everlong.agent.words import words_in
from everlong.core import JsonObject, JsonText, Message, Role
from everlong.engine import Engine, Failed, Finished, Model
from everlong.errors import ContextOverflow, EverlongError, NoThread, ThreadExists
from everlong.relevance import language_of

__all__ = ["SPAWN_NAMES", "SubAgentSetup", "spawn_tools"]

#: The names of the two tools.
SPAWN_NAMES = SPAWN, READ = ("spawn", "read_subagent")

LONGEST_ID = 120  # characters of a thread's name
LONGEST_TITLE = 80
MOST_CALLS = 20  # that a partial result names
LONGEST_LINE = 160  # characters of one of them
MOST_READ = 20_000  # characters that one read returns
MOST_HITS = 5
MOST_DEPTH = 8  # parents that are followed to find out whether a thread belongs to this conversation
MOST_LOOKED_BACK = 200  # messages in which the last answer is searched
SPAWN_PARAMETERS: JsonText = json.dumps(
    {
        "type": "object",
        "properties": {
            "task": {
                "type": "string",
                "description": "Everything the sub-agent needs to know: it does not see this conversation. "
                "Say what it should report back.",
            }
        },
        "required": ["task"],
        "additionalProperties": False,
    }
)
READ_PARAMETERS: JsonText = json.dumps(
    {
        "type": "object",
        "properties": {
            "thread": {"type": "string", "description": "The thread named in the result of spawn"},
            "what": {
                "type": "string",
                "description": "A reference or words to search for; if omitted, the last answer is returned",
            },
        },
        "required": ["thread"],
        "additionalProperties": False,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SubAgentSetup:
    """What sub-agents are made from. `model` is the client they use; `watch` gets every event with its thread."""

    engine: Engine
    model: Model
    tools: Sequence[Tool] = ()
    config: AgentConfig = DEFAULT_CONFIG
    standing: StandingContext = NO_STANDING_CONTEXT
    watch: Callable[[str, AgentEvent], None] | None = None


def spawn_tools(setup: SubAgentSetup, depth: int = 0) -> tuple[Tool, ...]:
    """Return the tools with which an agent at that depth starts and reads sub-agents; none at the greatest depth."""
    if depth >= setup.config.subagents.most_depth:
        return ()

    async def spawn(arguments: JsonObject, place: Place) -> Outcome:
        task = arguments.get("task")
        if not isinstance(task, str) or not task.strip():
            return Outcome("task: describe what to do", failed=True)
        return await _SubTurn(setup, place, task, depth + 1).run()

    async def read(arguments: JsonObject, place: Place) -> Outcome:
        thread, what = arguments.get("thread"), arguments.get("what", "")
        if not isinstance(thread, str) or not isinstance(what, str):
            return Outcome("thread must be the name from a result of spawn, and what must be a few words", failed=True)
        return await asyncio.to_thread(_read, setup.engine, place.thread, thread, what)

    return (
        Tool(
            name=SPAWN,
            description="Give a task to a sub-agent with its own context window. Several calls run in parallel. "
            "Returns its answer, shortened if it is long.",
            parameters=SPAWN_PARAMETERS,
            run=spawn,
            seconds=setup.config.subagents.seconds,
        ),
        Tool(
            name=READ,
            description="Read what a sub-agent of this conversation did: its last answer, "
            "or the parts that match some words.",
            parameters=READ_PARAMETERS,
            run=read,
        ),
    )


@dataclass(slots=True)
class _SubTurn:
    """The turn of one sub-agent: its task, and what is known of it so far."""

    setup: SubAgentSetup
    place: Place
    task: str
    depth: int
    done: list[str] = field(default_factory=list)
    answer: str = ""
    error: EverlongError | None = None
    end: TurnEnded = field(default_factory=lambda: TurnEnded("failed", 0))

    async def run(self) -> Outcome:
        """Do the task, from its thread to its outcome. Cancelling this stops the sub-agent too."""
        try:
            thread = await asyncio.to_thread(self._create)
            async with aclosing(self._agent().turn(thread, self.task)) as events:
                async for event in events:
                    self._take(thread, event)
        except EverlongError as error:
            return self._outcome("", "error", error)
        kind = self.end.reason
        if kind == "failed":
            return self._outcome(thread, "overflow" if isinstance(self.error, ContextOverflow) else "error", self.error)
        return self._outcome(thread, kind, None)

    def _create(self) -> str:
        """Create a thread of the same owner that names its parent; return its name."""
        threads, limits = self.setup.engine.threads, self.setup.config.subagents
        owner = threads.thread(self.place.thread).owner
        metadata = json.dumps({"parent": {"thread": self.place.thread, "call": self.place.call}, "depth": self.depth})
        base = f"{self.place.thread}.{self.place.call}"[-LONGEST_ID:]
        for number in count(1):
            thread = base if number == 1 else f"{base}-{number}"
            try:
                threads.create(thread, owner=owner, title=self.task.strip()[:LONGEST_TITLE], metadata=metadata)
            except ThreadExists:  # some servers number their calls from zero, so ids repeat
                continue
            if limits.window is not None:
                threads.change(thread, settings=json.dumps({"window": limits.window}))
            return thread
        raise AssertionError("unreachable: the numbers never end")

    def _agent(self) -> Agent:
        limits, config = self.setup.config.subagents, self.setup.config
        own = replace(
            config, model=limits.model or config.model, most_steps=limits.most_steps, most_tokens=limits.most_tokens
        )
        tools = (*self.setup.tools, *spawn_tools(self.setup, self.depth))
        gate = self.place.gate
        permissions = gate.permissions.within(gate.thread)
        return Agent(self.setup.engine, self.setup.model, tools, own, self.setup.standing, permissions)

    def _take(self, thread: str, event: AgentEvent) -> None:
        match event:
            case Finished(message):
                self.answer = message.text or self.answer
            case Failed(error):
                self.error = error
            case CallEnded(_, name, outcome, _):
                line = outcome.text.strip().partition("\n")[0]
                self.done.append(f"- {name}{' (failed)' if outcome.failed else ''}: {line}"[:LONGEST_LINE])
            case TurnEnded():
                self.end = event
        if self.setup.watch is not None:
            self.setup.watch(thread, event)

    def _outcome(self, thread: str, kind: str, error: EverlongError | None) -> Outcome:
        words = words_in(self._language())
        status = "done" if kind == "done" else "partial" if self.done or self.answer else "failed"
        head: dict[str, Any] = {
            "subagent": thread,
            "status": status,
            "kind": kind,
            "steps": self.end.steps,
            "tokens": self.end.tokens,
        }
        text = self.answer
        if kind != "done":
            reason = words.subagent_ends.get(kind, words.subagent_failed).format(error=error or kind)
            work = "\n".join(self.done[-MOST_CALLS:]) or f"- {words.subagent_nothing}"
            text = "\n".join(filter(None, (reason, words.subagent_work, work, self.answer)))
        most = self.setup.config.subagents.result_characters
        if len(text) > most:
            text = f"{text[:most]}\n{words.subagent_cut.format(left=len(text) - most, thread=thread)}"
        return Outcome(f"{json.dumps(head, ensure_ascii=False)}\n{text}", failed=kind != "done")

    def _language(self) -> str:
        language = self.setup.config.language
        return language_of([self.task]) if language == "auto" else language


def _read(engine: Engine, parent: str, thread: str, what: str) -> Outcome:
    """Return what a sub-agent said or did. Only those that this conversation started can be read."""
    try:
        if not _belongs(engine, thread, parent):
            return Outcome(f"{thread!r} is not a sub-agent of this conversation", failed=True)
        if not what.strip():
            return Outcome(_last_answer(engine, thread)[:MOST_READ])
        recalled = engine.blocking.recall(thread, what, limit=MOST_HITS)
    except EverlongError as error:
        return Outcome(str(error), failed=True)
    if recalled.original is not None:
        return Outcome(recalled.original.decode("utf-8", "replace")[:MOST_READ])
    texts = [_text(hit.row.entry) for hit in recalled.hits if isinstance(hit.row.entry, Message)]
    return Outcome("\n---\n".join(texts)[:MOST_READ]) if texts else Outcome("nothing found", failed=True)


def _belongs(engine: Engine, thread: str, parent: str) -> bool:
    """Return whether the parent started the thread, directly or through other sub-agents."""
    for _ in range(MOST_DEPTH):
        try:
            origin = json.loads(engine.threads.thread(thread).metadata).get("parent")
        except NoThread:
            return False
        above = origin.get("thread") if isinstance(origin, dict) else None
        if not isinstance(above, str):
            return False
        if above == parent:
            return True
        thread = above
    return False


def _last_answer(engine: Engine, thread: str) -> str:
    messages = [row.entry for row in engine.threads.last(thread, MOST_LOOKED_BACK) if isinstance(row.entry, Message)]
    return next((each.text for each in reversed(messages) if each.role is Role.ASSISTANT and each.text), "")


def _text(message: Message) -> str:
    calls = (f"{call.name}({call.arguments})" for call in message.calls)
    return "\n".join(filter(None, (message.text, *calls, *(result.text for result in message.results))))

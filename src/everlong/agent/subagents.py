"""Sub-agents: a tool that hands a task to an agent of its own, with its own thread, model, window and budget.

The same turn through the same engine, so it compacts by its own window. What comes back is bounded and begins with one
line of JSON that says how it ended; the whole work stays in its thread, which `read_subagent` reads. A sub-agent never
ends the turn of the one that asked: whatever happens to it is a result.
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
from everlong.agent.standing_context import NOTHING, Standing
from everlong.core import JsonObject, JsonText, Message, Role
from everlong.engine import Engine, Failed, Finished, Model
from everlong.errors import ContextOverflow, EverlongError, NoThread, ThreadExists
from everlong.relevance import language_of

__all__ = ["Spawning", "spawn_tools"]

LONGEST_ID = 120  # characters of a thread's name
LISTED = 20  # calls that a partial result names
LONGEST_LINE = 160  # characters of one of them
READ_LIMIT = 20_000  # characters that one read brings
HITS = 5
SPAWN: JsonText = json.dumps(
    {
        "type": "object",
        "properties": {
            "task": {
                "type": "string",
                "description": "All it must know: it sees nothing of this conversation. Say what to report back.",
            }
        },
        "required": ["task"],
        "additionalProperties": False,
    }
)
READ: JsonText = json.dumps(
    {
        "type": "object",
        "properties": {
            "thread": {"type": "string", "description": "The thread that the result of spawn names"},
            "what": {"type": "string", "description": "A reference, or words to look for; without it, its last answer"},
        },
        "required": ["thread"],
        "additionalProperties": False,
    }
)
WORDS = {
    "en": {
        "overflow": "The sub-agent's context does not fit its window; a shorter form was refused too. It was stopped.",
        "failed": "The sub-agent stopped: {error}",
        "most steps": "The sub-agent used all its steps before it was done.",
        "most tokens": "The sub-agent used all its tokens before it was done.",
        "done so far": "Done before it stopped:",
        "nothing": "nothing",
        "cut": "[… {left:,} more characters: read_subagent with thread {thread!r} returns the whole]",
    },
    "zh": {
        "overflow": "子代理上下文溢出，紧急压缩后仍超限，任务中止。",
        "failed": "子代理已停止：{error}",
        "most steps": "子代理在完成之前用完了步骤。",
        "most tokens": "子代理在完成之前用完了 token 预算。",
        "done so far": "中止前已完成：",
        "nothing": "无",
        "cut": "[…… 还有 {left:,} 个字符：用 read_subagent 读取线程 {thread!r} 可得全文]",
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Spawning:
    """What sub-agents are made of. `model` is the client they talk to; `watch` is told what happens in which thread."""

    engine: Engine
    model: Model
    tools: Sequence[Tool] = ()
    config: AgentConfig = DEFAULT_CONFIG
    standing: Standing = NOTHING
    watch: Callable[[str, AgentEvent], None] | None = None


def spawn_tools(spawning: Spawning, depth: int = 0) -> tuple[Tool, ...]:
    """The tools of an agent at that depth by which it hands out work; none where there may be no deeper one."""
    if depth >= spawning.config.subagents.most_depth:
        return ()

    async def spawn(arguments: JsonObject, place: Place) -> Outcome:
        task = arguments.get("task")
        if not isinstance(task, str) or not task.strip():
            return Outcome("task: say in words what is to be done", failed=True)
        return await _Errand(spawning, place, task, depth + 1).run()

    async def read(arguments: JsonObject, place: Place) -> Outcome:
        thread, what = arguments.get("thread"), arguments.get("what", "")
        if not isinstance(thread, str) or not isinstance(what, str):
            return Outcome("thread is the name that a result of spawn gave, what a few words", failed=True)
        return await asyncio.to_thread(_read, spawning.engine, place.thread, thread, what)

    return (
        Tool(
            name="spawn",
            description="Hand a task to a sub-agent with a window of its own; several calls run side by side. "
            "Its answer comes back, shortened if long.",
            parameters=SPAWN,
            run=spawn,
        ),
        Tool(
            name="read_subagent",
            description="Read what a sub-agent of this conversation did: its last answer, or what answers some words.",
            parameters=READ,
            run=read,
        ),
    )


@dataclass(slots=True)
class _Errand:
    """One task handed out."""

    spawning: Spawning
    place: Place
    task: str
    depth: int
    done: list[str] = field(default_factory=list)
    said: str = ""
    error: EverlongError | None = None
    ended: TurnEnded = field(default_factory=lambda: TurnEnded("failed", 0))

    async def run(self) -> Outcome:
        """The task, from its thread to its outcome. Cancelled, the sub-agent is stopped too."""
        try:
            thread = await asyncio.to_thread(self._create)
            async with aclosing(self._agent().turn(thread, self.task)) as events:
                async for event in events:
                    self._note(thread, event)
        except EverlongError as error:
            return self._outcome("", "error", error)
        kind = self.ended.reason
        if kind == "failed":
            return self._outcome(thread, "overflow" if isinstance(self.error, ContextOverflow) else "error", self.error)
        return self._outcome(thread, kind, None)

    def _create(self) -> str:
        """A thread of the same owner that knows whose it is."""
        threads, limits = self.spawning.engine.threads, self.spawning.config.subagents
        owner = threads.thread(self.place.thread).owner
        metadata = json.dumps({"parent": {"thread": self.place.thread, "call": self.place.call}, "depth": self.depth})
        wanted = f"{self.place.thread}.{self.place.call}"[-LONGEST_ID:]
        for number in count(1):
            thread = wanted if number == 1 else f"{wanted}-{number}"
            try:
                threads.create(thread, owner=owner, title=self.task.strip()[:80], metadata=metadata)
            except ThreadExists:  # servers that count their calls from zero
                continue
            if limits.window is not None:
                threads.change(thread, settings=json.dumps({"window": limits.window}))
            return thread
        raise AssertionError("numbers do not end")

    def _agent(self) -> Agent:
        limits, config = self.spawning.config.subagents, self.spawning.config
        own = replace(
            config, model=limits.model or config.model, most_steps=limits.most_steps, most_tokens=limits.most_tokens
        )
        tools = (*self.spawning.tools, *spawn_tools(self.spawning, self.depth))
        return Agent(self.spawning.engine, self.spawning.model, tools, own, self.spawning.standing, self.place.approve)

    def _note(self, thread: str, event: AgentEvent) -> None:
        match event:
            case Finished(message):
                self.said = message.text or self.said
            case Failed(error):
                self.error = error
            case CallEnded(_, name, outcome, _):
                first = outcome.text.strip().partition("\n")[0]
                self.done.append(f"- {name}{' (failed)' if outcome.failed else ''}: {first}"[:LONGEST_LINE])
            case TurnEnded():
                self.ended = event
        if self.spawning.watch is not None:
            self.spawning.watch(thread, event)

    def _outcome(self, thread: str, kind: str, error: EverlongError | None) -> Outcome:
        words = WORDS[self._language()]
        status = "done" if kind == "done" else "partial" if self.done or self.said else "failed"
        head: dict[str, Any] = {
            "subagent": thread,
            "status": status,
            "kind": kind,
            "steps": self.ended.steps,
            "tokens": self.ended.tokens,
        }
        text = self.said
        if kind != "done":
            reason = words.get(kind, words["failed"]).format(error=error or kind)
            work = "\n".join(self.done[-LISTED:]) or f"- {words['nothing']}"
            text = "\n".join(filter(None, (reason, words["done so far"], work, self.said)))
        most = self.spawning.config.subagents.result_characters
        if len(text) > most:
            text = f"{text[:most]}\n{words['cut'].format(left=len(text) - most, thread=thread)}"
        return Outcome(f"{json.dumps(head, ensure_ascii=False)}\n{text}", failed=kind != "done")

    def _language(self) -> str:
        language = self.spawning.config.language
        return language_of([self.task]) if language == "auto" else language


def _read(engine: Engine, parent: str, thread: str, what: str) -> Outcome:
    """What a sub-agent said or did. Only those that this conversation started can be read."""
    try:
        if not _belongs(engine, thread, parent):
            return Outcome(f"{thread!r} is no sub-agent of this conversation", failed=True)
        if not what.strip():
            return Outcome(_last_answer(engine, thread)[:READ_LIMIT])
        found = engine.blocking.recall(thread, what, limit=HITS)
    except EverlongError as error:
        return Outcome(str(error), failed=True)
    if found.original is not None:
        return Outcome(found.original.decode("utf-8", "replace")[:READ_LIMIT])
    said = [_words(hit.row.entry) for hit in found.hits if isinstance(hit.row.entry, Message)]
    return Outcome("\n---\n".join(said)[:READ_LIMIT]) if said else Outcome("nothing found", failed=True)


def _belongs(engine: Engine, thread: str, parent: str) -> bool:
    """Whether the thread was started by the parent, or by one that was."""
    for _ in range(8):
        try:
            known = json.loads(engine.threads.thread(thread).metadata).get("parent")
        except NoThread:
            return False
        above = known.get("thread") if isinstance(known, dict) else None
        if not isinstance(above, str):
            return False
        if above == parent:
            return True
        thread = above
    return False


def _last_answer(engine: Engine, thread: str) -> str:
    said = [row.entry for row in engine.threads.last(thread, 200) if isinstance(row.entry, Message)]
    return next((each.text for each in reversed(said) if each.role is Role.ASSISTANT and each.text), "")


def _words(message: Message) -> str:
    calls = (f"{call.name}({call.arguments})" for call in message.calls)
    return "\n".join(filter(None, (message.text, *calls, *(result.text for result in message.results))))

"""Turns of the app: each runs in the server, not in a request; whether a page is open changes nothing."""

import asyncio
import logging
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import assert_never

from everlong.agent import Agent, CallEnded, CallStarted, Entered, Kind, TurnEnded
from everlong.core import JsonObject, Message, Role
from everlong.engine import CallGrew, Engine, Failed, Finished, Restarted, Said, Thought
from everlong.errors import EverlongError, Refused
from everlong.web.live.approval import CURRENT_THREAD
from everlong.web.live.compaction import Compactions
from everlong.web.live.hub import Hub
from everlong.web.live.updates import LiveUpdates
from everlong.web.state.agents import Agents
from everlong.web.state.rows import LONGEST

__all__ = ["Turns"]

LOOKED_BACK = 1_000  # messages, for what was asked last
log = logging.getLogger("everlong.web")
Happened = Said | Thought | CallGrew | Restarted | Finished | Failed | Entered | CallStarted | CallEnded | TurnEnded


@dataclass(slots=True)
class _Running:
    """A turn under way, and what its answer says so far."""

    agent: Agent
    kind: Kind = "user"
    task: "asyncio.Task[None] | None" = None
    said: str = ""
    thought: str = ""


class Turns:
    """One turn at a time for each thread. Belongs to one event loop."""

    def __init__(
        self, engine: Engine, hub: Hub, agents: Agents, updates: LiveUpdates, compactions: Compactions
    ) -> None:
        self._engine = engine
        self._hub = hub
        self._agents = agents
        self._updates = updates
        self._compactions = compactions
        self._running: dict[str, _Running] = {}
        self._failed: dict[str, str] = {}

    def running(self, thread: str) -> bool:
        """Whether a turn of the thread runs."""
        return thread in self._running

    async def say(self, thread: str, said: Message) -> None:
        """What a person says: it begins a turn, or enters the one that runs. Raises Refused without a model."""
        running = self._running.get(thread)
        if running is not None and running.agent.steer(thread, said):
            return
        ready = await self._agents.for_thread(thread)
        await self._updates.follow(thread)
        await self._start(thread, ready.agent, said)

    async def again(self, thread: str) -> None:
        """Answer what was said last once more; it is not appended again. Raises Refused where nobody said anything."""
        _, message = await self.question(thread)
        ready = await self._agents.for_thread(thread)
        await self._updates.follow(thread)
        await self._start(thread, ready.agent, message, "again")

    async def question(self, thread: str) -> tuple[int, Message]:
        """Return the last user message and its order. Raises Refused while a turn runs, or if there is none."""
        if self.running(thread):
            raise Refused("a turn is running already", status=409, kind="running")
        rows = await asyncio.to_thread(self._engine.threads.last, thread, LOOKED_BACK)
        for row in reversed(rows):
            if isinstance(row.entry, Message) and row.entry.role is Role.USER:
                return row.order, row.entry
        raise Refused("there is no message to answer yet", status=409, kind="nothing_said")

    def stop(self, thread: str) -> bool:
        """Stop the turn that runs; whether one did."""
        running = self._running.get(thread)
        return running is not None and running.agent.interrupt(thread)

    async def end(self, thread: str) -> None:
        """Stop the turn that runs and wait until nothing more comes of it."""
        running = self._running.get(thread)
        if running is not None and running.task is not None:
            running.agent.interrupt(thread)
            await asyncio.wait([running.task])

    def hello(self, thread: str, behind: bool) -> list[JsonObject]:
        """How things stand, for a page that comes new, or was away too long."""
        running = self._running.get(thread)
        told: list[JsonObject] = [{"type": "reset"}] if behind else []
        told.append({"type": "running", "running": running is not None})
        if running is not None and running.thought:
            told.append({"type": "thought", "text": running.thought})
        if running is not None and running.said:
            told.append({"type": "said", "text": running.said})
        if thread in self._failed and running is None:
            told.append({"type": "failed", "message": self._failed[thread], "retry": True})
        if self._compactions.running(thread):
            told.append({"type": "compacting", "state": "started", "text": "", "reason": ""})
            words = self._compactions.words(thread)
            told.append({"type": "compacting", "state": "words", "text": words, "reason": ""})
        return told

    async def close(self) -> None:
        """Stop all turns; every thread stays valid."""
        tasks = [running.task for running in self._running.values() if running.task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _start(self, thread: str, agent: Agent, said: Message, kind: Kind = "user") -> None:
        earlier = self._running.get(thread)
        running = self._running[thread] = _Running(agent, kind=kind)
        self._failed.pop(thread, None)
        if earlier is None:
            self._hub.publish(thread, {"type": "running", "running": True})
        running.task = asyncio.create_task(self._run(thread, running, said, earlier), name=f"app turn {thread}")
        running.task.add_done_callback(_logged)

    async def _run(self, thread: str, running: _Running, said: Message, earlier: _Running | None) -> None:
        if earlier is not None and earlier.task is not None:
            await asyncio.wait([earlier.task])
        CURRENT_THREAD.set(thread)
        ended = TurnEnded("failed", 0)
        try:
            async with aclosing(running.agent.turn(thread, said, running.kind)) as events:
                async for event in events:
                    if isinstance(event, TurnEnded):
                        ended = event
                    else:
                        await self._tell(thread, running, event)
        except EverlongError as error:  # the store is away
            self._tell_failed(thread, str(error))
        finally:
            last = self._running.get(thread) is running
            if last:
                del self._running[thread]
            log.debug("turn of %s: %s after %d steps", thread, ended.reason, ended.steps)
            with suppress(asyncio.CancelledError):
                await self._updates.rows(thread)
            self._hub.publish(thread, {"type": "ended", "reason": ended.reason, "steps": ended.steps})
            if last:
                self._hub.publish(thread, {"type": "running", "running": False})
            self._updates.refresh(thread)
            self._updates.spawn(self._compactions.titled(thread))

    async def _tell(self, thread: str, running: _Running, event: Happened) -> None:
        match event:
            case Said() | Thought():
                await self._tell_words(thread, running, event)
            case Restarted(reason):
                running.said = running.thought = ""
                self._hub.publish(thread, {"type": "restarted", "reason": reason})
            case Finished() | Entered():
                running.said = running.thought = ""
                await self._updates.rows(thread)
                self._updates.refresh(thread)
            case Failed(error):
                running.said = running.thought = ""
                self._tell_failed(thread, str(error))
            case CallStarted(call, name, arguments):
                told = {"type": "call", "id": call, "name": name, "arguments": arguments[:LONGEST]}
                self._hub.publish(thread, told)
            case CallEnded():
                self._hub.publish(thread, _result(event))
                await self._updates.rows(thread)
            case CallGrew() | TurnEnded():
                pass
            case _:
                assert_never(event)

    async def _tell_words(self, thread: str, running: _Running, event: Said | Thought) -> None:
        if not running.said and not running.thought:
            await self._updates.rows(thread)  # what was said stands before its answer
        match event:
            case Said(text):
                running.said += text
                self._hub.publish(thread, {"type": "said", "text": text})
            case Thought(text):
                running.thought += text
                self._hub.publish(thread, {"type": "thought", "text": text})

    def _tell_failed(self, thread: str, message: str) -> None:
        self._failed[thread] = message
        self._hub.publish(thread, {"type": "failed", "message": message, "retry": True})


def _logged(task: "asyncio.Task[None]") -> None:
    """A turn ends with events, never with an error; if it does, that is ours, and the log has it."""
    error = None if task.cancelled() else task.exception()
    if error is not None:
        log.error("%s failed", task.get_name(), exc_info=error)


def _result(event: CallEnded) -> JsonObject:
    return {
        "type": "result",
        "id": event.call,
        "name": event.name,
        "text": event.outcome.text[:LONGEST],
        "failed": event.outcome.failed,
        "seconds": round(event.seconds, 3),
    }

"""Run the turns of all threads. A turn runs in the server, not in a request: it goes on when the page is closed."""

import asyncio
import logging
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import assert_never

from everlong.agent import Agent, CallEnded, CallRefused, CallStarted, Entered, Kind, TurnEnded
from everlong.core import JsonObject, Message, Role
from everlong.engine import CallGrew, Engine, Failed, Finished, Restarted, Said, Thought
from everlong.errors import EverlongError, Refused
from everlong.web.live.compaction import Compactions
from everlong.web.live.hub import Hub
from everlong.web.live.updates import LiveUpdates
from everlong.web.state.agents import Agents
from everlong.web.state.rows import LONGEST

__all__ = ["Turns"]

LOOKED_BACK = 1_000  # rows in which the last user message is looked for
log = logging.getLogger("everlong.web")
TurnEvent = (
    Said
    | Thought
    | CallGrew
    | Restarted
    | Finished
    | Failed
    | Entered
    | CallStarted
    | CallRefused
    | CallEnded
    | TurnEnded
)


@dataclass(slots=True)
class _Running:
    """A turn that runs, and its answer so far."""

    agent: Agent
    kind: Kind = "user"
    task: "asyncio.Task[None] | None" = None
    text: str = ""
    thinking: str = ""


class Turns:
    """The running turns, at most one for each thread. Belongs to one event loop."""

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
        """Return whether a turn of the thread runs."""
        return thread in self._running

    async def say(self, thread: str, message: Message) -> None:
        """Start a turn with a user message, or add it to the running turn. Raises Refused without a model."""
        running = self._running.get(thread)
        if running is not None and running.agent.steer(thread, message):
            return
        speaker = await self._agents.for_thread(thread)
        await self._updates.follow(thread)
        await self._start(thread, speaker.agent, message)

    async def again(self, thread: str) -> None:
        """Answer the last user message again, without storing it twice. Raises Refused if there is none."""
        _, message = await self.question(thread)
        speaker = await self._agents.for_thread(thread)
        await self._updates.follow(thread)
        await self._start(thread, speaker.agent, message, "again")

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
        """Stop the running turn and return whether there was one."""
        running = self._running.get(thread)
        return running is not None and running.agent.interrupt(thread)

    async def end(self, thread: str) -> None:
        """Stop the running turn and wait until it has ended."""
        running = self._running.get(thread)
        if running is not None and running.task is not None:
            running.agent.interrupt(thread)
            await asyncio.wait([running.task])

    def hello(self, thread: str, behind: bool) -> list[JsonObject]:
        """Return the present state as events, for a new page or one that was away too long (`behind`)."""
        running = self._running.get(thread)
        events: list[JsonObject] = [{"type": "reset"}] if behind else []
        events.append({"type": "running", "running": running is not None})
        if running is not None and running.thinking:
            events.append({"type": "thought", "text": running.thinking})
        if running is not None and running.text:
            events.append({"type": "said", "text": running.text})
        if thread in self._failed and running is None:
            events.append({"type": "failed", "message": self._failed[thread], "retry": True})
        if self._compactions.running(thread):
            events.append({"type": "compacting", "state": "started", "text": "", "reason": ""})
            text = self._compactions.text(thread)
            events.append({"type": "compacting", "state": "words", "text": text, "reason": ""})
        return events

    async def close(self) -> None:
        """Stop all turns. Every thread stays valid."""
        tasks = [running.task for running in self._running.values() if running.task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _start(self, thread: str, agent: Agent, message: Message, kind: Kind = "user") -> None:
        earlier = self._running.get(thread)
        running = self._running[thread] = _Running(agent, kind=kind)
        self._failed.pop(thread, None)
        if earlier is None:
            self._hub.publish(thread, {"type": "running", "running": True})
        running.task = asyncio.create_task(self._run(thread, running, message, earlier), name=f"app turn {thread}")
        running.task.add_done_callback(_log_failure)

    async def _run(self, thread: str, running: _Running, message: Message, earlier: _Running | None) -> None:
        if earlier is not None and earlier.task is not None:
            await asyncio.wait([earlier.task])
        self._updates.streaming.add(thread)
        ended = TurnEnded("failed", 0)
        try:
            async with aclosing(running.agent.turn(thread, message, running.kind)) as events:
                async for event in events:
                    if isinstance(event, TurnEnded):
                        ended = event
                    else:
                        await self._publish(thread, running, event)
        except EverlongError as error:  # the store is away
            self._publish_failure(thread, str(error))
        finally:
            last = self._running.get(thread) is running
            if last:
                del self._running[thread]
            self._updates.streaming.discard(thread)
            log.debug("turn of %s: %s after %d steps", thread, ended.reason, ended.steps)
            with suppress(asyncio.CancelledError):
                await self._updates.rows(thread)
            self._hub.publish(thread, {"type": "ended", "reason": ended.reason, "steps": ended.steps})
            if last:
                self._hub.publish(thread, {"type": "running", "running": False})
            self._updates.refresh(thread)
            self._updates.spawn(self._compactions.publish_title(thread))

    async def _publish(self, thread: str, running: _Running, event: TurnEvent) -> None:
        match event:
            case Said() | Thought():
                await self._publish_text(thread, running, event)
            case Restarted(reason):
                running.text = running.thinking = ""
                self._hub.publish(thread, {"type": "restarted", "reason": reason})
            case Finished() | Entered():
                running.text = running.thinking = ""
                await self._updates.rows(thread, answers=isinstance(event, Finished))
                self._updates.refresh(thread)
            case Failed(error):
                running.text = running.thinking = ""
                self._publish_failure(thread, str(error))
            case CallStarted(call, name, arguments):
                started = {"type": "call", "id": call, "name": name, "arguments": arguments[:LONGEST]}
                self._hub.publish(thread, started)
            case CallRefused(call, name, reason, answered):
                refused: JsonObject = {
                    "type": "refused",
                    "id": call,
                    "name": name,
                    "reason": reason,
                    "answered": answered,
                }
                self._hub.publish(thread, refused)
            case CallEnded():
                self._hub.publish(thread, _result(event))
                await self._updates.rows(thread)
            case CallGrew() | TurnEnded():
                pass
            case _:
                assert_never(event)

    async def _publish_text(self, thread: str, running: _Running, event: Said | Thought) -> None:
        if not running.text and not running.thinking:
            await self._updates.rows(thread)  # the user message comes before its answer
        match event:
            case Said(text):
                running.text += text
                self._hub.publish(thread, {"type": "said", "text": text})
            case Thought(text):
                running.thinking += text
                self._hub.publish(thread, {"type": "thought", "text": text})

    def _publish_failure(self, thread: str, message: str) -> None:
        self._failed[thread] = message
        self._hub.publish(thread, {"type": "failed", "message": message, "retry": True})


def _log_failure(task: "asyncio.Task[None]") -> None:
    """Log a turn that raised. Turns end with events, so this is a bug of ours."""
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

"""Run the turns of all threads. A turn runs in the server, not in a request: it continues when the page is closed.

At most one turn of a thread runs, in one of the processes that share the store: it is leased. If a person acts at
another process, a message reaches the turn through the store, and a stop by a call. If the process of a turn dies,
another process ends the turn.
"""

import asyncio
import json
import logging
from contextlib import aclosing, suppress
from dataclasses import dataclass
from time import time
from typing import assert_never
from uuid import uuid4

from everlong.agent import Agent, CallEnded, CallRefused, CallStarted, Entered, Kind, TurnEnded
from everlong.core import JsonObject, Message, Role
from everlong.engine import CallGrew, Engine, Failed, Finished, Restarted, Said, Thought
from everlong.errors import EverlongError, NoThread, Refused
from everlong.web.fields import stored_object
from everlong.web.live.compaction import Compactions
from everlong.web.live.elsewhere import TurnsElsewhere
from everlong.web.live.hub import Hub
from everlong.web.live.leases import Lease
from everlong.web.live.partials import GrowingAnswer, PartialAnswers
from everlong.web.live.sent import HandedMessages, SentMessages
from everlong.web.live.site import Site
from everlong.web.live.updates import LiveUpdates
from everlong.web.state.agents import Agents, ThreadAgent
from everlong.web.state.failures import Failures
from everlong.web.state.rows import LONGEST

__all__ = ["Turns"]

LOOKED_BACK = 1_000  # rows in which the last user message is looked for
FAILED = "app failure"  # the kind of the facts
MOST_TRIES = 2  # processes that may die during a turn; then it is no longer restarted automatically
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
    answer: GrowingAnswer
    kind: Kind = "user"
    task: "asyncio.Task[None] | None" = None
    text: str = ""
    thinking: str = ""
    #: The name of the message that it answers; "" if the page gave none.
    name: str = ""
    #: The name of the turn in its lease.
    turn: str = ""


class Turns:
    """The running turns, at most one for each thread. Belongs to one event loop."""

    def __init__(  # noqa: PLR0913 - every part that a turn touches
        self,
        engine: Engine,
        site: Site,
        agents: Agents,
        updates: LiveUpdates,
        compactions: Compactions,
        failures: Failures,
        *,
        owner: str,
    ) -> None:
        self._engine = engine
        self._owner = owner
        self._hub: Hub = site.hub
        self._relay = site.relay
        self._leases = site.leases
        self._agents = agents
        self._updates = updates
        self._compactions = compactions
        self._sent = SentMessages(engine.threads)
        self._handed = HandedMessages(engine.threads)
        self.partials = PartialAnswers(engine, site.hub, site.leases, self.lose)
        self.elsewhere = TurnsElsewhere(site.leases, site.relay.process)
        self._running: dict[str, _Running] = {}
        self._failures = failures
        self._failed: dict[str, JsonObject] = {}
        updates.elsewhere = self.elsewhere.running

    def running(self, thread: str) -> bool:
        """Return whether a turn of the thread runs, as far as this process knows."""
        return thread in self._running or self.elsewhere.running(thread)

    def runs_here(self, thread: str) -> bool:
        """Return whether a turn of the thread runs in this process."""
        return thread in self._running

    @property
    def here(self) -> list[str]:
        """The threads in which this process runs a turn."""
        return list(self._running)

    def forget(self, thread: str) -> None:
        """Delete what belongs to a removed thread. Writes the store."""
        self._leases.forget(thread)
        self._engine.threads.drop_fact(FAILED, thread)

    async def busy(self, thread: str) -> bool:
        """Return whether a turn of the thread runs in any process. Reads the store."""
        if thread in self._running:
            return True
        return self._relay.shared and await asyncio.to_thread(self._leases.of, thread) is not None

    async def say(self, thread: str, message: Message, name: str = "") -> None:
        """Start a turn with a user message, or add it to the running turn. Raises Refused without a model.

        Messages of the same name are stored once, however often they are sent.
        """
        if not self._sent.take(thread, name):
            return
        try:
            if await self._sent.stands(thread, name):  # it was stored before the program ended
                if not await self.busy(thread) and await self._sent.unanswered(thread, name):
                    await self.again(thread)
                return
            await self._say(thread, message, name)
        except EverlongError:
            self._sent.release(thread, name)
            raise

    async def _say(self, thread: str, message: Message, name: str) -> None:
        running = self._running.get(thread)
        if running is not None and running.agent.steer(thread, message, name=name):
            return
        speaker = await self._agents.for_thread(thread)
        await self._updates.follow(thread)
        if not await self._start(thread, speaker, message, name=name):
            await asyncio.to_thread(self._handed.give, thread, message, name)
            self._relay.call("said", thread)
            if not await self.busy(thread):  # it ended just now, perhaps without having seen the message
                await self.take_handed(thread)

    async def take_handed(self, thread: str) -> None:
        """Process messages that arrived at other processes, if the turn of the thread runs here or nowhere."""
        if thread not in self._running and await self.busy(thread):
            return
        for message, name in await asyncio.to_thread(self._handed.take, thread):
            await self._say(thread, message, name)

    async def again(self, thread: str, kind: Kind = "again") -> None:
        """Answer the last user message, which is already stored; with "continue", write the rest of its answer.

        Raises Refused if there is none.
        """
        _, message = await self.question(thread)
        speaker = await self._agents.for_thread(thread)
        await self._updates.follow(thread)
        if not await self._start(thread, speaker, message, kind):
            raise _running_already()

    async def go_on(self, thread: str) -> None:
        """Write the rest of the last answer. Raises Refused if it is complete."""
        last = await asyncio.to_thread(self._engine.threads.last, thread, 1)
        if not last or not isinstance(last[-1].entry, Message) or not last[-1].entry.ending:
            raise Refused("the last answer is complete", status=409, kind="whole")
        await self.again(thread, "again" if last[-1].entry.ending == "empty" else "continue")

    async def question(self, thread: str, before: int | None = None) -> tuple[int, Message]:
        """Return the last user message, before an order if one is given, and its own order.

        Raises Refused while a turn runs, or if there is none.
        """
        if await self.busy(thread):
            raise _running_already()
        return await self._question(thread, before)

    async def _question(self, thread: str, before: int | None = None) -> tuple[int, Message]:
        if before is None:
            rows = await asyncio.to_thread(self._engine.threads.last, thread, LOOKED_BACK)
        else:
            start = max(0, before - LOOKED_BACK)
            rows = await asyncio.to_thread(lambda: list(self._engine.threads.read(thread, start, before)))
        for row in reversed(rows):
            if isinstance(row.entry, Message) and row.entry.role is Role.USER:
                return row.order, row.entry
        raise Refused("there is no message to answer yet", status=409, kind="nothing_said")

    async def forget_failure(self, thread: str) -> None:
        """Stop reporting that the last turn failed: its message was deleted."""
        self._failed.pop(thread, None)
        await asyncio.to_thread(self._engine.threads.drop_fact, FAILED, thread)

    async def stop(self, thread: str) -> bool:
        """Stop the running turn, wherever it runs, and return whether there was one."""
        if self.stop_here(thread):
            return True
        if not await self.busy(thread):
            return False
        self._relay.call("stop", thread)
        return True

    def stop_here(self, thread: str) -> bool:
        """Stop the turn that runs in this process and return whether there was one."""
        running = self._running.get(thread)
        return running is not None and running.agent.interrupt(thread)

    def lose(self, thread: str) -> None:
        """Drop a turn that another process has ended, because this one was silent for too long."""
        log.warning("the turn of %s was ended by another process, because this one was silent for too long", thread)
        self.stop_here(thread)

    async def end(self, thread: str) -> None:
        """Stop the running turn, wherever it runs; if it runs here, wait until it has ended."""
        running = self._running.get(thread)
        if running is not None and running.task is not None:
            running.agent.interrupt(thread)
            await asyncio.wait([running.task])
        else:
            await self.stop(thread)

    async def look(self, thread: str) -> None:
        """Read the state of a thread's last turn from the store, for a page that opens the thread here."""
        if thread in self._running:
            return
        if self._relay.shared:
            await self.elsewhere.look(thread)
        kept = await asyncio.to_thread(self._engine.threads.fact, FAILED, thread)
        failure = stored_object(kept or "{}")
        if failure and not self.running(thread):
            self._failed[thread] = failure
        else:
            self._failed.pop(thread, None)

    def hello(self, thread: str, behind: bool) -> list[JsonObject]:
        """Return the present state as events, for a new page or one that was away too long (`behind`)."""
        running = self._running.get(thread)
        events: list[JsonObject] = [{"type": "reset"}] if behind else []
        events.append({"type": "running", "running": self.running(thread)})
        if running is None:
            events += self.elsewhere.hello(thread)
        elif running.answer.thinking:
            events.append({"type": "thought", "text": running.answer.thinking})
        if running is not None and running.answer.text:
            events.append({"type": "said", "text": running.answer.text})
        if thread in self._failed and not self.running(thread):
            events.append({"type": "failed", "failure": _since(self._failed[thread])})
        if self._compactions.running(thread):
            events.append({"type": "compacting", "state": "started", "text": "", "reason": ""})
            text = self._compactions.text(thread)
            events.append({"type": "compacting", "state": "words", "text": text, "reason": ""})
        return events

    async def close(self) -> None:
        """End all turns because the server ends. The text so far stays, and is marked as broken off."""
        self._engine.cut_short = "broken off"
        tasks = [running.task for running in self._running.values() if running.task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def inherit(self, thread: str, lease: Lease) -> None:
        """End the turn that a dead process left: its text becomes a message. Without text it starts again."""
        with suppress(NoThread, Refused):  # it was removed, or there is no model any more
            if await asyncio.to_thread(self.partials.keep, thread, lease):
                await self._updates.rows(thread)
            elif lease.tries < MOST_TRIES and await self._unanswered(thread):
                _, message = await self._question(thread)
                speaker = await self._agents.for_thread(thread)
                await self._updates.follow(thread)
                if await self._start(thread, speaker, message, "again", tries=lease.tries + 1):
                    return
        self._hub.publish(thread, {"type": "ended", "reason": "interrupted", "steps": 0})
        self._hub.publish(thread, {"type": "running", "running": False})
        self._updates.refresh(thread)

    async def _unanswered(self, thread: str) -> bool:
        """Whether the last message is the user's: nothing was said and no tool was called since."""
        last = await asyncio.to_thread(self._engine.threads.last, thread, 1)
        return bool(last) and isinstance(last[-1].entry, Message) and last[-1].entry.role is Role.USER

    async def _start(
        self, thread: str, speaker: ThreadAgent, message: Message, kind: Kind = "user", name: str = "", tries: int = 0
    ) -> bool:
        """Begin a turn; return False if one runs in another process."""
        turn = uuid4().hex
        if not await asyncio.to_thread(self._leases.take, thread, turn, owner=self._owner, tries=tries):
            return False
        earlier = self._running.get(thread)
        answer = GrowingAnswer(speaker.call.model)
        running = self._running[thread] = _Running(speaker.agent, answer, kind=kind, name=name, turn=turn)
        await self.forget_failure(thread)
        if earlier is None:
            self._hub.publish(thread, {"type": "running", "running": True})
        running.task = asyncio.create_task(self._run(thread, running, message, earlier), name=f"app turn {thread}")
        running.task.add_done_callback(_log_failure)
        return True

    async def _run(self, thread: str, running: _Running, message: Message, earlier: _Running | None) -> None:
        if earlier is not None and earlier.task is not None:
            await asyncio.wait([earlier.task])
        self._updates.streaming.add(thread)
        ended = TurnEnded("failed", 0)
        try:
            async with aclosing(running.agent.turn(thread, message, running.kind, running.name)) as events:
                async for event in events:
                    if isinstance(event, TurnEnded):
                        ended = event
                    else:
                        await self._publish(thread, running, event)
        except EverlongError as error:  # the store is away
            self._sent.release(thread, running.name)
            await self._publish_failure(thread, error)
        finally:
            last = self._running.get(thread) is running
            if last:
                del self._running[thread]
            self._updates.streaming.discard(thread)
            log.debug("turn of %s: %s after %d steps", thread, ended.reason, ended.steps)
            with suppress(asyncio.CancelledError, EverlongError):
                await self.partials.settle(thread, running.answer)
                await self._updates.rows(thread)
            with suppress(asyncio.CancelledError, EverlongError):
                await asyncio.to_thread(self._leases.release, thread, running.turn)
            self._hub.publish(thread, {"type": "ended", "reason": ended.reason, "steps": ended.steps})
            if last:
                self._hub.publish(thread, {"type": "running", "running": False})
            self._updates.refresh(thread)
            self._updates.spawn(self._compactions.publish_title(thread))
            if last and self._relay.shared:
                self._updates.spawn(self._take_left(thread))

    async def _take_left(self, thread: str) -> None:
        """Process the messages that arrived elsewhere while the turn ended."""
        with suppress(EverlongError):
            await self.take_handed(thread)

    async def _publish(self, thread: str, running: _Running, event: TurnEvent) -> None:
        if isinstance(event, Said | Thought):
            if not running.answer.begun:
                await self._updates.rows(thread)  # the user message comes before its answer
            self.partials.add(thread, running.answer, event)
            return
        if not isinstance(event, CallGrew):
            await self.partials.settle(thread, running.answer)  # the words come before what follows them
        match event:
            case Restarted(reason):
                self._hub.publish(thread, {"type": "restarted", "reason": reason})
            case Finished() | Entered():
                await self._updates.rows(thread, answers=isinstance(event, Finished))
                self._updates.refresh(thread)
            case Failed(error):
                await self._updates.rows(thread, answers=1)
                await self._publish_failure(thread, error)
            case CallStarted() | CallRefused():
                self._hub.publish(thread, _call(event))
            case CallEnded():
                self._hub.publish(thread, _result(event))
                await self._updates.rows(thread)
            case CallGrew() | TurnEnded():
                pass
            case _:
                assert_never(event)

    async def _publish_failure(self, thread: str, error: EverlongError) -> None:
        failure = (await asyncio.to_thread(self._failures.of, thread, error)).shown()
        self._failed[thread] = {**failure, "at": time()}
        with suppress(EverlongError):  # the store is away: only pages at this process will know
            value = json.dumps(self._failed[thread])
            await asyncio.to_thread(self._engine.threads.keep_fact, FAILED, thread, value)
        self._hub.publish(thread, {"type": "failed", "failure": failure})


def _since(failure: JsonObject) -> JsonObject:
    """Return a failure as pages read it, with the seconds that are still to wait."""
    shown = {name: value for name, value in failure.items() if name != "at"}
    match failure:
        case {"after": int() | float() as after, "at": int() | float() as at}:
            return {**shown, "after": max(0, after - (time() - at))}
        case _:
            return shown


def _running_already() -> Refused:
    return Refused("a turn is already running", status=409, kind="running")


def _log_failure(task: "asyncio.Task[None]") -> None:
    """Log a turn that raised. Turns end with events, so this is a bug of ours."""
    error = None if task.cancelled() else task.exception()
    if error is not None:
        log.error("%s failed", task.get_name(), exc_info=error)


def _call(event: CallStarted | CallRefused) -> JsonObject:
    match event:
        case CallStarted(call, name, arguments):
            return {"type": "call", "id": call, "name": name, "arguments": arguments[:LONGEST]}
        case CallRefused(call, name, reason, answered):
            return {"type": "refused", "id": call, "name": name, "reason": reason, "answered": answered}


def _result(event: CallEnded) -> JsonObject:
    return {
        "type": "result",
        "id": event.call,
        "name": event.name,
        "text": event.outcome.text[:LONGEST],
        "failed": event.outcome.failed,
        "seconds": round(event.seconds, 3),
    }

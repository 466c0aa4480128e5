"""Make the tool calls of one answer in parallel. Each has exactly one outcome, whatever its tool does.

Results are stored in the order of the calls, each as soon as all earlier ones are stored, so they survive a crash. A
tool that raises, hangs or ignores its cancellation loses its own result, but never ends the turn.
"""

import asyncio
import json
from collections import Counter as Tally
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from time import monotonic
from typing import Any, TypeVar

from everlong.agent.definitions import Outcome, Place, Tool
from everlong.agent.events import AgentEvent, CallEnded, CallRefused, CallStarted, Report
from everlong.agent.output import storable
from everlong.agent.permissions.action import Action
from everlong.agent.permissions.permissions import Verdict
from everlong.agent.words import ENGLISH, Words
from everlong.core import Image, JsonObject, JsonText, Message, Role, Text, ToolCall, ToolResult, did_you_mean
from everlong.engine import Engine, whole
from everlong.errors import EverlongError, InputError, NoThread

__all__ = ["CallContext", "Repeats", "close_calls", "make_calls", "make_typed", "open_calls"]

AT_ONCE = 20_000  # characters of an outcome that are cleaned in the event loop; longer ones are cleaned in a thread
AGAIN = 3  # identical calls with identical outcomes, after which the model gets a note
LONGEST_REASON = 2_000  # characters of what a tool raised
LONGEST_NAME = 80  # characters of an unknown tool's name that are repeated to the model
LOOKED_BACK = (4, 64, 1_000)  # messages to read until one is an answer; results may be large, so few are read first
T = TypeVar("T")
#: Cancelled tasks that may still run. The references keep them from being garbage-collected.
_ABANDONED: set["asyncio.Task[Any]"] = set()


# --- calls without a result -----------------------------------------------------------------------


def open_calls(messages: Sequence[Message]) -> tuple[ToolCall, ...]:
    """Return the calls of the newest answer that have no result yet, in their order.

    Example: user, calls(a, b), result(a) -> b; user, calls(a), result(a), answer -> none
    """
    newest = next((at for at in range(len(messages) - 1, -1, -1) if messages[at].role is Role.ASSISTANT), None)
    if newest is None:
        return ()
    results = Tally(result.call for message in messages[newest + 1 :] for result in message.results)
    unanswered = []
    for call in messages[newest].calls:
        if results[call.id] > 0:
            results[call.id] -= 1
        else:
            unanswered.append(call)
    return tuple(unanswered)


async def close_calls(engine: Engine, thread: str, reason: str) -> tuple[ToolCall, ...]:
    """Store the reason as the failed result of every open call of the thread, all or none; return those calls."""
    return await whole(_close(engine, thread, reason))


async def _close(engine: Engine, thread: str, reason: str) -> tuple[ToolCall, ...]:
    try:
        calls = open_calls(await asyncio.to_thread(_newest, engine, thread))
    except NoThread:
        return ()
    if calls:
        await engine.append(thread, [_result(call, Outcome(reason, failed=True)) for call in calls])
    return calls


def _newest(engine: Engine, thread: str) -> list[Message]:
    """Return the newest messages, back to an answer of the model."""
    messages: list[Message] = []
    for number in LOOKED_BACK:
        rows = engine.threads.last(thread, number)
        messages = [row.entry for row in rows if isinstance(row.entry, Message)]
        if len(rows) < number or any(message.role is Role.ASSISTANT for message in messages):
            break
    return messages


def _result(call: ToolCall, outcome: Outcome, *notes: Text) -> Message:
    content: tuple[Text | Image, ...] = (Text(outcome.text), *outcome.images, *notes)
    return Message(Role.TOOL, (ToolResult(call.id, content, name=call.name, failed=outcome.failed),))


# --- the calls of a step --------------------------------------------------------------------------


class Repeats:
    """Counts calls that come again with the same arguments and the same outcome, within one turn."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, JsonText], tuple[int, int]] = {}

    def count(self, call: ToolCall, outcome: Outcome) -> int:
        """Count this call; return how many times in a row it has had this outcome."""
        key, now = (call.name, call.arguments), hash(outcome)
        before, times = self._seen.get(key, (now, 0))
        times = times + 1 if before == now else 1
        self._seen[key] = (now, times)
        return times


@dataclass(frozen=True, slots=True, kw_only=True)
class CallContext:
    """The context of the calls of a turn. `place` returns the place of the call with that id."""

    tools: Mapping[str, Tool]
    place: Callable[[str], Place]
    #: Time limit in seconds for tools that set none.
    seconds: float
    #: Seconds for a tool to end once it is cancelled; then it is abandoned.
    grace: float = 5.0
    words: Words = ENGLISH
    repeats: Repeats = field(default_factory=Repeats)


async def make_calls(
    engine: Engine, thread: str, calls: tuple[ToolCall, ...], context: CallContext, report: Report
) -> None:
    """Make all calls and store their results. If cancelled, it first stores a result for every call."""
    step = _Step(engine, thread, calls, context, report)
    try:
        await step.run()
    finally:
        await whole(step.settle())


@dataclass(slots=True)
class _Step:
    """The running calls of one answer. The results of the first `kept` calls are in the thread."""

    engine: Engine
    thread: str
    calls: tuple[ToolCall, ...]
    context: CallContext
    report: Report
    tasks: list["asyncio.Task[Outcome]"] = field(default_factory=list)
    kept: int = 0

    async def run(self) -> None:
        """Start all calls, then store each result as soon as the earlier ones are stored."""
        for call in self.calls:
            self.report(CallStarted(call.id, call.name, call.arguments))
            watch = _Watch()
            task = asyncio.create_task(_make(call, self.context, watch, self.report), name=f"call {call.name}")
            task.add_done_callback(partial(self._report_end, call, watch))
            self.tasks.append(task)
        for task in self.tasks:
            await asyncio.wait((task,))
            await whole(self._keep(self.kept + 1))

    async def settle(self) -> None:
        """Stop the calls that still run, and store a result for every call that has none."""
        for task in self.tasks[self.kept :]:
            task.cancel()
        if self.tasks[self.kept :]:
            await asyncio.wait(self.tasks[self.kept :])
        await self._keep(len(self.tasks))

    async def _keep(self, until: int) -> None:
        fresh = list(zip(self.calls, self.tasks, strict=False))[self.kept : until]
        if fresh:
            self.kept = until
            await self.engine.append(self.thread, [self._message(call, self._outcome(task)) for call, task in fresh])

    def _message(self, call: ToolCall, outcome: Outcome) -> Message:
        times = self.context.repeats.count(call, outcome)
        notes = (Text(self.context.words.repeated.format(count=times)),) if times >= AGAIN else ()
        return _result(call, outcome, *notes)

    def _outcome(self, task: "asyncio.Task[Outcome]") -> Outcome:
        return Outcome(self.context.words.interrupted, failed=True) if task.cancelled() else task.result()

    def _report_end(self, call: ToolCall, watch: "_Watch", task: "asyncio.Task[Outcome]") -> None:
        """Report the end of a call, even if it was stopped before its task began."""
        self.report(CallEnded(call.id, call.name, self._outcome(task), watch.seconds))


@dataclass(slots=True)
class _Watch:
    """Measures how long a tool runs. It restarts after an approval, so the wait for a person does not count."""

    begun: float = field(default_factory=monotonic)

    def start(self) -> None:
        self.begun = monotonic()

    @property
    def seconds(self) -> float:
        return monotonic() - self.begun


# --- one call -------------------------------------------------------------------------------------


async def make_typed(call: ToolCall, context: CallContext) -> Outcome:
    """Make a call that a person typed, and store nothing. Raises InputError with the reason if it is refused."""
    refused: list[str] = []

    def report(event: AgentEvent) -> None:
        if isinstance(event, CallRefused):
            refused.append(event.reason)

    outcome = await _make(call, context, _Watch(), report)
    if refused:
        raise InputError(refused[0])
    return outcome


async def _make(call: ToolCall, context: CallContext, watch: _Watch, report: Report) -> Outcome:
    """Make one call; return its outcome in the form in which it is stored."""
    outcome = await _attempt(call, context, watch, report)
    if len(outcome.text) <= AT_ONCE:
        return storable(outcome)
    task = asyncio.ensure_future(asyncio.to_thread(storable, outcome))
    while not task.done():  # the call is over: its outcome counts, even if the turn is interrupted now
        with suppress(asyncio.CancelledError):
            await asyncio.wait((task,))
    return task.result()


async def _attempt(call: ToolCall, context: CallContext, watch: _Watch, report: Report) -> Outcome:
    """Find the tool, read the arguments, and run it; a tool that acts goes through the gate first."""
    tool = context.tools.get(call.name)
    if tool is None:
        return Outcome(_unknown(call.name, context.tools), failed=True)
    arguments = _arguments(call.arguments)
    if isinstance(arguments, str):
        return Outcome(arguments, failed=True)
    place = context.place(call.id)
    if tool.action is None:
        return await _run_in_time(tool, arguments, place, context, watch)
    guarded = _Guarded(call, tool, arguments, place, context, watch, report)
    return await guarded.attempt()


@dataclass(frozen=True, slots=True)
class _Guarded:
    """A call that needs permission."""

    call: ToolCall
    tool: Tool
    arguments: JsonObject
    place: Place
    context: CallContext
    watch: _Watch
    report: Report

    async def attempt(self) -> Outcome:
        """Run the call if it is allowed, else return why not. The wait for an answer is not the tool's time."""
        action = await self._describe()
        if isinstance(action, Outcome):
            return action
        gate = self.place.gate
        verdict = gate.settled(action)
        if verdict is not None:
            async with gate.changing(action):
                return await self._run(verdict)
        async with gate.lock, gate.changing(action):
            action = await self._describe()  # the file may have changed while another question was open
            if isinstance(action, Outcome):
                return action
            verdict = await self._ask(action)
            if verdict.allowed and action.kind == "file":  # under the lock the file stays as it was shown
                return await self._run(verdict)
        return await self._run(verdict)

    async def _describe(self) -> Action | Outcome:
        assert self.tool.action is not None
        task = await _finish(
            asyncio.to_thread(self.tool.action, self.arguments, self.place), self.context.seconds, self.context.grace
        )
        if not task.done() or task.cancelled():
            return Outcome(f"{self.tool.name} was stopped before it could describe what it would do", failed=True)
        error = task.exception()
        if isinstance(error, EverlongError):
            return Outcome(str(error), failed=True)
        if error is not None:
            reason = f"{self.tool.name} could not describe what it would do: {type(error).__name__}: {error}"
            return Outcome(reason[:LONGEST_REASON], failed=True)
        return task.result()

    async def _ask(self, action: Action) -> Verdict:
        """Ask for permission; a question that fails or is cancelled is a no."""
        task = await _finish(self.place.gate.decide(action), None, self.context.grace)
        if task.cancelled() or task.exception() is not None:
            return Verdict(False, "answered")
        return task.result()

    async def _run(self, verdict: Verdict) -> Outcome:
        if verdict.allowed:
            place = replace(self.place, asked=verdict.asked)
            return await _run_in_time(self.tool, self.arguments, place, self.context, self.watch)
        self.watch.start()
        words = self.context.words
        reason = words.refusals[verdict.why or "answered"].format(detail=verdict.detail)
        line = words.refused_line.format(name=self.tool.name, reason=reason)
        self.report(CallRefused(self.call.id, self.tool.name, line, verdict.why == "answered"))
        return Outcome(words.refused.format(name=self.tool.name, reason=reason), failed=True)


async def _run_in_time(tool: Tool, arguments: JsonObject, place: Place, context: CallContext, watch: _Watch) -> Outcome:
    watch.start()
    seconds = context.seconds if tool.seconds is None else tool.seconds
    task = await _finish(_run(tool, arguments, place), seconds, context.grace)
    if not task.done() or (task.cancelled() and watch.seconds >= seconds):
        return Outcome(f"{tool.name} did not finish within {seconds:g} seconds and was stopped", failed=True)
    return _outcome_of(task, tool)


def _unknown(name: str, tools: Mapping[str, Tool]) -> str:
    hint = did_you_mean(name, tools)
    return f"there is no tool {name[:LONGEST_NAME]!r}{hint} (available: {', '.join(sorted(tools)) or 'none'})"


def _arguments(text: JsonText) -> JsonObject | str:
    """Return the arguments, or one line for the model that says what is wrong with them."""
    if not text.strip():
        return {}
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        return f"the arguments are not valid JSON ({error}); nothing was done. Call it again with one JSON object"
    if not isinstance(value, dict):
        return f"the arguments are a JSON {type(value).__name__}, not an object; nothing was done. Call it again"
    return value


async def _run(tool: Tool, arguments: JsonObject, place: Place) -> Outcome:
    try:
        return await tool.run(arguments, place)
    except SystemExit as error:  # otherwise it would end the event loop, and every turn with it
        raise RuntimeError(f"it tried to end the program ({error})") from error


def _outcome_of(task: "asyncio.Task[Outcome]", tool: Tool) -> Outcome:
    if task.cancelled():
        return Outcome(f"{tool.name} was cancelled before it returned a result", failed=True)
    error = task.exception()
    if error is not None:
        return Outcome(f"{tool.name} failed: {type(error).__name__}: {error}"[:LONGEST_REASON], failed=True)
    outcome: object = task.result()
    return outcome if isinstance(outcome, Outcome) else Outcome(f"{tool.name} returned no outcome", failed=True)


async def _finish(work: Coroutine[Any, Any, T], seconds: float | None, grace: float) -> "asyncio.Task[T]":
    """Run work as a task until it ends or its time is up; return the task. Cancelling this cancels the work too."""
    task = asyncio.create_task(work)
    try:
        await asyncio.wait((task,), timeout=seconds)
    except asyncio.CancelledError:
        if not task.done():  # otherwise it is over, and its result counts
            await _stop(task, grace)
            raise
    if not task.done():
        await _stop(task, grace)
    return task


async def _stop(task: "asyncio.Task[Any]", grace: float) -> None:
    """Cancel a task and wait a little; if it continues, abandon it and ignore its result."""
    task.cancel()
    _ABANDONED.add(task)
    task.add_done_callback(_forget)
    await asyncio.wait((task,), timeout=grace)


def _forget(task: "asyncio.Task[Any]") -> None:
    _ABANDONED.discard(task)
    if not task.cancelled():
        task.exception()  # retrieved, so that asyncio does not log it: the failure is known already

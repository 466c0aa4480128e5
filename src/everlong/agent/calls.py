"""The calls of one answer: made side by side, each with exactly one outcome, whatever its tool does.

Results are kept in the order of the calls, each as soon as those before it are there: what was kept survives a crash.
A tool that raises, hangs or ignores that it is cancelled costs its own result, never the turn.
"""

import asyncio
import json
import re
from collections import Counter as Tally
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import partial
from time import monotonic
from typing import Any, TypeVar

from everlong.agent.definitions import Outcome, Place, Tool
from everlong.agent.events import CallEnded, CallStarted, Tell
from everlong.compress import Cut, Task, as_shown, cut_characters, gap_in_result
from everlong.core import JsonObject, JsonText, Message, Ref, Role, Text, ToolCall, ToolResult
from everlong.engine import Engine, whole
from everlong.errors import NoThread
from everlong.tokens import Counter, estimate

__all__ = [
    "CRASHED",
    "INTERRUPTED",
    "MOST_KEPT",
    "Bench",
    "Repeats",
    "bounded",
    "close_calls",
    "make_calls",
    "open_calls",
    "plain",
    "received",
]

MOST_KEPT = 4_000_000  # characters; more than any window holds
TAIL_SHARE = 1 / 3
LARGEST_COUNTED = 200_000  # characters; the tokens of more are reckoned from as many

#: What a terminal may act on, or a reader cannot see, besides what `as_shown` carries out or leaves out: 8-bit
#: controls, marks that turn the direction of writing round, and the letters of invisible tags.
HIDDEN = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]")
LINE_END = re.compile(r"\r\n?|[\x0b\x0c\x85\u2028\u2029]")
NOT_KEPT = "[{left:,} of {total:,} characters are left out here and were not kept]"


def plain(output: str | bytes) -> str:
    """Text that neither moves a cursor nor hides anything: no escape codes, controls, or half characters.

    Example: b"\\x1b[31m10%\\r100%\\x1b[0m \\xff" -> "100% \\ufffd"
    """
    text = output.decode("utf-8", "replace") if isinstance(output, bytes) else output
    if not text.isascii():
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return LINE_END.sub("\n", HIDDEN.sub("", as_shown(text)))


def received(outcome: Outcome) -> Outcome:
    """An outcome as it is appended to the thread: plain, and no more of it than is worth keeping."""
    text = outcome.text
    if len(text) <= MOST_KEPT:
        return replace(outcome, text=plain(text))
    cut = cut_characters(Cut(text, len(text), 0), MOST_KEPT, TAIL_SHARE)
    marker = NOT_KEPT.format(left=len(text) - cut.characters, total=len(text))
    return replace(outcome, text="\n".join((plain(text[: cut.head]), marker, plain(text[cut.tail :]))))


def bounded(text: str, most: int, ref: Ref, *, language: str = "en") -> str:
    """The head and the tail of a text in about `most` characters, and how to get the rest: recall with `ref`.

    Cut on line ends where there is one near. The same words that stand in a prepared request.
    """
    if len(text) <= most:
        return text
    cut = cut_characters(Cut(text, len(text), 0), most, TAIL_SHARE)
    task = Task(target=0, counter=Counter(), recall="recall", language=language)
    return cut.joined(gap_in_result(cut, _tokens(text, len(text) - cut.characters), ref, task))


def _tokens(text: str, left_out: int) -> int:
    """About how many tokens so many characters of a text are."""
    sample = text[:LARGEST_COUNTED]
    return estimate(sample) * left_out // max(1, len(sample))


LOOKED_BACK = (4, 64, 1_000)  # messages, until an answer is among them; results may be large, so few are read first
CRASHED = {
    "en": "[interrupted: the program ended before a result was kept. The call may or may not have done its work; "
    "look before you make it again.]",
    "zh": "[已中断：程序在保存结果之前结束。该调用可能已执行，也可能未执行；再次调用前请先检查。]",
}
INTERRUPTED = {
    "en": "[interrupted by the user: there is no result. The call may have done part of its work.]",
    "zh": "[已被用户中断：没有结果。该调用可能已完成一部分。]",
}


def open_calls(messages: Sequence[Message]) -> tuple[ToolCall, ...]:
    """The calls of the newest answer that have no result yet, in their order.

    Example: user, calls(a, b), result(a) -> b; user, calls(a), result(a), answer -> none
    """
    newest = next((at for at in range(len(messages) - 1, -1, -1) if messages[at].role is Role.ASSISTANT), None)
    if newest is None:
        return ()
    results = Tally(result.call for message in messages[newest + 1 :] for result in message.results)
    left = []
    for call in messages[newest].calls:
        if results[call.id] > 0:
            results[call.id] -= 1
        else:
            left.append(call)
    return tuple(left)


async def close_calls(engine: Engine, thread: str, reason: str) -> tuple[ToolCall, ...]:
    """Give every open call of the thread the reason as its failed result; the calls. Never half-done."""
    return await whole(_close(engine, thread, reason))


async def _close(engine: Engine, thread: str, reason: str) -> tuple[ToolCall, ...]:
    try:
        calls = open_calls(await asyncio.to_thread(_newest, engine, thread))
    except NoThread:
        return ()
    if calls:
        await engine.append(thread, [_result(call, reason) for call in calls])
    return calls


def _newest(engine: Engine, thread: str) -> list[Message]:
    """The newest messages, back to an answer of the model."""
    found: list[Message] = []
    for many in LOOKED_BACK:
        rows = engine.threads.last(thread, many)
        found = [row.entry for row in rows if isinstance(row.entry, Message)]
        if len(rows) < many or any(message.role is Role.ASSISTANT for message in found):
            break
    return found


def _result(call: ToolCall, reason: str) -> Message:
    return Message(Role.TOOL, (ToolResult(call.id, (Text(reason),), name=call.name, failed=True),))


AT_ONCE = 20_000  # characters of an outcome that are looked through without leaving the event loop
AGAIN = 3  # identical calls with identical outcomes, after which the model is told
LONGEST_REASON = 2_000  # characters of what a tool raised
LONGEST_NAME = 80  # of a tool that is not there, said back
NOTES = {
    "en": "[note: this call gave this same result {count} times. Do something else, or answer with what you have.]",
    "zh": "[提示：同样的调用已 {count} 次得到同样的结果。请换一种做法，或根据已有信息回答。]",
}
REFUSED = {
    "en": "{name} was not allowed, and nothing was done. Do not try it again unless the user asks for it.",
    "zh": "{name} 未获允许，没有执行任何操作。除非用户要求，请不要再试。",
}
T = TypeVar("T")
#: Tools that did not end when told to; held so that they are not collected while they run.
_LEFT: set["asyncio.Task[Any]"] = set()


class Repeats:
    """Counts calls that come again with the same arguments and the same outcome, within one turn."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, JsonText], tuple[int, int]] = {}

    def count(self, call: ToolCall, outcome: Outcome) -> int:
        """How many times in a row this call has come to this."""
        key, now = (call.name, call.arguments), hash(outcome)
        before, times = self._seen.get(key, (now, 0))
        times = times + 1 if before == now else 1
        self._seen[key] = (now, times)
        return times


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """What calls are made with. `place` says where a call of that id is made, `longer` which tools have more time."""

    tools: Mapping[str, Tool]
    place: Callable[[str], Place]
    seconds: float
    longer: Mapping[str, float] = field(default_factory=dict)
    #: Seconds for a tool to end once it is stopped; then it is left to itself.
    grace: float = 5.0
    language: str = "en"
    repeats: Repeats = field(default_factory=Repeats)
    asking: asyncio.Lock = field(default_factory=asyncio.Lock)


async def make_calls(engine: Engine, thread: str, calls: tuple[ToolCall, ...], bench: Bench, tell: Tell) -> None:
    """Make them all and keep their results. Cancelled, every call still gets its result before this ends."""
    step = _Step(engine, thread, calls, bench, tell)
    try:
        await step.run()
    finally:
        await whole(step.settle())


@dataclass(slots=True)
class _Step:
    engine: Engine
    thread: str
    calls: tuple[ToolCall, ...]
    bench: Bench
    tell: Tell
    tasks: list["asyncio.Task[Outcome]"] = field(default_factory=list)
    kept: int = 0

    async def run(self) -> None:
        for call in self.calls:
            self.tell(CallStarted(call.id, call.name, call.arguments))
            watch = _Watch()
            task = asyncio.create_task(_outcome_of(call, self.bench, watch), name=f"call {call.name}")
            task.add_done_callback(partial(self._ended, call, watch))
            self.tasks.append(task)
        for task in self.tasks:
            await asyncio.wait((task,))
            await whole(self._keep(self.kept + 1))

    async def settle(self) -> None:
        """What still runs is stopped; every call that has no result yet gets one."""
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

    def _outcome(self, task: "asyncio.Task[Outcome]") -> Outcome:
        return Outcome(INTERRUPTED[self.bench.language], failed=True) if task.cancelled() else task.result()

    def _message(self, call: ToolCall, outcome: Outcome) -> Message:
        times = self.bench.repeats.count(call, outcome)
        notes = (Text(NOTES[self.bench.language].format(count=times)),) if times >= AGAIN else ()
        content = (Text(outcome.text), *outcome.images, *notes)
        return Message(Role.TOOL, (ToolResult(call.id, content, name=call.name, failed=outcome.failed),))

    def _ended(self, call: ToolCall, watch: "_Watch", task: "asyncio.Task[Outcome]") -> None:
        """Tell it once, also of a call that was stopped before its task had begun."""
        self.tell(CallEnded(call.id, call.name, self._outcome(task), watch.seconds))


@dataclass(slots=True)
class _Watch:
    """How long a call takes. It starts again when somebody was asked: their time is not the tool's."""

    begun: float = field(default_factory=monotonic)

    def start(self) -> None:
        self.begun = monotonic()

    @property
    def seconds(self) -> float:
        return monotonic() - self.begun


async def _outcome_of(call: ToolCall, bench: Bench, watch: _Watch) -> Outcome:
    return await _received(await _made(call, bench, watch))


async def _received(outcome: Outcome) -> Outcome:
    """The outcome in the form that is kept. The call is over: it counts, whoever is interrupted now."""
    if len(outcome.text) <= AT_ONCE:
        return received(outcome)
    task = asyncio.ensure_future(asyncio.to_thread(received, outcome))
    while not task.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait((task,))
    return task.result()


async def _made(call: ToolCall, bench: Bench, watch: _Watch) -> Outcome:
    """One call, from its text to its outcome."""
    tool = bench.tools.get(call.name)
    if tool is None:
        return Outcome(_unknown(call.name, bench.tools), failed=True)
    arguments = _arguments(call.arguments)
    if isinstance(arguments, str):
        return Outcome(arguments, failed=True)
    place = bench.place(call.id)
    if tool.asks and not await _allowed(tool, arguments, place, bench, watch):
        return Outcome(REFUSED[bench.language].format(name=tool.name), failed=True)
    watch.start()
    seconds = bench.longer.get(tool.name, bench.seconds)
    task = await _waited(_run(tool, arguments, place), seconds, bench.grace)
    if not task.done() or (task.cancelled() and watch.seconds >= seconds):
        return Outcome(f"{tool.name} did not end within {seconds:g} seconds and was stopped", failed=True)
    return _read(task, tool)


async def _run(tool: Tool, arguments: JsonObject, place: Place) -> Outcome:
    try:
        return await tool.run(arguments, place)
    except SystemExit as error:  # else it would end the event loop, and every turn with it
        raise RuntimeError(f"it wanted to end the program ({error})") from error


async def _allowed(tool: Tool, arguments: JsonObject, place: Place, bench: Bench, watch: _Watch) -> bool:
    try:
        async with bench.asking:  # one question at a time, however many calls there are
            asked = await _waited(_ask(tool, arguments, place), None, bench.grace)
    finally:
        watch.start()
    return not asked.cancelled() and asked.exception() is None and asked.result()


async def _ask(tool: Tool, arguments: JsonObject, place: Place) -> bool:
    said = (f"{name}: {value if isinstance(value, str) else json.dumps(value)}" for name, value in arguments.items())
    return await place.approve(tool.name, "\n".join(said))


async def _waited(work: Coroutine[Any, Any, T], seconds: float | None, grace: float) -> "asyncio.Task[T]":
    """A task for it, over or stopped. Who is cancelled meanwhile stops it too."""
    task = asyncio.create_task(work)
    try:
        await asyncio.wait((task,), timeout=seconds)
    except asyncio.CancelledError:
        if not task.done():  # else it is over, and what it came to counts
            await _stop(task, grace)
            raise
    if not task.done():
        await _stop(task, grace)
    return task


async def _stop(task: "asyncio.Task[Any]", grace: float) -> None:
    """Cancel it, and wait a little; one that goes on is left alone, and what it comes to is nobody's."""
    task.cancel()
    _LEFT.add(task)
    task.add_done_callback(_left)
    await asyncio.wait((task,), timeout=grace)


def _left(task: "asyncio.Task[Any]") -> None:
    _LEFT.discard(task)
    if not task.cancelled():
        task.exception()  # looked at: its failure is known already


def _read(task: "asyncio.Task[Outcome]", tool: Tool) -> Outcome:
    if task.cancelled():
        return Outcome(f"{tool.name} was cancelled before it came to anything", failed=True)
    error = task.exception()
    if error is not None:
        return Outcome(f"{tool.name} failed: {type(error).__name__}: {error}"[:LONGEST_REASON], failed=True)
    outcome: object = task.result()
    return outcome if isinstance(outcome, Outcome) else Outcome(f"{tool.name} gave no outcome", failed=True)


def _unknown(name: str, tools: Mapping[str, Tool]) -> str:
    near = get_close_matches(name, tools, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    return f"there is no tool {name[:LONGEST_NAME]!r}{hint} (there are: {', '.join(sorted(tools)) or 'none'})"


def _arguments(text: JsonText) -> JsonObject | str:
    """The arguments, or one line for the model that says what is wrong with them."""
    if not text.strip():
        return {}
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        return f"the arguments are not valid JSON ({error}); nothing was done. Make the call again with one JSON object"
    if not isinstance(value, dict):
        return f"the arguments are a JSON {type(value).__name__}, not an object; nothing was done. Make the call again"
    return value

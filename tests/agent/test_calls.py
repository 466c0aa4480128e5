"""The calls of one answer: side by side, every failure a result, approval, and calls that have no result yet."""

import asyncio
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from everlong.agent.agent import Agent
from everlong.agent.calls import CallContext, Repeats, close_calls, make_calls, open_calls
from everlong.agent.definitions import Outcome, Place
from everlong.agent.events import AgentEvent, CallEnded, CallStarted
from everlong.agent.permissions.action import Action, Answer as Permit
from everlong.agent.words import ENGLISH
from everlong.core import CallId, History, Image, JsonObject, Message, Role, Row, ToolCall
from everlong.engine import Engine, Finished
from everlong.llm import Answer, ScriptedModel, in_turn
from everlong.store import MemoryThreads
from tests.agent.acting import (
    CONFIG,
    Act,
    Ran,
    asks_once,
    calls_then,
    ended,
    outcomes,
    run,
    tool_of,
    unanswered,
)
from tests.core.build import assistant, calls, result, user


def test_the_calls_of_one_answer_run_side_by_side_and_their_results_stand_in_order() -> None:
    async def turn() -> None:
        together = asyncio.Barrier(3)  # passed only if all three run at once

        async def meet(arguments: JsonObject, place: Place) -> Outcome:
            await together.wait()
            return Outcome(f"met {arguments['n']}")

        act = Act(ScriptedModel(calls_then([[("meet", f'{{"n": {n}}}') for n in range(3)]])), [tool_of(meet, "meet")])
        assert ended(await act.say("Meet")).reason == "done"
        assert act.results == ["met 0", "met 1", "met 2"]
        act.sound()

    run(turn())


def test_a_result_is_kept_as_soon_as_those_before_it_are_there() -> None:
    async def turn() -> None:
        gate = asyncio.Event()

        async def work(arguments: JsonObject, place: Place) -> Outcome:
            if arguments["n"] == 1:
                await gate.wait()
            return Outcome(f"done {arguments['n']}")

        act = Act(ScriptedModel(calls_then([[("work", f'{{"n": {n}}}') for n in range(3)]])), [tool_of(work, "work")])
        over = 0
        async for event in act.agent.turn("t", "Go"):
            if isinstance(event, CallEnded):
                over += 1
                if over == 2:  # 0 and 2 are done, 1 is not
                    while len(act.results) < 1:
                        await asyncio.sleep(0)
                    assert act.results == ["done 0"]
                    gate.set()
        assert act.results == ["done 0", "done 1", "done 2"]

    run(turn())


async def raises(arguments: JsonObject, place: Place) -> Outcome:
    raise ZeroDivisionError("no division")


async def hangs(arguments: JsonObject, place: Place) -> Outcome:
    await asyncio.Event().wait()
    return Outcome("never")


async def cancels(arguments: JsonObject, place: Place) -> Outcome:
    raise asyncio.CancelledError


async def nonsense(arguments: JsonObject, place: Place) -> Outcome:
    return "text"  # type: ignore[return-value]


async def fine(arguments: JsonObject, place: Place) -> Outcome:
    return Outcome("fine")


FAILURES = {
    "unknown tool": (("raed", "{}"), "there is no tool 'raed'; did you mean read? (available: "),
    "broken JSON": (("read", '{"path": '), "the arguments are not valid JSON (Expecting value"),
    "no object": (("read", "[1]"), "the arguments are a JSON list, not an object; nothing was done"),
    "deep JSON": (("read", "[" * 100_000), "the arguments are not valid JSON"),
    "raises": (("raises", "{}"), "raises failed: ZeroDivisionError: no division"),
    "hangs": (("hangs", "{}"), "hangs did not finish within 0.05 seconds and was stopped"),
    "cancels itself": (("cancels", "{}"), "cancels was cancelled before it returned a result"),
    "no outcome": (("nonsense", "{}"), "nonsense returned no outcome"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_every_failure_is_a_result_in_one_line_and_the_turn_goes_on(name: str) -> None:
    call, expected = FAILURES[name]
    tools = [tool_of(work, work.__name__) for work in (raises, hangs, cancels, nonsense)]
    tools.append(tool_of(fine, "read"))
    config = replace(CONFIG, tool_seconds=0.05)
    act = Act(ScriptedModel(calls_then([[call, ("read", "{}")]])), tools, config)
    events = run(act.say("Go"))
    assert ended(events).reason == "done"
    first, second = (result for message in act.stored for result in message.results)
    assert first.failed
    assert first.text.startswith(expected)
    assert "\n" not in first.text
    assert (second.text, second.failed) == ("fine", False)
    assert not unanswered(act.stored)


def test_empty_arguments_are_no_arguments() -> None:
    ran = Ran()
    run(Act(ScriptedModel(asks_once("read", "")), [ran.tool()]).say("Go"))
    assert ran.calls == [("call_0_0", {})]


def test_pictures_reach_the_thread() -> None:
    picture = Image(data="aGk=", media_type="image/png")

    async def look(arguments: JsonObject, place: Place) -> Outcome:
        return Outcome("seen", images=(picture,))

    act = Act(ScriptedModel(asks_once("look")), [tool_of(look, "look")])
    run(act.say("Look"))
    (kept,) = (result for message in act.stored for result in message.results)
    assert picture in kept.content


def test_the_same_call_with_the_same_result_gets_a_note_the_third_time() -> None:
    act = Act(ScriptedModel(calls_then([[("read", '{"path": "a"}')]] * 4)), [Ran().tool()])
    run(act.say("Go"))
    assert [("returned the same result" in text) for text in act.results] == [False, False, True, True]
    assert all(text.startswith('result of {"path": "a"}') for text in act.results)
    repeats, call = Repeats(), calls("a").calls[0]
    assert [repeats.count(call, Outcome(text)) for text in ("x", "x", "y", "y", "y")] == [1, 2, 1, 2, 3]


def test_a_tool_that_will_not_stop_does_not_hold_the_turn() -> None:
    async def turn() -> None:
        started, free = asyncio.Event(), asyncio.Event()

        async def stubborn(arguments: JsonObject, place: Place) -> Outcome:
            started.set()
            while not free.is_set():
                try:
                    await free.wait()
                except asyncio.CancelledError:
                    continue
            return Outcome("late")

        config = replace(CONFIG, stop_seconds=0.05)
        act = Act(ScriptedModel(asks_once("stubborn")), [tool_of(stubborn, "stubborn")], config)
        task = asyncio.create_task(act.say("Go"))
        await started.wait()
        act.agent.interrupt("t")
        assert ended(await task).reason == "interrupted"
        assert act.results == [ENGLISH.interrupted]
        free.set()

    run(turn())


LEFT: dict[str, tuple[History, list[str]]] = {
    "nothing": ((user("a"), assistant("b")), []),
    "one of two": ((user("a"), calls("x", "y"), result("x")), ["y"]),
    "all": ((user("a"), calls("x", "y")), ["x", "y"]),
    "answered": ((user("a"), calls("x"), result("x")), []),
    "an id that comes again": ((user("a"), calls("x"), result("x"), calls("x")), ["x"]),
    "twice the same id": ((user("a"), calls("x", "x"), result("x")), ["x"]),
    "something said after": ((user("a"), calls("x"), user("hello?")), ["x"]),
    "empty": ((), []),
}


@pytest.mark.parametrize("name", LEFT)
def test_open_calls(name: str) -> None:
    messages, left = LEFT[name]
    assert [call.id for call in open_calls(messages)] == left


@pytest.mark.parametrize(
    ("approval", "says", "asked", "runs"),
    [("ask", True, 2, True), ("ask", False, 2, False), ("always", False, 0, True), ("never", True, 0, False)],
)
def test_a_tool_that_asks_runs_only_when_it_is_allowed(approval: str, says: bool, asked: int, runs: bool) -> None:
    questions: list[tuple[str, str]] = []
    ran = Ran()

    async def approve(action: Action) -> Permit:
        questions.append((action.tool, action.details))
        return Permit.ONCE if says else Permit.NO

    config = replace(CONFIG, approval=approval)
    model = ScriptedModel(calls_then([[("shell", '{"command": "ls"}'), ("shell", '{"command": "pwd"}')]]))
    tool = ran.tool("shell", asks=True)

    async def turn() -> list[object]:
        agent = Agent(Engine(MemoryThreads()), model, [tool], config, permissions=config.permissions(approve))
        return [event async for event in agent.turn("t", "Go")]

    events = run(turn())
    assert questions == [("shell", '{\n  "command": "ls"\n}'), ("shell", '{\n  "command": "pwd"\n}')][:asked]
    assert len(ran.calls) == (2 if runs else 0)
    assert all(outcome.failed is not runs for outcome in outcomes(events))  # type: ignore[arg-type]


def test_whoever_is_asked_and_fails_has_not_allowed_it() -> None:
    async def approve(action: Action) -> Permit:
        raise OSError("the terminal is gone")

    ran = Ran()

    async def turn() -> None:
        tools, permissions = [ran.tool("shell", asks=True)], CONFIG.permissions(approve)
        agent = Agent(
            Engine(MemoryThreads()), ScriptedModel(asks_once("shell")), tools, CONFIG, permissions=permissions
        )
        assert ended([event async for event in agent.turn("t", "Go")]).reason == "done"

    run(turn())
    assert not ran.calls


def test_the_place_names_thread_call_and_workspace() -> None:
    places: list[Place] = []

    async def where(arguments: JsonObject, place: Place) -> Outcome:
        places.append(place)
        return Outcome("here")

    run(Act(ScriptedModel(asks_once("where")), [tool_of(where, "where")]).say("Where?"))
    assert (places[0].thread, places[0].call, places[0].workspace) == ("t", "call_0_0", CONFIG.workspace)


def test_the_cut_off_answer_of_a_call_is_told_not_run() -> None:
    ran = Ran()
    cut = Answer(calls=(("read", '{"path": "a'),), stop="length")
    act = Act(ScriptedModel(in_turn([cut], then=lambda _: Answer(text="ok"))), [ran.tool()])
    events = run(act.say("Go"))
    assert [event.stop for event in events if isinstance(event, Finished)] == ["length", "stop"]
    assert not ran.calls
    assert "not valid JSON" in act.results[0]


def test_a_call_that_is_stopped_before_it_begins_has_its_end_told() -> None:
    async def turn() -> None:
        events: list[AgentEvent] = []
        ran = Ran()

        def report(event: AgentEvent) -> None:
            events.append(event)
            for task in asyncio.all_tasks():
                if isinstance(event, CallStarted) and task.get_name() == "call first":
                    task.cancel()

        act = Act(ScriptedModel(asks_once()))
        made = (ToolCall(CallId("a"), "first", "{}"), ToolCall(CallId("b"), "second", "{}"))
        tools = {name: ran.tool(name) for name in ("first", "second")}
        context = CallContext(tools=tools, place=lambda call: Place(thread="t", call=call, workspace=Path()), seconds=9)
        await act.engine.append("t", [user("Go"), Message(Role.ASSISTANT, made)])
        await make_calls(act.engine, "t", made, context, report)
        assert [(event.call, event.outcome.failed) for event in events if isinstance(event, CallEnded)] == [
            ("a", True),
            ("b", False),
        ]
        assert act.results == [ENGLISH.interrupted, "result of {}"]

    run(turn())


def test_the_time_in_which_somebody_is_asked_is_not_the_tools() -> None:
    asked_for = 0.2

    async def slow(action: Action) -> Permit:
        await asyncio.sleep(asked_for)
        return Permit.ONCE

    async def quick(arguments: JsonObject, place: Place) -> Outcome:
        return Outcome("done")

    async def turn() -> None:
        engine = Engine(MemoryThreads())
        tools, permissions = [tool_of(quick, "act", asks=True)], CONFIG.permissions(slow)
        agent = Agent(engine, ScriptedModel(asks_once("act")), tools, CONFIG, permissions=permissions)
        events = [event async for event in agent.turn("t", "Act")]
        (call,) = (event for event in events if isinstance(event, CallEnded))
        assert call.seconds < asked_for

    run(turn())


def test_a_tool_that_ends_the_program_costs_its_own_result() -> None:
    async def leave(arguments: JsonObject, place: Place) -> Outcome:
        sys.exit("usage: leave")

    act = Act(ScriptedModel(asks_once("leave")), [tool_of(leave, "leave")])
    assert ended(run(act.say("Leave"))).reason == "done"
    assert act.results == ["leave failed: RuntimeError: it tried to end the program (usage: leave)"]


def test_little_is_read_to_find_calls_without_a_result() -> None:
    class Counted(MemoryThreads):
        read_back = 0

        def last(self, thread: str, messages: int) -> list[Row]:
            found = super().last(thread, messages)
            self.read_back += len(found)
            return found

    async def close() -> None:
        threads = Counted()
        engine = Engine(threads)
        await engine.append("t", [user("Go"), calls("a"), result("a"), assistant("Done.")] * 100)
        assert await close_calls(engine, "t", "lost") == ()
        assert threads.read_back <= 8
        await engine.append(
            "t", [user("Go"), calls(*(f"c{n}" for n in range(70))), *(result(f"c{n}") for n in range(69))]
        )
        assert [call.id for call in await close_calls(engine, "t", "lost")] == ["c69"]

    run(close())

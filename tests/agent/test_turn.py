"""The turn: calls side by side, every failure a result, limits, interrupts, what is said meanwhile, and resuming."""

import asyncio
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from everlong.agent.agent import Agent, schemas_of
from everlong.agent.config import AgentConfig
from everlong.agent.definitions import Outcome, Place
from everlong.agent.events import AgentEvent, CallStarted, Entered, TurnEnded
from everlong.agent.words import CHINESE, ENGLISH
from everlong.core import Entry, JsonObject, Message, Role, Row, Text
from everlong.engine import Engine, Failed, Reply, Request, Said
from everlong.errors import InputError, NotRecovered, StoreError
from everlong.llm import Answer, Asked, Refusal, ScriptedModel, Window, in_turn
from everlong.store import MemoryThreads, open_store
from tests.agent.acting import (
    CONFIG,
    LONGEST,
    Act,
    Ran,
    asks_once,
    calls_then,
    ended,
    roles,
    run,
    tool_of,
    with_engine,
)
from tests.core.build import assistant, calls, result, user


def test_a_turn_is_asked_answered_and_told_in_order() -> None:
    ran = Ran()
    act = Act(ScriptedModel(asks_once("read", '{"path": "a"}')), [ran.tool()])
    events = run(act.say("Read a"))
    assert [type(event).__name__ for event in events] == [
        "CallGrew",
        "Finished",
        "CallStarted",
        "CallEnded",
        "Said",
        "Finished",
        "TurnEnded",
    ]
    assert ended(events).reason == "done"
    assert ended(events).steps == 2
    assert ran.calls == [("call_0_0", {"path": "a"})]
    assert roles(act.stored) == [Role.SYSTEM, Role.USER, Role.ASSISTANT, Role.TOOL, Role.ASSISTANT]
    assert act.stored[0].text == "Work carefully."


def test_the_most_steps_end_in_an_answer_without_calls() -> None:
    ran = Ran()
    model = ScriptedModel(
        lambda asked: (
            Answer(text="So far.") if asked.number == 3 else Answer(calls=(("read", f'{{"n":{asked.number}}}'),))
        )
    )
    act = Act(model, [ran.tool()], replace(CONFIG, most_steps=3))
    events = run(act.say("Go on for ever"))
    assert ended(events) == replace(ended(events), reason="most steps", steps=4)
    assert len(ran.calls) == 3
    assert "All 3 steps of this turn are used" in model.requests[-1].messages[-1].text
    assert act.stored[-1].text == "So far."
    assert not any("steps of this turn" in message.text for message in act.stored)  # said, not kept
    act.sound()


def test_a_model_that_calls_nevertheless_is_not_obeyed_and_the_thread_is_sound() -> None:
    ran = Ran()
    model = ScriptedModel(lambda asked: Answer(calls=(("read", f'{{"n":{asked.number}}}'),)))
    act = Act(model, [ran.tool()], replace(CONFIG, most_steps=2))
    assert ended(run(act.say("Go"))).reason == "most steps"
    assert len(ran.calls) == 2
    assert act.results[-1] == "[not made: the turn was at its end.]"
    act.sound()


def test_the_most_tokens_end_a_turn_too() -> None:
    model = ScriptedModel(lambda asked: Answer(calls=(("read", f'{{"n":{asked.number}}}'),)))
    act = Act(model, [Ran().tool()], replace(CONFIG, most_tokens=200))
    last = ended(run(act.say("Go")))
    assert last.reason == "most tokens"
    assert last.tokens >= 200


def test_a_failed_model_ends_the_turn_and_the_next_one_works() -> None:
    model = ScriptedModel(in_turn([Refusal(401, '{"error":{"message":"no key"}}')], then=lambda _: Answer(text="ok")))
    act = Act(model)
    events = run(act.say("Hello"))
    assert isinstance(events[-2], Failed)
    assert ended(events).reason == "failed"
    assert ended(run(act.say("Again"))).reason == "done"
    act.sound()


def test_what_cannot_fit_is_a_failed_turn_that_names_the_parts() -> None:
    act = Act(ScriptedModel(window=Window(2_000, told=True)), config=replace(CONFIG, system="rule " * 4_000))
    events = run(act.say("Hello"))
    assert isinstance(events[0], Failed)
    assert isinstance(events[0].error, NotRecovered)
    assert any("system" in name for name, _ in events[0].error.parts)
    assert ended(events).reason == "failed"


# --- Interrupts -------------------------------------------------------------------------------------


@dataclass
class Slow:
    """A model that says half an answer, and the rest when it is let."""

    fmt: str = "openai-chat"
    endpoint: str = "slow"
    provider: str = ""
    said: asyncio.Event = field(default_factory=asyncio.Event)
    closed: bool = False

    async def served_window(self, _: str) -> int | None:
        return None

    async def stream(self, request: Request) -> AsyncGenerator[Reply, None]:
        try:
            yield Said("Half")
            self.said.set()
            await asyncio.Event().wait()
        finally:
            self.closed = True


def test_an_interrupt_while_the_model_speaks_keeps_no_half_answer() -> None:
    async def turn() -> None:
        act = Act(Slow())
        task = asyncio.create_task(act.say("Tell me"))
        await act.model.said.wait()  # type: ignore[attr-defined]
        assert act.agent.running("t")
        assert act.agent.interrupt("t")
        events = await task
        assert ended(events).reason == "interrupted"
        assert not act.agent.running("t")
        assert not act.agent.interrupt("t")
        assert act.model.closed  # type: ignore[attr-defined]
        assert roles(act.stored) == [Role.SYSTEM, Role.USER]
        assert act.kinds() == ["turn.started", "turn.failed"]

    run(turn())


async def _interrupted(act: Act, started: asyncio.Event, by: str) -> list[object]:
    """A turn stopped once a tool runs: by the agent, by cancelling who reads it, or by closing the iterator."""
    if by == "close":
        async with aclosing(act.agent.turn("t", "Go")) as events:
            async for event in events:
                if isinstance(event, CallStarted):
                    await started.wait()
                    break
        return []
    task = asyncio.create_task(act.say("Go"))
    await started.wait()
    if by == "interrupt":
        act.agent.interrupt("t")
        return list(await task)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    return []


@pytest.mark.parametrize("by", ["interrupt", "cancel", "close"])
def test_an_interrupt_while_tools_run_gives_every_call_its_one_result(by: str) -> None:
    async def turn() -> None:
        started, stopped = asyncio.Event(), asyncio.Event()

        async def work(arguments: JsonObject, place: Place) -> Outcome:
            if arguments["n"] != 1:
                return Outcome(f"done {arguments['n']}")
            started.set()
            try:
                await asyncio.Event().wait()
            finally:
                stopped.set()
            return Outcome("never")

        model = ScriptedModel(calls_then([[("work", f'{{"n": {n}}}') for n in range(3)]]))
        act = Act(model, [tool_of(work, "work")])
        events = await _interrupted(act, started, by)
        if by == "interrupt":
            assert ended(events).reason == "interrupted"  # type: ignore[arg-type]
        assert stopped.is_set()
        assert act.results == ["done 0", ENGLISH.interrupted, "done 2"]
        act.sound()
        assert ended(await act.say("Go on")).reason == "done"
        assert len([r for m in model.requests[-1].messages for r in m.results]) == 3

    run(turn())


def test_a_store_that_fails_is_raised_and_leaves_nothing_running() -> None:
    class Full(MemoryThreads):
        def append(self, thread: str, entries, **given: object):  # type: ignore[no-untyped-def, override]
            if full and any(isinstance(each, Message) and each.results for each in entries):
                raise StoreError("the disk is full")
            return super().append(thread, entries, **given)  # type: ignore[arg-type]

    async def turn() -> None:
        act = Act(ScriptedModel(asks_once()), [Ran().tool()], threads=Full())
        with pytest.raises(StoreError, match="disk is full"):
            await act.say("Go")
        assert not act.agent.running("t")
        full.clear()
        assert ended(await act.say("Go on")).reason == "done"
        assert act.results == [ENGLISH.crashed]
        act.sound()

    full = [True]
    run(turn())


# --- One turn at a time, and what is said meanwhile -------------------------------------------------


def test_what_is_said_while_a_turn_runs_enters_at_its_next_step_in_order() -> None:
    async def turn() -> None:
        started, gate = asyncio.Event(), asyncio.Event()

        async def work(arguments: JsonObject, place: Place) -> Outcome:
            started.set()
            await gate.wait()
            return Outcome("done")

        model = ScriptedModel(asks_once("work"))
        act = Act(model, [tool_of(work, "work")])
        first = asyncio.create_task(act.say("First"))
        await started.wait()
        assert act.agent.steer("t", "Second")
        third = asyncio.create_task(act.say("Third"))
        await asyncio.sleep(0)
        gate.set()
        events = await first
        assert [event.message.text for event in events if isinstance(event, Entered)] == ["Second", "Third"]
        assert await third == [TurnEnded("joined", 0)]
        second, still, third = (message.text for message in model.requests[-1].messages[-3:])
        assert (second, third) == ("Second", "Third")  # the last stands last
        assert still.splitlines()[1:] == ["", "First", "", "Second"]  # and nothing before it is forgotten
        assert not any("Kept by the system" in message.text for message in act.stored)
        assert len(model.requests) == 2
        act.sound()
        assert not act.agent.steer("t", "Nobody hears")
        assert not act.agent._lanes

    run(turn())


def test_what_is_said_to_a_turn_at_its_end_is_answered_in_it() -> None:
    async def turn() -> None:
        act = Act(ScriptedModel())
        events = []
        async for event in act.agent.turn("t", "One"):
            events.append(event)
            if isinstance(event, Said) and event.text == "One":
                assert act.agent.steer("t", "Two")
        assert act.stored[-1].text == "Two"
        assert ended(events).steps == 2

    run(turn())


def test_two_turns_of_one_thread_follow_each_other_and_two_threads_run_at_once() -> None:
    async def turn() -> None:
        both = asyncio.Barrier(2)

        async def meet(arguments: JsonObject, place: Place) -> Outcome:
            await both.wait()
            return Outcome("met")

        left = {"a": 1, "b": 1}

        def script(asked: Asked) -> Answer:
            thread = asked.messages[1].text
            left[thread] -= 1
            return Answer(calls=(("meet", "{}"),)) if left[thread] >= 0 else Answer(text="Done.")

        agent = Agent(Engine(MemoryThreads()), ScriptedModel(script), [tool_of(meet, "meet")], CONFIG)

        async def say(thread: str) -> TurnEnded:
            return ended([event async for event in agent.turn(thread, thread)])

        assert [each.reason for each in await asyncio.gather(say("a"), say("b"))] == ["done", "done"]

    run(turn())


def test_an_event_of_the_system_is_told_apart_from_the_user_and_has_the_same_turn() -> None:
    ran = Ran()
    act = Act(ScriptedModel(asks_once()), [ran.tool()])
    assert ended(run(act.say("The build is green.", "system"))).reason == "done"
    assert act.stored[1].text == "[An event of the system, not a message of the user]\nThe build is green."
    assert len(ran.calls) == 1


# --- Resuming ---------------------------------------------------------------------------------------


def test_B1_after_a_crash_open_calls_get_results_and_nothing_is_run_again() -> None:
    ran = Ran()
    act = Act(ScriptedModel(lambda _: Answer(text="I see.")), [ran.tool()])
    act.threads.create("t")
    act.threads.append("t", [user("Go"), calls("x", "y", name="read"), result("x", "kept")])
    assert ended(run(act.say("Are you there?"))).reason == "done"
    assert act.results == ["kept", ENGLISH.crashed]
    assert roles(act.stored)[-3:] == [Role.TOOL, Role.USER, Role.ASSISTANT]
    assert not ran.calls
    act.sound()


def test_B1_a_program_that_was_killed_in_the_middle_of_a_call_resumes_and_runs_nothing_twice(tmp_path: Path) -> None:
    store, log = f"sqlite:///{tmp_path / 'threads.db'}", tmp_path / "log"
    died = subprocess.run([sys.executable, "-m", "tests.agent.dying", store, str(log)], check=False)
    assert died.returncode == -signal.SIGKILL
    with open_store(store) as threads:
        ran = Ran()
        act = Act(ScriptedModel(lambda _: Answer(text="I see.")), [ran.tool("act")], threads=threads)
        assert ended(run(act.say("Go on"))).reason == "done"
        assert act.results == ["done 0", ENGLISH.crashed, ENGLISH.crashed]
        assert not ran.calls
        act.sound()
    assert sorted(log.read_text("utf-8").split()) == ["0", "1", "2"]


def test_a_chinese_thread_is_told_in_chinese() -> None:
    act = Act(ScriptedModel(lambda _: Answer(text="好的。")), config=replace(CONFIG, language="auto"))
    act.threads.create("t")
    act.threads.append("t", [user("开始"), calls("x")])
    run(act.say("你还在吗？"))
    assert act.results == [CHINESE.crashed]


# --- Approval, tools, schemas -----------------------------------------------------------------------


def test_tools_are_switched_off_by_name_and_two_of_one_name_are_refused() -> None:
    tools = [Ran().tool("read"), Ran().tool("write")]
    off = Agent(Engine(MemoryThreads()), ScriptedModel(), tools, replace(CONFIG, tools_off=("write",)))
    only = Agent(Engine(MemoryThreads()), ScriptedModel(), tools, replace(CONFIG, tools=("write",)))
    assert [[tool.name for tool in agent.tools] for agent in (off, only)] == [["read"], ["write"]]
    with pytest.raises(InputError, match="same name: read"):
        Agent(Engine(MemoryThreads()), ScriptedModel(), [tools[0], tools[0]], CONFIG)


@pytest.mark.parametrize("fmt", ["anthropic", "gemini", "openai-chat", "openai-responses"])
def test_every_format_has_its_schema(fmt: str) -> None:
    (schema,) = schemas_of([Ran().tool()], fmt)
    assert '"name": "read"' in schema
    with pytest.raises(InputError, match="not a JSON schema"):
        schemas_of([replace(Ran().tool(), parameters="{")], fmt)


def test_only_user_messages_are_said_to_an_agent() -> None:
    with pytest.raises(InputError, match="user message"):
        run(Act(ScriptedModel()).say(assistant("no")))  # type: ignore[arg-type]


def test_the_call_of_the_next_step_can_be_asked_for() -> None:
    act = Act(ScriptedModel(), [Ran().tool()], with_engine(window=9_000))
    call = run(act.agent.call("t"))
    assert (call.model, call.max_tokens, len(call.tools), call.recall_tool) == ("gpt-4o", 500, 1, "")
    with_recall = Act(ScriptedModel(), [Ran().tool("recall")])
    assert run(with_recall.agent.call("t")).recall_tool == "recall"


def test_what_was_taken_in_is_kept_though_the_turn_is_interrupted_then() -> None:
    async def turn() -> None:
        appending, go_on = threading.Event(), threading.Event()

        class Slow(MemoryThreads):
            def append(self, thread: str, entries: Sequence[Entry], **given: Any) -> tuple[Row, ...]:
                if any(isinstance(entry, Message) and entry.text == "And this" for entry in entries):
                    appending.set()
                    go_on.wait(LONGEST)
                return super().append(thread, entries, **given)

        async def meanwhile(arguments: JsonObject, place: Place) -> Outcome:
            agent.steer("t", "And this")
            return Outcome("done")

        engine = Engine(Slow())
        agent = Agent(engine, ScriptedModel(asks_once("act")), [tool_of(meanwhile, "act")], CONFIG)
        reading = asyncio.create_task(_all_of(agent))
        await asyncio.to_thread(appending.wait, LONGEST)
        agent.interrupt("t")
        for _ in range(20):  # were it not waited for, the turn would go on to its end
            await asyncio.sleep(0)
        assert agent.running("t")
        go_on.set()
        assert ended(await reading).reason == "interrupted"
        said = [row.entry.text for row in engine.threads.read("t") if isinstance(row.entry, Message)]
        assert said.count("And this") == 1

    run(turn())


async def _all_of(agent: Agent) -> list[AgentEvent]:
    return [event async for event in agent.turn("t", "Act")]


def test_what_stands_last_is_answered_again_and_not_said_twice() -> None:
    model = ScriptedModel(in_turn([Answer(text="first"), Answer(text="second")]))

    async def work() -> list[str]:
        agent = Agent(Engine(MemoryThreads()), model, (), AgentConfig(system=""))
        await agent.engine.append("t", [Message(Role.USER, (Text("When?"),))])
        async for _ in agent.turn("t", "When?", "again"):
            continue
        return [row.entry.text for row in agent.engine.threads.read("t") if isinstance(row.entry, Message)]

    assert asyncio.run(work()) == ["When?", "first"]

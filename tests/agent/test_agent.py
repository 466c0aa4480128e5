"""The agent: one turn at a time for each thread, messages that come meanwhile, and what a call is made of."""

import asyncio
import re
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from everlong.agent.agent import Agent, schemas_of
from everlong.agent.config import AgentConfig
from everlong.agent.definitions import Outcome, Place
from everlong.agent.events import AgentEvent, Entered, TurnEnded
from everlong.agent.permissions.action import Action, Answer as Yes
from everlong.agent.words import CHINESE
from everlong.core import Entry, JsonObject, Message, Role, Row, Text
from everlong.engine import Engine, Said
from everlong.errors import InputError, NoThread
from everlong.llm import Answer, ReceivedRequest, ScriptedModel, in_turn
from everlong.store import MemoryThreads
from tests.agent.acting import (
    CONFIG,
    LONGEST,
    Act,
    Ran,
    asks_once,
    ended,
    run,
    tool_of,
    with_engine,
)
from tests.core.build import assistant, calls, user


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

        def script(asked: ReceivedRequest) -> Answer:
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
    assert act.stored[1].text == "[System event, not a message from the user]\nThe build is green."
    assert len(ran.calls) == 1


def test_a_chinese_thread_is_told_in_chinese() -> None:
    act = Act(ScriptedModel(lambda _: Answer(text="好的。")), config=replace(CONFIG, language="auto"))
    act.threads.create("t")
    act.threads.append("t", [user("开始"), calls("x")])
    run(act.say("你还在吗？"))
    assert act.results == [CHINESE.crashed]


def test_tools_are_switched_off_by_name_and_two_of_one_name_are_refused() -> None:
    tools = [Ran().tool("read"), Ran().tool("write")]
    off = Agent(Engine(MemoryThreads()), ScriptedModel(), tools, replace(CONFIG, tools_off=("write",)))
    only = Agent(Engine(MemoryThreads()), ScriptedModel(), tools, replace(CONFIG, tools=("write",)))
    assert [[tool.name for tool in agent.tools] for agent in (off, only)] == [["read"], ["write"]]
    with pytest.raises(InputError, match="same name: read"):
        Agent(Engine(MemoryThreads()), ScriptedModel(), [tools[0], tools[0]], CONFIG)


@pytest.mark.parametrize("fmt", ["anthropic", "gemini", "ollama", "openai-chat", "openai-responses"])
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


# --- what a person types --------------------------------------------------------------------------


async def _no(_: Action) -> Yes:
    raise AssertionError("nobody is asked about what a person typed")


@pytest.mark.parametrize(
    ("config", "line"),
    [
        (CONFIG, ""),
        (replace(CONFIG, approval="never"), 'act was not allowed: the approval setting is "never"'),
        (replace(CONFIG, deny=("tool:act",)), "act was not allowed: the pattern tool:act denies it"),
        (replace(CONFIG, tools_off=("act",)), "there is no tool act"),
    ],
    ids=["free", "never", "denied", "off"],
)
def test_having_typed_it_is_the_answer_but_what_is_denied_stays_denied(config: AgentConfig, line: str) -> None:
    ran = Ran()
    engine = Engine(MemoryThreads())
    agent = Agent(engine, ScriptedModel(), [ran.tool("act", asks=True)], config, permissions=config.permissions(_no))
    if line:
        with pytest.raises(InputError, match=f"^{re.escape(line)}$"):
            run(agent.run_typed("t", "act", {"much": 1}))
    else:
        assert not run(agent.run_typed("t", "act", {"much": 1})).failed
    assert ran.calls == ([] if line else [("", {"much": 1})])
    with pytest.raises(NoThread):
        engine.threads.thread("t")

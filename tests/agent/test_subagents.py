"""Sub-agents: their own thread, model, window and budget; bounded results, typed ends, depth, cancelling."""

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import pytest

from everlong.agent.agent import Agent
from everlong.agent.config import AgentConfig, SubAgents
from everlong.agent.definitions import Outcome, Place, Tool
from everlong.agent.events import AgentEvent
from everlong.agent.subagents import SubAgentSetup, spawn_tools
from everlong.agent.words import ENGLISH
from everlong.core import JsonObject, Message
from everlong.engine import Engine, Model
from everlong.errors import StoreError
from everlong.llm import Answer, ReceivedRequest, Refusal, ScriptedModel, Window
from everlong.store import MemoryThreads
from tests.agent.acting import CONFIG, Ran, calls_then, ended, run, tool_of, unanswered

TOO_LONG = Refusal(400, '{"error":{"message":"prompt is too long: 9000 tokens > 8000 maximum"}}')


@dataclass
class Family:
    """An agent that may spawn, and its sub-agents on a model of their own."""

    parent: Model
    child: Model
    tools: Sequence[Tool] = ()
    limits: SubAgents = field(default_factory=SubAgents)
    language: str = "en"

    def __post_init__(self) -> None:
        self.threads = MemoryThreads()
        self.engine = Engine(self.threads)
        self.seen: list[tuple[str, AgentEvent]] = []
        config: AgentConfig = replace(CONFIG, subagents=self.limits, language=self.language, owner="ann")  # type: ignore[arg-type]
        setup = SubAgentSetup(
            engine=self.engine,
            model=self.child,
            tools=self.tools,
            config=config,
            watch=lambda thread, event: self.seen.append((thread, event)),
        )
        self.agent = Agent(self.engine, self.parent, (*self.tools, *spawn_tools(setup)), config)

    async def say(self, text: str) -> list[AgentEvent]:
        return [event async for event in self.agent.turn("main", text)]

    def messages(self, thread: str = "main") -> tuple[Message, ...]:
        return tuple(row.entry for row in self.threads.read(thread) if isinstance(row.entry, Message))

    def results(self) -> list[tuple[JsonObject, str, bool]]:
        """Results of the main thread: head, text, failed."""
        found = []
        for result in (each for message in self.messages() for each in message.results):
            head, _, text = result.text.partition("\n")
            found.append((json.loads(head) if head.startswith("{") else {}, text, result.failed))
        return found


def spawns(*tasks: str) -> Callable[[ReceivedRequest], Answer]:
    return calls_then([[("spawn", json.dumps({"task": task})) for task in tasks]])


def test_a_task_is_done_in_a_thread_of_its_own_that_is_kept_and_knows_whose_it_is() -> None:
    child = ScriptedModel(calls_then([[("read", '{"path": "a"}')]], "The port is 8080."))
    ran = Ran()
    family = Family(ScriptedModel(spawns("Find the port")), child, [ran.tool()], SubAgents(model="gpt-4o-mini"))
    assert ended(run(family.say("Which port?"))).reason == "done"
    ((head, text, failed),) = family.results()
    assert (text, failed) == ("The port is 8080.", False)
    assert (head["status"], head["kind"], head["steps"]) == ("done", "done", 2)
    thread = family.threads.thread(str(head["subagent"]))
    assert json.loads(thread.metadata) == {"parent": {"thread": "main", "call": "call_0_0"}, "depth": 1}
    assert (thread.owner, thread.title) == ("ann", "Find the port")
    assert {asked.model for asked in child.requests} == {"gpt-4o-mini"}
    assert family.messages(thread.id)[1].text == "Find the port"
    assert len(ran.calls) == 1
    assert {thread_id for thread_id, _ in family.seen} == {thread.id}


def test_several_run_side_by_side_and_call_ids_that_come_again_get_new_threads() -> None:
    async def turn() -> None:
        both = asyncio.Barrier(2)

        async def meet(arguments: JsonObject, place: Place) -> Outcome:
            await both.wait()
            return Outcome("met")

        left = {"a": 1, "b": 1}

        def child(asked: ReceivedRequest) -> Answer:
            task = asked.messages[1].text
            left[task] -= 1
            return Answer(calls=(("meet", "{}"),)) if left[task] >= 0 else Answer(text=f"{task} met")

        family = Family(ScriptedModel(spawns("a", "b")), ScriptedModel(child), [tool_of(meet, "meet")])
        assert ended(await family.say("Go")).reason == "done"
        assert [text for _, text, _ in family.results()] == ["a met", "b met"]
        family.parent.requests.clear()  # type: ignore[attr-defined]
        family.parent.script = spawns("again")  # type: ignore[attr-defined]
        left["again"] = 0
        await family.say("Once more")  # call_0_0 again
        assert family.results()[-1][0]["subagent"] == "main.call_0_0-2"

    run(turn())


def test_a_long_result_is_bounded_and_the_whole_can_be_read() -> None:
    long = "\n".join(f"line {n}: the gauge of valve {n} shows {n * 7} bar" for n in range(3_000))
    parent = ScriptedModel(
        calls_then(
            [
                [("spawn", '{"task": "Write much"}')],
                [("read_subagent", '{"thread": "main.call_0_0"}'), ("read_subagent", '{"thread": "main"}')],
                [("read_subagent", '{"thread": "main.call_0_0", "what": "Write much"}')],
            ]
        )
    )
    family = Family(parent, ScriptedModel(lambda _: Answer(text=long)), limits=SubAgents(result_characters=500))
    run(family.say("Go"))
    first, whole, other, found = (each for message in family.messages() for each in message.results)
    assert len(first.text) < 900
    assert "call read_subagent with thread 'main.call_0_0' to read all of it" in first.text
    assert whole.text.startswith("line 0: the gauge")
    assert len(whole.text) == 20_000
    assert (other.text, other.failed) == ("'main' is not a sub-agent of this conversation", True)
    assert "Write much" in found.text


@pytest.mark.parametrize("language", ["en", "zh"])
def test_an_overflow_that_cannot_be_recovered_is_a_typed_partial_result(language: str) -> None:
    def child(asked: ReceivedRequest) -> Answer | Refusal:
        return TOO_LONG if asked.number else Answer(text="I begin.", calls=(("read", '{"path": "a"}'),))

    family = Family(ScriptedModel(spawns("Go")), ScriptedModel(child), [Ran().tool()], language=language)
    assert ended(run(family.say("Go"))).reason == "done"
    ((head, text, failed),) = family.results()
    assert failed
    assert (head["status"], head["kind"]) == ("partial", "overflow")
    assert ("任务中止" if language == "zh" else "its context overflowed") in text
    assert '- read: result of {"path": "a"}' in text
    assert "I begin." in text
    assert "prompt is too long" not in text
    assert not unanswered(family.messages(str(head["subagent"])))


def test_a_sub_agent_has_more_time_than_a_tool_and_then_is_stopped_too() -> None:
    async def hang(arguments: JsonObject, place: Place) -> Outcome:
        await asyncio.Event().wait()
        return Outcome("never")

    child = ScriptedModel(lambda _: Answer(calls=(("hang", "{}"),)))
    family = Family(ScriptedModel(spawns("Go")), child, [tool_of(hang, "hang")], SubAgents(seconds=0.1))
    assert ended(run(family.say("Go"))).reason == "done"
    (result,) = (each for message in family.messages() for each in message.results)
    assert result.text == "spawn did not finish within 0.1 seconds and was stopped"
    assert not unanswered(family.messages("main.call_0_0"))


ENDS: dict[str, tuple[SubAgents, str]] = {
    "most steps": (SubAgents(most_steps=2), "used all of its steps"),
    "most tokens": (SubAgents(most_tokens=150), "used all of its tokens"),
}


@pytest.mark.parametrize("kind", ENDS)
def test_a_budget_that_is_used_up_is_a_typed_partial_result(kind: str) -> None:
    limits, said = ENDS[kind]
    child = ScriptedModel(
        lambda asked: Answer(text=f"At {asked.number}.", calls=(("read", f'{{"n":{asked.number}}}'),))
    )
    family = Family(ScriptedModel(spawns("Go")), child, [Ran().tool()], limits)
    run(family.say("Go"))
    ((head, text, failed),) = family.results()
    assert (head["kind"], head["status"], failed) == (kind, "partial", True)
    assert said in text


def test_a_model_that_refuses_is_a_failed_result_and_not_an_end() -> None:
    child = ScriptedModel(lambda _: Refusal(401, '{"error":{"message":"Incorrect API key"}}'))
    family = Family(ScriptedModel(spawns("Go")), child)
    assert ended(run(family.say("Go"))).reason == "done"
    ((head, text, failed),) = family.results()
    assert (head["kind"], head["status"], failed) == ("error", "failed", True)
    assert "Incorrect API key" in text


def test_no_nesting_beyond_depth_two() -> None:
    def child(asked: ReceivedRequest) -> Answer:
        depth[0] = max(depth[0], sum('"spawn"' in tool for tool in asked.tools) and asked.number + 1)
        nested = any('"name": "spawn"' in tool for tool in asked.tools)
        seen.append(nested)
        asked_before = any(message.results for message in asked.messages)
        return Answer(calls=(("spawn", '{"task": "deeper"}'),)) if nested and not asked_before else Answer(text="end")

    depth, seen = [0], []  # type: ignore[var-annotated]
    family = Family(ScriptedModel(spawns("Go")), ScriptedModel(child))
    run(family.say("Go"))
    assert seen == [True, False, True]  # the child may, the grandchild may not
    depths = [json.loads(thread.metadata).get("depth", 0) for thread in family.threads.threads()]
    assert sorted(depths) == [0, 1, 2]
    setup = SubAgentSetup(engine=family.engine, model=family.child)
    assert [len(spawn_tools(setup, depth)) for depth in (0, 1, 2, 3)] == [2, 2, 0, 0]


def test_interrupting_the_parent_stops_the_sub_agent_and_both_threads_are_sound() -> None:
    async def turn() -> None:
        started, stopped = asyncio.Event(), asyncio.Event()

        async def work(arguments: JsonObject, place: Place) -> Outcome:
            started.set()
            try:
                await asyncio.Event().wait()
            finally:
                stopped.set()
            return Outcome("never")

        child = ScriptedModel(lambda _: Answer(calls=(("work", "{}"),)))
        family = Family(ScriptedModel(spawns("Go")), child, [tool_of(work, "work")])
        task = asyncio.create_task(family.say("Go"))
        await started.wait()
        family.agent.interrupt("main")
        assert ended(await task).reason == "interrupted"
        assert stopped.is_set()
        for thread in ("main", "main.call_0_0"):
            (result,) = (each for message in family.messages(thread) for each in message.results)
            assert result.text == ENGLISH.interrupted
            assert not unanswered(family.messages(thread))

    run(turn())


def test_it_has_its_own_window() -> None:
    child = ScriptedModel(lambda _: Answer(text="ok"), Window(1_000_000, told=True))
    family = Family(ScriptedModel(spawns("Go")), child, limits=SubAgents(window=9_000))
    run(family.say("Go"))
    assert family.threads.thread("main.call_0_0").settings == '{"window": 9000}'


@pytest.mark.parametrize("arguments", ["{}", '{"task": 1}', '{"task": "  "}'])
def test_a_task_that_says_nothing_is_told_so(arguments: str) -> None:
    family = Family(ScriptedModel(calls_then([[("spawn", arguments)]])), ScriptedModel())
    run(family.say("Go"))
    (result,) = (each for message in family.messages() for each in message.results)
    assert result.failed
    assert "describe what to do" in result.text


def test_a_store_that_fails_is_a_result_of_spawn() -> None:
    class NoNew(MemoryThreads):
        def create(self, thread: str, **given: object):  # type: ignore[no-untyped-def, override]
            if "." in thread:
                raise StoreError("no room for another thread")
            return super().create(thread, **given)  # type: ignore[arg-type]

    async def turn() -> Outcome:
        engine = Engine(NoNew())
        await engine.append("main", [])
        (spawn, _) = spawn_tools(SubAgentSetup(engine=engine, model=ScriptedModel()))
        return await spawn.run({"task": "Go"}, Place(thread="main", call="c", workspace=CONFIG.workspace))

    outcome = run(turn())
    assert outcome.failed
    assert "no room for another thread" in outcome.text

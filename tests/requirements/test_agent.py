"""Requirement lines at the agent, over real HTTP: N1-1.4, N1-2.4, N1-10, N3-9, N3-12, SB-6, CS-6, CS-7."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from everlong.agent import Agent, AgentConfig, AgentEvent, Kind
from everlong.agent.config import SubAgents, load_config
from everlong.agent.standing_context import workspace_standing
from everlong.agent.subagents import SubAgentSetup, spawn_tools
from everlong.core import EventKind, Message, Role
from everlong.engine import Engine, Failed, Settings, Summaries
from everlong.errors import NotRecovered
from everlong.llm import (
    Answer,
    HttpModel,
    ReceivedRequest,
    Refusal,
    ScriptedModel,
    ScriptedServer,
    Step,
    Window,
    in_turn,
    reads_files,
)
from everlong.store import MemoryThreads
from tests.agent.acting import CONFIG, Act, Ran, calls_then, ended, run
from tests.core.build import assistant, calls, result, user
from tests.engine.authors import Gate, structured
from tests.engine.talking import FORMATS, over_http, pages

TOO_LONG = Refusal(400, '{"error":{"message":"prompt is too long: 9000 tokens > 8000 maximum"}}')
OK = Answer(text="ok")


def nanobot(folder: Path, **defaults: object) -> AgentConfig:
    """A configuration from a `config.json` of nanobot."""
    path = folder / "config.json"
    path.write_text(json.dumps({"agents": {"defaults": {"model": "gpt-4o", **defaults}}}), "utf-8")
    return load_config({}, file=path)


def files(ran: Ran, lines: int = 60):  # type: ignore[no-untyped-def]
    """A tool whose results are pages of code."""
    return ran.tool("read_file", lambda given: pages(sum(map(ord, str(given))), lines))


# --- N1: nanobot ------------------------------------------------------------------------------------


def test_N1_1_4_an_agent_is_set_by_nanobots_file_and_off_sends_every_byte_as_it_stands(tmp_path: Path) -> None:
    config = nanobot(tmp_path, contextCompression=False, maxTokens=321, temperature=0.25)
    ran = Ran()

    async def turns(model: HttpModel) -> Act:
        act = Act(model, [files(ran, 400)], config)
        for turn in range(4):
            assert ended(await act.say(f"Question {turn}")).reason == "done"
        return act

    with ScriptedServer(reads_files(3)) as server:
        act = over_http(server, turns)
    stored = act.stored
    for asked in server.requests:
        assert [m.text for m in asked.messages] == [m.text for m in stored[: len(asked.messages)]]
        sent = [r.text for m in asked.messages for r in m.results]
        assert sent == [r.text for m in stored[: len(asked.messages)] for r in m.results]
        assert (asked.max_tokens, asked.temperature) == (321, 0.25)
    assert "context.compressed" not in act.kinds()


def test_N1_1_4_the_window_that_is_overridden_is_the_one_that_counts(tmp_path: Path) -> None:
    config = nanobot(tmp_path, contextWindowOverride=16_000, maxTokens=500)

    async def turns(model: HttpModel) -> None:
        act = Act(model, [files(Ran())], config)
        for turn in range(12):
            await act.say(f"Question {turn}")

    with ScriptedServer(reads_files(2)) as server:
        over_http(server, turns)
    assert max(asked.tokens for asked in server.requests) <= 0.85 * 16_000
    assert max(asked.tokens for asked in server.requests) > 0.4 * 16_000


@pytest.mark.parametrize(("share", "whole"), [(0.1, False), (0.3, True)])
def test_N1_1_4_the_limit_of_a_tool_result_is_the_one_that_is_set(share: float, whole: bool, tmp_path: Path) -> None:
    config = nanobot(tmp_path, contextWindowOverride=16_000, toolResultSoftLimit=share, maxTokens=500)
    assert config.engine.option("tool_result_soft_limit") == share
    text = pages(3, 80)  # between a tenth and three tenths of 16 000
    model = ScriptedModel(calls_then([[("read_file", "{}")]]))
    act = Act(model, [Ran().tool("read_file", lambda _: text)], config)
    assert ended(run(act.say("Read"))).reason == "done"
    (sent,) = (r.text for message in model.requests[-1].messages for r in message.results)
    assert (sent == text) is whole
    assert act.results == [text]


@pytest.mark.parametrize("window", [16_000, 64_000])
def test_N1_2_4_twenty_tool_rounds_stay_under_85_percent_and_prompt_and_request_are_untouched(
    window: int, tmp_path: Path
) -> None:
    config = nanobot(tmp_path, contextWindowOverride=window)
    asks = "Read everything there is, and tell me which function returns 41."
    ran = Ran()

    async def turns(model: HttpModel) -> None:
        act = Act(model, [files(ran, 250)], config)
        await act.say("Hello")
        assert ended(await act.say(asks)).reason == "done"
        act.sound()

    with ScriptedServer(reads_files(20)) as server:
        server.model.script = in_turn([OK], then=reads_files(20))
        over_http(server, turns)
    assert len(ran.calls) == 20
    for asked in server.requests[1:]:
        assert asked.tokens <= 0.85 * window
        assert asked.messages[0].text == config.system
        assert asks in [message.text for message in asked.messages if message.role is Role.USER]
    shares = [asked.tokens / window for asked in server.requests[1:]]
    full = next(at for at, share in enumerate(shares) if share > 0.45)
    assert min(shares[full:]) >= 0.3, "it does not fall to nothing once it was half full"


def test_N1_10_a_summary_that_is_being_written_holds_up_no_turn() -> None:
    async def turns() -> None:
        gate = Gate()
        model = ScriptedModel(reads_files(2), Window(16_000, told=True))
        act = Act(model, [files(Ran())], replace(CONFIG, engine=Settings(summaries="on")))
        summaries = Summaries(act.engine, [gate.author()], own_model=False)
        for turn in range(12):
            assert ended(await act.say(f"Question {turn}")).reason == "done"
        assert gate.waiting.is_set()
        assert summaries.running("t")
        gate.opened.set()
        await summaries.drain()

    run(turns())


def test_N1_10_a_memory_block_in_the_prompt_is_untouched(tmp_path: Path) -> None:
    memory = "# Memory\n\n- The user likes   tea. \n- 用户住在上海。\n" + "- fact\n" * 200
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "MEMORY.md").write_text(memory, "utf-8")
    prompt = "You help.\n\n<memory>\nkeep  this   exactly \n</memory>"
    config = replace(CONFIG, system=prompt, engine=Settings(preset="nanobot"))
    model = ScriptedModel(reads_files(3), Window(16_000, told=True))
    act = Act(model, [files(Ran())], config, workspace_standing(tmp_path))

    async def turns() -> None:
        for turn in range(8):
            await act.say(f"Question {turn}")

    run(turns())
    assert "context.compressed" in act.kinds()
    for asked in model.requests:
        assert asked.messages[0].text == prompt
        assert memory.strip() in asked.messages[1].text


def test_N1_10_the_agent_needs_nothing_that_the_core_does_not_have() -> None:
    probe = (
        "import sys, everlong.agent.agent, everlong.agent.subagents, everlong.agent.mcp_servers;"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    loaded = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True).stdout.split()
    assert not {"mcp", "aiohttp", "httpx", "httpx2", "pydantic", "starlette", "stamina", "yaml"} & set(loaded)


# --- N3: three paths --------------------------------------------------------------------------------


def old(act_threads: MemoryThreads, thread: str = "t") -> None:
    """A past worth cutting."""
    act_threads.create(thread)
    act_threads.append(thread, [Message(Role.SYSTEM, user(CONFIG.system).parts)])
    for at in range(12):
        act_threads.append(
            thread, [user(f"Question {at}"), calls(f"c{at}"), result(f"c{at}", pages(at, 30)), assistant(f"A {at}.")]
        )


PATHS: dict[str, Kind] = {"user message": "user", "system message": "system"}
WARM = replace(CONFIG, max_tokens=321, temperature=0.25, engine=Settings(preset="nanobot-v3"))


@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize("path", PATHS)
def test_N3_9_user_and_system_messages_recover_unseen_and_a_second_failure_is_a_friendly_text(
    path: str, fmt: str
) -> None:
    async def turns(model: HttpModel) -> None:
        threads = MemoryThreads()
        old(threads)
        act = Act(model, [files(Ran(), 30)], WARM, threads=threads)
        events = await act.say("What is the port?", PATHS[path])
        assert ended(events).reason == "done"
        assert not any(isinstance(event, Failed) for event in events)
        assert "overflow.recovered" in act.kinds()
        server.model.script = lambda _: TOO_LONG
        events = await act.say("再说一次，端口是多少？请用中文回答。", PATHS[path])
        (failed,) = (event for event in events if isinstance(event, Failed))
        assert isinstance(failed.error, NotRecovered)
        assert "{" not in str(failed.error)
        assert ended(events).reason == "failed"
        server.model.script = lambda _: OK
        assert ended(await act.say("And now?", PATHS[path])).reason == "done"
        assert not act.agent.running("t")

    with ScriptedServer(in_turn([TOO_LONG], then=lambda _: OK)) as server:
        over_http(server, turns, fmt)
    assert {asked.max_tokens for asked in server.requests} == {321}
    assert all(b'"temperature": 0.25' in asked.body for asked in server.requests)


def test_N3_9_the_friendly_text_is_in_the_users_language() -> None:
    async def turns(model: HttpModel) -> None:
        act = Act(model, config=WARM)
        events = await act.say("端口是多少？请用中文回答。")
        (failed,) = (event for event in events if isinstance(event, Failed))
        assert "无法再压缩" in str(failed.error)

    with ScriptedServer(lambda _: TOO_LONG) as server:
        over_http(server, turns)


def family(model: HttpModel, config: AgentConfig, ran: Ran) -> tuple[Agent, MemoryThreads]:
    threads = MemoryThreads()
    engine = Engine(threads, settings=config.engine)
    setup = SubAgentSetup(engine=engine, model=model, tools=[files(ran, 30)], config=config)
    return Agent(engine, model, spawn_tools(setup), config), threads


def of_child(asked: ReceivedRequest) -> bool:
    return any("Find the port" in message.text for message in asked.messages)


@pytest.mark.parametrize("refused", [1, 99], ids=["recovers", "second failure"])
def test_N3_9_a_sub_agent_recovers_too_and_stops_cleanly_when_it_cannot(refused: int) -> None:
    left = [refused]
    child = reads_files(6)
    ran = Ran()

    def script(asked: ReceivedRequest) -> Step:
        if not of_child(asked):
            done = any(message.results for message in asked.messages)
            return OK if done else Answer(calls=(("spawn", '{"task": "Find the port"}'),))
        if len(ran.calls) == 4 and left[0]:
            left[0] -= 1
            return TOO_LONG
        return child(asked)

    async def turns(model: HttpModel) -> None:
        agent, threads = family(model, replace(WARM, subagents=SubAgents(model="gpt-4o-mini")), ran)
        events: list[AgentEvent] = [event async for event in agent.turn("main", "Which port?")]
        assert ended(events).reason == "done"
        (made,) = (r for row in threads.read("main") if isinstance(row.entry, Message) for r in row.entry.results)
        head = json.loads(made.text.partition("\n")[0])
        kinds = [event.kind.value for event in threads.events(head["subagent"])]
        assert "overflow.detected" in kinds
        if refused == 1:
            assert (head["status"], made.failed, len(ran.calls)) == ("done", False, 6)
        else:
            assert (head["status"], head["kind"], made.failed) == ("partial", "overflow", True)
            assert "its context overflowed" in made.text
            assert len(ran.calls) == 4

    with ScriptedServer(script) as server:
        over_http(server, turns)
    children = [asked for asked in server.requests if of_child(asked)]
    assert {asked.model for asked in children} == {"gpt-4o-mini"}
    assert {(asked.max_tokens, asked.temperature) for asked in server.requests} == {(321, 0.25)}


@pytest.mark.parametrize("on", [True, False], ids=["on", "off"])
def test_N3_12_two_settings_are_enough_and_off_is_unchanged_behaviour(on: bool, tmp_path: Path) -> None:
    config = nanobot(tmp_path, contextPreset="nanobot-v3", context_compression=on, context_window_override=12_000)

    async def turns(model: HttpModel) -> Act:
        act = Act(model, [files(Ran())], config)
        for turn in range(8):
            await act.say(f"Question {turn}")
        return act

    with ScriptedServer(reads_files(2)) as server:
        act = over_http(server, turns)
    largest = max(asked.tokens for asked in server.requests)
    assert (largest <= 0.85 * 12_000) is on
    assert largest > 0.35 * 12_000
    if not on:
        assert len(server.requests[-1].messages) == len(act.stored) - 1


# --- SB: the static buffer --------------------------------------------------------------------------

BUFFER = structured(
    what_happened=["The user asked what each function does."],
    important_details=["Each function has a number."],
    ongoing_context="The questions so far were answered.",
)


def told(asked: ReceivedRequest) -> bool:
    return any("## Conversation Summary" in message.text for message in asked.messages)


def test_SB_6_the_timeline_of_the_document_at_the_agent() -> None:
    """T1 55 messages: cut, a summary begun, the old used. T2: none begun. T3: done. T4: the new one used."""

    async def turns() -> None:
        model = ScriptedModel(lambda _: Answer(text="Fine."))
        gate = Gate(answer=BUFFER)
        act = Act(model, config=replace(CONFIG, engine=Settings(preset="static-buffer")))
        summaries = Summaries(act.engine, [gate.author()], own_model=False)
        asks = "What does function number {0} do in the file?"
        said = [user(asks.format(n)) if n % 2 == 0 else assistant(f"a{n}") for n in range(49)]
        loop = [message for n in range(2) for message in (calls(f"c{n}"), result(f"c{n}"))]
        head = Message(Role.SYSTEM, user(CONFIG.system).parts)
        await act.engine.append("t", [head, *said, *loop, assistant("Done.")])

        assert ended(await act.say("T1: what does function 55 do?")).reason == "done"  # the 55th message
        kept = len(model.requests[-1].messages)
        assert 10 <= kept - 1 <= 11
        assert not told(model.requests[-1])
        await gate.waiting.wait()

        assert ended(await act.say("T2: what does function 56 do?")).reason == "done"
        assert len(model.requests[-1].messages) == kept + 2
        assert not told(model.requests[-1])
        assert len(gate.requests) == 1

        gate.opened.set()  # T3
        await summaries.drain()
        assert act.kinds().count("summary.applied") == 1

        assert ended(await act.say("T4: what does function 57 do?")).reason == "done"
        assert told(model.requests[-1])
        assert model.requests[-1].messages[0].text == CONFIG.system
        assert len(gate.requests) == 1
        await summaries.drain()

    run(turns())


# --- CS: the context subsystem ----------------------------------------------------------------------


def test_CS_6_a_cut_is_told_after_the_start_and_before_the_call_as_a_child_of_the_agents_turn() -> None:
    seen_at_call: list[list[str]] = []

    def script(asked: ReceivedRequest) -> Answer:
        seen_at_call.append(act.kinds())
        return OK

    act = Act(ScriptedModel(script), config=replace(CONFIG, engine=Settings(preset="simple")))
    old(act.threads)  # type: ignore[arg-type]
    assert ended(run(act.say("And now?"))).reason == "done"
    assert seen_at_call == [["turn.started", "context.compressed"]]
    started, cut = act.threads.events("t")[:2]
    assert cut.parent == started.id
    asked = next(
        row for row in act.threads.read("t") if isinstance(row.entry, Message) and row.entry.text == "And now?"
    )
    assert started.parent == asked.id  # the message that the agent's turn is about
    data = json.loads(cut.data)
    assert data["original_count"] == len(act.stored) - 1
    assert data["compressed_count"] < data["original_count"]
    assert (data["max_messages"], data["max_chars_per_message"]) == (12, 4_000)


def test_CS_6_nothing_is_told_where_nothing_was_cut() -> None:
    act = Act(ScriptedModel(), config=replace(CONFIG, engine=Settings(preset="simple")))
    run(act.say("Hello"))
    assert act.kinds() == ["turn.started", "usage.recorded", "turn.finished"]


ENVIRONMENTS: dict[str, tuple[dict[str, str], Callable[[Act, ScriptedModel], bool]]] = {
    "off": ({"EVERLONG_MODE": "off"}, lambda act, _: "context.compressed" not in act.kinds()),
    "preset": ({"EVERLONG_PRESET": "simple"}, lambda _, model: len(model.requests[-1].messages) <= 14),
    "window": ({"EVERLONG_WINDOW": "6000"}, lambda _, model: model.requests[-1].tokens <= 6_000),
    "model": ({"EVERLONG_MODEL": "gpt-4o-mini"}, lambda _, model: model.requests[-1].model == "gpt-4o-mini"),
    "answer": ({"EVERLONG_MAX_TOKENS": "77"}, lambda _, model: model.requests[-1].max_tokens == 77),
}


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_CS_7_variables_reach_the_request(name: str) -> None:
    environment, holds = ENVIRONMENTS[name]
    model = ScriptedModel(lambda _: OK)
    act = Act(model, config=load_config(environment))
    old(act.threads)  # type: ignore[arg-type]
    run(act.say("And now?"))
    assert holds(act, model)


def test_the_events_of_an_agent_are_those_of_the_engine() -> None:
    act = Act(ScriptedModel(calls_then([[("read_file", "{}")]])), [files(Ran())])
    asyncio.run(act.say("Go"))
    starts = [event for event in act.threads.events("t") if event.kind is EventKind.TURN_STARTED]
    assert len(starts) == 2
    assert len({event.parent for event in starts}) == 1

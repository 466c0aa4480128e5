"""MCP servers: real ones, written with the official package, over pipes and HTTP; alive, dying, hanging, missing."""

import asyncio
import json
import os
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from everlong.agent.agent import Agent
from everlong.agent.config import McpServer
from everlong.agent.definitions import Outcome, Place, Tool
from everlong.agent.events import TurnEnded
from everlong.agent.mcp_servers import McpServers
from everlong.agent.permissions.action import Action, Answer
from everlong.engine import Engine
from everlong.llm import ScriptedModel
from everlong.store import MemoryThreads
from tests.agent.acting import CONFIG, Act, Ran, calls_then, ended, run

PROGRAM = str(Path(__file__).with_name("mcp_server.py"))
SMALL = McpServer(name="small", command=sys.executable, args=(PROGRAM,), env=(("SHADE", "blue"),), seconds=30.0)
PLACE = Place(thread="t", call="c", workspace=Path())


def by_name(servers: McpServers) -> dict[str, Tool]:
    return {tool.name: tool for tool in servers.tools}


async def called(servers: McpServers, tool: str, **arguments: object) -> Outcome:
    return await by_name(servers)[tool].run(arguments, PLACE)  # type: ignore[arg-type]


def test_tools_of_a_server_are_ours_and_names_that_clash_are_prefixed() -> None:
    async def work() -> None:
        async with McpServers([SMALL], taken=["read"]) as servers:
            assert servers.problems == ()
            assert set(by_name(servers)) == {"add", "peek", "small_read", "fail", "die", "hang", "variable"}
            add = by_name(servers)["add"]
            assert add.description == "Add two numbers."
            assert set(json.loads(add.parameters)["properties"]) == {"a", "b"}
            assert add.action is not None
            assert await called(servers, "add", a=2, b=3) == Outcome("5")
            assert await called(servers, "small_read", path="x") == Outcome("the server read x")
            assert await called(servers, "variable", name="SHADE") == Outcome("blue")
            failed = await called(servers, "fail")
            assert failed.failed
            assert "fail" in failed.text
            wrong = await called(servers, "add", a="two")
            assert wrong.failed

    run(work())


def test_in_a_turn_a_server_that_dies_costs_its_results_and_nothing_else() -> None:
    async def work() -> None:
        async with McpServers([SMALL]) as servers:
            script = calls_then([[("add", '{"a": 1, "b": 1}')], [("die", "{}")], [("add", '{"a": 2, "b": 2}')]])
            tools = [*servers.tools, Ran().tool("other")]
            act = Act(ScriptedModel(script), tools, replace(CONFIG, approval="always"))
            assert ended(await act.say("Go")).reason == "done"
            results = [result for message in act.stored for result in message.results]
            assert (results[0].text, results[0].failed) == ("2", False)
            assert [result.failed for result in results[1:]] == [True, True]
            assert all(result.text.startswith("MCP server small") for result in results[1:])
            assert all("\n" not in result.text for result in results)
            act.sound()

    run(work())


def test_a_tool_that_claims_to_be_read_only_is_asked_for_and_the_claim_is_shown(tmp_path: Path) -> None:
    asked: list[Action] = []

    async def refuse(action: Action) -> Answer:
        asked.append(action)
        return Answer.NO

    async def work() -> None:
        async with McpServers([SMALL]) as servers:
            file = tmp_path / "file.txt"
            script = calls_then([[("peek", json.dumps({"path": str(file)}))]])
            engine = Engine(MemoryThreads())
            agent = Agent(engine, ScriptedModel(script), servers.tools, CONFIG, permissions=CONFIG.permissions(refuse))
            events = [event async for event in agent.turn("t", "Go")]
            assert isinstance(events[-1], TurnEnded)
            assert not file.exists()
            (action,) = asked
            assert (action.kind, action.tool, action.subject) == ("tool", "peek", "peek")
            assert action.hint == "MCP server small; according to the server: read-only"
            assert json.loads(action.details) == {"path": str(file)}

    run(work())


def test_a_server_that_hangs_gives_a_failed_outcome_and_goes_on_serving() -> None:
    async def work() -> None:
        slow = McpServer(name="small", command=sys.executable, args=(PROGRAM,), seconds=30.0)
        async with McpServers([slow]) as servers:
            link = servers._links[0]
            link.server = McpServer(name="small", command=sys.executable, seconds=0.2)
            hung = await called(servers, "hang")
            assert hung == Outcome("MCP server small did not answer within 0.2 seconds", failed=True)
            link.server = slow
            assert await called(servers, "add", a=1, b=2) == Outcome("3")

    run(work())


def test_a_server_that_is_not_there_is_one_line_and_the_others_work() -> None:
    async def work() -> None:
        nothing = McpServer(name="nothing", command="no-such-program-anywhere")
        mute = McpServer(name="mute", command=sys.executable, args=("-c", "import sys; sys.stdin.read()"), seconds=0.5)
        gone = McpServer(name="gone", command=sys.executable, args=("-c", "pass"), seconds=10.0)
        refused = McpServer(name="refused", url=f"http://127.0.0.1:{_free_port()}/mcp", seconds=10.0)
        async with McpServers([nothing, mute, gone, refused, SMALL]) as servers:
            assert [line.split(":")[0] for line in servers.problems] == [
                "MCP server nothing",
                "MCP server mute",
                "MCP server gone",
                "MCP server refused",
            ]
            assert "did not answer within 0.5 seconds" in servers.problems[1]
            assert all("\n" not in line for line in servers.problems)
            assert await called(servers, "add", a=1, b=1) == Outcome("2")

    run(work())


def test_after_closing_no_process_is_left_and_calls_fail_in_words() -> None:
    async def work() -> Outcome:
        async with McpServers([SMALL]) as servers:
            assert await called(servers, "add", a=1, b=1) == Outcome("2")
        return await called(servers, "add", a=1, b=1)

    outcome = run(work())
    assert outcome.failed
    assert "is gone" in outcome.text


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_a_server_over_http() -> None:
    port = _free_port()
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    program = subprocess.Popen(
        [sys.executable, PROGRAM, str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment
    )

    async def work() -> Outcome:
        server = McpServer(name="web", url=f"http://127.0.0.1:{port}/mcp", headers=(("x-key", "k"),), seconds=30.0)
        while True:  # until it listens
            async with McpServers([server]) as servers:
                if not servers.problems:
                    return await called(servers, "add", a=4, b=5)
            assert program.poll() is None, "the server did not start"
            await asyncio.sleep(0.05)

    try:
        assert run(work()) == Outcome("9")
    finally:
        program.kill()
        program.wait()

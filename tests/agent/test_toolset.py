"""The table of the agent's own tools."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from everlong.agent.config import AgentConfig
from everlong.agent.tools.todo import TodoList
from everlong.agent.toolset import OWN_TOOLS, STANDARD, standard_tools, workspace_agent
from everlong.engine import Engine
from everlong.llm import ScriptedModel
from everlong.store import MemoryThreads


def test_the_standard_tools() -> None:
    def names(**more: Any) -> list[str]:
        return [tool.name for tool in standard_tools(**more)]

    files = ["read_file", "write_file", "edit_file", "list_files", "search_files"]
    engine = Engine(MemoryThreads())
    assert names() == [*files, "shell"]
    assert names(shell=False) == files
    everything = standard_tools(engine=engine, todos=TodoList(), web=True)
    assert [tool.name for tool in everything] == [*files, "shell", "recall", "todo", "fetch_url"]
    acting = [tool.name for tool in everything if tool.action is not None]
    assert acting == ["write_file", "edit_file", "shell", "fetch_url"]


def test_every_row_of_the_table_makes_the_tool_of_its_name() -> None:
    everything = standard_tools(engine=Engine(MemoryThreads()), todos=TodoList(), web=True)
    assert [tool.name for tool in everything] == list(STANDARD)


def test_the_page_about_the_agent_names_every_tool() -> None:
    page = (Path(__file__).parents[2] / "docs" / "app" / "agent.md").read_text("utf-8")
    assert [name for name in STANDARD if f"`{name}`" not in page] == []


def test_the_agent_of_a_workspace_has_all_own_tools_and_those_of_servers(tmp_path: Path) -> None:
    server = replace(standard_tools()[0], name="server_read")
    config = AgentConfig(workspace=tmp_path)
    agent = workspace_agent(Engine(MemoryThreads()), ScriptedModel(), config, more=(server,))
    assert {tool.name for tool in agent.tools} == {*OWN_TOOLS, "server_read"}

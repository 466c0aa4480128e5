"""The agent's own tools, put together: the one table of them, and the agent that has them all.

To add a tool, add its module to `tools` and its row to `STANDARD`. A tool that needs something (an engine, a list,
limits) takes it from `_Needs`: add a field there and a parameter to `standard_tools`. The names that tools of others
may not take follow from the table.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from everlong.agent.agent import Agent
from everlong.agent.config import DEFAULT_CONFIG, AgentConfig
from everlong.agent.definitions import Tool
from everlong.agent.permissions.permissions import Permissions
from everlong.agent.standing_context import StandingContext, workspace_standing
from everlong.agent.subagents import SPAWN_NAMES, SubAgentSetup, spawn_tools
from everlong.agent.tools.files import edit_file, read_file, write_file
from everlong.agent.tools.folders import list_files
from everlong.agent.tools.recall import recall_tool
from everlong.agent.tools.sandbox import Sandbox, find_sandbox
from everlong.agent.tools.search import search_files
from everlong.agent.tools.shell import ShellLimits, shell_tool
from everlong.agent.tools.todo import TodoList, Todos, todo_tool
from everlong.engine import Engine, Model

__all__ = ["OWN_TOOLS", "sandbox_of", "standard_tools", "workspace_agent"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Needs:
    """What the tools of the table may need; a tool that lacks what it needs is left out."""

    engine: Engine | None
    todos: TodoList | None
    shell: ShellLimits | None
    sandbox: Sandbox | None
    web: bool


def _fetch() -> Tool:
    from everlong.agent.tools.web import fetch_tool  # noqa: PLC0415 - an extra, and only for those who want it

    return fetch_tool()


#: Every standard tool by its name, in the order in which models read them.
STANDARD: Mapping[str, Callable[[_Needs], Tool | None]] = {
    "read_file": lambda _: read_file,
    "write_file": lambda _: write_file,
    "edit_file": lambda _: edit_file,
    "list_files": lambda _: list_files,
    "search_files": lambda _: search_files,
    "shell": lambda needs: None if needs.shell is None else shell_tool(needs.shell, needs.sandbox),
    "recall": lambda needs: None if needs.engine is None else recall_tool(needs.engine),
    "todo": lambda needs: None if needs.todos is None else todo_tool(needs.todos),
    "fetch_url": lambda needs: _fetch() if needs.web else None,
}
#: The names of a workspace agent's own tools. Tools of MCP servers get other names.
OWN_TOOLS: tuple[str, ...] = (*filter(DEFAULT_CONFIG.allows, STANDARD), *SPAWN_NAMES)


def standard_tools(
    *,
    engine: Engine | None = None,
    todos: TodoList | None = None,
    shell: ShellLimits | bool = True,
    sandbox: Sandbox | None = None,
    web: bool = False,
) -> tuple[Tool, ...]:
    """Return the tools for files and the shell; `recall` with an engine, `todo` with a list, `fetch_url` with `web`.

    The shell runs in the best sandbox that works here, unless another one is given.
    """
    limits = shell if isinstance(shell, ShellLimits) else ShellLimits() if shell else None
    needs = _Needs(engine=engine, todos=todos, shell=limits, sandbox=sandbox, web=web)
    tools = (make(needs) for make in STANDARD.values())
    return tuple(tool for tool in tools if tool is not None)


def sandbox_of(config: AgentConfig) -> Sandbox:
    """Return the sandbox of the configuration. Raises InputError if it does not work here."""
    return find_sandbox(config.sandbox, network=config.sandbox_network)


def workspace_agent(
    engine: Engine,
    model: Model,
    config: AgentConfig,
    *,
    more: Sequence[Tool] = (),
    permissions: Permissions | None = None,
    instructions: str = "",
) -> Agent:
    """Return the agent of a workspace: its own tools, `more` tools, standing context and sub-agents.

    The todo list of a thread is in the engine's store. Sub-agents have neither the list nor the volatile context.
    `instructions` replace the system text: they are sent with every request, and no thread stores them. Sub-agents keep
    the system text.
    """
    todos = Todos(engine.threads)
    standing = replace(workspace_standing(config.workspace, todo=todos.source), instructions=instructions)
    standard = standard_tools(engine=engine, sandbox=sandbox_of(config), web=config.allows("fetch_url"))
    tools = (*standard, *more)
    setup = SubAgentSetup(
        engine=engine, model=model, tools=tools, config=config, standing=StandingContext(standing.stable)
    )
    own = replace(config, system="") if instructions else config
    return Agent(engine, model, (*tools, todos.tool, *spawn_tools(setup)), own, standing, permissions)

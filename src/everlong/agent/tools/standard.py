"""The tools that an agent has unless told otherwise, put together."""

from everlong.agent.definitions import Tool
from everlong.agent.tools.files import edit_file, read_file, write_file
from everlong.agent.tools.folders import list_files
from everlong.agent.tools.recall import recall_tool
from everlong.agent.tools.search import search_files
from everlong.agent.tools.shell import ShellLimits, shell_tool
from everlong.agent.tools.todo import TodoList, todo_tool
from everlong.engine import Engine

__all__ = ["standard_tools"]


def standard_tools(
    *,
    engine: Engine | None = None,
    todos: TodoList | None = None,
    shell: ShellLimits | bool = True,
    web: bool = False,
) -> tuple[Tool, ...]:
    """Files and the shell; `recall` with an engine, `todo` with a list, `fetch_url` with `web`."""
    tools = [read_file, write_file, edit_file, list_files, search_files]
    if shell:
        tools.append(shell_tool(shell if isinstance(shell, ShellLimits) else None))
    if engine is not None:
        tools.append(recall_tool(engine))
    if todos is not None:
        tools.append(todo_tool(todos))
    if web:
        from everlong.agent.tools.web import fetch_tool  # noqa: PLC0415 - an extra, and only for those who want it

        tools.append(fetch_tool())
    return tuple(tools)

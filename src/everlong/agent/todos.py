"""The todo lists of all threads: one tool, one source for standing context, each list kept in the store.

A list is no message: no cut shortens it, and after a restart it is as it was. What a list may hold is in `tools.todo`.
"""

import asyncio
from contextlib import suppress
from dataclasses import replace

from everlong.agent.definitions import Outcome, Place, Tool
from everlong.agent.tools.todo import TodoList, todo_tool
from everlong.core import JsonObject
from everlong.engine import Threads
from everlong.errors import InputError

__all__ = ["Todos"]

KIND = "todo"  # of the facts that are kept


class Todos:
    """The lists in a store. `source` gives that of a thread for `Standing`; by `tool` the model changes its own."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads

    def of(self, thread: str) -> TodoList:
        """The list of a thread, which keeps every change; what was kept and cannot be read is an empty list."""
        todos = TodoList(lambda changed: self._threads.keep_fact(KIND, thread, changed.dump()))
        kept = self._threads.fact(KIND, thread)
        if kept is not None:
            with suppress(InputError):
                todos.load(kept)
        return todos

    def source(self, thread: str) -> str:
        """The list in words; "" if there is none."""
        return self.of(thread).to_text()

    @property
    def tool(self) -> Tool:
        """The tool; it changes the list of the thread that it is called in."""

        async def run(arguments: JsonObject, place: Place) -> Outcome:
            todos = await asyncio.to_thread(self.of, place.thread)
            return await todo_tool(todos).run(arguments, place)

        return replace(todo_tool(TodoList()), run=run)

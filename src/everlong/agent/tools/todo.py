"""The tool `todo`: the list of what is to be done. It lives outside the conversation, so no compaction shortens it.

The model replaces the whole list each time. `Todos` keeps the list of each thread in the store.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Annotated, Literal

import msgspec

from everlong.agent.definitions import Outcome, Place, Tool, tool
from everlong.core import JsonObject, JsonText
from everlong.engine import Threads
from everlong.errors import InputError

__all__ = ["TodoItem", "TodoList", "Todos", "todo_tool"]

MOST_ITEMS = 100
LONGEST_ITEM = 500  # characters
KIND = "todo"  # of the facts in the store
BOXES = {"open": "[ ]", "doing": "[~]", "done": "[x]"}


class TodoItem(msgspec.Struct, frozen=True):
    """One thing to do."""

    text: str
    state: Literal["open", "doing", "done"] = "open"


class TodoList:
    """The list of one thread. `changed` is called after every change, with the list."""

    def __init__(self, changed: Callable[["TodoList"], None] | None = None) -> None:
        self.items: tuple[TodoItem, ...] = ()
        self._changed = changed

    def replace(self, items: list[TodoItem]) -> None:
        """Replace the list. Raises InputError for one that is too long to be kept in view."""
        if len(items) > MOST_ITEMS:
            raise InputError(f"items: there can be at most {MOST_ITEMS}, not {len(items)}")
        tidy = [TodoItem(" ".join(item.text.split()), item.state) for item in items]
        for number, item in enumerate(tidy, 1):
            if not item.text or len(item.text) > LONGEST_ITEM:
                raise InputError(f"items: the text of item {number} must have 1 to {LONGEST_ITEM} characters")
        self.items = tuple(tidy)
        if self._changed is not None:
            self._changed(self)

    def to_text(self) -> str:
        """Return the list, a line each; "" if it is empty. Example: "[x] read the code\\n[~] fix it\\n[ ] test it" """
        return "\n".join(f"{BOXES[item.state]} {item.text}" for item in self.items)

    def dump(self) -> JsonText:
        """Return the list as JSON."""
        return msgspec.json.encode(self.items).decode()

    def load(self, stored: JsonText) -> None:
        """Load the list that `dump` returned. Raises InputError for anything else; the list stays as it was."""
        try:
            items = msgspec.json.decode(stored.encode("utf-8", "replace"), type=tuple[TodoItem, ...])
        except msgspec.DecodeError as error:
            raise InputError(f"not a todo list: {error}") from error
        self.items = items


def todo_tool(todos: TodoList) -> Tool:
    """Return the tool that changes this list."""

    @tool
    async def todo(
        items: Annotated[list[TodoItem], "the complete list, in order; it replaces the previous one"],
    ) -> str:
        """Keep a todo list. Give the complete list each time. Use it for work that takes several steps."""
        todos.replace(items)
        done = sum(item.state == "done" for item in todos.items)
        return f"{done} of {len(todos.items)} done\n{todos.to_text()}".rstrip()

    return todo


class Todos:
    """The lists of all threads of a store. `source` is for the standing context, `tool` for the model."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads

    def of(self, thread: str) -> TodoList:
        """Return the list of a thread; every change to it is stored. A stored list that cannot be read is empty."""
        todos = TodoList(lambda changed: self._threads.keep_fact(KIND, thread, changed.dump()))
        stored = self._threads.fact(KIND, thread)
        if stored is not None:
            with suppress(InputError):
                todos.load(stored)
        return todos

    def source(self, thread: str) -> str:
        """Return the list of a thread as text; "" if there is none."""
        return self.of(thread).to_text()

    @property
    def tool(self) -> Tool:
        """The tool that changes the list of the thread in which it is called."""

        async def run(arguments: JsonObject, place: Place) -> Outcome:
            todos = await asyncio.to_thread(self.of, place.thread)
            return await todo_tool(todos).run(arguments, place)

        return replace(todo_tool(TodoList()), run=run)

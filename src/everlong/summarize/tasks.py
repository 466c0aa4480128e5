"""Open tasks: the newest task list in the conversation, updated by the calls that follow.

Tools are recognised by the words in their names and the shape of their arguments; no agent's tools are special.
"""

import json
import re
from collections.abc import Iterable, Sequence
from typing import cast

from everlong.core import CallId, Json, JsonObject, Message, Role, ToolCall

__all__ = ["open_tasks"]

LOOKED_AT = 20_000  # characters of one text
LARGEST_PARSED = 200_000  # characters of arguments
LISTING = re.compile(r"(?i)todo|task|plan|待办|任务|计划")
CREATING = re.compile(r"(?i)create|add|new|新建|添加|创建")
UPDATING = re.compile(r"(?i)update|complete|finish|close|edit|更新|完成")
TEXTS = ("content", "subject", "title", "step", "task", "text", "description", "name", "内容", "标题")
STATES = ("status", "state", "done", "completed", "状态")
IDS = ("id", "taskid", "task_id", "todoid", "todo_id", "编号")
DONE = frozenset({"completed", "complete", "done", "cancelled", "canceled", "finished", "deleted", "closed", "已完成"})
_NUMBER = re.compile(r"#(\d{1,6})\b")
_BOX = re.compile(r"^[ \t]{0,12}(?:[-*+]|\d{1,3}[.)])[ \t]{1,4}\[([ xX])\][ \t]{1,4}(\S[^\n]{2,1000})", re.MULTILINE)


class _Tasks:
    """The open tasks: by name, the words of each."""

    def __init__(self, before: Sequence[str]) -> None:
        self.open: dict[str, str] = {}
        self.created: dict[CallId, str] = {}
        self.last = 0
        for text in before:
            number = _NUMBER.match(text)
            self.open[number[1] if number else text] = text

    def call(self, call: ToolCall) -> None:
        """Follow a call that may write a list, add a task or finish one."""
        if len(call.arguments) > LARGEST_PARSED or not LISTING.search(call.name):
            return
        given = _object(call.arguments)
        listed = next((items for items in map(_items, given.values()) if items is not None), None)
        if listed is not None:
            self._list(listed, added=given.get("merge") is True)
            return
        number, text = _first(given, IDS), _first(given, TEXTS)
        if number and UPDATING.search(call.name):
            if _is_done(given):
                self.open.pop(number, None)
        elif text and CREATING.search(call.name):
            self.last += 1
            self.created[call.id] = str(self.last)
            self.open[str(self.last)] = f"#{self.last} {text}"

    def result(self, call: CallId, text: str) -> None:
        """Follow a result that gives a new task its number."""
        supposed = self.created.pop(call, None)
        number = _NUMBER.search(text[:200])
        if supposed is None or number is None or supposed not in self.open:
            return
        words = self.open.pop(supposed).partition(" ")[2]
        self.open[number[1]] = f"#{number[1]} {words}"
        self.last = int(number[1])

    def boxes(self, text: str) -> None:
        """Follow a list of checkboxes in a message."""
        ticked = _BOX.findall(text[:LOOKED_AT])
        if ticked:
            self.open = {words.strip(): words.strip() for box, words in ticked if box == " "}

    def _list(self, items: Sequence[Json], *, added: bool) -> None:
        if not added:
            self.open = {}
        for item in items:
            fields: JsonObject = item if isinstance(item, dict) else {"content": item}
            text = _first(fields, TEXTS)
            name = _first(fields, IDS) if added else text
            if _is_done(fields):
                self.open.pop(name, None)
            elif text:
                self.open[name or text] = text


def open_tasks(messages: Iterable[Message], before: Sequence[str] = ()) -> tuple[str, ...]:
    """The tasks that are open after these messages; `before` were open when they began.

    Example: todo_write([{content: "a", status: "completed"}, {content: "b"}]) -> ("b",)
    """
    tasks = _Tasks(before)
    for message in messages:
        for call in message.calls:
            tasks.call(call)
        for result in message.results:
            tasks.result(result.call, result.text)
        if message.role in (Role.USER, Role.ASSISTANT):
            tasks.boxes(message.text)
    return tuple(tasks.open.values())


def _object(arguments: str) -> JsonObject:
    try:
        value = cast(Json, json.loads(arguments))
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {"": value}


def _items(value: Json) -> list[Json] | None:
    """The items of a task list, also one that a model wrote as text; None for anything else."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        value = _object(value).get("", None)
    if not isinstance(value, list):
        return None
    if all(isinstance(item, dict) and _first(item, TEXTS + IDS) for item in value):
        return value
    return value if value and all(isinstance(item, str) for item in value) else None


def _first(fields: JsonObject, names: Sequence[str]) -> str:
    lower = {key.lower(): value for key, value in fields.items()}
    found = next((lower[name] for name in names if isinstance(lower.get(name), str | int) and lower[name] != ""), "")
    return " ".join(str(found).split())


def _is_done(fields: JsonObject) -> bool:
    lower = {key.lower(): value for key, value in fields.items()}
    states = [lower[name] for name in STATES if name in lower]
    return any(state is True or (isinstance(state, str) and state.lower() in DONE) for state in states)

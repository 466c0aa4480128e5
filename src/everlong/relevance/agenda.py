"""Find the running task in an agent's own task list: the best sign of which files are needed next.

Agents keep such lists with tools: some send the whole list each time, others add a task and change its state later.
These tools are recognised by their names and by their arguments, which have a state next to a text.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from everlong.core import Json, JsonObject, Message, ToolCall
from everlong.relevance.calls import fields_of

__all__ = ["running_task"]

LONGEST = 2_000  # characters of a task
_LIST_TOOL = re.compile(r"task|todo|plan|任务|计划|待办", re.IGNORECASE)
_ADDING = re.compile(r"creat|add|new|新建|添加", re.IGNORECASE)
STATE_KEYS = ("status", "state", "状态")
TEXT_KEYS = ("subject", "content", "step", "title", "task", "text", "description", "任务", "内容")
ID_KEYS = ("taskId", "task_id", "id")
RUNNING = frozenset({"in_progress", "in-progress", "inprogress", "doing", "active", "running", "started", "进行中"})
DONE = frozenset({"completed", "complete", "done", "cancelled", "canceled", "deleted", "finished", "已完成", "完成"})


def running_task(messages: Sequence[Message]) -> str:
    """Return the tasks in progress of the newest list, otherwise the next open one; "" if there is no list.

    Example: update_plan(plan=[{"step": "Fix a.py", "status": "in_progress"}]) -> "Fix a.py"
    """
    tasks: dict[str, tuple[str, str]] = {}  # id -> state and text
    for call in _list_calls(messages):
        fields = _fields(call.arguments)
        items = [item for value in fields.values() if isinstance(value, list) for item in value]
        listed = {str(n): (_state(item), _text(item)) for n, item in enumerate(_objects(items)) if _text(item)}
        if any(state for state, _ in listed.values()):
            tasks = listed
        elif _ADDING.search(call.name) and _text(fields):
            tasks[str(len(tasks) + 1)] = ("", _text(fields))
        else:
            known = tasks.get(_value(fields, ID_KEYS))
            if known is not None and _state(fields):
                tasks[_value(fields, ID_KEYS)] = (_state(fields), known[1])
    running = [text for state, text in tasks.values() if state in RUNNING]
    waiting = (text for state, text in tasks.values() if state not in DONE)
    return "\n".join(running or [next(waiting, "")])[:LONGEST]


def _list_calls(messages: Iterable[Message]) -> Iterator[ToolCall]:
    return (call for message in messages for call in message.calls if _is_list_tool(call.name))


@lru_cache(maxsize=1_000)
def _is_list_tool(name: str) -> bool:
    return _LIST_TOOL.search(name) is not None


_fields = lru_cache(maxsize=2_000)(fields_of)


def _objects(items: Iterable[Json]) -> Iterator[JsonObject]:
    return (item for item in items if isinstance(item, dict))


def _state(fields: JsonObject) -> str:
    return _value(fields, STATE_KEYS).lower()


def _text(fields: JsonObject) -> str:
    """Return all texts of a task: its title, description and so on."""
    return "\n".join(value for key in TEXT_KEYS if isinstance(value := fields.get(key), str))


def _value(fields: JsonObject, keys: Sequence[str]) -> str:
    return next((str(fields[key]) for key in keys if key in fields), "")

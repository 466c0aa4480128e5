"""The list of what is to be done, and the tool that changes it."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from everlong.agent.definitions import Outcome, Place
from everlong.agent.tools.todo import MOST_ITEMS, TodoItem, TodoList, todo_tool
from everlong.errors import InputError


def todo(todos: TodoList, items: Any) -> Outcome:
    place = Place(thread="t", call="c", workspace=Path())
    return asyncio.run(todo_tool(todos).run({"items": items}, place))


def test_the_whole_list_is_replaced_each_time() -> None:
    todos = TodoList()
    todo(todos, [{"text": "read the code", "state": "doing"}, {"text": "修复错误"}])
    outcome = todo(todos, [{"text": "read the code", "state": "done"}, {"text": "修复\n错误", "state": "doing"}])
    assert outcome == Outcome("1 of 2 done\n[x] read the code\n[~] 修复 错误")
    assert todos.to_text() == "[x] read the code\n[~] 修复 错误"
    assert todo(todos, []) == Outcome("0 of 0 done")
    assert todos.to_text() == ""


@pytest.mark.parametrize(
    ("items", "said"),
    [
        ("none", "items: Expected `array`"),
        ([{"text": "a", "state": "later"}], "Invalid enum value 'later'"),
        ([{"state": "done"}], "missing required field `text`"),
        ([{"text": " "}], "the text of item 1"),
        ([{"text": "a"}, {"text": "x" * 501}], "the text of item 2"),
        ([{"text": "a"}] * (MOST_ITEMS + 1), "at most 100"),
    ],
    ids=["no-list", "state", "no-text", "blank", "long", "many"],
)
def test_a_wrong_list_leaves_the_old_one(items: Any, said: str) -> None:
    todos = TodoList()
    todo(todos, [{"text": "kept"}])
    outcome = todo(todos, items)
    assert outcome.failed
    assert said in outcome.text
    assert todos.to_text() == "[ ] kept"


def test_changes_are_told_to_who_keeps_the_list() -> None:
    kept: list[str] = []
    todos = TodoList(changed=lambda changed: kept.append(changed.dump()))
    todo(todos, [{"text": "一"}])
    todo(todos, [{"text": ""}])
    assert [json.loads(one) for one in kept] == [[{"text": "一", "state": "open"}]]


ITEMS = st.builds(TodoItem, st.text(min_size=1, max_size=20), st.sampled_from(["open", "doing", "done"]))


@settings(max_examples=50, deadline=None)
@given(st.lists(ITEMS, max_size=5))
def test_a_list_is_the_same_after_it_was_kept(items: list[TodoItem]) -> None:
    first, second = TodoList(), TodoList()
    first.items = tuple(items)
    second.load(first.dump())
    assert second.items == first.items


@pytest.mark.parametrize("kept", ["", "{}", "[1]", '[{"text": "a", "state": "b"}]', "nonsense"])
def test_what_is_no_list_is_refused(kept: str) -> None:
    todos = TodoList()
    todos.load('[{"text":"a"}]')
    with pytest.raises(InputError, match="not a todo list"):
        todos.load(kept)
    assert todos.to_text() == "[ ] a"

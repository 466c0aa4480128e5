"""Cache marks of Anthropic: where one may stand, how many there may be, and that nothing else changes."""

import json
from copy import deepcopy
from typing import Any

import pytest

from everlong.wire.formats import problems
from everlong.wire.formats.anthropic.marks import (
    keep_allowed,
    marker,
    may_bear,
    tool_may_bear,
    with_marks,
    without_marks,
)
from everlong.wire.formats.anthropic.messages import read_message, write_history, write_placed
from tests.core.build import assistant, calls, result, system, user
from tests.llm.marked_cache import marks_of

Value = dict[str, Any]
MARK: Value = {"type": "ephemeral"}
MARKED: Value = {"cache_control": MARK}


def text(words: str, **more: Any) -> Value:
    return {"type": "text", "text": words, **more}


def said(role: str, *blocks: Value) -> Value:
    return {"role": role, "content": list(blocks)}


THOUGHT: Value = {"type": "thinking", "thinking": "Hm.", "signature": "EqQB"}
SEALED: Value = {"type": "redacted_thinking", "data": "EqQB"}
CALL: Value = {"type": "tool_use", "id": "c", "name": "read", "input": {"cache_control": "a word of the tool's"}}
RESULT: Value = {"type": "tool_result", "tool_use_id": "c", "content": "ok"}
PICTURE: Value = {"type": "image", "source": {"type": "url", "url": "https://a.b/c.png"}}

BLOCKS: dict[str, tuple[Any, bool]] = {
    "text": (text("a"), True),
    "empty text": (text(""), False),
    "blank text": (text(" \n"), False),
    "text that is none": ({"type": "text"}, False),
    "a picture": (PICTURE, True),
    "a call": (CALL, True),
    "a result": (RESULT, True),
    "a thought": (THOUGHT, False),
    "a sealed thought": (SEALED, False),
    "a block that nobody knows": ({"type": "container_upload", "file_id": "f"}, False),
    "no type": ({"text": "a"}, False),
    "no block": ("a", False),
}


@pytest.mark.parametrize(("block", "borne"), BLOCKS.values(), ids=BLOCKS)
def test_who_may_bear_a_mark(block: Any, borne: bool) -> None:
    assert may_bear(block) is borne


def test_a_tool_that_is_loaded_later_bears_none() -> None:
    assert tool_may_bear({"name": "a"})
    assert not tool_may_bear({"name": "a", "defer_loading": True})
    assert not tool_may_bear({})


def test_five_minutes_are_the_default_and_more_is_an_hour() -> None:
    assert marker(300) == {"type": "ephemeral"}
    assert marker(301) == {"type": "ephemeral", "ttl": "1h"}


A, B = said("user", text("a")), said("assistant", text("b"))
TOOLS: list[Value] = [{"name": "one"}, {"name": "two"}]

#: A body, the places that are asked for, and where the marks are then.
PLACED: dict[str, tuple[Value, list[int], list[str]]] = {
    "the system text covers the tools": ({"system": "Be brief.", "tools": TOOLS, "messages": [A]}, [], ["system"]),
    "the last tool without system text": ({"tools": TOOLS, "messages": [A]}, [], ["tools"]),
    "nor with blank system text": ({"tools": TOOLS, "system": " ", "messages": [A]}, [0], ["tools", "0"]),
    "nothing in front": ({"messages": [A, B]}, [0, 1], ["0", "1"]),
    "the same place twice": ({"messages": [A, B]}, [1, 1], ["1"]),
    "a thought hands it on": ({"messages": [A, said("assistant", THOUGHT)]}, [1], ["0"]),
    "a system message hands it on": ({"messages": [A, said("system", text("now")), B]}, [1], ["0"]),
    "nobody to hand it on to": ({"messages": [said("user", text("")), B]}, [0], []),
    "before the messages": ({"messages": [A]}, [-1], []),
    "text that is a string": ({"messages": [{"role": "user", "content": "a"}]}, [0], ["0"]),
    "marks of others go": ({"messages": [said("user", text("a", **MARKED)), B]}, [1], ["1"]),
}


@pytest.mark.parametrize(("body", "places", "marks"), PLACED.values(), ids=PLACED)
def test_marks_stand_where_they_may_and_change_nothing_else(body: Value, places: list[int], marks: list[str]) -> None:
    given = deepcopy(body)
    marked = with_marks(body, places, MARK)
    assert marks_of(marked) == marks
    assert body == given
    assert without_marks(marked) == without_marks(with_marks(body, [], MARK))
    assert [one for one in problems("anthropic", marked) if "mark" in one.text] == []


def test_a_mark_is_on_the_last_block_that_may_bear_it() -> None:
    message = said("assistant", THOUGHT, text("b"), CALL, SEALED)
    marked = with_marks({"messages": [A, message]}, [1], MARK)
    assert marked["messages"] == [A, said("assistant", THOUGHT, text("b"), CALL | MARKED, SEALED)]


def test_what_a_tool_was_told_is_no_mark() -> None:
    body = {"messages": [said("assistant", CALL)], "tools": [{"name": "t", "input_schema": {"properties": MARKED}}]}
    assert without_marks(body) == body


def test_every_mark_goes_wherever_it_is() -> None:
    body = {
        **MARKED,
        "tools": [{"name": "t", **MARKED}],
        "system": [text("s", **MARKED)],
        "messages": [said("user", {**RESULT, **MARKED, "content": [text("r", **MARKED)]}) | MARKED, "odd", 7],
    }
    assert "ephemeral" not in json.dumps(without_marks(body))
    assert without_marks({"messages": None}) == {"messages": None}


def test_a_history_full_of_marks_is_sent_with_the_last_four() -> None:
    history = [read_message(said("user", text(f"{at}", **MARKED))) for at in range(7)]
    assert marks_of(write_history(history)) == ["3", "4", "5", "6"]
    assert problems("anthropic", write_history(history)) == []


def test_marks_that_are_refused_are_not_sent() -> None:
    body = keep_allowed(
        {"system": "s", "messages": [said("assistant", THOUGHT | MARKED, text("b", **MARKED)) | MARKED]}
    )
    assert body["messages"] == [said("assistant", THOUGHT, text("b", **MARKED))]


def test_each_message_that_is_sent_tells_how_much_of_the_history_it_ends() -> None:
    history = (system("s"), user("a"), calls("1"), calls("2"), result("1"), result("2"), user("b"), user("c"))
    body, ends = write_placed(history)
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user", "user", "user"]  # type: ignore[index, union-attr, call-overload]
    assert ends == [2, 4, 6, 7, 8]
    assert write_placed((assistant(""), user("a")))[1] == [2]

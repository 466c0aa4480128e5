"""Edits: which texts of a call count, and the cases that they make."""

import json

import pytest

from everlong.core import CallId, ToolCall
from everlong.lab.data import agents
from everlong.lab.measures.edits import edit_cases, replaced_texts
from tests.lab.folders import DATA

EDITS = {
    "two lines": ({"old_string": "a\nb", "new_string": "c\nd"}, ["a\nb"]),
    "one line": ({"old_string": "a", "new_string": "b"}, []),
    "one line and its end": ({"old_string": "a\n"}, []),
    "another tool's name": ({"path": "x", "oldText": "a\nb"}, ["a\nb"]),
    "several at once": ({"edits": [{"old_str": "a\nb"}, {"old_str": "c\nd"}]}, ["a\nb", "c\nd"]),
    "new text only": ({"content": "a\nb"}, []),
}


@pytest.mark.parametrize(("arguments", "texts"), EDITS.values(), ids=EDITS)
def test_replaced_texts_of_two_lines_and_more_count(arguments: dict[str, object], texts: list[str]) -> None:
    assert list(replaced_texts(ToolCall(CallId("1"), "edit", json.dumps(arguments)))) == texts


def test_every_edit_of_the_data_is_a_case() -> None:
    found = edit_cases(agents(DATA, "office"))
    assert [len(group.cases) for group in found] == [2, 1]

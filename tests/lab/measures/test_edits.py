"""Edits: which texts of a call count, and the cases that they make."""

import json

import pytest

from everlong.core import CallId, Message, Role, ToolCall
from everlong.lab.data import agents
from everlong.lab.measures.edits import edit_cases, replaced_in, replaced_texts
from tests.lab.folders import DATA, said

EDITS = {
    "two lines": ({"old_string": "a\nb", "new_string": "c\nd"}, ["a\nb"]),
    "one line": ({"old_string": "a", "new_string": "b"}, []),
    "one line and its end": ({"old_string": "a\n"}, []),
    "another tool's name": ({"path": "x", "oldText": "a\nb"}, ["a\nb"]),
    "several at once": ({"edits": [{"old_str": "a\nb"}, {"old_str": "c\nd"}]}, ["a\nb", "c\nd"]),
    "new text only": ({"content": "a\nb"}, []),
    "a patch": (
        {"input": "*** Begin Patch\n*** Update File: x.py\n@@ def f\n a\n-b\n+c\n@@\n-d\n-e\n*** End Patch"},
        ["a\nb", "d\ne"],
    ),
    "a patch that only adds": ({"input": "*** Begin Patch\n*** Add File: x.py\n+a\n+b\n*** End Patch"}, []),
}


@pytest.mark.parametrize(("arguments", "texts"), EDITS.values(), ids=EDITS)
def test_replaced_texts_of_two_lines_and_more_count(arguments: dict[str, object], texts: list[str]) -> None:
    call = ToolCall(CallId("1"), "edit", json.dumps(arguments))
    assert list(replaced_texts(call)) == list(replaced_in(Message(Role.ASSISTANT, (call,)))) == texts


BLOCK = "```python\n<<<<<<< SEARCH\na\nb\n=======\nc\n>>>>>>> REPLACE\n```"
ANSWERS = {
    "a block that is searched for": (Role.ASSISTANT, f"Like this:\n\nferry.py\n{BLOCK}", ["a\nb"]),
    "two of them": (Role.ASSISTANT, f"{BLOCK}\nand\n{BLOCK.replace('a', 'x')}", ["a\nb", "x\nb"]),
    "a block of plain code": (Role.ASSISTANT, "```\na\nb\n```", []),
    "what the user shows": (Role.USER, BLOCK, []),
}


@pytest.mark.parametrize(("role", "text", "texts"), ANSWERS.values(), ids=ANSWERS)
def test_an_agent_that_acts_in_its_text_replaces_what_it_searches_for(role: Role, text: str, texts: list[str]) -> None:
    assert list(replaced_in(said(role, text))) == texts


def test_every_edit_of_the_data_is_a_case() -> None:
    found = edit_cases(agents(DATA, "office"))
    assert [len(group.cases) for group in found] == [2, 1]

"""Exports that keep a conversation as a tree: ChatGPT, Open WebUI, LibreChat. The open one, the others, odd files."""

import json
from contextlib import suppress

import pytest
from hypothesis import given, settings, strategies as st

from everlong.core import Json, JsonObject, Reasoning
from everlong.errors import InputError
from everlong.wire import marks_of, read, read_all, write
from everlong.wire.documents import document_of, value_of
from tests.wire.sessions.reading import outline
from tests.wire.sessions.samples import CHATGPT, LIBRECHAT, OPEN_WEBUI
from tests.wire.sessions.spoiling import spoiled

OUTLINES = {
    "ChatGPT": (
        CHATGPT,
        [
            "user: How many boats?",
            "assistant: g4",
            "tool: g4",
            "assistant: Seven.",
            "user: [image: file-1]",
            "assistant: Eight.",
        ],
        ["user: How many boats?", "assistant: About ten."],
    ),
    "Open WebUI": (
        OPEN_WEBUI,
        ["user: How many boats?", "assistant: Seven."],
        ["user: How many boats?", "assistant: About ten."],
    ),
    "LibreChat": (
        LIBRECHAT,
        ["user: How many boats?", "assistant: t1", "tool: t1", "assistant: Seven."],
        ["user: How many boats?", "assistant: About ten."],
    ),
}


@pytest.mark.parametrize(("raw", "current", "other"), OUTLINES.values(), ids=OUTLINES)
def test_the_open_branch_is_the_conversation_and_the_others_are_there(
    raw: JsonObject, current: list[str], other: list[str]
) -> None:
    document = document_of(raw)
    assert outline(document.messages) == current
    marks = marks_of(document)
    assert [outline(branch.messages) for branch in marks.branches(document)] == [other]
    assert marks.title(document) == "Seven boats"
    assert marks.session_id(document)
    assert document.model in ("gpt-x", "llama-x")
    assert value_of(document) == raw


def test_many_conversations_in_one_file_and_one_that_is_none() -> None:
    data = json.dumps([CHATGPT, {"mapping": 7}, CHATGPT | {"conversation_id": "second"}]).encode()
    documents = read_all(data)
    assert [marks_of(each).session_id(each) for each in documents] == ["conversation-1", "second"]
    assert "item 2" in documents[0].warnings[0]


def test_thinking_of_ChatGPT_belongs_to_the_answer_that_it_led_to() -> None:
    thoughts = [part.text for part in document_of(CHATGPT).messages[1].parts if isinstance(part, Reasoning)]
    assert thoughts == ["Count\nI count them."]


def test_messages_that_stand_in_each_other() -> None:
    first, *answers = [dict(row) for row in LIBRECHAT["messages"]]  # type: ignore[union-attr, arg-type]
    nested = LIBRECHAT | {"recursive": True, "messages": [first | {"children": answers}]}
    assert outline(document_of(nested).messages) == OUTLINES["LibreChat"][1]


ODD: dict[str, Json] = {
    "a ring": CHATGPT | {"mapping": {"a": {"parent": "b", "message": None}, "b": {"parent": "a", "message": None}}},
    "a current node that is not there": CHATGPT | {"current_node": "nowhere"},
    "no messages": CHATGPT | {"mapping": {}},
    "wrong types everywhere": CHATGPT
    | {"mapping": {"a": {"message": {"author": 7, "content": [], "create_time": "x"}, "parent": 3, "children": "x"}}},
    "no history": {"id": "x", "chat": {"messages": [{"role": "user", "content": "hi"}, 7]}},
    "a history of nothing": {"id": "x", "chat": {"history": {"messages": {"a": 7}}}},
    "rows that are none": {"conversationId": "x", "messages": [7, None, {"children": [[]]}]},
}


@pytest.mark.parametrize("raw", ODD.values(), ids=ODD)
def test_odd_files_are_read_as_far_as_they_go(raw: Json) -> None:
    document = document_of(raw)
    marks_of(document).branches(document)
    assert document_of(value_of(document)).messages == document.messages


@st.composite
def spoiled_exports(draw: st.DrawFn) -> bytes:
    raw = draw(st.sampled_from([CHATGPT, OPEN_WEBUI, LIBRECHAT]))
    return json.dumps(spoiled(raw, draw)).encode()


@given(spoiled_exports())
@settings(max_examples=150, deadline=None)
def test_whatever_is_in_a_file_it_is_read_or_refused_in_one_line(data: bytes) -> None:
    told, documents = "", ()
    try:
        documents = read_all(data)
    except InputError as error:
        told = str(error)
    assert "\n" not in told
    for document in documents:
        marks_of(document).branches(document)
        with suppress(InputError):
            assert read(write(document)).messages == document.messages

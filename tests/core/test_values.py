"""Messages are values: equal content is equal, nothing changes, and every message has one text."""

import json
from dataclasses import FrozenInstanceError, fields, is_dataclass, replace
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings, strategies as st

from everlong.core import budget, messages, points, rounds
from everlong.core.encoding import bytes_of, decode, encode, encode_all, message_ref, ref_of
from everlong.core.messages import (
    CallId,
    Image,
    Message,
    Opaque,
    Part,
    Reasoning,
    Role,
    Text,
    ToolCall,
    ToolResult,
    user_text,
)
from everlong.errors import WireError
from tests.core.build import assistant, calls, result, user

WORDS = ("", "a", "上下文", "👩‍👧 家", "\ud83d", 'q"\\\n', "\x00", "\u2028")
words = st.sampled_from(WORDS)
result_parts = st.one_of(
    st.builds(Text, words, words),
    st.builds(Image, words, words, words, words, words),
    st.builds(Opaque, words, words),
)
parts: st.SearchStrategy[Part] = st.one_of(
    result_parts,
    st.builds(ToolCall, words.map(CallId), words, words, words),
    st.builds(Reasoning, words, words, words),
    st.builds(
        ToolResult, words.map(CallId), st.lists(result_parts, max_size=2).map(tuple), words, st.booleans(), words
    ),
)
any_message = st.builds(
    Message,
    st.sampled_from(Role),
    st.lists(parts, max_size=3).map(tuple),
    words,
    st.sampled_from([None, datetime(2026, 1, 2, 3, 4, 5, 678, UTC), datetime(2026, 1, 2)]),
    words,
    words,
)


@given(any_message)
@settings(max_examples=200, deadline=None)
def test_encoding_is_exact_and_equal_content_is_an_equal_value(message: Message) -> None:
    again = decode(encode(message))
    assert again == message
    assert hash(again) == hash(message)
    assert encode(again) == encode(message)
    assert message_ref(again) == message_ref(message)


@given(any_message, any_message)
@settings(max_examples=200, deadline=None)
def test_different_values_have_different_texts(one: Message, other: Message) -> None:
    assert (encode(one) == encode(other)) == (one == other)


@given(any_message)
@settings(max_examples=50, deadline=None)
def test_nothing_can_be_assigned(message: Message) -> None:
    for value in (message, *message.parts):
        for field in fields(value):
            with pytest.raises(FrozenInstanceError):
                setattr(value, field.name, None)


@pytest.mark.parametrize("module", [budget, messages, points, rounds], ids=lambda module: module.__name__)
def test_every_value_type_of_core_is_frozen_with_slots(module: object) -> None:
    types = [value for value in vars(module).values() if isinstance(value, type) and is_dataclass(value)]
    assert types
    for cls in types:
        assert cls.__dataclass_params__.frozen
        assert "__slots__" in vars(cls)


def test_a_changed_copy_leaves_the_original() -> None:
    original = assistant("a", reasoning="why")
    changed = original.with_parts((Text("b"),))
    assert (original.text, changed.text) == ("a", "b")
    assert replace(changed, parts=original.parts) == original


def test_texts_of_a_message() -> None:
    message = Message(Role.TOOL, (ToolResult(CallId("1"), (Text("r"), Text("s"))), Text("stop")))
    assert message.text == "stop"
    assert message.results[0].text == "r\ns"
    assert user_text(message) == "stop"
    assert user_text(assistant("no")) == ""
    assert calls("1", "2").calls[1].id == "2"


def test_several_messages_are_one_a_line() -> None:
    both = (user("one\ntwo"), result("1"))
    assert [decode(line) for line in encode_all(both).split("\n")] == list(both)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "{",
        "[]",
        "1",
        "null",
        "[" * 100_000,
        '{"role":"user"}',
        '{"role":"king","parts":[]}',
        '{"role":"user","parts":[{"type":"x"}]}',
    ],
)
def test_a_line_that_is_no_message_is_refused_in_words(line: str) -> None:
    with pytest.raises(WireError, match="not a message"):
        decode(line)


def test_references_name_the_bytes() -> None:
    assert ref_of("") == "e4a6a0577479b2b4"
    assert ref_of("上下文") == ref_of("上下文".encode())
    assert ref_of("\ud83d") == ref_of(bytes_of("\ud83d"))
    assert ref_of("a") != ref_of("b")


def test_empty_fields_take_no_room() -> None:
    assert json.loads(encode(user("hi"))) == {"role": "user", "parts": [{"type": "text", "text": "hi"}]}


def test_a_result_has_not_failed_unless_it_says_so() -> None:
    result = ToolResult(CallId("1"), (Text("ok"),))
    assert not result.failed
    assert "failed" not in encode(Message(Role.TOOL, (result,)))

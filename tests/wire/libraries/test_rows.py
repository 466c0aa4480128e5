"""Dicts and the SDKs' own objects, mixed as their users mix them: read as what they say, given back as they are."""

from typing import Any

import pytest
from anthropic.types import Message as AnthropicMessage
from hypothesis import given, strategies as st
from openai.types.chat import ChatCompletion, ChatCompletionMessage
from openai.types.responses import Response

from everlong import count, fit
from everlong.core import Message, Role, Text, positions_of
from everlong.errors import InputError
from everlong.wire import FORMATS, given_back, library_of, rows_library
from everlong.wire.libraries.library import Library, Unit

QUESTION = {"role": "user", "content": "Which file?"}
CALLED = ChatCompletionMessage.model_validate(
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"f": "a"}'}}],
    }
)
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "line\n" * 20}
ANSWER = AnthropicMessage.model_validate(
    {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "content": [
            {"type": "thinking", "thinking": "Let me look.", "signature": "c2ln"},
            {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"f": "a"}},
        ],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
)
RESPONSE = Response.model_validate(
    {
        "id": "resp_1",
        "object": "response",
        "created_at": 0,
        "model": "gpt-5",
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "output": [
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"},
            {
                "type": "function_call",
                "id": "fc_1",
                "call_id": "c1",
                "name": "read",
                "arguments": "{}",
                "status": "completed",
            },
            {
                "type": "function_call",
                "id": "fc_2",
                "call_id": "c2",
                "name": "read",
                "arguments": "{}",
                "status": "completed",
            },
        ],
    }
)

MIXED: dict[str, tuple[list[Any], list[Role]]] = {
    "openai": ([QUESTION, CALLED, RESULT], [Role.USER, Role.ASSISTANT, Role.TOOL]),
    "anthropic blocks in a dict": (
        [
            QUESTION,
            {"role": "assistant", "content": ANSWER.content},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "line"}]},
        ],
        [Role.USER, Role.ASSISTANT, Role.TOOL],
    ),
    "responses items": (
        [
            QUESTION,
            *RESPONSE.output,
            {"type": "function_call_output", "call_id": "c1", "output": "a"},
            {"type": "function_call_output", "call_id": "c2", "output": "b"},
        ],
        [Role.USER, Role.ASSISTANT, Role.TOOL, Role.TOOL],
    ),
}


@pytest.mark.parametrize("name", MIXED)
def test_what_fits_comes_back_as_the_same_objects(name: str) -> None:
    items, roles = MIXED[name]
    fitted = fit(items, model="gpt-4o", budget=100_000)
    assert all(mine is yours for mine, yours in zip(fitted.messages, items, strict=True))
    assert [message.role for message in fitted.view.history] == roles
    assert count(items, model="gpt-4o") == fitted.tokens > 0


@pytest.mark.parametrize("name", MIXED)
def test_every_item_is_in_one_unit_and_is_given_back(name: str) -> None:
    items, _ = MIXED[name]
    library = library_of(items)
    units = library.read(items)
    assert [id(item) for unit in units for item in unit.items] == [id(item) for item in items]
    sent = [message for unit in units for message in unit.messages]
    assert [id(item) for item in given_back(library, units, sent)] == [id(item) for item in items]


def test_a_long_loop_of_mixed_objects_is_cut_and_the_rest_is_the_callers() -> None:
    items: list[Any] = [{"role": "user", "content": "Read all files. The code word is PLOVER."}]
    previous = None
    for number in range(40):
        called = CALLED.model_copy(deep=True)
        assert called.tool_calls
        called.tool_calls[0].id = f"c{number}"
        items += [called, {"role": "tool", "tool_call_id": f"c{number}", "content": f"line {number}\n" * 60}]
        previous = fit(items, model="gpt-4o", budget=4_000, previous=previous)
        assert previous.tokens <= 4_000
        assert previous.messages[-1] is items[-1]
    mine = {id(item) for item in items}
    kept = [item for item in previous.messages if id(item) in mine]  # type: ignore[union-attr]
    assert any(isinstance(item, ChatCompletionMessage) for item in kept)
    assert "PLOVER" in str(previous.messages)  # type: ignore[union-attr]


def test_words_alone_are_of_the_format_that_the_caller_names() -> None:
    assert library_of([QUESTION]) is rows_library("openai-chat")
    assert library_of([QUESTION], "anthropic") is rows_library("anthropic")
    assert library_of(MIXED["responses items"][0], "anthropic") is rows_library("openai-responses")


@pytest.mark.parametrize("fmt", FORMATS)
def test_a_format_writes_new_rows_for_messages_of_ours(fmt: str) -> None:
    library = rows_library(fmt)
    (row,) = library.write([Message(Role.USER, (Text("[what was said before]"),))])
    assert "[what was said before]" in str(row)


def test_messages_of_ours_are_not_mixed_with_others() -> None:
    with pytest.raises(InputError, match="either all Messages"):
        fit([Message(Role.USER, (Text("a"),)), QUESTION])


def test_a_whole_answer_is_told_which_part_of_it_is_the_message() -> None:
    whole = ChatCompletion.model_validate(
        {"id": "c", "object": "chat.completion", "created": 0, "model": "m", "choices": []}
    )
    with pytest.raises(InputError, match=r"pass its \.choices\[0\]\.message"):
        fit([QUESTION, whole])


def test_what_is_no_message_is_told_by_its_kind() -> None:
    with pytest.raises(InputError, match="list of object"):
        fit([object()])


# --- which message of what is sent is whose --------------------------------------------------------------------------

WORDS: Library[str] = Library(
    name="words",
    packages=(),
    read=lambda words: [Unit((word,), tuple(Message(Role.USER, (Text(letter),)) for letter in word)) for word in words],
    write=lambda messages: ["".join(message.text for message in messages)],
)


@given(st.lists(st.text("ab", max_size=3), max_size=8), st.data())
def test_what_is_left_out_or_changed_is_written_and_the_rest_is_the_callers(
    words: list[str], data: st.DataObject
) -> None:
    units = WORDS.read(words)
    history = [message for unit in units for message in unit.messages]
    sent = [message for message in history if data.draw(st.booleans())]
    back = given_back(WORDS, units, sent)
    assert "".join(back) == "".join(message.text for message in sent)
    if sent == history:
        assert [id(word) for word in back] == [id(word) for word in words if word]


@given(st.lists(st.sampled_from("abc"), max_size=10), st.data())
def test_equal_messages_are_told_apart_from_the_end(letters: list[str], data: st.DataObject) -> None:
    history = [Message(Role.USER, (Text(letter),)) for letter in letters]
    kept = sorted(data.draw(st.sets(st.integers(0, len(letters) - 1))) if letters else [])
    places = positions_of([history[place] for place in kept], history)
    found = [place.at for place in places if place is not None]
    assert [letters[place] for place in found] == [letters[place] for place in kept]
    assert found == sorted(found)
    assert all(found_at >= place for found_at, place in zip(found, kept, strict=True))

"""The shortcut for usual messages reads what the whole reader reads, and nothing else."""

import pytest
from hypothesis import given, settings, strategies as st

from everlong.core import JsonObject
from everlong.wire.formats.openai_chat.messages import NAME, _any_message, usual_message, write_message

words = st.sampled_from([None, "", "hi", "上下文", 3, [], {}, True])
roles = st.sampled_from(["system", "user", "assistant", "tool", "developer", "function"])
functions = st.fixed_dictionaries({}, optional={"name": words, "arguments": words, "strict": words})
calls = st.fixed_dictionaries(
    {},
    optional={
        "id": words,
        "type": st.sampled_from(["function", "custom", None]),
        "function": functions,
        "index": words,
    },
)
usual_calls = st.just({"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}})
messages = st.fixed_dictionaries(
    {"role": roles},
    optional={
        "content": words,
        "name": words,
        "tool_call_id": words,
        "reasoning_content": words,
        "refusal": words,
        "tool_calls": st.one_of(words, st.lists(st.one_of(usual_calls, calls), max_size=2)),
    },
)


@given(messages)
@settings(max_examples=2_000, deadline=None)
def test_what_it_recognises_it_reads_like_the_whole_reader(raw: JsonObject) -> None:
    message = usual_message(raw, NAME)
    if message is not None:
        assert message == _any_message(raw, "")
        assert write_message(message) == [raw]


CALL = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
USUAL: dict[str, JsonObject] = {
    "text": {"role": "user", "content": "hi"},
    "a result": {"role": "tool", "tool_call_id": "c1", "content": "ok"},
    "a named result": {"role": "tool", "tool_call_id": "c1", "name": "read", "content": "ok"},
    "calls alone": {"role": "assistant", "content": None, "tool_calls": [CALL]},
    "calls with text and reasoning": {
        "role": "assistant",
        "content": "look",
        "reasoning_content": "why",
        "tool_calls": [CALL, {**CALL, "id": "c2"}],
    },
}


@pytest.mark.parametrize("name", USUAL)
def test_the_usual_shapes_are_recognised(name: str) -> None:
    assert usual_message(USUAL[name], NAME) is not None

"""Anthropic Messages: what came goes back as it came."""

import json
from dataclasses import replace
from typing import cast

import pytest
from hypothesis import given, settings, strategies as st

from everlong.core import CallId, Json, JsonObject, Opaque, Reasoning, Role, Text, ToolCall, decode, encode
from everlong.errors import WireError
from everlong.wire import ANTHROPIC
from tests.wire.conversations import objects, same, texts, values

PNG = {"type": "base64", "media_type": "image/png", "data": "aGVsbG8="}


def user(*blocks: JsonObject) -> JsonObject:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: JsonObject) -> JsonObject:
    return {"role": "assistant", "content": list(blocks)}


RESULT = {"type": "tool_result", "tool_use_id": "toolu_1"}

MESSAGES: dict[str, JsonObject] = {
    "text as a string": {"role": "user", "content": "hello"},
    "the empty string": {"role": "assistant", "content": ""},
    "text as a block": user({"type": "text", "text": "hello"}),
    "no blocks": {"role": "assistant", "content": []},
    "cache control": user({"type": "text", "text": "a", "cache_control": {"type": "ephemeral", "ttl": "1h"}}),
    "citations null and full": assistant(
        {"type": "text", "text": "a", "citations": None},
        {"type": "text", "text": "b", "citations": [{"type": "char_location", "cited_text": "b"}]},
    ),
    "image in base64": user({"type": "image", "source": PNG, "cache_control": {"type": "ephemeral"}}),
    "image by address": user({"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}),
    "image by data address": user({"type": "image", "source": {"type": "url", "url": "data:image/png;base64,aGk="}}),
    "image by file id": user({"type": "image", "source": {"type": "file", "file_id": "file_1", "x": 1}}),
    "image from a source nobody knows": user({"type": "image", "source": {"type": "dream", "of": "sheep"}}),
    "call": assistant({"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "a", "n": 1.0}}),
    "call with fields to come": assistant(
        {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {}, "caller": {"type": "direct"}}
    ),
    "call without input": assistant({"type": "tool_use", "id": "toolu_1", "name": "read"}),
    "call with input null": assistant({"type": "tool_use", "id": "toolu_1", "name": "read", "input": None}),
    "call with input that is not an object": assistant({"type": "tool_use", "id": "t", "name": "read", "input": ["a"]}),
    "result as a string": user({**RESULT, "content": "done"}),
    "result as an empty string": user({**RESULT, "content": ""}),
    "result without content": user(RESULT),
    "result with content null": user({**RESULT, "content": None}),
    "result with no blocks": user({**RESULT, "content": []}),
    "result in blocks with an image": user(
        {**RESULT, "content": [{"type": "text", "text": "see"}, {"type": "image", "source": PNG}]}
    ),
    "result in blocks with others": user({**RESULT, "content": [{"type": "tool_reference", "tool_name": "x"}]}),
    "result that failed": user({**RESULT, "content": "no", "is_error": True, "cache_control": {"type": "ephemeral"}}),
    "result that did not fail": user({**RESULT, "content": "yes", "is_error": False}),
    "result that may have failed": user({**RESULT, "content": "?", "is_error": None}),
    "results and words": user({**RESULT, "content": "a"}, {"type": "text", "text": "and now?"}),
    "thinking": assistant({"type": "thinking", "thinking": "hm", "signature": "c2ln"}),
    "thinking with an empty signature": assistant({"type": "thinking", "thinking": "", "signature": ""}),
    "thinking without signature": assistant({"type": "thinking", "thinking": "hm"}),
    "redacted thinking": assistant({"type": "redacted_thinking", "data": "c2VjcmV0"}),
    "server tools": assistant(
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
    ),
    "document": user({"type": "document", "source": {"type": "text", "data": "x"}, "title": "t"}),
    "a reply with all its fields": assistant({"type": "text", "text": "hi"})
    | {"id": "msg_1", "type": "message", "model": "m", "stop_reason": None, "usage": {"input_tokens": 1}},
    "system in the list": {"role": "system", "content": "from now on, French"},
    "half a surrogate pair": user({"type": "text", "text": "\ud83d"}),
}


@pytest.mark.parametrize("raw", MESSAGES.values(), ids=MESSAGES.keys())
def test_an_untouched_message_gives_back_its_json(raw: JsonObject) -> None:
    message = ANTHROPIC.read_message(raw)
    assert [same(out, raw) for out in ANTHROPIC.write_message(message)] == [True]
    assert decode(encode(message)) == message


def test_parts_say_what_the_blocks_said() -> None:
    message = ANTHROPIC.read_message(
        assistant(
            {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
            {"type": "redacted_thinking", "data": "c2VjcmV0"},
            {"type": "text", "text": "I look"},
            {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "é"}},
            {"type": "server_tool_use", "id": "s", "name": "n", "input": {}},
        )
    )
    thinking, redacted, text, call, other = message.parts
    assert thinking == Reasoning("hm", "c2ln")
    assert isinstance(redacted, Reasoning)
    assert redacted.signature == "c2VjcmV0"
    assert text == Text("I look")
    assert call == ToolCall(CallId("toolu_1"), "read", '{"path":"é"}')
    assert isinstance(other, Opaque)
    assert other.kind == "server_tool_use"


def test_a_user_message_with_results_is_a_tool_message() -> None:
    message = ANTHROPIC.read_message(
        user({**RESULT, "content": "no", "is_error": True}, {"type": "text", "text": "well?"})
    )
    assert message.role is Role.TOOL
    assert message.results[0].call == "toolu_1"
    assert message.results[0].text == "no"
    assert message.results[0].failed
    assert message.text == "well?"


BAD: dict[str, tuple[Json, str]] = {
    "a message that is a string": ("hello", "messages[3]"),
    "an unknown role": ({"role": "tool", "content": "x"}, "messages[3]"),
    "a role that is no text": ({"role": ["user"], "content": "x"}, "messages[3]"),
    "no content": ({"role": "user"}, "messages[3].content"),
    "content that is a number": ({"role": "user", "content": 5}, "messages[3].content"),
    "a block that is a string": ({"role": "user", "content": ["x"]}, "messages[3].content[0]"),
    "a block without a type": (user({"text": "x"}), "messages[3].content[0]"),
    "text without text": (user({"type": "text"}), "messages[3].content[0]"),
    "a call without an id": (
        assistant({"type": "text", "text": "x"}, {"type": "tool_use", "name": "a", "input": {}}),
        "messages[3].content[1]",
    ),
    "a result without an id": (user({"type": "tool_result", "content": "x"}), "messages[3].content[0]"),
    "a result with a number inside": (user({**RESULT, "content": [5]}), "messages[3].content[0].content[0]"),
    "a result that is a number": (user({**RESULT, "content": 5}), "messages[3].content[0]"),
    "a failure that is a word": (user({**RESULT, "is_error": "yes"}), "messages[3].content[0]"),
    "an image without a source": (user({"type": "image"}), "messages[3].content[0]"),
    "base64 without a type": (
        user({"type": "image", "source": {"type": "base64", "data": ""}}),
        "messages[3].content[0]",
    ),
    "a signature that is a number": (
        assistant({"type": "thinking", "thinking": "a", "signature": 1}),
        "messages[3].content[0]",
    ),
}


@pytest.mark.parametrize(("raw", "where"), BAD.values(), ids=BAD.keys())
def test_a_bad_shape_is_named_with_its_place(raw: Json, where: str) -> None:
    good: list[Json] = [{"role": "user", "content": "x"}] * 3
    with pytest.raises(WireError) as caught:
        ANTHROPIC.read_body({"messages": [*good, raw]})
    assert caught.value.where == where
    assert caught.value.fmt == "anthropic"


BODIES: dict[str, JsonObject] = {
    "only messages": {"messages": [{"role": "user", "content": "hi"}]},
    "no messages": {"model": "claude", "messages": []},
    "system as a string": {"model": "claude", "system": "Be brief.", "messages": [], "max_tokens": 5},
    "system in blocks": {
        "system": [
            {"type": "text", "text": "a"},
            {"type": "text", "text": "b", "cache_control": {"type": "ephemeral"}},
        ],
        "messages": [{"role": "user", "content": "hi"}],
        "tools": [{"name": "read", "input_schema": {"type": "object"}}],
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "metadata": None,
    },
    "empty everything": {"model": "", "system": "", "messages": [], "tools": []},
    "null everything": {"model": None, "system": None, "messages": [], "tools": None},
    "an empty list of system blocks": {"system": [], "messages": []},
    "results in messages of their own": {
        "messages": [
            {"role": "user", "content": "go"},
            assistant(
                {"type": "tool_use", "id": "a", "name": "f", "input": {}},
                {"type": "tool_use", "id": "b", "name": "f", "input": {}},
            ),
            user({**RESULT, "tool_use_id": "a", "content": "1"}),
            user({**RESULT, "tool_use_id": "b", "content": "2"}),
        ]
    },
    "repeated ids": {
        "messages": [assistant({"type": "tool_use", "id": "a", "name": "f", "input": {}})] * 2,
    },
    "system first in the list, too": {
        "system": "one",
        "messages": [{"role": "system", "content": "two"}, {"role": "user", "content": "hi"}],
    },
}


@pytest.mark.parametrize("raw", BODIES.values(), ids=BODIES.keys())
def test_an_untouched_body_gives_back_its_json(raw: JsonObject) -> None:
    assert same(ANTHROPIC.write_body(ANTHROPIC.read_body(raw)), raw)


def test_system_text_leads_the_messages() -> None:
    document = ANTHROPIC.read_body(BODIES["system in blocks"])
    assert [message.role for message in document.messages] == [Role.SYSTEM, Role.USER]
    assert document.messages[0].text == "a\nb"
    assert [json.loads(tool)["name"] for tool in document.tools] == ["read"]


@pytest.mark.parametrize(
    ("field", "value"), [("messages", "hi"), ("tools", "all"), ("system", 5), ("system", ["x"])], ids=str
)
def test_a_bad_body_is_named(field: str, value: Json) -> None:
    with pytest.raises(WireError) as caught:
        ANTHROPIC.read_body({"messages": [], field: value})
    assert caught.value.where.startswith(field)


EDITED: dict[str, tuple[JsonObject, str, JsonObject]] = {
    "a string": (MESSAGES["result as a string"], "cut", user({**RESULT, "content": "cut"})),
    "blocks": (
        MESSAGES["result in blocks with an image"],
        "cut",
        user({**RESULT, "content": [{"type": "text", "text": "cut"}]}),
    ),
    "nothing": (
        MESSAGES["result with content null"],
        "cut",
        user({**RESULT, "content": [{"type": "text", "text": "cut"}]}),
    ),
}


@pytest.mark.parametrize(("raw", "text", "expected"), EDITED.values(), ids=EDITED.keys())
def test_a_shortened_result_is_still_well_formed(raw: JsonObject, text: str, expected: JsonObject) -> None:
    message = ANTHROPIC.read_message(raw)
    shorter = message.with_parts((replace(message.results[0], content=(Text(text),)),))
    assert same(ANTHROPIC.write_message(shorter), [expected])


def test_arguments_that_were_edited_are_sent_as_an_object() -> None:
    message = ANTHROPIC.read_message(MESSAGES["call with input that is not an object"])
    edited = message.with_parts((replace(message.calls[0], arguments='{"a":1}'),))
    block = cast("list[JsonObject]", ANTHROPIC.write_message(edited)[0]["content"])[0]
    assert block["input"] == {"a": 1}


def test_a_message_whose_parts_all_went_is_not_sent() -> None:
    assert ANTHROPIC.write_message(ANTHROPIC.read_message(MESSAGES["text as a block"]).with_parts(())) == []


# --- what always holds ---------------------------------------------------------------------------

unknown = st.dictionaries(st.sampled_from(["cache_control", "citations", "x_new"]), values, max_size=2)


def block(kind: str, required: dict[str, st.SearchStrategy], optional: dict[str, st.SearchStrategy] | None = None):
    fixed = st.fixed_dictionaries({"type": st.just(kind), **required}, optional=optional or {})
    return st.builds(lambda known, more: {**more, **known}, fixed, unknown)


ids = st.sampled_from(["toolu_1", "toolu_2", "x|y", ""])
sources = st.one_of(
    st.builds(lambda data, more: {**more, "type": "base64", "media_type": "image/png", "data": data}, texts, unknown),
    st.builds(lambda more: {**more, "type": "url", "url": "https://example.com/a.png"}, unknown),
    st.builds(lambda more: {**more, "type": "file", "file_id": "file_1"}, unknown),
)
spoken = st.one_of(
    block("text", {"text": texts}),
    block("image", {"source": sources}),
    block("document", {"source": objects}),
)
blocks = st.one_of(
    spoken,
    block("tool_use", {"id": ids, "name": texts}, {"input": objects | values}),
    block(
        "tool_result",
        {"tool_use_id": ids},
        {"content": st.none() | texts | st.lists(spoken, max_size=3), "is_error": st.sampled_from([None, True, False])},
    ),
    block("thinking", {"thinking": texts}, {"signature": texts}),
    block("redacted_thinking", {"data": texts}),
    block("web_search_tool_result", {"content": values}),
)
raw_messages = st.builds(
    lambda role, content, more: {**more, "role": role, "content": content},
    st.sampled_from(["user", "assistant", "system"]),
    texts | st.lists(blocks, max_size=4),
    unknown,
)
raw_bodies = st.builds(
    lambda known, more: {**more, **known},
    st.fixed_dictionaries(
        {"messages": st.lists(raw_messages, max_size=5)},
        optional={
            "system": st.none() | texts | st.lists(block("text", {"text": texts}), max_size=2),
            "model": st.sampled_from([None, "", "claude"]),
            "tools": st.none() | st.lists(objects, max_size=2),
        },
    ),
    unknown,
)


@settings(max_examples=300, deadline=None)
@given(raw_messages)
def test_parse_and_render_are_inverse(raw: JsonObject) -> None:
    message = ANTHROPIC.read_message(raw)
    assert [same(out, raw) for out in ANTHROPIC.write_message(message)] == [True]
    assert decode(encode(message)) == message


@settings(max_examples=150, deadline=None)
@given(raw_bodies)
def test_parse_body_and_render_body_are_inverse(raw: JsonObject) -> None:
    assert same(ANTHROPIC.write_body(ANTHROPIC.read_body(raw)), raw)

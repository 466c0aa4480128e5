"""OpenAI Chat: what was read is written again, and messages of other formats as far as Chat can say them."""

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st

from everlong.core import (
    CallId,
    Image,
    Json,
    JsonObject,
    Message,
    Opaque,
    Reasoning,
    Role,
    Text,
    ToolCall,
    ToolResult,
    decode,
    encode,
    pairs_of,
)
from everlong.errors import WireError
from everlong.wire.document import Document
from everlong.wire.formats.openai_chat.messages import (
    LONGEST_CALL_ID,
    NAME,
    PICTURES,
    PICTURES_FOLLOW,
    read_body,
    read_message,
    write_body,
    write_history,
    write_message,
)


def exact(value: Json) -> str:
    """JSON text in one key order: unlike ==, it tells 1 from 1.0 and from true."""
    return json.dumps(value, sort_keys=True)


# --- what was read is written again ---------------------------------------------------------------

CALL: JsonObject = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"path": "a"}'}}

SAMPLES: dict[str, JsonObject] = {
    "user text": {"role": "user", "content": "hello"},
    "blocks, one of them cached": {
        "role": "user",
        "content": [
            {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}},
            {"type": "text", "text": ""},
        ],
    },
    "picture inline": {
        "role": "user",
        "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk=", "detail": "low", "x": 1}}],
    },
    "picture without its object": {
        "role": "user",
        "content": [{"type": "image_url", "image_url": "https://example.org/a.png", "x": None}],
    },
    "picture without address": {"role": "user", "content": [{"type": "image_url", "image_url": {"url": ""}}]},
    "unknown block": {"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "aGk="}}, 7]},
    "block named like a field": {"role": "assistant", "content": [{"type": "message.audio", "x": 1}]},
    "developer": {"role": "developer", "content": "be brief", "name": "ops"},
    "empty name": {"role": "user", "content": "hi", "name": ""},
    "null name": {"role": "user", "content": "hi", "name": None},
    "content missing": {"role": "assistant", "tool_calls": [CALL]},
    "content null": {"role": "assistant", "content": None, "tool_calls": [CALL], "refusal": None},
    "content empty": {"role": "assistant", "content": "", "tool_calls": [CALL]},
    "content no blocks": {"role": "assistant", "content": [], "tool_calls": [CALL]},
    "content one bare block": {"role": "user", "content": {"type": "text", "text": "hi"}},
    "content a number": {"role": "user", "content": 4},
    "no calls": {"role": "assistant", "content": "a", "tool_calls": []},
    "null calls": {"role": "assistant", "content": "a", "tool_calls": None, "function_call": None},
    "call without arguments": {
        "role": "assistant",
        "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f"}}],
    },
    "null arguments": {
        "role": "assistant",
        "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": None}}],
    },
    "arguments as an object": {
        "role": "assistant",
        "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": {"b": 1.0, "a": None}, "x": 1}, "index": 0}],
    },
    "call without id and name": {"role": "assistant", "tool_calls": [{"type": "function", "function": {}}]},
    "call of odd values": {
        "role": "assistant",
        "tool_calls": [{"id": 3, "type": "absent", "function": {"name": None}}],
    },
    "calls that are none": {"role": "assistant", "tool_calls": [None, CALL, {"id": "x"}, "c", CALL]},
    "custom tool": {
        "role": "assistant",
        "tool_calls": [{"id": "c", "type": "custom", "custom": {"name": "patch", "input": '*** Begin\n"x"'}}],
    },
    "signed call": {
        "role": "assistant",
        "tool_calls": [{**CALL, "extra_content": {"google": {"thought_signature": "c2ln"}}}],
    },
    "old call": {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{"}},
    "old call, odd": {"role": "assistant", "function_call": {"arguments": {"a": 1}, "y": 2}},
    "old result": {"role": "function", "name": "f", "content": "ok"},
    "old result with an id": {"role": "function", "name": "f", "tool_call_id": "function:f", "content": "ok"},
    "result": {"role": "tool", "tool_call_id": "c1", "name": "read", "content": "text", "is_error": True},
    "result in blocks": {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "a"}]},
    "result without id": {"role": "tool", "content": ""},
    "result of odd id": {"role": "tool", "tool_call_id": None, "content": None},
    "reasoning everywhere": {
        "role": "assistant",
        "content": "a",
        "reasoning_content": "",
        "reasoning": "hm",
        "reasoning_details": [{"type": "reasoning.encrypted", "data": "x"}],
        "thinking_blocks": [{"type": "thinking", "thinking": "t", "signature": "s"}],
    },
    "reasoning of odd values": {
        "role": "assistant",
        "content": "a",
        "reasoning_content": None,
        "reasoning": {"effort": 1},
        "reasoning_details": [],
        "thinking_blocks": None,
    },
    "refusal": {"role": "assistant", "content": None, "refusal": "I would rather not."},
    "refusal as a block": {"role": "assistant", "content": [{"type": "refusal", "refusal": "No.", "text": 1}]},
    "audio": {"role": "assistant", "content": None, "audio": {"id": "audio_1"}},
    "lone surrogate": {"role": "user", "content": "a\ud83d", "x\ude00": ["\ud83d"]},
}


@pytest.mark.parametrize("raw", SAMPLES.values(), ids=SAMPLES.keys())
def test_an_untouched_message_gives_back_its_json(raw: JsonObject) -> None:
    before = exact(raw)
    message = read_message(raw)
    assert [exact(out) for out in write_message(message)] == [before]
    assert exact(raw) == before
    assert decode(encode(message)) == message


LEAVES: list[Json] = [None, True, 0, -1, 1.5, 1e300, "", "x", "词", "\ud83d", [], {}, {"a": [1, {"b": None}]}]
odd = st.sampled_from(LEAVES)
unknown = st.dictionaries(st.sampled_from(["x", "index", "cache_control"]), odd, max_size=2)
words = st.sampled_from(["", "a", "two\nlines", "长文", "\udc00"])


def objects(known: dict[str, st.SearchStrategy[Json]]) -> st.SearchStrategy[Json]:
    """Objects with any of the known fields and some unknown ones."""
    return st.builds(lambda a, b: {**b, **a}, st.fixed_dictionaries({}, optional=known), unknown)


urls = st.sampled_from(["", "https://example.org/a", "data:image/png;base64,", "data:a/b;base64,QQ==", "data:,x"])
images = objects({"url": urls | odd, "detail": st.sampled_from(["", "low"]) | odd})
blocks = odd | objects(
    {
        "type": st.sampled_from(["text", "input_text", "image_url", "refusal", "file", "message.x"]) | odd,
        "text": words | odd,
        "refusal": words | odd,
        "image_url": images | urls | odd,
    }
)
functions = odd | objects({"name": words | odd, "arguments": words | odd, "input": words | odd})
tool_calls = odd | objects(
    {
        "id": words | odd,
        "type": st.sampled_from(["function", "custom"]) | odd,
        "function": functions,
        "custom": functions,
    }
)
raw_messages = st.builds(
    lambda role, fields, more: {"role": role, **more, **fields},
    st.sampled_from(["system", "developer", "user", "assistant", "assistant", "tool", "function"]),
    st.fixed_dictionaries(
        {},
        optional={
            "content": words | odd | blocks | st.lists(blocks, max_size=3),
            "name": words | odd,
            "tool_calls": odd | st.lists(tool_calls, max_size=3),
            "function_call": functions,
            "tool_call_id": words | odd,
            "reasoning_content": words | odd,
            "reasoning": words | odd,
            "reasoning_details": odd,
            "thinking_blocks": odd,
            "refusal": words | odd,
            "audio": odd,
        },
    ),
    unknown,
)


@settings(max_examples=400, deadline=None)
@given(raw_messages)
def test_reading_and_writing_are_inverse_for_any_message(raw: JsonObject) -> None:
    message = read_message(raw)
    assert [exact(out) for out in write_message(message)] == [exact(raw)]
    assert decode(encode(message)) == message


@settings(max_examples=100, deadline=None)
@given(st.lists(raw_messages, max_size=4), unknown, odd, odd)
def test_reading_and_writing_are_inverse_for_any_body(
    messages: list[Json], more: JsonObject, tools: Json, model: Json
) -> None:
    body: JsonObject = {**more, "messages": messages, "tools": tools, "model": model, "temperature": 0.5}
    assert exact(write_body(read_body(body))) == exact(body)


@settings(max_examples=150, deadline=None)
@given(raw_messages, st.integers(0, 31))
def test_a_message_that_lost_parts_says_just_the_others(raw: JsonObject, kept: int) -> None:
    message = read_message(raw)
    fewer = message.with_parts(tuple(part for at, part in enumerate(message.parts) if kept >> at & 1))
    for out in write_message(fewer):
        again = read_message(out)
        assert again.calls == fewer.calls
        assert again.results == fewer.results
        assert again.text.strip() == fewer.text.strip()


# --- what it means --------------------------------------------------------------------------------


def test_the_parts_of_an_assistant_message_stand_in_order() -> None:
    message = read_message({**SAMPLES["content empty"], "content": "so", "reasoning_content": "hm", "refusal": "no"})
    assert [type(part).__name__ for part in message.parts] == ["Reasoning", "Text", "Text", "ToolCall"]
    assert message.text == "so\nno"
    assert message.calls[0].arguments == '{"path": "a"}'


def test_every_kind_of_reasoning_is_a_part_and_goes_with_it() -> None:
    message = read_message(SAMPLES["reasoning everywhere"])
    kinds = [part for part in message.parts if isinstance(part, Reasoning)]
    assert [(part.text, bool(part.signature)) for part in kinds] == [("", False), ("hm", False), ("", True), ("", True)]
    without = message.with_parts(tuple(part for part in message.parts if not isinstance(part, Reasoning)))
    assert write_message(without) == [{"role": "assistant", "content": "a"}]


def test_calls_and_results_pair_up_also_where_ids_did_not_exist() -> None:
    old = [SAMPLES["old call"], SAMPLES["old result"]]
    new = [SAMPLES["content null"], SAMPLES["result"]]
    custom = [SAMPLES["custom tool"], {"role": "tool", "tool_call_id": "c", "content": "done"}]
    history = [read_message(raw) for raw in (*old, *new, *custom)]
    assert len(pairs_of(history)) == 3


def test_the_free_text_of_a_custom_tool_is_json_inside() -> None:
    message = read_message(SAMPLES["custom tool"])
    assert json.loads(message.calls[0].arguments) == {"input": '*** Begin\n"x"'}
    shorter = replace(message.calls[0], arguments='{"input":"*** Begin"}')
    custom = write_message(message.with_parts((shorter,)))[0]["tool_calls"]
    assert custom == [{"id": "c", "type": "custom", "custom": {"name": "patch", "input": "*** Begin"}}]


def test_arguments_that_were_an_object_and_no_longer_are_go_as_text() -> None:
    message = read_message(SAMPLES["arguments as an object"])
    broken = replace(message.calls[0], arguments='{"b":')
    call = write_message(message.with_parts((broken,)))[0]["tool_calls"]
    assert call == [{"id": "c", "function": {"name": "f", "arguments": '{"b":', "x": 1}, "index": 0}]


def test_a_shortened_text_keeps_its_shape() -> None:
    blocks_in = read_message(SAMPLES["result in blocks"])
    result = replace(blocks_in.results[0], content=(Text("…"),))
    assert write_message(blocks_in.with_parts((result,)))[0]["content"] == [{"type": "text", "text": "…"}]
    string_in = read_message(SAMPLES["user text"])
    cached = read_message({**SAMPLES["blocks, one of them cached"], "role": "assistant", "tool_calls": [CALL]})
    assert write_message(cached.with_parts(cached.calls)) == [
        {"role": "assistant", "content": None, "tool_calls": [CALL]}
    ]
    assert write_message(string_in.with_parts((Text("…"),))) == [{"role": "user", "content": "…"}]


# --- bodies ---------------------------------------------------------------------------------------

BODY: JsonObject = {
    "model": "gpt-4o",
    "messages": [SAMPLES["developer"], SAMPLES["user text"]],
    "tools": [{"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}],
    "stream": True,
    "metadata": {"a": [1, None]},
}


def test_a_body_gives_its_model_tools_and_messages() -> None:
    document = read_body(BODY)
    assert (document.fmt, document.model, len(document.messages), document.bare) == (NAME, "gpt-4o", 2, False)
    assert [json.loads(tool) for tool in document.tools] == BODY["tools"]
    assert write_body(document) == BODY


def test_a_bare_list_is_a_body_too() -> None:
    document = read_body(BODY["messages"])
    assert document.bare
    assert write_body(document) == {"messages": BODY["messages"]}


def test_changed_model_and_tools_win_over_odd_ones_that_came() -> None:
    document = read_body({"model": None, "messages": [], "tools": []})
    assert write_body(document) == {"model": None, "messages": [], "tools": []}
    changed = replace(document, model="m", tools=('{"type":"function"}',))
    assert write_body(changed) == {"model": "m", "messages": [], "tools": [{"type": "function"}]}


def test_a_document_of_another_format_gives_model_and_messages_only() -> None:
    document = Document(
        fmt="elsewhere",
        messages=(Message(Role.SYSTEM, (Text("be brief"),)), Message(Role.USER, (Text("hi"),))),
        model="m",
        tools=('{"name":"read","input_schema":{}}',),
        extra='{"max_tokens":5}',
    )
    assert write_body(document) == {
        "model": "m",
        "messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hi"}],
    }


BAD: list[tuple[str, Json, str]] = [
    ("no object", "hello", ""),
    ("no messages", {"model": "m"}, "messages"),
    ("messages no list", {"messages": {"role": "user"}}, "messages"),
    ("message no object", {"messages": [SAMPLES["user text"], "hi"]}, "messages[1]"),
    ("role missing", {"messages": [{"content": "hi"}]}, "messages[0].role"),
    ("role unknown", {"messages": [SAMPLES["user text"], {"role": "narrator"}]}, "messages[1].role"),
    ("role no string", {"messages": [{"role": ["user"]}]}, "messages[0].role"),
]


@pytest.mark.parametrize(("body", "where"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
def test_what_is_no_chat_says_where(body: Json, where: str) -> None:
    with pytest.raises(WireError) as caught:
        read_body(body)
    assert (caught.value.fmt, caught.value.where) == (NAME, where)


# --- messages of other formats --------------------------------------------------------------------


def foreign(role: Role, *parts: Text | Image | ToolCall | ToolResult | Reasoning | Opaque, name: str = "") -> Message:
    return Message(role, parts, name=name, origin="elsewhere", extra='{"uuid":"1"}')


PNG = Image(data="aGk=", media_type="image/png", extra='{"source":1}')
PNG_BLOCK: JsonObject = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}

FOREIGN: list[tuple[str, Message, list[JsonObject]]] = [
    ("text", foreign(Role.USER, Text("hi", '{"citations":[]}')), [{"role": "user", "content": "hi"}]),
    (
        "text and picture",
        foreign(Role.USER, Text("see"), PNG),
        [{"role": "user", "content": [{"type": "text", "text": "see"}, PNG_BLOCK]}],
    ),
    (
        "text and call",
        foreign(Role.ASSISTANT, Text("so"), ToolCall(CallId("c"), "f", "{", '{"caller":1}')),
        [
            {
                "role": "assistant",
                "content": "so",
                "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{"}}],
            }
        ],
    ),
    (
        "call alone",
        foreign(Role.ASSISTANT, ToolCall(CallId("c"), "f", "{}")),
        [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
            }
        ],
    ),
    (
        "sealed thinking is left out",
        foreign(Role.ASSISTANT, Reasoning("hm", "sig"), Text("so")),
        [{"role": "assistant", "content": "so"}],
    ),
    (
        "plain thinking goes along",
        foreign(Role.ASSISTANT, Reasoning("hm"), Reasoning("aha"), Text("so")),
        [{"role": "assistant", "content": "so", "reasoning_content": "hm\n\naha"}],
    ),
    ("nothing but thinking", foreign(Role.ASSISTANT, Reasoning("hm"), Reasoning("", "sig")), []),
    ("nothing but opaque parts", foreign(Role.ASSISTANT, Opaque("server_tool_use", "{}")), []),
    ("nothing but blank text", foreign(Role.USER, Text(""), Text(" \n")), []),
    ("no parts", foreign(Role.ASSISTANT), []),
    (
        "picture by the assistant",
        foreign(Role.ASSISTANT, PNG),
        [{"role": "assistant", "content": "[image not shown: image/png]"}],
    ),
    (
        "picture in another provider's files",
        foreign(Role.USER, Image(url="file_123")),
        [{"role": "user", "content": "[image not shown: file_123]"}],
    ),
    (
        "name that is accepted",
        foreign(Role.USER, Text("hi"), name="ann"),
        [{"role": "user", "name": "ann", "content": "hi"}],
    ),
    ("name that is not", foreign(Role.USER, Text("hi"), name="Ann B."), [{"role": "user", "content": "hi"}]),
    (
        "results and what was said beside them",
        foreign(
            Role.TOOL,
            ToolResult(CallId("a"), (Text("1"),), failed=True, extra='{"x":1}'),
            Text("go on"),
            ToolResult(CallId("b"), (), name="f"),
        ),
        [
            {"role": "tool", "tool_call_id": "a", "content": "1"},
            {"role": "tool", "tool_call_id": "b", "name": "f", "content": ""},
            {"role": "user", "content": "go on"},
        ],
    ),
]


@pytest.mark.parametrize(("message", "expected"), [row[1:] for row in FOREIGN], ids=[row[0] for row in FOREIGN])
def test_a_message_of_another_format(message: Message, expected: list[JsonObject]) -> None:
    assert write_message(message) == expected


def test_pictures_in_results_follow_after_all_results() -> None:
    history = [
        foreign(Role.ASSISTANT, ToolCall(CallId("a"), "shot", "{}"), ToolCall(CallId("b"), "shot", "{}")),
        foreign(Role.TOOL, ToolResult(CallId("a"), (PNG,))),
        foreign(Role.TOOL, ToolResult(CallId("b"), (Text("two"), PNG))),
        foreign(Role.USER, Text("and?")),
    ]
    sent = write_history(history)["messages"]
    assert isinstance(sent, list)
    assert sent[1:] == [
        {"role": "tool", "tool_call_id": "a", "content": PICTURES_FOLLOW},
        {"role": "tool", "tool_call_id": "b", "content": "two"},
        {"role": "user", "content": [{"type": "text", "text": PICTURES}, PNG_BLOCK]},
        {"role": "user", "content": [{"type": "text", "text": PICTURES}, PNG_BLOCK]},
        {"role": "user", "content": "and?"},
    ]


def test_ids_that_are_too_long_stay_paired() -> None:
    long = CallId("call_" + "x" * 80 + "|fc_1")
    history = [
        foreign(Role.ASSISTANT, ToolCall(long, "f", "{}")),
        foreign(Role.TOOL, ToolResult(long, (Text("ok"),))),
    ]
    again = read_body(write_history(history)).messages
    assert len(pairs_of(again)) == 1
    assert len(again[0].calls[0].id) <= LONGEST_CALL_ID


def test_own_messages_go_with_ids_of_any_length() -> None:
    raw: JsonObject = {"role": "tool", "tool_call_id": "x" * 90, "content": "ok"}
    assert write_message(read_message(raw)) == [raw]

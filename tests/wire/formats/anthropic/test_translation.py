"""Anthropic Messages: what came from elsewhere is accepted."""

from dataclasses import replace
from typing import cast

import pytest
from hypothesis import given, settings, strategies as st

from everlong.core import CallId, Image, Json, JsonObject, Message, Opaque, Reasoning, Role, Text, ToolCall, ToolResult
from everlong.wire import ANTHROPIC, OPENAI_CHAT
from everlong.wire.document import Document
from everlong.wire.formats import problems
from tests.wire.conversations import chats, same

PNG = {"type": "base64", "media_type": "image/png", "data": "aGVsbG8="}


def user(*blocks: JsonObject) -> JsonObject:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: JsonObject) -> JsonObject:
    return {"role": "assistant", "content": list(blocks)}


RESULT = {"type": "tool_result", "tool_use_id": "toolu_1"}


def ours(role: Role, *parts: Text | Image | ToolCall | ToolResult | Reasoning | Opaque) -> Message:
    return Message(role, parts)


TRANSLATED: dict[str, tuple[Message, list[JsonObject]]] = {
    "words": (ours(Role.USER, Text("hi")), [user({"type": "text", "text": "hi"})]),
    "nothing but blanks": (ours(Role.ASSISTANT, Text(" \n"), Text("")), []),
    "foreign thoughts": (ours(Role.ASSISTANT, Reasoning("hm", "sig"), Opaque("x", "{}")), []),
    "foreign fields": (
        replace(ours(Role.USER, Text("hi", '{"cache_control":1}')), origin="other", extra='{"id":"x"}'),
        [user({"type": "text", "text": "hi"})],
    ),
    "arguments": (
        ours(Role.ASSISTANT, ToolCall(CallId("a"), "f", '{"x": 1}')),
        [assistant({"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}})],
    ),
    "no arguments": (
        ours(Role.ASSISTANT, ToolCall(CallId("a"), "f", "")),
        [assistant({"type": "tool_use", "id": "a", "name": "f", "input": {}})],
    ),
    "arguments null": (
        ours(Role.ASSISTANT, ToolCall(CallId("a"), "f", "null")),
        [assistant({"type": "tool_use", "id": "a", "name": "f", "input": {}})],
    ),
    "arguments cut short": (
        ours(Role.ASSISTANT, ToolCall(CallId("a"), "f", '{"x": ')),
        [assistant({"type": "tool_use", "id": "a", "name": "f", "input": {"_raw": '{"x": '}})],
    ),
    "arguments in a list": (
        ours(Role.ASSISTANT, ToolCall(CallId("a"), "f", "[1]")),
        [assistant({"type": "tool_use", "id": "a", "name": "f", "input": {"_raw": "[1]"}})],
    ),
    "a name with other letters": (
        ours(Role.ASSISTANT, ToolCall(CallId("a"), "fs.读", "{}")),
        [assistant({"type": "tool_use", "id": "a", "name": "fs__", "input": {}})],
    ),
    "results before words": (
        ours(Role.TOOL, Text("and?"), ToolResult(CallId("a"), (Text("no"),), failed=True)),
        [
            user(
                {**RESULT, "tool_use_id": "a", "content": [{"type": "text", "text": "no"}], "is_error": True},
                {"type": "text", "text": "and?"},
            )
        ],
    ),
    "an empty result": (
        ours(Role.TOOL, ToolResult(CallId("a"), (Text(""),))),
        [user({"type": "tool_result", "tool_use_id": "a"})],
    ),
    "a picture with its bytes": (
        ours(Role.USER, Image(data="aGVsbG8=", media_type="image/png")),
        [user({"type": "image", "source": PNG})],
    ),
    "a picture in a data address": (
        ours(Role.USER, Image(url="data:image/png;base64,aGVsbG8=")),
        [user({"type": "image", "source": PNG})],
    ),
    "a picture by address": (
        ours(Role.USER, Image(url="https://example.com/a", detail="low")),
        [user({"type": "image", "source": {"type": "url", "url": "https://example.com/a"}})],
    ),
    "a picture of a kind that is not taken": (
        ours(Role.USER, Image(data="aGk=", media_type="image/bmp")),
        [user({"type": "text", "text": "[image not shown: image/bmp]"})],
    ),
    "a picture that another provider keeps": (
        ours(Role.USER, Image(url="file-123")),
        [user({"type": "text", "text": "[image not shown: file-123]"})],
    ),
    "a picture by the assistant": (
        ours(Role.ASSISTANT, Image(data="aGk=", media_type="image/png")),
        [assistant({"type": "text", "text": "[image not shown: image/png]"})],
    ),
    "system text that stands later": (
        ours(Role.SYSTEM, Text("s")),
        [user({"type": "text", "text": "<system-message>\ns\n</system-message>"})],
    ),
}


@pytest.mark.parametrize(("message", "expected"), TRANSLATED.values(), ids=TRANSLATED.keys())
def test_a_message_of_another_origin_is_translated(message: Message, expected: list[JsonObject]) -> None:
    assert same(ANTHROPIC.write_message(message), expected)


def test_an_id_that_is_not_accepted_is_replaced_in_call_and_result_alike() -> None:
    call = ANTHROPIC.write_message(ours(Role.ASSISTANT, ToolCall(CallId("call|fc:1"), "f", "{}")))[0]
    result = ANTHROPIC.write_message(ours(Role.TOOL, ToolResult(CallId("call|fc:1"), (Text("x"),))))[0]
    written = cast("list[JsonObject]", call["content"])[0]["id"]
    assert written == cast("list[JsonObject]", result["content"])[0]["tool_use_id"]
    assert cast(str, written).replace("_", "").isalnum()


def test_ids_that_come_again_are_made_unique_with_their_results() -> None:
    step = (
        ours(Role.ASSISTANT, ToolCall(CallId("0"), "f", "{}")),
        ours(Role.TOOL, ToolResult(CallId("0"), (Text("x"),))),
    )
    sent = ANTHROPIC.write_history((ours(Role.USER, Text("go")), *step, *step))
    assert problems("anthropic", sent) == []
    blocks = [block for message in cast("list[JsonObject]", sent["messages"][1:]) for block in message["content"]]
    assert [block.get("id", block.get("tool_use_id")) for block in blocks] == ["0", "0", "0_2", "0_2"]


def test_a_result_made_here_answers_a_call_of_the_provider() -> None:
    call = assistant({"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}})
    history = (
        ANTHROPIC.read_message({"role": "user", "content": "go"}),
        ANTHROPIC.read_message(call),
        ours(Role.TOOL, ToolResult(CallId("toolu_1"), (Text("x"),))),
    )
    sent = ANTHROPIC.write_history(history)["messages"]
    assert same(sent[1:], [call, user({**RESULT, "content": [{"type": "text", "text": "x"}]})])


def test_results_of_parallel_calls_share_one_message() -> None:
    history = (
        ours(Role.ASSISTANT, ToolCall(CallId("a"), "f", "{}"), ToolCall(CallId("b"), "f", "{}")),
        ours(Role.TOOL, ToolResult(CallId("a"), (Text("1"),)), Text("beside")),
        ours(Role.TOOL, ToolResult(CallId("b"), (Text("2"),))),
        ours(Role.USER, Text("next")),
    )
    _, answer, following = cast("list[JsonObject]", ANTHROPIC.write_history(history)["messages"])
    kinds = [block["type"] for block in cast("list[JsonObject]", answer["content"])]
    assert kinds == ["tool_result", "tool_result", "text"]
    assert following == user({"type": "text", "text": "next"})


def test_system_text_of_ours_follows_the_callers() -> None:
    document = ANTHROPIC.read_body({"system": "theirs", "messages": [{"role": "user", "content": "hi"}]})
    longer = replace(document, messages=(document.messages[0], ours(Role.SYSTEM, Text("ours")), *document.messages[1:]))
    assert ANTHROPIC.write_body(longer) == {
        "system": [{"type": "text", "text": "theirs"}, {"type": "text", "text": "ours"}],
        "messages": [{"role": "user", "content": "hi"}],
    }


def test_what_only_a_reply_has_is_not_sent_back() -> None:
    fields: JsonObject = {
        "id": "msg_1",
        "type": "message",
        "model": "m",
        "stop_reason": None,
        "usage": {"input_tokens": 1},
    }
    reply = ANTHROPIC.read_message(assistant({"type": "text", "text": "hi"}) | fields)
    assert ANTHROPIC.write_history((reply,))["messages"] == [assistant({"type": "text", "text": "hi"})]


def test_a_document_of_another_format_brings_its_words_only() -> None:
    document = Document(
        fmt="openai-chat",
        messages=(
            OPENAI_CHAT.read_message({"role": "system", "content": "s"}),
            OPENAI_CHAT.read_message({"role": "user", "content": "u"}),
        ),
        tools=('{"type":"function"}',),
        model="gpt-4o",
        extra='{"temperature":0}',
    )
    assert ANTHROPIC.write_body(document) == {
        "system": [{"type": "text", "text": "s"}],
        "messages": [user({"type": "text", "text": "u"})],
    }


@settings(max_examples=60, deadline=None)
@given(chats, st.data())
def test_what_was_sent_stays_when_the_conversation_grows(chat: list[JsonObject], data: st.DataObject) -> None:
    history = tuple(OPENAI_CHAT.read_message(message) for message in chat)
    asked = [at for at, message in enumerate(history) if message.role is Role.USER]
    cut = data.draw(st.sampled_from(asked)) + 1
    before = cast("list[Json]", ANTHROPIC.write_history(history[:cut])["messages"])
    after = cast("list[Json]", ANTHROPIC.write_history(history)["messages"])
    assert after[: len(before)] == before

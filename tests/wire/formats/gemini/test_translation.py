"""Gemini generateContent: what came from elsewhere is accepted."""

import json
from dataclasses import replace
from typing import cast

import pytest
from hypothesis import given, settings, strategies as st

from everlong.core import (
    CallId,
    Image,
    Json,
    JsonObject,
    Message,
    Opaque,
    Part,
    Reasoning,
    Role,
    Text,
    ToolCall,
    ToolResult,
    pairs_of,
)
from everlong.wire import ANTHROPIC, OPENAI_CHAT
from everlong.wire.document import Document
from everlong.wire.formats import GEMINI, problems
from tests.wire.conversations import chats, same


def ours(role: Role, *parts: Part) -> Message:
    return Message(role, parts)


def user(*parts: JsonObject) -> JsonObject:
    return {"role": "user", "parts": list(parts)}


def model(*parts: JsonObject) -> JsonObject:
    return {"role": "model", "parts": list(parts)}


def made(name: str, arguments: str = "{}", call: str = "") -> ToolCall:
    return ToolCall(CallId(call or name), name, arguments)


def answer(call: str, text: str = "x", *, failed: bool = False) -> ToolResult:
    return ToolResult(CallId(call), (Text(text),), failed=failed)


def contents_of(*history: Message, unsigned_call: str = "") -> list[JsonObject]:
    return cast("list[JsonObject]", GEMINI.write_history(history, unsigned_call=unsigned_call)["contents"])


TRANSLATED: dict[str, tuple[Message, list[JsonObject]]] = {
    "words": (ours(Role.USER, Text("hi")), [user({"text": "hi"})]),
    "nothing but blanks": (ours(Role.ASSISTANT, Text(" \n"), Text("")), []),
    "foreign thoughts": (ours(Role.ASSISTANT, Reasoning("hm", "sig"), Opaque("x", "{}")), []),
    "foreign fields": (
        replace(ours(Role.USER, Text("hi", '{"thought":true}')), origin="other", extra='{"id":"x"}'),
        [user({"text": "hi"})],
    ),
    "a call": (
        ours(Role.ASSISTANT, Text("I look"), made("f", '{"x": 1}')),
        [model({"text": "I look"}, {"functionCall": {"name": "f", "args": {"x": 1}}})],
    ),
    "no arguments": (ours(Role.ASSISTANT, made("f", "")), [model({"functionCall": {"name": "f", "args": {}}})]),
    "arguments cut short": (
        ours(Role.ASSISTANT, made("f", '{"x": ')),
        [model({"functionCall": {"name": "f", "args": {"_raw": '{"x": '}}})],
    ),
    "a name with other letters": (
        ours(Role.ASSISTANT, made("9 读.a")),
        [model({"functionCall": {"name": "_9__.a", "args": {}}})],
    ),
    "a result": (
        ours(Role.TOOL, ToolResult(CallId("a"), (Text("one"), Text("two")), name="f")),
        [user({"functionResponse": {"name": "f", "response": {"output": "one\ntwo"}}})],
    ),
    "a result that failed": (
        ours(Role.TOOL, ToolResult(CallId("a"), (Text("no"),), name="f", failed=True)),
        [user({"functionResponse": {"name": "f", "response": {"error": "no"}}})],
    ),
    "results before words and pictures": (
        ours(
            Role.TOOL,
            Text("and?"),
            ToolResult(CallId("a"), (Text("see"), Image(data="aGk=", media_type="image/png")), name="f"),
        ),
        [
            user(
                {"functionResponse": {"name": "f", "response": {"output": "see"}}},
                {"text": "and?"},
                {"inlineData": {"mimeType": "image/png", "data": "aGk="}},
            )
        ],
    ),
    "a picture in a data address": (
        ours(Role.USER, Image(url="data:image/png;base64,aGk=")),
        [user({"inlineData": {"mimeType": "image/png", "data": "aGk="}})],
    ),
    "a picture by address": (
        ours(Role.USER, Image(url="https://example.com/a.PNG?x=1.b")),
        [user({"fileData": {"mimeType": "image/png", "fileUri": "https://example.com/a.PNG?x=1.b"}})],
    ),
    "a picture by an address that does not tell": (
        ours(Role.USER, Image(url="https://example.com/a")),
        [user({"fileData": {"mimeType": "image/jpeg", "fileUri": "https://example.com/a"}})],
    ),
    "a picture of a kind that is not taken": (
        ours(Role.USER, Image(data="aGk=", media_type="image/gif")),
        [user({"text": "[image not shown: image/gif]"})],
    ),
    "a picture that another provider keeps": (
        ours(Role.USER, Image(url="file-123")),
        [user({"text": "[image not shown: file-123]"})],
    ),
    "system text that stands later": (
        ours(Role.SYSTEM, Text("s"), Text("t")),
        [user({"text": "<system-message>\ns"}, {"text": "t\n</system-message>"})],
    ),
}


@pytest.mark.parametrize(("message", "expected"), TRANSLATED.values(), ids=TRANSLATED.keys())
def test_a_message_of_another_origin_is_translated(message: Message, expected: list[JsonObject]) -> None:
    assert same(GEMINI.write_message(message), expected)


def test_results_stand_in_one_content_in_the_order_of_their_calls() -> None:
    contents = contents_of(
        ours(Role.USER, Text("go")),
        ours(Role.ASSISTANT, made("f", call="1"), made("g", call="2"), made("f", call="3")),
        ours(Role.TOOL, answer("3", "third"), Text("beside")),
        ours(Role.TOOL, answer("1", "first")),
        ours(Role.TOOL, answer("2", "second")),
    )
    assert problems("gemini", {"contents": cast(Json, contents)}) == []
    assert same(
        contents[2],
        user(
            *(
                {"functionResponse": {"name": name, "response": {"output": text}}}
                for name, text in (("f", "first"), ("g", "second"), ("f", "third"))
            ),
            {"text": "beside"},
        ),
    )


CALLED = {"name": "f", "args": {}}


@pytest.mark.parametrize("identity", [{}, {"id": "x1"}], ids=["without an id", "with an id"])
def test_a_result_made_here_answers_a_call_of_the_provider(identity: JsonObject) -> None:
    question, reply = user({"text": "go"}), model({"functionCall": {**CALLED, **identity}, "thoughtSignature": "c2ln"})
    made_there = GEMINI.read_message(reply)
    result = ours(Role.TOOL, answer(made_there.calls[0].id, "done"))
    sent = contents_of(GEMINI.read_message(question), made_there, result)
    response = {"name": "f", **identity, "response": {"output": "done"}}
    assert same(sent, [question, reply, user({"functionResponse": response})])


@pytest.mark.parametrize("apart", [False, True], ids=["in their message", "in a message of its own"])
def test_a_result_put_beside_those_of_the_client_looks_like_them(apart: bool) -> None:
    there = {"functionResponse": {"name": "f", "response": {"result": "1"}}}
    calls = model({"functionCall": CALLED}, {"functionCall": CALLED})
    document = GEMINI.read_body({"contents": [user({"text": "go"}), calls, user(there)]})
    question, called, answered = document.messages
    lost = answer(called.calls[1].id, "lost", failed=True)
    results = (answered, ours(Role.TOOL, lost)) if apart else (answered.with_parts((*answered.parts, lost)),)
    sent = GEMINI.write_body(replace(document, messages=(question, called, *results)))
    here = {"functionResponse": {"name": "f", "response": {"error": "lost"}}}
    assert same(cast("list[Json]", sent["contents"])[2:], [user(there, here)])


def test_turns_alternate() -> None:
    contents = contents_of(
        ours(Role.SYSTEM, Text("s")),
        ours(Role.USER, Text("summary")),
        ours(Role.USER, Text("question")),
        ours(Role.ASSISTANT, Text("I")),
        ours(Role.ASSISTANT, made("f")),
        ours(Role.TOOL, answer("f")),
        ours(Role.SYSTEM, Text("later")),
        ours(Role.USER, Text("next")),
    )
    assert [content["role"] for content in contents] == ["user", "model", "user"]
    assert problems("gemini", {"contents": cast(Json, contents)}) == []


def test_what_came_single_stays_single_beside_text_of_ours() -> None:
    document = GEMINI.read_body({"contents": [user({"text": "a"}), user({"text": "b"})]})
    longer = replace(document, messages=(*document.messages, ours(Role.USER, Text("ours"))))
    assert GEMINI.write_body(longer)["contents"] == [user({"text": "a"}), user({"text": "b"}, {"text": "ours"})]


SYSTEMS: dict[str, tuple[JsonObject, JsonObject]] = {
    "camel": (
        {"systemInstruction": {"role": "system", "parts": [{"text": "theirs"}]}},
        {"systemInstruction": {"role": "system", "parts": [{"text": "theirs"}, {"text": "ours"}]}},
    ),
    "snake and single": (
        {"system_instruction": {"parts": {"text": "theirs"}}},
        {"system_instruction": {"parts": [{"text": "theirs"}, {"text": "ours"}]}},
    ),
    "a string": (
        {"systemInstruction": "theirs"},
        {"systemInstruction": {"parts": [{"text": "theirs"}, {"text": "ours"}]}},
    ),
    "none": ({}, {"systemInstruction": {"parts": [{"text": "ours"}]}}),
}


@pytest.mark.parametrize(("before", "after"), SYSTEMS.values(), ids=SYSTEMS.keys())
def test_system_text_of_ours_follows_the_callers(before: JsonObject, after: JsonObject) -> None:
    document = GEMINI.read_body({**before, "contents": []})
    longer = replace(document, messages=(*document.messages, ours(Role.SYSTEM, Text("ours"))))
    assert same(GEMINI.write_body(longer), {**after, "contents": []})


def test_a_document_of_another_format_brings_its_words_only() -> None:
    messages = (
        OPENAI_CHAT.read_message({"role": "system", "content": "s"}),
        OPENAI_CHAT.read_message({"role": "user", "content": "u"}),
    )
    document = Document(fmt="openai-chat", messages=messages, tools=('{"type":"function"}',), model="gpt-4o")
    assert GEMINI.write_body(document) == {
        "systemInstruction": {"parts": [{"text": "s"}]},
        "contents": [user({"text": "u"})],
    }


@settings(max_examples=60, deadline=None)
@given(chats)
def test_a_chat_goes_through_both_formats_with_its_pairs(chat: list[JsonObject]) -> None:
    """OpenAI -> Gemini -> Anthropic: the second reader has no ids to go by."""
    history = tuple(OPENAI_CHAT.read_message(message) for message in chat)
    there = GEMINI.read_body(GEMINI.write_history(history)).messages
    further = ANTHROPIC.read_body(ANTHROPIC.write_history(there)).messages
    for messages in (there, further):
        found = [
            (messages[pair.call[0]].parts[pair.call[1]].arguments, messages[pair.result[0]].parts[pair.result[1]].text)
            for pair in pairs_of(messages)
        ]
        assert len(found) == sum(len(message.results) for message in history)
        assert all(json.loads(arguments)["n"].replace("arg", "result") == text for arguments, text in found)


@settings(max_examples=60, deadline=None)
@given(chats, st.data())
def test_what_was_sent_stays_when_the_conversation_grows(chat: list[JsonObject], data: st.DataObject) -> None:
    history = tuple(OPENAI_CHAT.read_message(message) for message in chat)
    asked = [at for at, message in enumerate(history) if message.role is Role.USER]
    cut = data.draw(st.sampled_from(asked)) + 1
    before = contents_of(*history[:cut])
    assert contents_of(*history)[: len(before)] == before

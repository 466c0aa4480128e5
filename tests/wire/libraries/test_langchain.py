"""LangChain's messages are read and written without loss, whatever stands for one, and nothing is said twice."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, strategies as st
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    HumanMessageChunk,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)

from everlong import count, fit
from everlong.core import Image, Message, Opaque, Reasoning, Role, Text, ToolCall, ToolResult
from everlong.errors import WireError
from everlong.wire.libraries.langchain import LIBRARY

# --- any messages -------------------------------------------------------------------------------------

WORDS = st.text(max_size=20)
NAMES = st.from_regex(r"[a-z][a-z_]{0,8}", fullmatch=True)
IDS = st.from_regex(r"call_[a-z0-9]{4}", fullmatch=True)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | WORDS | st.binary(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3) | st.tuples(inner, inner),
    max_leaves=6,
)
FIELDS = st.dictionaries(WORDS, VALUES, max_size=3)
ARGUMENTS = st.dictionaries(
    WORDS, st.recursive(WORDS | st.integers(), lambda inner: st.lists(inner, max_size=2), max_leaves=4), max_size=3
)
TEXT_BLOCKS = st.builds(lambda text, more: {**more, "type": "text", "text": text}, WORDS, FIELDS)
DATA = st.sampled_from(["aGVsbG8=", "iVBORw0KGgo="])
IMAGE_BLOCKS = st.builds(
    lambda block, more: {**more, **block},
    st.sampled_from(
        [
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGVsbG8=", "detail": "low"}},
            {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
            {"type": "image_url", "image_url": "https://example.com/a.png"},
            {"type": "input_image", "image_url": "https://example.com/a.png", "detail": "high"},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGVsbG8="}},
            {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}},
            {"type": "image", "base64": "aGVsbG8=", "mime_type": "image/png"},
            {"type": "image", "source_type": "base64", "data": "aGVsbG8=", "mime_type": "image/png"},
            {"type": "image", "url": "https://example.com/a.png"},
            {"type": "image", "file_id": "file_1"},
        ]
    ),
    st.fixed_dictionaries({}, optional={"cache_control": st.just({"type": "ephemeral"}), "id": NAMES}),
)
THOUGHT_BLOCKS = st.sampled_from(
    [
        {"type": "thinking", "thinking": "Let me see.", "signature": "c2lnbmVk"},
        {"type": "thinking", "thinking": "No seal."},
        {"type": "thinking", "thinking": "", "signature": "c2lnbmVk", "index": 0},
        {"type": "redacted_thinking", "data": "c2VhbGVk"},
        {"type": "reasoning", "reasoning": "I think.", "extras": {"signature": "c2lnbmVk", "more": 1}},
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "A."}, {"text": "B."}]},
        {"type": "reasoning", "id": "rs_2", "summary": [], "encrypted_content": "c2VhbGVk"},
        {"type": "reasoning", "id": "rs_3", "summary": []},
        {"type": "reasoning_content", "reasoning_content": {"text": "Hm.", "signature": "c2ln"}},
    ]
)
OTHER_BLOCKS = st.builds(lambda kind, more: {**more, "type": f"x_{kind}"}, NAMES, FIELDS) | st.sampled_from(
    [
        {"type": "file", "base64": "aGVsbG8=", "mime_type": "application/pdf"},
        {"image": {"format": "png", "source": {"bytes": b"\x89PNG"}}},
        {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "a"}},
        {"type": "text", "text": None},
        {"type": "image", "source": {"type": "base64"}},
    ]
)
RESULT_BLOCKS = st.sampled_from(
    [
        {"type": "tool_result", "tool_use_id": "call_1", "content": "done"},
        {
            "type": "tool_result",
            "tool_use_id": "call_1",
            "content": [{"type": "text", "text": "done"}],
            "is_error": True,
        },
        {"type": "tool_result", "tool_use_id": "call_1"},
        {"type": "tool_result", "tool_use_id": "call_1", "content": "", "cache_control": {"type": "ephemeral"}},
        {"type": "tool_result", "tool_use_id": "call_1", "content": []},
    ]
)


def contents(*blocks: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return WORDS | st.lists(st.one_of(WORDS, TEXT_BLOCKS, IMAGE_BLOCKS, OTHER_BLOCKS, *blocks), max_size=4)


COMMON = {
    "id": st.none() | NAMES,
    "name": st.none() | NAMES | st.just(""),
    "additional_kwargs": FIELDS,
    "response_metadata": FIELDS,
}
CALLS = st.builds(
    lambda name, args, call: {"name": name, "args": args, "id": call, "type": "tool_call"}, NAMES, ARGUMENTS, IDS
)
INVALID = st.builds(
    lambda name, args, call, error: {
        "name": name,
        "args": args,
        "id": call,
        "error": error,
        "type": "invalid_tool_call",
    },
    st.none() | NAMES,
    st.none() | WORDS,
    st.none() | IDS,
    st.none() | WORDS,
)
USAGE = st.sampled_from(
    [None, {"input_tokens": 9, "output_tokens": 2, "total_tokens": 11, "input_token_details": {"cache_read": 4}}]
)


def block_of(call: dict[str, Any], form: str) -> dict[str, Any]:
    """A call as a provider's block writes it."""
    match form:
        case "tool_use":
            return {"type": form, "id": call["id"], "name": call["name"], "input": call["args"]}
        case "partial":
            text = json.dumps(call["args"])
            return {"type": "tool_use", "id": call["id"], "name": call["name"], "input": {}, "partial_json": text}
        case "function_call":
            return {
                "type": form,
                "id": "fc_1",
                "call_id": call["id"],
                "name": call["name"],
                "arguments": json.dumps(call["args"]),
            }
        case _:
            return {
                "type": "tool_call",
                "id": call["id"],
                "name": call["name"],
                "args": call["args"],
                "extras": {"a": 1},
            }


@st.composite
def answers(draw: st.DrawFn) -> AIMessage:
    """An answer whose calls may stand in the content too, in any order, and in `additional_kwargs`."""
    calls = draw(st.lists(CALLS, max_size=3, unique_by=lambda call: call["id"]))
    content = draw(contents(THOUGHT_BLOCKS))
    if isinstance(content, list):
        for call in draw(st.permutations(calls)):
            if draw(st.booleans()):
                form = draw(st.sampled_from(["tool_use", "partial", "function_call", "tool_call"]))
                content.insert(draw(st.integers(0, len(content))), block_of(call, form))
    fields = draw(st.fixed_dictionaries({}, optional=COMMON))
    beside = fields.setdefault("additional_kwargs", {})
    if draw(st.booleans()):
        beside["reasoning_content"] = draw(WORDS)
    if calls and draw(st.booleans()):
        beside["tool_calls"] = [
            {
                "id": call["id"],
                "type": "function",
                "function": {"name": call["name"], "arguments": json.dumps(call["args"])},
            }
            for call in calls
        ]
    kind = draw(st.sampled_from([AIMessage, AIMessage, AIMessageChunk]))
    return kind(
        content,
        tool_calls=calls,
        invalid_tool_calls=draw(st.lists(INVALID, max_size=1)),
        usage_metadata=draw(USAGE),
        **fields,
    )


MESSAGES: st.SearchStrategy[BaseMessage] = st.one_of(
    st.builds(HumanMessage, contents(RESULT_BLOCKS), **COMMON),
    st.builds(HumanMessageChunk, contents(), **COMMON),
    st.builds(SystemMessage, contents(), **COMMON),
    st.builds(ChatMessage, contents(), role=st.sampled_from(["user", "assistant", "developer", "critic"]), **COMMON),
    st.builds(
        ToolMessage,
        contents(),
        tool_call_id=IDS,
        status=st.sampled_from(["success", "error"]),
        artifact=VALUES,
        **COMMON,
    ),
    st.builds(FunctionMessage, WORDS, name=NAMES),
    answers(),
)
ITEMS = st.one_of(
    MESSAGES,
    WORDS,
    st.tuples(st.sampled_from(["human", "ai", "system"]), WORDS),
    st.tuples(st.sampled_from(["human", "ai"]), WORDS).map(list),
    st.builds(
        lambda role, content: {"role": role, "content": content},
        st.sampled_from(["user", "assistant", "developer"]),
        contents(),
    ),
    st.builds(
        lambda call, content: {
            "role": "assistant",
            "content": content,
            "tool_calls": [
                {
                    "id": call["id"],
                    "type": "function",
                    "function": {"name": call["name"], "arguments": json.dumps(call["args"])},
                }
            ],
        },
        CALLS,
        st.none() | WORDS,
    ),
    st.builds(
        lambda call, text: {"role": "tool", "tool_call_id": call, "content": text, "status": "error"}, IDS, WORDS
    ),
    st.builds(lambda text: {"type": "human", "content": text, "id": "1"}, WORDS),
)


@given(st.lists(ITEMS, max_size=4))
def test_what_is_read_is_written_again(items: list[Any]) -> None:
    units = LIBRARY.read(items)
    assert [item for unit in units for item in unit.items] == items
    assert all(unit.items[0] is item for unit, item in zip(units, items, strict=True))
    written = LIBRARY.write([message for unit in units for message in unit.messages])
    assert written == items
    assert [type(item) for item in written] == [type(item) for item in items]


@given(st.lists(ITEMS, max_size=3))
def test_reading_is_the_same_each_time_and_every_message_says_where_it_is_from(items: list[Any]) -> None:
    once = [unit.messages for unit in LIBRARY.read(items)]
    assert once == [unit.messages for unit in LIBRARY.read(items)]
    assert all(message.origin == "langchain" for messages in once for message in messages)


@given(answers())
def test_each_call_is_read_once(answer: AIMessage) -> None:
    message = read_one(answer)
    told = [*answer.tool_calls, *answer.invalid_tool_calls]
    assert len(message.calls) == len(told)
    assert {call.id for call in message.calls} == {call["id"] or "" for call in told}


def read_one(item: Any) -> Message:
    (unit,) = LIBRARY.read([item])
    (message,) = unit.messages
    return message


# --- what is read -------------------------------------------------------------------------------------


def test_an_answer_of_anthropic_is_thinking_words_and_calls_in_order() -> None:
    answer = AIMessage(
        [
            {"type": "thinking", "thinking": "Both.", "signature": "c2ln"},
            {"type": "text", "text": "I read both."},
            {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "a"}},
            {"type": "tool_use", "id": "toolu_2", "name": "read", "input": {"path": "b"}},
        ],
        tool_calls=[
            {"name": "read", "args": {"path": "a"}, "id": "toolu_1"},
            {"name": "read", "args": {"path": "b"}, "id": "toolu_2"},
        ],
    )
    thought, words, first, second = read_one(answer).parts
    assert (thought.text, thought.signature) == ("Both.", "c2ln")
    assert words.text == "I read both."
    assert [(call.id, call.arguments) for call in (first, second)] == [
        ("toolu_1", '{"path": "a"}'),
        ("toolu_2", '{"path": "b"}'),
    ]


@pytest.mark.parametrize(
    ("item", "role", "part"),
    [
        (HumanMessage("hi"), Role.USER, Text("hi")),
        (("human", "hi"), Role.USER, Text("hi")),
        ({"role": "developer", "content": "hi"}, Role.SYSTEM, Text("hi")),
        (ChatMessage("hi", role="assistant"), Role.ASSISTANT, Text("hi")),
        (ChatMessage("hi", role="critic"), Role.USER, Text("hi")),
        (
            ToolMessage("hi", tool_call_id="c", name="read", status="error"),
            Role.TOOL,
            ToolResult("c", (Text("hi"),), "read", True),
        ),
        (FunctionMessage("hi", name="read"), Role.TOOL, ToolResult("function:read", (Text("hi"),), "read")),
        (HumanMessage([{"type": "tool_result", "tool_use_id": "c", "content": "hi"}]), Role.TOOL, None),
    ],
)
def test_roles(item: Any, role: Role, part: Any) -> None:
    message = read_one(item)
    assert message.role is role
    assert part is None or message.parts == (part,)


def test_pictures_documents_and_thoughts_beside_the_content() -> None:
    seen = read_one(
        HumanMessage([{"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk=", "detail": "low"}}])
    )
    assert isinstance(seen.parts[0], Image)
    assert (seen.parts[0].data, seen.parts[0].media_type, seen.parts[0].detail) == ("aGk=", "image/png", "low")
    (document,) = read_one(HumanMessage([{"type": "file", "base64": "aGk=", "mime_type": "application/pdf"}])).parts
    assert isinstance(document, Opaque)
    thought, _ = read_one(AIMessage("So.", additional_kwargs={"reasoning_content": "Hm."})).parts
    assert thought == Reasoning("Hm.", extra=thought.extra)


def test_a_message_that_removes_another_is_never_sent() -> None:
    units = LIBRARY.read([HumanMessage("a"), RemoveMessage("1")])
    assert [len(unit.messages) for unit in units] == [1, 0]


def test_what_is_no_message_is_named_in_one_line() -> None:
    with pytest.raises(WireError, match=r"messages\[1\]") as error:
        LIBRARY.read(["hi", {"content": "no role"}])
    assert "\n" not in str(error.value)


def test_objects_are_not_carried_and_do_no_harm() -> None:
    class Row:
        pass

    result = ToolMessage("done", tool_call_id="c", artifact=Row(), additional_kwargs={"parsed": Row(), "kept": 1})
    (written,) = LIBRARY.write([read_one(result)])
    assert written == ToolMessage("done", tool_call_id="c", additional_kwargs={"kept": 1})


@pytest.mark.parametrize(
    "made", ["lc_run--01a1e389-6ade-75b0-99f3-182028899c3e-0", "54fd7b56-d927-425f-a769-c3db40e21752"]
)
def test_an_id_that_langchain_made_up_does_not_make_another_message(made: str) -> None:
    assert read_one(HumanMessage("hi", id=made)) == read_one(HumanMessage("hi"))
    assert read_one(HumanMessage("hi", id="msg_1")) != read_one(HumanMessage("hi"))


def test_the_order_of_keys_does_not_make_another_message() -> None:
    one, other = {"a": 1, "b": {"c": 2, "d": 3}}, {"b": {"d": 3, "c": 2}, "a": 1}
    assert read_one(AIMessage([one], response_metadata=one)) == read_one(AIMessage([other], response_metadata=other))


# --- what was changed -----------------------------------------------------------------------------------


def test_a_shortened_result_keeps_everything_else() -> None:
    result = ToolMessage("long " * 99, tool_call_id="c", name="read", artifact={"rows": [1]}, id="m", status="error")
    message = read_one(result)
    short = message.with_parts((replace(message.results[0], content=(Text("short"),)),))
    assert LIBRARY.write([short]) == [result.model_copy(update={"content": "short"})]


def test_changed_arguments_are_changed_wherever_they_stand() -> None:
    calls = [{"name": "write", "args": {"text": "long"}, "id": "c"}]
    raw = [{"id": "c", "type": "function", "function": {"name": "write", "arguments": '{"text": "long"}'}}]
    block = {"type": "tool_use", "id": "c", "name": "write", "input": {"text": "long"}}
    message = read_one(AIMessage([block], tool_calls=calls, additional_kwargs={"tool_calls": raw}))
    (call,) = message.calls
    (written,) = LIBRARY.write([message.with_parts((replace(call, arguments='{"text": "…"}'),))])
    assert isinstance(written, AIMessage)
    assert "long" not in written.model_dump_json()
    assert written.tool_calls[0]["args"] == written.content[0]["input"] == {"text": "…"}  # type: ignore[index]


def test_items_of_openai_lose_their_ids_with_the_thought_that_led_to_them() -> None:
    answer = AIMessage(
        [
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c2VhbGVk"},
            {"type": "text", "text": "Now.", "id": "msg_1"},
            {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "read", "arguments": "{}"},
        ],
        tool_calls=[{"name": "read", "args": {}, "id": "c"}],
    )
    message = read_one(answer)
    (written,) = LIBRARY.write([message.with_parts(message.parts[1:])])
    assert isinstance(written, AIMessage)
    assert written.content == [
        {"type": "text", "text": "Now."},
        {"type": "function_call", "call_id": "c", "name": "read", "arguments": "{}"},
    ]


def test_a_dict_whose_call_was_changed_becomes_a_message() -> None:
    function = {"name": "read", "arguments": '{"a": 1}'}
    given_ = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c", "type": "function", "function": function}],
    }
    message = read_one(given_)
    (written,) = LIBRARY.write([message.with_parts((replace(message.calls[0], arguments="{}"),))])
    assert isinstance(written, AIMessage)
    assert written.tool_calls == [{"name": "read", "args": {}, "id": "c", "type": "tool_call"}]


def test_fit_takes_a_list_of_messages_and_gives_back_the_same_objects() -> None:
    talk: list[Any] = [SystemMessage("Keep the log."), {"role": "user", "content": "Begin."}]
    for at in range(60):
        call = {"name": "look", "args": {"at": at}, "id": f"call_{at}"}
        talk += [
            AIMessage("", tool_calls=[call]),
            ToolMessage("waves and wind " * 90, tool_call_id=call["id"], id=f"r{at}"),
        ]
    talk.append(HumanMessage("And now?", id="last"))
    fitted = fit(talk, model="gpt-4o", budget=5_000)
    given_ = {id(item) for item in talk}
    assert count(fitted.messages, model="gpt-4o") <= 5_000 < count(talk, model="gpt-4o")
    assert fitted.messages[0] is talk[0]
    assert fitted.messages[1] is talk[1]
    assert fitted.messages[-1] is talk[-1]
    assert all(isinstance(item, BaseMessage) for item in fitted.messages if id(item) not in given_)
    assert {item.id for item in fitted.messages if isinstance(item, ToolMessage)} <= {f"r{at}" for at in range(60)}
    again = fit([*talk, AIMessage("Calm.")], model="gpt-4o", budget=5_000, previous=fitted)
    assert again.messages[: len(fitted.messages)] == fitted.messages


# --- messages of others ----------------------------------------------------------------------------------


def test_messages_that_were_added_are_written_as_a_user_would() -> None:
    call = ToolCall("c", "read", '{"a": 1}')  # type: ignore[arg-type]
    result = ToolResult("c", (Text("x"), Image(data="aGk=", media_type="image/png")), "read", True)  # type: ignore[arg-type]
    written = LIBRARY.write(
        [
            Message(Role.SYSTEM, (Text("Be brief."),)),
            Message(Role.USER, (Text("a"), Image(url="https://example.com/a.png"))),
            Message(Role.ASSISTANT, (Reasoning("Hm."), Text("b"), call)),
            Message(Role.TOOL, (result, Text("and more"))),
        ]
    )
    assert written == [
        SystemMessage("Be brief."),
        HumanMessage([{"type": "text", "text": "a"}, {"type": "image", "url": "https://example.com/a.png"}]),
        AIMessage("b", tool_calls=[{"name": "read", "args": {"a": 1}, "id": "c"}]),
        ToolMessage(
            [{"type": "text", "text": "x"}, {"type": "image", "base64": "aGk=", "mime_type": "image/png"}],
            tool_call_id="c",
            name="read",
            status="error",
        ),
        HumanMessage("and more"),
    ]

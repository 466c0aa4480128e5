"""pydantic-ai's messages: read and written without loss, one object a unit."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, strategies as st
from pydantic_ai import messages as pa
from pydantic_ai.usage import RequestUsage

from everlong import fit
from everlong.core import CallId, Image, Message, Opaque, Reasoning, Role, Text, ToolCall, ToolResult
from everlong.wire.libraries.pydantic_ai import LIBRARY

words = st.text(max_size=12)
names = st.sampled_from(["read_file", "search", "write"])
ids = st.sampled_from(["c1", "c2", "c3"])
times = st.datetimes(min_value=datetime(2020, 1, 1), max_value=datetime(2030, 1, 1), timezones=st.just(UTC))
some = st.none() | words
values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=5,
)
objects = st.dictionaries(words, values, max_size=2)
maybe = st.none() | objects
pictures = st.builds(pa.BinaryImage, st.binary(max_size=9), media_type=st.sampled_from(["image/png", "image/webp"]))
files = (
    st.builds(pa.ImageUrl, st.just("https://shelf.example/a.png"), vendor_metadata=maybe)
    | st.builds(pa.ImageUrl, st.just("data:image/png;base64,AAAA"), vendor_metadata=st.just({"detail": "low"}))
    | st.builds(pa.DocumentUrl, st.just("https://shelf.example/a.pdf"), force_download=st.booleans())
    | st.builds(pa.BinaryContent, st.binary(max_size=9), media_type=st.just("application/pdf"), vendor_metadata=maybe)
    | pictures
)
contents = (
    words
    | files
    | st.builds(pa.TextContent, words, metadata=values)
    | st.builds(pa.StructuredContent, objects, tag=st.none() | st.just("state"))
    | st.builds(pa.UploadedFile, words, st.just("anthropic"))
    | st.builds(pa.CachePoint, ttl=st.sampled_from(["5m", "1h"]))
)
returned = (
    values | files | st.lists(words | files | values, max_size=3) | st.fixed_dictionaries({"page": st.lists(files)})
)
#: What a tool made that looks like a file and is none.
alike = st.fixed_dictionaries({"kind": st.just("image-url"), "url": words, "media_type": st.just("image/png")})
request_parts: st.SearchStrategy[Any] = (
    st.builds(pa.SystemPromptPart, words, timestamp=times, dynamic_ref=some, metadata=maybe)
    | st.builds(pa.UserPromptPart, words | st.lists(contents, max_size=4), timestamp=times)
    | st.builds(
        pa.ToolReturnPart,
        names,
        returned | alike,
        ids,
        metadata=values,
        timestamp=times,
        outcome=st.sampled_from(["success", "failed", "denied"]),
    )
    | st.builds(
        pa.RetryFeedbackPart,
        words,
        retry=st.builds(pa.RetryInfo, st.sampled_from(["model_retry", "no_output"]), attempt=st.none() | st.just(1)),
        timestamp=times,
    )
    | st.builds(pa.ToolAvailabilityDeltaPart, tools_added=st.lists(names, unique=True, max_size=2))
)
requests = st.builds(
    pa.ModelRequest,
    st.lists(request_parts, max_size=4),
    instructions=some,
    timestamp=st.none() | times,
    run_id=some,
    conversation_id=some,
    metadata=maybe,
    state=st.sampled_from(["complete", "interrupted"]),
)
by = {"id": some, "provider_name": some, "provider_details": maybe}
response_parts: st.SearchStrategy[Any] = (
    st.builds(pa.TextPart, words, **by)
    | st.builds(pa.ThinkingPart, words, signature=some.filter(lambda text: text != ""), **by)
    | st.builds(pa.ToolCallPart, names, st.none() | words | objects, ids, **by)
    | st.builds(pa.NativeToolCallPart, st.just("web_search"), objects, ids, **by)
    | st.builds(pa.NativeToolReturnPart, st.just("web_search"), values, ids, timestamp=times)
    | st.builds(pa.CompactionPart, some, **by)
    | st.builds(pa.FilePart, pictures, **by)
)
responses = st.builds(
    pa.ModelResponse,
    st.lists(response_parts, max_size=4),
    usage=st.builds(RequestUsage, input_tokens=st.integers(0, 9), details=st.just({"reasoning": 3})),
    model_name=some,
    timestamp=times,
    provider_name=some,
    provider_details=maybe,
    provider_response_id=some,
    finish_reason=st.none() | st.sampled_from(["stop", "tool_call"]),
    run_id=some,
    metadata=maybe,
)
histories = st.lists(requests | responses, max_size=5)


def said(item: Any) -> tuple[Message, ...]:
    """What an object says that is not the first of a conversation."""
    _, unit = LIBRARY.read([pa.ModelResponse([]), item])
    return unit.messages


@given(histories)
def test_what_is_read_is_written_as_equal_objects(items: list[pa.ModelMessage]) -> None:
    units = LIBRARY.read(items)
    assert [unit.items for unit in units] == [(item,) for item in items]
    assert all(unit.messages for unit in units)
    assert all(message.origin == LIBRARY.name for unit in units for message in unit.messages)
    assert LIBRARY.write([message for unit in units for message in unit.messages]) == items


@given(histories)
def test_every_object_is_written_alone_too(items: list[pa.ModelMessage]) -> None:
    for item in items:
        assert LIBRARY.write(said(item)) == [item]


AT = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)


def test_a_request_is_a_message_for_each_of_its_prompts_and_results() -> None:
    request = pa.ModelRequest(
        [
            pa.SystemPromptPart("Be brief."),
            pa.ToolReturnPart("read_file", "a = 1", "c1"),
            pa.ToolReturnPart("search", {"found": [1, 2]}, "c2", outcome="failed"),
            pa.UserPromptPart(["Look:", pa.BinaryContent(b"\x00", media_type="image/png"), pa.CachePoint()]),
        ]
    )
    system, first, second, user = said(request)
    assert (system.role, system.text) == (Role.SYSTEM, "Be brief.")
    assert [(result.call, result.name, result.text, result.failed) for result in first.results + second.results] == [
        ("c1", "read_file", "a = 1", False),
        ("c2", "search", '{"found":[1,2]}', True),
    ]
    words, picture, mark = user.parts
    assert (first.role, second.role, user.role) == (Role.TOOL, Role.TOOL, Role.USER)
    assert isinstance(words, Text)
    assert words.text == "Look:"
    assert isinstance(picture, Image)
    assert (picture.data, picture.media_type) == ("AA==", "image/png")
    assert isinstance(mark, Opaque)
    assert mark.kind == "cache-point"


def test_a_response_is_one_message() -> None:
    response = pa.ModelResponse(
        [
            pa.ThinkingPart("hm", signature="sealed", provider_name="anthropic"),
            pa.TextPart("I look."),
            pa.ToolCallPart("read_file", {"path": "a.py"}, "c1"),
            pa.ToolCallPart("read_file", '{"path":', "c2"),
            pa.ToolCallPart("now", None, "c3"),
            pa.NativeToolCallPart("web_search", {"query": "x"}, "s1"),
        ]
    )
    (message,) = said(response)
    thought, text, *calls, native = message.parts
    assert message.role is Role.ASSISTANT
    assert isinstance(thought, Reasoning)
    assert (thought.text, thought.signature) == ("hm", "sealed")
    assert isinstance(text, Text)
    assert text.text == "I look."
    assert [(call.id, call.arguments) for call in calls if isinstance(call, ToolCall)] == [
        ("c1", '{"path":"a.py"}'),
        ("c2", '{"path":'),
        ("c3", "{}"),
    ]
    assert isinstance(native, Opaque)
    assert native.kind == "builtin-tool-call"


def test_parts_that_say_nothing_to_the_model_are_no_turn_of_their_own() -> None:
    request = pa.ModelRequest(
        [
            pa.ToolAvailabilityDeltaPart(tools_added=["search"]),
            pa.ToolReturnPart("read_file", "a = 1", "c1"),
            pa.ToolAvailabilityDeltaPart(tools_added=["write"]),
        ]
    )
    (message,) = said(request)
    assert message.role is Role.TOOL
    assert LIBRARY.write([message]) == [request]


def test_instructions_alone_are_system_text() -> None:
    head = pa.ModelRequest([], instructions="You keep the log.")
    (message,) = said(head)
    assert (message.role, message.text) == (Role.SYSTEM, "You keep the log.")
    assert LIBRARY.write([message]) == [head]


def test_instructions_count_once_where_a_conversation_begins() -> None:
    items: list[pa.ModelMessage] = [
        pa.ModelRequest([pa.UserPromptPart("Hello")], instructions="You keep the log."),
        pa.ModelResponse([pa.TextPart("Hello.")]),
        pa.ModelRequest([pa.UserPromptPart("Go on")], instructions="You keep the log."),
    ]
    first, _, last = LIBRARY.read(items)
    assert [(message.role, message.text) for message in first.messages] == [
        (Role.SYSTEM, "You keep the log."),
        (Role.USER, "Hello"),
    ]
    assert [message.text for message in last.messages] == ["Go on"]
    assert fit(items, budget=1_000).messages == items


def test_fit_gives_back_the_very_objects_that_it_did_not_touch() -> None:
    items: list[pa.ModelMessage] = [pa.ModelRequest([pa.UserPromptPart("Read them all.")])]
    for at in range(40):
        items.append(
            pa.ModelResponse([pa.ToolCallPart("read_file", {"path": f"{at}{side}"}, f"{at}{side}") for side in "ab"])
        )
        items.append(
            pa.ModelRequest([pa.ToolReturnPart("read_file", f"line {at}\n" * 200, f"{at}{side}") for side in "ab"])
        )
    fitted = fit(items, model="gpt-4o", budget=8_000)
    assert fitted.tokens <= 8_000
    assert fitted.messages[-1] is items[-1]
    kept = [message for message in fitted.messages if any(message is item for item in items)]
    assert len(kept) > 5
    calls = {
        part.tool_call_id for message in fitted.messages for part in message.parts if isinstance(part, pa.ToolCallPart)
    }
    results = {
        part.tool_call_id
        for message in fitted.messages
        for part in message.parts
        if isinstance(part, pa.ToolReturnPart)
    }
    assert calls == results


@pytest.mark.parametrize(
    ("content", "now"),
    [
        ("a long text", "a … text"),
        ({"rows": list(range(50))}, '{"rows":[0,1, … ]}'),
        (["one", pa.ImageUrl("https://shelf.example/a.png")], "one"),
    ],
)
def test_a_result_that_was_shortened_keeps_its_call_and_its_fields(content: Any, now: str) -> None:
    part = pa.ToolReturnPart("read_file", content, "c1", metadata={"page": 3}, timestamp=AT)
    other = pa.ToolReturnPart("read_file", "untouched", "c2", timestamp=AT)
    first, second = said(pa.ModelRequest([part, other], run_id="r", instructions="Be brief."))
    (result,) = first.results
    shorter = first.with_parts((ToolResult(result.call, (Text(now),), result.name, extra=result.extra),))
    (written,) = LIBRARY.write([shorter, second])
    assert isinstance(written, pa.ModelRequest)
    assert (written.run_id, written.instructions) == ("r", "Be brief.")
    changed, same = written.parts
    assert isinstance(changed, pa.ToolReturnPart)
    assert changed.model_response_str() == now
    assert (changed.tool_call_id, changed.metadata, changed.timestamp) == ("c1", {"page": 3}, AT)
    assert same == other


def test_words_that_were_changed_leave_the_value_behind_them() -> None:
    (message,) = said(pa.ModelRequest([pa.UserPromptPart([pa.StructuredContent({"open": "a.py"}), "Explain."])]))
    first, second = message.parts
    assert isinstance(first, Text)
    (written,) = LIBRARY.write([message.with_parts((Text("[left out]", first.extra), second))])
    (part,) = written.parts
    assert isinstance(part, pa.UserPromptPart)
    assert part.content == ["[left out]", "Explain."]


def test_messages_of_anyone_are_written_as_the_frameworks_objects() -> None:
    call = ToolCall(CallId("c1"), "read_file", '{"path":"a"}')
    unread = Opaque("input_audio", "{}")
    found = ToolResult(call.id, (Text("a = 1"),))
    lost = ToolResult(CallId("c9"), (Text("?"),), failed=True)
    written = LIBRARY.write(
        [
            Message(Role.SYSTEM, (Text("Be brief."),)),
            Message(Role.USER, (Text("Look"), Image("AA==", "image/png"), unread), origin="openai-chat"),
            Message(Role.ASSISTANT, (Text("Yes."), call, unread)),
            Message(Role.TOOL, (found, lost)),
            Message(Role.ASSISTANT, (Text("It is 1."),)),
        ]
    )
    first, answer, results, last = written
    assert [part.part_kind for part in first.parts] == ["system-prompt", "user-prompt"]
    prompt = first.parts[1]
    assert isinstance(prompt, pa.UserPromptPart)
    assert prompt.content == ["Look", pa.BinaryImage(b"\x00", media_type="image/png")]
    assert answer.parts == [pa.TextPart("Yes."), pa.ToolCallPart("read_file", '{"path":"a"}', "c1")]
    returns = [part for part in results.parts if isinstance(part, pa.ToolReturnPart)]
    assert [(part.tool_name, part.outcome) for part in returns] == [("read_file", "success"), ("", "failed")]
    assert last.parts == [pa.TextPart("It is 1.")]


def test_metadata_that_is_no_json_does_not_stop_a_conversation() -> None:
    (message,) = said(pa.ModelRequest([pa.ToolReturnPart("read_file", "a = 1", "c1", metadata={"handle": object()})]))
    assert message.results[0].text == "a = 1"

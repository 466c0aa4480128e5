"""Messages of Microsoft's Agent Framework, in the dicts that it serializes them to, read and written without loss.

The framework itself is not installed here: `everlong lab adapters agent-framework` reads and writes its objects.
"""

from typing import Any

from hypothesis import given, strategies as st

from everlong.core import Image, Message, Opaque, Reasoning, Role, Text, ToolCall, ToolResult
from everlong.wire.libraries.agent_framework import read_row, write_row
from tests.wire.conversations import objects, same, texts, values


def text(said: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": said, "additional_properties": {}, **more}


PICTURE = {
    "type": "data",
    "uri": "data:image/png;base64,iVBORw==",
    "media_type": "image/png",
    "additional_properties": {},
}
LINKED = {"type": "uri", "uri": "https://a/b.png", "media_type": "image/png", "additional_properties": {}}
PAPER = {
    "type": "data",
    "uri": "data:application/pdf;base64,JVBERg==",
    "media_type": "application/pdf",
    "name": "plan.pdf",
    "additional_properties": {},
}
ASKED = {
    "type": "message",
    "role": "user",
    "contents": [text("What is in these?"), PICTURE, LINKED, PAPER],
    "author_name": "ann",
    "message_id": "m1",
    "additional_properties": {"topic": "files"},
}
CALLED = {
    "type": "message",
    "role": "assistant",
    "contents": [
        {"type": "text_reasoning", "text": "Two files.", "protected_data": "c2VhbGVk", "id": "rs_1"},
        {"type": "text_reasoning", "protected_data": "c2VhbGVk"},
        {"type": "function_call", "call_id": "c1", "name": "read", "arguments": '{"path": "a.md"}', "hosted": False},
        {"type": "function_call", "call_id": "c2", "name": "read", "arguments": {"path": "b.md"}, "hosted": False},
        {"type": "function_call", "call_id": "c3", "name": "list", "hosted": False},
    ],
    "additional_properties": {},
}
ANSWERED = {
    "type": "message",
    "role": "tool",
    "contents": [
        {"type": "function_result", "call_id": "c1", "result": "one", "items": [text("one")]},
        {"type": "function_result", "call_id": "c2", "result": "two", "items": [text("two"), PICTURE]},
        {"type": "function_result", "call_id": "c3", "exception": "FunctionInvocationError", "result": {"n": 1}},
    ],
    "additional_properties": {},
}
ROWS = [ASKED, CALLED, ANSWERED]


def plainly(row: Any) -> Any:
    """A row without what goes without saying: its type, and properties that are empty."""
    if isinstance(row, list):
        return [plainly(inner) for inner in row]
    if not isinstance(row, dict):
        return row
    kept = {name: plainly(value) for name, value in row.items() if name != "additional_properties" or value}
    return {name: value for name, value in kept.items() if (name, value) != ("type", "message")}


def test_a_conversation_is_read_part_by_part_and_written_again() -> None:
    asked, called, answered = map(read_row, ROWS)
    assert [type(part) for part in asked.parts] == [Text, Image, Image, Opaque]
    assert asked.name == "ann"
    assert [type(part) for part in called.parts] == [Reasoning, Reasoning, ToolCall, ToolCall, ToolCall]
    assert [call.arguments for call in called.calls] == ['{"path": "a.md"}', '{"path":"b.md"}', "{}"]
    assert answered.role is Role.TOOL
    assert [result.text for result in answered.results] == ["one", "two", '{"n":1}']
    assert [result.failed for result in answered.results] == [False, False, True]
    assert [plainly(write_row(message)) for message in (asked, called, answered)] == plainly(ROWS)


def test_the_frameworks_own_notes_do_not_make_another_message() -> None:
    noted = ASKED | {"additional_properties": {"topic": "files", "_attribution": {"source_id": "in_memory"}}}
    assert read_row(noted) == read_row(ASKED)
    unnamed = {name: value for name, value in CALLED.items() if name != "message_id"}
    assert read_row({**unnamed, "message_id": "msg_4"}) == read_row(unnamed)


def test_a_shortened_result_says_the_same_in_both_its_fields() -> None:
    answered = read_row(ANSWERED)
    short = answered.with_parts(
        tuple(
            ToolResult(result.call, (Text("cut"),), failed=result.failed, extra=result.extra)
            for result in answered.results
        )
    )
    written: Any = write_row(short)["contents"]
    assert [row["result"] for row in written] == ["cut", "cut", "cut"]
    assert [[item["text"] for item in row["items"]] for row in written if "items" in row] == [["cut"], ["cut"]]


def test_messages_of_other_origins_are_written_in_its_form() -> None:
    told = Message(Role.USER, (Text("Before: …"), Image(url="https://a/b.png"), Reasoning("hm"), Opaque("x", "{}")))
    assert write_row(told) == {
        "role": "user",
        "contents": [
            {"type": "text", "text": "Before: …"},
            {"type": "uri", "uri": "https://a/b.png", "media_type": "image/png"},
        ],
    }


properties = st.dictionaries(st.sampled_from(["a", "$shape"]), values, max_size=1)
said = st.fixed_dictionaries(
    {"type": st.just("text"), "text": texts}, optional={"annotations": st.lists(objects, max_size=1), "id": texts}
)
pictures = st.sampled_from([PICTURE, LINKED, PAPER, PICTURE | {"type": "uri"}])
contents = (
    said
    | pictures
    | st.fixed_dictionaries(
        {"type": st.just("text_reasoning")},
        optional={"text": texts, "protected_data": texts.filter(bool), "id": texts, "status": texts},
    )
    | st.fixed_dictionaries(
        {"type": st.just("function_call"), "call_id": texts, "name": texts, "hosted": st.booleans()},
        optional={"arguments": texts | objects, "id": texts, "additional_properties": properties},
    )
    | st.fixed_dictionaries(
        {"type": st.just("function_result"), "call_id": texts},
        optional={
            "result": values.filter(lambda value: value is not None),
            "items": st.lists(said | pictures, max_size=2),
            "exception": st.just("FunctionInvocationError"),
        },
    )
    | st.fixed_dictionaries(
        {"type": st.sampled_from(["error", "hosted_file", "mcp_server_tool_call"])}, optional={"x": values}
    )
)
rows = st.fixed_dictionaries(
    {
        "role": st.sampled_from(["user", "assistant", "system", "tool", "developer", "critic"]),
        "contents": st.lists(contents, max_size=3),
    },
    optional={
        "author_name": texts.filter(bool),
        "message_id": st.sampled_from(["m1", "msg_a"]),
        "additional_properties": properties,
    },
)


@given(rows)
def test_every_row_comes_back_as_it_was(row: dict[str, Any]) -> None:
    assert same(plainly(write_row(read_row(row))), plainly(row))

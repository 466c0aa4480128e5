"""LlamaIndex's messages: read and written without loss, one object a unit."""

import base64
from io import BytesIO
from typing import Any

import pytest
from hypothesis import given, strategies as st
from llama_index.core.base.llms.types import (
    AudioBlock,
    CacheControl,
    CachePoint,
    ChatMessage,
    CitableBlock,
    CitationBlock,
    DocumentBlock,
    ImageBlock,
    MessageRole,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)

from everlong.core import CallId, Image, Message, Opaque, Reasoning, Role, Text, ToolCall, ToolResult
from everlong.wire.libraries.llama_index import LIBRARY
from tests.wire.conversations import objects, values

words = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)

PNG = base64.b64encode(bytes.fromhex("89504e470d0a1a0a0000000d4948445200000001000000010806000000"))
texts = st.builds(TextBlock, text=words)
images = st.builds(ImageBlock, image=st.just(PNG), detail=st.none() | words) | st.builds(
    ImageBlock,
    url=st.sampled_from(["https://shelf.example/x.png", "http://shelf.example"]),
    detail=st.none() | st.just("low"),
    image_mimetype=st.none() | st.just("image/jpeg"),
)
others = (
    st.builds(AudioBlock, audio=st.just(PNG), format=st.just("mp3"))
    | st.builds(DocumentBlock, data=st.just(PNG), title=st.none() | words)
    | st.builds(CachePoint, cache_control=st.builds(CacheControl, type=words))
    | st.builds(CitableBlock, title=words, source=words, content=st.lists(texts | images, max_size=2))
    | st.builds(
        CitationBlock, title=words, source=words, cited_content=texts, additional_location_info=st.just({"a": 1})
    )
)
thoughts = st.builds(
    ThinkingBlock,
    content=st.none() | words,
    num_tokens=st.none() | st.integers(0, 9),
    additional_information=st.dictionaries(st.sampled_from(["signature", "of"]), values, max_size=2),
)
calls = st.builds(ToolCallBlock, tool_call_id=st.none() | words, tool_name=words, tool_kwargs=objects | words)
function = st.fixed_dictionaries({"name": words, "arguments": words})
listed = st.lists(st.fixed_dictionaries({"id": words, "type": st.just("function"), "function": function}), max_size=3)
beside = st.fixed_dictionaries(
    {},
    optional={
        "tool_calls": listed | values,
        "tool_call_id": words | values,
        "call_id": words,
        "name": words,
        "function_call": function | values,
        "$shape": values,
    },
)
messages = st.builds(
    ChatMessage,
    role=st.sampled_from(list(MessageRole)),
    blocks=st.lists(texts | images | others | thoughts | calls, max_size=4),
    additional_kwargs=beside,
)


@given(st.lists(messages, max_size=4))
def test_what_is_read_is_written_again(items: list[Any]) -> None:
    units = LIBRARY.read(items)
    assert [unit.items for unit in units] == [(item,) for item in items]
    assert all(held is item for unit, item in zip(units, items, strict=True) for held in unit.items)
    assert LIBRARY.write([message for unit in units for message in unit.messages]) == items


CASES: list[tuple[str, Any, Message]] = [
    (
        "a developer's words",
        ChatMessage(role="developer", content="Be brief."),
        Message(Role.SYSTEM, (Text("Be brief."),)),
    ),
    (
        "thinking with its signature, words, two calls",
        ChatMessage(
            role="assistant",
            blocks=[
                ThinkingBlock(content="Both.", additional_information={"signature": "s1g"}),
                TextBlock(text="I read both."),
                ToolCallBlock(tool_call_id="c1", tool_name="read", tool_kwargs={"path": "a"}),
                ToolCallBlock(tool_call_id="c2", tool_name="read", tool_kwargs='{"path": "b"}'),
            ],
        ),
        Message(
            Role.ASSISTANT,
            (
                Reasoning("Both.", "s1g"),
                Text("I read both."),
                ToolCall(CallId("c1"), "read", '{"path":"a"}'),
                ToolCall(CallId("c2"), "read", '{"path": "b"}'),
            ),
        ),
    ),
    (
        "calls that stand only beside",
        ChatMessage(
            role="assistant",
            content="",
            additional_kwargs={
                "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}]
            },
        ),
        Message(Role.ASSISTANT, (Text(""), ToolCall(CallId("c1"), "read", "{}"))),
    ),
    (
        "a result with a picture",
        ChatMessage(
            role="tool",
            blocks=[TextBlock(text="Here."), ImageBlock(image=PNG)],
            additional_kwargs={"tool_call_id": "c1", "name": "read"},
        ),
        Message(
            Role.TOOL,
            (ToolResult(CallId("c1"), (Text("Here."), Image(PNG.decode(), "image/png")), name="read"),),
        ),
    ),
]


@pytest.mark.parametrize(("item", "expected"), [row[1:] for row in CASES], ids=[row[0] for row in CASES])
def test_what_it_says(item: Any, expected: Message) -> None:
    ((unit,),) = [LIBRARY.read([item])]
    (read,) = unit.messages
    assert (read.role, said(read)) == (expected.role, said(expected))


def said(message: Message) -> list[Any]:
    """The parts without what is only carried along."""
    parts = []
    for part in message.parts:
        if isinstance(part, ToolCall):
            parts.append((part.id, part.name, part.arguments))
        elif isinstance(part, Reasoning):
            parts.append((part.text, part.signature))
        else:
            parts.append(part)
    return parts


def test_a_buffer_is_read_and_stays_readable() -> None:
    raw = base64.b64decode(PNG)
    item = ChatMessage(role="user", blocks=[ImageBlock(image=BytesIO(raw), image_mimetype="image/png")])
    ((image,),) = [message.parts for unit in LIBRARY.read([item]) for message in unit.messages]
    assert image == Image(PNG.decode(), "image/png")
    assert item.blocks[0].resolve_image().read() == raw


def test_calls_that_were_changed_are_not_repeated_beside() -> None:
    entry = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"path": "long"}'}}
    block = ToolCallBlock(tool_call_id="c1", tool_name="read", tool_kwargs={"path": "long"})
    item = ChatMessage(role="assistant", blocks=[block], additional_kwargs={"tool_calls": [entry]})
    ((message,),) = [unit.messages for unit in LIBRARY.read([item])]
    (call,) = message.calls
    (shorter,) = LIBRARY.write([message.with_parts((ToolCall(call.id, call.name, "{}", call.extra),))])
    assert shorter.additional_kwargs == {}
    assert shorter.blocks == [ToolCallBlock(tool_call_id="c1", tool_name="read", tool_kwargs={})]


def test_messages_of_others_are_written_as_its_own() -> None:
    results = (ToolResult(CallId("c1"), (Text("one"),)), ToolResult(CallId("c2"), (Text("two"),)))
    history = [
        Message(Role.SYSTEM, (Text("Be brief."),)),
        Message(Role.ASSISTANT, (ToolCall(CallId("c1"), "read", "{}"), Opaque("odd", "{}"))),
        Message(Role.TOOL, (*results, Text("And now?"))),
    ]
    assert LIBRARY.write(history) == [
        ChatMessage(role="system", content="Be brief."),
        ChatMessage(role="assistant", blocks=[ToolCallBlock(tool_call_id="c1", tool_name="read", tool_kwargs={})]),
        ChatMessage(role="tool", content="one", additional_kwargs={"tool_call_id": "c1"}),
        ChatMessage(role="tool", content="two", additional_kwargs={"tool_call_id": "c2"}),
        ChatMessage(role="user", content="And now?"),
    ]

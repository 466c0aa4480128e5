"""AutoGen's messages: read and written without loss, one object a unit."""

from typing import Any

from autogen_core import FunctionCall, Image as Picture
from autogen_core.models import (
    AssistantMessage,
    FunctionExecutionResult,
    FunctionExecutionResultMessage,
    SystemMessage,
    UserMessage,
)
from hypothesis import given, strategies as st
from PIL import Image as Pictures

from everlong.core import CallId, Image, Message, Reasoning, Role, Text, ToolCall, ToolResult
from everlong.wire.libraries.autogen import LIBRARY

words = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)

colours = st.tuples(*[st.integers(0, 255)] * 3)
pictures = st.builds(lambda colour, width: Picture(Pictures.new("RGB", (width, 2), colour)), colours, st.integers(1, 3))
calls = st.builds(FunctionCall, id=words, name=words, arguments=words)
results = st.builds(
    FunctionExecutionResult, content=words, name=words, call_id=words, is_error=st.sampled_from([None, True, False])
)
messages = (
    st.builds(SystemMessage, content=words)
    | st.builds(UserMessage, content=words | st.lists(words | pictures, max_size=3), source=words)
    | st.builds(AssistantMessage, content=words | st.lists(calls, max_size=3), thought=st.none() | words, source=words)
    | st.builds(FunctionExecutionResultMessage, content=st.lists(results, max_size=3))
)


@given(st.lists(messages, max_size=4))
def test_what_is_read_is_written_again(items: list[Any]) -> None:
    units = LIBRARY.read(items)
    assert all(unit.items[0] is item for unit, item in zip(units, items, strict=True))
    written = LIBRARY.write([message for unit in units for message in unit.messages])
    assert [type(item) for item in written] == [type(item) for item in items]
    # Two pictures are equal if their pixels are; AutoGen's own objects are equal to themselves alone.
    assert [item.model_dump() for item in written] == [item.model_dump() for item in items]


def said_by(item: Any) -> Message:
    ((message,),) = [unit.messages for unit in LIBRARY.read([item])]
    return message


def test_a_thought_beside_calls_is_sent_and_one_beside_words_is_not() -> None:
    call = FunctionCall(id="c1", name="read", arguments="{}")
    acts = said_by(AssistantMessage(content=[call, call], thought="I read.", source="clerk"))
    assert acts.text == "I read."
    assert acts.calls == (ToolCall(CallId("c1"), "read", "{}"),) * 2
    talks = said_by(AssistantMessage(content="Done.", thought="Was that all?", source="clerk"))
    assert talks.parts == (Reasoning("Was that all?"), Text("Done."))
    assert (acts.name, talks.name) == ("clerk", "clerk")


def test_results_of_one_step_are_one_message() -> None:
    kinds = [("c1", "one", None), ("c2", "no such file", True)]
    content = [
        FunctionExecutionResult(call_id=call, content=text, name="read", is_error=bad) for call, text, bad in kinds
    ]
    message = said_by(FunctionExecutionResultMessage(content=content))
    assert message.role is Role.TOOL
    assert [(result.call, result.text, result.failed) for result in message.results] == [
        ("c1", "one", False),
        ("c2", "no such file", True),
    ]


def test_messages_of_others_are_written_as_its_own() -> None:
    data = Picture(Pictures.new("RGB", (1, 1))).to_base64()
    history = [
        Message(Role.ASSISTANT, (Reasoning("Hm."), ToolCall(CallId("c1"), "read", "{}"))),
        Message(Role.TOOL, (ToolResult(CallId("c1"), (Text("one"),), name="read"), Text("And now?"))),
        Message(Role.USER, (Text("See:"), Image(data, "image/png"), Image(url="https://shelf.example/x.png"))),
    ]
    acts, results, asks, shows = LIBRARY.write(history)
    assert acts == AssistantMessage(
        content=[FunctionCall(id="c1", name="read", arguments="{}")], thought="Hm.", source="assistant"
    )
    assert results.content == [FunctionExecutionResult(call_id="c1", content="one", name="read", is_error=None)]
    assert asks == UserMessage(content="And now?", source="user")
    words, picture, link = shows.content
    assert (words, picture.to_base64(), link) == ("See:", data, "[picture: https://shelf.example/x.png]")

"""smolagents' messages: read and written without loss, one object a unit."""

from typing import Any

from hypothesis import given, strategies as st
from PIL import Image as Pictures
from smolagents.models import ChatMessage, ChatMessageToolCall, ChatMessageToolCallFunction, MessageRole
from smolagents.monitoring import TokenUsage

from everlong.core import CallId, Image, Message, Role, Text, ToolResult
from everlong.wire.libraries.smolagents import LIBRARY
from tests.wire.conversations import values

words = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)

colours = st.tuples(*[st.integers(0, 255)] * 3)
pictures = st.builds(lambda colour, width: Pictures.new("RGB", (width, 2), colour), colours, st.integers(1, 3))
links = st.sampled_from(["https://shelf.example/x.png", "data:image/png;base64,AAAA"])
elements = (
    st.fixed_dictionaries({"type": st.just("text"), "text": words}, optional={"more": values})
    | st.fixed_dictionaries({"type": st.just("image"), "image": pictures})
    | st.fixed_dictionaries(
        {
            "type": st.just("image_url"),
            "image_url": st.fixed_dictionaries({"url": links}, optional={"detail": st.just("low"), "more": values}),
        }
    )
    | st.fixed_dictionaries({"type": st.just("audio"), "audio": values})
)
functions = st.builds(ChatMessageToolCallFunction, arguments=values, name=words, description=st.none() | words)
messages = st.builds(
    ChatMessage,
    role=st.sampled_from(list(MessageRole)),
    content=st.none() | words | st.lists(elements, max_size=3),
    tool_calls=st.none()
    | st.lists(st.builds(ChatMessageToolCall, function=functions, id=words, type=words), max_size=2),
    token_usage=st.none() | st.builds(TokenUsage, input_tokens=st.integers(0, 9), output_tokens=st.integers(0, 9)),
)


def pixels(value: Any) -> Any:
    """The value, with what a picture shows in its place: how it was made belongs to the object."""
    if isinstance(value, Pictures.Image):
        return value.size, value.tobytes()
    if isinstance(value, dict):
        return {key: pixels(member) for key, member in value.items()}
    return [pixels(member) for member in value] if isinstance(value, list) else value


@given(st.lists(messages, max_size=4))
def test_what_is_read_is_written_again(items: list[Any]) -> None:
    units = LIBRARY.read(items)
    assert all(unit.items[0] is item for unit, item in zip(units, items, strict=True))
    written = LIBRARY.write([message for unit in units for message in unit.messages])
    for item in (*items, *written):
        item.content = pixels(item.content)
    assert written == items


def test_calls_are_an_assistants_words_and_results_a_users() -> None:
    text = [{"type": "text", "text": "Observation:\nsalt"}]
    items = [ChatMessage(MessageRole.TOOL_CALL, "Calling tools:\n[]"), ChatMessage(MessageRole.TOOL_RESPONSE, text)]
    (calls,), (result,) = [unit.messages for unit in LIBRARY.read(items)]
    assert (calls.role, calls.parts) == (Role.ASSISTANT, (Text("Calling tools:\n[]"),))
    assert (result.role, result.parts) == (Role.USER, (Text("Observation:\nsalt"),))
    (shorter,) = LIBRARY.write([result.with_parts((Text("Observation: …"),))])
    assert shorter == ChatMessage(MessageRole.TOOL_RESPONSE, [{"type": "text", "text": "Observation: …"}])


def test_messages_of_others_are_written_as_its_own() -> None:
    history = [
        Message(Role.USER, (Text("See:"), Image(url="https://shelf.example/x.png"))),
        Message(Role.TOOL, (ToolResult(CallId("c1"), (Text("one"),)),)),
    ]
    link = {"type": "image_url", "image_url": {"url": "https://shelf.example/x.png"}}
    assert LIBRARY.write(history) == [
        ChatMessage(MessageRole.USER, [{"type": "text", "text": "See:"}, link]),
        ChatMessage(MessageRole.TOOL_RESPONSE, [{"type": "text", "text": "one"}]),
    ]

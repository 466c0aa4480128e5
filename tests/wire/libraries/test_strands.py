"""Strands' messages: dicts with bytes, read and written without loss."""

from typing import Any

from hypothesis import given, strategies as st

from everlong.core import Image, Message, Opaque, Reasoning, Role, Text, ToolCall, ToolResult
from everlong.wire.libraries.library import given_back
from everlong.wire.libraries.strands import LIBRARY
from tests.wire.conversations import texts, values

PICTURE = b"\x89PNG\r\n"
CONVERSATION: list[dict[str, Any]] = [
    {
        "role": "user",
        "content": [
            {"text": "What is in these?"},
            {"image": {"format": "png", "source": {"bytes": PICTURE}}},
            {"image": {"format": "jpeg", "source": {"location": {"type": "s3", "uri": "s3://box/a.jpg"}}}},
            {"document": {"format": "pdf", "name": "plan", "source": {"bytes": b"%PDF"}}},
            {"cachePoint": {"type": "default"}},
        ],
        "tracking_id": "0b5e",
    },
    {
        "role": "assistant",
        "content": [
            {"reasoningContent": {"reasoningText": {"text": "Two files.", "signature": "c2lnbmVk"}}},
            {"reasoningContent": {"redactedContent": b"\x00\xff"}},
            {"text": "I look."},
            {"toolUse": {"toolUseId": "t1", "name": "read", "input": {"path": "a.md"}, "reasoningSignature": "s"}},
            {"toolUse": {"toolUseId": "t2", "name": "read", "input": {"path": "b.md"}}},
        ],
        "metadata": {"usage": {"inputTokens": 9, "outputTokens": 4, "totalTokens": 13}, "metrics": {"latencyMs": 5}},
    },
    {
        "role": "user",
        "content": [
            {"toolResult": {"toolUseId": "t1", "status": "success", "content": [{"text": "one"}, {"json": {"n": 1}}]}},
            {
                "toolResult": {
                    "toolUseId": "t2",
                    "status": "error",
                    "content": [{"image": {"format": "png", "source": {"bytes": PICTURE}}}, {"text": "no such file"}],
                }
            },
            {"text": "Go on."},
        ],
    },
    {
        "role": "assistant",
        "content": [{"citationsContent": {"content": [{"text": "one"}], "citations": [{"title": "a.md"}]}}],
    },
]


def read(items: list[dict[str, Any]]) -> list[Message]:
    return [message for unit in LIBRARY.read(items) for message in unit.messages]


def test_a_conversation_is_read_part_by_part_and_written_again() -> None:
    asked, called, answered, cited = read(CONVERSATION)
    assert [type(part) for part in asked.parts] == [Text, Image, Image, Opaque, Opaque]
    assert [type(part) for part in called.parts] == [Reasoning, Opaque, Text, ToolCall, ToolCall]
    assert called.calls[0].arguments == '{"path":"a.md"}'
    assert answered.role is Role.TOOL
    assert [result.failed for result in answered.results] == [False, True]
    assert answered.results[0].text == 'one\n{"n":1}'
    assert answered.text == "Go on."
    assert [part.kind for part in cited.parts if isinstance(part, Opaque)] == ["citationsContent"]
    assert LIBRARY.write([asked, called, answered, cited]) == CONVERSATION


def test_what_was_not_touched_is_the_same_object_and_what_was_shortened_keeps_its_form() -> None:
    units = LIBRARY.read(CONVERSATION)
    asked, called, answered, cited = (unit.messages[0] for unit in units)
    short = answered.with_parts(
        (ToolResult(answered.results[0].call, (Text("cut"),), extra=answered.results[0].extra), *answered.parts[1:])
    )
    sent = given_back(LIBRARY, units, [asked, called, short, cited])
    assert sent[0] is CONVERSATION[0]
    assert sent[1] is CONVERSATION[1]
    assert sent[3] is CONVERSATION[3]
    assert sent[2]["content"][0]["toolResult"] == {
        "toolUseId": "t1",
        "status": "success",
        "content": [{"text": "cut"}],
    }
    assert sent[2]["content"][1:] == CONVERSATION[2]["content"][1:]


def test_neighbours_of_one_side_are_sent_as_one_message() -> None:
    units = LIBRARY.read(CONVERSATION)
    asked, called, answered, cited = (unit.messages[0] for unit in units)
    note = Message(Role.USER, (Text("Before: …"),))
    sent = given_back(LIBRARY, units, [note, asked, called, answered, cited])
    assert [message["role"] for message in sent] == ["user", "assistant", "user", "assistant"]
    assert sent[0]["content"] == [{"text": "Before: …"}, *CONVERSATION[0]["content"]]
    assert sent[1] is CONVERSATION[1]


def test_messages_of_other_origins_are_written_in_their_form() -> None:
    told = Message(Role.USER, (Text("Before: …"), Image(data="iVBORw==", media_type="image/png"), Text(" ")))
    thought = Message(Role.ASSISTANT, (Reasoning("hm"), Opaque("x", "{}")))
    odd = Message(Role.USER, (Image(url="https://a/b.png"),))
    assert LIBRARY.write([told, thought, odd]) == [
        {
            "role": "user",
            "content": [{"text": "Before: …"}, {"image": {"format": "png", "source": {"bytes": b"\x89PNG"}}}],
        },
        {"role": "user", "content": [{"text": "[image not shown: https://a/b.png]"}]},
    ]


plain = values | st.binary(max_size=4)
open_values = st.recursive(
    plain,
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a", "$bytes", "$kept"]), inner, max_size=2)
    ),
    max_leaves=5,
)
more = st.dictionaries(st.sampled_from(["note", "$shape"]), open_values, max_size=1)
names = st.sampled_from(["read", "写", "a b"])
ids = st.sampled_from(["t1", "tooluse_9", "键"])


def with_more(block: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.tuples(block, more).map(lambda both: {**both[0], **both[1]})


sources = st.fixed_dictionaries({"bytes": st.binary(max_size=4)}) | st.fixed_dictionaries(
    {"location": st.fixed_dictionaries({"type": st.just("s3"), "uri": texts}, optional={"bucketOwner": texts})}
)
pictures = st.fixed_dictionaries(
    {"image": with_more(st.fixed_dictionaries({"format": st.sampled_from(["png", "webp"]), "source": sources}))}
)
thoughts = st.fixed_dictionaries({"text": texts}, optional={"signature": st.none() | texts, "kind": values})
results = st.fixed_dictionaries(
    {
        "toolUseId": ids,
        "content": st.lists(
            with_more(st.fixed_dictionaries({"text": texts}))
            | st.fixed_dictionaries({"json": values})
            | pictures
            | st.fixed_dictionaries({"document": open_values}),
            max_size=3,
        ),
    },
    optional={"status": st.sampled_from(["success", "error", "pending", None]), "structured": open_values},
)
blocks = (
    with_more(st.fixed_dictionaries({"text": texts}))
    | with_more(pictures)
    | with_more(
        st.fixed_dictionaries(
            {
                "toolUse": st.fixed_dictionaries(
                    {"toolUseId": ids, "name": names, "input": values}, optional={"reasoningSignature": texts}
                )
            }
        )
    )
    | with_more(st.fixed_dictionaries({"toolResult": results}))
    | st.fixed_dictionaries({"reasoningContent": with_more(st.fixed_dictionaries({"reasoningText": thoughts}))})
    | st.dictionaries(st.sampled_from(["document", "cachePoint", "toolUse", "video", "text"]), open_values, max_size=2)
)
conversations = st.lists(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["user", "assistant", "system"]), "content": st.lists(blocks, max_size=4)},
        optional={"tracking_id": texts, "metadata": open_values},
    ),
    max_size=4,
)


@given(conversations)
def test_every_conversation_comes_back_as_it_was(items: list[dict[str, Any]]) -> None:
    units = LIBRARY.read(items)
    assert [unit.items for unit in units] == [(item,) for item in items]
    assert exactly(LIBRARY.write([message for unit in units for message in unit.messages])) == exactly(items)


def exactly(value: Any) -> Any:
    """A value in which 1, 1.0 and true differ."""
    if isinstance(value, dict):
        return {name: exactly(inner) for name, inner in value.items()}
    return [exactly(inner) for inner in value] if isinstance(value, list) else (type(value), value)

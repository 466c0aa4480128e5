"""Conversations for the tests of every format: chats with parallel calls, JSON values, and what equality means."""

import json

from hypothesis import strategies as st

from everlong.core import Json, JsonObject


def same(left: object, right: object) -> bool:
    """Equal as JSON: unlike in Python, 1 is not true and not 1.0."""
    return json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)


texts = st.sampled_from(["", " ", "hello", "你好", "a\nb", "😀", "\ud83d", '{"a":1}'])
values: st.SearchStrategy[Json] = st.recursive(
    st.sampled_from([None, True, False, 0, 1, 1.0, -0.5, 2**60, "x", ""]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner, max_size=2),
    max_leaves=4,
)
objects = st.dictionaries(st.sampled_from(["path", "n", "键"]), values, max_size=2)


@st.composite
def steps_of_a_chat(draw: st.DrawFn) -> list[JsonObject]:
    """One question, calls made at once, their results in any order, perhaps a picture and an answer."""
    mark = f"{draw(st.integers(0, 10**9))}"
    said: Json = f"ask-{mark}"
    if draw(st.booleans()):
        said = [
            {"type": "text", "text": f"ask-{mark}"},
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{mark}AAA"}},
        ]
    steps: list[JsonObject] = [{"role": "user", "content": said}]
    count = draw(st.integers(0, 3))
    if count:
        calls = [
            {
                "id": f"call {at}" if draw(st.booleans()) else f"c{at}",
                "type": "function",
                "function": {
                    "name": draw(st.sampled_from(["read", "write"])),
                    "arguments": f'{{"n":"arg-{mark}-{at}"}}',
                },
            }
            for at in range(count)
        ]
        steps.append({"role": "assistant", "content": None, "tool_calls": calls})
        steps += [
            {"role": "tool", "tool_call_id": calls[at]["id"], "content": f"result-{mark}-{at}"}
            for at in draw(st.permutations(range(count)))
        ]
    steps.append({"role": "assistant", "content": f"answer-{mark}", "reasoning_content": "secret"})
    return steps


chats = st.lists(steps_of_a_chat(), min_size=1, max_size=3).map(lambda steps: [item for step in steps for item in step])


def said_in(chat: list[JsonObject]) -> list[str]:
    """Everything of a chat that must reach another provider: words, bytes of pictures, arguments."""
    said: list[str] = []
    for message in chat:
        content = message["content"]
        if isinstance(content, str):
            said.append(content)
        elif isinstance(content, list):
            said += [block["text"] for block in content if "text" in block]
            said += [block["image_url"]["url"].partition(",")[2] for block in content if "image_url" in block]
        said += [json.loads(call["function"]["arguments"])["n"] for call in message.get("tool_calls", [])]
    return said

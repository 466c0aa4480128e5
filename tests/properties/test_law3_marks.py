"""Law 3 and law 6 with cache marks: what is sent to Anthropic stays valid, and marks are all that they add."""

import json
from typing import cast

from hypothesis import given, settings, strategies as st

from everlong.core import History, Json, JsonObject
from everlong.engine import Request
from everlong.engine.contracts import Caching
from everlong.wire import ANTHROPIC, CacheMarks, problems, repair_history
from tests.llm.marked_cache import marks_of
from tests.properties.histories import conversations, histories

MARKS = cast(CacheMarks, ANTHROPIC.marks)

often = settings(max_examples=150, deadline=None)
TOOL = '{"name":"read","input_schema":{"type":"object"}}'
counts = st.integers(0, 14)


def body_of(messages: History, caching: Caching | None, tools: tuple[str, ...] = ()) -> JsonObject:
    return ANTHROPIC.ask(Request(model="m", messages=messages, caching=caching, tools=tools), "").body


def in_blocks(body: JsonObject) -> JsonObject:
    """With text as blocks, as a request that may bear marks has it."""

    def blocks(content: Json) -> Json:
        return [{"type": "text", "text": content}] if content and isinstance(content, str) else content

    messages = body["messages"]
    assert isinstance(messages, list)
    system: JsonObject = {"system": blocks(body["system"])} if str(body.get("system", "")).strip() else {}
    return body | system | {"messages": [message | {"content": blocks(message["content"])} for message in messages]}  # type: ignore[operator, index, call-overload]


@often
@given(histories(), counts, counts, st.sampled_from([0, 300, 3600]), st.booleans())
def test_law3_any_history_with_marks_is_valid(
    history: History, stable: int, lasting: int, seconds: float, with_tools: bool
) -> None:
    messages = repair_history(history, "anthropic").messages
    tools = (TOOL,) if with_tools else ()
    marked = body_of(messages, Caching(stable=stable, lasting=lasting, seconds=seconds), tools)
    assert problems("anthropic", marked) == []
    assert len(marks_of(marked)) <= MARKS.most
    assert MARKS.remove(marked) == in_blocks(MARKS.remove(body_of(messages, None, tools)))


@often
@given(conversations(max_rounds=5), st.data())
def test_law6_a_request_starts_with_the_one_before_when_marks_are_not_looked_at(
    history: History, data: st.DataObject
) -> None:
    """Marks move to the end with each request; the provider compares what stands around them."""
    end = data.draw(st.integers(1, len(history)))
    caching = st.builds(Caching, stable=st.integers(0, end), lasting=st.integers(0, end))
    earlier, later = (
        MARKS.remove(body_of(repair_history(said, "anthropic").messages, data.draw(caching)))
        for said in (history[:end], history)
    )
    assert earlier.get("system") == later.get("system") or not history[:end]
    before, after = (json.dumps(body["messages"]).rstrip("]}") for body in (earlier, later))
    if repair_history(history[:end], "anthropic").messages == history[:end]:
        assert after.startswith(before)

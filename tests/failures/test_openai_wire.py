"""Failure modes B4 and J5 in OpenAI's formats: opaque parts, and reasoning with the item it led to."""

import json
from collections.abc import Callable, Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings, strategies as st

from everlong.core import Json, JsonObject, Message, Opaque, Reasoning, ToolCall
from everlong.wire import OPENAI_CHAT, OPENAI_RESPONSES
from everlong.wire.formats.openai_responses.messages import write_message

ASK: JsonObject = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]}


def thought(number: int) -> JsonObject:
    return {"type": "reasoning", "id": f"rs_{number}", "summary": [], "encrypted_content": f"sealed {number}"}


def call(number: int) -> JsonObject:
    return {"type": "function_call", "id": f"fc_{number}", "call_id": f"c{number}", "name": "f", "arguments": "{}"}


def search(number: int) -> JsonObject:
    return {"type": "web_search_call", "id": f"ws_{number}", "status": "completed"}


def words(number: int) -> JsonObject:
    content: list[Json] = [{"type": "output_text", "text": f"words {number}"}]
    return {"type": "message", "id": f"msg_{number}", "role": "assistant", "content": content}


def without(items: list[Json], kind: type, at: int = 0) -> list[JsonObject]:
    """The assistant's items after one part of a kind was dropped from the message."""
    (message,) = OPENAI_RESPONSES.read_messages(items)
    gone = [index for index, part in enumerate(message.parts) if isinstance(part, kind)][at]
    return write_message(message.with_parts(message.parts[:gone] + message.parts[gone + 1 :]))


def nameless(item: JsonObject) -> JsonObject:
    return {key: value for key, value in item.items() if key != "id"}


def test_B4_dropping_a_call_drops_the_reasoning_that_led_to_it() -> None:
    assert without([thought(1), call(1), thought(2), call(2)], ToolCall) == [thought(2), call(2)]


def test_B4_dropping_the_reasoning_frees_the_call_of_its_id() -> None:
    left = without([thought(1), call(1), thought(2), call(2)], Reasoning)
    assert left == [nameless(call(1)), thought(2), call(2)]


def test_B4_dropping_the_reasoning_frees_the_words_of_their_id() -> None:
    assert without([thought(1), words(1), call(1)], Reasoning) == [nameless(words(1)), call(1)]


def test_B4_a_search_that_lost_its_reasoning_goes_too() -> None:
    assert without([thought(1), search(1), words(1)], Reasoning) == [words(1)]


def test_B4_dropping_the_search_drops_its_reasoning_and_nothing_else() -> None:
    assert without([thought(1), search(1), words(1)], Opaque) == [words(1)]


def test_B4_reasoning_without_a_follower_is_not_taken_for_a_half() -> None:
    history = OPENAI_RESPONSES.read_messages([ASK, thought(1)])
    assert [item for message in history for item in write_message(message)] == [ASK, thought(1)]


def halves(items: Sequence[JsonObject], led_to: dict[str, str]) -> list[JsonObject]:
    """What the provider would refuse: a reasoning item or an item with its id, where the other is not beside it."""
    names = [str(item.get("id", "")) for item in items]
    beside = set(pairwise(names))
    return [
        item
        for item, name in zip(items, names, strict=True)
        if any(name in pair and pair not in beside for pair in led_to.items())
    ]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from([call, search, words]), min_size=1, max_size=5), st.integers(0, 2**10))
def test_B4_whatever_is_dropped_no_half_of_a_unit_is_sent(made: list[Callable[[int], JsonObject]], kept: int) -> None:
    items: list[JsonObject] = []
    led_to: dict[str, str] = {}
    for number, make in enumerate(made):
        item = make(number)
        items += [thought(number), item]
        led_to[f"rs_{number}"] = str(item["id"])
    (message,) = OPENAI_RESPONSES.read_messages(items)
    fewer: Message = message.with_parts(tuple(part for at, part in enumerate(message.parts) if kept >> at & 1))
    sent = write_message(fewer)
    assert halves(sent, led_to) == []
    assert [item["call_id"] for item in sent if "call_id" in item] == [part.id for part in fewer.calls]


SIGNED: JsonObject = {
    "id": "c1",
    "type": "function",
    "function": {"name": "f", "arguments": '{"a":1}'},
    "extra_content": {"google": {"thought_signature": "c2ln"}},
}


def test_B4_a_thought_signature_stays_with_its_call_when_words_around_it_go() -> None:
    message = OPENAI_CHAT.read_message({"role": "assistant", "content": "calling", "tool_calls": [SIGNED]})
    assert OPENAI_CHAT.write_message(message.with_parts(message.calls)) == [
        {"role": "assistant", "content": None, "tool_calls": [SIGNED]}
    ]


@pytest.mark.parametrize("value", ["", "hm"])
def test_B3_reasoning_content_is_sent_as_it_came(value: str) -> None:
    raw: JsonObject = {"role": "assistant", "content": None, "reasoning_content": value, "tool_calls": [SIGNED]}
    assert OPENAI_CHAT.write_message(OPENAI_CHAT.read_message(raw)) == [raw]


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.sampled_from(["x", "y", "cache_control"]), st.sampled_from([None, 1, [], {"z": 0.5}])))
def test_J5_unknown_fields_travel_at_every_level(more: JsonObject) -> None:
    chat: JsonObject = {
        **more,
        "messages": [
            {**more, "role": "user", "content": [{**more, "type": "text", "text": "a"}]},
            {**more, "role": "assistant", "content": None, "tool_calls": [{**more, **SIGNED}]},
        ],
    }
    assert json.dumps(OPENAI_CHAT.write_body(OPENAI_CHAT.read_body(chat)), sort_keys=True) == json.dumps(
        chat, sort_keys=True
    )
    items: JsonObject = {**more, "input": [{**more, **item} for item in (ASK, thought(1), call(1), words(1))]}
    assert json.dumps(OPENAI_RESPONSES.write_body(OPENAI_RESPONSES.read_body(items)), sort_keys=True) == json.dumps(
        items, sort_keys=True
    )

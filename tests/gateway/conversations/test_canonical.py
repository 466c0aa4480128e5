"""Messages in their one form: what says the same has one digest and one body, whatever its client wrote."""

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from everlong.errors import Refused
from everlong.gateway.conversations.canonical import (
    Unit,
    Units,
    grouped,
    head_digest,
    in_one_form,
    prefix_digests,
    unit_of,
)
from everlong.gateway.request import encoded
from everlong.wire import format_named

Value = dict[str, Any]
CHAT, CLAUDE, RESPONSES = "openai-chat", "anthropic", "openai-responses"
MARKER = {"cache_control": {"type": "ephemeral"}}
CALL = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"b": 1, "a": 2}'}}

SAME: dict[str, tuple[str, Value, Value]] = {
    "a string and a block": (
        CLAUDE,
        {"role": "user", "content": "hi"},
        {"role": "user", "content": [{"type": "text", "text": "hi"}]},
    ),
    "a result's string and block": (
        CLAUDE,
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "ok"}]},
        {
            "role": "user",
            "content": [{"tool_use_id": "c1", "content": [{"text": "ok", "type": "text"}], "type": "tool_result"}],
        },
    ),
    "the order of keys": (CHAT, {"role": "user", "content": "hi"}, {"content": "hi", "role": "user"}),
    "a lone block of Chat": (
        CHAT,
        {"role": "user", "content": "hi"},
        {"role": "user", "content": [{"text": "hi", "type": "text"}]},
    ),
    "numbers of calls": (
        CHAT,
        {"role": "assistant", "content": "x", "tool_calls": [CALL]},
        {"role": "assistant", "content": "x", "tool_calls": [{"index": 0, **dict(reversed(CALL.items()))}]},
    ),
    "text of Responses": (
        RESPONSES,
        {"role": "user", "content": "hi"},
        {"content": [{"type": "input_text", "text": "hi"}], "role": "user"},
    ),
}


@pytest.mark.parametrize(("fmt", "one", "other"), SAME.values(), ids=SAME)
def test_what_says_the_same_is_forwarded_as_the_same_bytes(fmt: str, one: Value, other: Value) -> None:
    first, second = unit_of(format_named(fmt), [one]), unit_of(format_named(fmt), [other])
    assert (first.digest, first.plain, first.sent) == (second.digest, second.plain, second.sent)


OTHER: dict[str, tuple[str, Value, Value]] = {
    "other words": (CHAT, {"role": "user", "content": "hi"}, {"role": "user", "content": "ho"}),
    "another role": (CHAT, {"role": "user", "content": "hi"}, {"role": "assistant", "content": "hi"}),
    "two blocks": (
        CLAUDE,
        {"role": "user", "content": "hi"},
        {"role": "user", "content": [{"type": "text", "text": "h"}, {"type": "text", "text": "i"}]},
    ),
    "what a tool was told of an index": (
        CLAUDE,
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "n", "input": {"index": 1}}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "n", "input": {"index": 2}}]},
    ),
    "another name": (CHAT, {"role": "user", "content": "hi"}, {"role": "user", "content": "hi", "name": "ann"}),
    "a field that nobody knows": (CHAT, {"role": "user", "content": "hi"}, {"role": "user", "content": "hi", "x": 1}),
}


@pytest.mark.parametrize(("fmt", "one", "other"), OTHER.values(), ids=OTHER)
def test_what_says_something_else_has_another_digest(fmt: str, one: Value, other: Value) -> None:
    assert unit_of(format_named(fmt), [one]).digest != unit_of(format_named(fmt), [other]).digest


@pytest.mark.parametrize("fmt", [CHAT, CLAUDE])
def test_cache_markers_are_forwarded_and_say_nothing(fmt: str) -> None:
    bare = unit_of(format_named(fmt), [{"role": "user", "content": "hi"}])
    marked = unit_of(format_named(fmt), [{"role": "user", "content": [{"type": "text", "text": "hi", **MARKER}]}])
    assert (bare.digest, bare.plain, bare.messages) == (marked.digest, marked.plain, marked.messages)
    assert json.loads(marked.sent)["content"] == [{"type": "text", "text": "hi", **MARKER}]
    assert b"cache_control" not in bare.sent


def test_what_a_tool_was_told_keeps_the_order_of_the_model() -> None:
    block = {"type": "tool_use", "id": "c", "name": "edit", "input": {"path": "a", "content": {"b": 1, "a": 2}}}
    unit = unit_of(format_named(CLAUDE), [{"role": "assistant", "content": [block]}])
    assert b'"input":{"path":"a","content":{"b":1,"a":2}}' in unit.sent


def test_a_field_that_nobody_knows_is_forwarded() -> None:
    value = {
        "role": "assistant",
        "content": "x",
        "reasoning_details": [{"index": 0, "data": "s"}],
        "x_new": {"b": None},
    }
    assert json.loads(unit_of(format_named(CHAT), [value]).sent) == value


def test_one_form_is_the_form_of_itself() -> None:
    for fmt, one, other in (*SAME.values(), *OTHER.values()):
        for value in (one, other):
            once = in_one_form(format_named(fmt), value)
            assert list(in_one_form(format_named(fmt), once).items()) == list(once.items())


def test_digests_of_prefixes_tell_where_two_conversations_part() -> None:
    a, b, c = (unit_of(format_named(CHAT), [{"role": "user", "content": text}]) for text in "abc")
    one, other = prefix_digests([a, b, c]), prefix_digests([a, c, c])
    assert one[0] == other[0]
    assert one[1] != other[1]
    assert one[2] != other[2]
    assert prefix_digests([a], b"x") != prefix_digests([a], b"y")


def test_the_items_of_an_assistant_are_one_unit() -> None:
    items: list[Value] = [
        {"role": "user", "content": "hi"},
        {"type": "reasoning", "id": "r", "summary": []},
        {"type": "message", "role": "assistant", "content": []},
        {"type": "function_call", "call_id": "c", "name": "n", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "ok"},
    ]
    groups = grouped(format_named(RESPONSES), [json.dumps(item).encode() for item in items])
    assert [len(group) for group in groups] == [1, 3, 1]
    assert [len(group) for group in grouped(format_named(CHAT), [b"{}", b"{}"])] == [1, 1]


SYSTEMS = {
    "a string and a block": ("Be brief.", [{"type": "text", "text": "Be brief."}], True),
    "a marker": ([{"type": "text", "text": "a"}], [{"type": "text", "text": "a", **MARKER}], True),
    "other words": ("Be brief.", "Be long.", False),
    "none": (None, "Be long.", False),
}


@pytest.mark.parametrize(("one", "other", "same"), SYSTEMS.values(), ids=SYSTEMS)
def test_system_text_has_a_digest_of_what_it_says(one: Any, other: Any, same: bool) -> None:
    claude = format_named(CLAUDE)
    assert (head_digest(claude, (), one) == head_digest(claude, (), other)) is same


# --- reading once ----------------------------------------------------------------------------------


def raw(text: str) -> list[tuple[bytes, ...]]:
    return [(json.dumps({"role": "user", "content": text}).encode(),)]


def test_a_message_is_read_once_and_never_for_another_key() -> None:
    units = Units()
    (first,), (again,), (other,) = (units.of(format_named(CHAT), scope, raw("hi")) for scope in ("a", "a", "b"))
    assert first is again
    assert first is not other


def test_what_is_remembered_is_bounded() -> None:
    units = Units(room=5_000)
    first: list[Unit] = units.of(format_named(CHAT), "a", raw("first"))
    for number in range(50):
        units.of(format_named(CHAT), "a", raw(f"{number}" * 100))
    assert units.of(format_named(CHAT), "a", raw("first"))[0] is not first[0]


BROKEN = {
    "no object": b'["hi"]',
    "no role": b'{"content": "hi"}',
    "a role of no kind": b'{"role": 7, "content": "hi"}',
}


@pytest.mark.parametrize("fmt", [CHAT, CLAUDE])
@pytest.mark.parametrize("body", BROKEN.values(), ids=BROKEN)
def test_what_is_no_message_is_refused_in_one_line(fmt: str, body: bytes) -> None:
    with pytest.raises(Refused) as refused:
        Units().of(format_named(fmt), "a", [(body,)])
    assert refused.value.status == 400
    assert "\n" not in str(refused.value)


def test_J4_a_request_costs_its_news() -> None:
    units = Units()
    said = [encoded({"role": "user", "content": f"message {number}"}) for number in range(500)]
    units.of(format_named("openai-chat"), "a", grouped(format_named("openai-chat"), said))
    assert units.read == 500
    units.of(
        format_named("openai-chat"),
        "a",
        grouped(format_named("openai-chat"), [*said, encoded({"role": "user", "content": "news"})]),
    )
    assert units.read == 501
    units.of(format_named("openai-chat"), "b", grouped(format_named("openai-chat"), said[:10]))
    assert units.read == 511, "another key shares nothing"


@given(
    fmt=st.sampled_from([CHAT, CLAUDE]), escaped=st.sets(st.sampled_from("cache_ontrlidx")), text=st.text(max_size=9)
)
def test_marks_and_noise_are_found_however_their_names_are_written(fmt: str, escaped: set[str], text: str) -> None:
    """The bytes only say what need not be searched for: the unit is the same as without them."""
    block = {"type": "text", "text": text, **MARKER}
    message: Value = {"role": "assistant", "content": [block, block], "index": 0}
    raw = json.dumps(message)
    for letter in escaped:
        for name in ("cache_control", "index"):
            hidden = name.replace(letter, f"\\u{ord(letter):04x}")
            raw = raw.replace(f'"{name}"', f'"{hidden}"')
    assert json.loads(raw) == message
    given_, searched = (unit_of(format_named(fmt), [message], raw=bytes_) for bytes_ in (raw.encode(), b""))
    assert given_ == searched
    assert b"cache_control" not in searched.plain

"""Which quick change turns the bytes of a message into the form that is forwarded."""

import json
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st

from everlong.gateway.conversations.canonical import Units
from everlong.gateway.conversations.forms import (
    AS_IT_CAME,
    AS_TEXT,
    BLOCKS_SORTED,
    CHANGES,
    IN_BLOCK,
    NEVER_LONGER,
    REWRITTEN,
    SORTED,
    SORTED_DEEPLY,
    form_of,
    in_form,
)
from everlong.wire import format_named

COMPACT, SPACED = (",", ":"), (", ", ": ")
CALL = {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "a.py", "lines": [1, 2]}}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "def main(): …"}]}
CASES: dict[str, tuple[str, dict[str, Any], tuple[str, str], int]] = {
    "one form already": (
        "anthropic",
        {"content": [{"text": "a", "type": "text"}], "role": "user"},
        COMPACT,
        AS_IT_CAME,
    ),
    "fields in another order": ("openai-chat", {"role": "user", "content": "a"}, COMPACT, SORTED),
    "text where blocks are the form": ("anthropic", {"role": "user", "content": "a"}, COMPACT, IN_BLOCK),
    "a block where text is the form": (
        "openai-chat",
        {"role": "user", "content": [{"type": "text", "text": "a"}]},
        COMPACT,
        AS_TEXT,
    ),
    "a call": ("anthropic", {"role": "assistant", "content": [CALL]}, COMPACT, BLOCKS_SORTED),
    "a result with blocks of its own": ("anthropic", {"role": "user", "content": [RESULT]}, COMPACT, BLOCKS_SORTED),
    "a result whose text is put into a block": (
        "anthropic",
        {"role": "user", "content": [RESULT | {"content": "def main(): …"}]},
        COMPACT,
        SORTED_DEEPLY,
    ),
    "the response of a function": (
        "gemini",
        {"role": "user", "parts": [{"functionResponse": {"name": "read", "response": {"output": "x"}}}]},
        COMPACT,
        SORTED,
    ),
    "the call of a function": (
        "gemini",
        {"role": "model", "parts": [{"functionCall": {"name": "read", "args": {"path": "a.py"}}}]},
        COMPACT,
        SORTED_DEEPLY,
    ),
    "a call with spaces in its arguments": (
        "anthropic",
        {"role": "assistant", "content": [CALL]},
        SPACED,
        REWRITTEN,
    ),
}


@pytest.mark.parametrize(("fmt", "message", "separators", "form"), CASES.values(), ids=CASES)
def test_the_cheapest_change_is_found(
    fmt: str, message: dict[str, Any], separators: tuple[str, str], form: int
) -> None:
    format_, raw = format_named(fmt), json.dumps(message, separators=separators, ensure_ascii=False).encode()
    (unit,) = Units().of(format_, "scope", [(raw,)])
    assert form_of(format_, raw, unit.sent) == form
    assert bytes(in_form(format_, raw, form)) == unit.sent


def test_what_fits_is_tried_first_for_the_next_message_and_what_is_dear_stays_last() -> None:
    format_, order = format_named("anthropic"), list(CHANGES)
    for separators, first in ((COMPACT, BLOCKS_SORTED), (SPACED, BLOCKS_SORTED)):
        raw = json.dumps({"role": "assistant", "content": [CALL]}, separators=separators).encode()
        (unit,) = Units().of(format_, "scope", [(raw,)])
        form_of(format_, raw, unit.sent, order)
        assert order[0] == first
    assert sorted(order) == sorted(CHANGES)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
blocks = st.fixed_dictionaries({"type": st.just("text"), "text": st.text(max_size=12)}, optional={"more": values})


@given(
    message=st.fixed_dictionaries({"role": st.just("user"), "content": st.text() | st.lists(blocks) | values}),
    separators=st.sampled_from([COMPACT, SPACED]),
    escaped=st.booleans(),
)
def test_what_only_moves_something_is_never_longer(
    message: dict[str, Any], separators: tuple[str, str], escaped: bool
) -> None:
    raw = json.dumps(message, separators=separators, ensure_ascii=escaped).encode("utf-8", "replace")
    for form in NEVER_LONGER:
        with suppress(msgspec.MsgspecError, UnicodeError, ValueError, KeyError, TypeError):
            assert len(in_form(format_named("anthropic"), raw, form)) <= len(raw)

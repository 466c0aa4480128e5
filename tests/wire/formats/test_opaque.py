"""Opaque parts: what is remembered of an answer, and the answer whole again whatever a client dropped."""

from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from everlong.wire.formats.anthropic.server import THOUGHTS as BLOCKS
from everlong.wire.formats.openai_chat.server import FIELDS, OpaqueField
from everlong.wire.formats.openai_responses.server import THOUGHTS as ITEMS
from tests.wire.opaque_parts import opaque_parts, restored, restored_items

Fields = dict[str, Any]
THOUGHTS = {"anthropic": BLOCKS, "openai-responses": ITEMS}


def _call(number: int, **more: Any) -> Fields:
    return {"id": f"call_{number}", "type": "function", "function": {"name": "read", "arguments": "{}"}, **more}


def _chat(*calls: Fields, **more: Any) -> Fields:
    return {"role": "assistant", "content": None, "tool_calls": [*calls], **more}


def _with(field: OpaqueField) -> tuple[Fields, Fields]:
    """A message with the field, and without."""
    bare, full = _chat(_call(1)), _chat(_call(1))
    holder = {"message": full, "call": full["tool_calls"][0], "function": full["tool_calls"][0]["function"]}
    holder[field.place][field.name] = field.sample
    return full, bare


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: f"{field.place}.{field.name}")
def test_every_field_of_the_table_comes_back(field: OpaqueField) -> None:
    full, bare = _with(field)
    assert restored("openai-chat", bare, opaque_parts("openai-chat", full).get) == full


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: f"{field.place}.{field.name}")
def test_what_a_client_sends_itself_stays(field: OpaqueField) -> None:
    full, bare = _with(field)
    own, _ = _with(OpaqueField(place=field.place, name=field.name, who="", sample="the client's"))
    assert restored("openai-chat", own, opaque_parts("openai-chat", full).get) is own
    assert restored("openai-chat", bare, {}.get) is bare


THOUGHT_CASES = [(fmt, sample) for fmt, samples in THOUGHTS.items() for sample in samples]


def _answer(fmt: str, *blocks: Fields) -> Any:
    return [*blocks] if fmt == "openai-responses" else {"role": "assistant", "content": [*blocks]}


def _again(fmt: str, answer: Any, parts: dict[str, str]) -> Any:
    return restored_items(answer, parts.get) if fmt == "openai-responses" else restored(fmt, answer, parts.get)


def _made(fmt: str, number: int) -> Fields:
    if fmt == "anthropic":
        return {"type": "tool_use", "id": f"call_{number}", "name": "read", "input": {}}
    return {"type": "function_call", "call_id": f"call_{number}", "name": "read", "arguments": "{}"}


def _word(fmt: str, text: str) -> Fields:
    if fmt == "anthropic":
        return {"type": "text", "text": text}
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


@pytest.mark.parametrize(("fmt", "thought"), THOUGHT_CASES, ids=lambda value: value if isinstance(value, str) else "")
def test_thoughts_go_back_before_the_words_that_followed_them(fmt: str, thought: Fields) -> None:
    full = _answer(fmt, thought, _word(fmt, "I look."), _made(fmt, 1), _made(fmt, 2))
    bare = _answer(fmt, _word(fmt, "I look."), _made(fmt, 1), _made(fmt, 2))
    assert _again(fmt, bare, opaque_parts(fmt, full)) == full


@pytest.mark.parametrize("fmt", THOUGHTS)
def test_a_thought_that_is_not_sealed_is_worth_nothing_later(fmt: str) -> None:
    unsealed = {"anthropic": {"type": "thinking", "thinking": "Hm."}}.get(fmt, {"type": "reasoning", "id": "rs_1"})
    assert opaque_parts(fmt, _answer(fmt, unsealed, _made(fmt, 1))) == {}


@pytest.mark.parametrize("fmt", THOUGHTS)
def test_other_thoughts_of_the_client_stay_alone(fmt: str) -> None:
    kept = opaque_parts(fmt, _answer(fmt, THOUGHTS[fmt][0], _made(fmt, 1)))
    own = _answer(fmt, THOUGHTS[fmt][0] | {"id": "another", "signature": "another"}, _made(fmt, 1))
    assert _again(fmt, own, kept) is own


def test_words_that_a_client_left_out_do_not_lose_the_thought() -> None:
    thought, call = THOUGHTS["anthropic"][0], _made("anthropic", 1)
    kept = opaque_parts("anthropic", _answer("anthropic", thought, _word("anthropic", " "), call))
    assert _again("anthropic", _answer("anthropic", call), kept) == _answer("anthropic", thought, call)


def test_items_of_several_answers_do_not_mix() -> None:
    thought = THOUGHTS["openai-responses"][0]
    said = {"role": "user", "content": "go on"}
    output = {"type": "function_call_output", "call_id": "call_1", "output": "done"}
    parts = opaque_parts("openai-responses", [thought, _made("openai-responses", 2)])
    items = [said, _word("openai-responses", "a"), said, _made("openai-responses", 1), output]
    bare = [*items, _made("openai-responses", 2)]
    assert restored_items(bare, parts.get) == [*items, thought, _made("openai-responses", 2)]


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "hello"},
        {"role": "assistant", "content": None, "tool_calls": None},
        {"role": "assistant", "tool_calls": [7, {"id": 3}, {"id": "call_1", "function": "odd"}]},
        {"role": "assistant", "content": None, "function_call": {"name": "read", "arguments": "{}"}},
        {"role": "assistant", "content": [{"type": "tool_use"}, "odd", {"type": "tool_use", "id": "call_1"}]},
    ],
)
@pytest.mark.parametrize("fmt", ["openai-chat", "anthropic"])
def test_odd_messages_pass(fmt: str, message: Fields) -> None:
    assert opaque_parts(fmt, message) == {}
    assert restored(fmt, message, {"call_9": "{}"}.get) is message


# --- whatever was dropped ------------------------------------------------------------------------

PLACES = {place: [field for field in FIELDS if field.place == place] for place in ("message", "call", "function")}


def _some(place: str) -> st.SearchStrategy[Fields]:
    rows = st.lists(st.sampled_from(PLACES[place]), unique_by=lambda field: field.name)
    return rows.map(lambda chosen: {field.name: field.sample for field in chosen})


@st.composite
def chat_messages(draw: st.DrawFn) -> Fields:
    calls = [_call(number, **draw(_some("call"))) for number in range(draw(st.integers(1, 3)))]
    for call in calls:
        call["function"] |= draw(_some("function"))
    return _chat(*calls, **draw(_some("message")))


def _without(holder: Fields, place: str, dropped: set[str]) -> Fields:
    names = {field.name for field in PLACES[place]}
    return {name: value for name, value in holder.items() if name not in names or name not in dropped}


@settings(deadline=None, max_examples=80)
@given(chat_messages(), st.sets(st.sampled_from([field.name for field in FIELDS])))
def test_a_chat_message_is_whole_again_whatever_was_dropped(message: Fields, dropped: set[str]) -> None:
    parts = opaque_parts("openai-chat", message)
    bare = _without(message, "message", dropped)
    bare["tool_calls"] = [
        _without(call, "call", dropped) | {"function": _without(call["function"], "function", dropped)}
        for call in message["tool_calls"]
    ]
    whole = restored("openai-chat", bare, parts.get)
    assert whole == message
    assert restored("openai-chat", whole, parts.get) is whole
    assert restored("openai-chat", message, parts.get) is message


@settings(deadline=None, max_examples=80)
@given(st.sampled_from(list(THOUGHTS)), st.lists(st.sampled_from("wtc"), max_size=9), st.randoms(use_true_random=False))
def test_blocks_and_items_are_whole_again_whatever_was_dropped(fmt: str, kinds: list[str], chance: Any) -> None:
    blocks: list[Fields] = []
    for number, kind in enumerate(kinds):
        seal = {"signature": f"s{number}", "encrypted_content": f"s{number}"}
        thought = THOUGHTS[fmt][0] | {name: value for name, value in seal.items() if name in THOUGHTS[fmt][0]}
        blocks.append({"w": _word(fmt, f"word {number}"), "t": thought, "c": _made(fmt, number)}[kind])
    last = max((at for at, kind in enumerate(kinds) if kind == "c"), default=-1)
    bare = [b for at, b in enumerate(blocks) if kinds[at] != "t" or at > last or chance.random() < 0.5]
    full, parts = _answer(fmt, *blocks), opaque_parts(fmt, _answer(fmt, *blocks))
    whole = _again(fmt, _answer(fmt, *bare), parts)
    assert whole == full
    assert _again(fmt, whole, parts) is whole
    assert _again(fmt, full, parts) is full


# --- calls are told apart ------------------------------------------------------------------------


def _read(path: str) -> Fields:
    function = {"name": "read", "arguments": f'{{"path": "{path}", "from": 1.0}}'}
    return {"id": "functions.read:0", "type": "function", "function": function}


def test_the_same_id_in_another_conversation_is_another_call() -> None:
    kept = opaque_parts("openai-chat", _chat(_read("a"), reasoning_content="a first"))
    other = _chat(_read("b"))
    assert restored("openai-chat", other, kept.get) is other


def test_arguments_that_a_client_wrote_anew_are_the_same_call() -> None:
    full = _chat(_read("a"), reasoning_content="a first")
    again = _chat(_read("a"))
    again["tool_calls"][0]["function"] = {"name": "read", "arguments": '{"from":1,"path":"a"}'}
    whole = restored("openai-chat", again, opaque_parts("openai-chat", full).get)
    assert whole == again | {"reasoning_content": "a first"}


SCRAPS = st.sampled_from([None, 7, "x", [], {}, ["x"], "assistant", "tool_use", "function_call", "thinking", "c1"])
NAMES = st.sampled_from(["role", "type", "content", "tool_calls", "function", "id", "call_id", "input", "arguments"])
ODD: st.SearchStrategy[Any] = st.recursive(
    SCRAPS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=5), max_leaves=8
)


@settings(deadline=None, max_examples=80)
@given(st.sampled_from(["openai-chat", "anthropic"]), st.dictionaries(NAMES, ODD, max_size=6))
def test_whatever_a_client_sends_nothing_breaks(fmt: str, message: Fields) -> None:
    parts = opaque_parts(fmt, message)
    assert restored(fmt, message, parts.get) is message
    assert restored_items([message], opaque_parts("openai-responses", [message]).get) == [message]

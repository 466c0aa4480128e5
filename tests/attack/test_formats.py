"""Law 3 on the broken requests of each format: the attack in short, and what it found, by name."""

import json
from copy import deepcopy
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from tests.attack.bodies import BODIES, Payload
from tests.attack.fuzz_formats import NAMES, REFUSED, VALID, Finding, Order, attack, judge, shrunk
from tests.attack.mutations import nested
from tests.attack.providers import refusals

from everlong import InputError, WireError, fit
from everlong.wire import problems

INPUTS = 1_500
PLAIN = Order(preset="auto", budget=50_000, bare=False)
every_format = pytest.mark.parametrize("fmt", NAMES)


@every_format
def test_whatever_comes_in_what_goes_out_is_valid(fmt: str) -> None:
    outcomes = [attack(fmt, number) for number in range(INPUTS)]
    assert [str(outcome) for outcome in outcomes if isinstance(outcome, Finding)] == []
    assert min(outcomes.count(VALID), outcomes.count(REFUSED)) > INPUTS // 5, "neither everything passes nor nothing"


@every_format
def test_a_request_that_is_valid_goes_out_as_it_came(fmt: str) -> None:
    for number in range(100):
        body = BODIES[fmt](Random(number))
        assert (refusals(fmt, body), problems(fmt, body)) == ([], []), number
        assert fit(body, budget=10**6).body == body, number


# --- any JSON in any place -----------------------------------------------------------------------

texts = st.text(st.characters(exclude_categories=()), max_size=6)
junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


def places(value: Any) -> list[tuple[Any, Any]]:
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, inner in members for place in ((value, key), *places(inner))]


@every_format
@settings(max_examples=150)
@given(data=st.data())
def test_any_json_in_any_place(fmt: str, data: st.DataObject) -> None:
    body = deepcopy(BODIES[fmt](Random(data.draw(st.integers(0, 40)))))
    for _ in range(data.draw(st.integers(1, 3))):
        found = places(body)
        holder, key = found[data.draw(st.integers(0, len(found) - 1))]
        holder[key] = data.draw(junk)
    order = Order(
        data.draw(st.sampled_from(("auto", "nanobot", "simple"))), data.draw(st.sampled_from((None, 300))), False
    )
    assert judge(fmt, body, order) in (VALID, REFUSED)


# --- what the attack found -----------------------------------------------------------------------


def chat(*messages: Any, **fields: Any) -> Payload:
    return {"model": "gpt-4o", "messages": list(messages), **fields}


def gemini(*contents: Any, **fields: Any) -> Payload:
    return {"contents": [{"role": role, "parts": list(parts)} for role, *parts in contents], **fields}


def claude(*messages: Any, **fields: Any) -> Payload:
    said = [{"role": role, "content": content} for role, content in messages]
    return {"model": "claude-sonnet-4-5", "max_tokens": 9, "system": "s", "messages": said, **fields}


def responses(*items: Any, **fields: Any) -> Payload:
    return {"model": "gpt-4o", "input": list(items), **fields}


ASK = {"role": "user", "content": "hi"}
CALL = {"functionCall": {"name": "read", "args": {}}}
ANSWER = {"functionResponse": {"name": "read", "response": {"output": "x"}}}
USE = {"type": "tool_use", "id": "a", "name": "read", "input": {}}
MARKED = {"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}
EMPTY_PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": ""}}
SCHEMA = {"type": "object", "properties": {"p": {"description": "cut \ud83d"}}}

MENDED: dict[str, tuple[str, Payload]] = {
    "two calls, one response": ("gemini", gemini(("user", {"text": "a"}), ("model", CALL, CALL), ("user", ANSWER))),
    "a blank turn between two of the user": (
        "gemini",
        gemini(("user", {"text": "a"}), ("model", {"text": " "}), ("user", {"text": "b"})),
    ),
    "a response that nobody asked for": ("gemini", gemini(("user", {"text": "a"}), ("user", ANSWER))),
    "text and a call in one part": ("gemini", gemini(("user", {"text": "a"}), ("model", {"text": "b", **CALL}))),
    "an id that is a number": (
        "gemini",
        gemini(("user", {"text": "a"}), ("model", {"functionCall": {"name": "f", "id": 5}})),
    ),
    "a picture without bytes": ("gemini", gemini(("user", {"text": "a"}, {"inlineData": {"data": [None]}}))),
    "system text as a text": ("gemini", gemini(("user", {"text": "a"}), systemInstruction="Be brief.")),
    "half a pair in a schema (Gemini)": (
        "gemini",
        gemini(("user", {"text": "a"}), tools=[{"functionDeclarations": [{"name": "f", "parameters": SCHEMA}]}]),
    ),
    "an empty message of the assistant at the end": ("anthropic", claude(("user", [MARKED]), ("assistant", ""))),
    "an empty message of the assistant": ("anthropic", claude(("user", [MARKED]), ("assistant", []), ("user", "b"))),
    "calls and results in pieces": (
        "anthropic",
        claude(
            ("user", "a"),
            ("assistant", [USE, {**USE, "id": "b"}]),
            ("user", [{"type": "tool_result", "tool_use_id": "a"}]),
        ),
    ),
    "a mark on every block": ("anthropic", claude(("user", [MARKED] * 6), system=[MARKED])),
    "a mark that is none": ("anthropic", claude(("user", [{**MARKED, "cache_control": "x"}]), system="s")),
    "a mark on a thought": (
        "anthropic",
        claude(
            ("user", "a"),
            ("assistant", [{"type": "thinking", "thinking": "t", "signature": "s", "cache_control": {}}, MARKED]),
        ),
    ),
    "fields of a reply": (
        "anthropic",
        claude(("user", [MARKED])) | {"messages": [{"role": "user", "content": [MARKED], "id": "m", "usage": {}}]},
    ),
    "a picture without bytes in a result": (
        "anthropic",
        claude(
            ("user", "a"),
            ("assistant", [USE]),
            ("user", [{"type": "tool_result", "tool_use_id": "a", "content": [MARKED, EMPTY_PICTURE]}]),
        ),
    ),
    "a signature that is blank": (
        "anthropic",
        claude(("user", "a"), ("assistant", [{"type": "thinking", "thinking": "t", "signature": " "}, MARKED])),
    ),
    "half a pair in a schema (Anthropic)": (
        "anthropic",
        claude(("user", "a"), tools=[{"name": "f", "input_schema": SCHEMA}]),
    ),
    "a picture without the type of its source": (
        "anthropic",
        claude(("user", [{"type": "image", "source": {"url": "https:"}}, MARKED])),
    ),
    "half a pair in a schema (Chat)": (
        "openai-chat",
        chat(ASK, tools=[{"type": "function", "function": {"name": "f", "parameters": SCHEMA}}]),
    ),
    "half a pair in a key of a message": ("openai-chat", chat({**ASK, "\ud83d": 1})),
    "NaN in a field that is carried": ("openai-chat", chat({**ASK, "weight": float("nan")}, temperature=float("inf"))),
    "a call whose type is no text": (
        "openai-chat",
        chat(ASK, {"role": "assistant", "tool_calls": [{"id": "a", "type": {}, "function": {"name": "f"}}]}),
    ),
    "a call of the user": ("openai-chat", chat({**ASK, "function_call": {}})),
    "a call that is a text": ("openai-chat", chat(ASK, {"role": "assistant", "content": "a", "function_call": "x"})),
    "a field nested 200 levels deep": ("openai-chat", chat({**ASK, "note": nested(200)})),
    "a summary that holds no text": (
        "openai-responses",
        responses(ASK, {"type": "reasoning", "summary": [{}]}, {"role": "assistant", "content": "b"}),
    ),
    "a picture by a number": (
        "openai-responses",
        responses({"role": "user", "content": [{"type": "input_image", "file_id": 5}]}),
    ),
    "a picture by a blank address": (
        "openai-responses",
        responses({"role": "user", "content": [{"type": "input_image", "image_url": " "}]}),
    ),
    "text that is an object": (
        "openai-responses",
        responses(ASK, {"role": "assistant", "content": [{"type": "output_text", "text": {}}]}),
    ),
    "a custom call without its input": (
        "openai-responses",
        responses(ASK, {"type": "custom_tool_call", "call_id": "a"}),
    ),
}


@pytest.mark.parametrize("name", MENDED)
def test_what_was_broken_is_sent_valid(name: str) -> None:
    fmt, body = MENDED[name]
    assert judge(fmt, body, PLAIN) == VALID


TOLD: dict[str, tuple[Payload, str]] = {
    "a role that is a list": (chat({"role": ["user"], "content": "x"}), "unknown role a list (at messages[0].role)"),
    "a role nested 3,000 levels deep": (chat({"role": nested(3_000), "content": "x"}), "nested too deeply"),
    "tools that are a number": (chat(ASK, tools=5), "tools must be a list, not a number"),
    "a tool that is a text": (chat(ASK, tools=["x"]), "tools[0] must be an object, not 'x'"),
    "a tool without a name": (chat(ASK, tools=[{"type": "function"}]), "tools[0] needs a function with a name"),
    "a schema that is not an object": (
        claude(("user", [MARKED]), tools=[{"name": "f", "input_schema": 5}]),
        "tools[0] has an input_schema that is not an object",
    ),
    "instructions that are a list": (responses(ASK, instructions=["x"]), "instructions must be text, not a list"),
    "system text that is a number": (claude(("user", [MARKED]), system=5), "system must be text or blocks, not int"),
    "system text without parts": (
        gemini(("user", {"text": "a"}), systemInstruction={}),
        "systemInstruction has no parts",
    ),
    "bytes": (chat({"role": "user", "content": b"x"}), "only text, numbers, true, false, null, lists and objects"),
    "a set in a schema": (chat(ASK, tools=[{"type": "f", "x": {"y": {1}}}]), "(at x.y)"),
    "a number of 5,000 digits": (chat({**ASK, "seed": 10**5_000}), "a number has too many digits (at seed)"),
    "a body nested 3,000 levels deep": (chat(ASK, metadata=nested(3_000)), "nested too deeply"),
    "a field that cannot be printed": ({"messages\ud83d": []}, "an object with messages?; expected"),
}


@pytest.mark.parametrize("name", TOLD)
def test_what_cannot_be_sent_is_told_in_one_line(name: str) -> None:
    body, line = TOLD[name]
    with pytest.raises(InputError) as raised:
        fit(body, budget=50_000)
    assert line in str(raised.value)
    assert judge("openai-chat", body, PLAIN) == REFUSED


def test_a_value_that_holds_itself_is_told_in_one_line() -> None:
    circle: dict[str, Any] = {"role": "user"}
    circle["content"] = [circle]
    with pytest.raises(WireError, match=r"holds itself|nested too deeply"):
        fit(chat(circle))
    with pytest.raises(WireError, match=r"holds itself|nested too deeply"):
        fit([circle])


# --- the attack itself ---------------------------------------------------------------------------


def test_a_finding_becomes_small_enough_to_read() -> None:
    body = chat(*[dict(ASK) for _ in range(30)], tools=None, metadata={"a": 1})
    finding = Finding("openai-chat", 0, "invalid: messages[3]: role", PLAIN, body)
    small = shrunk(
        finding,
        judge=lambda fmt, candidate, order: "invalid: messages[0]: role" if candidate.get("messages") else VALID,
    )
    assert len(json.dumps(small.body)) < 40

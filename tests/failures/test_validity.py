"""FAILURE_MODES B: requests that a provider refuses, as far as validation and repair answer for them."""

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from everlong.core import (
    CallId,
    History,
    Json,
    JsonObject,
    Message,
    Reasoning,
    Role,
    Text,
    ToolCall,
    ToolResult,
    decode,
    encode,
    encode_all,
    message_ref,
)
from everlong.wire import ANTHROPIC, FORMATS, GEMINI, OPENAI_CHAT, OPENAI_RESPONSES, problems, repair_history, valid
from everlong.wire.repair.arguments import repaired_arguments
from everlong.wire.repair.blanks import NO_OUTPUT
from everlong.wire.repair.pairs import NO_RESULT
from tests.core.build import assistant, calls, result, system, user

every_format = pytest.mark.parametrize("fmt", FORMATS)


def sent(fmt: str, history: Sequence[Message]) -> JsonObject:
    """What goes out after repair; it must be acceptable."""
    payload = FORMATS[fmt].write_history(repair_history(history, fmt).messages)
    assert problems(fmt, payload) == []
    return payload


def thinking(text: str) -> Reasoning:
    return Reasoning(text, signature=f"signed {text}")


def claude(*parts: Text | Reasoning | ToolCall) -> Message:
    return Message(Role.ASSISTANT, parts, origin="anthropic")


# --- B1 ------------------------------------------------------------------------------------------

BROKEN = {
    "an interrupted call": (user("u"), calls("a"), user("v")),
    "a crash in the middle of parallel calls": (user("u"), calls("a", "b", "c"), result("b")),
    "a trim that cut the call off": (result("a"), assistant("x"), user("u")),
    "results before their calls": (user("u"), result("a"), result("b"), calls("a", "b")),
    "one id for every call": (user("u"), calls("0", "0", "0"), result("0"), result("0"), result("0")),
    "ids counted from zero in every turn": (user("u"), calls("0"), result("0"), calls("0"), result("0"), calls("0")),
    "a user who does not wait": (user("u"), calls("a", "b"), result("a"), user("stop"), result("b")),
    "a result that was stored twice": (user("u"), calls("a"), result("a"), result("a"), assistant("x")),
    "nothing but an answer": (assistant("x"),),
    "nothing": (),
}


@every_format
@pytest.mark.parametrize("history", BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize("own", [False, True], ids=["foreign", "own"])
def test_B1_every_provider_accepts_what_was_broken(fmt: str, history: History, own: bool) -> None:
    stored = tuple(replace(message, origin=fmt if own else "") for message in history)
    before = encode_all(stored)
    sent(fmt, stored)
    assert encode_all(stored) == before, "what is stored is not touched"


def test_B1_an_interrupted_call_says_so_and_no_result_is_invented() -> None:
    repaired = repair_history((user("u"), calls("a"), user("v"))).messages
    assert repaired[2].results[0].text == NO_RESULT
    assert repaired[2].results[0].failed


def test_B1_what_is_dropped_can_be_found_again() -> None:
    history = (result("a", "the only copy"), user("u"))
    (edit,) = repair_history(history).edits
    assert edit.ref == message_ref(history[0])
    assert "the only copy" not in json.dumps(sent("openai-chat", history)), "a tool's words never become the user's"


@every_format
def test_B1_a_history_that_is_whole_comes_out_unchanged(fmt: str) -> None:
    history = (system("s"), user("u"), calls("a", "b"), result("a"), result("b"), assistant("x"), user("v"))
    assert repair_history(history, fmt).messages == history


# --- B2 ------------------------------------------------------------------------------------------


def five_turns() -> list[Message]:
    turns = []
    for number in range(1, 6):
        call = ToolCall(CallId(f"toolu_{number}"), "read", "{}")
        answer = Message(Role.TOOL, (ToolResult(call.id, (Text(f"file {number}"),)),), origin="anthropic")
        turns += [user(f"question {number}"), claude(thinking(f"thought {number}"), call), answer]
        turns.append(claude(thinking(f"afterthought {number}"), Text(f"answer {number}")))
    return turns


def blocks(payload: JsonObject, kind: str) -> list[JsonObject]:
    messages = payload["messages"]
    assert isinstance(messages, list)
    contents = [message["content"] for message in messages if isinstance(message, dict)]
    listed = [block for content in contents if isinstance(content, list) for block in content]
    return [block for block in listed if isinstance(block, dict) and block["type"] == kind]


@pytest.mark.parametrize("cut", range(21))
def test_B2_thinking_is_identical_or_absent_wherever_the_cut_falls(cut: int) -> None:
    turns = five_turns()
    whole = {block["signature"]: block for block in blocks(ANTHROPIC.write_history(turns), "thinking")}
    kept = blocks(sent("anthropic", [user("Summary of what came before."), *turns[cut:]]), "thinking")
    assert all(block == whole[block["signature"]] for block in kept)


def test_B2_an_open_tool_loop_keeps_its_block() -> None:
    turns = five_turns()[:-1]
    assert blocks(sent("anthropic", turns), "thinking")[-1]["thinking"] == "thought 5"
    interrupted = turns[:-1]
    assert blocks(sent("anthropic", interrupted), "thinking")[-1]["thinking"] == "thought 5"


@every_format
def test_B2_another_provider_does_not_get_the_signatures(fmt: str) -> None:
    foreign = [
        replace(message, origin="openai-chat" if fmt == "anthropic" else "anthropic") for message in five_turns()
    ]
    text = json.dumps(sent(fmt, foreign))
    assert "signed thought" not in text
    assert "answer 5" in text


def test_B2_what_is_left_of_a_turn_without_its_thinking_is_not_empty() -> None:
    kept = (user("u"), claude(thinking("fine"), Text("x")), user("v"))
    lost = Reasoning("lost its signature")
    history = (*kept, claude(lost), user("w"), claude(lost, Text("y")), user("z"))
    assert repair_history(history, "anthropic").messages == (*kept, user("w"), claude(Text("y")), user("z"))


def test_B2_a_turn_does_not_end_in_thinking() -> None:
    led = (user("u"), claude(thinking("first")), claude(Text("x")), user("v"))
    assert repair_history(led, "anthropic").messages == led, "the next message goes on with it"
    loose = (*led, claude(Text("y"), thinking("and then")), user("w"))
    assert repair_history(loose, "anthropic").messages == (*led, claude(Text("y")), user("w"))


# --- B3 ------------------------------------------------------------------------------------------


def deepseek(reasoning: str | None, call: str) -> JsonObject:
    function: Json = {"name": "read", "arguments": "{}"}
    message: JsonObject = {"role": "assistant", "content": "", "tool_calls": [_tool_call(call, function)]}
    return message if reasoning is None else message | {"reasoning_content": reasoning}


def _tool_call(call: str, function: Json) -> Json:
    return {"id": call, "type": "function", "function": function}


def test_B3_reasoning_of_a_tool_turn_is_sent_as_it_came_also_when_it_is_empty() -> None:
    raw = [
        {"role": "user", "content": "u"},
        deepseek("", "a"),
        {"role": "tool", "tool_call_id": "a", "content": "1"},
        deepseek("I go on.", "b"),
    ]
    messages = sent("openai-chat", [OPENAI_CHAT.read_message(message) for message in raw])["messages"]
    assert isinstance(messages, list)
    assert messages[:4] == raw


def test_B3_one_bad_turn_costs_nothing_but_that_turn() -> None:
    raw: list[JsonObject] = [
        {"role": "user", "content": "u"},
        deepseek("why", "a"),
        {"role": "tool", "tool_call_id": "a", "content": "1"},
        {"role": "assistant", "content": None, "reasoning_content": ""},
        {"role": "user", "content": "v"},
    ]
    messages = sent("openai-chat", [OPENAI_CHAT.read_message(message) for message in raw])["messages"]
    assert messages == raw[:3] + raw[4:]


# --- B4 ------------------------------------------------------------------------------------------

ITEMS: list[JsonObject] = [
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "u"}]},
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"},
    {"type": "function_call", "id": "fc_1", "call_id": "a", "name": "read", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "a", "output": "x"},
]


def test_B4_without_its_call_a_reasoning_item_goes_too() -> None:
    asked, reasoned, answer = OPENAI_RESPONSES.read_messages(ITEMS)
    without_call = reasoned.with_parts(tuple(part for part in reasoned.parts if not isinstance(part, ToolCall)))
    assert sent("openai-responses", (asked, without_call, answer))["input"] == ITEMS[:1]


def test_B4_without_its_reasoning_a_call_is_not_known_by_its_id() -> None:
    asked, reasoned, answer = OPENAI_RESPONSES.read_messages(ITEMS)
    without_reasoning = reasoned.with_parts(tuple(part for part in reasoned.parts if isinstance(part, ToolCall)))
    items = sent("openai-responses", (asked, without_reasoning, answer, user("v")))["input"]
    assert isinstance(items, list)
    call = {key: value for key, value in ITEMS[2].items() if key != "id"}
    assert items[:3] == [ITEMS[0], call, ITEMS[3]]


def test_B4_signatures_of_gemini_survive_a_repair() -> None:
    contents: list[JsonObject] = [
        {"role": "user", "parts": [{"text": "u"}]},
        {"role": "model", "parts": [{"functionCall": {"name": "read", "args": {}}, "thoughtSignature": "EqQB"}]},
        {"role": "user", "parts": [{"text": "never mind"}]},
    ]
    history = GEMINI.read_body({"contents": contents}).messages
    assert not valid("gemini", history)
    repaired = sent("gemini", history)["contents"]
    assert isinstance(repaired, list)
    assert repaired[:2] == contents[:2]


# --- B5 ------------------------------------------------------------------------------------------

FIXTURE = (
    user("one"),
    calls("a", "b"),
    result("a"),
    result("b"),
    assistant("two"),
    user("three"),
    calls("c"),
    result("c"),
    user("four"),
    assistant("five"),
)


@every_format
@pytest.mark.parametrize("role", [Role.USER, Role.SYSTEM, Role.ASSISTANT])
@pytest.mark.parametrize("index", range(len(FIXTURE) + 1))
def test_B5_a_compaction_at_any_index_is_accepted(fmt: str, role: Role, index: int) -> None:
    summary = Message(role, (Text("Summary of the conversation so far."),))
    repaired = repair_history((system("s"), summary, *FIXTURE[index:]), fmt).messages
    assert problems(fmt, FORMATS[fmt].write_history(repaired)) == []
    assert any(message.role is Role.USER for message in repaired)
    spoken = [message.text for message in repaired if message.text]
    assert spoken.index(summary.text) <= 2, "the summary stays in front of what was kept"
    assert spoken[0] == "s"


# --- B7 ------------------------------------------------------------------------------------------


@every_format
@pytest.mark.parametrize("left", ["", " \n\t"])
def test_B7_nothing_empty_is_left_behind(fmt: str, left: str) -> None:
    stripped = [
        user("u"),
        assistant(left),
        replace(calls("a"), parts=(Text(left), *calls("a").parts)),
        result("a", left),
        Message(Role.ASSISTANT, (Text("x"), Text(left))),
        user(left),
    ]
    for origin in ("", fmt):
        sent(fmt, [replace(message, origin=origin) for message in stripped])


def test_B7_an_empty_turn_goes_and_an_empty_result_says_so() -> None:
    empty: Json = [{"type": "text", "text": ""}]
    call = _tool_call("a", {"name": "read", "arguments": "{}"})
    raw: list[JsonObject] = [
        {"role": "user", "content": "u"},
        {"role": "assistant", "content": empty},
        {"role": "assistant", "content": empty, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "a", "content": ""},
    ]
    messages = sent("openai-chat", [OPENAI_CHAT.read_message(message) for message in raw])["messages"]
    assert messages == [raw[0], raw[2] | {"content": None}, raw[3] | {"content": NO_OUTPUT}]


# --- B8 ------------------------------------------------------------------------------------------

WRITE = json.dumps({"path": "src/app.py", "mode": 420, "text": 'print("x")\n' * 4_000, "tags": ["a", "b"]})


@pytest.mark.parametrize("kept", [1, 10, 25, 100, 5_000, len(WRITE) // 2, len(WRITE) - 12, len(WRITE) - 1])
def test_B8_arguments_cut_anywhere_are_json_again(kept: int) -> None:
    whole, cut = json.loads(WRITE), json.loads(repaired_arguments(WRITE[:kept]))
    assert set(cut) <= set(whole)
    for key, value in cut.items():
        said = whole[key]
        assert said == value or said[: len(value)] == value or key == "path"


def test_B8_a_cut_in_the_long_text_keeps_the_path_and_the_numbers() -> None:
    cut = json.loads(repaired_arguments(WRITE[:5_000]))
    assert (cut["path"], cut["mode"]) == ("src/app.py", 420)
    assert len(cut["text"]) > 3_500


@every_format
@pytest.mark.parametrize("stored", ["", '{"path": "a', "{'path': 'a'}", "null", "[1]", "nonsense", '{"a": NaN}'])
def test_B8_stored_arguments_that_are_broken_do_not_break_the_request(fmt: str, stored: str) -> None:
    for origin in ("", fmt):
        call = replace(calls("a", arguments=stored), origin=origin)
        sent(fmt, (user("u"), call, replace(result("a"), origin=origin), user("v")))


# --- B9 ------------------------------------------------------------------------------------------

HARD = "aé👩‍👩‍👧‍👦🇨🇳e\u0301😀中"


@every_format
@pytest.mark.parametrize("index", range(len(HARD.encode("utf-16-le")) // 2))
def test_B9_a_cut_through_any_sign_can_be_sent(fmt: str, index: int) -> None:
    cut = HARD.encode("utf-16-le")[: 2 * index].decode("utf-16-le", "surrogatepass")
    history = (
        user(f"u{cut}"),
        calls("a", arguments=json.dumps({"text": f"x{cut}"})),
        result("a", f"r{cut}"),
        Message(Role.ASSISTANT, (Text(f"t{cut}", extra=json.dumps({"note": cut})),), origin=fmt),
        user("v"),
    )
    json.dumps(sent(fmt, history), ensure_ascii=False).encode()
    (call,) = repair_history(history, fmt).messages[1].calls
    written = json.loads(call.arguments)["text"]
    assert written.encode().decode().startswith("x")


@every_format
def test_B9_a_stored_line_with_half_a_pair_loads_and_is_cleaned_before_sending(fmt: str) -> None:
    line = '{"role":"user","parts":[{"type":"text","text":"before \\ud83d after"}]}'
    message = decode(line)
    assert encode(message) == line, "what is stored stays as it is"
    assert "before \ufffd after" in json.dumps(sent(fmt, (message,)), ensure_ascii=False)


def test_B9_two_halves_that_belong_together_become_one_sign() -> None:
    assert repair_history((user("\ud83d\ude00"),)).messages == (user("😀"),)

"""What must not get lost, and must not be sent, when a conversation moves to another provider."""

import json
from typing import cast

import pytest
from hypothesis import given, settings

from everlong.core import CallId, JsonObject, Message, Part, Role, Text, ToolCall, ToolResult
from everlong.wire import ANTHROPIC, GEMINI, OPENAI_CHAT, problems
from everlong.wire.formats.gemini.messages import UNSIGNED_CALL, write_history
from tests.wire.conversations import chats, said_in


def ours(role: Role, *parts: Part) -> Message:
    return Message(role, parts)


def model(*parts: JsonObject) -> JsonObject:
    return {"role": "model", "parts": list(parts)}


def made(name: str, arguments: str = "{}", call: str = "") -> ToolCall:
    return ToolCall(CallId(call or name), name, arguments)


def answer(call: str, text: str = "x") -> ToolResult:
    return ToolResult(CallId(call), (Text(text),))


def contents_of(*history: Message, unsigned_call: str = "") -> list[JsonObject]:
    return cast("list[JsonObject]", write_history(history, unsigned_call=unsigned_call)["contents"])


SIGNED: dict[str, Message] = {
    "anthropic": ANTHROPIC.read_message(
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "c2VjcmV0"},
                {"type": "redacted_thinking", "data": "c2VjcmV0"},
            ],
        }
    ),
    "gemini": GEMINI.read_message(model({"text": "hm", "thought": True, "thoughtSignature": "c2VjcmV0"})),
    "openai-chat": OPENAI_CHAT.read_message({"role": "assistant", "content": "", "reasoning_content": "c2VjcmV0"}),
}


@pytest.mark.parametrize("fmt", SIGNED)
def test_B2_thinking_goes_back_whole_to_its_maker_and_to_nobody_else(fmt: str) -> None:
    message = SIGNED[fmt]
    renderers = {"anthropic": ANTHROPIC.write_message, "gemini": GEMINI.write_message}
    for target, render in renderers.items():
        rendered = render(message)
        assert ("c2VjcmV0" in json.dumps(rendered)) is (target == fmt)
        assert rendered == [] or target == fmt


@pytest.mark.parametrize("arguments", ['{"path": "a', "[1, 2]", "word", "", '{"a": 1}'], ids=repr)
def test_B8_arguments_reach_the_provider_as_an_object(arguments: str) -> None:
    history = (ours(Role.USER, Text("go")), ours(Role.ASSISTANT, made("f", arguments)), ours(Role.TOOL, answer("f")))
    assert problems("anthropic", ANTHROPIC.write_history(history)) == []
    assert problems("gemini", GEMINI.write_history(history)) == []


def test_B4_calls_of_another_model_can_carry_the_documented_placeholder() -> None:
    signed = model({"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "c2ln"})
    history = (
        ours(Role.ASSISTANT, Text("I"), made("f", call="1"), made("f", call="2")),
        ours(Role.TOOL, answer("1"), answer("2")),
        GEMINI.read_message(signed),
    )
    first, _, last = contents_of(*history, unsigned_call=UNSIGNED_CALL)
    signatures = [part.get("thoughtSignature") for part in cast("list[JsonObject]", first["parts"])]
    assert signatures == [None, UNSIGNED_CALL, None]
    assert last == signed
    assert UNSIGNED_CALL not in json.dumps(contents_of(*history))


@settings(max_examples=100, deadline=None)
@given(chats)
def test_J5_anthropic_gets_all_that_a_chat_of_another_format_says(chat: list[JsonObject]) -> None:
    history = tuple(OPENAI_CHAT.read_message(message) for message in [{"role": "system", "content": "sys"}, *chat])
    sent = ANTHROPIC.write_history(history)
    assert problems("anthropic", sent) == []
    assert sent["system"] == [{"type": "text", "text": "sys"}]
    text = json.dumps(sent)
    assert [said for said in said_in(chat) if said not in text] == []
    assert "secret" not in text
    arguments: dict[str, str] = {}
    for message in cast("list[JsonObject]", sent["messages"]):
        for item in cast("list[JsonObject]", message["content"]):
            if item["type"] == "tool_use":
                arguments[item["id"]] = item["input"]["n"]
            elif item["type"] == "tool_result":
                assert item["content"][0]["text"] == arguments[item["tool_use_id"]].replace("arg", "result")


@settings(max_examples=100, deadline=None)
@given(chats)
def test_J5_gemini_gets_all_that_a_chat_of_another_format_says(chat: list[JsonObject]) -> None:
    history = tuple(OPENAI_CHAT.read_message(message) for message in [{"role": "system", "content": "sys"}, *chat])
    sent = GEMINI.write_history(history)
    assert problems("gemini", sent) == []
    assert sent["systemInstruction"] == {"parts": [{"text": "sys"}]}
    text = json.dumps(sent)
    assert [said for said in said_in(chat) if said not in text] == []
    assert "secret" not in text
    waiting: list[tuple[str, str]] = []
    for content in cast("list[JsonObject]", sent["contents"]):
        for part in content["parts"]:
            if "functionCall" in part:
                waiting.append((part["functionCall"]["name"], part["functionCall"]["args"]["n"]))
            elif "functionResponse" in part:
                name, argument = waiting.pop(0)
                assert part["functionResponse"]["name"] == name
                assert part["functionResponse"]["response"] == {"output": argument.replace("arg", "result")}

"""Failure modes B2, B3, B4: what providers want back with their calls, through clients that drop it."""

import json
from typing import Any

from everlong.llm import Answer, ReceivedRequest
from everlong.llm.scripted.script import reply_of
from everlong.wire import FORMATS, Usage, format_named
from tests.gateway.raw_upstream import Talk, response
from tests.gateway.running import RunningGateway
from tests.gateway.talking import PATHS, RawClient, body_of, talk_through
from tests.wire.opaque_parts import opaque_parts, restored, restored_items

Fields = dict[str, Any]
CALLS = (("read_file", '{"path": "a.py"}'), ("read_file", '{"path": "b.py"}'))


def _streamed(fmt: str, answer: Answer) -> list[Any]:
    """The answer as the gateway hears it, as a later request would carry it."""
    asked = ReceivedRequest(number=1, model="m", messages=(), fmt=fmt)
    answering = FORMATS[fmt].reader()
    for _, event in FORMATS[fmt].writer.events(reply_of(asked, answer)):
        if isinstance(event, dict):
            answering.take(event)
    return format_named(fmt).server.tool.resent(answering.finished().message)


def test_B2_thinking_a_client_dropped_comes_back_whole_signature_and_place() -> None:
    (full,) = _streamed("anthropic", Answer(thinking="Two files to read.", text="I read both.", calls=CALLS))
    kinds = [block["type"] for block in full["content"]]
    assert kinds == ["thinking", "text", "tool_use", "tool_use"]
    bare = {"role": "assistant", "content": full["content"][1:]}
    assert restored("anthropic", bare, opaque_parts("anthropic", full).get) == full


def test_B2_thinking_that_a_client_changed_is_not_mixed_with_the_original() -> None:
    (full,) = _streamed("anthropic", Answer(thinking="Two files to read.", calls=CALLS))
    cut = {"type": "thinking", "thinking": "Two", "signature": "cut"}
    own = {"role": "assistant", "content": [cut, *full["content"][1:]]}
    assert restored("anthropic", own, opaque_parts("anthropic", full).get) is own


def test_B3_reasoning_content_comes_back_in_tool_turns_of_those_who_sent_it() -> None:
    (full,) = _streamed("openai-chat", Answer(thinking="First a.py.", calls=CALLS))
    assert full["reasoning_content"] == "First a.py."
    bare = {name: value for name, value in full.items() if name != "reasoning_content"}
    assert restored("openai-chat", bare, opaque_parts("openai-chat", full).get) == full


def test_B3_an_empty_reasoning_content_comes_back_empty() -> None:
    (call,) = _streamed("openai-chat", Answer(calls=CALLS[:1]))
    full = call | {"reasoning_content": ""}
    assert restored("openai-chat", call, opaque_parts("openai-chat", full).get) == full


def test_B3_a_provider_that_never_sends_the_field_never_gets_it() -> None:
    (full,) = _streamed("openai-chat", Answer(text="I read both.", calls=CALLS))
    parts = opaque_parts("openai-chat", full)
    assert parts == {}
    assert restored("openai-chat", full, parts.get) is full


def test_B3_answers_without_calls_need_nothing_back() -> None:
    (full,) = _streamed("openai-chat", Answer(thinking="Easy.", text="Four.", usage=Usage()))
    assert opaque_parts("openai-chat", full) == {}


def test_B4_thought_signatures_survive_three_tool_rounds_of_a_client_that_drops_them() -> None:
    kept: dict[str, str] = {}
    history: list[Fields] = [{"role": "user", "content": "Look around."}]
    for number in range(3):
        signed = {"google": {"thought_signature": f"signed-{number}"}}
        call = {"id": f"call_{number}", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        full: Fields = {"role": "assistant", "content": None, "tool_calls": [call | {"extra_content": signed}]}
        kept |= opaque_parts("openai-chat", full)
        history.append({"role": "assistant", "content": None, "tool_calls": [call]})
        history.append({"role": "tool", "tool_call_id": f"call_{number}", "content": "seen"})
        sent = [restored("openai-chat", message, kept.get) for message in history]
        signatures = [m["tool_calls"][0]["extra_content"] for m in sent if m["role"] == "assistant"]
        assert signatures == [{"google": {"thought_signature": f"signed-{at}"}} for at in range(number + 1)]


def test_B4_reasoning_items_come_back_before_the_calls_they_led_to() -> None:
    items = _streamed("openai-responses", Answer(thinking="Two files.", text="I read both.", calls=CALLS))
    assert items[0]["type"] == "reasoning"
    asked = {"role": "user", "content": "Read them."}
    whole = restored_items([asked, *items[1:]], opaque_parts("openai-responses", items).get)
    assert whole == [asked, *items]


def test_B3_another_model_does_not_get_what_this_one_sent() -> None:
    """A client that goes on with another model in the middle: it would not know the field, or refuse the signature."""
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    answer = {"role": "assistant", "content": None, "tool_calls": [call], "reasoning_content": "First I look."}
    bodies: list[Fields] = []

    async def script(talk: Talk, _head: bytes, body: bytes) -> None:
        bodies.append(json.loads(body))
        whole = {"id": "1", "object": "chat.completion", "choices": [{"index": 0, "message": answer}]}
        whole["choices"][0]["finish_reason"] = "tool_calls"
        await talk.say(response(json.dumps(whole).encode(), more=("content-type: application/json",)))

    said: list[Fields] = [{"role": "user", "content": "Look."}]

    async def client(gateway: RunningGateway) -> None:
        async with RawClient(gateway.port) as client:
            for model in ("deepseek-chat", "deepseek-chat", "gpt-4o"):
                client.ask(PATHS["openai-chat"], body_of("openai-chat", said).replace(b"gpt-4o", model.encode()))
                assert (await client.answer())[0] == 200
                said[1:] = [
                    {"role": "assistant", "content": None, "tool_calls": [call]},
                    {"role": "tool", "tool_call_id": "c1", "content": "Seen."},
                ]

    talk_through(script, client)
    assert [body["messages"][1].get("reasoning_content") for body in bodies[1:]] == ["First I look.", None]

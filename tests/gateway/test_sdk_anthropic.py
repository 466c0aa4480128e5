"""The Anthropic SDK as it is, with another base URL: conversations with tools that outgrow the window."""

from collections.abc import Iterator
from typing import Any

import anthropic
import pytest

from everlong.llm import Answer, ReceivedRequest, ScriptedServer, reads_files
from everlong.llm.scripted.script import Script
from tests.engine.authors import both
from tests.gateway.running import RunningGateway
from tests.gateway.test_sdk_openai import FUNCTION, TURNS, WINDOWS, question, result, well_served

TOOL: Any = {
    "name": FUNCTION["name"],
    "description": FUNCTION["description"],
    "input_schema": FUNCTION["parameters"],
    "cache_control": {"type": "ephemeral"},
}


def thoughtful(script: Script) -> Script:
    """The same script, thinking before each answer."""

    def thinking(asked: ReceivedRequest) -> Answer:
        answer = script(asked)
        assert isinstance(answer, Answer)
        return Answer(text=answer.text, calls=answer.calls, thinking=f"What does step {asked.number} need?")

    return thinking


@pytest.fixture(params=WINDOWS.values(), ids=WINDOWS)
def server(request: pytest.FixtureRequest) -> Iterator[ScriptedServer]:
    with ScriptedServer(both(thoughtful(reads_files(2))), window=request.param) as server:
        yield server


@pytest.fixture
def client(server: ScriptedServer) -> Iterator[anthropic.Anthropic]:
    with (
        RunningGateway(upstream=server.url) as gateway,
        anthropic.Anthropic(base_url=gateway.address, api_key="k", max_retries=0) as client,
    ):
        yield client


def results(content: list[Any]) -> list[Any]:
    calls = [block for block in content if block.type == "tool_use"]
    return [{"type": "tool_result", "tool_use_id": call.id, "content": result(call.id)} for call in calls]


def test_messages(client: anthropic.Anthropic, server: ScriptedServer) -> None:
    messages: list[Any] = []
    said = 0
    for turn in range(TURNS):
        messages.append({"role": "user", "content": question(turn)})
        while True:
            answer = client.messages.create(
                model="claude-opus-4-5", max_tokens=500, system="Work carefully.", messages=messages, tools=[TOOL]
            )
            said += 1
            messages.append({"role": "assistant", "content": answer.content})
            found = results(answer.content)
            if not found:
                break
            messages.append({"role": "user", "content": found})
        assert answer.stop_reason == "end_turn"
    well_served(server, said)


def test_messages_streaming(client: anthropic.Anthropic, server: ScriptedServer) -> None:
    system: Any = [{"type": "text", "text": "Work carefully.", "cache_control": {"type": "ephemeral"}}]
    messages: list[Any] = []
    said = 0
    for turn in range(TURNS):
        messages.append({"role": "user", "content": question(turn)})
        while True:
            with client.messages.stream(
                model="claude-opus-4-5", max_tokens=500, system=system, messages=messages, tools=[TOOL]
            ) as stream:
                answer = stream.get_final_message()
            said += 1
            messages.append({"role": "assistant", "content": answer.content})
            found = results(answer.content)
            if not found:
                break
            messages.append({"role": "user", "content": found})
        assert answer.stop_reason == "end_turn"
    well_served(server, said)

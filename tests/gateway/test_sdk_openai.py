"""The OpenAI SDK as it is, with another base URL: conversations with tools that outgrow the window."""

import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from everlong.llm import ReceivedRequest, ScriptedServer, Window, reads_files
from everlong.wire import problems
from tests.engine.authors import both, is_asked_to_summarise
from tests.engine.talking import pages
from tests.gateway.running import RunningGateway

WINDOWS = {"a window that is told": Window(16_000, told=True), "a window that refuses": Window(16_000)}
TURNS = 9
FUNCTION = {
    "name": "read_file",
    "description": "Reads a file.",
    "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
}


@pytest.fixture(params=WINDOWS.values(), ids=WINDOWS)
def server(request: pytest.FixtureRequest) -> Iterator[ScriptedServer]:
    with ScriptedServer(both(reads_files(2)), window=request.param) as server:
        yield server


@pytest.fixture
def client(server: ScriptedServer) -> Iterator[openai.OpenAI]:
    with (
        RunningGateway(upstream=server.url) as gateway,
        openai.OpenAI(base_url=gateway.url, api_key="k", max_retries=0) as client,
    ):
        yield client


def question(turn: int) -> str:
    return f'Question {turn}: what\tdoes "file" {turn} say? 第{turn}个'


def result(call: str) -> str:
    return pages(sum(map(ord, call)), 110)


def well_served(server: ScriptedServer, said: int) -> None:
    """It grew far past the window; every request was valid, what was refused came again smaller and was accepted,
    and each question arrived as it was asked."""
    window = server.model.window.tokens
    clients = [asked for asked in server.requests if not is_asked_to_summarise(asked)]
    refused = [asked for asked in clients if not fits(asked, window)]
    for asked in server.requests:
        assert problems(asked.fmt, json.loads(asked.body)) == []
    assert len(refused) == (0 if server.model.window.told else 1), "one refusal teaches the window"
    assert len(clients) - len(refused) == said
    questions = [next(m.text for m in reversed(asked.messages) if m.text.startswith("Question")) for asked in clients]
    assert list(dict.fromkeys(questions)) == [question(turn) for turn in range(TURNS)]
    assert len(clients[-1].messages) < 4 * TURNS, "much was left out at the end"


def fits(asked: ReceivedRequest, window: int) -> bool:
    return asked.tokens + (asked.max_tokens or 0) <= window


def test_chat_completions(client: openai.OpenAI, server: ScriptedServer) -> None:
    messages: list[Any] = [{"role": "system", "content": "Work carefully."}]
    said = 0
    for turn in range(TURNS):
        messages.append({"role": "user", "content": question(turn)})
        while True:
            answer = client.chat.completions.create(
                model="gpt-4o", messages=messages, tools=[{"type": "function", "function": FUNCTION}]
            )
            said += 1
            message = answer.choices[0].message
            messages.append(message)
            if not message.tool_calls:
                break
            messages += [
                {"role": "tool", "tool_call_id": call.id, "content": result(call.id)} for call in message.tool_calls
            ]
        assert message.content is not None
        assert message.content.startswith("Done")
    well_served(server, said)


def test_chat_completions_streaming(client: openai.OpenAI, server: ScriptedServer) -> None:
    messages: list[Any] = [{"role": "system", "content": "Work carefully."}]
    said = 0
    for turn in range(TURNS):
        messages.append({"role": "user", "content": question(turn)})
        while True:
            with client.chat.completions.stream(
                model="gpt-4o", messages=messages, tools=[{"type": "function", "function": FUNCTION}]
            ) as stream:
                message = stream.get_final_completion().choices[0].message
            said += 1
            messages.append(message.model_dump(exclude_none=True, exclude={"parsed"}))
            if not message.tool_calls:
                break
            messages += [
                {"role": "tool", "tool_call_id": call.id, "content": result(call.id)} for call in message.tool_calls
            ]
        assert message.content is not None
        assert message.content.startswith("Done")
    well_served(server, said)


def test_responses(client: openai.OpenAI, server: ScriptedServer) -> None:
    items: list[Any] = []
    said = 0
    for turn in range(TURNS):
        items.append({"role": "user", "content": question(turn)})
        while True:
            answer = client.responses.create(
                model="gpt-4o",
                instructions="Work carefully.",
                input=items,
                tools=[{"type": "function", **FUNCTION}],  # type: ignore[list-item]
                store=False,
            )
            said += 1
            items += answer.output
            calls = [item for item in answer.output if item.type == "function_call"]
            if not calls:
                break
            items += [
                {"type": "function_call_output", "call_id": call.call_id, "output": result(call.call_id)}
                for call in calls
            ]
        assert answer.output_text.startswith("Done")
    well_served(server, said)


def test_responses_streaming(client: openai.OpenAI, server: ScriptedServer) -> None:
    items: list[Any] = []
    said = 0
    for turn in range(TURNS):
        items.append({"role": "user", "content": question(turn)})
        while True:
            stream = client.responses.create(
                model="gpt-4o",
                instructions="Work carefully.",
                input=items,
                tools=[{"type": "function", **FUNCTION}],  # type: ignore[list-item]
                store=False,
                stream=True,
            )
            events = list(stream)
            said += 1
            assert events[-1].type == "response.completed"
            output = events[-1].response.output
            items += [item.model_dump(exclude_none=True) for item in output]
            calls = [item for item in output if item.type == "function_call"]
            if not calls:
                break
            items += [
                {"type": "function_call_output", "call_id": call.call_id, "output": result(call.call_id)}
                for call in calls
            ]
        assert events[-1].response.output_text.startswith("Done")
    well_served(server, said)

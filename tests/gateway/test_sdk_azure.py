"""The OpenAI SDK for Azure, and Anthropic's for Foundry, with another address: conversations that outgrow a window."""

import json
from collections.abc import Callable, Iterator
from typing import Any
from urllib.request import urlopen

import anthropic
import openai
import pytest

from everlong.llm import ScriptedServer, Window, echo, reads_files
from everlong.wire import problems
from tests.engine.authors import both, is_asked_to_summarise
from tests.engine.talking import pages
from tests.gateway.resending import post
from tests.gateway.running import RunningGateway
from tests.sdk_clients import closed_later

DEPLOYMENT = "my-gpt4o"
VERSION = "2024-10-21"
TURNS = 9
TOOLS: Any = [
    {
        "type": "function",
        "function": {
            "name": "read_file",
            "description": "Reads a file.",
            "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
        },
    }
]
#: How the address of the server may be written. Not every server of these paths has those of OpenAI.
WRITTEN = ("", "/openai", "/openai/v1", "/v1")


@pytest.fixture(params=WRITTEN)
def server(request: pytest.FixtureRequest) -> Iterator[tuple[ScriptedServer, str]]:
    with ScriptedServer(both(reads_files(2)), window=Window(16_000)) as server:
        yield server, server.address + request.param


def azure(gateway: RunningGateway, **options: Any) -> openai.AzureOpenAI:
    return closed_later(
        openai.AzureOpenAI(
            azure_endpoint=gateway.address, api_version=VERSION, api_key="azure-key-1", max_retries=0, **options
        )
    )


def talk(client: openai.OpenAI) -> int:
    """Turns with tools that come to three windows; how many answers there were."""
    messages: list[Any] = [{"role": "system", "content": "Work carefully."}]
    said = 0
    for turn in range(TURNS):
        messages.append({"role": "user", "content": f"Question {turn}: what does file {turn} say?"})
        while True:
            message = (
                client.chat.completions.create(model=DEPLOYMENT, messages=messages, tools=TOOLS).choices[0].message
            )
            said += 1
            messages.append(message)
            if not message.tool_calls:
                break
            messages += [
                {"role": "tool", "tool_call_id": call.id, "content": pages(sum(map(ord, call.id)), 110)}
                for call in message.tool_calls
            ]
        assert message.content is not None
        assert message.content.startswith("Done")
    return said


def test_a_deployment_outgrows_its_window(server: tuple[ScriptedServer, str]) -> None:
    scripted, address = server
    with RunningGateway(upstream=address) as gateway, azure(gateway) as client:
        said = talk(client)
    asked = [each for each in scripted.requests if not is_asked_to_summarise(each)]
    accepted = [each for each in asked if each.tokens + (each.max_tokens or 0) <= 16_000]
    assert len(accepted) == said
    assert len(asked) - len(accepted) == 1, "one refusal teaches the window"
    for each in scripted.requests:
        assert problems(each.fmt, json.loads(each.body)) == []
    assert {each.model for each in scripted.requests} == {DEPLOYMENT}
    assert {each.headers["api-key"] for each in scripted.requests} == {"azure-key-1"}
    assert any(map(is_asked_to_summarise, scripted.requests)), "the gateway's own calls go the same way"
    assert len(asked[-1].messages) < 4 * TURNS, "much was left out at the end"


def stream_chat(client: openai.AzureOpenAI) -> str:
    with client.chat.completions.stream(
        model=DEPLOYMENT, messages=[{"role": "user", "content": "Say fish."}]
    ) as stream:
        return stream.get_final_completion().choices[0].message.content or ""


def respond(client: openai.AzureOpenAI) -> str:
    return client.responses.create(model=DEPLOYMENT, input="Say fish.").output_text


def chat_v1(client: openai.AzureOpenAI) -> str:
    with openai.OpenAI(base_url=str(client.base_url) + "v1", api_key="azure-key-1", max_retries=0) as plain:
        answer = plain.chat.completions.create(model=DEPLOYMENT, messages=[{"role": "user", "content": "Say fish."}])
    return answer.choices[0].message.content or ""


@pytest.mark.parametrize("ask", [stream_chat, respond, chat_v1])
def test_every_path_reaches_the_same_path_there(ask: Callable[[openai.AzureOpenAI], str]) -> None:
    with (
        ScriptedServer(echo) as server,
        RunningGateway(upstream=server.address) as gateway,
        azure(gateway) as client,
    ):
        assert "fish" in ask(client)
    assert [each.model for each in server.requests] == [DEPLOYMENT]


def test_the_version_of_the_api_goes_along_and_the_answer_says_that_it_is_managed() -> None:
    with ScriptedServer(echo) as server, RunningGateway(upstream=server.address) as gateway, azure(gateway) as client:
        raw = client.chat.completions.with_raw_response.create(
            model=DEPLOYMENT, messages=[{"role": "user", "content": "Say fish."}]
        )
    assert raw.headers["x-everlong-managed"] == "yes"


def test_foundry() -> None:
    with (
        ScriptedServer(echo) as server,
        RunningGateway(upstream=server.address) as gateway,
        anthropic.AnthropicFoundry(base_url=f"{gateway.address}/anthropic", api_key="k", max_retries=0) as client,
    ):
        said = client.messages.create(
            model="claude-opus-4-5", max_tokens=100, messages=[{"role": "user", "content": "Say fish."}]
        )
    assert "fish" in str(said.content[0])
    assert [each.fmt for each in server.requests] == ["anthropic"]


def test_what_is_no_conversation_is_passed_on_and_told() -> None:
    path = f"/openai/deployments/ada%2F2/embeddings?api-version={VERSION}"
    with ScriptedServer(echo) as server, RunningGateway(upstream=server.address) as gateway:
        with urlopen(f"{gateway.address}/openai/models?api-version={VERSION}") as listed:
            assert [row["id"] for row in json.load(listed)["data"]] == ["scripted"]
            assert listed.headers["x-everlong-managed"].startswith("no; ")
        status, headers, _ = post(gateway, path, b'{"input": "x"}')
    assert status == 404, "the scripted server has no such path"
    assert headers["x-everlong-managed"].startswith("no; ")


def test_without_an_azure_upstream_the_answer_says_what_is_missing() -> None:
    with RunningGateway(upstream="anthropic") as gateway, azure(gateway) as client:
        with pytest.raises(openai.NotFoundError, match=r"https://RESOURCE\.openai\.azure\.com") as refused:
            client.chat.completions.create(model=DEPLOYMENT, messages=[{"role": "user", "content": "Say fish."}])
        assert "azure-key-1" not in str(refused.value)


# --- what stands behind the name of a deployment ---------------------------------------------------


@pytest.mark.parametrize(
    ("told", "window", "source"),
    [
        ({}, None, "default"),
        ({DEPLOYMENT: "gpt-4.1"}, 1_047_576, "registry"),
        ({DEPLOYMENT.upper(): "gpt-4.1"}, 1_047_576, "registry"),
        ({DEPLOYMENT: 64_000}, 64_000, "user"),
        ({DEPLOYMENT: {"model": "gpt-4.1", "window": 300_000}}, 300_000, "user"),
    ],
)
@pytest.mark.parametrize("path", [f"/openai/deployments/{DEPLOYMENT}/chat/completions", "/v1/chat/completions"])
def test_the_operator_says_what_a_deployment_is(path: str, told: Any, window: int | None, source: str) -> None:
    body = json.dumps({"model": DEPLOYMENT, "messages": [{"role": "user", "content": "Say fish."}]}).encode()
    with ScriptedServer(echo) as server, RunningGateway(upstream=server.address, deployments=told) as gateway:
        _, headers, _ = post(gateway, path, body)
        with urlopen(f"{gateway.address}/everlong/requests/{headers['x-everlong-request']}") as shown:
            report = json.load(shown)
    assert (report["window"]["tokens"], report["window"]["source"]) == (window, source)
    assert report["model"] == DEPLOYMENT
    assert [each.model for each in server.requests] == [DEPLOYMENT]


def test_summaries_are_asked_of_the_deployment() -> None:
    told = {DEPLOYMENT: {"model": "gpt-4o", "window": 16_000}}
    with (
        ScriptedServer(both(reads_files(2)), window=Window(16_000)) as server,
        RunningGateway(upstream=server.address, deployments=told) as gateway,
        openai.OpenAI(base_url=gateway.url, api_key="k", max_retries=0) as client,
    ):
        talk(client)
    assert any(map(is_asked_to_summarise, server.requests))
    assert {each.model for each in server.requests} == {DEPLOYMENT}

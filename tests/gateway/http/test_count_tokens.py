"""J5: `/v1/messages/count_tokens` works for every model, and counts as everlong does."""

import json
from dataclasses import replace
from typing import Any

import anthropic
import pytest

from everlong import count
from everlong.gateway.upstreams.routing import Routes
from everlong.llm import ScriptedServer
from tests.gateway.raw_upstream import Talk, response
from tests.gateway.resending import post
from tests.gateway.running import RunningGateway
from tests.gateway.talking import RawClient, talk_through
from tests.sdk_clients import closed_later

TOOLS = [{"name": "read_file", "description": "Reads.", "input_schema": {"type": "object", "properties": {}}}]
SAID: list[Any] = [
    {"role": "user", "content": "How many boats are at the pier? 码头有几条船？"},
    {"role": "assistant", "content": [{"type": "text", "text": "Three."}]},
    {"role": "user", "content": [{"type": "text", "text": "And ropes?"}]},
]
MODELS = ["gpt-4o", "deepseek-chat", "claude-opus-4-5", "qwen3-32b", "a-model-that-nobody-knows"]


@pytest.mark.parametrize("model", MODELS)
def test_J5_count_tokens_works_for_every_model_and_equals_count(model: str) -> None:
    body: dict[str, Any] = {"model": model, "messages": SAID, "system": "Be brief.", "tools": TOOLS}
    with ScriptedServer() as upstream, RunningGateway(upstream=upstream.url) as gateway:
        client = closed_later(anthropic.Anthropic(base_url=gateway.address, api_key="k", max_retries=0))
        counted = client.messages.count_tokens(**body)
        assert counted.input_tokens == count(body, model=model)
        assert upstream.requests == []  # nothing was sent to be answered


WRONG = {
    "not JSON": (b"hello", 400),
    "no model": (json.dumps({"messages": SAID}).encode(), 400),
    "messages that are text": (b'{"model": "gpt-4o", "messages": "x"}', 400),
    "a message that is none": (b'{"model": "gpt-4o", "messages": [7]}', 400),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_counted_is_told_in_anthropics_form(name: str) -> None:
    body, status = WRONG[name]
    with RunningGateway(upstream="http://127.0.0.1:9/v1") as gateway:
        got, headers, answer = post(gateway, "/v1/messages/count_tokens", body)
    assert got == status
    assert json.loads(answer)["type"] == "error"
    assert "x-everlong-added-ms" in headers


def test_the_provider_is_asked_about_the_model_as_it_knows_it() -> None:
    asked: list[dict[str, Any]] = []

    async def script(talk: Talk, _head: bytes, body: bytes) -> None:
        asked.append(json.loads(body))
        await talk.say(response(b'{"input_tokens": 7}'))

    async def client(gateway: RunningGateway) -> bytes:
        (upstream,) = gateway.services.routes.upstreams
        endpoint = replace(upstream.endpoint, provider="anthropic")
        known = replace(upstream, name="anthropic", endpoint=endpoint)
        gateway.services.routes = Routes([known], stripping=frozenset({"anthropic"}))
        async with RawClient(gateway.port) as client:
            body = {"model": "anthropic/claude-opus-4-5", "messages": SAID}
            client.ask("/v1/messages/count_tokens", json.dumps(body).encode())
            return (await client.answer())[2]

    assert talk_through(script, client) == b'{"input_tokens": 7}'
    assert asked == [{"model": "claude-opus-4-5", "messages": SAID}]

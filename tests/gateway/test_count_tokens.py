"""J5: `/v1/messages/count_tokens` works for every model, and counts as everlong does."""

import json
from typing import Any

import anthropic
import pytest

from everlong import count
from everlong.llm.scripted.server import ScriptedServer
from tests.gateway.resending import post
from tests.gateway.running import RunningGateway

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
        client = anthropic.Anthropic(base_url=gateway.address, api_key="k", max_retries=0)
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

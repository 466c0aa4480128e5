"""Base URLs as people write them: with the version, without it, with it twice; and what a wrong one is told."""

import json
import logging
from http.client import HTTPConnection
from typing import Any

import anthropic
import openai
import pytest

from everlong.llm import ScriptedServer, Window
from tests.gateway.resending import post
from tests.gateway.running import RunningGateway

SAID = {"model": "gpt-4o", "messages": [{"role": "user", "content": "How many boats are at the pier?"}]}
PAGES = [{"role": "user", "content": f"Note {number}: " + f"pier {number} has boats. " * 400} for number in range(12)]


def ask(gateway: RunningGateway, path: str, method: str = "GET", body: Any = None) -> tuple[int, dict[str, str], Any]:
    connection = HTTPConnection("127.0.0.1", gateway.port, timeout=60)
    try:
        sent = None if body is None else json.dumps(body).encode()
        connection.request(method, path, sent, {"content-type": "application/json"})
        answer = connection.getresponse()
        headers = {name.lower(): value for name, value in answer.getheaders()}
        return answer.status, headers, json.loads(answer.read() or b"null")
    finally:
        connection.close()


@pytest.mark.parametrize("base", ["", "/v1", "/v1/"])
def test_an_anthropic_client_is_managed_whatever_its_base_url_ends_with(base: str) -> None:
    with (
        ScriptedServer(window=Window(8_000, told=True), models=("claude-opus-4-5",)) as server,
        RunningGateway(upstream=server.url) as gateway,
        anthropic.Anthropic(base_url=gateway.address + base, api_key="k", max_retries=0) as client,
    ):
        raw = client.messages.with_raw_response.create(
            model="claude-opus-4-5",
            max_tokens=200,
            messages=PAGES,  # type: ignore[arg-type]
        )
        assert raw.headers["x-everlong-managed"] == "yes"
        assert int(raw.headers["x-everlong-tokens-after"]) <= 8_000 < int(raw.headers["x-everlong-tokens-before"])
        counted = client.messages.count_tokens(model="claude-opus-4-5", messages=PAGES)  # type: ignore[arg-type]
        assert counted.input_tokens > 8_000


@pytest.mark.parametrize("base", ["", "/v1", "/v1/v1"])
def test_an_openai_client_is_managed_whatever_its_base_url_ends_with(base: str) -> None:
    with (
        ScriptedServer(window=Window(8_000, told=True), models=("gpt-4o",)) as server,
        RunningGateway(upstream=server.url) as gateway,
        openai.OpenAI(base_url=gateway.address + base, api_key="k", max_retries=0) as client,
    ):
        raw = client.chat.completions.with_raw_response.create(model="gpt-4o", messages=PAGES)  # type: ignore[arg-type]
        assert raw.headers["x-everlong-managed"] == "yes"
        assert int(raw.headers["x-everlong-tokens-after"]) <= 8_000
        assert [model.id for model in client.models.list()] == ["gpt-4o"]


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("/v1/embeddings", "/v1/embeddings"),
        ("/embeddings", "/v1/embeddings"),
        ("/v1/v1/embeddings", "/v1/embeddings"),
        ("/v1/models/org%2Fname", "/v1/models/org%2Fname"),
        ("/models/claude@20250514", "/v1/models/claude@20250514"),
        ("/files/file-1/content", "/v1/files/file-1/content"),
    ],
)
def test_what_is_passed_on_reaches_its_path_and_says_that_it_is_not_managed(path: str, asked: str) -> None:
    with RunningGateway() as echo, RunningGateway(upstream=f"{echo.address}/everlong-is-not-here/v1") as gateway:
        # The upstream is a gateway that knows no such path: it repeats it in its error.
        status, headers, told = ask(gateway, path)
        assert (status, headers["x-everlong-managed"]) == (404, "no; not a conversation that the gateway knows")
        assert "/everlong-is-not-here" + asked.replace("%2F", "/") in told["error"]["message"]


@pytest.mark.parametrize(("mode", "why"), [("off", "no; mode off"), ("auto", "yes")])
def test_every_answer_says_whether_it_was_managed(mode: str, why: str) -> None:
    with ScriptedServer() as server, RunningGateway(upstream=server.url) as gateway:
        body = json.dumps(SAID).encode()
        _, headers, _ = post(gateway, "/v1/chat/completions", body, {"x-everlong-mode": mode})
        assert headers["x-everlong-managed"] == why
        recent = ask(gateway, "/everlong/requests")[2][0]
        assert recent["unmanaged"] == why.removeprefix("no; ").removeprefix("yes")


def test_unmanaged_requests_are_counted_and_logged_once_for_each_path_and_reason(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING, logger="everlong.gateway")
    with ScriptedServer() as server, RunningGateway(upstream=server.url) as gateway:
        for _ in range(3):
            post(gateway, "/v1/chat/completions", json.dumps(SAID).encode(), {"x-everlong-mode": "off"})
            post(gateway, "/v1/completions", json.dumps({"model": "gpt-4o", "prompt": "hi"}).encode())
        post(gateway, "/v1/chat/completions", json.dumps(SAID).encode())
        metrics = gateway.services.metrics.written()[0].decode()
    logged = [record.getMessage() for record in caplog.records if "forwarded unchanged" in record.getMessage()]
    assert sorted(logged) == [
        "requests to '/v1/chat/completions' are forwarded unchanged: mode off",
        "requests to '/v1/completions' are forwarded unchanged: not a conversation that the gateway knows",
    ]
    assert 'everlong_unmanaged_total{reason="mode off"} 3.0' in metrics
    assert 'everlong_unmanaged_total{reason="not a conversation that the gateway knows"} 3.0' in metrics


def test_the_bases_themselves_say_which_address_to_use() -> None:
    with RunningGateway() as gateway:
        for path in ("/v1", "/v1/"):
            status, _, told = ask(gateway, path)
            assert status == 200
            assert f"OpenAI clients use {gateway.url}" in told["message"]
            assert f"clients use {gateway.address} as their base URL" in told["message"]


@pytest.mark.parametrize("path", ["/v2/chat", "/chat", "/generate", "/completion", "/x/v1/chat/completions"])
def test_an_unknown_api_is_told_the_address_to_use(path: str) -> None:
    with RunningGateway() as gateway:
        status, _, told = ask(gateway, path, "POST", SAID)
    assert status == 404
    assert f"no endpoint POST {path}" in told["error"]["message"]
    assert f"OpenAI clients use {gateway.url}" in told["error"]["message"]


def test_a_wrong_method_is_told() -> None:
    with RunningGateway() as gateway:
        status, _, told = ask(gateway, "/health", "POST", SAID)
        assert (status, told["error"]["message"]) == (405, "/health does not support POST")

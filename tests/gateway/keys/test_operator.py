"""Keys as an operator manages them over HTTP, and as SDKs meet their limits and budgets."""

import json
from collections.abc import Iterator, Mapping
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

from everlong.llm import ScriptedServer
from tests.gateway.running import RunningGateway

MESSAGES: Any = [{"role": "user", "content": "How many boats are at the pier?"}]


@pytest.fixture
def upstream() -> Iterator[ScriptedServer]:
    with ScriptedServer() as server:
        yield server


@pytest.fixture
def gateway(upstream: ScriptedServer) -> Iterator[RunningGateway]:
    with RunningGateway(upstream=upstream.url) as gateway:
        yield gateway


def ask(
    gateway: RunningGateway, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None
) -> tuple[int, Any]:
    link = HTTPConnection("127.0.0.1", gateway.port, timeout=60)
    try:
        link.request(method, path, None if body is None else json.dumps(body), dict(headers or {}))
        answer = link.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        link.close()


def made(gateway: RunningGateway, name: str = "team", **given: object) -> str:
    status, told = ask(gateway, "POST", "/everlong/keys", {"name": name, **given})
    assert status == 201, told
    return str(told["key"])


def openai_client(gateway: RunningGateway, key: str) -> openai.OpenAI:
    return openai.OpenAI(base_url=gateway.url, api_key=key, max_retries=0)


def test_a_key_is_made_used_changed_replaced_and_revoked(gateway: RunningGateway) -> None:
    key = made(gateway, limits={"requests_per_minute": 100})
    with openai_client(gateway, key) as client:
        answer = client.chat.completions.create(model="gpt-4o", messages=MESSAGES)
        assert answer.usage is not None
        status, row = ask(gateway, "GET", "/everlong/keys/team")
        assert (status, row["limits"], row["source"]) == (200, {"requests_per_minute": 100}, "store")
        assert row["today"]["requests"] == 1
        assert row["today"]["prompt"] == answer.usage.prompt_tokens
        assert row["today"]["dollars"] > 0
        assert row["last_used"]
        changed = {"limits": {"requests_per_minute": 1, "dollars_per_day": 5}, "mode": "off"}
        status, row = ask(gateway, "PATCH", "/everlong/keys/team", changed)
        assert (row["limits"], row["mode"]) == ({"requests_per_minute": 1, "dollars_per_day": 5}, "off")
        with pytest.raises(openai.RateLimitError):
            client.chat.completions.create(model="gpt-4o", messages=MESSAGES)
        ask(gateway, "PATCH", "/everlong/keys/team", {"requests_per_minute": None})
        client.chat.completions.create(model="gpt-4o", messages=MESSAGES)
        _, rotated = ask(gateway, "POST", "/everlong/keys/team/rotate")
        with pytest.raises(openai.AuthenticationError):
            client.chat.completions.create(model="gpt-4o", messages=MESSAGES)
    with openai_client(gateway, rotated["key"]) as client:
        client.chat.completions.create(model="gpt-4o", messages=MESSAGES)
        _, row = ask(gateway, "DELETE", "/everlong/keys/team")
        assert row["revoked"]
        with pytest.raises(openai.AuthenticationError, match="revoked"):
            client.chat.completions.create(model="gpt-4o", messages=MESSAGES)
    status, told = ask(gateway, "GET", "/everlong/spend?days=3")
    assert (len(told["days"]), [row["name"] for row in told["keys"]]) == (3, ["team"])
    assert told["keys"][0]["total"]["requests"] == 3  # those that were admitted
    assert key not in json.dumps(ask(gateway, "GET", "/everlong/keys")[1])


def test_from_the_first_key_on_everyone_needs_one_even_when_all_are_revoked(gateway: RunningGateway) -> None:
    with openai_client(gateway, "anything") as client:
        client.chat.completions.create(model="gpt-4o", messages=MESSAGES)
        made(gateway)
        with pytest.raises(openai.AuthenticationError):
            client.chat.completions.create(model="gpt-4o", messages=MESSAGES)
        ask(gateway, "DELETE", "/everlong/keys/team")
        with pytest.raises(openai.AuthenticationError):
            client.chat.completions.create(model="gpt-4o", messages=MESSAGES)


AFAR = [
    ("a proxy says whose request it hands on", {"x-forwarded-for": "203.0.113.7"}),
    ("a proxy that names itself", {"via": "1.1 proxy"}),
    ("another name", {"host": "gateway.example"}),
]


@pytest.mark.parametrize("headers", [row[1] for row in AFAR], ids=[row[0] for row in AFAR])
def test_from_afar_keys_are_managed_with_the_key_of_an_operator_alone(
    headers: dict[str, str], upstream: ScriptedServer
) -> None:
    with RunningGateway(upstream=upstream.url, hosts=["gateway.example"]) as gateway:
        assert ask(gateway, "GET", "/everlong/keys", None, headers)[0] == 403
        boss, team = made(gateway, "boss", operator=True), made(gateway)
        for method, path in (("GET", "/everlong/keys"), ("POST", "/everlong/keys"), ("GET", "/everlong/spend")):
            assert ask(gateway, method, path, None, headers)[0] == 401
            assert ask(gateway, method, path, None, {**headers, "authorization": f"Bearer {team}"})[0] == 403
        with_key = {**headers, "authorization": f"Bearer {boss}"}
        assert len(ask(gateway, "GET", "/everlong/keys", None, with_key)[1]["keys"]) == 2


def test_a_site_that_may_use_the_gateway_may_not_manage_its_keys(upstream: ScriptedServer) -> None:
    with RunningGateway(upstream=upstream.url, origins=["https://app.example"]) as gateway:
        site = {"origin": "https://app.example"}
        assert ask(gateway, "GET", "/everlong/requests", None, site)[0] == 200
        assert ask(gateway, "GET", "/everlong/keys", None, site)[0] == 403
        assert ask(gateway, "POST", "/everlong/keys", {"name": "mine", "operator": True}, site)[0] == 403


WRONG: list[tuple[str, str, str, object, int, str]] = [
    ("no name", "POST", "", {}, 400, "name must say who the key is for"),
    ("a slash in a name", "POST", "", {"name": "a/b"}, 400, "name must say who the key is for"),
    ("an unknown field", "POST", "", {"name": "b", "lmits": {}}, 400, "a key has no field 'lmits'"),
    ("an unknown limit", "POST", "", {"name": "b", "limits": {"rpm": 1}}, 400, "a key has no field 'rpm'"),
    ("a limit of nothing", "POST", "", {"name": "b", "dollars_per_day": 0}, 400, "dollars_per_day must be more than 0"),
    ("a list", "POST", "", [], 400, "the body must be a JSON object"),
    ("a name that is taken", "POST", "", {"name": "team"}, 400, "key 'team' already exists"),
    ("a mode that there is not", "PATCH", "/team", {"mode": "fast"}, 400, "mode must be one of"),
    ("a key that there is not", "PATCH", "/ghost", {"mode": "off"}, 400, "there is no key 'ghost'"),
    ("nobody to show", "GET", "/ghost", None, 404, "there is no key 'ghost'"),
    ("nobody to revoke", "DELETE", "/ghost", None, 400, "there is no key 'ghost'"),
]


def test_what_is_wrong_is_told_in_one_line(gateway: RunningGateway) -> None:
    made(gateway)
    for what, method, path, body, expected, line in WRONG:
        status, told = ask(gateway, method, f"/everlong/keys{path}", body)
        assert (status, line in told["error"]["message"]) == (expected, True), (what, told)
    for days in ("0", "x", "999", "-1"):
        assert ask(gateway, "GET", f"/everlong/spend?days={days}")[0] == 400


def test_a_key_of_the_file_is_listed_and_left_alone(upstream: ScriptedServer, tmp_path: Path) -> None:
    file = tmp_path / "everlong.toml"
    file.write_text(f'upstream = "{upstream.url}"\n[[keys]]\nname = "old"\nhash = "{"ab" * 32}"\n')
    with RunningGateway(file=file) as gateway:
        made(gateway)
        rows = ask(gateway, "GET", "/everlong/keys")[1]["keys"]
        assert [(row["name"], row["source"]) for row in rows] == [("old", "file"), ("team", "store")]
        for method in ("DELETE", "PATCH"):
            status, told = ask(gateway, method, "/everlong/keys/old", {})
            assert (status, "is in the configuration file" in told["error"]["message"]) == (400, True)


# --- what clients are told -------------------------------------------------------------------------


def ask_until_refused(client: openai.OpenAI) -> None:
    for _ in range(20):
        client.chat.completions.create(model="gpt-4-turbo", messages=MESSAGES, max_tokens=100)


def test_the_openai_sdk_sees_a_limit_and_what_is_left_of_it(gateway: RunningGateway) -> None:
    key = made(gateway, limits={"requests_per_minute": 2, "tokens_per_minute": 10_000})
    with openai_client(gateway, key) as client:
        raw = client.chat.completions.with_raw_response.create(model="gpt-4o", messages=MESSAGES)
        assert raw.headers["x-ratelimit-limit-requests"] == "2"
        assert raw.headers["x-ratelimit-remaining-requests"] == "1"
        assert raw.headers["x-ratelimit-limit-tokens"] == "10000"
        assert 9_000 < int(raw.headers["x-ratelimit-remaining-tokens"]) < 10_000
        assert raw.headers["x-ratelimit-reset-requests"].endswith("s")
        client.chat.completions.create(model="gpt-4o", messages=MESSAGES)
        with pytest.raises(openai.RateLimitError) as error:
            client.chat.completions.create(model="gpt-4o", messages=MESSAGES)
    headers = error.value.response.headers
    assert (error.value.code, error.value.type) == ("rate_limit_exceeded", "rate_limit_error")
    assert 1 <= int(headers["retry-after"]) <= 60
    assert (headers["x-ratelimit-remaining-requests"], headers.get("x-should-retry")) == ("0", None)


def test_the_anthropic_sdk_sees_a_limit_and_what_is_left_of_it(gateway: RunningGateway) -> None:
    key = made(gateway, limits={"requests_per_minute": 1})
    with anthropic.Anthropic(base_url=gateway.address, api_key=key, max_retries=0) as client:
        asked: Any = {"model": "claude-opus-4-5", "max_tokens": 100, "messages": MESSAGES}
        raw = client.messages.with_raw_response.create(**asked)
        assert raw.headers["anthropic-ratelimit-requests-limit"] == "1"
        assert raw.headers["anthropic-ratelimit-requests-remaining"] == "0"
        assert raw.headers["anthropic-ratelimit-requests-reset"].endswith("Z")
        with pytest.raises(anthropic.RateLimitError) as error:
            client.messages.create(**asked)
    assert 1 <= int(error.value.response.headers["retry-after"]) <= 60
    assert error.value.body["error"]["type"] == "rate_limit_error"  # type: ignore[index]


@pytest.mark.parametrize(
    "limits", [{"dollars_per_day": 0.004}, {"tokens_per_day": 60}, {"requests_per_day": 1}], ids=str
)
def test_a_spent_budget_is_told_once_and_not_tried_again(
    limits: dict[str, float], gateway: RunningGateway, upstream: ScriptedServer
) -> None:
    """An SDK that retries would ask again and again until midnight; here it asks once."""
    key = made(gateway, limits=limits)
    with (
        openai.OpenAI(base_url=gateway.url, api_key=key, max_retries=5) as client,
        pytest.raises(openai.RateLimitError) as error,
    ):
        ask_until_refused(client)
    assert (error.value.code, error.value.type) == ("insufficient_quota", "insufficient_quota")
    headers = error.value.response.headers
    assert headers["x-should-retry"] == "false"
    assert 1 <= int(headers["retry-after"]) <= 86_400
    assert "it resets at" in str(error.value)
    made_here = ask(gateway, "GET", "/everlong/requests", None, {"authorization": f"Bearer {key}"})[1]
    assert [row["status"] for row in made_here].count(429) == 1
    assert len(upstream.requests) == len(made_here) - 1 > 0


def test_without_a_known_price_tokens_count_and_it_is_told(gateway: RunningGateway) -> None:
    key = made(gateway, limits={"dollars_per_day": 1})
    with openai_client(gateway, key) as client:
        client.chat.completions.create(model="nobody-knows-me", messages=MESSAGES)
    today = ask(gateway, "GET", "/everlong/keys/team")[1]["today"]
    assert (today["dollars"], today["unpriced"], today["prompt"] > 0) == (0, 1, True)


@pytest.mark.parametrize("mode", ["auto", "off"])
def test_spending_is_what_answers_report_managed_or_not(mode: str, gateway: RunningGateway) -> None:
    key = made(gateway, mode=mode)
    with openai_client(gateway, key) as client:
        usages = [client.chat.completions.create(model="gpt-4o", messages=MESSAGES).usage for _ in range(3)]
        stream = client.chat.completions.create(
            model="gpt-4o", messages=MESSAGES, stream=True, stream_options={"include_usage": True}
        )
        usages += [chunk.usage for chunk in stream if chunk.usage is not None]
    today = ask(gateway, "GET", "/everlong/keys/team")[1]["today"]
    assert today["requests"] == 4
    assert today["prompt"] == sum(usage.prompt_tokens for usage in usages if usage is not None)
    assert today["output"] == sum(usage.completion_tokens for usage in usages if usage is not None)
    assert today["dollars"] == pytest.approx((today["prompt"] * 2.5 + today["output"] * 10) / 1e6, rel=0.5)

"""A window of a million: asked for by Anthropic's beta or by "[1m]" behind a model's name, as Claude Code does."""

import json
from dataclasses import replace
from http.client import HTTPConnection
from typing import Any

import pytest

from everlong.gateway.operations.services import Services, services_for
from everlong.gateway.upstreams.providers import routes_from
from everlong.gateway.upstreams.routing import Routes
from everlong.llm import Answer, ScriptedServer, Window
from everlong.wire import ANTHROPIC
from tests.gateway.resending import post
from tests.gateway.running import RunningGateway

Value = dict[str, Any]
BETA = {"anthropic-beta": "context-1m-2025-08-07"}
AMONG_OTHERS = {"anthropic-beta": "claude-code-20250219, context-1m-2026-01-01,interleaved-thinking-2025-05-14"}
SMALL = "claude-sonnet-4-5"


def asked(gateway: RunningGateway, model: str, headers: dict[str, str], words: str = "Hi.", **fields: Any) -> Value:
    """What the gateway says of a request: its explanation."""
    body = {"model": model, "max_tokens": 100, "messages": [{"role": "user", "content": words}], **fields}
    status, told, answer = post(gateway, "/v1/messages", json.dumps(body).encode(), headers)
    assert status == 200, answer
    connection = HTTPConnection("127.0.0.1", gateway.port, timeout=60)
    connection.request("GET", f"/everlong/requests/{told['x-everlong-request']}", headers=headers)
    explained: Value = json.loads(connection.getresponse().read())
    connection.close()
    return explained


#: Model, headers, fields, and the window that counts then, with its source.
WINDOWS: dict[str, tuple[str, dict[str, str], Value, int, str]] = {
    "nothing asked": (SMALL, {}, {}, 200_000, "registry"),
    "the beta": (SMALL, BETA, {}, 1_000_000, "asked"),
    "the beta among others, of another date": (SMALL, AMONG_OTHERS, {}, 1_000_000, "asked"),
    "in the body, as clouds have it": (SMALL, {}, {"anthropic_beta": ["context-1m-2025-08-07"]}, 1_000_000, "asked"),
    "behind the name": (f"{SMALL}[1m]", {}, {}, 1_000_000, "asked"),
    "for a dated model": ("claude-sonnet-4-20250514", BETA, {}, 1_000_000, "asked"),
    "for a model that has it anyway": ("claude-opus-4-6", BETA, {}, 1_000_000, "asked"),
    "for a model that nobody knows": ("our-own-model", BETA, {}, 1_000_000, "asked"),
    "for a model without it": ("claude-haiku-4-5", BETA, {}, 200_000, "registry"),
    "for another without it": ("claude-opus-4-5-20251101[1m]", {}, {}, 200_000, "registry"),
    "an old one": ("claude-3-7-sonnet-latest", BETA, {}, 200_000, "registry"),
    "another beta": (SMALL, {"anthropic-beta": "context-1million-2025"}, {}, 200_000, "registry"),
}


@pytest.mark.parametrize(("model", "headers", "fields", "tokens", "source"), WINDOWS.values(), ids=WINDOWS)
def test_the_window_that_counts(
    model: str, headers: dict[str, str], fields: Value, tokens: int, source: str, loose: RunningGateway
) -> None:
    window = asked(loose, model, headers, **fields)["window"]
    assert (window["tokens"], window["source"]) == (tokens, source)


@pytest.fixture(scope="module")
def loose() -> Any:
    with ScriptedServer(lambda _: Answer(text="ok")) as server, RunningGateway(upstream=server.url) as gateway:
        yield gateway


def test_a_refusal_counts_more_and_teaches_nothing_about_the_usual_window() -> None:
    message = "prompt is too long: {tokens} tokens > {window} maximum"
    refusal = json.dumps({"type": "error", "error": {"type": "invalid_request_error", "message": message}})
    long = " ".join(f"word{number}" for number in range(6_000))
    with (
        ScriptedServer(lambda _: Answer(text="ok"), window=Window(8_000, body=refusal)) as server,
        RunningGateway(upstream=server.url) as gateway,
    ):
        connection = HTTPConnection("127.0.0.1", gateway.port, timeout=60)
        body = {"model": SMALL, "max_tokens": 100, "messages": [{"role": "user", "content": long}]}
        connection.request("POST", "/v1/messages", json.dumps(body), BETA | {"content-type": "application/json"})
        assert connection.getresponse().read()
        connection.close()
        assert asked(gateway, SMALL, BETA)["window"] == {"tokens": 8_000, "source": "learned"}
        assert asked(gateway, SMALL, {})["window"] == {"tokens": 200_000, "source": "registry"}


class AtTheMaker(RunningGateway):
    """A gateway whose upstream is Anthropic itself, as far as it knows."""

    def _made(self) -> Services:
        own = routes_from(self._config, {}).upstreams[0]
        routes = Routes([replace(own, endpoint=replace(own.endpoint, provider="anthropic"))])
        self._services = services_for(self._config, routes, {})
        return self._services


@pytest.mark.parametrize("mode", ["auto", "off"])
def test_the_maker_is_asked_in_the_way_that_it_knows_and_others_as_the_client_asks(mode: str) -> None:
    name, told = f"{SMALL}[1m]", {"anthropic-beta": "claude-code-20250219", "x-everlong-mode": mode}
    sent = []
    for kind in (AtTheMaker, RunningGateway):
        with ScriptedServer(lambda _: Answer(text="ok")) as server, kind(upstream=server.url) as gateway:
            asked(gateway, name, told)
            sent += [(one.model, one.headers["anthropic-beta"]) for one in server.requests]
    maker, other = sent
    assert maker == (SMALL, f"claude-code-20250219,{BETA['anthropic-beta']}")
    assert other == (name, "claude-code-20250219")


def test_a_beta_that_is_there_is_not_added_again() -> None:
    long = ANTHROPIC.server.long_context
    assert long is not None
    headers = [(b"Anthropic-Beta", b"a,context-1m-2025-08-07"), (b"x", b"1")]
    assert long.for_maker(f"{SMALL}[1M]", headers) == (SMALL, headers)
    assert long.for_maker(SMALL, []) == (SMALL, [])
    assert long.for_maker(f"{SMALL}[1m]", [(b"x", b"1")])[1] == [(b"x", b"1"), (long.header, long.beta.encode())]

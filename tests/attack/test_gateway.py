"""The attack on the gateway in short: no answer of 500, and what reaches the upstream is valid."""

import json
from typing import Any

import pytest
from tests.attack.fuzz_formats import REFUSED, VALID
from tests.attack.fuzz_gateway import GatewayFinding, attack_engine, attack_gateway
from tests.attack.providers import refusals
from tests.gateway.http.test_bad_input import asked, told
from tests.gateway.running import RunningGateway
from tests.gateway.talking import PATHS

from everlong.llm import ScriptedServer

INPUTS = 600
REPAIRED_HEADS = (2993, 3704, 4175)  # system text in a field of its own that has to be repaired


def test_bad_bodies_are_told_so_and_the_upstream_gets_valid_ones() -> None:
    outcomes = list(attack_gateway((*range(INPUTS), *REPAIRED_HEADS)))
    assert [finding for finding in outcomes if isinstance(finding, GatewayFinding)] == []
    assert min(outcomes.count(VALID), outcomes.count(REFUSED)) > INPUTS // 5


def test_bad_bodies_for_the_engine_are_told_so_and_programs_are_given_valid_ones() -> None:
    outcomes = list(attack_engine((*range(INPUTS // 2), *REPAIRED_HEADS)))
    assert [finding for finding in outcomes if isinstance(finding, GatewayFinding)] == []
    assert min(outcomes.count(VALID), outcomes.count(REFUSED)) > INPUTS // 10


def use(name: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": name, "name": "read", "input": {}}


def result(name: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": name, "content": "x"}


ASK = {"role": "user", "content": "hi"}
TORN = {
    "calls in two messages": [
        ("assistant", [use("a")]),
        ("assistant", [use("b")]),
        ("user", [result("a"), result("b")]),
    ],
    "results in two messages": [("assistant", [use("a"), use("b")]), ("user", [result("a")]), ("user", [result("b")])],
    "words after a call": [
        ("assistant", [use("a")]),
        ("assistant", "so"),
        ("assistant", "on"),
        ("user", [result("a")]),
    ],
    "an empty message": [("assistant", "so"), ("assistant", ""), ("user", "on")],
    "sealed thinking without its seal": [
        ("assistant", [{"type": "redacted_thinking", "data": ""}, use("a")]),
        ("user", [result("a")]),
    ],
}


@pytest.mark.parametrize("name", TORN)
def test_what_the_provider_wants_in_one_message_is_sent_in_one(name: str) -> None:
    messages = [ASK, *({"role": role, "content": content} for role, content in TORN[name])]
    body = json.dumps({"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": messages}).encode()
    with ScriptedServer() as upstream, RunningGateway(upstream=upstream.url) as gateway:
        status, _ = asked(gateway, PATHS["anthropic"], body, {})
        assert status == 200
        assert refusals("anthropic", json.loads(upstream.requests[-1].body)) == []


@pytest.mark.parametrize("fmt", [fmt for fmt, path in PATHS.items() if "gpt-4o" not in path])
def test_a_model_whose_name_cannot_be_written_is_refused(fmt: str) -> None:
    body = json.dumps({"model": "gpt\ud83d", "messages": [ASK], "input": [ASK], "max_tokens": 9}).encode()
    with ScriptedServer() as upstream, RunningGateway(upstream=upstream.url) as gateway:
        status, answer = asked(gateway, PATHS[fmt], body, {})
    assert status == 400
    assert told(fmt, answer) == "model is not a valid name: it contains half a surrogate pair"

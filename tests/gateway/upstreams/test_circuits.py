"""Circuit breakers: an address that fails is left alone for a while, then tried by one request."""

import json
import logging
from http.client import HTTPConnection

import pytest
from hypothesis import given, strategies as st

from everlong.gateway.upstreams.circuits import Circuit, Circuits, CircuitState
from everlong.gateway.upstreams.failover import NoAnswer, Tries
from everlong.gateway.upstreams.routing import Upstream
from everlong.llm import Answer, Endpoint, ReceivedRequest, Refusal, ScriptedServer, Step
from tests.gateway.running import RunningGateway
from tests.gateway.upstreams.test_failover import ask, house

SITE = Upstream(name="house", endpoint=Endpoint(url="http://a/v1"))
OTHER = Upstream(name="house", endpoint=Endpoint(url="http://b/v1"), number=1)


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def _get(port: int, path: str) -> str:
    connection = HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("GET", path)
    text = connection.getresponse().read().decode()
    connection.close()
    return text


def test_a_circuit_opens_is_seen_and_closes_again(caplog: pytest.LogCaptureFixture) -> None:
    """Two addresses; one is ill for a while. Nobody asks it while its circuit is open, then one request does."""
    clock, ill = Clock(), True

    def sometimes(_: ReceivedRequest) -> Step:
        return Refusal(503, '{"error": "ill"}') if ill else Answer(text="well again")

    def circuits(port: int) -> list[str]:
        return [each["circuit"] for each in json.loads(_get(port, "/everlong/upstreams"))[0]["addresses"]]

    with ScriptedServer(sometimes) as first, ScriptedServer() as second, caplog.at_level(logging.WARNING):
        upstreams = house(first.url, second.url)
        with RunningGateway(upstreams=upstreams, ticks=clock, circuit_failures=3) as gateway:
            assert circuits(gateway.port) == ["closed", "closed"]
            tried = [ask(gateway.port)[1]["x-everlong-addresses-tried"] for _ in range(5)]
            assert tried == ["2", "2", "2", "1", "1"]
            assert (len(first.requests), circuits(gateway.port)) == (3, ["open", "closed"])
            place = first.url.removeprefix("http://").removesuffix("/v1")
            assert f'everlong_circuit{{address="{place}",upstream="house"}} 2.0' in _get(gateway.port, "/metrics")
            clock.now += 1
            assert ask(gateway.port)[1]["x-everlong-addresses-tried"] == "2", "one request tries it, and is answered"
            clock.now += 1
            assert ask(gateway.port)[1]["x-everlong-addresses-tried"] == "1", "now it is left alone for two seconds"
            ill = False
            clock.now += 1
            status, headers, body = ask(gateway.port)
            assert (status, headers["x-everlong-address"], "well again" in body) == (200, place, True)
            assert circuits(gateway.port) == ["closed", "closed"]
            assert f'everlong_circuit{{address="{place}",upstream="house"}} 0.0' in _get(gateway.port, "/metrics")
    lines = [record.getMessage() for record in caplog.records if "circuit" in record.getMessage()]
    assert lines == [
        f"the circuit of house at {place} is open for 1 s after 3 failures in a row: status 503",
        f"the circuit of house at {place} is closed: it answers again",
    ]


def test_an_address_that_nobody_can_reach_is_answered_for_at_once() -> None:
    clock = Clock()
    with ScriptedServer() as gone:
        pass
    with RunningGateway(upstream=gone.url, ticks=clock, circuit_failures=2) as gateway:
        assert [ask(gateway.port)[0] for _ in range(2)] == [502, 502]
        status, headers, body = ask(gateway.port)
        assert (status, headers["retry-after"]) == (503, "1")
        assert "cannot be reached" in body
        assert "it is tried again in 1 s" in body
        clock.now += 1
        assert ask(gateway.port)[0] == 502, "one request looks whether it is back"
        assert ask(gateway.port)[1]["retry-after"] == "2"


def test_failures_of_the_only_address_reach_its_clients_as_they_are() -> None:
    """A request that breaks every server must not lock out all others."""
    with (
        ScriptedServer(lambda _: Refusal(500, '{"error": "mine"}')) as only,
        RunningGateway(upstream=only.url, circuit_failures=2) as gateway,
    ):
        assert [(status, body) for status, _, body in (ask(gateway.port) for _ in range(6))] == [
            (500, '{"error": "mine"}')
        ] * 6


def test_a_request_that_all_addresses_fail_at_is_held_against_none() -> None:
    with (
        ScriptedServer(lambda _: Refusal(500, "{}")) as first,
        ScriptedServer(lambda _: Refusal(500, "{}")) as second,
        RunningGateway(upstreams=house(first.url, second.url), circuit_failures=2) as gateway,
    ):
        tried = [ask(gateway.port)[1]["x-everlong-addresses-tried"] for _ in range(4)]
    assert tried == ["2"] * 4


def _failure(*, reached: bool = True) -> NoAnswer:
    return NoAnswer("gone", status=502, reached=reached, elsewhere=True)


def _opened(clock: Clock) -> Circuits:
    circuits = Circuits(clock, failures=1)
    circuits.failed(circuits.of(SITE), "ill", unreachable=True)
    return circuits


def test_while_one_request_tries_a_circuit_others_do_not_and_one_that_leaves_lets_the_next_try() -> None:
    clock = Clock()
    circuits = _opened(clock)
    clock.now += 1
    probe, other = (Tries.among(circuits, (SITE, OTHER)) for _ in range(2))
    probe.begin()
    other.begin()
    assert (probe.site, other.site) == (SITE, OTHER)
    probe.abandon()
    again = Tries.among(circuits, (SITE, OTHER))
    again.begin()
    assert again.site is SITE
    assert again.answered(200, None)
    assert circuits.of(SITE).state is CircuitState.CLOSED


def test_a_tried_circuit_stays_open_if_everybody_fails() -> None:
    clock = Clock()
    circuits = _opened(clock)
    clock.now += 1
    tries = Tries.among(circuits, (SITE,))
    tries.begin()
    assert tries.answered(503, None), "there is no other"
    assert circuits.of(SITE).state is CircuitState.OPEN


STEPS = st.sampled_from(["answer", "fail", "unreachable", "leave", "wait"])


@given(st.lists(STEPS, max_size=60), st.integers(1, 4))
def test_whatever_happens_a_well_address_is_found_again(steps: list[str], failures: int) -> None:
    """From any state: after the longest pause one request is let through, and its answer closes the circuit."""
    clock, seen = Clock(), list[Circuit]()
    circuits = Circuits(clock, failures=failures, longest=30.0, note=seen.append)
    circuit = circuits.of(SITE)
    for step in steps:
        if step == "wait":
            clock.now += 7
            continue
        admitted = circuits.admit(circuit)
        assert admitted is not (circuit.state is CircuitState.OPEN)
        if not admitted:
            continue
        match step:
            case "answer":
                circuits.answered(circuit)
                assert circuit.state is CircuitState.CLOSED
            case "leave":
                circuits.left(circuit)
            case _:
                circuits.failed(circuit, "ill", unreachable=step == "unreachable")
                assert (circuit.state is CircuitState.OPEN) == (circuit.failures >= failures or circuit.pause > 0)
        assert circuit.pause <= 30
    clock.now += 30
    assert circuits.admit(circuit)
    circuits.answered(circuit)
    assert (circuit.state, circuit.failures) == (CircuitState.CLOSED, 0)

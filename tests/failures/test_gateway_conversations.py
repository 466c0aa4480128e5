"""Failure modes of conversations without ids, through the gateway over HTTP: J2, D1, D2, D3."""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from everlong.llm import ScriptedServer, Window, reads_files
from everlong.llm.scripted.script import Script
from tests.engine.authors import both, is_asked_to_summarise
from tests.gateway.resending import (
    FORMATS,
    MARK,
    Resending,
    accepted,
    disguised,
    members,
    of_clients,
    post,
    resets,
    valid_upstream,
)
from tests.gateway.running import RunningGateway

TURNS = 30
MOST_SUMMARIES = 5
WINDOW = Window(16_000, told=True)

every_format = pytest.mark.parametrize("fmt", FORMATS)


def talking() -> Script:
    return both(reads_files(1))


def figure(gateway: RunningGateway, name: str) -> float:
    """A figure of the gateway, over all its labels."""
    with urlopen(f"{gateway.address}/metrics") as answer:
        text = answer.read().decode()
    return sum(float(value) for value in re.findall(rf"^everlong_{name}_total(?:{{.*}})? (\S+)$", text, re.MULTILINE))


def own_requests(server: ScriptedServer) -> int:
    """How many requests the gateway made by itself."""
    return len(server.requests) - len(of_clients(server))


def steady(server: ScriptedServer, cuts: float, *, skip: int = 0) -> None:
    """Few summaries, a prefix that changes at cuts alone, nothing too long or wrong."""
    valid_upstream(server)
    forwarded = of_clients(server)
    assert forwarded == accepted(server, forwarded), "the window was told: nothing is too long"
    assert 0 < own_requests(server) <= MOST_SUMMARIES
    assert 0 < resets(forwarded, skip=skip) <= cuts


def say(client: Resending, gateway: RunningGateway, turn: int) -> None:
    """A question that takes a tool, and all that it starts in the background."""
    client.ask(gateway, f"Question {turn}: what does the file say?")
    client.settle(gateway)


class Serving:
    """Gateways on one upstream, one after the other or side by side; `cuts` is what all of them made."""

    def __init__(self, server: ScriptedServer, **options: Any) -> None:
        self._options = {"upstream": server.url, **options}
        self.cuts = 0.0

    @contextmanager
    def gateway(self) -> Iterator[RunningGateway]:
        with RunningGateway(**self._options) as gateway:
            yield gateway
            self.cuts += figure(gateway, "compactions")


def stamped(_fmt: str, messages: Sequence[dict[str, Any]], turn: int) -> list[dict[str, Any]]:
    """As some agents do: the last message of each request says what the time is, and not any more the next time."""
    *before, last = messages
    if last.get("role") == "user" and isinstance(last["content"], str):
        return [*before, last | {"content": f"{last['content']}\n\nIt is {turn} o'clock."}]
    return [*messages]


@every_format
def test_J2_a_client_that_writes_its_last_message_anew_each_time(fmt: str) -> None:
    with ScriptedServer(talking(), window=WINDOW) as server:
        serving = Serving(server, keep="text")
        with serving.gateway() as gateway:
            client = Resending(fmt, disguise=stamped)
            for turn in range(TURNS):
                say(client, gateway, turn)
            assert len(gateway.services.conversations) == 2, "the very first message was another one, too"
    valid_upstream(server)
    assert 0 < own_requests(server) <= MOST_SUMMARIES
    shown = [members(asked) for asked in of_clients(server)]
    broken = sum(later[: len(earlier) - 1] != earlier[:-1] for earlier, later in pairwise(shown))
    assert 0 < broken <= serving.cuts


def test_J2_a_client_that_ends_every_request_with_a_note_of_its_own() -> None:
    """The note takes the place of the next step's call, while a summary of the request before is being written."""
    said: list[dict[str, Any]] = [{"role": "user", "content": "Read the files and count the boats."}]
    with ScriptedServer(both(reads_files(0)), window=WINDOW) as server, RunningGateway(upstream=server.url) as gateway:
        for step in range(40):
            call = {"name": "read_file", "arguments": json.dumps({"path": f"{step}.txt"})}
            said.append({"role": "assistant", "tool_calls": [{"id": f"c{step}", "type": "function", "function": call}]})
            said.append({"role": "tool", "tool_call_id": f"c{step}", "content": record(step)})
            note = {"role": "user", "content": f"<state>{step}</state>"}
            body = {"model": "scripted", "messages": [*said, note], MARK: "client"}
            status, _, _ = post(gateway, "/v1/chat/completions", json.dumps(body).encode())
            assert status == 200
        compactions = figure(gateway, "compactions")
    valid_upstream(server)
    shown = [json.loads(asked.body)["messages"][-2].get("content") for asked in of_clients(server)]
    assert [step for step, content in enumerate(shown) if content != record(step)] == []
    assert len(shown) == 40
    assert 3 <= compactions <= 20


def record(step: int) -> str:
    return f"File {step}. " + f"Boat {step} lies at pier {step * 7 % 11}. " * 120


@every_format
def test_J2_a_client_that_resends_everything_in_ever_other_forms(fmt: str) -> None:
    with ScriptedServer(talking(), window=WINDOW) as server:
        serving = Serving(server)
        with serving.gateway() as gateway:
            client = Resending(fmt, disguise=disguised)
            for turn in range(TURNS):
                say(client, gateway, turn)
        steady(server, serving.cuts)


@every_format
def test_J2_a_client_that_does_not_wait_for_summaries(fmt: str) -> None:
    with ScriptedServer(talking(), window=WINDOW) as server:
        serving = Serving(server)
        with serving.gateway() as gateway:
            client = Resending(fmt, disguise=disguised)
            for turn in range(TURNS):
                client.ask(gateway, f"Question {turn}: what does the file say?")
        valid_upstream(server)
        assert own_requests(server) <= MOST_SUMMARIES
        assert 0 < resets(of_clients(server)) <= serving.cuts


@every_format
def test_J2_the_prefix_goes_on_after_restarts(fmt: str, tmp_path: Path) -> None:
    client = Resending(fmt, disguise=disguised)
    with ScriptedServer(talking(), window=WINDOW) as server:
        serving = Serving(server, store=str(tmp_path / "kept.db"))
        for start in range(0, TURNS, 6):
            with serving.gateway() as gateway:
                for turn in range(start, start + 6):
                    say(client, gateway, turn)
        steady(server, serving.cuts)


@every_format
def test_J2_the_prefix_goes_on_for_conversations_that_left_memory(fmt: str) -> None:
    client, other = Resending(fmt, disguise=disguised), Resending(fmt, key="other", lines=2)
    with ScriptedServer(talking(), window=WINDOW) as server:
        serving = Serving(server, memory=1)
        with serving.gateway() as gateway:
            for turn in range(TURNS):
                say(client, gateway, turn)
                before = len(server.requests)
                other.ask(gateway, "Hello")
                other.messages.clear()
                del server.requests[before:]
                assert len(gateway.services.conversations) <= 2
        steady(server, serving.cuts)


@every_format
def test_J2_two_gateways_on_one_store_take_turns(fmt: str, tmp_path: Path) -> None:
    client = Resending(fmt, disguise=disguised)
    with ScriptedServer(talking(), window=WINDOW) as server, ExitStack() as stack:
        serving = Serving(server, store=str(tmp_path / "kept.db"))
        gateways = [stack.enter_context(serving.gateway()) for _ in range(2)]
        for turn in range(TURNS):
            say(client, gateways[turn % 2], turn)
        cuts = sum(figure(gateway, "compactions") for gateway in gateways)
        steady(server, cuts)


@every_format
def test_J2_a_conversation_that_its_client_names(fmt: str, tmp_path: Path) -> None:
    client = Resending(fmt, disguise=disguised, headers={"x-everlong-thread": "my talk"})
    with ScriptedServer(talking(), window=WINDOW) as server:
        serving = Serving(server, store=str(tmp_path / "kept.db"))
        for start in (0, 15):
            with serving.gateway() as gateway:
                for turn in range(start, start + 15):
                    say(client, gateway, turn)
        steady(server, serving.cuts)


@every_format
def test_J2_a_system_prompt_that_changes_takes_nothing_else_along(fmt: str) -> None:
    client = Resending(fmt, disguise=disguised)
    with ScriptedServer(talking(), window=WINDOW) as server:
        serving = Serving(server)
        with serving.gateway() as gateway:
            for turn in range(TURNS):
                client.system = f"Work carefully. It is minute {turn // 3}."
                say(client, gateway, turn)
        steady(server, serving.cuts, skip=1 if fmt == "openai-chat" else 0)
        assert all(client.system.encode() in asked.body for asked in of_clients(server)[-2:])


@every_format
def test_J2_clients_with_other_keys_share_nothing(fmt: str, tmp_path: Path) -> None:
    """The same words of two keys: the second is served as if the first had never been."""

    def run(store: str, keys: tuple[str, ...]) -> list[list[bytes]]:
        with (
            ScriptedServer(talking(), window=WINDOW) as server,
            RunningGateway(upstream=server.url, store=store, summaries="off") as gateway,
        ):
            for key in keys:
                client = Resending(fmt, key=key)
                client.messages = list(said)
                client.tried(gateway)
            return [members(asked) for asked in server.requests]

    said = _long_talk(fmt)
    alone = run(str(tmp_path / "alone.db"), ("second",))
    together = run(str(tmp_path / "both.db"), ("first", "second"))
    assert together[-1:] == alone
    assert len(json.dumps(said)) > 100_000


def _long_talk(fmt: str) -> list[dict[str, Any]]:
    words = " ".join(f"word{number}" for number in range(900))
    kind = {"openai-responses": "output_text"}.get(fmt, "text")
    said: list[dict[str, Any]] = []
    for turn in range(16):
        said.append({"role": "user", "content": f"Question {turn} {words}"})
        said.append({"role": "assistant", "content": [{"type": kind, "text": f"Answer {turn}"}]})
    return [*said, {"role": "user", "content": "And now?"}]


@every_format
def test_D1_one_reset_of_the_prefix_for_each_cut_and_none_between(fmt: str) -> None:
    client = Resending(fmt)
    with (
        ScriptedServer(talking(), window=WINDOW) as server,
        RunningGateway(upstream=server.url, summaries="off") as gateway,
    ):
        for turn in range(TURNS):
            say(client, gateway, turn)
        assert own_requests(server) == 0
        assert resets(of_clients(server)) == figure(gateway, "compactions") > 1


@every_format
def test_D2_nothing_of_ours_changes_with_time(fmt: str) -> None:
    """The same conversation in two gateways, a while apart: the same bytes."""

    def run() -> list[bytes]:
        client = Resending(fmt)
        client.messages = _long_talk(fmt)
        with (
            ScriptedServer(talking(), window=WINDOW) as server,
            RunningGateway(upstream=server.url, summaries="off") as gateway,
        ):
            client.send(gateway)
            return [asked.body for asked in server.requests]

    assert run() == run()


@every_format
def test_D3_a_summary_is_asked_for_on_the_prefix_that_is_cached(fmt: str) -> None:
    client = Resending(fmt)
    with ScriptedServer(talking(), window=WINDOW) as server, RunningGateway(upstream=server.url) as gateway:
        for turn in range(TURNS):
            say(client, gateway, turn)
        summaries = [asked for asked in server.requests if is_asked_to_summarise(asked)]
        assert len(summaries) == own_requests(server) > 0
        for asked in summaries:
            assert asked.cached > 0.9 * asked.tokens
            assert asked.model == client.model

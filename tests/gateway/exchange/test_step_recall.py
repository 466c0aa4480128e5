"""A client's tool loop through the gateway: what its model names again and left the window comes back, once.

The client knows nothing of it: it resends what was said, and the block stands in its place.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from everlong.llm import Answer, ReceivedRequest, ScriptedServer, Window
from tests.gateway.resending import FORMATS, Resending, disguised, members, of_clients, resets, valid_upstream
from tests.gateway.running import RunningGateway

Value = dict[str, Any]
NAMED, SECRET = "harbour_ledger_key", "quay-7741-north"
STEPS = 40


@dataclass
class Reading(Resending):
    """A client whose model reads one file a step; the first one holds what it names again much later."""

    steps: int = 0
    said: list[str] = field(default_factory=list)

    def step(self, gateway: RunningGateway, words: str = "") -> None:
        """One request, its answer with a call, and the result."""
        self.said.append(words)
        _, (call,) = self._answered(self.send(gateway))
        results = self._result(call)
        if not self.steps:
            page = f"def {NAMED}():\n    return '{SECRET}'"
            results = json.loads(
                json.dumps(results).replace(json.dumps(_text(results[0]))[1:-1], json.dumps(page)[1:-1])
            )
        self.messages += results
        self.steps += 1

    def script(self, asked: ReceivedRequest) -> Answer:
        """What the model says next: a call, with the words that are asked for."""
        path = json.dumps({"path": f"src/part_{asked.number}.py"})
        return Answer(text=self.said[-1], calls=(("read_file", path),))


def _text(message: Value) -> str:
    block = message["content"][0] if isinstance(message.get("content"), list) else message
    text = block.get("content") or block.get("output")
    assert isinstance(text, str)
    return text


def blocks(asked: ReceivedRequest) -> int:
    """How often the early result stands in a request."""
    return asked.body.count(SECRET.encode())


def looped(client: Reading, gateway: RunningGateway, server: ScriptedServer) -> None:
    """Go on until what was read first has left the window."""
    client.messages.append({"role": "user", "content": "Tidy up the harbour office, file by file."})
    for _ in range(STEPS):
        client.step(gateway)
        if client.steps > 2 and not blocks(of_clients(server)[-1]):
            break
    client.step(gateway)
    assert not blocks(of_clients(server)[-1]), "it never left"


@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize("kept", ["memory", "restarted"])
def test_what_a_step_names_comes_back_once_and_stays_in_its_place(fmt: str, kept: str, tmp_path: Path) -> None:
    client = Reading(fmt, disguise=disguised, lines=30)
    options: Value = {"store": str(tmp_path / "kept.db"), "keep": "edits"} if kept == "restarted" else {}
    with ScriptedServer(client.script, window=Window(10_000, told=True)) as server:
        with RunningGateway(upstream=server.url, **options) as gateway:
            looped(client, gateway, server)
            first = len(of_clients(server))
            client.step(gateway, f"Now I change {NAMED} as well.")
            client.step(gateway)
            client.settle(gateway)
            named = of_clients(server)[-1]
            assert blocks(named) == 1
            if kept == "memory":
                for _ in range(2):
                    client.step(gateway)
        if kept == "restarted":
            with RunningGateway(upstream=server.url, **options) as gateway:
                client.step(gateway)
        valid_upstream(server)
        requests = of_clients(server)
    assert all(blocks(asked) == 1 for asked in requests[first + 1 :]), "once, and it stays"
    assert resets(requests[first:]) == 0, "no byte before it changes"
    last = json.loads(members(named)[-1])
    assert SECRET in json.dumps(last), "behind the results of the step"
    assert not any(SECRET.encode() in one for one in members(named)[:-1])


def test_nothing_comes_back_where_nothing_is_named() -> None:
    client = Reading("openai-chat", lines=30)
    with (
        ScriptedServer(client.script, window=Window(10_000, told=True)) as server,
        RunningGateway(upstream=server.url) as gateway,
    ):
        looped(client, gateway, server)
        client.step(gateway, "Now I change the ledger of the harbour as well.")
        client.step(gateway)
        assert not blocks(of_clients(server)[-1])

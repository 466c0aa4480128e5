"""Requirement line CB-10: the document's success figures can be read."""

import re
from urllib.request import urlopen

from everlong.llm import ScriptedServer, Window, reads_files
from tests.gateway.resending import Resending
from tests.gateway.running import RunningGateway


def figures(gateway: RunningGateway) -> dict[str, float]:
    """Every figure by its name, labels added up."""
    with urlopen(f"{gateway.address}/metrics") as answer:
        text = answer.read().decode()
    found: dict[str, float] = {}
    for name, value in re.findall(r"^(\w+)(?:{.*})? (\S+)$", text, re.MULTILINE):
        found[name] = found.get(name, 0.0) + float(value)
    return found


def test_CB_10_overflows_lengths_and_compactions_are_counted() -> None:
    with (
        ScriptedServer(reads_files(1), window=Window(16_000)) as server,
        RunningGateway(upstream=server.url, summaries="off") as gateway,
    ):
        client = Resending("openai-chat")
        before = figures(gateway)
        for turn in range(30):
            client.ask(gateway, f"Question {turn}")
        after = figures(gateway)
        assert before["everlong_overflows_total"] == before.get("everlong_compactions_total", 0) == 0
        assert after["everlong_overflows_total"] == after["everlong_recoveries_total"] == 1
        assert after["everlong_overflows_lost_total"] == 0, "errors that reached a user"
        assert after["everlong_compactions_total"] >= 1
        assert after["everlong_conversation_messages_count"] == client.turns == 60
        longest = len(client.messages) - 1
        assert after["everlong_conversation_messages_sum"] == sum(range(1, longest + 1, 2))


def test_CB_10_an_overflow_that_reaches_a_client_is_counted_as_such() -> None:
    with (
        ScriptedServer(window=Window(200)) as server,
        RunningGateway(upstream=server.url, summaries="off") as gateway,
    ):
        client = Resending("openai-chat", messages=[{"role": "user", "content": "word " * 2_000}])
        assert client.tried(gateway)[0] == 400
        assert figures(gateway)["everlong_overflows_lost_total"] == 1

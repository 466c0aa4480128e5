"""Peers in processes of their own: what travels, what comes back, and what happens when one fails."""

import ast
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from everlong.core import CallId, Message, Role, Text, ToolCall, ToolResult
from everlong.errors import InputError
from everlong.lab.environments import ENVIRONMENTS, Environments
from everlong.lab.peers import PEER_NAMES, open_peer
from everlong.lab.peers.peer import Peer, Process
from everlong.lab.peers.shapes import split_system, without_empty_calls
from everlong.lab.peers.table import PEERS, PeerRow
from everlong.lab.peers.worker import attempt, serve, way_of
from tests.lab import echo_adapter
from tests.lab.echo_adapter import FAILS, FALLS_OVER

ROOT = Path(__file__).parents[3]
ECHO = PeerRow("echo", "echo", "core", "echo", "newest")
COMMAND = (sys.executable, "-m", "everlong.lab.peers.worker", "tests.lab.echo_adapter", "newest")
SETTINGS = os.environ | {"PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "src")))}


ADAPTERS = sorted(path for path in (ROOT / "src/everlong/lab/peers/adapters").glob("*.py") if path.stem != "__init__")
#: Adapters that others take something from.
USERS_OF = {"langchain_messages": ("langchain_trim", "langmem_summary"), "minilm_vectors": ("minilm", "litellm_minilm")}
#: What is installed -> the packages that come with it and are imported, where they have another name.
BRINGS = {
    "haystack_ai": {"haystack"},
    "headroom_ai": {"headroom"},
    "langchain": {"langchain_core"},
    "langmem": {"langchain_core"},
    "openai_agents": {"agents"},
    "pydantic_ai_harness": {"pydantic_ai"},
    "strands_agents": {"strands"},
}


def imports_of(path: Path) -> set[str]:
    """Return the modules that a file imports at its top."""
    found: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    return found


def said(text: str, role: Role = Role.USER) -> Message:
    return Message(role, (Text(text),))


TALK = tuple(said(f"line {number}", Role.USER if number % 2 == 0 else Role.ASSISTANT) for number in range(30))


class Inside:
    """The worker in this process, with all that was sent to it."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.fresh = True

    def ask(self, line: str) -> str:
        self.fresh = False
        self.requests.append(json.loads(line))
        answers = io.StringIO()
        # Each call is a new loop, so what it was sent before is sent along, as one process would have kept it.
        serve(echo_adapter.STRATEGIES["newest"], map(json.dumps, self.requests), answers)
        return answers.getvalue().splitlines()[-1]

    def last_words(self) -> str:
        return ""

    def close(self) -> None:
        self.fresh = True


def inside() -> tuple[Peer, Inside]:
    process = Inside()
    return Peer(ECHO, process, lambda _: None), process


def test_messages_that_were_not_touched_come_back_as_the_same_values() -> None:
    peer, _ = inside()
    made, *kept = peer(TALK, 4)
    assert made.text == "30 messages"
    assert all(one is other for one, other in zip(kept, TALK[-4:], strict=True))


def test_a_conversation_travels_once() -> None:
    peer, process = inside()
    for length in (10, 20, 30, 15, 30):
        peer(TALK[:length], 3)
    peer((*TALK[:20], said("a question")), 3)
    assert [len(request["add"]) for request in process.requests] == [10, 10, 10, 0, 0, 1]
    assert [request["length"] for request in process.requests] == [10, 20, 30, 15, 30, 21]


def test_results_that_share_a_message_travel_apart() -> None:
    calls = tuple(ToolCall(CallId(name), "read", "{}") for name in "ab")
    results = tuple(ToolResult(CallId(name), (Text(f"file {name}"),)) for name in "ab")
    history = (said("read both"), Message(Role.ASSISTANT, calls), Message(Role.TOOL, results))
    peer, process = inside()
    _, *kept = peer(history, 2)
    assert [message.results[0].text for message in kept] == ["file a", "file b"]
    assert process.requests[0]["length"] == 4


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 30), st.integers(1, 9), st.booleans()), max_size=6))
def test_what_was_asked_before_never_changes_an_answer(asked: list[tuple[int, int, bool]]) -> None:
    peer, _ = inside()
    for number, (length, budget, question) in enumerate(asked):
        history = (*TALK[:length], said(f"question {number}")) if question else TALK[:length]
        fresh, _ = inside()
        assert peer(history, budget) == fresh(history, budget)


def test_one_process_answers_again_and_again_whatever_the_peer_prints() -> None:
    process = Process(COMMAND, SETTINGS)
    peer = Peer(ECHO, process, lambda _: None)
    assert process.fresh
    assert [len(peer(TALK, budget)) for budget in (1, 2, 3)] == [2, 3, 4]
    assert not process.fresh
    peer.close()
    assert process.fresh
    assert len(peer(TALK, 5)) == 6
    peer.close()


def test_a_peer_that_fails_gives_nothing_and_is_told_once() -> None:
    told: list[str] = []
    peer = Peer(ECHO, Process(COMMAND, SETTINGS), told.append)
    assert peer(TALK, FAILS) == peer(TALK, FAILS) == ()
    assert told == ["echo gives nothing for some: ValueError: thirteen is no budget"]
    assert len(peer(TALK, 2)) == 3
    peer.close()


def test_a_peer_that_falls_over_is_started_again() -> None:
    told: list[str] = []
    peer = Peer(ECHO, Process(COMMAND, SETTINGS), told.append)
    assert peer(TALK, FALLS_OVER) == ()
    assert told == ["echo gives nothing for some: gone for good"]
    assert len(peer(TALK, 2)) == 3
    peer.close()


def test_a_peer_that_does_not_answer_in_time_is_ended() -> None:
    process = Process((sys.executable, "-c", "import sys; sys.stdin.read()"), SETTINGS, patience=0.2)
    assert process.ask("{}") == ""
    assert process.last_words() == "the answer timed out"


def test_a_way_that_fails_as_foreseen_says_how() -> None:
    way = way_of("tests.lab.echo_adapter", "newest")
    assert attempt(way, [], FAILS) == {"error": "ValueError: thirteen is no budget"}


def test_a_peers_process_needs_only_the_standard_library() -> None:
    code = "import everlong.lab.peers, everlong.lab.peers.worker, everlong.lab.peers.table, everlong.lab.speed.worker"
    bare = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    subprocess.run([sys.executable, "-S", "-c", code], env=bare, check=True)


@pytest.mark.parametrize("row", PEERS.values(), ids=PEER_NAMES)
def test_every_row_names_an_adapter_and_an_environment(row: PeerRow) -> None:
    assert row.environment in ENVIRONMENTS
    source = (ROOT / "src" / f"{row.module.replace('.', '/')}.py").read_text(encoding="utf-8")
    assert f'"{row.strategy}": ' in source


@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda path: path.stem)
def test_an_adapter_runs_beside_its_own_library_alone(adapter: Path) -> None:
    """It imports nothing that its environment would not have: the standard library, its own packages, our rules."""
    rows = [row for row in PEERS.values() if row.adapter in (adapter.stem, *USERS_OF.get(adapter.stem, ()))]
    assert rows, "no row of the table reaches it"
    for environment in (ENVIRONMENTS[row.environment] for row in rows):
        named = {re.split(r"[\[<>=]", name)[0].replace("-", "_") for name in environment.wanted}
        own = named.union(sys.stdlib_module_names, *(BRINGS.get(name, ()) for name in named))
        for module in imports_of(adapter):
            if module == "everlong.lab.peers.rules":
                assert environment.counted, "the rules need the counter"
            elif not module.startswith("everlong.lab.peers."):
                assert module.partition(".")[0] in own, module


def test_an_unknown_peer_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="unknown peer 'nobody': the peers are langchain-trim"):
        open_peer("nobody", Environments(tmp_path))


def test_the_system_prompt_stands_apart_where_there_is_one() -> None:
    system, user = {"role": "system", "content": "s"}, {"role": "user", "content": "u"}
    assert split_system([system, user]) == ([system], [user])
    assert split_system([user]) == ([], [user])
    assert without_empty_calls([{"role": "user", "tool_calls": []}, {"tool_calls": [1]}]) == [
        {"role": "user"},
        {"tool_calls": [1]},
    ]

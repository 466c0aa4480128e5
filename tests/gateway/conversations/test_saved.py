"""Whole conversations kept as threads, where the gateway is told to: one thread each, branches where they part."""

import json
from pathlib import Path

import pytest

from everlong.core import Message
from everlong.gateway.config import Keep
from everlong.llm import ScriptedServer, reads_files
from everlong.store import MemoryThreads
from tests.cli.running import everlong
from tests.gateway.conversations.test_conversations import Desk, planted, said, talk
from tests.gateway.resending import FORMATS, Resending
from tests.gateway.running import RunningGateway


def stored(store: MemoryThreads) -> list[list[str]]:
    """The words of each thread, message by message."""
    return [
        [row.entry.text for row in store.read(thread.id) if isinstance(row.entry, Message)]
        for thread in reversed(store.threads(archived=None))
    ]


def words(*numbers: int) -> list[str]:
    return [said(number, 0)["content"] for number in numbers]


def test_a_conversation_is_one_thread_of_its_key() -> None:
    store = MemoryThreads()
    desk = Desk(store, keep="text")
    for end in range(1, 8, 2):
        desk.request(talk(end))
    assert stored(store) == [words(*range(7))]
    (thread,) = store.threads()
    assert thread.owner == "gateway/one"
    assert thread.title.startswith("planted0x")


def test_the_same_request_again_adds_nothing() -> None:
    store = MemoryThreads()
    desk = Desk(store, keep="text")
    for _ in range(3):
        desk.request(talk(5))
    assert stored(store) == [words(*range(5))]


def test_a_conversation_that_parts_is_a_branch() -> None:
    store = MemoryThreads()
    desk = Desk(store, keep="text")
    desk.request(talk(3))
    desk.request(talk(5))
    desk.request([*talk(3), said(100, 1), said(101, 2)])
    assert sorted(map(len, stored(store))) == [5, 5]
    assert words(0, 1, 2, 100, 101) in stored(store)
    assert sorted(thread.parent[1] for thread in store.threads()) == [0, 3]


@pytest.mark.parametrize("room", [1, 1 << 30], ids=["given up each time", "held in memory"])
def test_it_is_found_again_by_what_it_says(room: int) -> None:
    store = MemoryThreads()
    for end in range(1, 8, 2):
        desk = Desk(store, keep="text", room=room)
        desk.request(talk(end))
        desk.request([said(1_000 + end, 0)])
    assert words(*range(7)) in stored(store)
    assert len(stored(store)) == 5


def test_a_thread_that_a_person_removed_begins_anew() -> None:
    store = MemoryThreads()
    desk = Desk(store, keep="text")
    desk.request(talk(3))
    store.remove(store.threads()[0].id)
    desk.request(talk(5))
    assert stored(store) == [words(*range(5))]


def test_two_keys_have_two_threads() -> None:
    store = MemoryThreads()
    desk = Desk(store, keep="text")
    desk.request(talk(3), scope="one")
    desk.request(talk(3), scope="two")
    assert sorted(thread.owner for thread in store.threads()) == ["gateway/one", "gateway/two"]


@pytest.mark.parametrize("keep", ["edits", "nothing"])
def test_without_being_told_no_thread_is_kept(keep: Keep) -> None:
    store = MemoryThreads()
    Desk(store, keep=keep).request(talk(5))
    assert store.threads(archived=None) == []


@pytest.mark.parametrize("fmt", FORMATS)
def test_sessions_list_and_search_find_what_went_through_the_gateway(fmt: str, tmp_path: Path) -> None:
    path = str(tmp_path / "kept.db")
    with (
        ScriptedServer(reads_files(1)) as server,
        RunningGateway(upstream=server.url, store=path, keep="text") as gateway,
    ):
        client = Resending(fmt, lines=3)
        for number in (1, 2, 3):
            client.ask(gateway, f"Where is the harbour of planted{number}x?")
    listed = everlong("sessions", "list", "--store", path, "--json")
    assert listed.code == 0, listed.err
    (thread,) = json.loads(listed.out)
    assert planted(thread["title"]) == {"planted1x"}
    found = everlong("sessions", "search", "planted2x harbour", "--store", path)
    assert found.code == 0, found.err
    assert "planted2x" in found.out

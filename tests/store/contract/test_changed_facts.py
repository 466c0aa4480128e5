"""Contract: a fact is read, changed and kept as one step, whoever else does the same."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from everlong.core import JsonText
from everlong.engine import Threads
from everlong.store.urls import open_store
from tests.store.contract.entries import HOSTILE_TEXTS
from tests.store.engines import START, Opener
from tests.store.postgres_server import database_url, drop_database
from tests.store.writer import COUNTED, begin, one_more, started

Reopen = Callable[[], Threads]
HANDS, TURNS = 8, 25


def test_it_gives_what_is_there_and_keeps_what_it_is_told(store: Threads, reopen: Reopen) -> None:
    seen: list[JsonText | None] = []

    def add(text: JsonText | None) -> JsonText:
        seen.append(text)
        return json.dumps([*json.loads(text or "[]"), "次"])

    assert json.loads(store.change_fact("list", "a", add) or "") == ["次"]
    assert json.loads(store.change_fact("list", "a", add) or "") == ["次", "次"]
    assert (seen[0], json.loads(seen[-1] or "")) == (None, ["次"])
    assert json.loads(reopen().fact("list", "a") or "") == ["次", "次"]


def test_nothing_drops_it(store: Threads) -> None:
    assert store.change_fact("k", "none", lambda _: None) is None
    store.keep_fact("k", "a", "1")
    store.keep_fact("k", "b", "2")
    assert store.change_fact("k", "a", lambda _: None) is None
    assert store.facts("k") == {"b": "2"}


def test_an_error_of_the_caller_changes_nothing(store: Threads) -> None:
    store.keep_fact("k", "a", "1")

    def fail(_: JsonText | None) -> JsonText:
        raise LookupError("not today")

    with pytest.raises(LookupError, match="not today"):
        store.change_fact("k", "a", fail)
    assert store.fact("k", "a") == "1"
    assert store.change_fact("k", "a", one_more) == "2", "and holds nobody up"


def test_the_same_text_is_not_kept_anew(opener: Opener, opened_stores: list[Threads]) -> None:
    now = START
    store = opener(lambda: now)
    opened_stores.append(store)
    store.change_fact("k", "same", lambda _: "1")
    store.change_fact("k", "other", lambda _: "1")
    now = START + timedelta(hours=1)
    assert store.change_fact("k", "same", lambda text: text) == "1"
    assert store.change_fact("k", "other", lambda _: "2") == "2"
    assert store.drop_facts("k", START + timedelta(minutes=1)) == 1
    assert store.facts("k") == {"other": "2"}


def test_any_text_is_a_name_and_a_value(store: Threads, reopen: Reopen) -> None:
    texts = [text for name, text in HOSTILE_TEXTS.items() if name != "300 kB"]
    for text in texts:
        assert store.change_fact(text, text, lambda _, text=text: text) == text  # type: ignore[misc]
    again = reopen()
    assert [again.fact(text, text) for text in texts] == texts


def test_many_threads_lose_nothing(store: Threads) -> None:
    def count(_hand: int) -> list[str]:
        return [store.change_fact("count", "all", one_more) or "" for _ in range(TURNS)]

    with ThreadPoolExecutor(HANDS) as hands:
        given = [int(text) for texts in hands.map(count, range(HANDS)) for text in texts]
    assert sorted(given) == list(range(1, HANDS * TURNS + 1)), "each change is told what stood after it"
    assert store.fact("count", "all") == str(HANDS * TURNS)


def test_what_is_there_is_taken_once(store: Threads) -> None:
    """Hands that put it and hands that take it away, so that it is made and dropped all the time."""

    def put(name: str) -> None:
        store.change_fact("token", "it", lambda text: text or name)

    def take() -> str:
        seen = ""

        def away(text: JsonText | None) -> None:
            nonlocal seen
            seen = text or ""

        store.change_fact("token", "it", away)
        return seen

    def work(hand: int) -> list[str]:
        if hand % 2:
            return [took for _ in range(TURNS) if (took := take())]
        for turn in range(TURNS):
            put(f"{hand} {turn}")
        return []

    with ThreadPoolExecutor(HANDS) as hands:
        taken = [name for names in hands.map(work, range(HANDS)) for name in names]
    assert len(taken) == len(set(taken))
    assert take() not in taken


def _count_in_processes(url: str) -> None:
    processes = [started("count", url, "all", TURNS) for _ in range(2)]
    begin(processes)
    for process in processes:
        _, said = process.communicate(timeout=120)
        assert process.returncode == 0, said
    with open_store(url) as store:
        assert store.fact(COUNTED, "all") == str(2 * TURNS)


@pytest.mark.parametrize("url", ["sqlite:///{}/threads.db", "jsonl:{}/sessions"], ids=["sqlite", "jsonl"])
def test_two_processes_lose_nothing(url: str, tmp_path: Path) -> None:
    _count_in_processes(url.format(tmp_path))


def test_two_processes_lose_nothing_in_postgres() -> None:
    url = database_url()
    try:
        _count_in_processes(url)
    finally:
        drop_database(url)

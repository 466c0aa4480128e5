"""kill -9 while messages are erased: the next one finds all of them, or none of them anywhere.

EVERLONG_SOAK=1 kills twenty times.
"""

import os
import re
from itertools import count
from pathlib import Path

import pytest

from everlong.core import Gone
from everlong.engine import Threads
from everlong.store.urls import open_store
from tests.store.postgres_server import database_url, drop_database
from tests.store.test_removal_killed import wait_for_its_server
from tests.store.writer import begin, secret_of, started

KILLS = 20 if os.environ.get("EVERLONG_SOAK") else 2


def words_in(folder: Path) -> set[str]:
    """The secret words in any byte of any file."""
    contents = (path.read_bytes() for path in folder.rglob("*") if path.is_file())
    return {found.decode() for content in contents for found in re.findall(rb"zebrafish\d+x", content)}


def gone_in(store: Threads, thread: str) -> list[int]:
    return [row.order for row in store.read(thread) if isinstance(row.entry, Gone)]


@pytest.mark.parametrize("kind", ["sqlite", "jsonl", "postgres"])
def test_an_erasure_that_is_killed_is_whole_or_never_began(kind: str, tmp_path: Path) -> None:
    for kill in range(KILLS):
        folder = tmp_path / str(kill)
        folder.mkdir()
        places = {"sqlite": f"sqlite:///{folder}/threads.db", "jsonl": f"jsonl:{folder}/sessions"}
        url = places[kind] if kind in places else database_url()
        process = started("erase", url, "one", 1_000)
        begin([process])
        assert process.stdout is not None
        for _ in range(kill + 1):
            assert process.stdout.readline() == "made\n"
        process.kill()  # it is erasing now
        process.communicate()
        if kind == "postgres":
            wait_for_its_server(url)
        with open_store(url) as store:
            check_whole_or_gone(store, folder if kind in places else None)
        if kind == "postgres":
            drop_database(url)


def check_whole_or_gone(store: Threads, folder: Path | None) -> None:
    left: set[str] = set()
    for thread in store.threads():
        if thread.length > 3 and not thread.id.endswith("-branch"):
            word = secret_of(int(thread.id.removeprefix("erased-")))
            gone = gone_in(store, thread.id)
            assert gone in ([], [0, 1, 62])
            assert len(store.search(word)) in ((0,) if gone else (2, 4))
            left |= set() if gone else {word}
            if gone:
                assert gone_in(store, f"{thread.id}-branch") == [0, 1]
    if folder is not None:
        assert words_in(folder) == left, "not even on a page that is free, or in a log"


def test_killed_at_any_step_a_folder_is_whole_or_gone_when_it_is_opened(tmp_path: Path) -> None:
    """Each file that is renamed or removed is a step; the last round is not killed."""
    outcomes = []
    for step in count(1):
        folder = tmp_path / str(step)
        process = started("step", f"jsonl:{folder}", "one", step)
        begin([process])
        told, _ = process.communicate()
        with open_store(f"jsonl:{folder}") as store:
            gone = [gone_in(store, name) for name in ("t", "t-branch")]
            assert gone in ([[], []], [[0, 2], [0, 2]])
            assert [len(store.open(name).messages) for name in ("t", "t-branch")] == ([1, 1] if gone[0] else [2, 2])
            assert store.thread("t").length == (4 if gone[0] else 3)
        assert not gone[0] or words_in(folder) == set()
        assert not list(folder.glob(".everlong-erasing-*"))
        outcomes.append(bool(gone[0]))
        if told == "erased\n":
            break
    assert outcomes[0] is False
    assert outcomes[1:] == [True] * (len(outcomes) - 1)
    assert len(outcomes) > 3

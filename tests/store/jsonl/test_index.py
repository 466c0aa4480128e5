"""The index is derived: without it, with an old or a broken one, everything reads back the same."""

import json
import os
import shutil
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import pytest

from everlong.core import Event, EventKind, Withdrawal
from everlong.engine import Threads
from everlong.errors import InputError, StoreError
from everlong.store.jsonl import JsonlThreads
from everlong.store.jsonl.log import SMALL
from tests.core.build import assistant, system, user
from tests.store.contract.entries import EVERYTHING, point, talk
from tests.store.engines import START, Clock
from tests.store.jsonl.session_files import NanobotSession, path_of

INDEX = ".everlong-index.db"


def filled(folder: Path) -> None:
    with JsonlThreads(folder) as store:
        store.create("t", owner="ada", title="A title", metadata='{"a": 1}')
        store.append("t", [system("be kind"), *talk(3), EVERYTHING, point(3), *talk(1), point(6), Withdrawal(11)])
        store.pin("t", 2)
        store.branch("t", 9, "u")


def told(store: Threads) -> object:
    return [
        (thread, list(store.read(thread.id)), store.open(thread.id), store.points(thread.id))
        for thread in store.threads(archived=None)
    ]


def spoilt(path: Path, how: str) -> None:
    if how == "gone":
        path.unlink()
    elif how == "garbage":
        path.write_bytes(b"this is no database " * 500)
    elif how == "empty":
        path.write_bytes(b"")
    else:
        connection = sqlite3.connect(path)
        connection.execute("PRAGMA user_version = 99")
        connection.close()


@pytest.mark.parametrize("how", ["gone", "garbage", "empty", "of another version"])
def test_an_index_that_is_no_good_is_made_anew(tmp_path: Path, how: str) -> None:
    filled(tmp_path)
    with JsonlThreads(tmp_path) as store:
        before = told(store)
    spoilt(tmp_path / INDEX, how)
    with JsonlThreads(tmp_path) as store:
        assert told(store) == before
        assert store.search("question", thread="t")[0].thread == "t"
        assert store.warnings == ()


def test_an_index_that_was_left_behind_catches_up(tmp_path: Path) -> None:
    filled(tmp_path)
    shutil.copy(tmp_path / INDEX, tmp_path / "old")
    with JsonlThreads(tmp_path) as store:
        store.append("t", [*talk(2), point(10)])
        store.change("u", title="other")
        before = told(store)
    shutil.move(tmp_path / "old", tmp_path / INDEX)
    with JsonlThreads(tmp_path) as store:
        assert told(store) == before


def test_a_file_that_is_removed_is_no_thread_and_one_that_comes_is(tmp_path: Path) -> None:
    filled(tmp_path)
    with JsonlThreads(tmp_path) as store:
        path_of(tmp_path, "u").unlink()
        assert [thread.id for thread in store.threads()] == ["t"]
        session = NanobotSession("v")
        session.say("user", "hello")
        session.save(tmp_path)
        assert {thread.id for thread in store.threads()} == {"t", "v"}
        assert store.search("hello")[0].thread == "v"


def test_search_follows_what_nanobot_changes(tmp_path: Path) -> None:
    with JsonlThreads(tmp_path) as store:
        store.create("t")
        store.append("t", [user("the blue lamp"), assistant("the green door")])
        assert [hit.row.order for hit in store.search("door")] == [1]
        session = NanobotSession.load(tmp_path, "t")
        session.messages[1:] = [{"role": "assistant", "content": "the red window"}]
        session.save(tmp_path)
        assert store.search("door") == []
        assert [hit.row.order for hit in store.search("window")] == [1]
        assert [hit.row.order for hit in store.search("lamp")] == [0]


def test_the_learned_file_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    filled(tmp_path)
    connection = sqlite3.connect(tmp_path / ".everlong-learned.db")
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(StoreError, match="newer Everlong"):
        JsonlThreads(tmp_path)


def test_a_learned_file_that_is_no_database_is_refused_and_kept(tmp_path: Path) -> None:
    filled(tmp_path)
    path = tmp_path / ".everlong-learned.db"
    path.write_bytes(b"this is no database " * 500)
    with pytest.raises(InputError, match="not a SQLite database"):
        JsonlThreads(tmp_path)
    assert path.read_bytes().startswith(b"this is no database")


def test_a_folder_that_is_a_file_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises((StoreError, InputError), match="a file, not a folder"):
        JsonlThreads(tmp_path / "file")


def test_events_that_cannot_be_read_cost_themselves_alone(tmp_path: Path) -> None:

    first, second = (Event(id=f"e{n}", kind=EventKind.RECALLED, time=START, data=json.dumps([n])) for n in (1, 2))
    with JsonlThreads(tmp_path) as store:
        store.create("t")
        store.record("t", [first])
        path = tmp_path / (path_of(tmp_path, "t").stem + ".events.jsonl")
        with path.open("ab") as file:
            file.write(b'null\n[{"id": 5}]\n{"torn')
        store.record("t", [second])
        assert store.events("t") == [first, second]
    with JsonlThreads(tmp_path) as store:
        assert store.events("t") == [first, second]


def test_a_session_with_nanobots_own_summary_is_indexed_as_from_scratch_after_every_change(tmp_path: Path) -> None:
    folder = tmp_path / "sessions"
    session = NanobotSession("t", metadata={"_last_summary": {"text": "They met."}}, last_consolidated=2)
    for number in range(2):
        session.say("user", f"question {number}")
        session.say("assistant", f"answer {number}")
    folder.mkdir()
    session.save(folder)
    with JsonlThreads(folder) as store:
        assert (store.thread("t").length, store.thread("t").points) == (5, 1)
        assert told(store) == from_scratch(folder, tmp_path)
        session.say("user", "one more")
        session.save(folder)  # nanobot's summary moves behind the new message
        assert [row.order for row, _ in store.points("t")] == [5]
        assert told(store) == from_scratch(folder, tmp_path)
        with path_of(folder, "t").open("a", encoding="utf-8") as file:  # the file only grows
            file.write(json.dumps({"role": "assistant", "content": "and an answer"}) + "\n")
        assert (store.thread("t").length, store.thread("t").points) == (7, 1)
        assert told(store) == from_scratch(folder, tmp_path)
        store.append("t", [user("ours"), point(2)])  # nanobot's summary becomes a row of the file
        assert (store.thread("t").length, store.thread("t").points) == (9, 2)
        assert told(store) == from_scratch(folder, tmp_path)
        store.append("t", [Withdrawal(8), user("again")])
        assert [stands for _, stands in store.points("t")] == [True, False]
        assert told(store) == from_scratch(folder, tmp_path)


def from_scratch(folder: Path, beside: Path) -> object:
    """What a store says that finds the same files and no index."""
    copy = beside / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder, copy, ignore=shutil.ignore_patterns(f"{INDEX}*"))
    with JsonlThreads(copy) as store:
        return told(store)


@pytest.mark.parametrize("size", [0, SMALL], ids=["small", "large"])
def test_a_header_that_is_rewritten_says_the_same_to_an_old_index_and_a_new_one(tmp_path: Path, size: int) -> None:
    folder = tmp_path / "sessions"
    with JsonlThreads(folder) as store:
        store.create("t", owner="ada", title="first")
        store.append("t", [user("x" * size), assistant("y"), point(1)])
        for number in range(3):
            store.change("t", title=f"title {number}", archived=number == 1, settings=json.dumps({"n": number}))
            thread = store.thread("t")
            assert (thread.title, thread.archived, thread.settings) == (
                f"title {number}",
                number == 1,
                f'{{"n": {number}}}',
            )
            assert told(store) == from_scratch(folder, tmp_path)
        store.append("t", [user("after")])
        assert told(store) == from_scratch(folder, tmp_path)
    lines = path_of(folder, "t").read_text(encoding="utf-8").splitlines()
    headers = [line for line in lines if json.loads(line).get("_type") == "metadata"]
    assert len(headers) == (1 if size == 0 else 5), "a small file has one header, a large one gets another at its end"


def test_a_header_that_another_program_rewrites_in_place_is_noticed(tmp_path: Path) -> None:
    folder = tmp_path / "sessions"
    with JsonlThreads(folder) as store:
        store.create("t", title="lamps")
        store.append("t", [user("hello")])
        path = path_of(folder, "t")
        before = path.stat()
        with path.open("r+b") as file:  # the same file, of the same size
            file.seek(path.read_bytes().index(b"lamps"))
            file.write(b"doors")
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 1_000_000))
        assert (path.stat().st_ino, path.stat().st_size) == (before.st_ino, before.st_size)
        assert store.thread("t").title == "doors"
        assert told(store) == from_scratch(folder, tmp_path)


def test_an_append_sets_the_time_of_change_in_the_first_line_alone(tmp_path: Path) -> None:
    clock = Clock()
    with JsonlThreads(tmp_path, clock=clock) as store:
        store.create("t")
        before = path_of(tmp_path, "t").read_bytes()
        (row,) = store.append("t", [user("hello")])
    first = path_of(tmp_path, "t").read_bytes()[: len(before)]
    old, new = json.loads(before), json.loads(first)
    assert datetime.fromisoformat(new.pop("updated_at")).astimezone(UTC) == row.time
    assert datetime.fromisoformat(old.pop("updated_at")).astimezone(UTC) < row.time
    assert new == old

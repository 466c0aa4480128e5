"""Removing a session of a folder: no file of it stays, whenever the one who removes it is killed."""

import shutil
import sqlite3
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from everlong.core import Event, EventKind
from everlong.errors import NoThread, StoreError
from everlong.store.jsonl import JsonlThreads
from everlong.store.rules import utc_now
from everlong.wire import legacy_file_name
from tests.core.build import user
from tests.store.contract.entries import talk
from tests.store.engines import START
from tests.store.jsonl.session_files import NanobotSession, path_of

LEARNED = ".everlong-learned.db"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two sessions; the first has every file beside it that a session can have."""
    with JsonlThreads(tmp_path) as store:
        for name in ("t", "u"):
            store.create(name)
            store.append(name, talk(2, "walrus"))
            store.record(name, [Event(id="e", kind=EventKind.RECALLED, time=START)])
    with path_of(tmp_path, "t").open("ab") as file:
        file.write(b'{"torn')
    with JsonlThreads(tmp_path) as store:
        assert store.thread("t").length == 4
    (tmp_path / f".{path_of(tmp_path, 't').name}.4711.tmp").write_bytes(b"half a session")
    assert len(files_of(tmp_path, "t")) == 4
    return tmp_path


def files_of(folder: Path, key: str) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path_of(folder, key).stem in path.name)


def test_every_file_of_a_session_goes_and_no_other(folder: Path) -> None:
    others = files_of(folder, "u")
    with JsonlThreads(folder) as store:
        store.remove("t")
        assert (files_of(folder, "t"), files_of(folder, "u")) == ([], others)
        assert [thread.id for thread in store.threads()] == ["u"]
        assert store.events("u")


def renamed(folder: Path) -> None:
    path = path_of(folder, "t")
    path.rename(path.with_name(f".{path.name}.removed"))


def renamed_and_events_gone(folder: Path) -> None:
    renamed(folder)
    (folder / f"{path_of(folder, 't').stem}.events.jsonl").unlink()


MOMENTS: dict[str, Callable[[Path], None]] = {
    "after the rename": renamed,
    "before the end": renamed_and_events_gone,
}


@pytest.mark.parametrize("killed", MOMENTS.values(), ids=MOMENTS)
def test_a_removal_that_broke_off_is_finished_by_who_opens_the_folder(
    folder: Path, killed: Callable[[Path], None]
) -> None:
    killed(folder)
    with JsonlThreads(folder) as store:
        assert files_of(folder, "t") == []
        assert [thread.id for thread in store.threads()] == ["u"]
        with pytest.raises(NoThread):
            store.events("t")


@pytest.mark.parametrize("killed", MOMENTS.values(), ids=MOMENTS)
def test_a_removal_that_broke_off_is_finished_by_who_makes_the_session_anew(
    folder: Path, killed: Callable[[Path], None]
) -> None:
    with JsonlThreads(folder) as store:
        assert store.events("t")
        killed(folder)
        with pytest.raises(NoThread):
            store.append("t", [user("more")])
        store.create("t")
        assert (store.events("t"), list(store.read("t"))) == ([], [])
        assert files_of(folder, "t") == [path_of(folder, "t")]


def test_a_second_file_of_the_same_session_goes_too(tmp_path: Path) -> None:
    with JsonlThreads(tmp_path) as store:
        store.create("cli:direct")
        shutil.copy(path_of(tmp_path, "cli:direct"), tmp_path / legacy_file_name("cli:direct"))
        store.remove("cli:direct")
        assert list(tmp_path.glob("*.jsonl")) == []
        assert store.create("cli:direct").length == 0


def test_a_session_that_nanobot_wrote_is_removed(tmp_path: Path) -> None:
    NanobotSession("k", [{"role": "user", "content": "a walrus"}], {"_last_summary": {"text": "They met."}}).save(
        tmp_path
    )
    with JsonlThreads(tmp_path) as store:
        assert store.search("walrus")
        store.remove("k")
        assert store.search("walrus") == store.threads() == list(tmp_path.glob("*.jsonl")) == []


def test_learned_facts_of_the_first_version_count_as_kept_now(tmp_path: Path) -> None:
    database = sqlite3.connect(tmp_path / LEARNED)
    database.executescript("""
        CREATE TABLE facts (kind BLOB, key BLOB, value BLOB NOT NULL, PRIMARY KEY (kind, key));
        CREATE TABLE counts (vocabulary BLOB, ref BLOB, tokens INTEGER NOT NULL, PRIMARY KEY (vocabulary, ref))
            WITHOUT ROWID;
        INSERT INTO facts VALUES (CAST('window' AS BLOB), CAST('x' AS BLOB), CAST('1' AS BLOB));
        PRAGMA user_version = 1;
    """)
    database.close()
    with JsonlThreads(tmp_path) as store:
        assert store.facts("window") == {"x": "1"}
        assert store.drop_facts("window", utc_now() - timedelta(minutes=5)) == 0
        assert store.drop_facts("window", utc_now() + timedelta(minutes=5)) == 1


def test_a_folder_that_cannot_be_written_keeps_the_session(folder: Path) -> None:
    path = path_of(folder, "t")
    path.with_name(f".{path.name}.removed").mkdir()  # nothing can be renamed to this name
    with JsonlThreads(folder.rename(folder.with_name("moved"))) as store:
        with pytest.raises(StoreError):
            store.remove("t")
        assert store.thread("t").length == 4
        assert store.events("t")

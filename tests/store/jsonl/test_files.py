"""Session names are data: every one has a file of its own inside the folder."""

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from everlong.errors import NoThread, ThreadExists
from everlong.store.jsonl import JsonlThreads
from everlong.store.jsonl.files import candidates, hashed_name, is_session, usual_name
from everlong.wire import file_name
from tests.core.build import user
from tests.store.jsonl.session_files import NanobotSession

TRICKS = {
    "up": "../x",
    "up on Windows": "..\\x",
    "absolute": "/etc/passwd",
    "drive": "C:\\x",
    "NUL": "a\0b",
    "empty": "",
    "dot": ".",
    "dots": "..",
    "reserved": "CON",
    "a file of ours": ".everlong-index.db",
    "events": "x.events.jsonl",
    "300 characters": "x" * 300,
    "300 Chinese characters": "家" * 300,
    "emoji": "👩‍👩‍👧‍👦",
    "half a character": "\ud83d",
    "line end": "a\nb",
}


@pytest.mark.parametrize("name", TRICKS.values(), ids=TRICKS)
def test_no_name_leaves_the_folder(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "in" / "sessions"
    with JsonlThreads(folder) as store:
        store.create(name)
        store.append(name, [user("hello")])
        with pytest.raises(ThreadExists):
            store.create(name)
    with JsonlThreads(folder) as again:
        assert [thread.id for thread in again.threads()] == [name]
        assert [row.entry for row in again.read(name)] == [user("hello")]
    assert [path for path in tmp_path.rglob("*") if folder not in (path, path.parent)] == [tmp_path / "in"]


@given(st.text(max_size=400))
def test_every_name_gives_plain_file_names_of_a_bearable_length(key: str) -> None:
    for name in candidates(key):
        assert Path(name).name == name
        assert is_session(name)
        assert len(name.encode()) + len(".checkpoint.json.0123456789abcdef.tmp") <= 255


@given(st.text(max_size=300), st.text(max_size=300))
def test_two_names_have_two_files(one: str, other: str) -> None:
    assert (usual_name(one) == usual_name(other)) == (one == other)


def test_usual_names_are_nanobots() -> None:
    assert usual_name("cli:direct") == file_name("cli:direct") == "Y2xpOmRpcmVjdA.jsonl"
    assert usual_name("x" * 300) == hashed_name("x" * 300)


def test_no_name_becomes_a_device_of_windows() -> None:
    devices = {"CON", "PRN", "AUX", "NUL", *(f"{port}{n}" for port in ("COM", "LPT") for n in range(10))}
    short = [chr(one) + chr(two) for one in range(128) for two in range(128)]
    keys = [*short, *(f"{key}{chr(three)}" for key in short[::7] for three in range(0, 128, 3))]
    assert not devices & {usual_name(key).removesuffix(".jsonl").upper() for key in keys}


def test_a_name_whose_file_is_taken_gets_another(tmp_path: Path) -> None:
    """As on a file system that takes Aa for aA: the file is there, but another session is in it."""
    other = NanobotSession("another")
    other.save(tmp_path)
    (tmp_path / file_name("another")).rename(tmp_path / usual_name("mine"))
    with JsonlThreads(tmp_path) as store:
        with pytest.raises(NoThread):
            store.thread("mine")
        store.create("mine")
        store.append("mine", [user("hello")])
        assert {thread.id: thread.length for thread in store.threads()} == {"another": 0, "mine": 1}
    assert {path.name for path in tmp_path.glob("*.jsonl")} == {usual_name("mine"), hashed_name("mine")}

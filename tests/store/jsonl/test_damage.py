"""Whatever happens to the files of a session folder: what is good is read, the rest is told by its place."""

import os
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from everlong.core import Event, EventKind
from everlong.errors import EverlongError
from everlong.store import JsonlThreads, open_store
from everlong.store.damage import NOTE
from tests.core.build import assistant, user
from tests.store.contract.entries import EVERYTHING, point
from tests.store.engines import START
from tests.store.jsonl.session_files import path_of

SECRET = "the number of the safe is 4711"


def fill(folder: Path) -> None:
    with JsonlThreads(folder) as store:
        store.create("t", title="Safes")
        store.append("t", [user("one"), EVERYTHING, user(SECRET), assistant("two"), point(2), user("three")])
        store.pin("t", 0)
        store.record("t", [Event(id="e", kind=EventKind.RECALLED, time=START, reason=SECRET)])
        store.create("other")


@settings(max_examples=150)
@given(st.data())
def test_whatever_happens_to_a_file_it_is_read_or_one_line_says_why(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("damaged")
    fill(folder)
    path = data.draw(st.sampled_from(sorted(folder.glob("*.jsonl"))))
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content)))
        piece = data.draw(st.binary(max_size=32) | st.sampled_from([b"\n", b"\0" * 64, b'"', b"null", b"[", b"{}\n"]))
        content[at : at + data.draw(st.integers(0, 32))] = piece
    path.write_bytes(content)
    told = ""
    try:
        with JsonlThreads(folder) as store:
            for thread in store.threads(archived=None):
                list(store.read(thread.id))
                store.open(thread.id)
                store.events(thread.id)
                store.pins(thread.id)
                store.points(thread.id)
            store.search("safe")
            told = " ".join(store.warnings)
    except EverlongError as error:
        told = str(error)
        assert "\n" not in told
    assert SECRET not in told


def test_a_row_whose_bytes_changed_though_the_file_looks_the_same_costs_itself_alone(tmp_path: Path) -> None:
    with JsonlThreads(tmp_path) as store:
        store.create("t")
        store.append("t", [user("one"), user(SECRET), user("three")])
        path = path_of(tmp_path, "t")
        before = path.stat()
        path.write_bytes(path.read_bytes().replace(SECRET.encode(), b'"' * len(SECRET)))
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert [message.text for message in store.open("t").messages] == ["one", NOTE, "three"]
        assert store.warnings == ("thread 't', row 1 cannot be read; the stored data is unchanged",)


def test_a_pipe_among_the_files_is_passed_over_at_once(tmp_path: Path) -> None:
    with JsonlThreads(tmp_path) as store:
        store.create("t")
        store.append("t", [user("one")])
        events = path_of(tmp_path, "t").with_suffix(".events.jsonl")
    os.mkfifo(events)
    os.mkfifo(path_of(tmp_path, "pipe"))
    with JsonlThreads(tmp_path) as store:
        assert [thread.id for thread in store.threads()] == ["t"]
        assert store.events("t") == []
        with pytest.raises(EverlongError, match="device"):
            store.record("t", [Event(id="e", kind=EventKind.RECALLED, time=START)])
    (tmp_path / ".everlong-index.db").unlink()
    os.mkfifo(tmp_path / ".everlong-index.db")
    with pytest.raises(EverlongError, match="pipe or a device"):
        open_store(f"jsonl:{tmp_path}")

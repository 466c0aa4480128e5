"""G1, G2, G3 on JSONL: broken lines, files that grow, several programs on one folder."""

import json
import logging
import os
import shutil
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from everlong.core import Entry, Message
from everlong.errors import StoreBusy
from everlong.store import JsonlThreads
from everlong.store.jsonl.lock import FolderLock
from tests.core.build import assistant, calls, result, user
from tests.store.contract.entries import point, talk
from tests.store.engines import START
from tests.store.jsonl.session_files import NanobotSession, path_of

GOOD = [user("one"), assistant("two"), user("three")]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[JsonlThreads]:
    with JsonlThreads(tmp_path) as store:
        store.create("t")
        store.append("t", GOOD[:2], ids=["r1", "r2"])
        yield store


def entries(store: JsonlThreads, thread: str = "t") -> list[Entry]:
    return [row.entry for row in store.read(thread)]


# --- G1 One malformed line loses the rest, or the next append is lost too ------------------------------

DAMAGE: dict[str, tuple[bytes, str]] = {
    "a line cut off": (b'{"role": "user", "content": "hal\n', "not JSON"),
    "NUL bytes": (b"\0" * 4_096 + b"\n", "NUL bytes"),
    "no UTF-8": (b'{"role": "user", "content": "\xff\xfe"}\n', "not UTF-8"),
    "a list": (b"[1, 2]\n", "not an object but list"),
    "a number": (b"7\n", "not an object but int"),
    "nested too deeply": (b"[" * 100_000 + b"\n", "not JSON"),
    "no role": (b'{"content": "who?"}\n', "no message"),
    "an unknown kind of line": (b'{"_type": "future"}\n', "no message"),
    "a mark that is none": (b'{"role": "user", "content": "x", "_everlong": 5}\n', "mark"),
    "a body that is none": (
        b'{"role": "user", "content": "x", "_everlong": {"id": "b", "body": "{"}}\n',
        "cannot be read",
    ),
}


@pytest.mark.parametrize(("damage", "why"), DAMAGE.values(), ids=DAMAGE)
@pytest.mark.parametrize("rebuilt", [False, True], ids=["index kept", "index gone"])
def test_G1_a_broken_line_costs_itself_alone(
    store: JsonlThreads, tmp_path: Path, damage: bytes, why: str, rebuilt: bool
) -> None:
    path = path_of(tmp_path, "t")
    line = json.dumps({"role": "user", "content": "three"}).encode() + b"\n"
    with path.open("ab") as file:
        file.write(damage + line)
    if rebuilt:
        store.close()
        (tmp_path / ".everlong-index.db").unlink()
        store = JsonlThreads(tmp_path)
    with store:
        read = entries(store)
        assert [entry.text for entry in read if isinstance(entry, Message)] == ["one", "two", "three"]
        (warning,) = store.warnings
        assert "line 4" in warning
        assert why in warning
        assert damage in path.with_name(path.name + ".corrupt").read_bytes()
        store.append("t", [user("four")])
        assert [entry.text for entry in entries(store) if isinstance(entry, Message)][2:] == ["three", "four"]
        assert len(store.warnings) == 1


@pytest.mark.parametrize("damage", [name for name in DAMAGE if DAMAGE[name][1].startswith("not")])
def test_G1_what_nanobot_could_not_load_is_taken_out_for_it_too(
    store: JsonlThreads, tmp_path: Path, damage: str
) -> None:
    with path_of(tmp_path, "t").open("ab") as file:
        file.write(DAMAGE[damage][0])
    store.thread("t")
    assert [message["content"] for message in NanobotSession.load(tmp_path, "t").messages] == ["one", "two"]


@pytest.mark.parametrize("tail", [b'{"role": "user", "cont', b"{", b"\0\0\0", b'{"role": "user", "content": "\xe4\xbd'])
def test_G1_an_append_after_a_torn_end_starts_on_a_new_line(store: JsonlThreads, tmp_path: Path, tail: bytes) -> None:
    path = path_of(tmp_path, "t")
    with path.open("ab") as file:
        file.write(tail)
    store.append("t", GOOD[2:])
    assert entries(store) == GOOD
    assert tail in path.with_name(path.name + ".corrupt").read_bytes()
    assert [message["content"] for message in NanobotSession.load(tmp_path, "t").messages] == ["one", "two", "three"]
    assert "line 4" in store.warnings[0]


def test_G1_a_whole_line_without_its_end_is_good(store: JsonlThreads, tmp_path: Path) -> None:
    with path_of(tmp_path, "t").open("ab") as file:
        file.write(json.dumps({"role": "user", "content": "three"}).encode())
    assert len(entries(store)) == 3
    store.append("t", [user("four")])
    assert [entry.text for entry in entries(store) if isinstance(entry, Message)] == ["one", "two", "three", "four"]
    assert store.warnings == ()


def test_G1_a_write_of_several_lines_that_broke_off_is_not_there_at_all(store: JsonlThreads, tmp_path: Path) -> None:
    path = path_of(tmp_path, "t")
    before = path.read_bytes()
    store.append("t", talk(3))
    written = path.read_bytes()[len(before) :]
    ends = [at + 1 for at, byte in enumerate(written) if byte == ord("\n")]
    store.close()
    for cut in (1, ends[0] - 1, ends[0], ends[2] + 7, ends[4], len(written) - 2):
        path.write_bytes(before + written[:cut])
        (tmp_path / ".everlong-index.db").unlink()
        with JsonlThreads(tmp_path) as again:
            assert entries(again) == GOOD[:2]
            assert path.read_bytes() == before
            assert "line 4" in again.warnings[0]


@pytest.mark.parametrize("rebuilt", [False, True], ids=["index kept", "index gone"])
def test_G1_a_point_whose_metadata_was_lost_is_told_to_nanobot_later(
    store: JsonlThreads, tmp_path: Path, rebuilt: bool
) -> None:
    path = path_of(tmp_path, "t")
    before = path.read_bytes()
    shutil.copy(tmp_path / ".everlong-index.db", tmp_path / "old")
    store.append("t", [point(2, "the summary")])
    store.close()
    path.write_bytes(before + path.read_bytes()[len(before) :].split(b"\n")[0] + b'\n{"_type": "metad')
    (tmp_path / ".everlong-index.db").unlink()
    if not rebuilt:
        shutil.move(tmp_path / "old", tmp_path / ".everlong-index.db")
    with JsonlThreads(tmp_path) as again:
        assert [stands for _, stands in again.points("t")] == [True]
        again.append("t", GOOD[2:])
        assert again.open("t").messages == (user("the summary"), *GOOD[2:])
    assert NanobotSession.load(tmp_path, "t").metadata["_last_summary"]["text"] == "the summary"


def test_G1_a_record_behind_lost_bytes_is_good(store: JsonlThreads, tmp_path: Path) -> None:
    with path_of(tmp_path, "t").open("ab") as file:
        file.write(b"\0" * 512 + json.dumps({"role": "user", "content": "three"}).encode() + b"\n")
    assert len(entries(store)) == 3
    store.append("t", [user("four")])
    assert len(entries(store)) == 4


def test_G1_line_separators_inside_a_line_end_nothing(store: JsonlThreads, tmp_path: Path) -> None:
    text = "a\u2028b\u2029c\x85d"
    with path_of(tmp_path, "t").open("ab") as file:
        file.write(json.dumps({"role": "user", "content": text}, ensure_ascii=False).encode() + b"\n")
    assert [entry.text for entry in entries(store) if isinstance(entry, Message)] == ["one", "two", text]
    assert store.warnings == ()


def test_G1_the_same_row_twice_is_there_once(store: JsonlThreads, tmp_path: Path) -> None:
    path = path_of(tmp_path, "t")
    lines = path.read_bytes().splitlines(keepends=True)
    with path.open("ab") as file:
        file.write(lines[-1])
    assert entries(store) == GOOD[:2]
    assert "line 4" in store.warnings[0]


def test_G1_another_message_with_a_taken_id_is_kept_under_another(store: JsonlThreads, tmp_path: Path) -> None:
    path = path_of(tmp_path, "t")
    lines = path.read_bytes().splitlines(keepends=True)
    with path.open("ab") as file:
        file.write(lines[-1].replace(b"two", b"too"))
    rows = list(store.read("t"))
    assert [row.id for row in rows] == ["r1", "r2", "r2~2"]
    assert "r2" in store.warnings[0]


def test_G1_what_is_found_wrong_is_logged(
    store: JsonlThreads, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with path_of(tmp_path, "t").open("ab") as file:
        file.write(b"torn")
    with caplog.at_level(logging.WARNING, "everlong.store"):
        store.thread("t")
    assert caplog.messages == list(store.warnings)


# --- G2 Logs grow; opening needs memory for all of it ---------------------------------------------------


def spoil(path: Path, until: bytes) -> None:
    """Make everything between the first line and `until` unreadable, in a way that only reading it can tell."""
    found, data = path.stat(), path.read_bytes()
    start, end = data.index(b"\n") + 1, data.index(until)
    with path.open("r+b") as file:
        file.seek(start)
        file.write(b"x" * (end - start))
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))


def test_G2_opening_reads_what_follows_the_last_point_and_a_cut_rewrites_nothing(tmp_path: Path) -> None:
    path = path_of(tmp_path, "t")
    with JsonlThreads(tmp_path) as store:
        store.create("t")
        for number in range(10):
            length = store.append("t", [user(f"{number} " + "0123456789 abcdef\n" * 6_000)])[0].order
            store.append("t", [point(length + 1, f"summary {number}")])
        store.append("t", talk(2))
        opened = store.open("t")
        assert opened.messages == (*point(0, "summary 9").summary, *talk(2))
    size, inode = path.stat().st_size, path.stat().st_ino
    assert size > 1_000_000
    spoil(path, until=b"summary 9")
    with JsonlThreads(tmp_path) as again:
        assert tuple(row.entry for row in again.last("t", 4)) == talk(2)
        again.append("t", [user("more"), point(22)])
        assert again.thread("t").points == 11
        assert again.open("t").messages == (*point(0).summary, *talk(2)[2:], user("more"))
        assert again.warnings == ()
    assert path.stat().st_size - size < 5_000
    assert path.stat().st_ino == inode


def test_G2_a_list_reads_no_bodies(tmp_path: Path) -> None:
    with JsonlThreads(tmp_path) as store:
        for number in range(5):
            store.create(f"t{number}")
            store.append(f"t{number}", [user("x" * 10_000), user("end")])
        listed = store.threads()
    for number in range(5):
        spoil(path_of(tmp_path, f"t{number}"), until=b"end")
    with JsonlThreads(tmp_path) as again:
        assert again.threads() == listed
        assert again.warnings == ()


# --- G3 Two writers, lost updates -----------------------------------------------------------------------


def test_G3_a_second_writer_is_told_clearly_when_the_first_does_not_let_go(tmp_path: Path) -> None:
    with JsonlThreads(tmp_path, wait=0.05) as store:
        store.create("t")
        with FolderLock(tmp_path, wait=0.05).held(), pytest.raises(StoreBusy, match="another program has held"):
            store.append("t", GOOD)
        store.append("t", GOOD)
        assert entries(store) == GOOD


def test_G3_what_a_program_without_a_lock_writes_meanwhile_stays(tmp_path: Path) -> None:
    path = path_of(tmp_path, "t")
    line = json.dumps({"role": "user", "content": "from nanobot"}).encode() + b"\n"

    def clock() -> datetime:
        """Asked between looking at the file and writing to it: that is when the other program writes."""
        if path.exists() and line not in path.read_bytes():
            with path.open("ab") as file:
                file.write(line)
        return START

    with JsonlThreads(tmp_path) as store:
        store.create("t")
    with JsonlThreads(tmp_path, clock=clock) as store:
        with pytest.raises(StoreBusy, match="does not lock it"):
            store.append("t", [user("ours")])
        assert line in path.read_bytes()
        store.append("t", [user("ours")])
        assert [entry.text for entry in entries(store) if isinstance(entry, Message)] == ["from nanobot", "ours"]


def test_G3_a_lock_file_that_was_removed_guards_nothing(tmp_path: Path) -> None:
    with FolderLock(tmp_path, wait=0.05).held():
        (tmp_path / ".session-files.lock").unlink()
        with FolderLock(tmp_path, wait=0.05).held():
            assert (tmp_path / ".session-files.lock").exists()


def test_G3_what_nanobot_removed_is_told(store: JsonlThreads, tmp_path: Path) -> None:
    store.append("t", [calls("1"), result("1"), *talk(2)])
    session = NanobotSession.load(tmp_path, "t")
    session.messages = session.messages[2:]
    session.save(tmp_path)
    assert len(entries(store)) == 6
    assert "2 rows are no longer in the file" in store.warnings[0]

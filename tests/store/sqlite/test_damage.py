"""A SQLite file that is damaged, of another program, or no file at all: what is good is read, the rest is one line."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from everlong.core import Message
from everlong.engine import Threads
from everlong.errors import EverlongError, InputError, StoreError
from everlong.store import open_store
from everlong.store.damage import NOTE
from tests.core.build import result, user

SECRET = "the number of the safe is 4711"
LARGE = result("1", f"{SECRET} " * 400)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "threads.db"
    fill(made)
    return made


def fill(path: Path) -> None:
    with open_store(str(path)) as store:
        store.create("t", title="Safes")
        store.append("t", [user("one"), user(SECRET), LARGE, user("four")])
        store.create("other", title="Other")


def do(path: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(statement, values)


def texts(store: Threads) -> list[str]:
    return [row.entry.text for row in store.read("t") if isinstance(row.entry, Message)]


DAMAGE = {
    "a text that is not UTF-8": (
        "UPDATE bodies SET body = CAST(? AS TEXT) WHERE number = 2",
        SECRET.encode() + b"\xff",
    ),
    "bytes where a text was": ("UPDATE bodies SET body = ? WHERE number = 2", SECRET.encode()),
    "a number where a text was": ("UPDATE bodies SET body = ? WHERE number = 2", 7),
    "a kind that is none": ("UPDATE log SET kind = ? WHERE position = 1", 99),
    "a time that is none": ("UPDATE log SET time = ? WHERE position = 1", SECRET),
    "a name that is not UTF-8": ("UPDATE log SET name = CAST(? AS TEXT) WHERE position = 1", b"\xff\xfe"),
    "a body that is gone": ("DELETE FROM bodies WHERE number = ?", 2),
}


@pytest.mark.parametrize(("statement", "value"), DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_row_costs_itself_alone(
    path: Path, statement: str, value: object, caplog: pytest.LogCaptureFixture
) -> None:
    do(path, statement, value)
    with open_store(str(path)) as store:
        read = texts(store)
        assert [read[at] for at in (0, 2, 3)] == ["one", LARGE.text, "four"]
        assert read[1] in (NOTE, SECRET), "a name or a time that is lost costs no text"
        assert [message.text for message in store.open("t").messages] == read
        assert store.warnings == ("thread 't', row 1 cannot be read; the stored data is unchanged",)
        assert caplog.messages == list(store.warnings)
        store.append("t", [user("five")])
        store.remove("t")
        assert [thread.id for thread in store.threads()] == ["other"]


def test_a_large_text_that_is_gone_costs_its_row_alone(path: Path) -> None:
    do(path, "DELETE FROM texts")
    with open_store(str(path)) as store:
        assert texts(store) == ["one", SECRET, NOTE, "four"]
        assert ["row 2" in warning for warning in store.warnings] == [True]


def test_a_page_that_is_lost_costs_the_rows_on_it_alone(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    body = "x" * 2_000  # below what is stored apart; each needs much of a page
    with open_store(str(path)) as store:
        store.create("t")
        store.append("t", [user(f"{number} {body}") for number in range(40)])
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (size,) = db.execute("PRAGMA page_size").fetchone()
    data = bytearray(path.read_bytes())
    at = data.index(f"20 {body}".encode()) // size * size
    data[at : at + size] = b"\xff" * size
    path.write_bytes(data)
    with open_store(str(path)) as store:
        read = [row.entry.text for row in store.read("t") if isinstance(row.entry, Message)]
        assert len(read) == 40
        lost = [number for number, text in enumerate(read) if text == NOTE]
        assert 20 in lost
        assert len(lost) < 5
        assert all(text == f"{number} {body}" for number, text in enumerate(read) if number not in lost)
        assert len(store.warnings) == len(lost)


def test_a_thread_whose_own_row_is_damaged_does_not_hide_the_others(path: Path) -> None:
    do(path, "UPDATE threads SET created = ? WHERE name = 't'", SECRET)
    with open_store(str(path)) as store:
        assert [thread.id for thread in store.threads()] == ["other"]
        assert store.warnings == ("thread number 1 cannot be read; the stored data is unchanged",)
        with pytest.raises(StoreError, match="thread 't' cannot be read"):
            store.thread("t")


# --- no store at all --------------------------------------------------------------------------------------


def test_what_is_no_database_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    path.write_bytes(os.urandom(10_000))  # an encrypted database looks the same
    with pytest.raises(InputError, match="not a SQLite database, or it is encrypted"):
        open_store(str(path))


def test_a_database_that_is_cut_off_is_one_line(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:8_192])
    with pytest.raises(StoreError, match=r"damaged; `sqlite3 FILE \.recover`"), open_store(str(path)) as store:
        texts(store)


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    return path


def test_a_pipe_a_device_or_a_folder_is_refused_at_once(tmp_path: Path, fifo: Path) -> None:
    for place in (fifo, Path("/dev/zero"), Path("/dev/tty"), tmp_path):
        for url in (str(place), f"sqlite:///{place}"):
            with pytest.raises(InputError, match="not a file"):
                open_store(url)
    for place in (fifo, Path("/dev/zero")):
        with pytest.raises(EverlongError, match="not a folder"):
            open_store(f"jsonl:{place}")


@settings(max_examples=60)
@given(st.data())
def test_whatever_happens_to_the_file_it_is_read_or_one_line_says_why(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("damaged") / "threads.db"
    fill(path)
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content) - 1))
        piece = data.draw(st.binary(min_size=1, max_size=64))
        content[at : at + len(piece)] = piece
    path.write_bytes(content[: data.draw(st.integers(0, len(content)) | st.just(len(content)))])
    try:
        with open_store(str(path)) as store:
            for thread in store.threads(archived=None):
                list(store.read(thread.id))
                store.open(thread.id)
                store.events(thread.id)
            store.search("safe")
            told = " ".join(store.warnings)
    except EverlongError as error:
        told = str(error)
        assert "\n" not in told
    assert SECRET not in told

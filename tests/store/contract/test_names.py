"""Contract: the name of a thread is data. Any text is one, no two of them are the same thread."""

import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest

from everlong.engine import Threads
from everlong.errors import ThreadExists
from tests.core.build import user

Reopen = Callable[[], Threads]

NAMES = [
    "",
    " ",
    ".",
    "..",
    "../x",
    "/etc/passwd",
    "a/b",
    "a\\b",
    "a\x00b",
    "a\nb",
    "x" * 300,
    "x" * 299 + "y",
    "长" * 300,
    "😀",
    "👩‍👩‍👧‍👦",
    "con",
    "CON",
    "nul.txt",
    "cli:direct",
    "cli_direct",
    "Session",
    "session",
    "session ",
    "session.",
    "session.jsonl",
    unicodedata.normalize("NFC", "é"),
    unicodedata.normalize("NFD", "é"),
    "ﬁ",
    "fi",
    "'; DROP TABLE threads; --",
    "%",
    "_",
    "*",
    "~",
    "-rf",
    "$(id)",
    "a\u2028b",
    "\ufeffa",
    "half \ud83d a pair",
]


def test_every_name_is_a_thread_of_its_own(store: Threads, reopen: Reopen, tmp_path: Path) -> None:
    around = {path.name for path in tmp_path.parent.iterdir()}
    for number, name in enumerate(NAMES):
        assert store.create(name, owner=name, title=name).id == name
        store.append(name, [user(f"thread {number}")])
    again = reopen()
    assert {thread.id for thread in again.threads()} == set(NAMES)
    for number, name in enumerate(NAMES):
        known = again.thread(name)
        assert (known.id, known.owner, known.title, known.length) == (name, name, name, 1)
        assert [row.entry for row in again.read(name)] == [user(f"thread {number}")]
        assert [thread.id for thread in again.threads(owner=name)] == [name]
    assert {path.name for path in tmp_path.parent.iterdir()} == around


def test_every_name_is_taken_once(store: Threads) -> None:
    for name in NAMES:
        store.create(name)
        with pytest.raises(ThreadExists):
            store.create(name)
        with pytest.raises(ThreadExists):
            store.branch(name, 0, name)
    assert len(store.threads()) == len(NAMES)


def test_ids_of_rows_are_any_text_too(store: Threads, reopen: Reopen) -> None:
    store.create("t")
    names = [name for name in NAMES if name]
    rows = store.append("t", [user(f"row {number}") for number, _ in enumerate(names)], ids=names)
    again = reopen()
    for row, name in zip(rows, names, strict=True):
        assert row.id == name
        assert again.row("t", name) == row
    assert again.row("t", "no such row") is None

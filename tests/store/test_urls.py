"""Stores by name."""

import subprocess
import sys
from pathlib import Path

import pytest

from everlong.errors import InputError
from everlong.store.jsonl import JsonlThreads
from everlong.store.memory import MemoryThreads
from everlong.store.sqlite import SqliteThreads
from everlong.store.urls import is_remote, open_store

NO_STORES = [
    *("", "  ", "sqlite:", "sqlite:///", "sqlite://host/file.db", "jsonl:", "postgresql:", "postgres:host/db"),
    *("mysql://host/db", "http://example.org", "memory:file", "redis://", "a\0b"),
]


@pytest.mark.parametrize("form", ["{}", "sqlite:///{}", "SQLITE:///{}", "sqlite:{}"])
def test_a_path_and_its_url_are_the_same_file(tmp_path: Path, form: str) -> None:
    path = tmp_path / "my threads.db"
    with SqliteThreads(path) as store:
        store.create("a")
    with open_store(form.format(path)) as store:
        assert store.thread("a").id == "a"


def test_signs_in_a_url_may_be_escaped(tmp_path: Path) -> None:
    with open_store(f"sqlite:///{tmp_path}/my%20threads.db") as store:
        store.create("a")
    assert (tmp_path / "my threads.db").is_file()


def test_memory_keeps_nothing() -> None:
    with open_store("memory:") as store:
        store.create("a")
        assert isinstance(store, MemoryThreads)
    with open_store("memory:") as other:
        assert other.threads() == []


def test_jsonl_is_a_folder(tmp_path: Path) -> None:
    with open_store(f"jsonl:{tmp_path}/sessions") as store:
        assert isinstance(store, JsonlThreads)


def test_only_what_is_reached_over_a_network_is_remote() -> None:
    remote = ["postgresql://host/db", "postgres://host/db", "PostgreSQL://host/db"]
    local = ["threads.db", "postgres.db", "sqlite:///threads.db", "jsonl:sessions", "memory:"]
    assert [url for url in (*remote, *local) if is_remote(url)] == remote


def test_a_missing_extra_is_named() -> None:
    code = """if True:
        import sys
        sys.modules["psycopg"] = sys.modules["psycopg_pool"] = None  # as if it were not installed
        from everlong.errors import InputError
        from everlong.store.urls import open_store
        try:
            open_store("postgresql://localhost/threads")
        except InputError as error:
            print(error)
    """
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert "everlong[postgres]" in done.stdout


@pytest.mark.parametrize("url", NO_STORES)
def test_what_names_no_store_is_refused_in_one_line(url: str) -> None:
    with pytest.raises(InputError) as refusal:
        open_store(url)
    assert "\n" not in str(refusal.value)

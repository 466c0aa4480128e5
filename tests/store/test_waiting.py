"""Another program holds a store: the wait is bounded and told, the error says what to do, and readers do not wait."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

import psycopg
import pytest

from everlong.errors import InputError, StoreBusy
from everlong.store import PostgresThreads, open_store
from everlong.store.jsonl.lock import FolderLock
from everlong.store.rules import WAIT
from tests.cli.running import everlong
from tests.core.build import user
from tests.store.postgres_server import database_url, drop_database

Held = Callable[[str], AbstractContextManager[object]]


@contextmanager
def sqlite_held(url: str) -> Iterator[None]:
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)) as db:
        db.execute("BEGIN IMMEDIATE")
        yield


def jsonl_held(url: str) -> AbstractContextManager[object]:
    return FolderLock(Path(url.removeprefix("jsonl:")), wait=WAIT).held()


@contextmanager
def postgres_held(url: str) -> Iterator[None]:
    with psycopg.connect(url) as link:
        link.execute("SELECT FROM everlong.threads FOR UPDATE")
        yield
        link.rollback()


@pytest.fixture(params=["sqlite", "jsonl", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, Held]]:
    match request.param:
        case "sqlite":
            url, held = f"sqlite:///{tmp_path}/threads.db", sqlite_held
        case "jsonl":
            url, held = f"jsonl:{tmp_path}", jsonl_held
        case _:
            url, held = database_url(), postgres_held
            PostgresThreads(url).close()
    with open_store(url) as store:
        store.create("t", title="Boats")
        store.append("t", [user("one")])
    yield url, held
    if request.param == "postgres":
        drop_database(url)


def timed(url: str, seconds: str) -> str:
    return f"{url}{'&' if '?' in url else '?'}timeout={seconds}"


def test_the_wait_is_as_long_as_the_name_of_the_store_says(place: tuple[str, Held]) -> None:
    url, held = place
    with open_store(timed(url, "0.1")) as store:
        with held(url), pytest.raises(StoreBusy, match=r"stop that program or try again later \(.*timeout=SECONDS"):
            store.append("t", [user("two")])
        store.append("t", [user("three")])
        assert [row.entry for row in store.read("t")] == [user("one"), user("three")]


def test_after_a_second_the_person_is_told_whom_the_command_waits_for(place: tuple[str, Held]) -> None:
    url, held = place
    with held(url):
        ran = everlong("sessions", "rename", "t", "Ships", "--store", timed(url, "1.5"), "--lang", "en")
    told, error = ran.err.splitlines()
    assert (ran.code, ran.out) == (1, "")
    assert "waiting for another" in told
    assert "try again later" in error


def test_an_untold_wait_is_a_few_seconds() -> None:
    assert 1 < WAIT <= 15


@pytest.mark.parametrize("wrong", ["", "x", "-1", "nan", "1e9"])
def test_a_timeout_that_is_no_number_of_seconds_is_refused(wrong: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="timeout of a store must be a number of seconds"):
        open_store(f"{tmp_path}/threads.db?timeout={wrong}")
    assert list(tmp_path.iterdir()) == []

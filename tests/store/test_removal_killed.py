"""kill -9 while a thread is removed: the next one finds all of it or nothing."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from everlong.core import ref_of
from everlong.engine import Threads
from everlong.errors import NoThread
from everlong.store.urls import open_store
from tests.store.postgres_server import database_url, drop_database
from tests.store.writer import BRANCH, LARGE, REMOVED, TOLD, begin, removable, started

KILLS = 4


@pytest.fixture(params=["sqlite", "jsonl", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    match request.param:
        case "postgres":
            given = database_url()
            yield given
            drop_database(given)
        case "sqlite":
            yield f"sqlite:///{tmp_path}/threads.db"
        case _:
            yield f"jsonl:{tmp_path}/sessions"


def test_G1_a_removal_that_is_killed_is_whole_or_never_began(url: str) -> None:
    for kill in range(KILLS):
        process = started("remove", url, "one", 1_000)
        begin([process])
        assert process.stdout is not None
        for _ in range(kill + 1):
            assert process.stdout.readline() == "made\n"
        process.kill()  # it is removing now, or has removed and makes the next
        process.communicate()
        if url.startswith("postgresql"):
            wait_for_its_server(url)
        with open_store(url) as store:
            length = _length(store)
            assert length in (None, 0, len(removable()))
            if length:
                assert [row.entry for row in store.read(REMOVED)] == list(removable())
                assert store.original(REMOVED, ref_of(LARGE)) is not None
                store.remove(REMOVED)
            elif length == 0:
                store.remove(REMOVED)
            store.create(REMOVED)
            assert (list(store.read(REMOVED)), store.events(REMOVED), store.pins(REMOVED)) == ([], [], ())
            assert {hit.thread for hit in store.search(TOLD, limit=100)} <= {BRANCH}
            assert [row.entry for row in store.read(BRANCH)] == list(removable())
            store.remove(REMOVED)


def wait_for_its_server(url: str) -> None:
    """Until what a killed client had sent is done."""
    with psycopg.connect(url, autocommit=True) as link:
        others = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        while link.execute(others).fetchone() is not None:
            continue


def _length(store: Threads) -> int | None:
    try:
        return store.thread(REMOVED).length
    except NoThread:
        return None

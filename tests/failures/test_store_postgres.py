"""G3, G4: many writers, killed clients and a restarted server, on a real Postgres. Longer with EVERLONG_SOAK."""

import os
import random
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack

import psycopg
import pytest

from everlong.core import Message, Point, opened
from everlong.errors import StoreBusy, StoreError, ThreadChanged
from everlong.store import PostgresThreads
from tests.core.build import user
from tests.store.postgres_client import client, row_id
from tests.store.postgres_server import Server, private_server, session_server

SOAK = bool(os.environ.get("EVERLONG_SOAK"))
PROCESSES = 8
TURNS = 200 if SOAK else 6
KILLS = 50 if SOAK else 2
RESTARTS = 50 if SOAK else 2
APPENDS_A_ROUND = 250 if SOAK else 20  # turns of each of two writers; a turn is two appends


@pytest.fixture
def url() -> str:
    """A database that nobody ever opened."""
    return session_server().new_database()


@pytest.fixture(scope="module")
def own_server() -> Iterator[Server]:
    """A server that may be stopped."""
    with private_server() as server:
        yield server


def ids_in(store: PostgresThreads, thread: str) -> list[str]:
    """The ids of a thread's messages; the rows stand where they say."""
    rows = list(store.read(thread))
    assert [row.order for row in rows] == list(range(len(rows))) == list(range(store.thread(thread).length))
    return [row.id for row in rows if isinstance(row.entry, Message)]


def test_G3_eight_processes_and_a_compactor_lose_and_reorder_nothing(url: str) -> None:
    with ExitStack() as running:
        writers = [
            running.enter_context(client("writer", url, f"hand{hand}", f"all,own{hand}", str(TURNS)))
            for hand in range(PROCESSES)
        ]
        compactor = running.enter_context(client("compactor", url, "cut", "all", str(PROCESSES * TURNS)))
        assert [writer.wait() for writer in (*writers, compactor)] == [0] * (PROCESSES + 1)
    with PostgresThreads(url) as store:
        shared = ids_in(store, "all")
        assert len(shared) == PROCESSES * TURNS
        for hand in range(PROCESSES):
            wanted = [row_id(f"hand{hand}", turn) for turn in range(TURNS)]
            assert [name for name in shared if name.startswith(f"hand{hand}-")] == wanted
            assert ids_in(store, f"own{hand}") == wanted
        rows = tuple(store.read("all"))
        assert store.open("all") == opened(store.thread("all"), rows)
        assert any(isinstance(row.entry, Point) for row in rows)


def test_G3_a_killed_client_loses_at_most_the_append_in_flight(url: str) -> None:
    chance = random.Random(6)
    with PostgresThreads(url) as store:
        for kill in range(KILLS):
            hand = f"hand{kill}"
            with client("writer", url, hand, "t", "0") as writer:
                said = [read_turn(writer) for _ in range(chance.randrange(5, 60))]
                writer.kill()
                said += map(int, rest_of(writer))
            kept = [name for name in ids_in(store, "t") if name.startswith(f"{hand}-")]
            assert kept[: len(said)] == [row_id(hand, turn) for turn in said]
            assert len(kept) - len(said) <= 1
            [again] = store.append("t", [user("said again")], ids=[row_id(hand, 0)])
            assert again.entry == user(f"{hand} says 0")


def test_G3_clients_carry_on_when_the_server_restarts_under_load(own_server: Server) -> None:
    url = own_server.new_database()
    with ExitStack() as running:
        writers = [
            running.enter_context(client("writer", url, f"hand{hand}", f"all,own{hand}", "0")) for hand in range(2)
        ]
        said = [[read_turn(writer)] for writer in writers]
        with PostgresThreads(url) as store:
            for restart in range(RESTARTS):
                own_server.restart("fast" if restart % 2 else "immediate")
                for hand, (writer, turns) in enumerate(zip(writers, said, strict=True)):
                    done = store.thread(f"own{hand}").length  # what it says from here on was done after the restart
                    while turns[-1] < done + APPENDS_A_ROUND:
                        turns.append(read_turn(writer))
            for writer, turns in zip(writers, said, strict=True):
                turns += map(int, rest_of(writer))
            assert [writer.wait() for writer in writers] == [0, 0]
            shared = ids_in(store, "all")
            for hand, turns in enumerate(said):
                wanted = [row_id(f"hand{hand}", turn) for turn in turns]
                assert turns == list(range(len(turns)))
                assert [name for name in shared if name.startswith(f"hand{hand}-")] == wanted
                assert ids_in(store, f"own{hand}") == wanted


def test_G3_a_thread_held_too_long_is_a_clear_refusal(url: str) -> None:
    with PostgresThreads(url, patience=0.2) as store, psycopg.connect(url) as other:
        store.create("t")
        other.execute("SELECT FROM everlong.threads FOR UPDATE")
        with pytest.raises(StoreBusy, match="another writer has held the thread"):
            store.append("t", [user("hello")])
        other.rollback()
        assert store.append("t", [user("hello")])[0].order == 0


def test_a_server_that_stays_away_is_one_clear_line(own_server: Server) -> None:
    url = own_server.new_database()
    with PostgresThreads(url, patience=0.2) as store:
        store.create("t")
        own_server.stop()
        with pytest.raises(StoreError, match="Postgres does not answer") as refused:
            store.append("t", [user("hello")])
        assert "\n" not in str(refused.value)
        with pytest.raises(StoreError, match="Postgres does not answer"):
            PostgresThreads(url, patience=0.2)
        own_server.start()
        assert store.append("t", [user("hello")])[0].order == 0


def test_G4_a_point_on_what_has_grown_since_is_not_applied(url: str) -> None:
    with PostgresThreads(url) as store, PostgresThreads(url) as elsewhere:
        store.create("t")
        store.append("t", [user("one"), user("two")])
        elsewhere.append("t", [user("three")])
        with pytest.raises(ThreadChanged, match="has 3 rows, not 2"):
            store.append("t", [Point(boundary=2, summary=(user("one, two"),))], expected=2)
        assert store.open("t").messages == (user("one"), user("two"), user("three"))
        store.append("t", [Point(boundary=2, summary=(user("one, two"),))], expected=3)
        assert elsewhere.open("t").messages == (user("one, two"), user("three"))


def read_turn(writer: subprocess.Popen[str]) -> int:
    """The next turn that the writer says it has done."""
    assert writer.stdout
    return int(writer.stdout.readline())


def rest_of(writer: subprocess.Popen[str]) -> list[str]:
    """End the writer's input, and what else it says until it ends."""
    assert writer.stdin
    assert writer.stdout
    writer.stdin.close()
    return writer.stdout.read().split()

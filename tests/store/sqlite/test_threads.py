"""What is special to SQLite: one file, many connections, versions, and what can be wrong with a file."""

import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from everlong.core import Event, EventKind, Message, Point, Role, Text, Withdrawal, ref_of
from everlong.engine import Threads
from everlong.errors import EverlongError, InputError, NoThread, StoreBusy, StoreError
from everlong.store.rules import utc_now
from everlong.store.sqlite import SqliteThreads
from everlong.store.sqlite.catalog import get_thread
from everlong.store.sqlite.removal import remove_thread, terms_between
from everlong.store.sqlite.schema import MIGRATIONS, VERSION, migrate
from tests.core.build import assistant, result, system, user
from tests.store.writer import ROOT

_MEETS_THE_CONTRACT: type[Threads] = SqliteThreads


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "threads.db"


def query(path: Path, sql: str) -> list[tuple[object, ...]]:
    """What the file itself says, past the store."""
    db = sqlite3.connect(path, isolation_level=None)
    try:
        return db.execute(sql).fetchall()
    finally:
        db.close()


def test_G2_a_large_result_is_stored_once_in_messages_threads_and_branches(path: Path) -> None:
    large = "the same file again " * 5_000
    with SqliteThreads(path) as store:
        for name in ("a", "b"):
            store.create(name)
            store.append(name, [user("read it"), result("1", large), assistant("twice"), result("2", large)])
        store.branch("a", 4, "c")
        assert store.original("c", ref_of(large)) == large.encode()
    assert query(path, "SELECT count(*), max(length(content)) FROM texts") == [(1, len(large))]
    assert query(path, "SELECT count(*), max(length(body)) < 1000 FROM bodies") == [(8, 1)]


def test_G2_listing_reads_no_bodies(path: Path) -> None:
    with SqliteThreads(path) as store:
        store.create("a", owner="ada", title="A")
        store.append("a", [user("hello"), Point(boundary=1, summary=(user("s"),))])
    for table in ("bodies", "texts", "words"):
        query(path, f"DROP TABLE {table}")
    with SqliteThreads(path) as store:
        (listed,) = store.threads(owner="ada")
        assert (listed.title, listed.length, listed.messages, listed.points) == ("A", 2, 1, 1)
        assert store.thread("a") == listed


def test_G2_opening_reads_nothing_that_a_point_covers(path: Path) -> None:
    with SqliteThreads(path) as store:
        store.create("a")
        store.append("a", [system("be brief"), *(user(f"old {number}") for number in range(50))])
        store.append("a", [Point(boundary=51, summary=(user("first"),)), user("new")])
        store.append("a", [Point(boundary=52, summary=(user("second"),)), Withdrawal(53)])
        whole = store.open("a")
    query(path, "DELETE FROM bodies WHERE number IN (SELECT body FROM log WHERE position BETWEEN 1 AND 50)")
    query(path, "DELETE FROM bodies WHERE number = (SELECT body FROM log WHERE position = 53)")
    with SqliteThreads(path) as store:
        assert store.open("a", before=53) == store.open("a", before=53)
        assert store.open("a", before=53).messages == whole.messages
        assert whole.messages == (system("be brief"), user("first"), user("new"))


def test_reading_holds_no_transaction_while_the_caller_is_busy(path: Path) -> None:
    with SqliteThreads(path) as store:
        store.create("a")
        store.append("a", [user(str(number)) for number in range(200)])
        rows = store.read("a")
        first = next(rows)
        store.append("a", [user("later")])
        assert query(path, "PRAGMA wal_checkpoint(TRUNCATE)") == [(0, 0, 0)]
        assert [first.order, *(row.order for row in rows)] == list(range(200))


def test_texts_that_are_no_valid_unicode_are_kept(path: Path) -> None:
    odd = "a\ud800\x00b"
    with SqliteThreads(path) as store:
        store.create(odd, owner=odd, title=odd)
        store.append(odd, [user(odd)], ids=[odd])
        store.pin(odd, None, odd)
        store.keep_fact(odd, odd, f'"{odd}"')
    with SqliteThreads(path) as store:
        (found,) = store.threads(owner=odd)
        assert (found.id, found.title, found.owner) == (odd, odd, odd)
        assert [(row.id, row.entry) for row in store.read(odd)] == [(odd, user(odd))]
        assert store.pins(odd)[0].text == odd
        assert store.facts(odd) == {odd: f'"{odd}"'}


def test_one_owner_is_not_found_by_another_however_alike_their_words(path: Path) -> None:
    with SqliteThreads(path) as store:
        for owner in ("ada", "ben"):
            store.create(owner, owner=owner)
            store.append(owner, [user("the walrus")])
        assert {hit.thread for hit in store.search("walrus", owner="ada")} == {"ada"}
        assert {hit.thread for hit in store.search("walrus")} == {"ada", "ben"}
        assert store.search("walrus", thread="ada", owner="ben") == []
        assert {hit.thread for hit in store.search("1_walrus 2_walrus", owner="ben")} == {"ben"}


def test_common_words_bring_in_the_newest_and_count_beside_rare_ones(path: Path) -> None:
    with SqliteThreads(path) as store:
        store.create("a")
        store.append("a", [user(f"walrus clam {number}") for number in range(1_500)])
        store.append("a", [user("oyster and more"), user("oyster walrus")])
        assert [hit.row.order for hit in store.search("walrus oyster", limit=2)] == [1501, 1500]
        common = [hit.row.order for hit in store.search("walrus clams", limit=5)]
        assert len(common) == 5
        assert min(common) >= 500


def test_common_words_fill_up_where_rare_ones_bring_in_too_few(path: Path) -> None:
    with SqliteThreads(path) as store:
        for name in ("a", "b"):
            store.create(name)
            store.append(name, [user(f"walrus {number}") for number in range(600)])
        store.append("a", [user("oyster")])
        assert len(store.search("walrus oyster", limit=5)) == 5
        assert store.search("walrus oyster")[0].row.order == 600
        assert {hit.thread for hit in store.search("walrus oyster", thread="b", limit=5)} == {"b"}


def test_a_new_file_is_private(path: Path) -> None:
    with SqliteThreads(path) as store:
        store.create("a")
        assert [file.stat().st_mode & 0o077 for file in path.parent.iterdir()] == [0, 0, 0]


# Processes and threads


def test_a_forked_process_gets_connections_of_its_own(path: Path) -> None:
    code = """if True:
        import os, sys
        from everlong.store.sqlite import SqliteThreads
        from tests.core.build import user
        store = SqliteThreads(sys.argv[1])
        store.create("a")
        child = os.fork()
        for number in range(20):
            store.append("a", [user(f"{'parent' if child else 'child'} {number}")])
        store.close()
        if child:
            sys.exit(os.waitpid(child, 0)[1])
    """
    subprocess.run([sys.executable, "-c", code, path], check=True, cwd=ROOT)
    with SqliteThreads(path) as store:
        said = [row.entry.text for row in store.read("a")]  # type: ignore[union-attr]
    for who in ("parent", "child"):
        assert [text for text in said if text.startswith(who)] == [f"{who} {number}" for number in range(20)]


def test_connections_of_threads_that_ended_are_closed(path: Path) -> None:
    with SqliteThreads(path) as store:
        store.create("a")
        for _ in range(30):
            worker = threading.Thread(target=store.thread, args=("a",))
            worker.start()
            worker.join()
        opened = [one for one in Path("/proc/self/fd").glob("*") if str(path) in os.path.realpath(one)]
        assert len(opened) < 12


def test_G3_a_writer_who_never_lets_go_is_named_and_readers_carry_on(path: Path) -> None:
    with SqliteThreads(path, wait=0.05) as store:
        store.create("a")
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreBusy, match="writing"):
            store.append("a", [user("hello")])
        assert store.thread("a").length == 0
        other.execute("COMMIT")
        other.close()
        assert len(store.append("a", [user("hello")])) == 1


# Versions


def test_an_older_file_is_migrated_with_all_it_holds(path: Path) -> None:
    with SqliteThreads(path) as store:
        store.create("a")
        store.append("a", [user("hello")])
    later = (*MIGRATIONS, "ALTER TABLE threads ADD COLUMN colour TEXT NOT NULL DEFAULT 'red'; CREATE TABLE more (a)")
    db = sqlite3.connect(path, isolation_level=None)
    for _ in range(2):
        db.execute("BEGIN IMMEDIATE")
        migrate(db, str(path), later)
        db.execute("COMMIT")
    db.close()
    assert query(path, "SELECT name, colour, length FROM threads") == [("a", "red", 1)]
    assert query(path, "PRAGMA user_version") == [(VERSION + 1,)]
    with pytest.raises(StoreError, match=f"newer Everlong .version {VERSION + 1}"):
        SqliteThreads(path)


LARGE = "the same file again " * 500


def test_a_file_of_the_first_version_gets_times_of_facts_and_uses_of_texts(path: Path) -> None:
    odd = "a\ud800\x00b"
    with SqliteThreads(path) as store:
        for name in ("a", "b"):
            store.create(name)
            store.append(
                name, [user("read them"), result("1", LARGE), result("2", f"{LARGE}!"), user(f"{LARGE}{name}")]
            )
        twice = Message(Role.TOOL, (Text(LARGE), Text('{"@text":"' + "0" * 64 + '"}'), Text(f"{LARGE}!")))
        store.append("a", [twice])
        store.keep_fact("window", odd, f'"{odd}"')
        store.keep_fact("window", "x", "1")
    uses = query(path, "SELECT text, body FROM text_uses ORDER BY text, body")
    assert len(uses) == 8
    make_first_version(path)
    with SqliteThreads(path) as store:
        assert store.facts("window") == {odd: f'"{odd}"', "x": "1"}
        assert store.drop_facts("window", utc_now() - timedelta(minutes=5)) == 0
        assert store.drop_facts("window", utc_now() + timedelta(seconds=1)) == 2
        assert query(path, "SELECT text, body FROM text_uses ORDER BY text, body") == uses
        store.remove("a")
        assert [row.entry for row in store.read("b")][1:3] == [result("1", LARGE), result("2", f"{LARGE}!")]
    assert query(path, "PRAGMA user_version") == [(VERSION,)]
    assert query(path, "SELECT count(*) FROM texts") == [(3,)]


def make_first_version(path: Path) -> None:
    """The file as the first version would have written it."""
    db = sqlite3.connect(path, isolation_level=None)
    db.executescript("""
        CREATE TABLE first_facts (kind TEXT NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL,
            PRIMARY KEY (kind, name)) WITHOUT ROWID;
        INSERT INTO first_facts SELECT kind, name, value FROM facts;
        DROP TABLE facts;
        ALTER TABLE first_facts RENAME TO facts;
        DROP TABLE text_uses;
        DROP TABLE erasing;
        DROP TABLE vectors;
        DROP INDEX log_removed;
        ALTER TABLE log DROP COLUMN removed;
        PRAGMA user_version = 1;
    """)
    db.close()


def test_a_removed_thread_leaves_nothing_in_any_table(path: Path) -> None:
    with SqliteThreads(path) as store:
        for name in ("a", "b"):
            store.create(name, owner=name)
            store.append(name, [user("the walrus"), result("1", LARGE), Point(boundary=1, summary=(user(LARGE),))])
            store.pin(name, 0)
            store.record(name, [Event(id="e", kind=EventKind.USAGE_RECORDED, time=utc_now())])
            store.keep_vectors(name, "m", {0: b"x"})
        store.branch("a", 2, "c")
        for name in ("a", "c", "b"):
            assert query(path, "SELECT count(*) FROM texts") == [(1,)]
            store.remove(name)
            query(path, "INSERT INTO words (words) VALUES ('integrity-check')")
    tables = ("owners", "threads", "log", "bodies", "texts", "text_uses", "refs", "pins", "events", "words", "vectors")
    for table in tables:
        assert query(path, f"SELECT count(*) FROM {table}") == [(0,)], table
    query(path, "CREATE VIRTUAL TABLE terms USING fts5vocab (words, row)")
    assert query(path, "SELECT * FROM terms") == []


def test_rows_that_come_while_a_thread_is_removed_leave_the_index_too(path: Path) -> None:
    with SqliteThreads(path) as store:
        store.create("t")
        store.append("t", [user("the walrus"), user("the carpenter")])
        database = store._connections
        stored = database.read(lambda db: get_thread(db, "t"))
        known = database.read(lambda db: terms_between(db, stored, 0, 1))
        database.write(lambda db: remove_thread(db, stored, known))
    query(path, "INSERT INTO words (words) VALUES ('integrity-check')")
    query(path, "CREATE VIRTUAL TABLE terms USING fts5vocab (words, row)")
    assert query(path, "SELECT * FROM terms") == []


def test_a_reader_of_a_removed_thread_is_not_given_the_rows_of_another(path: Path) -> None:
    with SqliteThreads(path) as store:
        store.create("a")
        store.append("a", [user(str(number)) for number in range(100)])
        rows = store.read("a")
        next(rows)
        store.remove("a")
        store.create("a", owner="another")
        store.append("a", [user("secret")] * 100)
        with pytest.raises(NoThread, match="there is no thread 'a'"):
            list(rows)


def test_an_empty_file_becomes_a_store(path: Path) -> None:
    path.touch()
    with SqliteThreads(path) as store:
        store.create("a")
    assert query(path, "PRAGMA user_version") == [(VERSION,)]


# What can be wrong with a file


def _no_database(path: Path) -> None:
    path.write_bytes(b"# Notes\n" * 500)


def _another_program(path: Path) -> None:
    query(path, "CREATE TABLE recipes (name TEXT)")


def _damaged(path: Path) -> None:
    with SqliteThreads(path) as store:
        for number in range(30):
            store.create(f"{number}", metadata='{"a":"' + "x" * 3_000 + '"}')
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    path.write_bytes(content)


WRONG: dict[str, tuple[Callable[[Path], object], type[EverlongError], str]] = {
    "no database": (_no_database, InputError, "not a SQLite database"),
    "a folder": (Path.mkdir, InputError, "is a folder"),
    "another program's": (_another_program, InputError, "another program"),
    "damaged": (_damaged, StoreError, "damaged"),
}


@pytest.mark.parametrize(("spoil", "kind", "words"), WRONG.values(), ids=WRONG)
def test_a_wrong_file_is_one_clear_line(
    path: Path, spoil: Callable[[Path], object], kind: type[EverlongError], words: str
) -> None:
    spoil(path)
    with pytest.raises(kind, match=words) as refusal, SqliteThreads(path) as store:
        store.threads()
    assert "\n" not in str(refusal.value)
    assert str(path) in str(refusal.value)


def test_a_missing_folder_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="folder missing"):
        SqliteThreads(tmp_path / "missing" / "threads.db")

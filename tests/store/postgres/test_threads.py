"""What only Postgres has to show beside the contract: its tables, its texts, its ranking, its server."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from uuid import uuid4

import psycopg
import pytest

from everlong.core import Event, EventKind, Message, Thread, encode, ref_of
from everlong.engine import Threads
from everlong.errors import InputError, NoThread, StoreBusy, StoreError, ThreadExists
from everlong.store.damage import Damage
from everlong.store.memory import MemoryThreads
from everlong.store.postgres import PostgresThreads
from everlong.store.postgres.connections import Link
from everlong.store.postgres.log import append, create
from everlong.store.postgres.rows import prepare
from everlong.store.postgres.schema import VERSION
from everlong.store.postgres.search import scope_of_owner, search
from everlong.store.rules import utc_now
from everlong.store.terms import query_terms
from tests.core.build import assistant, result, user
from tests.store.contract.entries import point
from tests.store.engines import START
from tests.store.postgres_server import database_url, drop_database, session_server

NUL = "a\x00b \ud83d alone, 你好"


@pytest.fixture
def url() -> Iterator[str]:
    given = database_url()
    yield given
    drop_database(given)


@pytest.fixture
def store(url: str) -> Iterator[PostgresThreads]:
    with PostgresThreads(url) as store:
        yield store


def rows_in(url: str, table: str) -> int:
    with psycopg.connect(url) as connection:
        [[rows]] = connection.execute(f"SELECT count(*) FROM everlong.{table}").fetchall()
    return int(rows)


def now(_changed: datetime) -> datetime:
    return utc_now()


def linked(url: str) -> Link:
    link = Link.connect(url)
    link.damage = Damage()
    return link


def test_it_is_a_store_of_threads(store: PostgresThreads) -> None:
    meets: Threads = store
    assert meets.threads() == []


def test_eight_who_open_a_new_database_at_once_all_find_its_tables() -> None:
    new = session_server().new_database()

    def use(hand: int) -> int:
        with PostgresThreads(new, connections=2) as store:
            store.create(f"t{hand}")
            return store.append(f"t{hand}", [user("hello")])[0].order

    with ThreadPoolExecutor(8) as hands:
        assert list(hands.map(use, range(8))) == [0] * 8
    assert rows_in(new, "threads") == 8
    assert rows_in(new, "version") == 1


def test_a_database_that_is_newer_by_additions_is_used_as_it_is() -> None:
    new = session_server().new_database()
    with PostgresThreads(new) as store:
        store.create("t")
    with psycopg.connect(new) as connection:
        connection.execute("CREATE TABLE everlong.later (x integer)")
        connection.execute("ALTER TABLE everlong.facts ADD COLUMN later integer NOT NULL DEFAULT 7")
        connection.execute("UPDATE everlong.version SET made = %s", (VERSION + 3,))
    with PostgresThreads(new) as store:
        store.append("t", [user("hello")])
        store.change_fact("k", "a", lambda _: "1")
        assert store.fact("k", "a") == "1"
    assert rows_in(new, "later") == 0
    with psycopg.connect(new) as connection:
        assert connection.execute("SELECT made FROM everlong.version").fetchall() == [(VERSION + 3,)]


def test_programs_of_the_version_before_may_open_it() -> None:
    """What they ask, and what they want to hear: `number` was all that they knew."""
    new = session_server().new_database()
    PostgresThreads(new).close()
    with psycopg.connect(new) as connection:
        assert connection.execute("SELECT number FROM everlong.version").fetchall() == [(4,)]
        connection.execute("ALTER TABLE everlong.version DROP COLUMN made")  # as they make it
    PostgresThreads(new).close()
    with psycopg.connect(new) as connection:
        assert connection.execute("SELECT number, made FROM everlong.version").fetchall() == [(4, VERSION)]


def test_a_database_of_a_newer_version_is_refused_and_left_alone() -> None:
    new = session_server().new_database()
    with PostgresThreads(new) as store:
        store.create("t")
    with psycopg.connect(new) as connection:
        connection.execute("UPDATE everlong.version SET number = %s", (VERSION + 1,))
    with pytest.raises(
        StoreError, match=f"made by a newer Everlong .*need version {VERSION + 1}, this one knows {VERSION}"
    ):
        PostgresThreads(new)
    assert rows_in(new, "threads") == 1


def test_a_database_of_the_first_version_gets_times_of_facts_and_uses_of_texts() -> None:
    new = session_server().new_database()
    large = "line of a log\n" * 500
    with PostgresThreads(new) as store:
        for name in ("one", "two"):
            store.create(name)
            store.append(name, [user("look"), result("1", large), result("2", large + name), user(large)])
        store.branch("one", 2, "three")
        store.keep_fact("window", NUL, "1")
    assert rows_in(new, "text_uses") == 5
    with psycopg.connect(new) as connection:
        connection.execute("ALTER TABLE everlong.facts DROP COLUMN kept")
        connection.execute("DROP TABLE everlong.text_uses")
        connection.execute("DROP TABLE everlong.vectors")
        connection.execute("ALTER TABLE everlong.rows DROP COLUMN removed")
        connection.execute("ALTER TABLE everlong.version DROP COLUMN made")
        connection.execute("UPDATE everlong.version SET number = 1")
    with PostgresThreads(new) as store:
        assert store.drop_facts("window", utc_now() - timedelta(minutes=5)) == 0
        assert store.drop_facts("window", utc_now() + timedelta(minutes=5)) == 1
        assert rows_in(new, "text_uses") == 5
        store.remove("one")
        assert [row.entry for row in store.read("three")] == [user("look"), result("1", large)]
        assert [row.entry for row in store.read("two")][2] == result("2", large + "two")
    assert rows_in(new, "texts") == 2


def test_a_removed_thread_leaves_nothing_in_any_table(store: PostgresThreads, url: str) -> None:
    for name in ("one", "two"):
        store.create(name, owner=name)
        store.append(name, [user("the walrus"), result("1", "line of a log\n" * 500)])
        store.pin(name, 0)
        store.record(name, [Event(id="e", kind=EventKind.USAGE_RECORDED, time=START)])
        store.keep_vectors(name, "m", {0: b"x"})
    store.branch("one", 2, "three")
    for name in ("one", "three", "two"):
        assert rows_in(url, "texts") == 1
        store.remove(name)
    for table in ("threads", "rows", "texts", "text_uses", "refs", "terms", "pins", "events", "vectors"):
        assert rows_in(url, table) == 0, table


def test_a_text_that_is_said_while_the_last_who_said_it_is_removed_stays(store: PostgresThreads, url: str) -> None:
    large = result("1", "line of a log\n" * 500)
    for name in ("old", "new"):
        store.create(name)
    store.append("old", [large])
    waiting = (
        "SELECT FROM pg_locks JOIN pg_database ON pg_database.oid = database"
        " WHERE datname = current_database() AND locktype = 'advisory' AND NOT granted"
    )
    with ThreadPoolExecutor(1) as hands, linked(url) as link, psycopg.connect(url, autocommit=True) as watch:
        append(link, "new", {"one": prepare(large)}, None, now)
        removed = hands.submit(store.remove, "old")
        while not removed.done() and watch.execute(waiting).fetchone() is None:
            continue
        link.commit()
        removed.result()
    assert [row.entry for row in store.read("new")] == [large]
    assert rows_in(url, "texts") == 1


#: Every call that only reads.
READS: dict[str, Callable[[PostgresThreads], object]] = {
    "thread": lambda store: store.thread("t"),
    "threads": lambda store: store.threads(),
    "read": lambda store: list(store.read("t")),
    "last": lambda store: store.last("t", 2),
    "row": lambda store: store.row("t", "first"),
    "open": lambda store: store.open("t"),
    "points": lambda store: store.points("t"),
    "pins": lambda store: store.pins("t"),
    "events": lambda store: store.events("t"),
    "unfinished": lambda store: store.unfinished("t"),
    "original": lambda store: store.original("t", ref_of(encode(user("the walrus")))),
    "search": lambda store: store.search("walrus", thread="t"),
}


def test_readers_do_not_wait_behind_a_writer(url: str) -> None:
    with PostgresThreads(url, patience=1.0) as store, linked(url) as writer:
        store.create("t")
        store.append("t", [user("the walrus"), assistant("and the carpenter"), point(1)], ids=["first", "second", "p"])
        store.pin("t", 0)
        store.record("t", [Event(id="e", kind=EventKind.TURN_STARTED, time=START)])
        before = {name: read(store) for name, read in READS.items()}
        append(
            writer, "t", {"third": prepare(user("not committed yet"))}, None, lambda _changed: utc_now()
        )  # holds the thread's lock
        assert {name: read(store) for name, read in READS.items()} == before
        with pytest.raises(StoreBusy, match="another writer has held the thread"):
            store.append("t", [user("a second writer waits")])
        writer.rollback()


def test_a_reader_of_a_removed_thread_is_told(store: PostgresThreads) -> None:
    store.create("t")
    store.append("t", [user(str(number)) for number in range(450)])
    rows = store.read("t")
    next(rows)
    store.remove("t")
    with pytest.raises(NoThread, match="removed while it was read"):
        list(rows)


REFUSED = {
    "no such database": ("postgresql://postgres@/nothing?{host}", StoreError, 'database "nothing" does not exist'),
    "no such user": ("postgresql://nobody_here@/postgres?{host}", StoreError, 'role "nobody_here" does not exist'),
    "an option that is none": ("postgresql:///postgres?colour=red", InputError, "colour"),
}


@pytest.mark.parametrize(("url", "kind", "text"), REFUSED.values(), ids=REFUSED)
def test_what_waiting_does_not_help_is_refused_at_once_in_one_line(url: str, kind: type[Exception], text: str) -> None:
    host = session_server().url.partition("?")[2]
    with pytest.raises(kind, match=text) as refused:
        PostgresThreads(url.format(host=host))
    assert "\n" not in str(refused.value)


def test_NUL_and_lone_surrogates_survive_everywhere(store: PostgresThreads, url: str) -> None:
    made = store.create(NUL, owner=NUL, title=NUL, metadata=json.dumps({"a": NUL}))
    store.append(NUL, [user(NUL), result("1", NUL * 1_000)], ids=[NUL, f"{NUL}2"])
    pin = store.pin(NUL, None, NUL)
    store.keep_fact(NUL, NUL, NUL)
    store.keep_counts(NUL, {NUL: 3})
    with PostgresThreads(url) as again:
        assert replace(again.thread(NUL), updated=made.updated, length=0, messages=0) == made
        assert [row.entry for row in again.read(NUL)] == [user(NUL), result("1", NUL * 1_000)]
        assert again.threads(owner=NUL)[0].title == NUL
        assert again.row(NUL, NUL) == again.last(NUL, 2)[0]
        assert again.pins(NUL) == (pin,)
        assert (again.fact(NUL, NUL), again.facts(NUL), again.counts(NUL, [NUL])) == (NUL, {NUL: NUL}, {NUL: 3})


def test_names_longer_than_an_index_takes_are_told_apart(store: PostgresThreads) -> None:
    names = ["n" * 10_000, "n" * 9_999]
    for name in names:
        store.create(name, owner=name)
        store.append(name, [user("hello")], ids=[name])
        store.keep_fact(name, name, '"kept"')
    for name in names:
        assert [thread.id for thread in store.threads(owner=name)] == [name]
        assert store.row(name, name) is not None
        assert store.facts(name) == {name: '"kept"'}


def test_a_large_text_is_kept_once_for_all_threads(store: PostgresThreads, url: str) -> None:
    for name in ("one", "two"):
        store.create(name)
        store.append(name, [result("1", "line of a log\n" * 10_000), user("short")])
    store.branch("one", 2, "three")
    assert rows_in(url, "texts") == 1
    assert [row.entry for row in store.read("three")] == [result("1", "line of a log\n" * 10_000), user("short")]


def test_reading_takes_a_page_at_a_time(store: PostgresThreads) -> None:
    store.create("t")
    store.append("t", [result("1", str(number) * 1_500_000) for number in range(5)])
    store.append("t", [user(str(number)) for number in range(450)])
    assert [row.order for row in store.read("t")] == list(range(455))
    assert [row.order for row in store.read("t", 4, 430)] == list(range(4, 430))


def test_a_message_of_very_many_words_is_kept_and_found(store: PostgresThreads) -> None:
    store.create("t")
    store.append("t", [user("hello"), result("1", " ".join(f"name{number}" for number in range(30_000)))])
    [hit] = store.search("name29999", around=0)
    assert hit.row.order == 1


TALK = [
    user("The gateway listens on port 8080 for every client."),
    assistant("The port of the gateway is 8080; the port of the database is 5432. Port, port, port."),
    user("Where does sessionManager keep the retries?"),
    assistant("sessionManager keeps retries in retry_policy.py, beside the client."),
    user("网关的端口是什么？"),
    assistant("网关的端口是 8080，数据库的端口是 5432。"),
    user("Thank you, that is all for the gateway."),
]
QUERIES = [
    "gateway port",
    "sessionManager retries",
    "端口",
    "数据库",
    "client",
    "the port of the database",
    "retry policy",
]


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("most", [20_000, 3, 0], ids=["all terms are rare", "some are common", "all are common"])
def test_the_best_answer_is_the_same_as_in_memory(store: PostgresThreads, query: str, most: int) -> None:
    memory = MemoryThreads()
    for kept in (memory, store):
        kept.create("t", owner="ann")
        kept.append("t", TALK)
        kept.create("u", owner="bob")
        kept.append("u", TALK[::-1])
    best = memory.search(query, owner="ann", limit=1)
    terms = query_terms(query)
    [hit] = store._database.read(
        lambda link: search(link, scope_of_owner(link, "ann"), terms, limit=1, around=1, most=most)
    )
    assert hit.thread == "t"
    assert hit.row.entry == best[0].row.entry
    assert [row.order for row in hit.around] == [row.order for row in best[0].around]


def test_owners_do_not_find_each_others_messages(store: PostgresThreads) -> None:
    for owner in ("ann", "bob"):
        store.create(owner, owner=owner)
        store.append(owner, [user(f"the walrus of {owner}")])
    assert [hit.row.entry for hit in store.search("walrus", owner="ann")] == [user("the walrus of ann")]
    assert store.search("walrus", thread="ann", owner="bob") == []
    assert {hit.thread for hit in store.search("walrus")} == {"ann", "bob"}


def test_a_word_in_more_messages_than_are_counted_does_not_hide_a_rare_one(store: PostgresThreads) -> None:
    store.create("t")
    store.append("t", [user(f"port {number % 7}") for number in range(1_500)])
    store.append("t", [user("the walrus left the port"), user("a walrus")])
    store.append("t", [user("port again")])
    assert {hit.row.order for hit in store.search("walrus port", limit=2)} == {1_500, 1_501}
    assert len(store.search("port", limit=20)) == 20


def test_a_repeated_creation_finds_its_own_thread(store: PostgresThreads) -> None:
    call, other = uuid4(), uuid4()
    new = Thread(id="t", created=START, updated=START)
    database = store._database
    made, is_new = database.run(lambda link: create(link, new, call))
    assert is_new
    assert database.run(lambda link: create(link, new, call)) == (made, False)
    with pytest.raises(ThreadExists, match="thread 't' already exists"):
        database.run(lambda link: create(link, new, other))


def test_a_lost_connection_does_no_harm(store: PostgresThreads, url: str) -> None:
    """Every connection is cut between two calls, again and again; each call is done once."""
    store.create("t")
    for turn in range(5):
        with psycopg.connect(url, autocommit=True) as other:
            other.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        assert store.append("t", [user(str(turn))])[0].order == turn
    assert [row.entry.text for row in store.read("t") if isinstance(row.entry, Message)] == list("01234")

"""Contract: search, in Chinese and English, in one thread or all of one owner, never across owners."""

from collections.abc import Callable

import pytest

from everlong.core import Withdrawal
from everlong.engine import Threads
from tests.core.build import assistant, calls, result, system, user
from tests.store.contract.entries import point

Reopen = Callable[[], Threads]

SAID = (
    system("You are a patient engineer."),
    user("The lighthouse keeper feeds a walrus every morning."),
    assistant("A walrus eats clams."),
    user("数据库连接超时了，怎么办？"),
    assistant("请检查连接池的大小。"),
    calls("1", name="read_file", arguments='{"path": "src/sessionManager.py"}'),
    result("1", "class SessionManager:\n    retry_limit = 7"),
    user("Thanks!"),
)


@pytest.fixture
def store(store: Threads) -> Threads:
    store.create("a", owner="ann")
    store.append("a", SAID)
    return store


#: name -> what is asked, what must come first (-1: any), and every row that must be among the hits.
FOUND = {
    "one word": ("walrus", -1, {1, 2}),
    "two words tell more": ("walrus clams", 2, {1, 2}),
    "another form of the word": ("lighthouses", 1, {1}),
    "capitals do not matter": ("WALRUS lighthouse", 1, {1, 2}),
    "Chinese": ("连接超时", 3, {3, 4}),
    "one Chinese word": ("数据库", 3, {3}),
    "an identifier": ("SessionManager", -1, {5, 6}),
    "part of an identifier": ("retry", 6, {6}),
    "the name of a tool": ("read_file", 5, {5}),
    "both languages": ("连接池 clams", -1, {2, 4}),
    "with stop words": ("what is the lighthouse?", 1, {1}),
    "signs of query languages": ('lighthouse" AND * NEAR( OR -', 1, {1}),
}


@pytest.mark.parametrize(("query", "first", "orders"), FOUND.values(), ids=FOUND)
def test_what_is_asked_for_is_found(store: Threads, reopen: Reopen, query: str, first: int, orders: set[int]) -> None:
    hits = store.search(query)
    assert {hit.row.order for hit in hits} >= orders
    assert first in (-1, hits[0].row.order)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert all(hit.score > 0 for hit in hits)
    assert all(hit.row == tuple(store.read("a"))[hit.row.order] for hit in hits)
    assert [hit.row for hit in reopen().search(query)] == [hit.row for hit in hits]


NOTHING = [
    "",
    " ",
    "the of and is",
    "的了吗",
    "?!*%_",
    '"',
    "zebra",
    "\x00",
    "--",
    "'; DROP TABLE rows; --",
    "a" * 5_000,
]


@pytest.mark.parametrize("query", NOTHING, ids=range(len(NOTHING)))
def test_what_says_nothing_finds_nothing(store: Threads, query: str) -> None:
    assert store.search(query) == []


def test_letters_are_found_however_their_accents_are_written(store: Threads) -> None:
    store.append("a", [user("caf\u00e9"), user("cafe\u0301")])
    for query in ("caf\u00e9", "cafe\u0301"):
        assert {hit.row.order for hit in store.search(query)} == {8, 9}
    assert [row.entry for row in store.last("a", 2)] == [user("caf\u00e9"), user("cafe\u0301")]


def test_each_row_is_found_once(store: Threads) -> None:
    store.append("a", [user("walrus " * 50 + "\n" + "walrus lines\n" * 400)])
    hits = store.search("walrus", limit=50)
    assert sorted(hit.row.order for hit in hits) == [1, 2, 8]


def test_compacted_rows_are_found_once_across_generations(store: Threads) -> None:
    store.append("a", [point(8, "they spoke of a walrus"), user("x"), point(9, "walrus again"), Withdrawal(10)])
    assert sorted(hit.row.order for hit in store.search("walrus")) == [1, 2]


def test_hits_come_with_their_neighbours(store: Threads) -> None:
    rows = tuple(store.read("a"))
    (hit,) = store.search("lighthouse")
    assert hit.around == rows[0:3]
    (hit,) = store.search("lighthouse", around=0)
    assert hit.around == rows[1:2]
    (hit,) = store.search("lighthouse", around=3)
    assert hit.around == rows[0:5]
    (hit,) = store.search("thanks")
    assert hit.around == rows[6:8]


def test_limit_takes_the_best(store: Threads) -> None:
    store.append("a", [user(f"walrus number {n}") for n in range(30)])
    every = store.search("walrus", limit=100)
    assert len(every) == 32
    assert len(store.search("walrus")) == 10
    assert store.search("walrus", limit=1)[0].score == every[0].score
    assert store.search("walrus", limit=0) == store.search("walrus", limit=-1) == []
    assert store.search("walrus", limit=2**70) == every


def test_neighbours_are_none_or_more(store: Threads) -> None:
    rows = tuple(store.read("a"))
    (hit,) = store.search("lighthouse", around=-1)
    assert hit.around == rows[1:2]
    (hit,) = store.search("lighthouse", around=2**70)
    assert hit.around == rows


def test_a_branch_is_found_beside_its_origin_and_by_its_own_words(store: Threads, reopen: Reopen) -> None:
    store.branch("a", 2, "b")
    store.append("b", [user("the walrus left by zeppelin")])
    store.branch("b", 3, "c")
    store.append("a", [user("no zeppelin here")])
    again = reopen()
    places = {(hit.thread, hit.row.order) for hit in again.search("walrus", owner="ann", limit=50)}
    assert places == {("a", 1), ("a", 2), ("b", 1), ("b", 2), ("c", 1), ("c", 2)}
    assert {hit.row.order for hit in again.search("walrus clams", thread="b")} == {1, 2}
    assert {hit.row.order for hit in again.search("zeppelin", thread="a")} == {8}
    (hit,) = again.search("zeppelin", thread="c")
    assert (hit.thread, [row.order for row in hit.around]) == ("c", [1, 2])


def test_one_thread_one_owner_or_all(store: Threads) -> None:
    for name, owner in (("b", "ann"), ("c", "bob"), ("d", "")):
        store.create(name, owner=owner)
        store.append(name, [user(f"a walrus in {name}")])

    def found(**where: str) -> set[str]:
        return {hit.thread for hit in store.search("walrus", **where)}  # type: ignore[arg-type]

    assert found(thread="b") == {"b"}
    assert found(owner="ann") == {"a", "b"}
    assert found(owner="bob") == {"c"}
    assert found(owner="") == {"d"}
    assert found() == {"a", "b", "c", "d"}
    assert found(owner="nobody") == found(owner="an") == found(owner="%") == set()
    assert found(thread="c", owner="ann") == set()


def test_what_is_appended_is_found_at_once(store: Threads) -> None:
    assert store.search("zeppelin") == []
    store.append("a", [user("a zeppelin")])
    assert [hit.row.order for hit in store.search("zeppelin")] == [8]


def test_words_deep_in_a_long_result_are_found(store: Threads) -> None:
    store.append("a", [calls("2"), result("2", "nothing here\n" * 5_000 + "the zeppelin landed\n" + "nope\n" * 5_000)])
    assert [hit.row.order for hit in store.search("zeppelin")] == [9]


def test_every_term_counts_however_few_hits_are_wanted(store: Threads) -> None:
    store.create("b", owner="bob")
    texts = ["the turtle sleeps", "the turtle sings", "a bird sings", "a choir sings", "nothing here"]
    store.append("b", [user(text) for text in texts])
    assert [hit.row.order for hit in store.search("turtle sings", thread="b", limit=1)] == [1]

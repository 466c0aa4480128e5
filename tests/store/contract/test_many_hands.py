"""Contract: any thread of the process may call; nothing is lost, nothing is out of order."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from everlong.core import Message, Point, Withdrawal, opened
from everlong.engine import Threads
from everlong.errors import ThreadChanged, ThreadExists
from tests.core.build import user
from tests.store.contract.entries import point
from tests.store.engines import Clock, Opener

Reopen = Callable[[], Threads]
TURNS = 25


def test_two_hands_append_to_one_thread(store: Threads, reopen: Reopen) -> None:
    store.create("t")

    def write(hand: int) -> None:
        for turn in range(TURNS):
            first, second = store.append("t", [user(f"{hand} {turn} a"), user(f"{hand} {turn} b")])
            assert second.order == first.order + 1

    with ThreadPoolExecutor(2) as hands:
        list(hands.map(write, range(2)))
    rows = list(reopen().read("t"))
    assert [row.order for row in rows] == list(range(4 * TURNS))
    said = [row.entry.text for row in rows if isinstance(row.entry, Message)]
    for hand in range(2):
        assert [text for text in said if text.startswith(f"{hand} ")] == [
            f"{hand} {turn} {half}" for turn in range(TURNS) for half in "ab"
        ]


def test_of_two_who_expect_the_same_length_one_succeeds(store: Threads) -> None:
    store.create("t")

    def write(hand: int) -> int:
        refused = 0
        for turn in range(TURNS):
            try:
                store.append("t", [user(f"{hand} {turn}")], expected=turn)
            except ThreadChanged:
                refused += 1
        return refused

    with ThreadPoolExecutor(2) as hands:
        refused = sum(hands.map(write, range(2)))
    assert store.thread("t").length + refused == 2 * TURNS
    assert store.thread("t").length <= TURNS


def test_G4_a_compactor_beside_writers_covers_only_what_it_read(store: Threads, reopen: Reopen) -> None:
    store.create("t")

    def write(hand: int) -> None:
        for turn in range(TURNS):
            store.append("t", [user(f"{hand} {turn}")])

    def compact() -> None:
        made = 0
        while made < TURNS // 5:
            length = store.open("t").thread.length
            try:
                store.append("t", [point(length, f"first {length}")], expected=length)
            except ThreadChanged:
                continue
            made += 1

    with ThreadPoolExecutor(3) as hands:
        for done in (hands.submit(write, 0), hands.submit(write, 1), hands.submit(compact)):
            done.result()
    again = reopen()
    rows = tuple(again.read("t"))
    assert [row.order for row in rows] == list(range(2 * TURNS + TURNS // 5))
    for row, stands in again.points("t"):
        assert stands
        assert isinstance(row.entry, Point)
        assert row.entry.boundary == row.order, "a message came between the reading and the point"
    assert again.open("t") == opened(again.thread("t"), rows)


def test_of_two_who_create_the_same_thread_one_succeeds(store: Threads) -> None:
    def make(_hand: int) -> list[str]:
        made = []
        for number in range(10):
            try:
                made.append(store.create(f"t{number}").id)
            except ThreadExists:
                continue
        return made

    with ThreadPoolExecutor(2) as hands:
        first, second = hands.map(make, range(2))
    assert sorted([*first, *second]) == sorted(f"t{number}" for number in range(10))


def test_reading_and_searching_beside_a_writer(store: Threads) -> None:
    store.create("t")
    store.append("t", [user("a walrus")])

    def write() -> None:
        for turn in range(TURNS):
            store.append("t", [user(f"walrus {turn}")])

    def look() -> None:
        for _ in range(TURNS):
            rows = list(store.read("t"))
            assert [row.order for row in rows] == list(range(len(rows)))
            assert store.search("walrus")
            assert store.open("t").messages[0] == user("a walrus")

    with ThreadPoolExecutor(2) as hands:
        for done in (hands.submit(write), hands.submit(look)):
            done.result()
    assert store.thread("t").length == TURNS + 1


def test_two_stores_on_one_place_see_each_other(store: Threads, opener: Opener, opened_stores: list[Threads]) -> None:
    other = opener(Clock())
    opened_stores.append(other)
    store.create("t")
    for turn in range(5):
        store.append("t", [user(f"one {turn}")])
        other.append("t", [user(f"two {turn}"), point(2 * turn)])
        store.append("t", [Withdrawal(4 * turn + 2)]) if turn % 2 else store.append("t", [user("again")])
        assert list(store.read("t")) == list(other.read("t"))
        assert store.open("t").messages == other.open("t").messages
        assert store.thread("t") == other.thread("t")
    assert [row.order for row in other.read("t")] == list(range(20))
    pin = other.pin("t", 0)
    assert store.pins("t") == (pin,)
    store.change("t", title="renamed")
    assert other.threads()[0].title == "renamed"
    other.branch("t", 3, "b")
    assert store.thread("b").length == 3
    assert {hit.thread for hit in store.search("one")} == {"t", "b"}

"""Contract: a thread can be removed, whole, and nothing of any other thread goes with it."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest

from everlong.core import Event, EventKind, bytes_of, message_ref, ref_of
from everlong.engine import Threads
from everlong.errors import NoThread, ThreadExists
from tests.core.build import assistant, result, user
from tests.store.contract.entries import EVERYTHING, HOSTILE_TEXTS, full_point, point, talk
from tests.store.engines import Clock, Opener

Reopen = Callable[[], Threads]
NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
LARGE = "a walrus in a long log\n" * 500
SAID = (user("where is the walrus?"), result("1", LARGE), EVERYTHING, assistant("在码头"))


def event(name: str) -> Event:
    return Event(id=name, kind=EventKind.USAGE_RECORDED, time=NOON)


@pytest.fixture
def thread(store: Threads) -> str:
    """A thread with all that a thread can have."""
    store.create("t", owner="ann", title="Walrus", metadata='{"a": 1}')
    store.append("t", SAID, ids=["one", "two", "three", "four"])
    store.append("t", [full_point(2), user("later")])
    store.pin("t", 0)
    store.pin("t", None, "keep this")
    store.record("t", [event("e1"), event("e2")])
    store.change("t", settings='{"b": 2}')
    return "t"


def test_a_removed_thread_is_gone(store: Threads, thread: str, reopen: Reopen) -> None:
    store.remove(thread)
    for at_hand in (lambda: store, reopen):
        again = at_hand()
        assert again.threads(archived=None) == []
        assert again.search("walrus") == again.search("码头", owner="ann") == []
        for use in (again.thread, again.open, again.pins, again.events, again.points, again.remove):
            with pytest.raises(NoThread, match="t"):
                use(thread)
        with pytest.raises(NoThread):
            again.append(thread, [user("more")])


def test_made_anew_it_is_empty(store: Threads, thread: str, reopen: Reopen) -> None:
    assert store.search("walrus")
    assert store.events(thread)
    store.remove(thread)
    made = store.create(thread, owner="bob")
    for at_hand in (lambda: store, reopen):
        again = at_hand()
        assert again.thread(thread) == made
        assert (made.owner, made.title, made.length, made.metadata, made.settings) == ("bob", "", 0, "{}", "{}")
        assert list(again.read(thread)) == again.last(thread, 9) == again.points(thread) == []
        assert (again.pins(thread), again.events(thread), again.row(thread, "one")) == ((), [], None)
        assert again.original(thread, ref_of(LARGE)) is None
        assert again.search("walrus") == []
    again.append(thread, [user("a new walrus")], ids=["one"])
    again.record(thread, [event("e1")])
    assert [(hit.thread, hit.row.order) for hit in again.search("walrus")] == [(thread, 0)]
    assert again.events(thread) == [event("e1")]


def test_a_branch_goes_on_living(store: Threads, thread: str, reopen: Reopen) -> None:
    store.branch(thread, 5, "b", title="branch")
    rows, pins, view = list(store.read("b")), store.pins("b"), store.open("b")
    store.remove(thread)
    for at_hand in (lambda: store, reopen):
        again = at_hand()
        assert list(again.read("b")) == rows
        assert [row.entry for row in rows] == [*SAID, full_point(2)]
        assert (again.pins("b"), again.open("b")) == (pins, view)
        assert again.thread("b").parent == (thread, 5)
        assert again.original("b", ref_of(LARGE)) == bytes_of(LARGE)
        assert again.original("b", message_ref(SAID[0])) is not None
        assert {hit.thread for hit in again.search("walrus", owner="ann")} == {"b"}
    store = again
    store.append("b", [result("2", LARGE), user("and on")])
    store.branch("b", 7, "c")
    store.remove("b")
    assert [row.entry for row in store.read("c")] == [*SAID, full_point(2), result("2", LARGE), user("and on")]
    store.remove("c")
    assert store.search("walrus") == store.threads() == []


def test_the_branch_of_a_branch_keeps_what_both_had(store: Threads) -> None:
    store.create("a")
    store.append("a", [result("1", LARGE), *talk(2)])
    store.branch("a", 3, "b")
    store.branch("b", 2, "c")
    store.remove("b")
    store.remove("a")
    assert [row.entry for row in store.read("c")] == [result("1", LARGE), talk(1)[0]]
    assert [hit.thread for hit in store.search("walrus")] == ["c"]


def test_other_threads_that_say_the_same_keep_it(store: Threads, thread: str, reopen: Reopen) -> None:
    store.create("other", owner="bob")
    store.append("other", [*SAID, point(2, LARGE)])
    store.keep_counts("v", {message_ref(SAID[0]): 7})
    store.remove(thread)
    again = reopen()
    assert [row.entry for row in again.read("other")] == [*SAID, point(2, LARGE)]
    assert again.original("other", ref_of(LARGE)) == bytes_of(LARGE)
    assert [hit.row.order for hit in again.search("码头", owner="bob")] == [3]
    assert again.counts("v", [message_ref(SAID[0])]) == {message_ref(SAID[0]): 7}
    again.create("third")
    again.append("third", [result("1", LARGE)])
    again.remove("other")
    assert again.original("third", ref_of(LARGE)) == bytes_of(LARGE)


@pytest.mark.parametrize("text", HOSTILE_TEXTS.values(), ids=HOSTILE_TEXTS)
def test_any_text_can_be_removed(store: Threads, text: str) -> None:
    store.create("stays")
    store.append("stays", [user("a walrus")])
    store.create(text[:300], owner=text[:300])
    store.append(text[:300], [user(text), result("1", f"{text} walrus {text}")])
    store.remove(text[:300])
    assert [(hit.thread, hit.row.order) for hit in store.search("walrus")] == [("stays", 0)]
    store.create(text[:300])
    store.append(text[:300], [user(f"the walrus {text}")])
    assert {hit.thread for hit in store.search("walrus")} == {"stays", text[:300]}


def test_an_empty_thread_and_an_archived_one_are_removed(store: Threads) -> None:
    store.create("empty")
    store.create("archived")
    store.change("archived", archived=True)
    store.remove("empty")
    store.remove("archived")
    assert store.threads(archived=None) == []


def test_another_who_has_the_store_open_sees_it_gone(
    store: Threads, thread: str, opener: Opener, opened_stores: list[Threads]
) -> None:
    other = opener(Clock())
    opened_stores.append(other)
    assert other.events(thread) == [event("e1"), event("e2")]
    assert other.open(thread).messages
    store.remove(thread)
    with pytest.raises(NoThread):
        other.append(thread, [user("more")])
    store.create(thread)
    store.record(thread, [event(f"new {number}") for number in range(9)])
    assert [one.id for one in other.events(thread)] == [f"new {number}" for number in range(9)]
    assert (list(other.read(thread)), other.search("walrus")) == ([], [])


def test_who_appends_meanwhile_comes_before_or_finds_no_thread(store: Threads, reopen: Reopen) -> None:
    """Writers and one who removes and makes anew: every thread that is seen is whole."""
    turn = (user("a question of walrus"), result("1", LARGE), assistant("an answer"))

    def write(_hand: int) -> None:
        for _ in range(15):
            try:
                rows = store.append("t", turn)
                store.record("t", [event(rows[0].id)])
                seen = [row.entry for row in store.open("t").rows]
            except NoThread:
                continue
            assert seen == [*turn] * (len(seen) // 3)

    def remove() -> None:
        for _ in range(10):
            try:
                store.create("t")
            except ThreadExists:
                store.remove("t")

    store.create("t")
    with ThreadPoolExecutor(3) as hands:
        for done in [*(hands.submit(write, hand) for hand in range(2)), hands.submit(remove)]:
            done.result()
    again = reopen()
    for left in again.threads():
        entries = [row.entry for row in again.read(left.id)]
        assert entries == [*turn] * (left.length // 3)
        assert len(again.search("walrus", limit=100)) == left.length - left.length // 3
        again.remove(left.id)
    assert again.search("walrus") == []


def test_who_branches_meanwhile_gets_all_or_finds_no_thread(store: Threads) -> None:
    def make(turn: int) -> None:
        store.create(f"t{turn}")
        store.append(f"t{turn}", [result("1", f"{LARGE} {turn}"), *talk(10)])

    def branch(turn: int) -> int:
        try:
            store.branch(f"t{turn}", 21, f"b{turn}")
        except NoThread:
            return 0
        entries = [row.entry for row in store.read(f"b{turn}")]
        assert entries == [result("1", f"{LARGE} {turn}"), *talk(10)]
        return 1

    with ThreadPoolExecutor(2) as hands:
        made = 0
        for turn in range(10):
            make(turn)
            branched, removed = hands.submit(branch, turn), hands.submit(store.remove, f"t{turn}")
            removed.result()
            made += branched.result()
    assert len(store.threads()) == made

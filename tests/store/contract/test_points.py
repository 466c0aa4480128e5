"""Contract: compaction points. What is sent follows them; the thread as it was before any of them can be opened."""

from collections.abc import Callable

import pytest

from everlong.core import Entry, Message, Point, Recalled, Row, Withdrawal, opened, view
from everlong.engine import Threads
from everlong.errors import StoreError, ThreadExists
from tests.core.build import assistant, system, user
from tests.store.contract.entries import CONVERSATION, EVERYTHING, HOSTILE_TEXTS, SUMMARY, full_point, point, talk

Reopen = Callable[[], Threads]

#: name -> a log. What opening gives, at every length of it, is worked out from the log itself.
LOGS: dict[str, tuple[Entry, ...]] = {
    "messages alone": CONVERSATION,
    "no system text": talk(2),
    "only system text": (system("a"), system("b")),
    "two system texts, then a point": (system("a"), system("b"), *talk(2), point(4)),
    "a point over everything": (*CONVERSATION, point(6)),
    "a point over nothing": (*CONVERSATION, point(0)),
    "a point inside the system text": (system("a"), system("b"), user("c"), point(1)),
    "more after the point": (*CONVERSATION, full_point(4), assistant("localhost"), user("thanks")),
    "three points": (*talk(2), point(2, "one"), *talk(2), point(5, "two"), *talk(1), point(11, "three"), user("x")),
    "a later point with an earlier boundary": (*talk(2), point(4, "wide"), *talk(1), point(2, "narrow")),
    "withdrawn": (*CONVERSATION, point(4), Withdrawal(6), user("more")),
    "the newest of two withdrawn": (*talk(2), point(2, "one"), *talk(1), point(5, "two"), Withdrawal(7), user("x")),
    "the older of two withdrawn": (*talk(2), point(2, "one"), *talk(1), point(5, "two"), Withdrawal(4)),
    "withdrawn twice": (*talk(1), point(1), Withdrawal(2), Withdrawal(2)),
    "all withdrawn": (*talk(1), point(1), point(2), Withdrawal(3), Withdrawal(2)),
    "a point before any message": (point(0), system("late"), user("a")),
    "system text after a point": (user("a"), point(1), system("b"), user("c")),
    "recalled before a question": (*talk(2), Recalled(2, user("[recalled]")), user("x")),
    "recalled, then a point": (*talk(2), Recalled(2, user("[recalled]")), point(2), user("x"), Withdrawal(5)),
    "recalled after a point": (*talk(2), point(2), user("x"), Recalled(5, user("[recalled]")), assistant("y")),
    "empty": (),
}


@pytest.mark.parametrize("log", LOGS.values(), ids=LOGS)
def test_opening_gives_the_view_at_every_moment(store: Threads, reopen: Reopen, log: tuple[Entry, ...]) -> None:
    store.create("t")
    rows = store.append("t", log)
    again = reopen()
    known = again.thread("t")
    assert again.open("t") == opened(known, rows)
    for before in range(len(log) + 1):
        then = again.open("t", before=before)
        expected = opened(known, rows[:before])
        assert (then.head, then.point, then.rows) == (expected.head, expected.point, expected.rows)
    assert again.open("t").messages == opened(known, rows).messages


@pytest.mark.parametrize(
    "log", [LOGS[name] for name in ("three points", "withdrawn", "more after the point", "recalled after a point")]
)
def test_what_is_opened_is_what_the_log_says_is_sent(store: Threads, log: tuple[Entry, ...]) -> None:
    store.create("t")
    store.append("t", log)
    assert store.open("t").messages == view(log)
    for before in range(len(log) + 1):
        assert store.open("t", before=before).messages == view(log[:before])


def test_before_beyond_the_end_is_now(store: Threads) -> None:
    store.create("t")
    store.append("t", CONVERSATION)
    assert store.open("t", before=99).messages == CONVERSATION


def test_opening_after_a_point_shows_summary_and_what_follows(store: Threads) -> None:
    store.create("t")
    rows = store.append("t", CONVERSATION)
    before = store.open("t")
    (added,) = store.append("t", [full_point(5)])
    now = store.open("t")
    assert (now.head, now.point, now.rows) == (rows[:1], added, (rows[5], added))
    assert now.messages == (CONVERSATION[0], *full_point(5).summary, CONVERSATION[5])
    store.append("t", [user("new"), Withdrawal(6)])
    assert store.open("t").messages == (*before.messages, user("new"))


def test_points_are_listed_with_whether_they_stand(store: Threads, reopen: Reopen) -> None:
    store.create("t")
    rows = store.append("t", LOGS["the newest of two withdrawn"])
    assert store.points("t") == [(rows[4], True), (rows[7], False)]
    assert reopen().points("t") == [(rows[4], True), (rows[7], False)]


def test_hundreds_of_points(store: Threads) -> None:
    store.create("t")
    said: list[Entry] = []
    for turn in range(120):
        said += [user(f"question {turn}"), assistant(f"answer {turn}")]
        said.append(point(len(said), f"summary {turn}"))
    rows = store.append("t", said)
    assert [row for row, stands in store.points("t") if stands] == [row for row in rows if row.order % 3 == 2]
    assert store.open("t").messages == (user("summary 119"),)
    assert store.open("t", before=5).messages == (user("summary 0"), user("question 1"), assistant("answer 1"))
    store.append("t", [Withdrawal(order) for order in range(359, 100, -3)])
    assert store.open("t").messages[0] == user("summary 32")


@pytest.mark.parametrize("text", HOSTILE_TEXTS.values(), ids=HOSTILE_TEXTS)
def test_words_in_points_come_back_to_the_byte(store: Threads, reopen: Reopen, text: str) -> None:
    store.create("t")
    odd = Point(boundary=1, summary=(user(text), EVERYTHING), reason=text, focus=text, model=text[:50], account=text)
    store.append("t", [user("a"), odd, Recalled(1, user(text))])
    again = reopen()
    assert [row.entry for row in again.read("t", 1)] == [odd, Recalled(1, user(text))]
    assert again.open("t").messages == (user(text), EVERYTHING, user(text))


# --- branches ----------------------------------------------------------------------------------


def rows_of(store: Threads, thread: str) -> tuple[Row, ...]:
    return tuple(store.read(thread))


def test_a_branch_starts_with_the_same_rows(store: Threads, reopen: Reopen) -> None:
    store.create("t", owner="ann", title="one")
    rows = store.append("t", CONVERSATION)
    made = store.branch("t", 3, "b", title="two")
    assert (made.id, made.owner, made.title, made.parent) == ("b", "ann", "two", ("t", 3))
    assert (made.length, made.messages, made.points, made.archived) == (3, 3, 0, False)
    assert rows_of(store, "b") == rows[:3]
    store.append("b", [user("elsewhere")])
    store.append("t", [user("here")])
    again = reopen()
    assert rows_of(again, "b")[:3] == rows[:3]
    assert [row.entry for row in again.read("b", 3)] == [user("elsewhere")]
    assert [row.entry for row in again.read("t", 6)] == [user("here")]
    assert again.thread("b").parent == ("t", 3)
    assert again.thread("b").length == 4


def test_a_branch_knows_the_points_before_it_and_none_beyond(store: Threads) -> None:
    store.create("t")
    rows = store.append("t", [*talk(2), point(3), user("a"), point(5), Withdrawal(6), Withdrawal(4), user("b")])
    for order in range(len(rows) + 1):
        store.branch("t", order, f"b{order}")
        assert rows_of(store, f"b{order}") == rows[:order]
        assert store.open(f"b{order}").messages == view([row.entry for row in rows[:order]])
    assert store.points("b7") == [(rows[4], True), (rows[6], True)]
    assert store.points("b4") == []
    assert store.thread("b7").points == 2


def test_an_inherited_point_is_withdrawn_in_the_branch_alone(store: Threads) -> None:
    store.create("t")
    store.append("t", [*talk(2), point(3)])
    store.branch("t", 5, "b")
    store.append("b", [Withdrawal(4)])
    assert store.open("b").messages == talk(2)
    assert store.open("t").messages == (user("[summary]"), talk(2)[3])


def test_a_branch_of_a_branch(store: Threads, reopen: Reopen) -> None:
    store.create("t")
    first = store.append("t", talk(3))
    store.branch("t", 4, "b")
    second = store.append("b", [user("b says")])
    store.branch("b", 5, "c")
    store.branch("b", 2, "d")
    third = store.append("c", [user("c says")])
    again = reopen()
    assert rows_of(again, "c") == (*first[:4], *second, *third)
    assert rows_of(again, "d") == first[:2]
    assert again.thread("c").parent == ("b", 5)
    assert again.last("c", 3) == [first[3], *second, *third]
    assert again.row("c", first[0].id) == first[0]
    assert again.row("d", first[2].id) is None


def test_a_branch_takes_the_pins_of_its_rows(store: Threads) -> None:
    store.create("t")
    store.append("t", CONVERSATION)
    store.pin("t", 1)
    store.pin("t", 4)
    store.pin("t", None, "keep me")
    store.branch("t", 3, "b")
    assert [(pin.order, pin.text) for pin in store.pins("b")] == [(1, ""), (None, "keep me")]
    for pin in store.pins("b"):
        store.unpin("b", pin.id)
    assert len(store.pins("t")) == 3


def test_a_branch_without_rows_still_takes_the_pinned_texts(store: Threads) -> None:
    store.create("t")
    store.pin("t", None, "keep me")
    store.branch("t", 0, "b")
    assert [(pin.order, pin.text) for pin in store.pins("b")] == [(None, "keep me")]


def test_ids_of_inherited_rows_are_taken(store: Threads) -> None:
    store.create("t")
    rows = store.append("t", [user("a"), user("b")], ids=["1", "2"])
    store.branch("t", 1, "b")
    assert store.append("b", [user("a")], ids=["1"]) == rows[:1]
    assert store.append("b", [user("another")], ids=["2"])[0].entry == user("another")
    assert rows_of(store, "t") == rows


@pytest.mark.parametrize("order", [-1, 7, 100])
def test_a_thread_branches_only_where_it_has_rows(store: Threads, order: int) -> None:
    store.create("t")
    store.append("t", CONVERSATION)
    with pytest.raises(StoreError):
        store.branch("t", order, "b")
    assert [thread.id for thread in store.threads()] == ["t"]


def test_a_branch_needs_a_free_name(store: Threads) -> None:
    store.create("t")
    store.append("t", CONVERSATION)
    store.create("taken", title="mine")
    for name in ("taken", "t"):
        with pytest.raises(ThreadExists):
            store.branch("t", 2, name)
    assert store.thread("taken").title == "mine"
    assert store.thread("taken").length == 0


def test_search_and_originals_reach_inherited_rows(store: Threads) -> None:
    store.create("t")
    store.append("t", [user("The walrus ate the lighthouse."), assistant("Astonishing.")])
    store.branch("t", 1, "b")
    (hit,) = store.search("walrus", thread="b")
    assert (hit.thread, hit.row.order) == ("b", 0)
    assert store.search("astonishing", thread="b") == []


def test_summaries_are_not_messages_of_the_thread(store: Threads) -> None:
    store.create("t")
    store.append("t", [*talk(1), full_point(2)])
    assert all(isinstance(row.entry, Message) for row in store.last("t", 10))
    assert SUMMARY[0] not in [row.entry for row in store.read("t")]


def test_a_point_that_is_the_first_row_can_be_withdrawn(store: Threads) -> None:
    store.create("t")
    store.append("t", [point(0)])
    store.append("t", [Withdrawal(0), user("hello")])
    assert [(row.order, stands) for row, stands in store.points("t")] == [(0, False)]
    assert store.open("t").messages == (user("hello"),)

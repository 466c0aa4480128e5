"""Failure modes that a store must not have, on every engine: A6, G4, H1, H2, H7."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from everlong.core import Message, Point, Withdrawal, bytes_of, encode, message_ref, ref_of
from everlong.engine import Threads
from everlong.errors import StoreError, ThreadChanged
from tests.core.build import assistant, calls, result, user
from tests.store.contract.entries import point, talk
from tests.store.engines import ENGINES, Clock, Opener


@pytest.fixture(params=ENGINES, ids=lambda engine: engine.name)
def opener(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opener]:
    with request.param.place(tmp_path) as opener:
        yield opener


@pytest.fixture
def store(opener: Opener) -> Iterator[Threads]:
    with opener(Clock()) as store:
        store.create("t", owner="ann")
        yield store


# --- A6 Pinned content is lost on some paths -----------------------------------------------------------


def test_A6_pins_are_there_on_every_way_to_open_a_thread(store: Threads, opener: Opener) -> None:
    store.append("t", talk(5))
    pins = (store.pin("t", 7), store.pin("t", None, "Never use tabs."))
    for turn in range(5):
        store.append("t", [point(store.thread("t").length, f"round {turn}"), *talk(1)])
        assert store.open("t").pins == pins
    store.append("t", [Withdrawal(store.points("t")[-1][0].order)])
    assert store.open("t").pins == store.open("t", before=9).pins == pins
    store.branch("t", 9, "b")
    assert [(pin.order, pin.text) for pin in store.open("b").pins] == [(7, ""), (None, "Never use tabs.")]
    store.close()
    with opener(Clock()) as again:
        assert again.open("t").pins == pins
        (row,) = again.read("t", 7, 8)
        assert row.entry == talk(5)[7]


# --- G4 Background summary races with new messages ------------------------------------------------------


def test_G4_a_summary_made_from_an_older_state_is_refused_and_nothing_is_added(store: Threads) -> None:
    store.append("t", talk(5))
    snapshot = store.open("t").thread.length
    store.append("t", [user("a new question")])
    with pytest.raises(ThreadChanged):
        store.append("t", [point(snapshot)], expected=snapshot)
    assert store.points("t") == []
    assert store.open("t").messages == (*talk(5), user("a new question"))


def test_G4_a_summary_of_a_snapshot_covers_the_snapshot_alone(store: Threads) -> None:
    store.append("t", talk(5))
    covered = store.thread("t").length
    meanwhile = talk(20, "meanwhile")
    for message in meanwhile:
        store.append("t", [message])
    store.append("t", [point(covered, "the first five turns")], expected=store.thread("t").length)
    assert store.open("t").messages == (user("the first five turns"), *meanwhile)


def test_G4_the_same_summary_delivered_twice_is_one_point(store: Threads) -> None:
    store.append("t", talk(2))
    first = store.append("t", [point(4)], ids=["summary-1"], expected=4)
    assert store.append("t", [point(4)], ids=["summary-1"], expected=4) == first
    assert len(store.points("t")) == 1


def test_G4_a_result_that_lands_after_an_undo_is_dropped(store: Threads) -> None:
    store.append("t", [*talk(2), point(2)])
    snapshot = store.thread("t").length
    store.append("t", [Withdrawal(4)])
    with pytest.raises(ThreadChanged):
        store.append("t", [point(4, "too late")], expected=snapshot)
    assert store.open("t").messages == talk(2)


# --- H1 History disappears for the human ----------------------------------------------------------------


def test_H1_after_three_compactions_everything_is_there_with_three_boundaries(store: Threads, opener: Opener) -> None:
    said: list[Message] = []
    for turn in range(3):
        words = talk(2, f"topic {turn}")
        said += words
        store.append("t", words)
        store.append("t", [point(store.thread("t").length, f"summary {turn}")])
    rows = list(store.read("t"))
    assert [row.entry for row in rows if isinstance(row.entry, Message)] == said
    assert sum(isinstance(row.entry, Point) for row in rows) == 3
    assert {hit.row.entry for hit in store.search("topic 0")} >= {said[0]}
    store.close()
    with opener(Clock()) as second:
        assert list(second.read("t")) == rows
        assert [row.entry for row in second.last("t", 100)] == said


# --- H2 No undo; rewind breaks across the boundary --------------------------------------------------------


def test_H2_undo_gives_the_very_prompt_of_before(store: Threads) -> None:
    store.append("t", talk(4))
    before = store.open("t").messages
    (row,) = store.append("t", [point(6)])
    assert store.open("t").messages != before
    store.append("t", [Withdrawal(row.order)])
    assert store.open("t").messages == before


def test_H2_undo_after_new_turns_keeps_them(store: Threads) -> None:
    store.append("t", [*talk(4), point(6), *talk(2, "new")])
    store.append("t", [Withdrawal(8)])
    assert store.open("t").messages == (*talk(4), *talk(2, "new"))


def test_H2_undo_one_by_one_down_to_the_first(store: Threads) -> None:
    store.append("t", [*talk(1), point(2, "one"), *talk(1, "b"), point(5, "two"), *talk(1, "c"), point(8, "three")])
    views = [store.open("t", before=row.order).messages for row, _ in store.points("t")]
    for row, _ in reversed(store.points("t")):
        store.append("t", [Withdrawal(row.order)])
        assert store.open("t").messages[: len(views[-1])] == views.pop()
    assert store.open("t").messages == (*talk(1), *talk(1, "b"), *talk(1, "c"))


def test_H2_a_branch_before_the_boundary_has_no_later_points(store: Threads) -> None:
    store.append("t", [*talk(3), point(4), *talk(1, "later"), point(8)])
    store.branch("t", 3, "edited")
    store.append("edited", [user("another question")])
    assert store.points("edited") == []
    assert store.open("edited").messages == (*talk(3)[:3], user("another question"))


def test_H2_what_cannot_be_undone_is_refused_by_name(store: Threads) -> None:
    store.append("t", talk(1))
    with pytest.raises(StoreError, match="point 0"):
        store.append("t", [Withdrawal(0)])


# --- H7 Get the originals back ----------------------------------------------------------------------------


def test_H7_a_reference_returns_the_original_bytes_however_often_it_was_compacted(store: Threads) -> None:
    output = "行 12: überraschend \x1b[31m\n" * 4_000
    turn = (user("look"), calls("1"), result("1", output), assistant("seen"))
    store.append("t", turn)
    for generation in range(4):
        store.append("t", [point(store.thread("t").length, f"summary {generation}"), *talk(1)])
    assert store.original("t", ref_of(output)) == bytes_of(output)
    assert store.original("t", message_ref(turn[2])) == bytes_of(encode(turn[2]))


def test_H7_search_returns_compacted_rows_once_across_generations(store: Threads) -> None:
    store.append("t", [user("the lighthouse is red"), assistant("noted")])
    for generation in range(4):
        summary = f"the lighthouse is red, generation {generation}"
        store.append("t", [point(store.thread("t").length, summary), *talk(1)])
    assert [hit.row.order for hit in store.search("lighthouse", thread="t")] == [0]
    assert store.search("lighthouse", owner="bob") == []

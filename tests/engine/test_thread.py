"""The state of a thread: what is kept in memory equals what the store says, however it came about."""

import pytest

from everlong.core import Message, Point, Recalled, Row, Withdrawal
from everlong.engine.contracts import Threads
from everlong.engine.thread import (
    ThreadState,
    ThreadStates,
    newest_compaction,
    refreshed,
    summary_limit,
)
from everlong.store import MemoryThreads
from tests.core.build import assistant, system, user

THREAD = "t"


def a_thread(*messages: Message) -> MemoryThreads:
    """A store with one thread in it."""
    threads = MemoryThreads()
    threads.create(THREAD)
    threads.append(THREAD, list(messages))
    return threads


def fresh(threads: Threads) -> ThreadState:
    """The thread as a new process sees it."""
    return refreshed(threads, THREAD, None)


def same(grown: ThreadState, new: ThreadState) -> None:
    """Both say the same of everything that decides a request."""
    assert grown.opened == new.opened
    assert (grown.prefix, grown.since, grown.orders) == (new.prefix, new.since, new.orders)
    assert grown.pinned == new.pinned
    assert grown.undone == new.undone


#: What is appended, one batch after the other, to a thread that is empty at first.
GROWTH: dict[str, list[list[Message]]] = {
    "system, then user": [[system("Be brief.")], [user("Hello.")]],
    "system twice, then user": [[system("Be brief.")], [system("Be kind.")], [user("Hello.")]],
    "system and user at once": [[system("Be brief."), user("Hello.")], [assistant("Hi.")]],
    "user, then system": [[user("Hello.")], [system("Be brief.")], [user("And?")]],
    "system behind user in one batch": [[system("Be brief.")], [user("Hello."), system("Now longer.")]],
}


@pytest.mark.parametrize("batches", GROWTH.values(), ids=GROWTH)
def test_a_refreshed_state_equals_a_fresh_one(batches: list[list[Message]]) -> None:
    threads = a_thread()
    state = fresh(threads)
    for batch in batches:
        threads.append(THREAD, batch)
        state = refreshed(threads, THREAD, state)
        same(state, fresh(threads))


def test_only_leading_system_text_is_the_head() -> None:
    threads = a_thread(system("Be brief."))
    state = fresh(threads)
    threads.append(THREAD, [user("Hello."), system("Later.")])
    state = refreshed(threads, THREAD, state)
    assert [row.order for row in state.opened.head] == [0]
    assert [row.order for row in state.opened.rows] == [1, 2]


def test_after_a_point_system_text_is_no_head_any_more() -> None:
    threads = a_thread(system("Be brief."), user("One."))
    threads.append(THREAD, [Point(boundary=2, summary=(user("Before: one."),), tokens_before=9, tokens_after=5)])
    state = fresh(threads)
    threads.append(THREAD, [system("Later.")])
    grown = refreshed(threads, THREAD, state)
    same(grown, fresh(threads))
    assert grown.since == (system("Later."),)


@pytest.mark.parametrize("what", ["point", "undo", "recalled", "pin", "late pin"])
def test_whatever_happens_a_refreshed_state_equals_a_fresh_one(what: str) -> None:
    threads = a_thread(system("Be brief."), *(user(f"Number {n}.") for n in range(6)))
    point = Point(boundary=4, summary=(user("Before."),), tokens_before=90, tokens_after=40)
    state = fresh(threads)
    match what:
        case "point":
            threads.append(THREAD, [point])
        case "undo":
            (row,) = threads.append(THREAD, [point])
            state = refreshed(threads, THREAD, state)
            threads.append(THREAD, [Withdrawal(row.order)])
        case "recalled":
            threads.append(THREAD, [Recalled(6, user("From before."))])
        case "pin":
            threads.pin(THREAD, 2)
        case _:
            threads.append(THREAD, [point])
            state = refreshed(threads, THREAD, state)
            threads.pin(THREAD, 2)
    grown = refreshed(threads, THREAD, state)
    same(grown, fresh(threads))
    if what == "late pin":
        assert user("Number 1.") in grown.prefix
        assert grown.orders[grown.prefix.index(user("Number 1."))] == 2


def test_a_thread_that_was_removed_and_made_again_is_read_again() -> None:
    threads = a_thread(*(user(f"Old {n}.") for n in range(3)))
    state = fresh(threads)
    threads.remove(THREAD)
    threads.create(THREAD)
    threads.append(THREAD, [user(f"New {n}.") for n in range(5)])
    assert refreshed(threads, THREAD, state).since == tuple(user(f"New {n}.") for n in range(5))


def test_a_pin_that_the_point_does_not_cover_is_not_sent_twice() -> None:
    threads = a_thread(*(user(f"Number {n}.") for n in range(6)))
    threads.append(THREAD, [Point(boundary=3, summary=(user("Before."),), tokens_before=90, tokens_after=40)])
    for order in (2, 3):  # the last that is covered, and the first that is not
        threads.pin(THREAD, order)
    state = fresh(threads)
    assert [row.order for row in state.pinned] == [2]
    assert (*state.prefix, *state.since).count(user("Number 3.")) == 1


def test_the_thread_used_longest_ago_is_dropped_first() -> None:
    state, states = fresh(a_thread(user("Hello."))), ThreadStates(kept=2)
    for name in ("a", "b", "a", "c"):
        states.put(name, state)
    assert [name for name in "abc" if states.get(name) is not None] == ["a", "c"]


def test_the_newest_compaction_is_all_points_that_left_the_same() -> None:
    threads = a_thread(*(user(f"Number {n}.") for n in range(4)))

    def point(boundary: int, words: str, reason: str) -> Row:
        entry = Point(boundary=boundary, summary=(user(words),), tokens_before=9, tokens_after=5, reason=reason)
        return threads.append(THREAD, [entry])[0]

    point(1, "first", "high mark")
    rows = [point(2, "second", "high mark"), point(2, "second", "summary")]
    assert [row.order for row in newest_compaction(threads, THREAD)] == [row.order for row in reversed(rows)]


@pytest.mark.parametrize(
    ("budget", "limit"), [(0, 1), (8, 1), (1_000, 120), (16_666, 1_999), (16_667, 2_000), (10**6, 2_000)]
)
def test_how_long_a_summary_may_be(budget: int, limit: int) -> None:
    assert summary_limit(budget) == limit

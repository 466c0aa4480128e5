"""The state of a thread: what is kept in memory equals what the store says, however it came about."""

import pytest

from everlong.core import History, Message, Point, Protection, Recalled, Role, Row, Text, Withdrawal, protected
from everlong.engine import thread as module
from everlong.engine.contracts import Threads
from everlong.engine.thread import (
    LEFT_BEFORE,
    RawHistory,
    ThreadState,
    ThreadStates,
    newest_compaction,
    raw_history,
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


# --- the raw history -----------------------------------------------------------------------------------------------


def orders_of(raw: RawHistory) -> list[int]:
    """The orders of its messages."""
    return list(raw.orders)


@pytest.fixture
def near_horizon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A horizon of a hundred characters, looked at two messages at a time."""
    monkeypatch.setattr(module, "HORIZON", 100)
    monkeypatch.setattr(module, "FIRST_LOOK", 2)


def long_thread(messages: int = 20) -> MemoryThreads:
    """Messages of 30 characters each behind a system text."""
    return a_thread(system("Be brief."), *(user(f"{n:02}" + "x" * 28) for n in range(1, messages + 1)))


@pytest.mark.usefixtures("near_horizon")
def test_no_more_than_the_horizon_is_read_and_the_head_and_the_task_always() -> None:
    raw = raw_history(long_thread(), fresh(long_thread()).opened)
    assert orders_of(raw)[:2] == [0, 1]
    assert orders_of(raw)[2:] == [17, 18, 19, 20]
    assert raw.characters == 4 * 30


def task_of(raw: RawHistory) -> list[str]:
    return [raw.history[at].text for at, why in protected(raw.history).items() if why is Protection.TASK]


@pytest.mark.usefixtures("near_horizon")
@pytest.mark.parametrize("form", ["all of it", "its beginning"])
def test_the_task_lies_before_the_horizon_and_is_there_as_it_was_said(form: str) -> None:
    task = user("Mend the accounts of the harbour: every berth is let once. " + "And by the rules. " * 9)
    threads = a_thread(system("Be brief."), task, *(user(f"{n:02}" + "x" * 28) for n in range(1, 21)))
    stood = (
        task if form == "all of it" else user(task.text[:60] + "\n[99 characters left out here; ref 0123456789abcdef]")
    )
    background = user("<background-0123abcd>\nQuoted …\n</background-0123abcd>")
    left = (background, stood, user("what else stayed"))
    threads.append(THREAD, [Point(boundary=20, summary=left, tokens_before=90, tokens_after=40)])
    raw = raw_history(threads, threads.open(THREAD))
    assert task_of(raw) == [task.text]
    assert [message.text for message in raw.history[:4]] == [
        "Be brief.",
        task.text,
        background.text,
        "what else stayed",
    ]
    assert orders_of(raw)[1] == 1


@pytest.mark.usefixtures("near_horizon")
def test_a_point_that_left_no_task_loses_nothing() -> None:
    threads = long_thread()
    left = (user("what was kept of the middle"),)
    threads.append(THREAD, [Point(boundary=19, summary=left, tokens_before=90, tokens_after=40)])
    raw = raw_history(threads, threads.open(THREAD))
    assert left[0] in raw.history
    assert task_of(raw) == ["01" + "x" * 28]


@pytest.mark.usefixtures("near_horizon")
def test_a_pin_older_than_the_horizon_is_in_the_history() -> None:
    threads = long_thread()
    threads.pin(THREAD, 3)
    threads.pin(THREAD, 0)  # the head is there anyway, once
    threads.pin(THREAD, 18)  # and so is what lies inside the horizon
    raw = raw_history(threads, fresh(threads).opened)
    assert orders_of(raw) == [0, 1, 3, 17, 18, 19, 20]
    with_pins = raw.with_background(threads.pins(THREAD))
    assert {with_pins.orders[at] for at in with_pins.pins} == {0, 3, 18}


@pytest.mark.usefixtures("near_horizon")
@pytest.mark.parametrize(("boundary", "used"), [(17, False), (18, True), (19, True)])
def test_the_history_begins_with_what_the_oldest_point_inside_the_horizon_left(boundary: int, used: bool) -> None:
    threads = long_thread()
    left = user("What was before.")
    threads.append(THREAD, [Point(boundary=boundary, summary=(left,), tokens_before=90, tokens_after=40)])
    threads.append(THREAD, [user("y" * 30)])
    raw = raw_history(threads, threads.open(THREAD))
    assert (left in raw.history) is used
    if used:
        assert raw.orders[raw.history.index(left)] == LEFT_BEFORE
        assert min(order for order in raw.orders if order > 1) == boundary


@pytest.mark.usefixtures("near_horizon")
def test_a_history_that_grows_equals_one_that_is_read_at_once() -> None:
    threads = a_thread(system("Be brief."), user("One."))
    raw = raw_history(threads, fresh(threads).opened)
    for number in range(3):
        threads.append(
            THREAD, [assistant(f"Answer {number}."), Recalled(1, user("Recalled.")), user(f"Question {number}.")]
        )
        opened = fresh(threads).opened
        raw = raw_history(threads, opened, raw)
        again = raw_history(threads, opened)
        assert (raw.history, raw.orders, raw.length) == (again.history, again.orders, again.length)
        assert raw.characters == again.characters


@pytest.mark.usefixtures("near_horizon")
def test_at_twice_the_horizon_it_is_read_again() -> None:
    threads = long_thread(3)
    raw = raw_history(threads, fresh(threads).opened)
    kept = raw.index
    threads.append(THREAD, [user("z" * 110)])  # exactly twice the horizon: 3 x 30 + 110
    raw = raw_history(threads, fresh(threads).opened, raw)
    assert (raw.characters, len(raw.history)) == (200, 5)
    assert raw.index is kept
    threads.append(THREAD, [user("z")])
    raw = raw_history(threads, fresh(threads).opened, raw)
    assert raw.index is not kept
    assert len(raw.history) < 6


def test_background_stands_behind_the_system_text_and_is_pinned() -> None:
    history: History = (system("s"), user("a"), assistant("b"))
    raw = RawHistory(history, (0, 1, 2), 3, 3)
    summary = Message(Role.USER, (Text("summary"),))
    held = raw.with_background((), (summary,))
    assert held.history == (system("s"), summary, user("a"), assistant("b"))
    assert (held.orders, held.pins) == ((0, LEFT_BEFORE, 1, 2), frozenset({1}))
    inside = held.with_summary(system("in the system text"))
    assert inside.history[:3] == (system("s"), system("in the system text"), summary)
    assert inside.pins == frozenset({2})
    beside = held.with_summary(user("as a message"))
    assert beside.pins == frozenset({1, 2})


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

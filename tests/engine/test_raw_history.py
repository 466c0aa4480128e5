"""The raw history of a thread: all that lies within the horizon, and of what lies before it, what must not be lost."""

import pytest

from everlong.core import History, Message, Opened, Point, Protection, Recalled, Role, Text, protected
from everlong.engine.contracts import Threads
from everlong.engine.raw_history import LEFT_BEFORE, Horizon, RawHistory, raw_history
from everlong.engine.thread import EngineContext
from everlong.store import MemoryThreads
from tests.core.build import assistant, system, user
from tests.engine.test_thread import THREAD, a_thread, fresh

#: A hundred characters, looked at two messages at a time.
NEAR = Horizon(characters=100, messages=2)


def read(threads: Threads, opened: Opened, known: RawHistory | None = None) -> RawHistory:
    """The raw history with a near horizon."""
    return raw_history(threads, opened, known, NEAR)


def orders_of(raw: RawHistory) -> list[int]:
    """The orders of its messages."""
    return list(raw.orders)


def long_thread(messages: int = 20) -> MemoryThreads:
    """Messages of 30 characters each behind a system text."""
    return a_thread(system("Be brief."), *(user(f"{n:02}" + "x" * 28) for n in range(1, messages + 1)))


def test_no_more_than_the_horizon_is_read_and_the_head_and_the_task_always() -> None:
    raw = read(long_thread(), fresh(long_thread()).opened)
    assert orders_of(raw)[:2] == [0, 1]
    assert orders_of(raw)[2:] == [17, 18, 19, 20]
    assert raw.characters == 4 * 30


@pytest.mark.parametrize(("size", "first"), [(7_999, 201), (8_001, 701)])
def test_the_horizon_of_an_engine_is_about_a_million_tokens(size: int, first: int) -> None:
    """The newest 500 messages, or 1,000 if these are not enough, and in both cases the task."""
    messages = (user(f"{number:04}" + "x" * (size - 4)) for number in range(1, 1_201))
    threads = a_thread(system("Be brief."), *messages)
    raw = EngineContext(threads=threads).raw_history(fresh(threads))
    assert orders_of(raw) == [0, 1, *range(first, 1_201)]


def task_of(raw: RawHistory) -> list[str]:
    return [raw.history[at].text for at, why in protected(raw.history).items() if why is Protection.TASK]


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
    raw = read(threads, threads.open(THREAD))
    assert task_of(raw) == [task.text]
    assert [message.text for message in raw.history[:4]] == [
        "Be brief.",
        task.text,
        background.text,
        "what else stayed",
    ]
    assert orders_of(raw)[1] == 1


def test_a_point_that_left_no_task_loses_nothing() -> None:
    threads = long_thread()
    left = (user("what was kept of the middle"),)
    threads.append(THREAD, [Point(boundary=19, summary=left, tokens_before=90, tokens_after=40)])
    raw = read(threads, threads.open(THREAD))
    assert left[0] in raw.history
    assert task_of(raw) == ["01" + "x" * 28]


def test_a_pin_older_than_the_horizon_is_in_the_history() -> None:
    threads = long_thread()
    threads.pin(THREAD, 3)
    threads.pin(THREAD, 0)  # the head is there anyway, once
    threads.pin(THREAD, 18)  # and so is what lies inside the horizon
    raw = read(threads, fresh(threads).opened)
    assert orders_of(raw) == [0, 1, 3, 17, 18, 19, 20]
    with_pins = raw.with_background(threads.pins(THREAD))
    assert {with_pins.orders[at] for at in with_pins.pins} == {0, 3, 18}


@pytest.mark.parametrize(("boundary", "used"), [(17, False), (18, True), (19, True)])
def test_the_history_begins_with_what_the_oldest_point_inside_the_horizon_left(boundary: int, used: bool) -> None:
    threads = long_thread()
    left = user("What was before.")
    threads.append(THREAD, [Point(boundary=boundary, summary=(left,), tokens_before=90, tokens_after=40)])
    threads.append(THREAD, [user("y" * 30)])
    raw = read(threads, threads.open(THREAD))
    assert (left in raw.history) is used
    if used:
        assert raw.orders[raw.history.index(left)] == LEFT_BEFORE
        assert min(order for order in raw.orders if order > 1) == boundary


def test_a_history_that_grows_equals_one_that_is_read_at_once() -> None:
    threads = a_thread(system("Be brief."), user("One."))
    raw = read(threads, fresh(threads).opened)
    for number in range(3):
        threads.append(
            THREAD, [assistant(f"Answer {number}."), Recalled(1, user("Recalled.")), user(f"Question {number}.")]
        )
        opened = fresh(threads).opened
        raw = read(threads, opened, raw)
        again = read(threads, opened)
        assert (raw.history, raw.orders, raw.length) == (again.history, again.orders, again.length)
        assert raw.characters == again.characters


def test_at_twice_the_horizon_it_is_read_again() -> None:
    threads = long_thread(3)
    raw = read(threads, fresh(threads).opened)
    kept = raw.index
    threads.append(THREAD, [user("z" * 110)])  # exactly twice the horizon: 3 x 30 + 110
    raw = read(threads, fresh(threads).opened, raw)
    assert (raw.characters, len(raw.history)) == (200, 5)
    assert raw.index is kept
    threads.append(THREAD, [user("z")])
    raw = read(threads, fresh(threads).opened, raw)
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

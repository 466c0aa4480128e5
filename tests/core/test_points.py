"""An append-only log and the view that is sent."""

from hypothesis import given, settings, strategies as st

from everlong.core.messages import Message
from everlong.core.points import Entry, Point, Recalled, Withdrawal, newest_point, view
from tests.core.build import assistant, system, user

SUMMARY = (user("[summary]"),)


def test_without_a_point_everything_is_sent() -> None:
    log = (system("s"), user("a"))
    assert view(log) == log


def test_the_newest_point_speaks_for_what_it_covers() -> None:
    log = (system("s"), user("a"), assistant("b"), user("c"), Point(boundary=3, summary=SUMMARY), assistant("d"))
    assert view(log) == (system("s"), *SUMMARY, user("c"), assistant("d"))


def test_undo_brings_back_what_was_there_and_keeps_what_came_after() -> None:
    log: tuple[Entry, ...] = (user("a"), assistant("b"), Point(boundary=2, summary=SUMMARY), user("c"))
    assert view((*log, Withdrawal(2))) == (user("a"), assistant("b"), user("c"))


def test_withdrawing_the_newest_point_brings_back_the_one_before() -> None:
    older, newer = Point(boundary=1, summary=SUMMARY), Point(boundary=3, summary=(user("[newer]"),))
    log: tuple[Entry, ...] = (user("a"), older, assistant("b"), newer)
    assert newest_point((*log, Withdrawal(3))) == (1, older)
    assert view((*log, Withdrawal(3))) == (*SUMMARY, assistant("b"))


def test_what_was_recalled_stands_before_its_question_until_the_next_point() -> None:
    block = user("[recalled]")
    log: tuple[Entry, ...] = (
        user("a"),
        Point(boundary=1, summary=SUMMARY),
        user("b"),
        Recalled(2, block),
        assistant("c"),
    )
    assert view(log) == (*SUMMARY, block, user("b"), assistant("c"))
    assert view((*log, user("d"), Point(boundary=2, summary=SUMMARY))) == (
        *SUMMARY,
        user("b"),
        assistant("c"),
        user("d"),
    )


def test_inside_a_tool_loop_what_was_recalled_stands_where_it_was_appended() -> None:
    block = user("[recalled]")
    log: tuple[Entry, ...] = (
        user("a"),
        Point(boundary=1, summary=SUMMARY),
        assistant("b"),
        Recalled(3, block),
        assistant("c"),
    )
    assert view(log) == (*SUMMARY, assistant("b"), block, assistant("c"))


def test_where_everything_stands_again_nothing_is_recalled() -> None:
    log: tuple[Entry, ...] = (
        user("a"),
        Point(boundary=1, summary=SUMMARY),
        Recalled(2, user("[recalled]")),
        user("b"),
        Withdrawal(1),
    )
    assert view(log) == (user("a"), user("b"))


entries = st.lists(st.integers(0, 5), max_size=20)


@given(entries)
@settings(max_examples=200, deadline=None)
def test_every_message_is_sent_or_covered(kinds: list[int]) -> None:
    log: list[Entry] = []
    for at, kind in enumerate(kinds):
        standing = newest_point(log)
        if kind == 4:
            log.append(Point(boundary=len(log), summary=SUMMARY))
        elif kind == 5 and standing:
            log.append(Withdrawal(standing[0]))
        else:
            log.append(user(f"{at}") if kind % 2 else assistant(f"{at}"))
    sent, standing = view(log), newest_point(log)
    boundary = standing[1].boundary if standing else 0
    for at, entry in enumerate(log):
        if isinstance(entry, Message):
            assert (entry in sent) == (at >= boundary)

"""Contract: the log. What was appended stays, in its order, to the byte; a batch is there whole or not at all."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone

import pytest

from everlong.core import Entry, Message, Recalled, Role, Text, Withdrawal
from everlong.engine import Threads
from everlong.errors import StoreError, ThreadChanged
from tests.core.build import assistant, result, user
from tests.store.contract.entries import CONVERSATION, EVERYTHING, HOSTILE_TEXTS, full_point, point, talk
from tests.store.engines import START

Reopen = Callable[[], Threads]


@pytest.fixture
def thread(store: Threads) -> str:
    return store.create("t").id


def test_rows_come_back_as_they_were_appended(store: Threads, thread: str, reopen: Reopen) -> None:
    rows = store.append(thread, CONVERSATION)
    assert [row.order for row in rows] == list(range(6))
    assert tuple(row.entry for row in rows) == CONVERSATION
    assert all(row.time > START and row.time.tzinfo is not None for row in rows)
    assert len({row.id for row in rows}) == 6
    assert all(row.id for row in rows)
    assert tuple(store.read(thread)) == rows
    more = store.append(thread, [user("more")])
    assert more[0].order == 6
    assert tuple(reopen().read(thread)) == (*rows, *more)


@pytest.mark.parametrize("text", HOSTILE_TEXTS.values(), ids=HOSTILE_TEXTS)
def test_texts_come_back_to_the_byte(store: Threads, thread: str, reopen: Reopen, text: str) -> None:
    said = (user(text), result("1", text, name=text[:40]), EVERYTHING.with_parts((Text(text, '{"k": "v"}'),)))
    store.append(thread, said)
    assert tuple(row.entry for row in store.read(thread)) == said
    assert tuple(row.entry for row in reopen().read(thread)) == said


def test_every_field_of_a_message_comes_back(store: Threads, thread: str, reopen: Reopen) -> None:
    moments = (
        datetime(2026, 2, 3, 4, 5, 6, 789_012, tzinfo=UTC),
        datetime(2026, 2, 3, 4, 5, 6, tzinfo=timezone(timedelta(hours=8))),
        datetime(2020, 2, 3),  # some programs write no zone
    )
    said = (EVERYTHING, Message(Role.USER, ()), *(Message(Role.USER, (Text("x"),), time=moment) for moment in moments))
    store.append(thread, said)
    back = [row.entry for row in reopen().read(thread)]
    assert tuple(back) == said
    assert [repr(entry) for entry in back] == [repr(entry) for entry in said]


def test_every_field_of_a_point_and_of_what_was_recalled_comes_back(
    store: Threads, thread: str, reopen: Reopen
) -> None:
    said: tuple[Entry, ...] = (
        *CONVERSATION,
        full_point(4),
        Withdrawal(6),
        Recalled(5, EVERYTHING),
        Recalled(0, user("回想")),
    )
    store.append(thread, said)
    assert tuple(row.entry for row in reopen().read(thread)) == said


RANGES = [
    (0, None),
    (2, None),
    (0, 3),
    (2, 4),
    (5, 5),
    (6, None),
    (99, None),
    (0, 99),
    (4, 2),
    (0, 2**70),
    (2**70, None),
]


@pytest.mark.parametrize(("start", "stop"), RANGES)
def test_any_range_is_read(store: Threads, thread: str, start: int, stop: int | None) -> None:
    rows = store.append(thread, CONVERSATION)
    assert tuple(store.read(thread, start, stop)) == rows[start:stop]


def test_what_lies_before_the_start_is_the_start(store: Threads, thread: str) -> None:
    rows = store.append(thread, CONVERSATION)
    assert tuple(store.read(thread, -3)) == rows
    assert tuple(store.read(thread, -3, 2)) == rows[:2]
    assert list(store.read(thread, 0, -1)) == []
    assert store.open(thread, before=-1) == store.open(thread, before=0)
    assert store.open(thread, before=-1).messages == ()
    assert store.last(thread, -1) == []


def test_what_is_recalled_may_stand_before_the_row_that_comes_next(store: Threads, thread: str, reopen: Reopen) -> None:
    store.append(thread, [user("a"), point(1), Recalled(3, user("recalled"))])
    store.append(thread, [user("b")])
    assert [row.entry for row in store.read(thread)] == [user("a"), point(1), Recalled(3, user("recalled")), user("b")]
    assert reopen().open(thread).messages == (*point(1).summary, user("recalled"), user("b"))


def test_a_long_thread_is_read_in_its_order_and_from_any_place(store: Threads, thread: str) -> None:
    said = talk(350)
    for start in range(0, len(said), 100):
        store.append(thread, said[start : start + 100])
    assert tuple(row.entry for row in store.read(thread)) == said
    assert [row.order for row in store.read(thread, 599, 602)] == [599, 600, 601]


def test_thousands_of_rows_in_one_batch(store: Threads, thread: str, reopen: Reopen) -> None:
    said = talk(1_500)
    rows = store.append(thread, said, ids=[f"m{at}" for at in range(len(said))])
    assert [row.order for row in rows] == list(range(3_000))
    again = reopen()
    assert again.append(thread, said, ids=[f"m{at}" for at in range(len(said))]) == rows
    assert again.thread(thread).length == 3_000


def test_reading_may_stop_early_and_overlap_with_writing(store: Threads, thread: str) -> None:
    rows = store.append(thread, talk(150))
    reading = store.read(thread)
    assert next(reading) == rows[0]
    store.append(thread, [user("meanwhile")])
    assert next(reading) == rows[1]
    assert [row.order for row in store.read(thread, 298)] == [298, 299, 300]


def test_the_last_messages_without_points(store: Threads, thread: str) -> None:
    rows = store.append(thread, [*talk(2), point(2), user("a"), Withdrawal(4), assistant("b"), Recalled(7, user("x"))])
    assert store.last(thread, 3) == [rows[3], rows[5], rows[7]]
    assert store.last(thread, 100) == [row for row in rows if isinstance(row.entry, Message)]
    assert store.last(thread, 0) == []


def test_a_row_is_found_by_its_id(store: Threads, thread: str, reopen: Reopen) -> None:
    rows = store.append(thread, [user("a"), point(1), user("b")], ids=["m-1", "p/1", "消息 3"])
    again = reopen()
    assert [again.row(thread, name) for name in ("m-1", "p/1", "消息 3")] == list(rows)
    assert again.row(thread, "M-1") is None
    assert again.row(thread, "") is None


def test_names_that_the_store_makes_find_their_rows(store: Threads, thread: str) -> None:
    for row in store.append(thread, CONVERSATION):
        assert store.row(thread, row.id) == row


def test_the_same_ids_again_add_nothing(store: Threads, thread: str, reopen: Reopen) -> None:
    rows = store.append(thread, [user("a"), assistant("b")], ids=["1", "2"])
    assert store.append(thread, [user("a"), assistant("b")], ids=["1", "2"]) == rows
    assert store.append(thread, [assistant("b")], ids=["2"]) == rows[1:]
    again = reopen()
    assert again.append(thread, [user("a"), assistant("b")], ids=["1", "2"]) == rows
    assert tuple(again.read(thread)) == rows
    assert again.thread(thread).length == 2


def test_of_ids_partly_known_only_the_new_are_added(store: Threads, thread: str) -> None:
    first = store.append(thread, [user("a")], ids=["1"])
    both = store.append(thread, [user("a"), assistant("b")], ids=["1", "2"])
    assert both[:1] == first
    assert both[1].order == 1
    assert tuple(store.read(thread)) == both


def test_ids_are_names_within_their_thread(store: Threads, thread: str) -> None:
    other = store.create("other").id
    store.append(thread, [user("a")], ids=["1"])
    store.append(other, [user("b")], ids=["1"])
    assert [row.entry for row in store.read(other)] == [user("b")]


def test_equal_messages_are_kept_as_often_as_they_were_said(store: Threads, thread: str) -> None:
    rows = store.append(thread, [user("again"), user("again"), user("again")])
    assert [row.entry for row in store.read(thread)] == [user("again")] * 3
    assert len({row.id for row in rows}) == 3


def test_nothing_appended_is_nothing_changed(store: Threads, thread: str) -> None:
    before = store.thread(thread)
    assert store.append(thread, []) == ()
    assert store.thread(thread) == before


def test_expected_length_guards_an_append(store: Threads, thread: str) -> None:
    store.append(thread, [user("a")], expected=0)
    rows = store.append(thread, [assistant("b")], expected=1)
    for wrong in (0, 1, 3):
        with pytest.raises(ThreadChanged):
            store.append(thread, [user("late")], expected=wrong)
    assert [row.entry for row in store.read(thread)] == [user("a"), assistant("b")]
    assert rows[0].order == 1


def test_a_repeated_append_is_no_conflict_with_itself(store: Threads, thread: str) -> None:
    rows = store.append(thread, [user("a")], ids=["1"], expected=0)
    assert store.append(thread, [user("a")], ids=["1"], expected=0) == rows


BROKEN: dict[str, list[Entry]] = {
    "a point beyond the end": [user("a"), point(9)],
    "a point just beyond itself": [user("a"), point(4)],
    "a point before the start": [user("a"), point(-1)],
    "a withdrawal of nothing": [user("a"), Withdrawal(9)],
    "a withdrawal of itself": [user("a"), Withdrawal(3)],
    "a withdrawal of a message": [user("a"), Withdrawal(0)],
    "a withdrawal before the start": [user("a"), Withdrawal(-1)],
    "a withdrawal of no number a database knows": [user("a"), Withdrawal(2**70)],
    "something recalled beyond the next row": [user("a"), Recalled(5, user("x"))],
    "something recalled before the start": [user("a"), Recalled(-1, user("x"))],
    "a good batch with a bad end": [*talk(3), point(2), Withdrawal(8), Withdrawal(0)],
}


@pytest.mark.parametrize("batch", BROKEN.values(), ids=BROKEN)
def test_a_batch_that_refers_to_what_is_not_there_is_refused_whole(
    store: Threads, thread: str, reopen: Reopen, batch: list[Entry]
) -> None:
    rows = store.append(thread, [user("before"), assistant("it")])
    with pytest.raises(StoreError):
        store.append(thread, batch, ids=[f"new {at}" for at in range(len(batch))])
    again = reopen()
    assert tuple(again.read(thread)) == rows
    assert again.row(thread, "new 0") is None
    assert (again.thread(thread).length, again.thread(thread).points) == (2, 0)
    assert again.search("a") == []
    assert again.append(thread, [user("after")], ids=["new 0"])[0].order == 2


def test_a_batch_may_refer_to_its_own_rows(store: Threads, thread: str) -> None:
    rows = store.append(thread, [user("a"), assistant("b"), point(2), Withdrawal(2), point(1)])
    assert store.points(thread) == [(rows[2], False), (rows[4], True)]


@pytest.mark.parametrize("ids", [["1"], ["1", "2", "3"], ["1", "1"]], ids=["too few", "too many", "one twice"])
def test_ids_name_each_entry_once(store: Threads, thread: str, ids: list[str]) -> None:
    with pytest.raises(StoreError):
        store.append(thread, [user("a"), assistant("b")], ids=ids)
    assert store.thread(thread).length == 0

"""What the engine added, put back where it is true and nowhere else."""

import pytest

from everlong.core import Action, Edit, Entry, Point, Recalled, Row, Withdrawal
from everlong.gateway.conversations.marks import (
    Mark,
    decoded_mark,
    encoded_mark,
    entry_at,
    marks_in,
    standing_marks,
)
from everlong.store.rules import utc_now
from everlong.summarize import Summary, decode_summary, encode_summary
from tests.core.build import assistant, user


def rows(*entries: Entry) -> list[Row]:
    return [Row(order, f"r{order}", utc_now(), entry) for order, entry in enumerate(entries)]


def account(covers: int) -> str:
    return encode_summary(Summary(style="structured", language="en", covers=covers))


TALK = (user("a"), assistant("b"), user("c"), assistant("d"), user("e"))
POINT = Point(boundary=2, summary=(user("in short"),), tokens_before=9, tokens_after=3, limit=100, model="m")


def test_a_point_speaks_of_the_units_before_its_boundary() -> None:
    (mark,) = marks_in(rows(*TALK, POINT), [0, 1, 2, 3, 4])
    assert (mark.at, mark.upto) == (5, 2)


def test_positions_are_numbers_of_units_whatever_system_text_stands_before() -> None:
    (mark,) = marks_in(rows(user("s1"), user("s2"), *TALK, Point(boundary=4, summary=())), [2, 3, 4, 5, 6])
    assert (mark.at, mark.upto) == (5, 2)
    assert isinstance(mark.entry, Point)
    assert mark.entry.boundary == 2


def test_a_summary_that_tells_of_more_than_left_is_true_only_with_all_of_it() -> None:
    """The tail that is still sent was summarised too: who changed it must not get the old summary."""
    (mark,) = marks_in(rows(*TALK, Point(boundary=2, summary=(), account=account(4))), [0, 1, 2, 3, 4])
    assert mark.upto == 4
    assert standing_marks([mark], 3, units=9) == []
    assert standing_marks([mark], 4, units=9) == [mark]


def test_a_point_that_covers_the_whole_request_does_not_apply() -> None:
    small, large = Mark(4, 2, POINT), Mark(6, 4, POINT)
    assert standing_marks([small, large], 4, units=4) == [small]
    assert standing_marks([small, large], 4, units=5) == [large]


def test_a_recalled_block_belongs_to_its_question() -> None:
    (mark,) = marks_in(rows(*TALK, Recalled(4, user("background"))), [0, 1, 2, 3, 4])
    assert (mark.at, mark.upto, mark.entry) == (5, 5, Recalled(4, user("background")))


def test_a_block_for_a_step_stands_behind_it_whatever_comes_next() -> None:
    block = Recalled(5, user("background"))
    for since in ((), (assistant("f"),)):
        (mark,) = marks_in(rows(*TALK, block, *since), [0, 1, 2, 3, 4, 6][: 5 + len(since)])
        assert (mark.at, mark.upto, mark.entry) == (5, 5, Recalled(5, user("background")))


def test_what_was_withdrawn_is_no_mark() -> None:
    assert marks_in(rows(*TALK, POINT, Withdrawal(5)), [0, 1, 2, 3, 4]) == []


def test_of_what_is_true_the_point_that_covers_most_stands_and_what_came_after() -> None:
    small, large = Mark(4, 2, POINT), Mark(6, 4, POINT)
    early, late = Mark(5, 3, Recalled(2, user("x"))), Mark(7, 6, Recalled(5, user("y")))
    every = [small, early, large, late]
    assert standing_marks(every, 9, units=9) == [large, late]
    assert standing_marks(every, 4, units=9) == [large]
    assert standing_marks(every, 3, units=9) == [small, early]
    assert standing_marks(every, 1, units=9) == []
    assert standing_marks([early], 9, units=9) == [], "without its point a block has nothing to recall"


def test_an_entry_goes_where_its_units_begin_in_another_thread() -> None:
    edit = Edit(at=1, action=Action.DROP, step="s", reason="r", before=5, after=0)
    mark = Mark(5, 3, Point(boundary=2, summary=(), account=account(3), edits=(edit,)))
    entry = entry_at(mark, [1, 3, 4, 6], end=7)
    assert isinstance(entry, Point)
    assert (entry.boundary, decode_summary(entry.account).covers, entry.edits[0].at) == (4, 6, 3)
    assert entry_at(Mark(5, 5, Recalled(4, user("x"))), [1, 3, 4, 6], end=7) == Recalled(7, user("x"))


@pytest.mark.parametrize("entry", [POINT, Recalled(3, user("x"))], ids=["a point", "a recalled block"])
def test_a_mark_is_read_as_it_was_written(entry: Point | Recalled) -> None:
    mark = Mark(5, 4, entry)
    assert decoded_mark(encoded_mark(mark)) == mark


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"at":1,"upto":1,"kind":99,"entry":"{}"}', "nonsense"])
def test_what_another_version_wrote_is_no_mark(text: str) -> None:
    assert decoded_mark(text) is None

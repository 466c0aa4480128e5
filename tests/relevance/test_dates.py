"""Days and months that a question names, in English and Chinese."""

from datetime import date

import pytest
from hypothesis import given, settings, strategies as st

from everlong.relevance.talk.days import Days, named_days, nearness


def day(year: int, month: int, number: int) -> Days:
    return Days(date(year, month, number), date(year, month, number))


MAY_4, JUNE = day(2023, 5, 4), Days(date(2023, 6, 1), date(2023, 6, 30))

NAMED = {
    "month and day": ("What happened on May 4th?", [MAY_4]),
    "day and month": ("the 4th of May", [MAY_4]),
    "short month": ("4 Jun. 2023", [day(2023, 6, 4)]),
    "with its year": ("May 4, 2022", [day(2022, 5, 4)]),
    "as a number": ("2023-05-04 or 2023/5/4", [MAY_4]),
    "a whole month": ("What did she paint in June?", [JUNE]),
    "a whole month of a year": ("the trip, June 2022", [Days(date(2022, 6, 1), date(2022, 6, 30))]),
    "Chinese": ("在5月4号我说了什么", [MAY_4]),
    "Chinese, the formal way": ("2022年5月4日", [day(2022, 5, 4)]),
    "Chinese numerals": ("五月二十一日", [day(2023, 5, 21)]),
    "a Chinese month": ("六月份去了哪里", [JUNE]),
    "may is not always a month": ("You may go. March on! It may rain 40 days.", []),
    "no such day": ("February 31 and 13月1日", []),
    "nothing": ("", []),
    "a duration is no date": ("过了三个月", []),
}


@pytest.mark.parametrize("name", NAMED)
def test_named(name: str) -> None:
    text, days = NAMED[name]
    assert named_days(text, {2023}) == days


def test_without_a_year_each_year_of_the_talk_is_meant() -> None:
    assert named_days("May 4", [2023, 2022]) == [day(2022, 5, 4), MAY_4]


@pytest.mark.parametrize(
    ("on", "near"), [((5, 4), 1.0), ((5, 5), 0.5), ((5, 11), 1 / 8), ((5, 12), 0.0), ((5, 3), 0.0)], ids=str
)
def test_what_happened_on_a_day_is_told_then_or_soon_after(on: tuple[int, int], near: float) -> None:
    assert nearness(date(2023, *on), [MAY_4]) == near


def test_every_day_of_a_month_is_meant() -> None:
    assert nearness(date(2023, 6, 17), [MAY_4, JUNE]) == 1.0


@given(st.text(alphabet="0123456789年月日号十一二may /-,.", max_size=24))
@settings(max_examples=300, deadline=None)
def test_any_text_names_real_days_or_none(text: str) -> None:
    assert all(days.first <= days.last for days in named_days(text, {2024}))

"""Find the days that a question names, and rate how near a message is to them."""

import calendar
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, timedelta
from typing import NamedTuple

__all__ = ["Days", "named_days", "nearness"]

DAYS_AFTER = 7  # people talk about a day's events on that day or soon after
FIRST_YEAR, LAST_YEAR = 1900, 2200

_MONTHS = {name.lower(): number for number, name in enumerate(calendar.month_name) if name}
_MONTHS |= {name[:3]: number for name, number in _MONTHS.items()} | {"sept": 9}
_DIGITS = {"一": 1, "二": 2, "三": 3, "四": 4, "五": 5, "六": 6, "七": 7, "八": 8, "九": 9, "十": 10}

_MONTH = rf"(?P<month>{'|'.join(sorted(_MONTHS, key=len, reverse=True))})\b\.?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?\b"
_YEAR = r"(?:,?\s+(?P<year>\d{4})\b)"
_NUMBER = r"\d{1,2}|[一二三四五六七八九十]{1,3}"
#: Some month names are also other words, so a month alone counts only after one of these words or before a year.
_BEFORE = r"\b(?:in|of|during|since|until|by|early|late|mid|last|this)[\s-]+"

_NAMED = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\b(?P<year>\d{4})[-/.](?P<month>\d{1,2})[-/.](?P<day>\d{1,2})\b",
        rf"\b{_MONTH}\s+{_DAY}{_YEAR}?",
        rf"\b{_DAY}(?:\s+of)?\s+{_MONTH}{_YEAR}?",
        rf"{_BEFORE}{_MONTH}(?!\s+\d{{1,2}}\b){_YEAR}?",
        rf"\b{_MONTH}{_YEAR}",
        rf"(?:(?P<year>\d{{4}})\s*年\s*)?(?P<month>{_NUMBER})\s*月\s*(?:(?P<day>{_NUMBER})\s*[日号號]?)?",
    )
)


class Days(NamedTuple):
    """A range of days, from the first to the last, both included."""

    first: date
    last: date


def named_days(text: str, years: Iterable[int]) -> list[Days]:
    """Return the days and months that a text names. Dates without a year are taken in each of `years`.

    Example: "What did we say on May 4th?", {2023} -> [Days(2023-05-04, 2023-05-04)]
    """
    years = sorted(set(years))
    days: dict[Days, None] = {}
    for pattern in _NAMED:
        for match in pattern.finditer(text):
            days |= dict.fromkeys(_meant(match.groupdict(), years))
        text = pattern.sub(";", text)  # "May 4" must not also match as a month
    return list(days)


def nearness(day: date, named: Sequence[Days]) -> float:
    """Return 1 on a named day, less on each of the seven days after it, and 0 before and later."""
    after = [(day - days.last).days for days in named if days.first <= day <= days.last + timedelta(DAYS_AFTER)]
    return 1 / (1 + max(0, min(after))) if after else 0.0


def _meant(fields: dict[str, str | None], years: Sequence[int]) -> Iterator[Days]:
    month = _number(fields["month"] or "")
    day = _number(fields.get("day") or "0")
    year_said = fields.get("year")
    for year in (int(year_said),) if year_said else years:
        if not (FIRST_YEAR <= year <= LAST_YEAR and 1 <= month <= 12):
            continue
        length = calendar.monthrange(year, month)[1]
        if day <= length:
            yield Days(date(year, month, day or 1), date(year, month, day or length))


def _number(text: str) -> int:
    """Return the number of a day or month. Example: "十二" -> 12, "June" -> 6, "07" -> 7"""
    if text.isdecimal():
        return int(text)
    if text[0] not in _DIGITS:
        return _MONTHS[text.lower()]
    tens, ten, ones = text.rpartition("十")
    return (_DIGITS.get(tens, 1) if ten else 0) * 10 + (_DIGITS.get(ones, 0) if ones else 0)

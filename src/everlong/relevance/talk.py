"""The worth of chunks of a conversation in which people only talked.

An answer stands near its question, in a session about the same things; it was said by the person and on the day that
the question names. Where nobody answers, the messages are notes, each for itself.
"""

import calendar
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from itertools import repeat
from typing import NamedTuple

from everlong.core import Message, Role, said_by_users
from everlong.relevance.index import Index
from everlong.relevance.query import query_of_text
from everlong.relevance.sessions import session_named, speakers_asked_about, without_names
from everlong.relevance.terms import terms_of, words_of

__all__ = ["Days", "are_notes", "named_days", "nearness", "worth_of_talk"]

DAYS_AFTER = 7  # what happened on a day is told on that day or soon after
FIRST_YEAR, LAST_YEAR = 1900, 2200

_MONTHS = {name.lower(): number for number, name in enumerate(calendar.month_name) if name}
_MONTHS |= {name[:3]: number for name, number in _MONTHS.items()} | {"sept": 9}
_DIGITS = {"一": 1, "二": 2, "三": 3, "四": 4, "五": 5, "六": 6, "七": 7, "八": 8, "九": 9, "十": 10}

_MONTH = rf"(?P<month>{'|'.join(sorted(_MONTHS, key=len, reverse=True))})\b\.?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?\b"
_YEAR = r"(?:,?\s+(?P<year>\d{4})\b)"
_NUMBER = r"\d{1,2}|[一二三四五六七八九十]{1,3}"
#: Some months are also other words, so a month alone has to follow one of these, or a year has to follow it.
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
    """From the first day to the last, both included."""

    first: date
    last: date


def named_days(text: str, years: Iterable[int]) -> list[Days]:
    """The days and months that a text names; `years` are meant where it names none.

    Example: "What did we say on May 4th?", {2023} -> [Days(2023-05-04, 2023-05-04)]
    """
    years = sorted(set(years))
    days: dict[Days, None] = {}
    for pattern in _NAMED:
        for match in pattern.finditer(text):
            days |= dict.fromkeys(_meant(match.groupdict(), years))
        text = pattern.sub(";", text)  # "May 4" is not also a month
    return list(days)


def nearness(day: date, named: Sequence[Days]) -> float:
    """1 on a day that is named, less on each day after, 0 from a week after on and before."""
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
    """Example: "十二" -> 12, "June" -> 6, "07" -> 7"""
    if text.isdecimal():
        return int(text)
    if text[0] not in _DIGITS:
        return _MONTHS[text.lower()]
    tens, ten, ones = text.rpartition("十")
    return (_DIGITS.get(tens, 1) if ten else 0) * 10 + (_DIGITS.get(ones, 0) if ones else 0)


#: The share of a turn's score that its neighbours in the session get, by their distance.
NEIGHBOURS = ((-1, 0.7), (-2, 0.4), (-3, 0.2), (1, 0.5), (2, 0.2))
SESSION_SHARE = 0.3
TIME_SHARE = 1.0  # a day that is named is meant
SPEAKER_BONUS, SPEAKER_FACTOR = 0.4, 1.25
LENGTH_SHARE = 0.1  # a longer turn holds more
BEST = 10  # texts whose words are taken
FOUND_SHARE = 0.4  # of the whole weight, for what was found


def worth_of_talk(index: Index, messages: Sequence[Message]) -> list[float]:
    """The worth of each chunk, by its number."""
    question = next(said_by_users(messages), "")
    query = query_of_text(without_names(question, index.speakers))
    scores = index.rank(query)
    if are_notes(index):
        return index.rank(_with_feedback(query, index, scores))
    scores = _to_one(_shared(scores, index.sessions))
    sessions = _to_one(index.rank_groups(query, index.sessions))
    times = _meant_by_time(question, index, messages)
    heard = [index.speakers[speaker] for speaker in speakers_asked_about(question, index.speakers)]
    worth = []
    for score, session, time, speaker, chunk in zip(
        scores, index.sessions, times, index.spoken_by, index.chunks, strict=False
    ):
        score += SESSION_SHARE * sessions[session] + TIME_SHARE * time
        if speaker in heard:
            score = score * SPEAKER_FACTOR + SPEAKER_BONUS
        worth.append(score + LENGTH_SHARE * math.log1p(len(chunk.text)))
    return worth


def are_notes(index: Index) -> bool:
    """Whether one speaker wrote everything, so that nothing is an answer."""
    return sum(role is not Role.SYSTEM for role, _ in index.speakers) == 1


def _with_feedback(query: Mapping[str, float], index: Index, scores: Sequence[float]) -> dict[str, float]:
    """The query with the words of the texts that score best (a relevance model); its weights sum to 1."""
    best = [number for number in sorted(range(len(scores)), key=lambda n: -scores[n])[:BEST] if scores[number] > 0]
    if not best:
        return dict(query)
    total, whole = sum(query.values()), sum(scores[number] for number in best)
    fuller = {term: (1 - FOUND_SHARE) * weight / total for term, weight in query.items()}
    for number in best:
        terms = [pair for word in words_of(index.chunks[number].text) for pair in terms_of(word)]
        share = FOUND_SHARE * scores[number] / whole / sum(weight for _, weight in terms)
        for term, weight in terms:
            fuller[term] = fuller.get(term, 0.0) + share * weight
    return fuller


def _to_one(scores: Sequence[float]) -> list[float]:
    best = max(scores, default=0.0) or 1.0
    return [score / best for score in scores]


def _shared(scores: Sequence[float], sessions: Sequence[int]) -> list[float]:
    """The scores, each shared with its neighbours of the same session."""
    shared = list(scores)
    for number, score in enumerate(scores):
        if score:
            for away, share in NEIGHBOURS:
                other = number - away
                if 0 <= other < len(shared) and sessions[other] == sessions[number]:
                    shared[other] += share * score
    return shared


def _meant_by_time(question: str, index: Index, messages: Sequence[Message]) -> Iterable[float]:
    """How near each chunk is to the days or the session that the question names; endless zeros if it names none."""
    named = session_named(question, index.sessions[-1] if index.sessions else 0)
    if named is not None:
        return [float(session == named) for session in index.sessions]
    times = [messages[chunk.at].time for chunk in index.chunks]
    days = named_days(question, {time.year for time in times if time})
    return [nearness(time.date(), days) if time else 0.0 for time in times] if days else repeat(0.0)

"""The worth of chunks of a conversation in which people only talked.

An answer stands near its question, in a session about the same things; it was said by the person and on the day that
the question names. Where nobody answers, the messages are notes, each for itself.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat

from everlong.core import Message, Role, user_text
from everlong.relevance.dates import named_days, nearness
from everlong.relevance.index import Index
from everlong.relevance.query import query_of_text
from everlong.relevance.sessions import session_named
from everlong.relevance.speakers import speakers_asked_about, without_names
from everlong.relevance.terms import terms_of, words_of

__all__ = ["are_notes", "worth_of_talk"]

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
    question = next((user_text(message) for message in reversed(messages) if user_text(message)), "")
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

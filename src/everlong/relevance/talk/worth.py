"""The worth of the chunks of a conversation without tools, for the question at its end.

The text that answers a question is near similar words, in a session about the same topic, by the person and on the day
that the question names. If only one speaker wrote everything, the messages are independent notes.

An assistant's long answers follow from what the user said. So if space is scarce, the user's words are worth more,
unless the question is about the assistant's words. Between two people, neither comes first.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from statistics import median
from typing import NamedTuple

from everlong.core import Message, Role, said_by_users
from everlong.relevance.chunks import ChunkKind
from everlong.relevance.index import Index
from everlong.relevance.query import query_of_text
from everlong.relevance.talk.days import named_days, nearness
from everlong.relevance.talk.questions import session_named, speakers_asked_about, without_names
from everlong.relevance.terms import terms_of, words_of

__all__ = ["are_notes", "is_assisted", "worth_of_talk"]

#: The shares of neighbours' scores that a chunk gets within its session, by distance.
NEIGHBOURS = ((-1, 0.7), (-2, 0.4), (-3, 0.2), (1, 0.5), (2, 0.2))
SESSION_SHARE = 0.3
TIME_SHARE = 1.0  # a named day is almost certainly meant
LIKENESS_SHARE = 0.8  # for similarity in meaning
SPEAKER_BONUS, SPEAKER_FACTOR = 0.4, 1.25
LENGTH_SHARE = 0.1  # longer messages contain more
BEST = 10  # texts whose words are added to the query
FOUND_SHARE = 0.4  # of the total weight, for the added words


class TalkWorth(NamedTuple):
    """The worth of each chunk, by its number.

    `answers` is the worth of the assistant's messages by their match alone, 0 for others; () if neither side comes
    first.
    """

    chunks: list[float]
    answers: Sequence[float] = ()


def worth_of_talk(index: Index, messages: Sequence[Message]) -> TalkWorth:
    """Return how much each chunk is worth for the question at the end."""
    question = next(said_by_users(messages), "")
    subject = without_names(question, index.speakers)
    query = query_of_text(subject)
    scores = index.rank(query)
    if are_notes(index):
        return TalkWorth(index.rank(_with_feedback(query, index, scores)))
    scores = _with_likeness(_to_one(_shared(scores, index.sessions)), index, subject)
    sessions = _to_one(index.rank_groups(query, index.sessions))
    times = _meant_by_time(question, index, messages)
    asked = speakers_asked_about(question, index.speakers)
    asked_speakers = [index.speakers[speaker] for speaker in asked]
    worth = []
    for score, session, time, speaker, chunk in zip(
        scores, index.sessions, times, index.spoken_by, index.chunks, strict=False
    ):
        score += SESSION_SHARE * sessions[session] + TIME_SHARE * time
        if speaker in asked_speakers:
            score = score * SPEAKER_FACTOR + SPEAKER_BONUS
        worth.append(score + LENGTH_SHARE * math.log1p(len(chunk.text)))
    if not is_assisted(index):
        return TalkWorth(worth)
    answers_asked = any(role is Role.ASSISTANT for role, _ in asked)
    raised = _user_first(index, worth, answers_asked=answers_asked)
    return TalkWorth(raised, () if answers_asked else _of_answers(index, worth))


def are_notes(index: Index) -> bool:
    """Whether a single speaker wrote everything, so that nothing is an answer."""
    return sum(role is not Role.SYSTEM for role, _ in index.speakers) == 1


def _with_feedback(query: Mapping[str, float], index: Index, scores: Sequence[float]) -> dict[str, float]:
    """Return the query with the words of the best texts added (a relevance model). Its weights sum to 1."""
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


def _with_likeness(scores: list[float], index: Index, subject: str) -> list[float]:
    """Return the scores with similarity in meaning added, if it is known."""
    alike = index.likeness(index, subject) if index.likeness is not None else ()
    return [score + LIKENESS_SHARE * like for score, like in zip(scores, alike, strict=True)] if alike else scores


def _shared(scores: Sequence[float], sessions: Sequence[int]) -> list[float]:
    """Return the scores, each shared with its neighbours in the same session."""
    shared = list(scores)
    for number, score in enumerate(scores):
        if score:
            for away, share in NEIGHBOURS:
                other = number - away
                if 0 <= other < len(shared) and sessions[other] == sessions[number]:
                    shared[other] += share * score
    return shared


def _meant_by_time(question: str, index: Index, messages: Sequence[Message]) -> Iterable[float]:
    """Return how near each chunk is to the days or session that the question names; endless zeros if it names none."""
    named = session_named(question, index.sessions[-1] if index.sessions else 0)
    if named is not None:
        return [float(session == named) for session in index.sessions]
    times = [messages[chunk.at].time for chunk in index.chunks]
    days = named_days(question, {time.year for time in times if time})
    return [nearness(time.date(), days) if time else 0.0 for time in times] if days else repeat(0.0)


# Talk with an assistant

LONGER = 3  # the median answer is at least this many times as long as the median user message
USER_BONUS = 0.8
NEWER_BONUS = 0.02  # of two statements about the same thing, the newer comes first
ROOM_POWER = 0.25  # longer messages must be worth more
ROOM_FREE = 30  # tokens added to the size, so that short messages are not preferred too much
CHARACTERS = 4  # per token


def is_assisted(index: Index) -> bool:
    """Whether this is a chat with an assistant: nobody has a name, and the answers are long."""
    if any(name for _, name in index.speakers) or len(index.speakers) < 2:
        return False
    roles = {number: role for (role, _), number in index.speakers.items()}
    sizes: dict[Role, dict[int, int]] = {}
    for speaker, chunk in zip(index.spoken_by, index.chunks, strict=True):
        said = sizes.setdefault(roles[speaker], {})
        said[chunk.at] = said.get(chunk.at, 0) + len(chunk.text)
    asked, answered = (sizes.get(role, {}).values() for role in (Role.USER, Role.ASSISTANT))
    return bool(asked and answered) and median(answered) >= LONGER * median(asked)


def _user_first(index: Index, worth: Sequence[float], *, answers_asked: bool) -> list[float]:
    """Return the worth of each message in relation to its size. User messages count more, unless `answers_asked`.

    A message is worth as much as its best chunk, and stays or goes as a whole: half a plan or half a question helps
    little.
    """
    best: dict[int, float] = {}
    sizes: dict[int, int] = {}
    for number, chunk in enumerate(index.chunks):
        raised = 0.0 if answers_asked or chunk.kind is not ChunkKind.USER else USER_BONUS
        newness = NEWER_BONUS * number / len(index.chunks)
        best[chunk.at] = max(best.get(chunk.at, 0.0), worth[number] + raised + newness)
        sizes[chunk.at] = sizes.get(chunk.at, 0) + len(chunk.text)
    rooms = {at: (size / CHARACTERS + ROOM_FREE) ** ROOM_POWER for at, size in sizes.items()}
    return [best[chunk.at] / rooms[chunk.at] for chunk in index.chunks]


def _of_answers(index: Index, worth: Sequence[float]) -> list[float]:
    """Return the worth of the assistant's messages, each that of its best chunk; 0 for user messages."""
    best: dict[int, float] = {}
    for number, chunk in enumerate(index.chunks):
        if chunk.kind is ChunkKind.ASSISTANT:
            best[chunk.at] = max(best.get(chunk.at, 0.0), worth[number])
    return [best.get(chunk.at, 0.0) for chunk in index.chunks]

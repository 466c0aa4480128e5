"""Rank the chunks of a conversation by how likely they are needed next: one ranking for work, one for talk."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from everlong.core import Message
from everlong.relevance.index import Index
from everlong.relevance.talk.worth import worth_of_talk
from everlong.relevance.work import worth_of_work

__all__ = ["Ranking", "ranked"]


@dataclass(frozen=True, slots=True)
class Ranking:
    """The chunk numbers, most needed first.

    `answers` are an assistant's messages, best match first, if `numbers` prefers the user's words: not every question
    shows that it is about an answer.
    """

    numbers: list[int]
    answers: list[int]


def ranked(
    index: Index, messages: Sequence[Message], known: Set[str] = frozenset(), query: Mapping[str, float] | None = None
) -> Ranking:
    """Return the ranking for the end of a conversation. `messages` begins with those that the index holds.

    `known` are the names that are sent anyway; `query` is the query of the end of the conversation, if already
    computed.
    """
    if not index.is_talk:
        return Ranking(_best_first(worth_of_work(index, messages, known, query)), [])
    worth = worth_of_talk(index, messages)
    answers = [number for number in _best_first(worth.answers) if worth.answers[number] > 0]
    return Ranking(_best_first(worth.chunks), answers)


def _best_first(worth: Sequence[float]) -> list[int]:
    return sorted(range(len(worth) - 1, -1, -1), key=worth.__getitem__, reverse=True)  # newest first among equals

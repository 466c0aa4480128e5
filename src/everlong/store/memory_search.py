"""Search over messages in memory: BM25 over the terms of `relevance`, nothing kept but the terms of each message."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from everlong.core import Message
from everlong.store.searching import asked_terms, found_by, rarity, worth

__all__ = ["Words", "best", "words_in"]

Place = TypeVar("Place")


@dataclass(frozen=True, slots=True)
class Words:
    """How much of each term a message holds, and of all of them together."""

    terms: Mapping[str, float]
    length: float


def words_in(message: Message) -> Words:
    """What a message is found by: what it says, what it calls and what came of it."""
    terms = found_by(message)
    return Words(terms, sum(terms.values()))


def best(query: str, places: Mapping[Place, Words], limit: int) -> list[tuple[Place, float]]:
    """The places that answer a query and how well, best first."""
    asked = asked_terms(query)
    if not asked or not places or limit <= 0:
        return []
    average = max(1.0, sum(words.length for words in places.values()) / len(places))
    scores: defaultdict[Place, float] = defaultdict(float)
    for term, weight in asked.items():
        holding = {place: words for place, words in places.items() if term in words.terms}
        rare = weight * rarity(len(places), len(holding))
        for place, words in holding.items():
            scores[place] += rare * worth(words.terms[term], words.length, average)
    return sorted(scores.items(), key=lambda found: -found[1])[:limit]

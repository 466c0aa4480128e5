"""Search terms: the terms by which a message is found and those of a query, the same in every store.

The terms are those of `relevance`: Chinese by single characters and pairs, English by stems, identifiers whole and in
parts. Each store decides how to keep them; a store that does its own ranking uses BM25.
"""

import json
import math
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache

from everlong.core import Json, Message, Reasoning, Text, ToolCall, ToolResult
from everlong.relevance import query_of_text, terms_of, words_of

__all__ = ["LENGTH_SHARE", "SATURATION", "found_by", "query_terms", "rarity", "texts_of", "worth"]

LONGEST_TEXT = 4_000_000  # characters of one part that are indexed
MOST_ASKED = 32  # terms of one query; the heaviest count
SATURATION = 1.2  # BM25's k1: how soon repetitions of a word stop counting
LENGTH_SHARE = 0.5  # BM25's b: how much the length of a message counts against it

_terms_of = lru_cache(maxsize=50_000)(terms_of)  # the same words occur again and again


def texts_of(message: Message) -> Iterator[str]:
    """Yield all texts of a message: text, reasoning, calls with their arguments, results."""
    for part in message.parts:
        match part:
            case Text(text) | Reasoning(text):
                yield text[:LONGEST_TEXT]
            case ToolCall(name=name, arguments=arguments):
                yield name
                yield from _argument_texts(arguments[:LONGEST_TEXT])
            case ToolResult():
                yield part.text[:LONGEST_TEXT]
            case _:
                continue


def found_by(message: Message) -> dict[str, float]:
    """Return the terms by which a message is found, and how much of each it contains.

    Example: "open readFile, then open it" -> {"open": 2.0, "readfile": 2.5, "read": 1.0, "file": 1.0}
    """
    weights: dict[str, float] = {}
    words: Counter[str] = Counter()
    for text in texts_of(message):
        words.update(words_of(text))
    for word, times in words.items():
        for term, weight in _terms_of(word):
            weights[term] = weights.get(term, 0.0) + weight * times
    return weights


def query_terms(query: str) -> dict[str, float]:
    """Return the terms of a query with their weights, the heaviest first; {} if it has none."""
    terms = query_of_text(query)
    return dict(sorted(terms.items(), key=lambda term: -term[1])[:MOST_ASKED])


def rarity(messages: int, holding: int) -> float:
    """Return the weight of a term that `holding` of all messages contain: BM25's inverse document frequency."""
    return math.log(1 + (messages - holding + 0.5) / (holding + 0.5))


def worth(held: float, length: float, average: float) -> float:
    """Return BM25's weight of a term that occurs this often in a message of that length, given the average length."""
    return held * (SATURATION + 1) / (held + SATURATION * (1 - LENGTH_SHARE + LENGTH_SHARE * length / average))


def _argument_texts(arguments: str) -> Iterator[str]:
    """Yield the names and texts in a call's arguments, read as JSON so that no escape becomes part of a word."""
    try:
        waiting: list[Json] = [json.loads(arguments)]
    except (ValueError, RecursionError):
        yield arguments
        return
    while waiting:
        match waiting.pop():
            case str(text):
                yield text
            case list(items):
                waiting.extend(reversed(items))
            case dict(fields):
                yield " ".join(fields)
                waiting.extend(reversed(fields.values()))
            case bool() | None:
                continue
            case number:
                yield str(number)

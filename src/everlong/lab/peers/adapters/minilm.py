"""Careful retrieval as it is done today: BM25 and MiniLM embeddings with fused ranks; whole messages are kept.

For dialogues. The last message is the query; every other one is ranked against it twice, and 1/(60 + rank) is summed.
"""

import math
import re
from collections import Counter
from functools import cache
from itertools import pairwise

from everlong.lab.peers.adapters.minilm_vectors import vectors
from everlong.lab.peers.rules import message_tokens, texts
from everlong.lab.peers.shapes import Fitting, Message, split_system

SATURATION, LENGTH_SHARE = 1.2, 0.75  # BM25's k1 and b
RANK_OFFSET = 60  # of reciprocal rank fusion, as published
WORD = re.compile(r"[a-z0-9]+|[\u4e00-\u9fff]")


def _fused(messages: list[Message], budget: int) -> list[Message]:
    system, rest = split_system(messages)
    if not rest:
        return system
    *turns, question = rest
    documents = ["\n".join(texts(message)) for message in turns]
    query = "\n".join(texts(question))
    scores = [0.0] * len(turns)
    for ranking in (_lexical(documents, query), _semantic(documents, query)):
        for rank, place in enumerate(sorted(range(len(turns)), key=lambda at: -ranking[at]), start=1):
            scores[place] += 1 / (RANK_OFFSET + rank)
    left = budget - sum(map(message_tokens, (*system, question)))
    kept = set()
    for place in sorted(range(len(turns)), key=lambda at: -scores[at]):
        size = message_tokens(turns[place])
        if size <= left:
            kept.add(place)
            left -= size
    return [*system, *(turns[place] for place in sorted(kept)), question]


def _semantic(documents: list[str], query: str) -> list[float]:
    if not documents:
        return []
    return list(vectors(documents) @ vectors([query])[0])


def _lexical(documents: list[str], query: str) -> list[float]:
    counts = [_counted(text) for text in documents]
    average = sum(words.total() for words in counts) / max(1, len(counts)) or 1.0
    scores = [0.0] * len(counts)
    for word in set(_words(query)):
        holding = sum(word in words for words in counts)
        rarity = math.log(1 + (len(counts) - holding + 0.5) / (holding + 0.5))
        for place, words in enumerate(counts):
            if count := words[word]:
                length = words.total() / average
                weight = count + SATURATION * (1 - LENGTH_SHARE + LENGTH_SHARE * length)
                scores[place] += rarity * count * (SATURATION + 1) / weight
    return scores


@cache
def _counted(text: str) -> Counter[str]:
    return Counter(_words(text))


def _words(text: str) -> list[str]:
    """Return lower-case words; Chinese as pairs of characters."""
    found = WORD.findall(text.lower())
    return found + [one + other for one, other in pairwise(found) if one >= "一" and other >= "一"]


STRATEGIES = {"fusion": Fitting(read=list, fit=_fused, write=lambda kept, _: kept)}

"""What a careful retrieval does today: BM25 and MiniLM embeddings, their ranks fused; whole messages are kept.

For dialogues. The last message asks; each other one is ranked against it twice, and 1/(60 + rank) is summed.
"""

import math
import re
from collections import Counter
from itertools import pairwise

import numpy as np

from everlong.lab.peers.adapters.minilm_model import embedded
from everlong.lab.peers.rules import message_tokens, texts
from everlong.lab.peers.shapes import Fitting, Message, system_apart

SATURATION, LENGTH_SHARE = 1.2, 0.75  # BM25's k1 and b
RANK_OFFSET = 60  # of reciprocal rank fusion, as it was published
WORD = re.compile(r"[a-z0-9]+|[\u4e00-\u9fff]")


def _fused(messages: list[Message], budget: int) -> list[Message]:
    system, rest = system_apart(messages)
    if not rest:
        return system
    *said, question = rest
    spoken = ["\n".join(texts(message)) for message in said]
    asked = "\n".join(texts(question))
    scores = [0.0] * len(said)
    for ranking in (_lexical(spoken, asked), _semantic(spoken, asked)):
        for rank, place in enumerate(sorted(range(len(said)), key=lambda at: -ranking[at]), start=1):
            scores[place] += 1 / (RANK_OFFSET + rank)
    left = budget - sum(map(message_tokens, (*system, question)))
    kept = set()
    for place in sorted(range(len(said)), key=lambda at: -scores[at]):
        size = message_tokens(said[place])
        if size <= left:
            kept.add(place)
            left -= size
    return [*system, *(said[place] for place in sorted(kept)), question]


def _semantic(spoken: list[str], asked: str) -> list[float]:
    if not spoken:
        return []
    return list(np.stack([embedded(text) for text in spoken]) @ embedded(asked))


def _lexical(spoken: list[str], asked: str) -> list[float]:
    documents = [Counter(_words(text)) for text in spoken]
    average = sum(sum(words.values()) for words in documents) / max(1, len(documents)) or 1.0
    scores = [0.0] * len(documents)
    for word in set(_words(asked)):
        holding = sum(word in words for words in documents)
        rarity = math.log(1 + (len(documents) - holding + 0.5) / (holding + 0.5))
        for place, words in enumerate(documents):
            if count := words[word]:
                length = sum(words.values()) / average
                weight = count + SATURATION * (1 - LENGTH_SHARE + LENGTH_SHARE * length)
                scores[place] += rarity * count * (SATURATION + 1) / weight
    return scores


def _words(text: str) -> list[str]:
    """Words in small letters; Chinese as pairs of characters."""
    found = WORD.findall(text.lower())
    return found + [one + other for one, other in pairwise(found) if one >= "一" and other >= "一"]


STRATEGIES = {"fusion": Fitting(read=list, fit=_fused, write=lambda kept, _: kept)}

"""What is most likely needed of a conversation in which people only talked.

An answer stands near its question: each turn takes part in the score of its neighbours.
"""

import math
from collections.abc import Sequence

from everlong.core.messages import Message, user_text
from everlong.relevance.index import Index
from everlong.relevance.query import query_of_text

__all__ = ["worth_of_talk"]

#: How much of a turn's score its neighbours take part in, by how far away it stands.
NEIGHBOURS = ((-1, 0.7), (-2, 0.4), (-3, 0.2), (1, 0.5), (2, 0.2))
LENGTH_SHARE = 0.05  # a longer turn holds more


def worth_of_talk(index: Index, messages: Sequence[Message]) -> list[float]:
    """How much each chunk is worth, by its number."""
    asked = next((user_text(message) for message in reversed(messages) if user_text(message)), "")
    scores = index.rank(query_of_text(asked))
    best = max(scores, default=0.0) or 1.0
    worth = []
    for number, chunk in enumerate(index.chunks):
        score = scores[number]
        for away, share in NEIGHBOURS:
            if 0 <= number + away < len(scores):
                score += share * scores[number + away]
        worth.append(score / best + LENGTH_SHARE * math.log1p(len(chunk.text)))
    return worth

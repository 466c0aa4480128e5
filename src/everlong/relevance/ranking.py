"""Which chunks of a conversation are most likely needed next.

Where tools were used, the score of a chunk is how well its words answer the query, a bonus if its file is
being worked on, less for age, weighted by whose words they are; what is long has to earn its room. Where
people only talk, an answer stands near its question: each turn takes part in the score of its neighbours.
"""

import math
from collections.abc import Sequence

from everlong.core.messages import Message, user_text
from everlong.relevance.chunks import ChunkKind
from everlong.relevance.index import Index
from everlong.relevance.query import file_names, query_of, query_of_text

__all__ = ["KIND_WEIGHT", "ranked"]

KIND_WEIGHT = {
    ChunkKind.USER: 1.2,
    ChunkKind.ASSISTANT: 1.0,
    ChunkKind.CALL: 0.5,
    ChunkKind.REPLACED: 0.3,  # replaced text is gone from the file
    ChunkKind.WRITTEN: 0.8,
    ChunkKind.RESULT: 1.0,
}
FILE_BONUS = 0.2  # for the file of the newest call; fades with each call further back
FILE_FADING = 0.85
AGE_SHARE = 0.3  # the most that age can take away
HALF_LIFE = 70_000  # characters, about 20k tokens
#: Talk: how much of a turn's score its neighbours take part in, by how far away it stands.
NEIGHBOURS = ((-1, 0.7), (-2, 0.4), (-3, 0.2), (1, 0.5), (2, 0.2))
LENGTH_SHARE = 0.05  # a longer turn holds more
CHARACTERS_PER_TOKEN = 3.5
LENGTH_FLOOR = 40  # tokens; below that a chunk is not cheaper for being short


def ranked(index: Index, messages: Sequence[Message]) -> list[int]:
    """The chunk numbers, most needed first. `messages` is the conversation whose beginning the index holds."""
    worth = _worth_of_talk(index, messages) if index.is_talk else _worth_of_work(index, messages)
    return sorted(range(len(worth)), key=lambda number: (-worth[number], -number))


def _worth_of_talk(index: Index, messages: Sequence[Message]) -> list[float]:
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


def _worth_of_work(index: Index, messages: Sequence[Message]) -> list[float]:
    scores = index.rank(query_of(messages))
    best = max(scores, default=0.0) or 1.0
    bonus = {name.rsplit("/", 1)[-1]: FILE_BONUS * FILE_FADING**back for back, name in _numbered(file_names(messages))}
    worth = [0.0] * len(scores)
    age = 0
    for number in range(len(scores) - 1, -1, -1):
        chunk = index.chunks[number]
        size = len(chunk.text)
        score = scores[number] / best
        if chunk.path:
            score += bonus.get(chunk.path.rsplit("/", 1)[-1], 0.0)
        score *= (1 - AGE_SHARE + AGE_SHARE * 0.5 ** (age / HALF_LIFE)) * KIND_WEIGHT[chunk.kind]
        worth[number] = score / (size / CHARACTERS_PER_TOKEN + LENGTH_FLOOR) ** 0.5
        age += size
    return worth


def _numbered(names: Sequence[str]) -> list[tuple[int, str]]:
    """Oldest first, so that the newest mention of a file wins."""
    return list(enumerate(names))[::-1]

"""What is most likely needed of a conversation in which tools were used.

The score of a chunk is how well its words answer the query, a bonus if its file is being worked on, less for
age, weighted by whose words they are; what is long has to earn its room.
"""

from collections.abc import Sequence

from everlong.core.messages import Message
from everlong.relevance.chunks import ChunkKind
from everlong.relevance.index import Index
from everlong.relevance.query import file_names, query_of

__all__ = ["worth_of_work"]

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
CHARACTERS_PER_TOKEN = 3.5
LENGTH_FLOOR = 40  # tokens; below that a chunk is not cheaper for being short


def worth_of_work(index: Index, messages: Sequence[Message]) -> list[float]:
    """How much each chunk is worth, by its number."""
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

"""The worth of chunks, and of the names in them, of a conversation in which tools were used.

A chunk is worth more the better its words and those beside it match the query, if its file is in use, the more names
it has that nothing newer has, and the newer it is; less if its lines were read again. Worth is counted per token.
"""

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence, Set
from functools import lru_cache
from heapq import nlargest
from itertools import pairwise

from everlong.core import Message
from everlong.relevance.chunks import Chunk, ChunkKind
from everlong.relevance.index import Index
from everlong.relevance.query import calls_since, newest_results, query_of
from everlong.relevance.terms import terms_of, words_of

__all__ = ["names_by_need", "worth_of_work"]

# Searched for on agents' transcripts: what a call used next, and the lines that an edit replaced.
KIND_WEIGHT = {
    ChunkKind.USER: 1.0,
    ChunkKind.ASSISTANT: 0.5,
    ChunkKind.CALL: 1.0,
    ChunkKind.REPLACED: 0.25,  # replaced text is gone from the file
    ChunkKind.WRITTEN: 1.65,
    ChunkKind.RESULT: 1.0,
}
UNMATCHED = 0.085  # the match of a chunk without any; the best match has 1
MATCH_POWER = 1.25
NEIGHBOUR_SHARE = 0.3  # of a chunk's match, for the lines before and after it: edits want them together
FILE_BONUS = 0.19  # for the file of the newest call; fades with each call further back
FILE_FADING = 0.4
SHOWN_WEIGHT = 1.35  # the file stands in the newest results
READ_AGAIN_WEIGHT = 0.35  # all its lines were
MOST_NAMED = 1_500  # chunks, about 200k tokens: finding names costs more than anything else here
NAMES_POWER = 0.45
NAMES_FLOOR = 2
AGE_POWER = 0.2
AGE_FLOOR = 1  # messages
CHARACTERS_PER_TOKEN = 3.5
FRAME_TOKENS = 70  # what a chunk costs for being one, and a little: the shortest are seldom the best


def worth_of_work(index: Index, messages: Sequence[Message], known: Set[str]) -> list[float]:
    """The worth of each chunk per token, by its number. `known` are the names that are sent anyway."""
    scores = _with_neighbours(index.chunks, index.rank(query_of(messages)))
    best = max(scores, default=0.0) or 1.0
    files = _Files(messages)
    seen = set(known)
    named = _worth_naming(scores)
    worth = [0.0] * len(scores)
    for number in range(len(scores) - 1, -1, -1):
        chunk = index.chunks[number]
        bonus, weight = files.of(chunk) if chunk.path else (0.0, 1.0)
        fresh = [name for name in index.names(number) if name not in seen] if number in named else ()
        seen.update(fresh)
        worth[number] = (
            (scores[number] / best + bonus + UNMATCHED) ** MATCH_POWER
            * weight
            * KIND_WEIGHT[chunk.kind]
            * (len(fresh) + NAMES_FLOOR) ** NAMES_POWER
            / (len(messages) - chunk.at + AGE_FLOOR) ** AGE_POWER
            / (len(chunk.text) / CHARACTERS_PER_TOKEN + FRAME_TOKENS)
        )
    return worth


def _worth_naming(scores: Sequence[float]) -> Container[int]:
    """The chunks whose names are looked at: all, or in a very long conversation those that match best."""
    if len(scores) <= MOST_NAMED:
        return range(len(scores))
    return frozenset(nlargest(MOST_NAMED, range(len(scores)), key=scores.__getitem__))


def _with_neighbours(chunks: Sequence[Chunk], scores: Sequence[float]) -> list[float]:
    shared = list(scores)
    for number, (chunk, other) in enumerate(pairwise(chunks)):
        if chunk.at == other.at and chunk.kind is other.kind and chunk.path == other.path:
            shared[number] += NEIGHBOUR_SHARE * scores[number + 1]
            shared[number + 1] += NEIGHBOUR_SHARE * scores[number]
    return shared


class _Files:
    """What the files of chunks say about them. Asked from the newest chunk to the oldest."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self._bonus = {name: FILE_BONUS * FILE_FADING**ago for name, ago in calls_since(messages).items()}
        self._results = newest_results(messages)
        self._shown: dict[str, bool] = {}
        self._read: defaultdict[str, set[int]] = defaultdict(set)

    def of(self, chunk: Chunk) -> tuple[float, float]:
        """What is added to the match, and what the worth is multiplied with."""
        name = chunk.path.rsplit("/", 1)[-1]
        if name not in self._shown:
            self._shown[name] = bool(name) and name in self._results
        weight = SHOWN_WEIGHT if self._shown[name] else 1.0
        if chunk.kind is ChunkKind.RESULT:
            read = self._read[chunk.path]
            lines = range(chunk.first_line, chunk.first_line + chunk.text.count("\n") + 1)
            again = sum(map(read.__contains__, lines)) if read else 0
            weight *= READ_AGAIN_WEIGHT ** (again / len(lines))
            read.update(lines)
        return self._bonus.get(name, 0.0), weight


ASKED_WEIGHT = 8.0  # a name all of whose parts are in the query, against one with none
FILE_WEIGHT = 2.0
TELLING_LENGTH = 14  # characters; shorter names are more often of one function only, or can be guessed
LENGTH_POWER = 0.7
RANK_POWER = 0.5
RANK_FLOOR = 10  # the first so many chunks count about alike


def names_by_need(index: Index, numbers: Iterable[int], query: Mapping[str, float]) -> list[tuple[str, int]]:
    """Each name in these chunks with the first chunk that has it, most needed first. `numbers` is a ranking."""
    first_chunks: dict[str, int] = {}
    worth: dict[str, float] = {}
    for rank, number in enumerate(numbers):
        share = (rank + RANK_FLOOR) ** -RANK_POWER
        for name in index.names(number):
            if name not in first_chunks:
                first_chunks[name] = number
                worth[name] = share * _weight(name, query)
    return sorted(first_chunks.items(), key=lambda item: -worth[item[0]])


def _weight(name: str, query: Mapping[str, float]) -> float:
    terms, own_weight = _parts(name)
    matching = sum(map(query.__contains__, terms))
    return own_weight * float(ASKED_WEIGHT ** (matching / len(terms))) if matching else own_weight


@lru_cache(maxsize=100_000)
def _parts(name: str) -> tuple[tuple[str, ...], float]:
    """The terms of a name, of a path those of the file; and its weight whatever is asked."""
    last = name.rsplit("/", 1)[-1]
    weight = FILE_WEIGHT if "." in last else min(1.0, len(last) / TELLING_LENGTH) ** LENGTH_POWER
    return tuple({term: 0 for word in words_of(last) for term, _ in terms_of(word)}), weight

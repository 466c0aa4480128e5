"""The worth of the chunks and names of a conversation with tools.

A chunk is worth more the better it and its neighbours match the query, if its file is in use, the more names it has
that no newer chunk has, and the newer it is. It is worth less if its lines were read again later. Worth is measured per
token.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Mapping, Sequence, Set
from functools import lru_cache
from heapq import nlargest
from itertools import pairwise

from everlong.core import Message, said_by_users
from everlong.relevance.agenda import running_task
from everlong.relevance.calls import base_name
from everlong.relevance.chunks import Chunk, ChunkKind
from everlong.relevance.index import Index
from everlong.relevance.query import calls_since, literals_asked, newest_results, query_of
from everlong.relevance.terms import terms_of, words_of

__all__ = ["asked_for", "names_by_need", "worth_of_work"]

# These figures were tuned on agents' transcripts: they should find what a later call used or an edit replaced.
KIND_WEIGHT = {
    ChunkKind.USER: 1.0,
    ChunkKind.ASSISTANT: 0.5,
    ChunkKind.CALL: 1.0,
    ChunkKind.REPLACED: 0.25,  # replaced text is gone from the file
    ChunkKind.WRITTEN: 1.65,
    ChunkKind.RESULT: 1.0,
}
CHANGES = frozenset({ChunkKind.REPLACED, ChunkKind.WRITTEN})
UNMATCHED = 0.085  # added to every match; the best match has 1
MATCH_POWER = 1.25
NEIGHBOUR_SHARE = 0.3  # of a chunk's match, for the chunks before and after it: edits need them together
FILE_BONUS = 0.19  # for the file of the newest call; fades with each call further back
FILE_FADING = 0.4
SHOWN_WEIGHT = 1.35  # the newest results name the file
TASK_WEIGHT = 2.0  # the agent's running task names the file
ASKED_FILE_WEIGHT = 1.5  # the user named the file, and no call has changed it yet
READ_AGAIN_WEIGHT = 0.35  # if all its lines were read again later
MOST_NAMED = 1_500  # chunks, about 200k tokens: finding names costs more than anything else here
NAMES_POWER = 0.45
NAMES_FLOOR = 2
AGE_POWER = 0.2
AGE_FLOOR = 1  # messages
CHARACTERS_PER_TOKEN = 3.5
FRAME_TOKENS = 70  # overhead of each chunk, rounded up, because the shortest chunks are rarely the best


def worth_of_work(
    index: Index, messages: Sequence[Message], known: Set[str], query: Mapping[str, float] | None = None
) -> list[float]:
    """Return the worth per token of each chunk, by its number. `known` are the names that are sent anyway."""
    scores = _with_neighbours(index.chunks, index.rank(query_of(messages) if query is None else query))
    best = max(scores, default=0.0) or 1.0
    files = _Files(messages, {base_name(chunk.path) for chunk in index.chunks if chunk.kind in CHANGES})
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


RAREST = 6  # chunks; a literal that occurs in more is not specific enough


def asked_for(index: Index, messages: Sequence[Message]) -> list[int]:
    """Return the chunks with rare literals of an open question, those with the most of them first."""
    held: Counter[int] = Counter()
    for literal in literals_asked(messages):
        numbers = index.holding(literal)
        if len(numbers) <= RAREST:
            held.update(numbers)
    return sorted(held, key=lambda number: (-held[number], -number))


def _worth_naming(scores: Sequence[float]) -> Container[int]:
    """Return the chunks whose names count: all, or the best matches in a very long conversation."""
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
    """Rates chunks by their files. It must be called from the newest chunk to the oldest."""

    def __init__(self, messages: Sequence[Message], changed: Set[str]) -> None:
        self._bonus = {name: FILE_BONUS * FILE_FADING**ago for name, ago in calls_since(messages).items()}
        self._results = newest_results(messages)
        self._task = running_task(messages)
        self._asked = next(said_by_users(messages), "")
        self._changed = changed
        self._weights: dict[str, float] = {}
        self._read: defaultdict[str, set[int]] = defaultdict(set)

    def of(self, chunk: Chunk) -> tuple[float, float]:
        """Return the bonus for the match, and the factor for the worth."""
        name = base_name(chunk.path)
        weight = self._weights.get(name)
        if weight is None:
            weight = self._weights[name] = self._weight(name) if name else 1.0
        if chunk.kind is ChunkKind.RESULT:
            read = self._read[chunk.path]
            lines = range(chunk.first_line, chunk.first_line + chunk.text.count("\n") + 1)
            again = sum(map(read.__contains__, lines)) if read else 0
            weight *= READ_AGAIN_WEIGHT ** (again / len(lines))
            read.update(lines)
        return self._bonus.get(name, 0.0), weight

    def _weight(self, name: str) -> float:
        weight = SHOWN_WEIGHT if name in self._results else 1.0
        if name in self._task:
            weight *= TASK_WEIGHT
        if name in self._asked and name not in self._changed:
            weight *= ASKED_FILE_WEIGHT
        return weight


ASKED_WEIGHT = 8.0  # of a name with all its terms in the query, compared to one with none
FILE_WEIGHT = 2.0
TELLING_LENGTH = 14  # characters; shorter names are often local or can be guessed
LENGTH_POWER = 0.7
WEIGHT_OF_LENGTH = [(length / TELLING_LENGTH) ** LENGTH_POWER for length in range(TELLING_LENGTH + 1)]
RANK_POWER = 0.5
RANK_FLOOR = 10  # the first chunks, about this many, count nearly the same


def names_by_need(index: Index, numbers: Iterable[int], query: Mapping[str, float]) -> list[tuple[str, int]]:
    """Return each name in these chunks with its first chunk, most needed names first. `numbers` is a ranking."""
    first_chunks: dict[str, int] = {}
    worth: dict[str, float] = {}
    may_match = index.may_match(query)
    for rank, number in enumerate(numbers):
        share = (rank + RANK_FLOOR) ** -RANK_POWER
        for name in index.names(number):
            if name not in first_chunks:
                first_chunks[name] = number
                worth[name] = share * _weight(name, query, may_match)
    return sorted(first_chunks.items(), key=lambda item: -worth[item[0]])


def _weight(name: str, query: Mapping[str, float], may_match: Callable[[str], bool]) -> float:
    """Return the weight of a name: longer names, files and names with terms in the query count more.

    Of a path, only the file counts. Most names match nothing: `may_match` finds these without computing their terms.
    """
    last = name.rsplit("/", 1)[-1]
    own_weight = FILE_WEIGHT if "." in last else WEIGHT_OF_LENGTH[min(len(last), TELLING_LENGTH)]
    if not any(map(may_match, words_of(last))):
        return own_weight
    terms = _terms(last)
    matching = sum(map(query.__contains__, terms))
    return own_weight * float(ASKED_WEIGHT ** (matching / len(terms))) if matching else own_weight


@lru_cache(maxsize=8_192)
def _terms(name: str) -> tuple[str, ...]:
    return tuple({term: 0 for word in words_of(name) for term, _ in terms_of(word)})

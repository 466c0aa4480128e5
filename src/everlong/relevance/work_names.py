"""Which names of what cannot be quoted are most likely needed: those whose parts are asked for, and files, first."""

from collections.abc import Iterable, Mapping
from functools import lru_cache

from everlong.relevance.index import Index
from everlong.relevance.terms import terms_of, words_of

__all__ = ["names_by_need"]

ASKED_WEIGHT = 8.0  # a name all of whose parts are in the query, against one with none
FILE_WEIGHT = 2.0
TELLING_LENGTH = 14  # characters; shorter names are more often of one function only, or can be guessed
LENGTH_POWER = 0.7
RANK_POWER = 0.5
RANK_FLOOR = 10  # the first so many chunks count about alike


def names_by_need(index: Index, numbers: Iterable[int], query: Mapping[str, float]) -> list[tuple[str, int]]:
    """Each name in these chunks once with the first chunk it stands in, most needed first. `numbers` is a ranking."""
    found: dict[str, int] = {}
    worth: dict[str, float] = {}
    for rank, number in enumerate(numbers):
        share = (rank + RANK_FLOOR) ** -RANK_POWER
        for name in index.names(number):
            if name not in found:
                found[name] = number
                worth[name] = share * _weight(name, query)
    return sorted(found.items(), key=lambda item: -worth[item[0]])


def _weight(name: str, query: Mapping[str, float]) -> float:
    terms, own_weight = _parts(name)
    asked = sum(map(query.__contains__, terms))
    return own_weight * float(ASKED_WEIGHT ** (asked / len(terms))) if asked else own_weight


@lru_cache(maxsize=100_000)
def _parts(name: str) -> tuple[tuple[str, ...], float]:
    """The terms of a name, of a path those of the file; and its weight whatever is asked."""
    last = name.rsplit("/", 1)[-1]
    weight = FILE_WEIGHT if "." in last else min(1.0, len(last) / TELLING_LENGTH) ** LENGTH_POWER
    return tuple({term: 0 for word in words_of(last) for term, _ in terms_of(word)}), weight

"""A question made fuller by what it finds first: the words of the best texts are asked for as well."""

from collections.abc import Mapping, Sequence

from everlong.relevance.index import Index
from everlong.relevance.terms import terms_of, words_of

__all__ = ["with_feedback"]

BEST = 10  # texts whose words are taken
FOUND_SHARE = 0.4  # of the whole weight, for what was found


def with_feedback(query: Mapping[str, float], index: Index, scores: Sequence[float]) -> dict[str, float]:
    """The query with the words of the texts that score best (a relevance model); its weights sum to 1."""
    best = [number for number in sorted(range(len(scores)), key=lambda n: -scores[n])[:BEST] if scores[number] > 0]
    if not best:
        return dict(query)
    asked, whole = sum(query.values()), sum(scores[number] for number in best)
    fuller = {term: (1 - FOUND_SHARE) * weight / asked for term, weight in query.items()}
    for number in best:
        terms = [pair for word in words_of(index.chunks[number].text) for pair in terms_of(word)]
        share = FOUND_SHARE * scores[number] / whole / sum(weight for _, weight in terms)
        for term, weight in terms:
            fuller[term] = fuller.get(term, 0.0) + share * weight
    return fuller

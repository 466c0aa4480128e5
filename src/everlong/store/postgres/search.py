"""Search: BM25 over the keys of one owner or one thread, by the index alone.

Rare terms find the candidates; a term that very many messages contain only helps to rank the best of them. So the work
of a query is bounded, however many messages there are. Every query is planned for its own terms (`prepare=False`): a
generic plan would read the whole table.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import Any, LiteralString

from everlong.core import Hit, Row
from everlong.errors import NoThread
from everlong.store.bodies import text_of_bytes
from everlong.store.postgres.connections import Link
from everlong.store.postgres.rows import LEVELS, ROW_COLUMNS, key_of, rows_of
from everlong.store.postgres.schema import name_key
from everlong.store.terms import LENGTH_SHARE, SATURATION, rarity

__all__ = ["Scope", "scope_of_owner", "scope_of_thread", "search"]

COUNTED = 1_000  # messages with a term that are counted; beyond that, the number is estimated
LOOKED_AT = 5_000  # occurrences of terms that one query reads to find its candidates, rarest terms first
SHORT_LIST = 300  # candidates in which the other terms are looked up

Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Scope:
    """Where to search: whose messages (their number and words), and in which thread (None: all)."""

    owners: tuple[str, ...]
    messages: int
    words: int
    thread: int | None = None


@dataclass(frozen=True, slots=True)
class _QueryTerm:
    """A term of the query: its weight, its keys by level (for each owner), and how many messages contain it."""

    weight: float
    keys: tuple[tuple[int, ...], ...]
    messages: int = 0

    @property
    def all_keys(self) -> Iterator[int]:
        """The keys of every level and owner."""
        return chain.from_iterable(self.keys)


def scope_of_owner(link: Link, owner: str | None) -> Scope:
    """All threads of an owner, or of everybody."""
    rows = link.execute(
        "SELECT owner, sum(messages)::bigint, sum(words)::bigint FROM everlong.threads"
        " WHERE %s::bytea IS NULL OR sha256(owner) = %s GROUP BY owner",
        (None, None) if owner is None else (name_key(owner),) * 2,
    ).fetchall()
    owners, messages, words = zip(*rows, strict=True) if rows else ((), (), ())
    return Scope(tuple(map(text_of_bytes, owners)), sum(messages), sum(words))


def scope_of_thread(link: Link, thread: int) -> Scope:
    """One thread. Raises NoThread."""
    query = "SELECT owner, messages, words FROM everlong.threads WHERE number = %s"
    row = link.execute(query, (thread,)).fetchone()
    if row is None:
        raise NoThread("the thread was removed while it was searched")
    owner, messages, words = row
    return Scope((text_of_bytes(owner),), messages, words, thread)


def search(
    link: Link, scope: Scope, terms: Mapping[str, float], *, limit: int, around: int, most: int = LOOKED_AT
) -> list[Hit]:
    """Return the messages that contain the terms, best first, with their neighbours."""
    if not terms or limit <= 0 or not scope.messages:
        return []
    query_terms = _counted(link, scope, [_query_term(scope, term, weight) for term, weight in terms.items()])
    together = list(accumulate(term.messages for term in query_terms))
    rare = [term for term, places in zip(query_terms, together, strict=True) if places <= most]
    common = query_terms[len(rare) :]
    scores = _scored(link, scope, rare, limit=max(limit, SHORT_LIST))
    if common and len(scores) < limit:
        scores |= {place: 0.0 for place in _holding(link, scope, common) if place not in scores}
    for place, more in _scored_among(link, scope, common, list(scores)).items():
        scores[place] += more
    best = sorted(scores, key=lambda place: (-scores[place], place))[:limit]
    return _hits(link, [(place, scores[place]) for place in best], around)


def _query_term(scope: Scope, term: str, weight: float) -> _QueryTerm:
    keys = tuple(tuple(key_of(owner, term, level) for owner in scope.owners) for level in range(len(LEVELS)))
    return _QueryTerm(weight, keys)


def _counted(link: Link, scope: Scope, query_terms: Sequence[_QueryTerm]) -> list[_QueryTerm]:
    """Return the terms that any message contains, rarest first, with the number of their messages.

    A term is counted up to COUNTED, in the order of the table. The share of the table that this took gives an estimate
    of the total.
    """
    numbers = [number for number, term in enumerate(query_terms) for _ in term.keys[0]]
    rows = link.execute(
        "SELECT number, messages, ((last::text::point)[0] + 1) * current_setting('block_size')::integer"
        " / pg_relation_size('everlong.terms') FROM unnest(%s::integer[], %s::bigint[]) AS asked (number, key),"
        " LATERAL (SELECT count(*) AS messages, max(ctid) AS last FROM (SELECT ctid FROM everlong.terms"
        " WHERE keys @> ARRAY[key] AND (%s::bigint IS NULL OR thread = %s) LIMIT %s) AS few) AS counted"
        " WHERE messages > 0",
        (numbers, [key for term in query_terms for key in term.keys[0]], scope.thread, scope.thread, COUNTED),
        prepare=False,
    )
    messages: defaultdict[int, int] = defaultdict(int)
    for number, counted, share in rows:
        messages[number] += counted if counted < COUNTED else round(counted / min(1.0, share))
    return [
        _QueryTerm(query_terms[number].weight, query_terms[number].keys, min(many, scope.messages))
        for number, many in sorted(messages.items(), key=lambda item: (item[1], item[0]))
    ]


#: From levels to the amount of each term, then BM25, summed over the terms.
_SCORE: LiteralString = (
    "SELECT thread, place, sum(rarity * held * %(top)s / (held + %(floor)s + %(slope)s * words)) AS score FROM ("
    "SELECT thread, place, words, rarity, (%(held)s::float8[])[count(*)] AS held FROM found"
    " GROUP BY thread, place, words, number, rarity) AS terms GROUP BY thread, place"
    " ORDER BY score DESC, thread, place LIMIT %(limit)s"
)
_FOUND: LiteralString = (
    "WITH asked AS (SELECT * FROM unnest(%(numbers)s::integer[], %(keys)s::bigint[], %(rarities)s::float8[])"
    " AS asked (number, key, rarity)), found AS (SELECT number, rarity, thread, place, words FROM asked, LATERAL"
    " (SELECT thread, place, words FROM everlong.terms WHERE keys @> ARRAY[key]"
    " AND (%(thread)s::bigint IS NULL OR thread = %(thread)s)) AS holding) "
)
_FOUND_AMONG: LiteralString = (
    "WITH asked AS (SELECT * FROM unnest(%(numbers)s::integer[], %(keys)s::bigint[], %(rarities)s::float8[])"
    " AS asked (number, key, rarity)), found AS (SELECT number, rarity, thread, place, words FROM"
    " unnest(%(threads)s::bigint[], %(places)s::integer[]) AS short (thread, place)"
    " JOIN everlong.terms USING (thread, place) JOIN asked ON key = ANY(keys)) "
)


def _scored(link: Link, scope: Scope, query_terms: Sequence[_QueryTerm], *, limit: int) -> dict[Place, float]:
    """The best messages that contain one of the terms, with their scores."""
    if not query_terms:
        return {}
    rows = link.execute(
        _FOUND + _SCORE, {**_values(scope, query_terms), "thread": scope.thread, "limit": limit}, prepare=False
    )
    return {(thread, place): score for thread, place, score in rows}


def _scored_among(
    link: Link, scope: Scope, query_terms: Sequence[_QueryTerm], few: Sequence[Place]
) -> dict[Place, float]:
    """Those of a few messages that contain one of the terms, with their scores."""
    if not query_terms or not few:
        return {}
    places = {"threads": [thread for thread, _ in few], "places": [place for _, place in few], "limit": len(few)}
    rows = link.execute(_FOUND_AMONG + _SCORE, {**_values(scope, query_terms), **places}, prepare=False)
    return {(thread, place): score for thread, place, score in rows}


def _values(scope: Scope, query_terms: Sequence[_QueryTerm]) -> dict[str, Any]:
    average = max(1.0, scope.words / scope.messages)
    rare = [term.weight * rarity(scope.messages, term.messages) for term in query_terms]
    keys = [(number, key, rare[number]) for number, term in enumerate(query_terms) for key in term.all_keys]
    return {
        "numbers": [number for number, _, _ in keys],
        "keys": [key for _, key, _ in keys],
        "rarities": [weight for _, _, weight in keys],
        "top": SATURATION + 1,
        "floor": SATURATION * (1 - LENGTH_SHARE),
        "slope": SATURATION * LENGTH_SHARE / average,
        "held": [held for _, held in LEVELS],
    }


def _holding(link: Link, scope: Scope, common: Sequence[_QueryTerm]) -> list[Place]:
    """Messages that contain all of these common terms, and some that contain the rarest of them."""
    places: dict[Place, None] = {}
    for needed in (common, common[:1]):
        for owner in range(len(scope.owners)):
            rows = link.execute(
                "SELECT thread, place FROM everlong.terms WHERE keys @> %s::bigint[]"
                " AND (%s::bigint IS NULL OR thread = %s) LIMIT %s",
                ([term.keys[0][owner] for term in needed], scope.thread, scope.thread, SHORT_LIST),
                prepare=False,
            )
            places |= dict.fromkeys(rows.fetchall())
    return list(places)


def _hits(link: Link, best: Sequence[tuple[Place, float]], around: int) -> list[Hit]:
    rows = link.execute(
        f"SELECT hit.number, {ROW_COLUMNS} FROM unnest(%s::bigint[], %s::integer[]) WITH ORDINALITY"
        " AS hit (within, at, number) JOIN everlong.rows ON rows.thread = hit.within"
        " AND rows.place BETWEEN hit.at - %s::bigint AND hit.at + %s::bigint ORDER BY hit.number, place",
        ([place[0] for place, _ in best], [place[1] for place, _ in best], around, around),
    ).fetchall()
    names = dict(
        link.execute(
            "SELECT number, id FROM everlong.threads WHERE number = ANY(%s)", ([place[0] for place, _ in best],)
        ).fetchall()
    )
    near: defaultdict[int, list[Row]] = defaultdict(list)
    for columns, row in zip(rows, rows_of(link, [columns[1:] for columns in rows]), strict=True):
        near[columns[0]].append(row)
    return [
        Hit(
            text_of_bytes(names[thread]),
            next(row for row in near[number] if row.order == place),
            score,
            tuple(near[number]),
        )
        for number, ((thread, place), score) in enumerate(best, start=1)
        if thread in names and near[number]  # otherwise it was removed meanwhile
    ]

"""Search in sessions, by reference and by words.

A search first indexes the terms and references of rows that are not indexed yet. Ranking is BM25 over the terms of
`relevance`.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from everlong.core import Hit, Message, Row, bytes_of
from everlong.errors import NoThread
from everlong.store.bodies import original_of, refs_of, text_of_bytes
from everlong.store.jsonl.folder import SessionFolder
from everlong.store.jsonl.index import Session
from everlong.store.terms import found_by, query_terms, rarity, worth

__all__ = ["Scope", "original", "search"]

AT_ONCE = 256  # rows that are in memory while their words are indexed
TOO_COMMON = 5_000  # messages with a term; a more common term only counts if rarer ones find too little


@dataclass(frozen=True, slots=True)
class Scope:
    """Where to search: one thread, or all threads of an owner; None for any."""

    thread: str | None
    owner: str | None


@dataclass(frozen=True, slots=True)
class Within:
    """The sessions that are searched, by their numbers; how many messages they have, and how many words."""

    names: Mapping[int, str]
    messages: int
    weight: float


def original(folder: SessionFolder, thread: str, ref: str) -> bytes | None:
    """Return the bytes that a reference names in a session, or None."""
    session = folder.session(thread)
    if session.words < session.length:
        _index_words(folder, thread)
    orders = folder.index.ask("SELECT ord FROM refs WHERE session = ? AND ref = ?", (session.session, ref))
    for (order,) in orders:
        for row in folder.reading(thread, "AND ord = ?", (order,)):
            content = original_of(row.entry, ref)
            if content is not None:
                return content
    return None


def search(folder: SessionFolder, query: str, scope: Scope, limit: int, around: int) -> list[Hit]:
    """Find messages that answer a query, best first."""
    terms = query_terms(query)
    within = _within(folder, scope)
    if not terms or limit <= 0:
        return []
    hits = []
    for (number, order), score in _best(folder, within, terms, limit):
        key = within.names[number]
        near = _near(folder, key, order - around, order + around)
        row = next((row for row in near if row.order == order), None)
        if row is not None:
            hits.append(Hit(key, row, score, tuple(near)))
    return hits


def _near(folder: SessionFolder, key: str, first: int, last: int) -> list[Row]:
    """Read the rows from `first` to `last`; none if the thread was removed meanwhile."""
    try:
        return folder.reading(key, "AND ord BETWEEN ? AND ? ORDER BY ord", (first, last))
    except NoThread:
        return []


def _within(folder: SessionFolder, scope: Scope) -> Within:
    """The sessions to search, with all their words indexed."""
    if scope.thread is None:
        folder.refresh()
    else:
        folder.session(scope.thread)
    key = None if scope.thread is None else bytes_of(scope.thread)
    query = (
        "SELECT session, key, words < length, messages, weight FROM sessions "
        "WHERE (? IS NULL OR key = ?) AND (? IS NULL OR owner = ?)"
    )
    rows = folder.index.ask(query, (key, key, scope.owner, scope.owner))
    behind = [text_of_bytes(name) for _, name, lacking, _, _ in rows if lacking and isinstance(name, bytes)]
    for name in behind:
        with suppress(NoThread):  # removed meanwhile
            _index_words(folder, name)
    if behind:
        rows = folder.index.ask(query, (key, key, scope.owner, scope.owner))
    names = {int(str(number)): text_of_bytes(name) for number, name, *_ in rows if isinstance(name, bytes)}
    return Within(names, sum(int(str(row[3])) for row in rows), sum(float(str(row[4])) for row in rows))


def _best(
    folder: SessionFolder, within: Within, terms: dict[str, float], limit: int
) -> list[tuple[tuple[int, int], float]]:
    """Places and scores. Rare terms come first; a very common one is skipped once there are enough results."""
    total = max(1, within.messages)
    average = max(1.0, within.weight / total)
    holding = {term: _count(folder, term, within) for term in terms}
    scores: dict[tuple[int, int], float] = {}
    for term in sorted(terms, key=lambda term: holding[term]):
        if holding[term] > TOO_COMMON and len(scores) >= limit:
            break
        rare = terms[term] * rarity(total, min(holding[term], total))
        for session, order, held, length in _postings(folder, term, within):
            scores[session, order] = scores.get((session, order), 0.0) + rare * worth(held, length, average)
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:limit]


def _count(folder: SessionFolder, term: str, within: Within) -> int:
    """How many messages contain a term; the count stops when the term is very common."""
    query, values = _postings_of(term, within)
    most = 4 * TOO_COMMON
    return int(str(folder.index.ask(f"SELECT count(*) FROM (SELECT 1 {query} LIMIT {most})", values)[0][0]))


def _postings(folder: SessionFolder, term: str, within: Within) -> Iterable[tuple[int, int, float, float]]:
    query, values = _postings_of(term, within)
    rows = folder.index.ask(f"SELECT session, ord, weight, length {query}", values)
    return (row for row in rows if row[0] in within.names)  # type: ignore[misc]


def _postings_of(term: str, within: Within) -> tuple[str, tuple[object, ...]]:
    if len(within.names) == 1:
        return "FROM postings WHERE term = ? AND session = ?", (term, *within.names)
    return "FROM postings WHERE term = ?", (term,)


def _index_words(folder: SessionFolder, thread: str) -> None:
    """Index the words and references of rows that are not indexed yet."""
    with folder.writing(thread) as session:
        while session.words < session.length and _index_batch(folder, session):
            continue


def _index_batch(folder: SessionFolder, session: Session) -> int:
    """Index the next rows and return how many. nanobot's own summary is indexed once it is a row of the file."""
    clause = "AND ord >= ? AND place >= 0 ORDER BY ord LIMIT ?"
    rows = folder.rows(session, folder.index.rows(session.session, clause, (session.words, AT_ONCE))) or []
    refs: list[tuple[int, str, int]] = []
    postings: list[tuple[str, int, int, float, float]] = []
    for row in rows:
        refs += [(session.session, ref, row.order) for ref in refs_of(row.entry)]
        if isinstance(row.entry, Message):
            terms = found_by(row.entry)
            length = sum(terms.values())
            session.weight += length
            postings += [(term, session.session, row.order, weight, length) for term, weight in terms.items()]
    folder.index.learn(refs, postings)
    session.words += len(rows)
    return len(rows)

"""Search: an FTS5 index of our own terms, ranked by BM25.

Each term in the index is prefixed with its owner's number, so a search reads the words of one owner only. A term that
very many messages contain says little and is expensive. If rarer terms find enough messages, it only counts for their
ranking; otherwise it finds the newest messages that contain it.
"""

import heapq
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import TypeAlias

__all__ = ["Place", "add", "best", "take_out"]

MOST_REPEATS = 5  # of one term in one message; more would hardly change the BM25 score
RARE = 1_000  # most messages with a term that finds all of them
NEWEST = 1_000  # newest messages that are ranked if rare terms do not find enough
ANY_BODY = 2**62

MATCHING = "words MATCH :match AND rowid BETWEEN :first AND :last"

#: The thread to search (None: all), and the first and last body to look at.
Within: TypeAlias = dict[str, int | None]


@dataclass(frozen=True, slots=True)
class Place:
    """A message that a search found: its thread, its position and its score."""

    thread: int
    position: int
    score: float


def add(db: sqlite3.Connection, owner: int, body: int, terms: Mapping[str, float]) -> None:
    """Add a message to the index."""
    db.execute("INSERT INTO words (rowid, terms) VALUES (?, ?)", (body, _document(owner, terms)))


def take_out(db: sqlite3.Connection, owner: int, body: int, terms: Mapping[str, float]) -> None:
    """Remove a message from the index. The index keeps no texts, so the terms must be those that `add` was given."""
    query = "INSERT INTO words (words, rowid, terms) VALUES ('delete', ?, ?)"
    db.execute(query, (body, _document(owner, terms)))


def _document(owner: int, terms: Mapping[str, float]) -> str:
    return "".join([f"{owner}_{term} " * min(MOST_REPEATS, ceil(weight)) for term, weight in terms.items()])


def best(db: sqlite3.Connection, owner: int, thread: int | None, terms: Iterable[str], limit: int) -> list[Place]:
    """Return the best matches among the messages of an owner, or of one of the owner's threads."""
    phrases = [f'"{owner}_{term}"' for term in terms]
    within = _within(db, thread)
    spread = {term: _messages_with(db, term, within) for term in phrases}
    rare = [term for term in phrases if 0 < spread[term] <= RARE]
    common = [term for term in phrases if spread[term] > RARE]
    ranks = _ranked(db, _any(rare), within, limit) if rare else {}
    if rare and common:
        ranks |= _ranked(db, f"({_any(rare)}) AND ({_any(common)})", within, limit)
    if common and len(ranks) < limit:
        ranks = _newest_ranked(db, common, within, limit) | ranks
    places = (Place(*place, -rank) for place, rank in ranks.items())
    return heapq.nsmallest(limit, places, key=lambda place: (-place.score, -place.thread, -place.position))


def _any(terms: Sequence[str]) -> str:
    return " OR ".join(terms)


def _within(db: sqlite3.Connection, thread: int | None) -> Within:
    """Where to search. Bodies are numbered in order, so those of a thread lie between its first and its last."""
    if thread is None:
        return {"thread": None, "first": 0, "last": ANY_BODY}
    query = "SELECT body FROM log WHERE thread = ? AND body > 0 ORDER BY position {} LIMIT 1"
    ends = [db.execute(query.format(way), (thread,)).fetchone() for way in ("ASC", "DESC")]
    first, last = (0 if end is None else end[0] for end in ends)
    return {"thread": thread, "first": first, "last": last}


def _messages_with(db: sqlite3.Connection, term: str, within: Within) -> int:
    """How many messages contain a term; the count stops above RARE."""
    counted = f"SELECT count(*) FROM (SELECT 1 FROM words WHERE {MATCHING} LIMIT :most)"
    (count,) = db.execute(counted, {**within, "match": term, "most": RARE + 1}).fetchone()
    return int(count)


def _ranked(db: sqlite3.Connection, match: str, within: Within, limit: int) -> dict[tuple[int, int], float]:
    rows = db.execute(
        f"""SELECT log.thread, log.position, ranked.score
        FROM (SELECT rowid AS body, bm25(words) AS score FROM words WHERE {MATCHING}) AS ranked
        CROSS JOIN log ON log.body = ranked.body AND log.removed IS NULL
        WHERE :thread IS NULL OR log.thread = :thread
        ORDER BY ranked.score LIMIT :limit""",
        {**within, "match": match, "limit": limit},
    )
    return {(of, position): rank for of, position, rank in rows}


def _newest_ranked(
    db: sqlite3.Connection, terms: Sequence[str], within: Within, limit: int
) -> dict[tuple[int, int], float]:
    """The newest messages with all of the terms; with any of them if those are too few."""
    ranks: dict[tuple[int, int], float] = {}
    for match in (" AND ".join(terms), _any(terms)):
        rows = db.execute(
            f"""SELECT log.thread, log.position, newest.score
            FROM (SELECT rowid AS body, bm25(words) AS score FROM words WHERE {MATCHING}
                ORDER BY rowid DESC) AS newest
            CROSS JOIN log ON log.body = newest.body AND log.removed IS NULL
            WHERE :thread IS NULL OR log.thread = :thread
            LIMIT :newest""",
            {**within, "match": match, "newest": NEWEST},
        )
        ranks |= {(of, position): rank for of, position, rank in rows}
        if len(ranks) >= limit:
            break
    return ranks

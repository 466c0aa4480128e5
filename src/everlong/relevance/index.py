"""An index over the chunks of a conversation that grows with each message, and its ranking.

Adding a message costs that message. Words are kept as they stand in the text with the chunks they stand
in; which terms a word is found by is worked out once for each different word, when first asked.
"""

import math
import re
from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from everlong.core import Message
from everlong.relevance.chunks import Chunk, Chunker, ChunkKind
from everlong.relevance.sessions import Sessions, Speaker, speaker_of
from everlong.relevance.terms import terms_of, words_of

__all__ = ["Index", "names_in"]

SHORTEST, LONGEST = 4, 60
LONGEST_WORD = 160  # characters; what is longer is encoded data, and slow to look through

_CANDIDATE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]{3,}")
_NAME = re.compile(
    r".*[A-Za-z0-9]/[A-Za-z0-9_].*"  # a path
    r"|[A-Za-z0-9]*[a-z0-9][A-Z][A-Za-z0-9_]*"  # camelCase
    r"|[A-Za-z0-9]*[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+"  # snake_case
    r"|[A-Za-z]+-[A-Za-z-]*[0-9]+"  # a ticket
    r"|[A-Za-z_][A-Za-z0-9_-]*\.[a-z]{1,4}"  # a file
    r"|(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{7,40}"  # a hash
)
#: What a search puts between a file and a line beside a match. Example: app.py-42-
_LINE_NUMBER = re.compile(r"(?<=\.)([A-Za-z]{1,5})-[0-9]+$")


def names_in(text: str) -> list[str]:
    """Every name once, in order. Example: "fix readFile in src/app.py (a1b2c3d)" -> [readFile, src/app.py, a1b2c3d]"""
    words = dict.fromkeys(_CANDIDATE.findall(text))
    return list(dict.fromkeys(name for word in words if len(word) <= LONGEST_WORD for name in _names(word)))


@lru_cache(maxsize=100_000)
def _names(word: str) -> tuple[str, ...]:
    """The word as a name, or the names between its dots; () for a plain word or number."""
    whole = _LINE_NUMBER.sub(r"\1", word.rstrip("./-"))
    names = [whole] if _NAME.fullmatch(whole) else [piece for piece in whole.split(".") if _NAME.fullmatch(piece)]
    return tuple(name for name in names if SHORTEST <= len(name) <= LONGEST)


SATURATION = 1.2  # BM25's k1: how soon more of the same word says nothing new
MOST_STANDINGS = 4_096  # terms; asked again at the next cut, they need not be looked up again
SPOKEN = frozenset({ChunkKind.USER, ChunkKind.ASSISTANT})
LENGTH_SHARE = 0.5  # BM25's b: how much a long chunk has to say to count as much


@dataclass(frozen=True, slots=True)
class _Standing:
    """How often a term occurs, in which chunks, and how often in each. Arrays, since many are kept."""

    total: int
    chunks: "array[int]"
    counts: "array[float]"


class Index:
    """The chunks of a conversation. Messages are added in order and never change."""

    def __init__(self) -> None:
        self.chunks: list[Chunk] = []
        self.lengths = array("I")
        self.messages = 0
        #: The message added last, None if there is none: who holds a history can tell whether this is its beginning.
        self.last: Message | None = None
        #: What readers count of a chunk, under the vocabulary they count by: a chunk never changes.
        self.sizes: dict[tuple[str, int], int] = {}
        #: Whether people only talked so far: no tool was called.
        self.is_talk = True
        #: Who spoke so far, numbered; the speaker and the session of each chunk.
        self.speakers: dict[Speaker, int] = {}
        self.spoken_by = array("I")
        self.sessions = array("I")
        self._session = Sessions()
        self._chunker = Chunker()
        self._places: defaultdict[str, array[int]] = defaultdict(lambda: array("I"))
        #: Words that are found by other terms than themselves, and by which.
        self._words: list[str] = []
        self._found_by: dict[str, list[tuple[int, float]]] = {}
        self._unread: list[str] = []
        self._names: dict[int, list[str]] = {}
        self._standings: dict[str, _Standing] = {}
        self._total_length = 0

    def add(self, message: Message) -> None:
        """Add the next message."""
        places = self._places
        known = len(places)
        session = self._session.of_next(message)
        speaker = self.speakers.setdefault(speaker_of(message), len(self.speakers))
        for chunk in self._chunker.chunks(self.messages, message):
            words = words_of(chunk.text)
            number = len(self.chunks)
            for word in words:
                places[word].append(number)
            self.chunks.append(chunk)
            self.is_talk = self.is_talk and chunk.kind in SPOKEN
            self.lengths.append(len(words))
            self.spoken_by.append(speaker)
            self.sessions.append(session)
            self._total_length += len(words)
        self.messages += 1
        self.last = message
        if len(places) > known:
            self._unread.extend(islice(reversed(places), len(places) - known))  # a dict keeps its order

    def extend(self, messages: Iterable[Message]) -> None:
        """Add several messages."""
        for message in messages:
            self.add(message)

    def names(self, number: int) -> list[str]:
        """The names in a chunk, its file first; computed at the first call."""
        names = self._names.get(number)
        if names is None:
            chunk = self.chunks[number]
            names = self._names[number] = names_in(f"{chunk.path}\n{chunk.text}" if chunk.path else chunk.text)
        return names

    def rank(self, query: Mapping[str, float]) -> list[float]:
        """The BM25 score of every chunk for a query of weighted terms.

        The weight of a term that a chunk's word carries counts as that many occurrences.
        """
        places = range(len(self.chunks))
        # A term that stands in nearly every chunk tells none of them apart, and costs the most.
        return self._ranked(query, places, self.lengths, most=len(places))

    def rank_groups(self, query: Mapping[str, float], groups: Sequence[int]) -> list[float]:
        """The same for groups of chunks, each read as one text; `groups` has the group of each chunk, from 0."""
        lengths = [0] * (max(groups, default=-1) + 1)
        for group, length in zip(groups, self.lengths, strict=True):
            lengths[group] += length
        return self._ranked(query, groups, lengths, most=self._total_length)

    def _ranked(
        self, query: Mapping[str, float], text_of: Sequence[int], lengths: Sequence[int], *, most: int
    ) -> list[float]:
        """BM25 over texts; `text_of` has the text of each chunk. A term standing more often than `most` is skipped."""
        self._learn_terms()
        scores = [0.0] * len(lengths)
        average = max(1.0, self._total_length / max(1, len(scores)))
        floor = SATURATION * (1 - LENGTH_SHARE)
        slope = SATURATION * LENGTH_SHARE / average
        for term, weight in query.items():
            standing = self._standing(term)
            if not standing.chunks or standing.total > most:
                continue
            texts, counts = standing.chunks, standing.counts
            if not isinstance(text_of, range):
                texts, counts = _by_text(standing, text_of)
            rarity = weight * math.log(1 + (len(scores) - len(texts) + 0.5) / (len(texts) + 0.5)) * (SATURATION + 1)
            for text, count in zip(texts, counts, strict=True):
                scores[text] += rarity * count / (count + floor + slope * lengths[text])
        return scores

    def _standing(self, term: str) -> _Standing:
        """The chunks that have a term; computed again only when one of its words came since."""
        words = self._words_found_by(term)
        total = sum(len(self._places[word]) for word, _ in words)
        known = self._standings.get(term)
        if known is not None and known.total == total:
            return known
        counts: dict[int, float] = {}
        for word, share in words:
            for chunk in self._places[word]:
                counts[chunk] = counts.get(chunk, 0.0) + share
        if len(self._standings) >= MOST_STANDINGS:
            self._standings.clear()
        self._standings[term] = standing = _Standing(total, array("I", counts), array("f", counts.values()))
        return standing

    def _words_found_by(self, term: str) -> list[tuple[str, float]]:
        words = [(self._words[number], weight) for number, weight in self._found_by.get(term, ())]
        return [*words, (term, 1.0)] if term in self._places and terms_of(term) == ((term, 1.0),) else words

    def _learn_terms(self) -> None:
        """Note the terms of the words that came since; a word that is its own term needs no note."""
        for word in self._unread:
            terms = terms_of(word)
            if terms and terms != ((word, 1.0),):
                number = len(self._words)
                self._words.append(word)
                for term, weight in terms:
                    self._found_by.setdefault(term, []).append((number, weight))
        self._unread.clear()


def _by_text(standing: _Standing, text_of: Sequence[int]) -> "tuple[array[int], array[float]]":
    """The same for texts of several chunks each."""
    counts: dict[int, float] = {}
    for chunk, share in zip(standing.chunks, standing.counts, strict=True):
        counts[text_of[chunk]] = counts.get(text_of[chunk], 0.0) + share
    return array("I", counts), array("f", counts.values())

"""Find the chunks of a conversation that contain a word or a term, and how often.

Each distinct word is stored as one character, numbered in order of first appearance. All chunks together are one long
string of these characters, with a mark after each chunk. So adding a chunk costs one lookup per word, a word takes two
bytes, and one search over the string finds hundreds of words. The terms of a word are computed once per distinct word,
at the next query.
"""

import re
from array import array
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from itertools import accumulate, count, islice
from typing import NamedTuple

from everlong.relevance.terms import terms_of

__all__ = ["Postings", "Standing"]

END = "\0"  # ends the words of a chunk
FIRST = 0x100  # the character of the first word: above all characters with a meaning in patterns
#: Words that get a character: those of two bytes, minus a reserve for the new words of one chunk.
MOST_SIGNS = 47_000
UNKNOWN = -1  # the number of a word that never occurred
LATE = 1 << 20  # the number of the first word after all characters were taken
MOST_CACHED = 16_384  # words whose positions are cached for the next query
PIECE = 16_384  # words searched at once
WEIGHTS = (1.0, 2.5, 0.5)  # the possible weights of a word for a term
CODES = {weight: code for code, weight in enumerate(WEIGHTS)}


class Standing(NamedTuple):
    """The chunks in which a term occurs, and how often in each."""

    chunks: Iterable[int]
    counts: Iterable[float]
    #: The number of these chunks.
    length: int


class Postings:
    """The words of all chunks. Chunks are added in order and never change."""

    def __init__(self, most_signs: int = MOST_SIGNS) -> None:
        self._most_signs = most_signs
        #: The number of chunks.
        self.length = 0
        self._signs: defaultdict[str, str] = defaultdict(map(chr, count(FIRST)).__next__)
        self._stream = ""
        self._added: list[str] = []
        self._ends = array("I")  # the end of each chunk in the stream
        self._size = 0
        #: Words that came after all characters were taken, and the chunks that have them.
        self._late: dict[str, int] = {}
        self._places: list[array[int]] = []
        #: Term -> the words with that term, except the term itself. Each word is its number times four plus a weight
        #: code.
        self._found_by: dict[str, int | array[int]] = {}
        self._learned = self._learned_late = 0
        #: The cached positions of words, and the chunk up to which they are known.
        self._cached: dict[str, array[int]] = {}
        self._cached_until = 0

    def add(self, words: Sequence[str]) -> None:
        """Add the words of the next chunk."""
        known = words if len(self._signs) < self._most_signs else self._with_signs(words)
        said = "".join(map(self._signs.__getitem__, known))
        self._added.append(said)
        self._size += len(said) + 1
        self._ends.append(self._size)
        self.length += 1

    def _with_signs(self, words: Iterable[str]) -> Iterator[str]:
        """Yield the words that have a character, and record the chunk for the others."""
        for word in words:
            if word in self._signs:
                yield word
                continue
            number = self._late.setdefault(word, len(self._places))
            if number == len(self._places):
                self._places.append(array("I"))
            self._places[number].append(self.length)

    def count(self, word: str) -> int:
        """Return how often a word occurs in all chunks."""
        if word in self._signs:
            return self._text().count(self._signs[word])
        return len(self._places[self._late[word]]) if word in self._late else 0

    def chunks_with(self, word: str) -> list[int]:
        """Return the chunks that have a word, oldest first."""
        if word not in self._signs:
            return list(dict.fromkeys(self._places[self._late[word]])) if word in self._late else []
        text, sign = self._text(), self._signs[word]
        chunks: list[int] = []
        at = text.find(sign)
        while at >= 0:
            chunks.append(bisect_left(self._ends, at + 1))
            at = text.find(sign, self._ends[chunks[-1]])
        return chunks

    def standings(self, terms: Iterable[str], most: int) -> Iterator[Standing | None]:
        """Yield where each term occurs; None for a term that occurs nowhere, or more than `most` times."""
        self._learn_terms()
        found = [list(self._found(term)) for term in terms]
        self._cache_places({chr(number) for words in found for number, _ in words if number < LATE})
        for words in found:
            places = [(self._places_of(number), weight) for number, weight in words]
            total = sum(len(chunks) for chunks, _ in places)
            yield _standing(places) if 0 < total <= most else None

    def _places_of(self, number: int) -> "array[int]":
        return self._places[number - LATE] if number >= LATE else self._cached[chr(number)]

    def may_match(self, terms: Iterable[str]) -> Callable[[str], bool]:
        """Return a function that says whether a word may match one of these terms; True for unknown words."""
        self._learn_terms()
        found = {number for term in terms for number, _ in self._found(term)}
        signs, late = self._signs, self._late

        def may(word: str) -> bool:
            sign = signs.get(word)
            number = late.get(word, UNKNOWN) + LATE if sign is None else ord(sign)
            return number in found or number == UNKNOWN + LATE

        return may

    def _cache_places(self, signs: Set[str]) -> None:
        """Add the positions of these words to the cache, and bring all cached positions up to date."""
        if self._cached_until < self.length:
            self._find(self._cached, self._cached_until)
            self._cached_until = self.length
        new = {sign: array("I") for sign in signs if sign not in self._cached}
        if len(self._cached) + len(new) > MOST_CACHED:
            self._cached.clear()
            new = {sign: array("I") for sign in signs}
        self._find(new, 0)
        self._cached.update(new)

    def _find(self, places: "Mapping[str, array[int]]", chunk: int) -> None:
        """Add the chunks from `chunk` on that have these words. Piece by piece, because matches take much memory."""
        if not places:
            return
        search, text = re.compile(f"[{END}{''.join(places)}]"), self._text()
        note = {sign: found.append for sign, found in places.items()}
        note[END] = array("I").append  # not needed
        for at in range(self._ends[chunk - 1] if chunk else 0, len(text), PIECE):
            signs = search.findall(text, at, at + PIECE)
            for sign, number in zip(signs, accumulate(map(END.__eq__, signs), initial=chunk), strict=False):
                note[sign](number)
            chunk += signs.count(END)

    def _text(self) -> str:
        """Return the words of all chunks as one string."""
        if self._added:
            self._stream = "".join((self._stream, END.join((*self._added, ""))))
            self._added.clear()
        return self._stream

    def _found(self, term: str) -> Iterator[tuple[int, float]]:
        """Yield the words that match a term, each with its weight."""
        entry = self._found_by.get(term, ())
        for code in (entry,) if isinstance(entry, int) else entry:
            yield code >> 2, WEIGHTS[code & 3]
        own = ord(self._signs[term]) if term in self._signs else self._late.get(term, UNKNOWN) + LATE
        if own != UNKNOWN + LATE:
            yield from ((own, weight) for found_by, weight in terms_of(term) if found_by == term)

    def _learn_terms(self) -> None:
        """Record the terms of all new words. A word that is its own term needs no record."""
        for word, sign in islice(self._signs.items(), self._learned, None):
            self._note(word, ord(sign))
        for word, number in islice(self._late.items(), self._learned_late, None):
            self._note(word, number + LATE)
        self._learned, self._learned_late = len(self._signs), len(self._late)

    def _note(self, word: str, number: int) -> None:
        found_by = self._found_by
        for term, weight in dict(terms_of(word)).items():  # a repeated part counts once
            if term != word:
                code = (number << 2) + CODES[weight]
                entry = found_by.get(term)
                if entry is None:
                    found_by[term] = code
                elif isinstance(entry, int):
                    found_by[term] = array("I", (entry, code))
                else:
                    entry.append(code)


def _standing(places: "Sequence[tuple[array[int], float]]") -> Standing:
    """Return where a term occurs, from the chunks and the weight of each of its words."""
    counts: dict[int, float] = {}
    for weight in WEIGHTS:
        tally: Counter[int] = Counter()
        for chunks, own in places:
            if own == weight:
                tally.update(chunks)
        if weight == 1.0:
            counts = dict(tally)
            continue
        for chunk, times in tally.items():
            counts[chunk] = counts.get(chunk, 0.0) + weight * times
    return Standing(counts, counts.values(), len(counts))

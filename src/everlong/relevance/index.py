"""A growing index of the chunks of a conversation, with a ranking.

Adding a message costs work only for that message. Words are indexed as they are in the text.
"""

import math
import re
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

from everlong.core import Message, Ref, message_ref
from everlong.relevance.chunks import Chunk, Chunker, ChunkKind
from everlong.relevance.postings import Postings, Standing
from everlong.relevance.sessions import Sessions, Speaker, speaker_of
from everlong.relevance.terms import words_of

__all__ = ["Index", "Likeness", "names_in"]

SHORTEST, LONGEST = 4, 60
LONGEST_WORD = 160  # characters; longer words are encoded data and slow to search
REMEMBERED = 4_096  # words in the cache of names

_CANDIDATE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]{3,}")
_PATH = re.compile(r"[A-Za-z0-9]/[A-Za-z0-9_]")
_NAME = re.compile(
    r"[0-9]*+[A-Za-z][A-Za-z0-9]*+(?:_[A-Za-z0-9]++)++"  # snake_case
    r"|[A-Z]*+[a-z0-9]++[A-Z][A-Za-z0-9_]*+"  # camelCase
    r"|(?=[a-f]*+[0-9])(?=[0-9]*+[a-f])[0-9a-f]{7,40}"  # a hash
    r"|[A-Za-z]++-[A-Za-z-]*+[0-9]++"  # a ticket
    r"|[A-Za-z_][A-Za-z0-9_-]*+\.[a-z]{1,4}"  # a file
)
#: The line number that grep adds to the file name in context lines. Example: app.py-42-
_LINE_NUMBER = re.compile(r"(?<=\.)([A-Za-z]{1,5})-[0-9]+$")


def names_in(text: str) -> list[str]:
    """Return every name once, in order.

    Example: "fix readFile in src/app.py (a1b2c3d)" -> [readFile, src/app.py, a1b2c3d]
    """
    names: dict[str, None] = {}
    for word in dict.fromkeys(_CANDIDATE.findall(text)):
        if word[1:].islower() and word.isalpha():
            continue  # a plain word
        if len(word) <= LONGEST_WORD:
            for name in _names(word):
                names[name] = None
    return list(names)


@lru_cache(maxsize=REMEMBERED)
def _names(word: str) -> tuple[str, ...]:
    """Return the word if it is a name, otherwise the names between its dots; () for a plain word or number."""
    whole = word.rstrip("./-")
    dotted = "." in whole
    if dotted and whole[-1].isdigit():
        whole = _LINE_NUMBER.sub(r"\1", whole)
    if ("/" in whole and _PATH.search(whole)) or _NAME.fullmatch(whole):
        return (whole,) if SHORTEST <= len(whole) <= LONGEST else ()
    if not dotted:
        return ()
    return tuple(piece for piece in whole.split(".") if SHORTEST <= len(piece) <= LONGEST and _NAME.fullmatch(piece))


SATURATION = 1.2  # BM25's k1: how soon further occurrences of a word stop counting
SPOKEN = frozenset({ChunkKind.USER, ChunkKind.ASSISTANT})
LENGTH_SHARE = 0.5  # BM25's b: how strongly long chunks are penalised


class Index:
    """The chunks of a conversation. Messages are added in order and never change."""

    def __init__(self) -> None:
        self.chunks: list[Chunk] = []
        self.lengths = array("I")
        self.messages = 0
        #: The message added last, or None. With it, the owner of a history can check that the index belongs to it.
        self.last: Message | None = None
        #: A cache for users of the index: the tokens of a chunk by vocabulary. Chunks never change.
        self.sizes: dict[tuple[str, int], int] = {}
        #: A function for the similarity in meaning of a question and the chunks, if there is one.
        self.likeness: Likeness | None = None
        #: Whether the conversation is only talk so far, without tool calls.
        self.is_talk = True
        #: The number of each speaker so far; then the speaker and the session of each chunk.
        self.speakers: dict[Speaker, int] = {}
        self.spoken_by = array("I")
        self.sessions = array("I")
        self._session = Sessions()
        self._chunker = Chunker()
        self._postings = Postings()
        self._names: dict[int, list[str]] = {}
        self._refs: dict[int, Ref] = {}
        self._total_length = 0

    def add(self, message: Message) -> None:
        """Add the next message."""
        session = self._session.of_next(message)
        speaker = self.speakers.setdefault(speaker_of(message), len(self.speakers))
        for chunk in self._chunker.chunks(self.messages, message):
            words = words_of(chunk.text)
            self._postings.add(words)
            self.chunks.append(chunk)
            self.is_talk = self.is_talk and chunk.kind in SPOKEN
            self.lengths.append(len(words))
            self.spoken_by.append(speaker)
            self.sessions.append(session)
            self._total_length += len(words)
        self.messages += 1
        self.last = message

    def empty_copy(self) -> "Index":
        """Return an empty index with the same `likeness`."""
        index = Index()
        index.likeness = self.likeness
        return index

    def extend(self, messages: Iterable[Message]) -> None:
        """Add several messages."""
        for message in messages:
            self.add(message)

    def names(self, number: int) -> list[str]:
        """Return the names in a chunk, its file first. They are computed at the first call."""
        names = self._names.get(number)
        if names is None:
            chunk = self.chunks[number]
            names = self._names[number] = names_in(f"{chunk.path}\n{chunk.text}" if chunk.path else chunk.text)
        return names

    def ref(self, at: int, message: Message) -> Ref:
        """Return the reference of the message at this index of the history. It is computed at the first call."""
        ref = self._refs.get(at) if at < self.messages else None
        if ref is None:
            ref = message_ref(message)
            if at < self.messages:
                self._refs[at] = ref
        return ref

    def holding(self, text: str) -> list[int]:
        """Return the chunks that contain a word or phrase literally, oldest first."""
        words = words_of(text)
        if not words:
            return []
        rarest = min(dict.fromkeys(words), key=self._postings.count)
        return [number for number in self._postings.chunks_with(rarest) if text in self.chunks[number].text]

    def may_match(self, query: Mapping[str, float]) -> Callable[[str], bool]:
        """Return a fast function that says whether a word may match a term of the query."""
        return self._postings.may_match(query)

    def rank(self, query: Mapping[str, float]) -> list[float]:
        """Return the BM25 score of every chunk for a query of weighted terms.

        If a word matches a term with a weight, each occurrence of the word counts that many times.
        """
        places = range(len(self.chunks))
        # A term that occurs more often than there are chunks distinguishes none of them, and costs the most.
        return self._ranked(query, places, self.lengths, most=len(places))

    def rank_groups(self, query: Mapping[str, float], groups: Sequence[int]) -> list[float]:
        """Return the same for groups of chunks, each as one text. `groups` has the group of each chunk, from 0."""
        lengths = [0] * (max(groups, default=-1) + 1)
        for group, length in zip(groups, self.lengths, strict=True):
            lengths[group] += length
        return self._ranked(query, groups, lengths, most=self._total_length)

    def _ranked(
        self, query: Mapping[str, float], text_of: Sequence[int], lengths: Sequence[int], *, most: int
    ) -> list[float]:
        """Return BM25 scores of texts; `text_of` maps chunks to texts. Terms with more than `most` hits are skipped."""
        scores = [0.0] * len(lengths)
        average = max(1.0, self._total_length / max(1, len(scores)))
        floor = SATURATION * (1 - LENGTH_SHARE)
        slope = SATURATION * LENGTH_SHARE / average
        slopes = [slope * length for length in lengths]
        for weight, standing in zip(query.values(), self._postings.standings(query, most), strict=True):
            if standing is None:
                continue
            standing = standing if isinstance(text_of, range) else _by_text(standing, text_of)
            rarity = len(scores) - standing.length + 0.5
            rarity = weight * math.log(1 + rarity / (standing.length + 0.5)) * (SATURATION + 1)
            for text, count in zip(standing.chunks, standing.counts, strict=True):
                scores[text] += rarity * count / (count + floor + slopes[text])
        return scores


#: Returns the similarity in meaning (0 to 1) of each chunk of an index to a question; empty if unknown.
Likeness: TypeAlias = Callable[[Index, str], Sequence[float]]


def _by_text(standing: Standing, text_of: Sequence[int]) -> Standing:
    """Return the occurrences by text instead of by chunk."""
    counts: dict[int, float] = {}
    for chunk, share in zip(standing.chunks, standing.counts, strict=True):
        counts[text_of[chunk]] = counts.get(text_of[chunk], 0.0) + share
    return Standing(counts, counts.values(), len(counts))

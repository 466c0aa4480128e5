"""Exact counts with splintr, which carries its vocabularies inside: no download, no network.

A vocabulary is loaded when it is first needed and kept. Special tokens spelled out in a text are
text. Lone surrogates count as the replacement character that a provider would receive.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Protocol

from splintr import Tokenizer

__all__ = ["count_exact", "pieces_of", "well_formed"]

TOKEN_BYTES = 4  # `encode_flat` packs each id into 32 bits
MARKERS_WORTH_SEARCHING = 4

#: In these, markup and blank lines are ordinary entries of the vocabulary that only the full matcher finds.
MATCHED_WHOLE = frozenset({"gemma2", "gemma3", "gemma4"})

#: In these a space begins a word at the start of a text too, so pieces count more than the whole.
COUNTED_WHOLE = MATCHED_WHOLE | {"llama2", "mistral", "mistral_v1", "mistral_v2"}
#: A long text is counted in pieces of about so many characters: the encoder lets no other thread run meanwhile.
PIECE = 32_768
#: A word ends before such a sign in every other vocabulary, so no token reaches across.
#: Not an apostrophe: some keep "don't" together.
_BETWEEN_WORDS = re.compile("(?<=[A-Za-z0-9\u4e00-\u9fff])[ \\n，。、](?=[A-Za-z\u4e00-\u9fff])")


class _Encoder(Protocol):
    def encode_flat(self, text: str) -> bytes: ...
    def encode_ordinary(self, text: str) -> list[int]: ...
    def special_tokens(self) -> dict[str, int]: ...


@dataclass(frozen=True, slots=True)
class _Loaded:
    encoder: _Encoder
    #: How every special token of the vocabulary begins; without any of them in a text the packed
    #: encoding, half as expensive, finds the same tokens.
    markers: tuple[str, ...]


@cache
def _load(name: str) -> _Loaded:
    encoder = Tokenizer.from_pretrained(name)
    if name in MATCHED_WHOLE:
        return _Loaded(encoder, ())
    starts = sorted({token[:2] for token in encoder.special_tokens()})
    if len(starts) > MARKERS_WORTH_SEARCHING:
        starts = sorted({start[0] for start in starts})
    return _Loaded(encoder, tuple(starts))


def well_formed(text: str) -> str:
    """The text with surrogate pairs joined and lone ones replaced, as UTF-8 demands."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def count_exact(vocabulary: str, text: str) -> int:
    """How many tokens the text is in that vocabulary. Example: ("o200k_base", "hello world") -> 2"""
    if len(text) > 2 * PIECE and vocabulary not in COUNTED_WHOLE:
        return sum(_count(vocabulary, piece) for piece in pieces_of(text, PIECE))
    return _count(vocabulary, text)


def pieces_of(text: str, size: int) -> Iterator[str]:
    """The text in pieces of at least `size` characters, cut only where no token can reach across."""
    start = 0
    while len(text) - start > size:
        gap = _BETWEEN_WORDS.search(text, start + size)
        if gap is None:
            break
        yield text[start : gap.start()]
        start = gap.start()
    yield text[start:]


def _count(vocabulary: str, text: str) -> int:
    loaded = _load(vocabulary)
    try:
        for marker in loaded.markers:
            if marker in text:
                return len(loaded.encoder.encode_ordinary(text))
        return len(loaded.encoder.encode_flat(text)) // TOKEN_BYTES
    except UnicodeEncodeError:
        return _count(vocabulary, well_formed(text))

"""Count a long text in pieces of bounded length, as many tokens as the text has when it is encoded whole.

An encoder lets no other thread run while it works, and takes more than twice the time for twice the text. So a long
text is cut. Between two words no token reaches across, and the pieces count as much as the whole. A text without such
a gap, a megabyte of one letter or of base64, is cut anywhere: the end of a piece is encoded once more as the beginning
of the next, and where both have the same tokens they are joined. Where no joint can be proved the stretch counts as its
bytes: too many rather than too few.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

__all__ = [
    "PIECE",
    "SMALL_PIECE",
    "TOKEN_BYTES",
    "Encoding",
    "Piece",
    "after_pair",
    "bytes_in",
    "counted_pieces",
    "well_formed",
]

TOKEN_BYTES = 4  # encoders pack each token into 32 bits
#: A text of more than twice as many characters is counted in pieces, of which none is longer than that.
PIECE = 32_768
#: The same for vocabularies that merge across a whole text: some milliseconds too.
SMALL_PIECE = 8_192
#: Characters at the end of a piece that was cut anywhere, whose tokens may depend on what follows.
UNSETTLED = 256
#: Characters over which two pieces have the same tokens at their joint. By less they may agree by chance: patterns take
#: three digits at a time.
SHARED = 64
#: The first seam nearly always holds. Otherwise others are tried, each twice as far back as the one before: a pattern
#: may join a sign with the letter behind it.
LONGEST_SHARED = 1_024
#: Bytes of UTF-8 that do not begin a character.
CONTINUATION = bytes(range(0x80, 0xC0))

#: A word ends before such a sign in every vocabulary, so no token reaches across. The sign stands first, by which
#: searching is quick. Not an apostrophe: some keep "don't" together.
_BETWEEN_WORDS = re.compile("[ \\n，。、](?<=[A-Za-z0-9\u4e00-\u9fff][ \\n，。、])(?=[A-Za-z\u4e00-\u9fff])")


@dataclass(frozen=True, slots=True)
class Encoding:
    """How a vocabulary encodes: `pack` gives the tokens of a text, `unpack` the bytes of a token.

    `pack` is told whether the text stands at the beginning: some vocabularies begin every text with a space.
    """

    pack: Callable[[str, bool], bytes]
    unpack: Callable[[int], bytes]
    piece: int = PIECE


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of the text, and the tokens that it adds."""

    start: int
    stop: int
    tokens: int


@dataclass(frozen=True, slots=True)
class _Seam:
    """Where a piece may end: how many of its tokens come before, and with which the next piece has to begin."""

    at: int
    before: int = 0
    following: bytes = b""


def counted_pieces(encoding: Encoding, text: str) -> Iterator[Piece]:
    """Yield the pieces of a well-formed text; their tokens are those of the text, or more if a joint is not proved."""
    start = 0
    while start < len(text):
        stop = _next_gap(text, start, encoding.piece)
        if stop - start <= 2 * encoding.piece:
            yield Piece(start, stop, len(encoding.pack(text[start:stop], start == 0)) // TOKEN_BYTES)
        else:
            yield from _joined_pieces(encoding, text, start, stop)
        start = stop


def _next_gap(text: str, start: int, size: int) -> int:
    """The first gap between words at least `size` characters on; the end of the text if there is none."""
    while len(text) - start > 2 * size:
        gap = _BETWEEN_WORDS.search(text, start + size, start + 2 * size)
        if gap is not None:
            return gap.start()
        start += size - 1  # a gap is seen with the letters on both sides
    return len(text)


def _joined_pieces(encoding: Encoding, text: str, start: int, stop: int) -> Iterator[Piece]:
    """Yield the pieces of a stretch without gaps.

    Why a joint is exact: two texts are encoded together as they are alone if the last token of one and the first of
    the other stand side by side in the encoding of some text. A pair merged across them would have been merged there.
    """
    at, counted = start, 0
    seams: Iterator[_Seam] = iter((_Seam(start),))
    while True:
        end = 0
        for seam in seams:
            end = end or (stop if stop - seam.at <= 2 * encoding.piece else seam.at + encoding.piece)
            packed = encoding.pack(text[seam.at : end], seam.at == 0)
            if packed.startswith(seam.following):
                break
        else:
            break
        if seam.before:
            yield Piece(at, seam.at, seam.before)
        at, counted = seam.at, counted + seam.before
        if end == stop:
            yield Piece(at, stop, len(packed) // TOKEN_BYTES)
            return
        seams = _seams(encoding, packed, end)
    yield Piece(at, stop, bytes_in(text, start, stop) + 1 - counted)  # no text has more tokens, with a space before it


def _seams(encoding: Encoding, packed: bytes, end: int) -> Iterator[_Seam]:
    """Yield where a piece that was cut at `end` may end instead: before tokens that what follows does not change."""
    tokens = memoryview(packed).cast("I")
    left, characters = len(tokens), 0
    settled = wanted = UNSETTLED
    shared = SHARED
    while left > 1 and shared <= LONGEST_SHARED:
        left -= 1
        token = encoding.unpack(tokens[left])
        characters += len(token.translate(None, CONTINUATION))
        if characters < wanted:
            continue
        if wanted == UNSETTLED:
            settled, wanted = left, characters + shared
        elif token[0] not in CONTINUATION:
            yield _Seam(end - characters, left, packed[left * TOKEN_BYTES : settled * TOKEN_BYTES])
            shared *= 2
            wanted = characters + shared


def bytes_in(text: str, start: int, stop: int) -> int:
    """The bytes of a part of a well-formed text; it never has more tokens."""
    return sum(len(text[at : min(at + PIECE, stop)].encode()) for at in range(start, stop, PIECE))


# --- surrogates -------------------------------------------------------------------------------------


def well_formed(text: str) -> str:
    """The text with surrogate pairs joined and lone ones replaced, as UTF-8 demands."""
    return "".join(piece.encode("utf-16", "surrogatepass").decode("utf-16", "replace") for piece in _even_pieces(text))


def _even_pieces(text: str, size: int = PIECE) -> Iterator[str]:
    """The text in pieces of `size` characters, or one more: a pair of surrogates stays together."""
    start = 0
    while start < len(text):
        stop = after_pair(text, start + size)
        yield text[start:stop]
        start = stop


def after_pair(text: str, at: int) -> int:
    """The place itself, or the one behind it if it is inside a pair of surrogates."""
    return at + ("\ud800" <= text[at - 1 : at] <= "\udbff" and "\udc00" <= text[at : at + 1] <= "\udfff")

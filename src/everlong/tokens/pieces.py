"""Count a long text in pieces of bounded length, with the same result as encoding it whole.

An encoder blocks all other threads while it works, and needs more than twice the time for twice the text. So a long
text is cut. No token crosses certain gaps between words, so pieces cut there have as many tokens as the whole. A text
without such gaps (a megabyte of one letter, or of base64) is cut anywhere: the end of a piece is encoded again as the
beginning of the next, and the two are joined where both have the same tokens. A stretch without a proven joint counts
as its bytes: rather too many than too few.
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
#: A text of more than twice this many characters is counted in pieces, none of them longer than that.
PIECE = 32_768
#: The same for vocabularies that merge across a whole text, so that a piece takes only milliseconds there too.
SMALL_PIECE = 8_192
#: Characters at the end of a piece that was not cut at a gap: their tokens may depend on what follows.
UNSETTLED = 256
#: Characters over which two pieces must have the same tokens to be joined. With fewer they may agree by chance:
#: patterns take three digits at a time.
SHARED = 64
#: The first seam nearly always works. If not, others further back are tried, each with twice as many shared characters,
#: up to this many: a pattern may join a sign with the letter after it.
LONGEST_SHARED = 1_024
#: Bytes of UTF-8 that do not begin a character.
CONTINUATION = bytes(range(0x80, 0xC0))

#: A word ends before these characters in every vocabulary, so no token crosses this place. The pattern begins with the
#: character itself, which makes the search fast. An apostrophe is not among them: some vocabularies keep "don't"
#: together.
_BETWEEN_WORDS = re.compile("[ \\n，。、](?<=[A-Za-z0-9\u4e00-\u9fff][ \\n，。、])(?=[A-Za-z\u4e00-\u9fff])")


@dataclass(frozen=True, slots=True)
class Encoding:
    """How a vocabulary encodes: `pack` returns the packed tokens of a text, `unpack` the bytes of a token.

    The second argument of `pack` says whether the text is at the very beginning: some vocabularies put a space there.
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
    """A possible end of a piece: how many of its tokens come before, and the tokens the next piece must begin with."""

    at: int
    before: int = 0
    following: bytes = b""


def counted_pieces(encoding: Encoding, text: str) -> Iterator[Piece]:
    """Yield the pieces of a well-formed text. Their tokens add up to the text's, or more if a joint is not proven."""
    start = 0
    while start < len(text):
        stop = _next_gap(text, start, encoding.piece)
        if stop - start <= 2 * encoding.piece:
            yield Piece(start, stop, len(encoding.pack(text[start:stop], start == 0)) // TOKEN_BYTES)
        else:
            yield from _joined_pieces(encoding, text, start, stop)
        start = stop


def _next_gap(text: str, start: int, size: int) -> int:
    """Return the first gap between words at least `size` characters ahead; the end of the text if there is none."""
    while len(text) - start > 2 * size:
        gap = _BETWEEN_WORDS.search(text, start + size, start + 2 * size)
        if gap is not None:
            return gap.start()
        start += size - 1  # a gap is matched together with the letters on both sides
    return len(text)


def _joined_pieces(encoding: Encoding, text: str, start: int, stop: int) -> Iterator[Piece]:
    """Yield the pieces of a stretch without gaps.

    Why a joint is exact: if the last token of one text and the first token of another are neighbours in the encoding of
    any text, both texts are encoded together as they are alone. A merge across the two tokens would have happened there
    too.
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
    yield Piece(at, stop, bytes_in(text, start, stop) + 1 - counted)  # tokens <= bytes, plus one for a leading space


def _seams(encoding: Encoding, packed: bytes, end: int) -> Iterator[_Seam]:
    """Yield where a piece that was cut at `end` may end instead: before tokens that later text cannot change."""
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
    """Return the UTF-8 bytes of a part of a well-formed text, which never has more tokens than that."""
    return sum(len(text[at : min(at + PIECE, stop)].encode()) for at in range(start, stop, PIECE))


# --- surrogates -------------------------------------------------------------------------------------


def well_formed(text: str) -> str:
    """Return the text with surrogate pairs joined and lone surrogates replaced, as UTF-8 requires."""
    return "".join(piece.encode("utf-16", "surrogatepass").decode("utf-16", "replace") for piece in _even_pieces(text))


def _even_pieces(text: str, size: int = PIECE) -> Iterator[str]:
    """Yield the text in pieces of `size` characters, or one more to keep a surrogate pair together."""
    start = 0
    while start < len(text):
        stop = after_pair(text, start + size)
        yield text[start:stop]
        start = stop


def after_pair(text: str, at: int) -> int:
    """Return `at`, or `at + 1` if it is inside a surrogate pair."""
    return at + ("\ud800" <= text[at - 1 : at] <= "\udbff" and "\udc00" <= text[at : at + 1] <= "\udfff")

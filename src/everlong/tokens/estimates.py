"""Estimate the tokens of a text where there is no tokenizer.

A token ends between two neighbouring bytes with a chance that depends mostly on these two: rarely
inside "th", nearly always inside "a(". The estimate adds these chances up over the text. Bytes are
taken in classes, and the chances of each vocabulary stand in `weights.json`, which
`scripts/fit_estimate.py` writes. No chance is below 0 or above 1, so junk that no one ever fitted
cannot carry the figure away. Long runs of one character are the one thing two bytes cannot tell
(128 spaces are one token); they are counted by their length.

Fixed work for each byte, whatever the text. Nothing here loads a tokenizer.
"""

import json
import re
import sys
import zlib
from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from everlong.tokens.pieces import after_pair, well_formed

__all__ = [
    "CLASSES",
    "DEFAULT",
    "ESTIMATED",
    "REPEATABLE",
    "STEPS",
    "class_codes",
    "estimate",
    "run_tokens",
    "shorten_runs",
]

DEFAULT = "o200k_base"

#: The vocabularies that have weights. `claude` is the one published in 2023; no newer one is public.
ESTIMATED: tuple[str, ...] = (
    "o200k_base",
    "cl100k_base",
    "gemma3",
    "qwen3",
    "deepseek_v3",
    "llama3",
    "claude",
)

STEPS = 64  # a chance of 1 in the weights
LAST_OF_RUN = 0.5  # tokens; the last one of a run is seldom full
LEAST_RUN = 16  # characters
#: A longer text is estimated in pieces of so many characters: no other thread runs while one is added up.
PIECE = 32_768


def _each(run: Iterable[int], width: int = 1) -> tuple[bytes, ...]:
    members = bytes(run)
    return tuple(members[at : at + width] for at in range(0, len(members), width))


#: The classes of bytes, disjoint and complete. Small letters stand alone: their pairs tell words from noise.
CLASSES: tuple[bytes, ...] = (
    *_each(b"abcdefghijklmnopqrstuvwxyz"),
    *(b"AEIOU", b"BCDFGHLMNPRSTY", b"JKQVWXZ", b"0123456789"),
    *(b".", b",", b":;", b"!?", b"'", b'"`', b"([{<", b")]}>", b"_", b"-", b"/", b"\\", b"=", b"+*&|^~", b"#@$%"),
    *(b" ", b"\n", b"\t", b"\r", bytes({*range(0x20), 0x7F} - {*b"\n\t\r"})),
    *_each(range(0x80, 0xC0), 4),  # inside a character of UTF-8; from here on its first bytes
    *(b"\xc0\xc1\xc2", b"\xc3", b"\xc4\xc5", bytes(range(0xC6, 0xCC)), b"\xcc\xcd"),  # Latin and its accents
    *(b"\xce\xcf", b"\xd0", b"\xd1", bytes(range(0xD2, 0xD6)), b"\xd6\xd7", bytes(range(0xD8, 0xE0))),
    *_each(range(0xE0, 0xEE)),  # Indic, symbols, kana, Han, Hangul
    *(b"\xee\xef", bytes(range(0xF0, 0x100))),
)

#: Characters that tokens hold many of in a row; digits never are.
REPEATABLE = "".join(map(chr, sorted({*range(0x80)} - {*b"0123456789"}))) + "·—…•─━│═█░▒▓　"

_REPEATABLE = frozenset(REPEATABLE)
_RUN = re.compile(f"([{re.escape(REPEATABLE)}])\\1{{{LEAST_RUN - 1},}}")


def _class_of_byte() -> bytes:
    table = bytearray(256)
    for code, members in enumerate(CLASSES):
        for byte in members:
            table[byte] = code
    return bytes(table)


_CLASS_OF_BYTE = _class_of_byte()


@dataclass(frozen=True, slots=True)
class _Weights:
    """`ends[pair of class codes]` is a chance in `STEPS`; `repeats[character]` how many of it fill a token."""

    ends: list[int]
    repeats: dict[str, float]


@cache
def _weights(vocabulary: str) -> _Weights:
    shipped = json.loads(files("everlong.tokens").joinpath("weights.json").read_text("utf-8"))
    chosen = shipped[vocabulary]
    square = zlib.decompress(b64decode(chosen["ends"]))
    ends = [0] * (len(CLASSES) * 0x100)
    for first in range(len(CLASSES)):
        for second in range(len(CLASSES)):
            pair = int.from_bytes((first, second), sys.byteorder)
            ends[pair] = square[first * len(CLASSES) + second]
    repeats = {character: float(many) for many, characters in chosen["repeats"].items() for character in characters}
    return _Weights(ends, repeats)


def estimate(text: str, vocabulary: str = DEFAULT) -> int:
    """Estimate the tokens of a text in a vocabulary; in the default one if it has no weights.

    Example: "The quick brown fox jumps over the lazy dog." -> 11 (it is 10)
    """
    if not text:
        return 0
    weights = _weights(vocabulary if vocabulary in ESTIMATED else DEFAULT)
    chance = weights.ends.__getitem__
    if len(text) <= PIECE:
        shortened, left_out = shorten_runs(text)
        codes = class_codes(shortened)
        ends = sum(map(chance, _pairs(codes, 0))) + sum(map(chance, _pairs(codes, 1)))
        return round(1 + ends / STEPS + run_tokens(left_out, weights.repeats))
    ends, runs, last = 0, 0.0, b""
    for shortened, left_out in _shortened_pieces(text):
        codes = last + class_codes(shortened)
        ends += sum(map(chance, _pairs(codes, 0))) + sum(map(chance, _pairs(codes, 1)))
        runs = run_tokens(left_out, weights.repeats, runs)
        last = codes[-1:]
    return round(1 + ends / STEPS + runs)


def _pairs(codes: bytes, start: int) -> memoryview:
    """Every second pair of neighbours, each as one 16-bit number: from 0 the even pairs, from 1 the odd ones."""
    stop = start + (len(codes) - start) // 2 * 2
    return memoryview(codes[start:stop]).cast("H")


def class_codes(text: str) -> bytes:
    """The class of each byte of the text in UTF-8."""
    try:
        encoded = text.encode()
    except UnicodeEncodeError:
        encoded = well_formed(text).encode()
    return encoded.translate(_CLASS_OF_BYTE)


def shorten_runs(text: str) -> tuple[str, list[tuple[str, int]]]:
    """The text with each long run of one character cut to one, and what was left out of each.

    Example: "a" + "-" * 40 + "b" -> "a-b", [("-", 39)]
    """
    pieces, left_out, at = [], [], 0
    for run in _RUN.finditer(text):
        pieces.append(text[at : run.start() + 1])
        left_out.append((run[1], run.end() - run.start() - 1))
        at = run.end()
    pieces.append(text[at:])
    return "".join(pieces), left_out


def _shortened_pieces(text: str) -> Iterator[tuple[str, list[tuple[str, int]]]]:
    """Yield what `shorten_runs` makes of a text, piece by piece: no run is cut, however long it is."""
    start = 0
    while len(text) - start > PIECE:
        stop = start + PIECE
        last = text[stop - 1]
        if last == text[stop] and last in _REPEATABLE:
            before = text[start:stop].rstrip(last)
            stop = _end_of_run(text, stop)
            length = stop - start - len(before)
            if length >= LEAST_RUN:
                yield shorten_runs(before)
                yield last, [(last, length - 1)]
                start = stop
                continue
        else:
            stop = after_pair(text, stop)
        yield shorten_runs(text[start:stop])
        start = stop
    yield shorten_runs(text[start:])


def _end_of_run(text: str, at: int) -> int:
    """Where the run of one character ends that goes on at this place."""
    run = text[at] * PIECE
    while text.startswith(run, at):
        at += PIECE
    rest = text[at : at + PIECE]
    return at + len(rest) - len(rest.lstrip(run[0]))


def run_tokens(left_out: Iterable[tuple[str, int]], repeats: Mapping[str, float], tokens: float = 0.0) -> float:
    """The tokens of the parts of runs that were left out, added to those of the runs before."""
    for character, length in left_out:
        many = repeats[character]
        tokens += length / many + (LAST_OF_RUN if many > 1 else 0)
    return tokens

"""Estimate the tokens of a text without a tokenizer.

A token ends between two neighbouring bytes with a probability that depends mostly on these two: rarely inside "th",
nearly always inside "a(". The estimate sums these probabilities over the text. Bytes are grouped into classes;
`weights.json`, written by `scripts/fit_estimate.py`, has the probabilities for each vocabulary. Each is between 0 and
1, so unusual text cannot distort the estimate without limit. Pairs of bytes cannot describe long runs of one character
(128 spaces are one token), so runs are counted by their length.

The work per byte is constant, whatever the text.
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

STEPS = 64  # the weight that means a probability of 1
LAST_OF_RUN = 0.5  # tokens; the last token of a run is rarely full
LEAST_RUN = 16  # characters
EVERY = 7  # a rough estimate takes every 7th of the even pairs; odd, so that it does not align with table columns
SHORT = 512  # bytes; a rough estimate of a text up to this size takes all pairs
#: A longer text is estimated in pieces of this many characters, because each piece blocks all other threads.
PIECE = 32_768


def _each(run: Iterable[int], width: int = 1) -> tuple[bytes, ...]:
    members = bytes(run)
    return tuple(members[at : at + width] for at in range(0, len(members), width))


#: The classes of bytes, disjoint and complete. Each lowercase letter is a class: their pairs tell words from noise.
CLASSES: tuple[bytes, ...] = (
    *_each(b"abcdefghijklmnopqrstuvwxyz"),
    *(b"AEIOU", b"BCDFGHLMNPRSTY", b"JKQVWXZ", b"0123456789"),
    *(b".", b",", b":;", b"!?", b"'", b'"`', b"([{<", b")]}>", b"_", b"-", b"/", b"\\", b"=", b"+*&|^~", b"#@$%"),
    *(b" ", b"\n", b"\t", b"\r", bytes({*range(0x20), 0x7F} - {*b"\n\t\r"})),
    *_each(range(0x80, 0xC0), 4),  # continuation bytes of UTF-8; the first bytes follow below
    *(b"\xc0\xc1\xc2", b"\xc3", b"\xc4\xc5", bytes(range(0xC6, 0xCC)), b"\xcc\xcd"),  # Latin and its accents
    *(b"\xce\xcf", b"\xd0", b"\xd1", bytes(range(0xD2, 0xD6)), b"\xd6\xd7", bytes(range(0xD8, 0xE0))),
    *_each(range(0xE0, 0xEE)),  # Indic, symbols, kana, Han, Hangul
    *(b"\xee\xef", bytes(range(0xF0, 0x100))),
)

#: Characters that one token can hold many of in a row. Digits are never among them.
REPEATABLE = "".join(map(chr, sorted({*range(0x80)} - {*b"0123456789"}))) + "·—…•─━│═█░▒▓　"

_REPEATABLE = frozenset(REPEATABLE)
_RUN = re.compile(f"([{re.escape(REPEATABLE)}])\\1{{{LEAST_RUN - 1},}}")
_NO_CHANGES, _CHANGE = bytes(LEAST_RUN - 1), re.compile(rb"[^\0]")


def _class_of_byte() -> bytes:
    table = bytearray(256)
    for code, members in enumerate(CLASSES):
        for byte in members:
            table[byte] = code
    return bytes(table)


_CLASS_OF_BYTE = _class_of_byte()


@dataclass(frozen=True, slots=True)
class _Weights:
    """`ends[pair of class codes]` is a probability times `STEPS`; `repeats[character]` is how many fill a token."""

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


def estimate(text: str, vocabulary: str = DEFAULT, *, rough: bool = False) -> int:
    """Estimate the tokens of a text in a vocabulary, or in the default one if the vocabulary has no weights.

    A `rough` estimate looks at only some pairs of a text between 512 bytes and 32,768 characters: it is right on
    average over many texts, not for each.

    Example: "The quick brown fox jumps over the lazy dog." -> 11 (it is 10)
    """
    if not text:
        return 0
    weights = _weights(vocabulary if vocabulary in ESTIMATED else DEFAULT)
    chance = weights.ends.__getitem__
    if len(text) <= PIECE:
        shortened, left_out = shorten_runs(text)
        codes = class_codes(shortened)
        if rough and len(codes) > SHORT:
            some = _pairs(codes, 0)[::EVERY]
            ends = round(sum(map(chance, some)) * (len(codes) - 1) / len(some))
            return round(1 + ends / STEPS + run_tokens(left_out, weights.repeats))
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
    """Return every second pair of neighbours as 16-bit numbers: the even pairs with `start` 0, the odd ones with 1."""
    stop = start + (len(codes) - start) // 2 * 2
    return memoryview(codes[start:stop]).cast("H")


def class_codes(text: str) -> bytes:
    """Return the class of each UTF-8 byte of the text."""
    try:
        encoded = text.encode()
    except UnicodeEncodeError:
        encoded = well_formed(text).encode()
    return encoded.translate(_CLASS_OF_BYTE)


def shorten_runs(text: str) -> tuple[str, list[tuple[str, int]]]:
    """Return the text with each long run of one character cut to one character, and what was left out of each run.

    Example: "a" + "-" * 40 + "b" -> "a-b", [("-", 39)]
    """
    pieces, left_out, at = [], [], 0
    for start, stop in _alike(text):
        for run in _RUN.finditer(text, start, stop):
            pieces.append(text[at : run.start() + 1])
            left_out.append((run[1], run.end() - run.start() - 1))
            at = run.end()
    if not at:
        return text, []
    pieces.append(text[at:])
    return "".join(pieces), left_out


def _alike(text: str) -> Iterator[tuple[int, int]]:
    """Yield the stretches that may be long runs: all characters are the same, or all are outside Latin-1.

    All characters are compared with their neighbours at once, as one number: the pattern alone takes eight times as
    long.
    """
    if len(text) < LEAST_RUN:
        return
    coded = text.encode("latin-1", "replace")  # a byte for each character
    number = int.from_bytes(coded, "big")
    changes = (number ^ (number >> 8)).to_bytes(len(coded), "big")  # 0: the same as the character before
    start = changes.find(_NO_CHANGES, 1)
    while start > 0:
        change = _CHANGE.search(changes, start)
        stop = len(coded) if change is None else change.start()
        yield start - 1, stop
        start = changes.find(_NO_CHANGES, stop)


def _shortened_pieces(text: str) -> Iterator[tuple[str, list[tuple[str, int]]]]:
    """Apply `shorten_runs` piece by piece, without splitting a run, however long it is."""
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
    """Return where the run of the character at `at` ends."""
    run = text[at] * PIECE
    while text.startswith(run, at):
        at += PIECE
    rest = text[at : at + PIECE]
    return at + len(rest) - len(rest.lstrip(run[0]))


def run_tokens(left_out: Iterable[tuple[str, int]], repeats: Mapping[str, float], tokens: float = 0.0) -> float:
    """Return the tokens of the characters that runs lost, added to `tokens`."""
    for character, length in left_out:
        many = repeats[character]
        tokens += length / many + (LAST_OF_RUN if many > 1 else 0)
    return tokens

"""Every pattern reads in linear time: its repeats are bounded or never give back; long texts go in pieces."""

import re
import sys
from collections.abc import Iterator
from re import _parser  # type: ignore[attr-defined] # the parser of the standard library; nothing public shows repeats
from types import FrameType
from typing import Any

import pytest

from everlong.summarize.secrets import names, redaction, runs, values
from everlong.summarize.secrets.forms import FORMS
from everlong.summarize.secrets.shapes import SHAPES
from everlong.summarize.text import PIECE, UNSEEN, end_of_piece, in_pieces

PATTERNS: list[re.Pattern[str]] = [
    *names.PATTERNS,
    *redaction.PATTERNS,
    *runs.PATTERNS,
    *values.PATTERNS,
    *(shape.pattern for shape in (*SHAPES, *FORMS)),
    UNSEEN,
]
FOR_EVER = _parser.MAXREPEAT


def repeats(parsed: Any) -> Iterator[tuple[str, int]]:
    """The name and the upper bound of every repeat in a pattern, inside others too."""
    for operator, argument in parsed:
        name = str(operator)
        if "REPEAT" in name:
            yield name, argument[1]
        for inner in argument if isinstance(argument, (tuple, list)) else (argument,):
            for each in inner if isinstance(inner, list) else (inner,):
                if isinstance(each, _parser.SubPattern):
                    yield from repeats(each)


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.pattern[:40])
def test_repeats_are_bounded_or_never_give_back(pattern: re.Pattern[str]) -> None:
    found = list(repeats(_parser.parse(pattern.pattern, pattern.flags)))
    assert not [row for row in found if row[1] == FOR_EVER and "POSSESSIVE" not in row[0]]


def test_the_look_at_a_pattern_sees_a_repeat_without_a_bound() -> None:
    assert FOR_EVER in [most for _, most in repeats(_parser.parse("(?:a|(b+c))?"))]
    assert "POSSESSIVE" in next(repeats(_parser.parse("a++")))[0]


#: What a search could stumble over, again and again.
HOSTILE = {
    "names": "key=",
    "names with a value": 'password = "',
    "one long run": "aB3",
    "keys that do not end": "-----BEGIN PRIVATE KEY-----\n",
    "a key that does not end": "-----BEGIN PRIVATE KEY-----\n" + "Ab3/" * 16_000,
    "lines of tokens": "sk-" + "aB3dE5" * 10 + "\n",
    "logins": "login a ",
    "addresses": "://a:",
    "secrets of Kubernetes": "kind: Secret\ndata:\n a: b\n",
    "slashes": "\\",
    "spaces": " " * 8,
    "listed lines": " 12→ ",
}


def calls_made(text: str) -> int:
    """How many functions of the package are entered for a text."""
    count = 0

    def watch(frame: FrameType, _: str, __: object) -> None:
        nonlocal count
        count += "summarize" in frame.f_code.co_filename

    before = sys.gettrace()
    sys.settrace(watch)
    try:
        redaction.redacted(text)
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("unit", HOSTILE.values(), ids=HOSTILE)
def test_twice_the_text_is_twice_the_work(unit: str) -> None:
    once = unit * (PIECE // len(unit) + 1)
    assert calls_made(once + once) <= 2.2 * calls_made(once) + 100


@pytest.mark.parametrize("text", ["a" * 3 * PIECE, "a line\n" * PIECE, "", "x"])
def test_pieces_are_the_text_and_none_is_longer(text: str) -> None:
    pieces: list[str] = []

    def keep(piece: str) -> str:
        pieces.append(piece)
        return piece

    assert in_pieces(keep, text) == text
    assert all(0 < len(piece) <= PIECE for piece in pieces)
    assert all(piece.endswith("\n") for piece in pieces[:-1] if "\n" in text)
    assert end_of_piece(text, 0) == len(pieces[0] if pieces else "")

"""The corpus of secrets: the same from the same seed, whole, with checksums, and a third of the kinds held out."""

import zlib
from random import Random

import pytest

from everlong.lab.secrets.corpus import DRAWN_FROM, HELD_OUT, KINDS, SECRETS_SEED, samples
from everlong.lab.secrets.kind import ALNUM, Kind
from everlong.lab.secrets.ordinary import ordinary_lines
from everlong.lab.secrets.surroundings import SURROUNDINGS

BY_NAME = {kind.name: kind for kind in KINDS}


def test_a_third_of_the_kinds_was_drawn_and_is_held_out() -> None:
    first = sorted(kind.name for kind in KINDS[:DRAWN_FROM])
    assert frozenset(Random(SECRETS_SEED).sample(first, DRAWN_FROM // 3)) == HELD_OUT
    assert len(KINDS) - len(HELD_OUT) >= 30


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_what_must_be_hidden_stands_in_the_text(kind: Kind) -> None:
    drawn = list(samples(kind, 30))
    assert drawn == list(samples(kind, 30))
    assert drawn != list(samples(kind, 30, seed=1))
    for sample in drawn:
        assert sample.made.hidden
        assert all(piece in sample.made.text for piece in sample.made.hidden), sample
    fitting = {surrounding.name for surrounding in SURROUNDINGS if kind.place in surrounding.takes} - {"wrapped"}
    assert {sample.surrounding for sample in drawn} >= fitting


@pytest.mark.parametrize("name", ["github", "npm"])
def test_published_checksums_are_right(name: str) -> None:
    for number in range(20):
        _, _, rest = BY_NAME[name].made(Random(number)).text.partition("_")
        value = 0
        for digit in rest[30:]:
            value = value * len(ALNUM) + ALNUM.index(digit)
        assert value == zlib.crc32(rest[:30].encode())


def test_ordinary_lines_are_lines_and_drawn_anew() -> None:
    lines = list(ordinary_lines(SECRETS_SEED, 2))
    assert lines == list(ordinary_lines(SECRETS_SEED, 2))
    assert lines[: len(lines) // 2] != lines[len(lines) // 2 :]
    assert not [line for line in lines if "\n" in line or "{H" in line]

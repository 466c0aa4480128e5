"""What was drawn and what was written; which values after a name are secrets."""

import pytest

from everlong.summarize.secrets.randomness import is_hex, is_mixed, is_random
from everlong.summarize.secrets.values import Sort, is_bare_secret, is_quoted_secret

DRAWN = ["xK9pQ2vR7mT4", "wJalrXUtnFEMI7K7MDENG", "9fQz81LmPx02Vb", "bPxRfiCYzq3K"]
WRITTEN = [
    "thisIsAVeryLongName42",
    "test_that_names_stay_12",
    "VeryLongClassName",
    "abcdefghijklmnop",
    "",
    "2024",
    "a-b-c",
]


@pytest.mark.parametrize("text", DRAWN)
def test_random_strings_are_known(text: str) -> None:
    assert is_random(text)


@pytest.mark.parametrize("text", WRITTEN)
def test_names_and_words_are_not_random(text: str) -> None:
    assert not is_random(text)


def test_hex_has_one_case_and_a_mixture_has_three_kinds() -> None:
    assert is_hex("00ff")
    assert is_hex("00FF")
    assert not is_hex("00fF")
    assert not is_hex("xyz")
    assert is_mixed("aB3")
    assert not is_mixed("ab3")


#: a value, what the name says of it, whether it is a secret without quotes and with them
VALUES: list[tuple[str, Sort, bool, bool]] = [
    ("lantern.Copper77", "password", True, True),
    ("config.password2", "password", False, True),
    ("hunter2two", "password", True, True),
    ("required", "password", False, False),
    ("sk-...", "token", False, False),
    ("user-42", "key", False, False),
    ("b85e7490c05910800c5dbb2ae8cee99d", "key", True, True),
    ("1025f12e-bdb9-4152-a1df-e675fdb97d8d", "key", False, False),
    ("42", "pass", False, False),
    ("%2B7fH6BpEKbnUEMK", "token", True, True),
]


@pytest.mark.parametrize(("value", "sort", "bare", "quoted"), VALUES, ids=[f"{row[1]} {row[0]}" for row in VALUES])
def test_values_after_a_name(value: str, sort: Sort, bare: bool, quoted: bool) -> None:
    assert is_bare_secret(value, sort, given=False) is bare
    assert is_quoted_secret(value, sort) is quoted

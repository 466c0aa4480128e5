"""What somebody probably meant: the nearest name that exists, or nothing."""

import pytest
from hypothesis import given, strategies as st

from everlong.core import did_you_mean, misspelt, nearest

NAMES = st.lists(st.text(max_size=12), max_size=8)


@pytest.mark.parametrize(
    ("name", "known", "meant"),
    [
        ("gpt4o", ["gpt-4", "gpt-4o", "gpt-4o-mini"], "gpt-4o"),
        ("GPT 4O", ["gpt-4o"], "gpt-4o"),
        ("treshold", ["threshold", "thread"], "threshold"),
        ("/compat", ["/context", "/compact"], "/compact"),
        ("xyzzy", ["gpt-4o"], ""),
        ("", ["a"], ""),
        ("---", ["a"], ""),
        ("a", [], ""),
        ("openai_chat", ["openai-chat", "OpenAI.Chat"], "openai-chat"),
    ],
)
def test_the_nearest_name_is_the_one_that_was_meant(name: str, known: list[str], meant: str) -> None:
    assert nearest(name, known) == meant
    assert did_you_mean(name, known) == (f"; did you mean {meant}?" if meant else "")


@given(st.text(max_size=20), NAMES)
def test_only_names_that_exist_are_suggested(name: str, known: list[str]) -> None:
    assert nearest(name, known) in ("", *known)


@given(NAMES)
def test_a_name_written_without_its_dashes_and_in_capitals_is_found(known: list[str]) -> None:
    for name in known:
        plain = "".join(filter(str.isalnum, name))
        if plain and plain.upper().casefold() == plain.casefold():
            found = nearest(plain.upper(), known)
            assert "".join(filter(str.isalnum, found.casefold())) == "".join(filter(str.isalnum, name.casefold()))


def test_a_name_of_any_length_is_compared_quickly() -> None:
    assert nearest("x" * 10_000_000, ["read", "x" * 100]) == "x" * 100


@pytest.mark.parametrize(
    ("name", "known", "meant"),
    [
        ("gpt-4oo", ["gpt-4", "gpt-4o"], "gpt-4o"),
        ("gpt-4", ["gpt-4o"], ""),
        ("gpt4o", ["gpt-4o"], "gpt-4o"),
        ("claude-opus-45", ["claude-opus-4", "claude-opus-4-5"], "claude-opus-4-5"),
        ("claude-opus-9", ["claude-opus-5"], ""),
        ("deepseek-caht", ["deepseek-chat"], "deepseek-chat"),
        ("deepseek-cat", ["deepseek-chat"], "deepseek-chat"),
        ("deepseek-chut", ["deepseek-chat"], "deepseek-chat"),
        ("deepseek-hcta", ["deepseek-chat"], ""),
        ("mixtral", ["mistral"], ""),
        ("mistral-larg", ["mistral-large", "mistral-larga"], "mistral-large"),
        ("abcd", ["abcde"], ""),
        ("", ["abcde"], ""),
    ],
)
def test_one_slip_of_the_pen_is_a_misspelt_name(name: str, known: list[str], meant: str) -> None:
    assert misspelt(name, known) == meant


@given(st.text(max_size=20), NAMES)
def test_a_misspelt_name_is_one_of_the_known(name: str, known: list[str]) -> None:
    assert misspelt(name, known) in ("", *known)

"""What the agent says to models: every language has every text, with the same values in it."""

from collections.abc import Mapping
from dataclasses import fields
from string import Formatter

import pytest

from everlong.agent.words import ENGLISH, LANGUAGES, Words, words_in


def values(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name}


def texts(words: Words) -> dict[str, str]:
    found: dict[str, str] = {}
    for each in fields(words):
        value = getattr(words, each.name)
        found |= (
            {f"{each.name} {key}": text for key, text in value.items()}
            if isinstance(value, Mapping)
            else {each.name: value}
        )
    return found


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_every_text_with_its_values(language: str) -> None:
    own, english = texts(LANGUAGES[language]), texts(ENGLISH)
    assert {name: values(text) for name, text in own.items()} == {name: values(text) for name, text in english.items()}
    assert all(own.values())


def test_a_language_without_a_table_is_english() -> None:
    assert words_in("xx") is ENGLISH

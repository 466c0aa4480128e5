"""Words and the terms they are found by, in any script."""

import pytest
from hypothesis import given, settings, strategies as st

from everlong.relevance.index import names_in
from everlong.relevance.terms import COMPOUND_WEIGHT, language_of, stem, terms_of, words_of

WORDS = {
    "identifiers stay whole": ("self.read_file(x2)", ["self", "read_file", "x2"]),
    "paths come apart": ("src/app.py:41", ["src", "app", "py", "41"]),
    "Chinese gives pairs and characters": ("上下文", ["上下", "下文", "上", "下", "文"]),
    "scripts mix": ("修复 retry", ["retry", "修复", "修", "复"]),
    "other alphabets keep their words": ("Привет мир", ["Привет", "мир"]),
    "Korean keeps its words": ("대화 요약", ["대화", "요약"]),
    "nothing": ("  \n", []),
}


@pytest.mark.parametrize("name", WORDS)
def test_words(name: str) -> None:
    text, words = WORDS[name]
    assert words_of(text) == words


@pytest.mark.parametrize(
    ("word", "terms"),
    [
        ("sessionManager", {"sessionmanager", "sessi", "manag"}),
        ("read_file", {"read_file", "read", "fil"}),
        ("HTTPServer", {"httpserver", "http", "serv"}),
        ("retries", {"retr"}),
        ("retry", {"retr"}),
        ("the", set()),
        ("的", set()),
        ("上下", {"上下"}),
        ("x" * 500, set()),
        ("__", set()),
    ],
)
def test_terms(word: str, terms: set[str]) -> None:
    assert {term for term, _ in terms_of(word)} == terms


def test_a_whole_compound_weighs_more_than_its_parts() -> None:
    weights = dict(terms_of("readFile"))
    assert weights["readfile"] == COMPOUND_WEIGHT > weights["read"]


@pytest.mark.parametrize(
    "words",
    [
        ("retry", "retries", "retried"),
        ("session", "sessions"),
        ("cache", "cached", "caching"),
        ("dog", "dogs"),
        ("donate", "donation", "donated"),
    ],
    ids=lambda w: w[0],
)
def test_forms_of_a_word_meet(words: tuple[str, ...]) -> None:
    assert len({stem(word) for word in words}) == 1


@pytest.mark.parametrize("word", ["größeres", "abc1234", "v20261115", "run", "déployées"])
def test_only_english_words_lose_their_ending(word: str) -> None:
    assert stem(word) == word


def test_a_stem_has_at_most_five_letters() -> None:
    assert (stem("compactions"), stem("compa"), stem("used"), stem("ages")) == ("compa", "compa", "used", "age")


@given(st.text(max_size=40))
@settings(max_examples=200, deadline=None)
def test_any_text_has_words_and_terms(text: str) -> None:
    for word in words_of(text):
        assert word in text
        assert all(weight > 0 and term for term, weight in terms_of(word))


def test_names() -> None:
    text = "fix readFile in src/app.py (a1b2c3d), see LB-124; snake_case, pkg.FuncName, plain words, 2024 and 12.5"
    assert names_in(text) == ["readFile", "src/app.py", "a1b2c3d", "LB-124", "snake_case", "FuncName"]


@pytest.mark.parametrize(
    ("texts", "language"),
    [
        (["请修复 retry 的 bug"], "zh"),
        (["fix the bug 中文"], "en"),
        ([], "en"),
        (["12345"], "en"),
        (["hello", "你好世界"], "zh"),
        (["この関数の不具合を修正してください"], "en"),
        (["이 함수의 오류를 고쳐 주세요"], "en"),
        (["《のだめ》这本书还有货吗，请帮我查一下四家店"], "zh"),
    ],
)
def test_language(texts: list[str], language: str) -> None:
    assert language_of(texts) == language

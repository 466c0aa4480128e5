"""The texts we put in, in both languages."""

import pytest

from everlong.compress.text.boundaries import Cut
from everlong.compress.text.markers import (
    WORDS,
    gap_in_message,
    gap_in_result,
    is_placeholder,
    picture_stub,
    result_placeholder,
)
from everlong.core import ref_of
from tests.compress.talks import task

REF = ref_of("original")
LINES = Cut("a\nb\nc\nd\n", 2, 6)
INSIDE = Cut("x" * 100, 10, 95)


@pytest.mark.parametrize(
    ("language", "cut", "expected"),
    [
        ("en", LINES, "[2 lines left out here, about 7 tokens; 2 of 4 lines shown; continue at line 2; ref {ref}]"),
        ("zh", LINES, "[已省略 2 行，约 7 tokens；共 4 行，显示 2 行；从第 2 行继续；引用 {ref}]"),
        (
            "en",
            INSIDE,
            "[85 characters left out here, about 7 tokens; 15 of 100 characters shown; "
            "the cut is in line 1 of 1; ref {ref}]",
        ),
        (
            "zh",
            INSIDE,
            "[已省略 85 字符，约 7 tokens；共 100 字符，显示 15 字符；截断处在第 1 行（共 1 行）；引用 {ref}]",
        ),
    ],
    ids=["lines, English", "lines, Chinese", "inside a line, English", "inside a line, Chinese"],
)
def test_a_gap_says_what_is_missing(language: str, cut: Cut, expected: str) -> None:
    assert gap_in_result(cut, 7, REF, task(language=language)) == expected.format(ref=REF)


def test_a_gap_in_a_message() -> None:
    assert gap_in_message(INSIDE, REF, task()) == f"[85 of 100 characters left out here; ref {REF}]"


@pytest.mark.parametrize("language", WORDS)
def test_how_to_get_it_back_is_told_only_where_the_model_can_ask(language: str) -> None:
    assert "recall" not in gap_in_message(INSIDE, REF, task(language=language))
    assert f'recall("{REF}")' in gap_in_message(INSIDE, REF, task(language=language, recall="recall"))


@pytest.mark.parametrize("language", WORDS)
def test_a_placeholder_is_one_line_that_names_tool_file_and_size(language: str) -> None:
    line = result_placeholder("read_file", "src/a.py", 1234, 2, REF, task(language=language))
    assert "\n" not in line
    assert all(fact in line for fact in ("read_file", "src/a.py", "1234", "2", REF))
    assert is_placeholder(line)


def test_an_odd_path_cannot_break_the_line() -> None:
    line = result_placeholder("", "a\nb" + "/long" * 200 + "/end.py\ud83d", 1, 0, REF, task())
    assert "\n" not in line
    assert "/end.py?" in line
    assert len(line.encode()) < 500
    assert is_placeholder(line)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "done",
        "[]",
        "see [result of x left out: y]",
        "[result of x left out: y]\nand more",
        "[result of x left out: " + "y" * 2_000 + "]",
    ],
    ids=["empty", "words", "brackets", "quoted", "two lines", "huge"],
)
def test_what_is_not_ours_is_not_taken_for_it(text: str) -> None:
    assert not is_placeholder(text)


def test_a_picture_is_named() -> None:
    stub = picture_stub(("image/png", "640x480", "12 kB"), REF, task())
    assert stub == f"[image left out: image/png, 640x480, 12 kB; ref {REF}]"


def test_an_unknown_language_gets_english() -> None:
    assert gap_in_message(INSIDE, REF, task(language="fr")) == gap_in_message(INSIDE, REF, task())

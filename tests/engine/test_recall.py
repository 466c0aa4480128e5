"""What a question is taken apart into, and what of it the view lacks."""

import pytest

from everlong.engine.recall import _lacking, _pieces
from tests.core.build import user


@pytest.mark.parametrize(
    ("said", "pieces"),
    [
        ("Which port? And who chose it?", ["Which port?", "And who chose it?"]),
        ("Which port was chosen?", []),
        ("Go on. Which port?\nWho chose it? Thanks!", ["Which port?", "Who chose it?"]),
        ("端口是多少？谁选的？", ["端口是多少？", "谁选的？"]),
        ("Port 8080, then?? And the host?", ["Port 8080, then?", "And the host?"]),
        ("No question. At all", []),
    ],
    ids=["two", "one", "among others", "Chinese", "two marks", "none"],
)
def test_several_questions_are_told_apart(said: str, pieces: list[str]) -> None:
    assert _pieces(said) == pieces


def test_a_pasted_line_without_end_is_read_once() -> None:
    # Read again from each of its letters this would take an hour.
    assert _pieces("Which port? Who chose it? " + "word " * 200_000) == ["Which port?", "Who chose it?"]


def test_only_words_that_are_nowhere_in_sight_are_lacking() -> None:
    assert _lacking("now run the harbour tests", (user("run the tests now"),)) == {"harbo"}


def test_of_a_long_paste_no_more_words_are_looked_for_than_a_query_has() -> None:
    pasted = " ".join(f"q{number}x" for number in range(5_000))
    assert len(_lacking(pasted, (user("nothing of it"),))) == 400

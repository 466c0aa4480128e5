"""Where texts are cut: on line ends, and never inside what a reader sees as one character."""

import pytest
from hypothesis import given, settings, strategies as st

from everlong.compress.text.boundaries import (
    Cut,
    boundary_after,
    boundary_before,
    cut_characters,
    cut_lines,
    fair_cap,
    head_end,
    tail_start,
)

CLUSTERS = {
    "combining mark": "e\u0301",
    "two marks": "a\u0308\u0323",
    "family joined by ZWJ": "👩‍👩‍👧‍👦",
    "skin tone": "👍🏽",
    "keycap": "1️⃣",
    "flag": "🇨🇳",
    "flag made of tags": "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
    "surrogate pair, not joined": "\ud83d\ude00",
    "Hangul of single letters": "\u1112\u1161\u11ab",
    "Devanagari conjunct": "क्षि",
    "Thai vowel sign": "กำ",
    "Arabic number sign": "\u0600\u0661",
    "line end of two characters": "\r\n",
    "half-width kana with its sign": "ｶﾞ",
    "mark newer than the Unicode tables at hand": "a\u1ae5",
}
SEPARATE = {
    "letters": "ab",
    "Chinese": "上下",
    "two flags": "🇨🇳🇩🇪",
    "two emoji": "😀😀",
    "syllables": "각각",
    "line ends": "\n\n",
    "mark after a line end": "\n\u0301",
}


@pytest.mark.parametrize("cluster", CLUSTERS.values(), ids=list(CLUSTERS))
def test_a_cluster_is_never_cut(cluster: str) -> None:
    text = f"ab{cluster}cd"
    for at in range(3, 2 + len(cluster)):
        assert boundary_before(text, at) == 2
        assert boundary_after(text, at) == 2 + len(cluster)


@pytest.mark.parametrize("text", SEPARATE.values(), ids=list(SEPARATE))
def test_what_only_stands_side_by_side_may_be_cut(text: str) -> None:
    half = len(text) // 2
    assert boundary_before(text, half) == boundary_after(text, half) == half


@given(st.lists(st.sampled_from([*CLUSTERS.values(), "x", "中", "\n"]), min_size=1, max_size=12), st.integers(0, 60))
@settings(max_examples=200, deadline=None)
def test_heads_and_tails_are_made_of_whole_clusters(pieces: list[str], most: int) -> None:
    text = "".join(pieces)
    edges = {sum(map(len, pieces[:n])) for n in range(len(pieces) + 1)}
    head, tail = head_end(text, most), tail_start(text, most)
    assert {head, tail} <= edges
    assert head <= most or head == len(text) <= most
    assert len(text) - tail <= most


def test_a_run_of_marks_longer_than_the_limit_leaves_nothing_rather_than_half() -> None:
    assert head_end("a" + "\u0301" * 5_000, 1_000) == 0


@pytest.mark.parametrize(
    ("head", "tail", "kept"),
    [(1, 1, ("a\n", "e\n")), (2, 2, ("a\nb\n", "d\ne\n")), (0, 2, ("", "d\ne\n")), (3, 0, ("a\nb\nc\n", ""))],
)
def test_lines_are_kept_at_both_ends(head: int, tail: int, kept: tuple[str, str]) -> None:
    text = "a\nb\nc\nd\ne\n"
    cut = cut_lines(text, head, tail)
    assert cut is not None
    assert (text[: cut.head], text[cut.tail :]) == kept
    assert (cut.lines, cut.lines_shown, cut.next_line) == (5, head + tail, head + 1)
    assert cut.on_lines


@pytest.mark.parametrize("text", ["", "a", "a\nb", "a\nb\n", "a\nb\nc"])
def test_a_text_of_few_lines_has_no_such_cut(text: str) -> None:
    assert cut_lines(text, 2, 1) is None


def test_a_line_end_near_the_limit_is_preferred() -> None:
    text = "\n".join(["x" * 40] * 50)
    assert text[head_end(text, 1_000) - 1] == "\n"
    assert text[tail_start(text, 1_000) - 1] == "\n"


def test_what_one_side_does_not_need_the_other_may_have() -> None:
    text = "h" * 10 + "\n" + "m" * 1_000 + "\n" + "t" * 500
    lines = cut_lines(text, 1, 1)
    assert lines is not None
    cut = cut_characters(lines, 300, 0.25)
    assert (cut.head, cut.characters) == (11, 300)


def test_the_marker_stands_on_a_line_of_its_own() -> None:
    assert Cut("one two three", 3, 8).joined("[…]") == "one\n[…]\nthree"
    assert Cut("a\nb\nc\n", 2, 4).joined("[…]") == "a\n[…]\nc\n"
    assert Cut("abc", 0, 3).joined("[…]") == "[…]"


@given(st.lists(st.integers(0, 100), max_size=8), st.integers(0, 400))
def test_a_fair_cap_fits_and_is_the_largest(sizes: list[int], room: int) -> None:
    cap = fair_cap(sizes, room)
    assert sum(min(size, cap) for size in sizes) <= room
    if max(sizes, default=0) > cap:
        assert sum(min(size, cap + 1) for size in sizes) > room

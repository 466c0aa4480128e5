"""Arriving Markdown: cut into complete blocks, drawn without what acts."""

from io import StringIO

import pytest
from hypothesis import given, settings, strategies as st
from rich.console import Console

from everlong.cli.chat.drawing import LONGEST_OPEN, Blocks, markdown


@pytest.mark.parametrize(
    ("text", "complete", "left"),
    [
        ("one", [], "one"),
        ("one\n\ntwo", ["one\n\n"], "two"),
        ("```py\na\n\nb\n```\nafter", ["```py\na\n\nb\n```\n"], "after"),
        ("~~~\n```\n~~~\n", ["~~~\n```\n~~~\n"], ""),
        ("````\n```\n````\nx", ["````\n```\n````\n"], "x"),
        ("\n\n\n", ["", "", ""], ""),
    ],
    ids=["open", "paragraph", "fence with an empty line", "other fence inside", "longer fence", "empty lines"],
)
def test_text_is_cut_into_blocks_that_are_complete(text: str, complete: list[str], left: str) -> None:
    blocks = Blocks()
    assert blocks.add(text) == complete
    assert blocks.open == left


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet="ab `~\n", max_size=120), st.lists(st.integers(1, 9), min_size=1, max_size=8))
def test_no_word_is_lost_however_the_pieces_fall(text: str, sizes: list[int]) -> None:
    blocks, seen, at, turn = Blocks(), [], 0, 0
    while at < len(text):
        size = sizes[turn % len(sizes)]
        seen += blocks.add(text[at : at + size])
        at, turn = at + size, turn + 1
    seen.append(blocks.end())
    assert "".join("".join(seen).split()) == "".join(text.split())


def test_a_block_that_does_not_end_is_closed_by_us_and_its_fence_opened_again() -> None:
    blocks = Blocks()
    done = blocks.add("```py\n" + "x = 1\n" * LONGEST_OPEN)
    assert len(done) > 1
    assert all(block.startswith("```py\n") and block.endswith("\n```\n") for block in done)
    assert blocks.open.startswith("```py\n")
    assert len(blocks.open) < LONGEST_OPEN


def test_a_block_is_drawn_without_empty_lines_around_it() -> None:
    seen = StringIO()
    out = Console(file=seen, width=40, color_system=None)
    for block in ("- one\n- two\n\n", "```py\nx = 1\n```\n", "| a |\n|---|\n| 1 |\n"):
        out.print(markdown(block))
    lines = [line.strip() for line in seen.getvalue().splitlines()]
    assert all(lines)
    assert lines[:3] == ["• one", "• two", "x = 1"]

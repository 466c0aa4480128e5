"""Rows and cells: what is drawn adds up, and small pictures show what there is most of."""

import pytest
from hypothesis import given, settings, strategies as st

from everlong.cli.maps.markup import axis_steps, history_picture
from everlong.cli.maps.rows import Row, State, cells_of, rows_of, segments_of, states_of, totals_of
from everlong.cli.terminal.tables import thousands
from everlong.core import Image, Message, Role, Text
from everlong.engine import map_tokens
from everlong.tokens import Counter
from tests.core.build import assistant, calls, result, system, user


@pytest.mark.parametrize(
    ("segments", "cells", "expected"),
    [
        ([("a", 1), ("b", 3)], 4, "abbb"),
        ([("a", 1), ("b", 5)], 2, "bb"),
        ([("a", 1), ("b", 1)], 6, "aaabbb"),
        ([("a", 0), ("b", 5)], 3, "bbb"),
        ([("a", 10), ("b", 1), ("a", 10)], 3, "aaa"),
        ([], 3, ""),
        ([("a", 0)], 3, ""),
        ([("a", 5)], 0, ""),
    ],
    ids=[
        "exact",
        "most of it",
        "finer than tokens",
        "empty piece",
        "too small to see",
        "nothing",
        "no tokens",
        "no room",
    ],
)
def test_a_cell_is_what_most_of_it_is(segments: list[tuple[str, int]], cells: int, expected: str) -> None:
    assert "".join(cells_of(segments, cells)) == expected


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 50)), max_size=12), st.integers(1, 40))
@settings(max_examples=150, deadline=None)
def test_there_are_as_many_cells_as_asked_and_shares_are_kept(segments: list[tuple[str, int]], cells: int) -> None:
    total = sum(size for _, size in segments)
    drawn = cells_of(segments, cells)
    assert len(drawn) == (cells if total else 0)
    assert set(drawn) <= {name for name, size in segments if size}
    for name, size in segments:
        if total and size * cells >= 2 * total:  # two cells wide: one of them is its own
            assert name in drawn


def test_segments_add_up_to_the_messages_and_are_told_apart_by_who_speaks() -> None:
    talk = (
        system("s"),
        user("u"),
        assistant("a", reasoning="r"),
        calls("1"),
        result("1"),
        Message(Role.USER, (Text("see"), Image(data="aGk=", media_type="image/png"))),
    )
    weights = map_tokens(talk, Counter("gpt-4o"))
    rows = rows_of(weights)
    assert [sum(size for _, size in row.segments) for row in rows] == [message.tokens for message in weights.messages]
    assert sum(totals_of(segments_of(rows)).values()) == weights.total
    assert [[name for name, _ in row.segments] for row in rows] == [
        ["system"],
        ["user"],
        ["reasoning", "assistant"],
        ["calls"],
        ["results"],
        ["user", "images"],
    ]
    assert rows[5].label == "user"


def test_what_is_trimmed_away_counts_as_gone() -> None:
    def row(state: State, tokens: int, after: int) -> Row:
        return Row(
            index=0, role=Role.USER, tokens=tokens, title="", category="user", segments=(), state=state, after=after
        )

    fates = states_of([row(State.STAYS, 5, 5), row(State.TRIMMED, 9, 4), row(State.GOES, 7, 0)])
    assert fates == [("stays", 5), ("trimmed", 4), ("goes", 5), ("goes", 7)]


@pytest.mark.parametrize(
    ("total", "steps"),
    [
        (52_885, [0, 10_000, 20_000, 30_000, 40_000, 50_000]),
        (4, [0, 1, 2, 3, 4]),
        (0, [0]),
        (1_250_000, [0, 500_000, 1_000_000]),
    ],
    ids=["thousands", "few", "none", "millions"],
)
def test_the_axis_has_round_figures(total: int, steps: list[int]) -> None:
    assert axis_steps(total) == steps


@pytest.mark.parametrize(
    ("tokens", "short"),
    [(0, "0"), (999, "999"), (1_500, "1.5k"), (12_345, "12k"), (1_500_000, "1.5M"), (2_000_000, "2M")],
)
def test_figures_in_short(tokens: int, short: str) -> None:
    assert thousands(tokens) == short


def test_the_picture_does_not_grow_with_the_conversation() -> None:
    def picture(messages: int) -> str:
        segments = [(("user", "results", "assistant")[n % 3], 1 + n * 7 % 90) for n in range(messages)]
        rounds = [(n // 3 + 1, sum(size for _, size in segments[:n])) for n in range(0, messages, 3)]
        return history_picture([segments], rounds, [], 0)

    assert len(picture(3_000)) < 60_000
    assert picture(3_000).count("<line") <= 300
    assert picture(3_000).count("<path") == 3

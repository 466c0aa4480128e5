"""Which figures of a table are believed."""

import pytest

from everlong.core import Json
from everlong.windows.entries import Entry, Prices, dollars, entry_of, tokens

FIGURES: list[tuple[str, Json, int | None]] = [
    ("an integer", 8_192, 8_192),
    ("a whole float", 8_192.0, 8_192),
    ("a text", " 8192 ", 8_192),
    ("zero", 0, None),
    ("negative", -1, None),
    ("less than one", 0.5, None),
    ("missing", None, None),
    ("a truth value", True, None),
    ("a placeholder", 99_999_999, None),
    ("the largest real one", 10_485_760, 10_485_760),
    ("infinite", float("inf"), None),
    ("not a number", float("nan"), None),
    ("words", "128k", None),
    ("digits of another script", "٨١٩٢", None),
    ("an endless text", "9" * 5_000, None),
    ("a list", [8_192], None),
]


@pytest.mark.parametrize(("value", "expected"), [case[1:] for case in FIGURES], ids=[case[0] for case in FIGURES])
def test_only_possible_token_counts_are_believed(value: Json, expected: int | None) -> None:
    assert tokens(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0, 0.0), (2.5, 2.5), (-1, None), (None, None), ("5", None), (float("nan"), None), (True, None)],
)
def test_only_possible_prices_are_believed(value: Json, expected: float | None) -> None:
    assert dollars(value) == expected


LIMITS: list[tuple[str, dict[str, Json], tuple[int | None, int | None, int | None]]] = [
    ("all three", {"context": 400_000, "input": 272_000, "output": 128_000}, (400_000, 272_000, 128_000)),
    (
        "a prompt as large as the window",
        {"context": 200_000, "input": 200_000, "output": 8_000},
        (200_000, None, 8_000),
    ),
    ("a prompt larger than the window", {"context": 272_000, "input": 922_000}, (272_000, None, None)),
    ("an answer larger than the window", {"context": 8_192, "output": 16_384}, (8_192, None, None)),
    ("an answer as large as the window", {"context": 262_144, "output": 262_144}, (262_144, None, 262_144)),
    ("an answer of one token", {"context": 8_192, "output": 1}, (8_192, None, None)),
    ("an answer without a window", {"output": 4_096}, (None, None, 4_096)),
    ("nothing", {}, (None, None, None)),
]


@pytest.mark.parametrize(("limits", "expected"), [case[1:] for case in LIMITS], ids=[case[0] for case in LIMITS])
def test_limits_that_contradict_each_other_are_left_out(
    limits: dict[str, Json], expected: tuple[int | None, int | None, int | None]
) -> None:
    entry = entry_of("p", "m", "models.dev", "2026-07-02", limits, {})
    assert (entry.context, entry.input, entry.output) == expected


def test_an_entry_tells_window_prices_and_claimant() -> None:
    entry = entry_of("p", "m", "litellm", "2026-07-02", {"input": 8_192}, {"input": 1, "cache_write": 1.25})
    assert entry.window == 8_192
    assert entry.prices == Prices(input=1.0, cache_write=1.25)
    assert entry.claimant == "p (litellm)"
    assert entry._replace(inferred=True).claimant == "p (litellm, inferred)"
    assert Entry("p", "m", "litellm", "").window == 0

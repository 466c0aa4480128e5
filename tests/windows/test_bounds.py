"""Bounds of a limit that nobody names."""

import json

import pytest
from hypothesis import given, strategies as st

from everlong.windows.bounds import Bounds


@pytest.mark.parametrize(
    ("bounds", "limit"),
    [
        (Bounds(), None),
        (Bounds().after_refusal(10_000), 6_000),
        (Bounds().after_refusal(10_000, passed=9_500), 9_500),
        (Bounds().after_refusal(10_000, fixed=5_000), 8_000),
        (Bounds().after_refusal(10_000).after_refusal(5_900), 2_360),
        (Bounds().after_refusal(10_000, passed=9_500).after_refusal(9_400), 3_760),
        (Bounds().after_refusal(10_000).after_pass(7_000), 7_000),
        (Bounds().after_refusal(10_000).after_pass(12_000), 12_000),
        (Bounds().after_refusal(10_000).after_pass(100), 6_000),
    ],
    ids=[
        "nothing",
        "refused",
        "passed",
        "fixed",
        "again",
        "what passed is refused",
        "passes",
        "passes more",
        "no news",
    ],
)
def test_what_is_sent_next(bounds: Bounds, limit: int | None) -> None:
    assert bounds.limit == limit


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 1 << 40), st.integers(0, 1 << 40)), max_size=12))
def test_a_limit_lies_between_what_passed_and_what_was_refused_and_survives_the_store(
    told: list[tuple[bool, int, int]],
) -> None:
    bounds = Bounds()
    for refused, size, fixed in told:
        bounds = bounds.after_refusal(size, fixed=fixed) if refused else bounds.after_pass(size)
        assert Bounds.decoded(json.loads(json.dumps(bounds.encoded()))) == bounds
        if bounds.refused is not None and bounds.limit is not None and bounds.refused > 1:
            assert (bounds.passed or 0) <= bounds.limit < bounds.refused
            assert not refused or bounds.limit < size or size == 1


@pytest.mark.parametrize("kept", [None, 5, "x", [], {}, {"refused": -1}, {"refused": True}, {"refused": "9"}])
def test_what_cannot_be_read_is_learned_again(kept: object) -> None:
    assert Bounds.decoded(kept) == Bounds()  # type: ignore[arg-type]

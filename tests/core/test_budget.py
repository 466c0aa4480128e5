"""Budgets: positive, mostly the messages', and honest about what was asked for."""

import pytest
from hypothesis import given, settings, strategies as st

from everlong.core.budget import Budget, clamp_reply, reply_reserve

WINDOWS = (2_048, 4_096, 8_192, 16_384, 131_072, 200_000, 524_288, 1_000_000)
OUTPUTS = (None, 0, 1, 4_096, 16_384, 65_536, 524_288)


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("max_output", OUTPUTS)
def test_C6_unasked_reserve_leaves_most_of_the_window(window: int, max_output: int | None) -> None:
    budget = Budget.of(window, max_output=max_output)
    assert budget.available > 0
    assert budget.available >= window // 2


@given(window=st.integers(512, 2_000_000), requested=st.integers(0, 3_000_000), tools=st.integers(0, 50_000))
@settings(max_examples=200, deadline=None)
def test_C6_what_was_asked_for_is_reserved(window: int, requested: int, tools: int) -> None:
    budget = Budget.of(window, requested=requested, tools=tools)
    assert budget.reply == min(requested, max(0, window - tools) // 2)
    assert 0 <= budget.target_tokens <= budget.threshold_tokens <= budget.available <= window - budget.reply


@given(requested=st.integers(1, 10**6), window=st.integers(0, 10**6), used=st.integers(0, 2 * 10**6))
@settings(max_examples=200, deadline=None)
def test_C6_max_tokens_is_clamped_to_the_room_left(requested: int, window: int, used: int) -> None:
    clamped = clamp_reply(requested, window=window, used=used)
    assert 1 <= clamped <= requested
    assert clamped + used <= window or clamped == 1


def test_C6_the_reserve_always_changes_the_mark() -> None:
    thresholds = [Budget(window=100_000, reply=reply).threshold_tokens for reply in (1_000, 4_096, 20_000)]
    assert thresholds == sorted(set(thresholds), reverse=True)


@pytest.mark.parametrize(
    ("window", "requested", "max_output", "reserve"),
    [
        (200_000, None, 64_000, 4_096),
        (200_000, 32_000, 8_192, 32_000),
        (8_192, None, None, 2_048),
        (8_192, None, 512, 512),
        (4_096, 9_999, None, 4_096),
    ],
)
def test_reply_reserve(window: int, requested: int | None, max_output: int | None, reserve: int) -> None:
    assert reply_reserve(window, requested=requested, max_output=max_output) == reserve


@pytest.mark.parametrize(
    "wrong", [{"target": 0.9, "threshold": 0.5}, {"threshold": 1.2}, {"target": 0.0}, {"reply": -1}]
)
def test_impossible_budgets_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"shares|negative"):
        Budget(window=10_000, **wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(("max_output", "reserve"), [(None, 4_096), (0, 4_096), (-1, 4_096), (1, 1), (8_192, 4_096)])
def test_a_models_largest_output_only_lowers_the_reserve(max_output: int | None, reserve: int) -> None:
    assert reply_reserve(128_000, requested=None, max_output=max_output) == reserve

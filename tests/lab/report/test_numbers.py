"""Figures as the lab writes them."""

import pytest

from everlong.lab.report.numbers import tokens_short


@pytest.mark.parametrize(
    ("tokens", "text"), [(500, "500"), (8_000, "8k"), (1_500, "1.5k"), (128_000, "128k"), (1_000_000, "1M")]
)
def test_budgets_are_short(tokens: int, text: str) -> None:
    assert tokens_short(tokens) == text

"""Estimating Chinese, Japanese and Korean, as the documents ask for it."""

import pytest

from everlong.tokens import count_exact, estimate
from tests.tokens.test_estimates import (
    CHINESE_CHAT,
    CHINESE_TECHNICAL,
    JAPANESE_CHAT,
    JAPANESE_TECHNICAL,
    KOREAN_CHAT,
    KOREAN_TECHNICAL,
    MIXED,
)

CHINESE = {"chat": CHINESE_CHAT, "technical": CHINESE_TECHNICAL, "with English": MIXED}
CJK = {
    "Chinese, chat": CHINESE_CHAT,
    "Chinese, technical": CHINESE_TECHNICAL,
    "Japanese, chat": JAPANESE_CHAT,
    "Japanese, technical": JAPANESE_TECHNICAL,
    "Korean, chat": KOREAN_CHAT,
    "Korean, technical": KOREAN_TECHNICAL,
}


def error(text: str, vocabulary: str) -> float:
    return abs(estimate(text, vocabulary) / count_exact(vocabulary, text) - 1)


@pytest.mark.parametrize("kind", CHINESE)
def test_N1_1_2_chinese_is_within_a_fifth_of_cl100k_line_by_line(kind: str) -> None:
    lines = [line for line in CHINESE[kind].splitlines() if len(line) > 40]
    assert lines
    assert max(error(line, "cl100k_base") for line in lines) < 0.20


@pytest.mark.parametrize("vocabulary", ["o200k_base", "cl100k_base", "qwen3", "deepseek_v3", "llama3"])
@pytest.mark.parametrize("kind", CJK)
def test_N3_3_cjk_is_within_fifteen_percent(kind: str, vocabulary: str) -> None:
    assert error(CJK[kind], vocabulary) < 0.15

"""B1, B6, C2, C5 and F4: refusals that were misread, usage that was misread, overflows that nobody told of."""

import pytest

from everlong.core import Json
from everlong.errors import ContextOverflow, MalformedHistory, MediaRefused
from everlong.wire import Usage, as_error, classify, plausible, read_usage, silent_overflow, truncated_window
from everlong.wire.refusals.overflow import SIGNS
from everlong.wire.refusals.shape_signs import SHAPE_SIGNS
from everlong.wire.refusals.signs import Kind
from everlong.wire.usage import SilentOverflow

# --- F4 ---------------------------------------------------------------------------------------

WITH_LIMIT = [sign for sign in SIGNS if sign.limit is not None]


def test_F4_the_corpus_is_large_enough() -> None:
    assert len(SIGNS) >= 70
    assert len(WITH_LIMIT) >= 40


@pytest.mark.parametrize("sign", WITH_LIMIT, ids=lambda sign: f"{sign.provider}: {sign.sample[:30]}")
@pytest.mark.parametrize("status", [None, 400, 413, 422, 500])
def test_F4_the_limit_is_read_whatever_the_status(sign, status: int | None) -> None:  # type: ignore[no-untyped-def]
    refusal = classify({"error": {"message": sign.sample}}, status=status)
    assert (refusal.kind, refusal.limit) == (Kind.OVERFLOW, sign.limit)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("ValidationException: The input is too long for the model", id="bedrock"),
        pytest.param("ollama error: context length exceeded, too many tokens", id="ollama"),
        pytest.param("total tokens exceeds the model's maximum limit of 4096", id="cohere"),
        pytest.param('{"error":{"type":"context_overflow"}}', id="with an underscore"),
        pytest.param("Compaction failed: prompt is too long", id="while compacting"),
    ],
)
def test_F4_wordings_that_were_missed(text: str) -> None:
    assert classify(text).kind is Kind.OVERFLOW


def test_F4_a_window_that_filled_while_answering_is_noticed() -> None:
    usage = read_usage({"usage": {"prompt_tokens": 7_900, "completion_tokens": 292, "total_tokens": 8_192}})
    assert usage is not None
    assert silent_overflow(usage, 8_192, finish="length") is SilentOverflow.REPLY_CUT


def test_F4_a_server_that_takes_too_much_is_noticed() -> None:
    usage = read_usage({"usage": {"prompt_tokens": 250_000, "completion_tokens": 12}})
    assert usage is not None
    assert silent_overflow(usage, 200_000, finish="stop") is SilentOverflow.ABOVE_WINDOW


# --- C2 ---------------------------------------------------------------------------------------


def test_C2_a_server_that_drops_the_head_is_noticed_and_its_window_learned() -> None:
    reply = {"model": "llama3", "prompt_eval_count": 4096, "eval_count": 80, "done_reason": "stop"}
    usage = read_usage(reply)
    assert usage is not None
    assert silent_overflow(usage, 131_072, finish="stop") is None
    assert truncated_window(usage, estimate=30_000) == 4_096


def test_C2_the_window_in_an_overflow_error_is_learned() -> None:
    error = as_error(classify("This model's maximum context length is 32768 tokens.", status=400))
    assert isinstance(error, ContextOverflow)
    assert (error.limit, error.ceiling) == (32_768, False)


# --- C5 ---------------------------------------------------------------------------------------

SAME_REQUEST: dict[str, Json] = {
    "openai": {"prompt_tokens": 38_000, "completion_tokens": 9, "prompt_tokens_details": {"cached_tokens": 37_000}},
    "responses": {"input_tokens": 38_000, "output_tokens": 9, "input_tokens_details": {"cached_tokens": 37_000}},
    "anthropic": {"input_tokens": 1_000, "output_tokens": 9, "cache_read_input_tokens": 37_000},
    "gemini": {"promptTokenCount": 38_000, "candidatesTokenCount": 9, "cachedContentTokenCount": 37_000},
    "bedrock": {"inputTokens": 1_000, "outputTokens": 9, "totalTokens": 38_009, "cacheReadInputTokens": 37_000},
    "deepseek": {"completion_tokens": 9, "prompt_cache_hit_tokens": 37_000, "prompt_cache_miss_tokens": 1_000},
    "llama.cpp timings": {"prompt_n": 1_000, "cache_n": 37_000, "predicted_n": 9},
    "llama.cpp usage": {"prompt_tokens": 38_000, "completion_tokens": 9, "prompt_n": 1_000, "cache_n": 37_000},
    "minimax": {
        "total_tokens": 38_009,
        "total_characters": 0,
        "prompt_tokens": 38_000,
        "completion_tokens": 9,
        "prompt_tokens_details": {"cached_tokens": 37_000},
    },
    "minimax as anthropic": {"input_tokens": 1_000, "output_tokens": 9, "cache_read_input_tokens": 37_000},
    "litellm": {
        "prompt_tokens": 38_000,
        "completion_tokens": 9,
        "total_tokens": 38_009,
        "prompt_tokens_details": {"cached_tokens": 37_000},
        "cache_read_input_tokens": 37_000,
        "cache_creation_input_tokens": 0,
    },
    "cohere": {"tokens": {"input_tokens": 38_000, "output_tokens": 9}, "cached_tokens": 37_000},
    "pi": {"input": 1_000, "output": 9, "cacheRead": 37_000, "cacheWrite": 0},
}


@pytest.mark.parametrize("style", SAME_REQUEST)
def test_C5_the_same_request_has_the_same_size_in_every_style(style: str) -> None:
    usage = read_usage({"usage": SAME_REQUEST[style]})
    assert usage == Usage(prompt=38_000, cached=37_000, output=9)


@pytest.mark.parametrize(
    ("prompt", "window", "estimate"),
    [
        pytest.param(1_364_156, 1_000_000, None, id="above the window"),
        pytest.param(931_000, 1_000_000, 164_000, id="cached tokens of twelve calls"),
    ],
)
def test_C5_sums_over_a_turn_are_rejected(prompt: int, window: int, estimate: int | None) -> None:
    assert not plausible(Usage(prompt=prompt), window, estimate=estimate)


# --- B1, B6 -----------------------------------------------------------------------------------

MALFORMED = [sign for sign in SHAPE_SIGNS if sign.kind is Kind.MALFORMED_HISTORY]
MEDIA = [sign for sign in SHAPE_SIGNS if sign.kind is Kind.MEDIA]


@pytest.mark.parametrize("sign", MALFORMED, ids=lambda sign: f"{sign.provider}: {sign.sample[:30]}")
def test_B1_a_broken_history_is_told_from_a_long_one(sign) -> None:  # type: ignore[no-untyped-def]
    body = {"type": "error", "error": {"type": "invalid_request_error", "message": sign.sample}, "request_id": "req_1"}
    error = as_error(classify(body, status=400))
    assert type(error) is MalformedHistory
    assert str(error) == sign.sample


@pytest.mark.parametrize("sign", MEDIA, ids=lambda sign: f"{sign.provider}: {sign.sample[:30]}")
def test_B6_refused_pictures_are_told_from_a_long_history(sign) -> None:  # type: ignore[no-untyped-def]
    assert type(as_error(classify({"error": {"message": sign.sample}}, status=400))) is MediaRefused

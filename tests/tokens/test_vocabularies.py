"""Which vocabulary a model's name leads to."""

import pytest

from everlong.tokens.exact import ROWS, UNKNOWN, vocabulary_of

NAMES = {
    "gpt-4o": "o200k_base",
    "gpt-4o-mini-2024-07-18": "o200k_base",
    "openrouter/openai/gpt-5.1": "o200k_base",
    "o3-mini": "o200k_base",
    "gpt-4": "cl100k_base",
    "gpt-4-turbo": "cl100k_base",
    "gpt-3.5-turbo": "cl100k_base",
    "anthropic/claude-opus-4-5": "claude",
    "us.anthropic.claude-sonnet-4-5-20250929-v1:0": "claude",
    "claude-3-5-haiku@20241022": "claude",
    "gemini-2.5-pro": "gemma3",
    "gemini-3.5-flash": "gemma4",
    "Qwen/Qwen3-235B-A22B": "qwen3",
    "qwen2.5-coder:7b": "qwen3",
    "deepseek-chat": "deepseek_v3",
    "deepseek-ai/DeepSeek-R1-Distill-Llama-70B": "llama3",
    "moonshotai/kimi-k2": "kimi_k2",
    "zai-org/GLM-4.6": "glm4",
    "glm-4v": "glm4",
    "llama3.1:8b": "llama3",
    "meta-llama/Llama-3.3-70B-Instruct": "llama3",
    "llama-2-7b-chat": "llama2",
    "mistral-large-latest": "mistral_v3",
    "mixtral-8x7b-instruct": "mistral_v1",
    "phi-4": "phi4",
}


@pytest.mark.parametrize("model", NAMES)
def test_the_model_decides_the_vocabulary(model: str) -> None:
    assert vocabulary_of(model).name == NAMES[model]


@pytest.mark.parametrize("model", ["", "minimax-m2", "my-finetune", "o100", "grok-4"])
def test_unknown_models_are_estimated(model: str) -> None:
    assert vocabulary_of(model) is UNKNOWN


def test_only_estimates_are_uncertain() -> None:
    assert all((row.spread == 0) == row.exact for _, row in ROWS)

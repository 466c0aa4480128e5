"""How names are spelt."""

import pytest
from hypothesis import given, settings, strategies as st

from everlong.windows.names import is_chat, key_of, prefixes, spelling_of, tails, unmarked
from everlong.windows.providers import canonical, makers_of

KEYS = [
    ("claude-opus-4-5", "claude-opus-4-5"),
    ("anthropic/Claude-Opus-4.5", "claude-opus-4-5"),
    ("us.anthropic.claude-opus-4-5-20251101-v1:0", "claude-opus-4-5-20251101-v1:0"),
    ("qwen.qwen3-32b-v1:0", "qwen3-32b-v1:0"),
    ("claude-opus-4-5@20251101", "claude-opus-4-5-20251101"),
    ("gpt-4.1", "gpt-4-1"),
    ("llama_3_1 8b", "llama-3-1-8b"),
    ("llama3.1:8b", "llama3-1:8b"),
    ("@cf/meta/llama-3.1-8b", "llama-3-1-8b"),
    ("ft:gpt-4o-mini:org::id", "gpt-4o-mini:org::id"),
    ("openai/", "openai"),
    ("  ", ""),
]


@pytest.mark.parametrize(("model", "key"), KEYS, ids=[case[0] for case in KEYS])
def test_key_of(model: str, key: str) -> None:
    assert key_of(model) == key


UNMARKED = [
    ("claude-opus-4-5-20251101-v1:0", "claude-opus-4-5"),
    ("gpt-4o-2024-08-06", "gpt-4o"),
    ("deepseek-r1:free", "deepseek-r1"),
    ("claude-sonnet-4-5[1m]", "claude-sonnet-4-5"),
    ("claude-opus-4-7-default", "claude-opus-4-7"),
    ("deepseek-v3", "deepseek-v3"),
    ("kimi-k2-0905", "kimi-k2-0905"),
    ("llama3-1:8b", "llama3-1:8b"),
    ("gpt-4o", "gpt-4o"),
]


@pytest.mark.parametrize(("key", "plain"), UNMARKED, ids=[case[0] for case in UNMARKED])
def test_release_marks_go_and_versions_stay(key: str, plain: str) -> None:
    assert unmarked(key) == plain


def test_prefixes_end_with_a_word_longest_first_and_are_never_one_plain_word() -> None:
    assert list(prefixes("gpt-4o-mini-high")) == ["gpt-4o-mini", "gpt-4o"]
    assert list(prefixes("llama3-1:8b")) == ["llama3-1", "llama3"]
    assert list(prefixes("gpt-4")) == []
    assert list(prefixes("mistral-large")) == []


def test_tails_drop_leading_words() -> None:
    assert list(tails("my-gpt-4o")) == ["gpt-4o", "4o"]


SPELLINGS = [
    ("claude-opus-4-5", "", "", ()),
    ("OpenRouter/deepseek/deepseek-chat", "", "openrouter", ("openrouter", "deepseek")),
    ("deepseek/deepseek-chat", "OpenRouter", "openrouter", ("deepseek",)),
    ("bedrock/anthropic.claude-opus-4-5-v1:0", "", "amazon-bedrock", ("bedrock",)),
    ("us.anthropic.claude-opus-4-5-20251101-v1:0", "", "amazon-bedrock", ()),
    ("gemini/gemini-2.5-pro", "", "google", ("gemini",)),
    ("", "", "", ()),
]


@pytest.mark.parametrize(("model", "provider", "named", "path"), SPELLINGS, ids=[case[0] or "-" for case in SPELLINGS])
def test_spelling_of(model: str, provider: str, named: str, path: tuple[str, ...]) -> None:
    spelling = spelling_of(model, provider)
    assert (spelling.provider, spelling.path) == (named, path)


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("vertex_ai-anthropic_models", "google-vertex"),
        ("Azure OpenAI", "azure"),
        ("together_ai", "togetherai"),
        ("dashscope", "alibaba"),
        ("my endpoint", "my-endpoint"),
        ("", ""),
    ],
)
def test_canonical(written: str, name: str) -> None:
    assert canonical(written) == name


def test_makers_of() -> None:
    assert makers_of("qwen3-max") == ("alibaba", "alibaba-cn")
    assert makers_of("hermes-4-70b") == ()


@pytest.mark.parametrize("model", ["text-embedding-3-large", "whisper-1", "tts-1-hd", "imagen-4", "qwen3-reranker-4b"])
def test_what_does_not_chat_is_told_apart(model: str) -> None:
    assert not is_chat(model)


@pytest.mark.parametrize("model", ["gpt-4o", "gemini-2.5-flash-image", "glm-4.5v", "llama-3.2-11b-vision", "inkling"])
def test_what_chats_stays(model: str) -> None:
    assert is_chat(model)


@given(
    st.lists(st.sampled_from(("gpt", "4", "o", "us", "anthropic", "20251101", "free", "/", ":", "-", ".", "@", " ")))
)
@settings(max_examples=200, deadline=None)
def test_keys_are_stable_and_prefixes_shorter(pieces: list[str]) -> None:
    text = "".join(pieces)
    key = key_of(text)
    assert key_of(text.upper()) == key
    assert "/" not in key
    lengths = [len(prefix) for prefix in prefixes(key)]
    assert lengths == sorted(lengths, reverse=True)
    assert all(key.startswith(prefix) and len(prefix) < len(key) for prefix in prefixes(key))
    assert key.startswith(unmarked(key))

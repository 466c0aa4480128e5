"""What servers say of themselves, each in its real shape."""

from dataclasses import dataclass

import pytest
from hypothesis import given, settings, strategies as st

from everlong.core import Json
from everlong.windows.served import (
    ROW_FIELDS,
    Served,
    listing_window,
    llama_cpp_window,
    ollama_running_window,
    ollama_show_window,
    row_window,
)


@dataclass(frozen=True)
class Case:
    id: str
    body: Json
    expected: Served | None


PROPS: list[Case] = [
    Case(
        "four slots of 32k: the figure is one slot's",
        {
            "default_generation_settings": {
                "id": 0,
                "n_ctx": 8_192,
                "is_processing": False,
                "params": {"n_predict": -1},
            },
            "total_slots": 4,
            "model_path": "models/assistant-q4.gguf",
        },
        Served(8_192),
    ),
    Case("asleep: zero", {"default_generation_settings": {"n_ctx": 0}, "is_sleeping": True}, None),
    Case("an old server", {"total_slots": 1}, None),
    Case("an error", {"error": {"code": 503, "message": "Loading model"}}, None),
    Case("not an object", ["n_ctx", 8_192], None),
]


@pytest.mark.parametrize("case", PROPS, ids=lambda case: case.id)
def test_llama_cpp_props(case: Case) -> None:
    assert llama_cpp_window(case.body) == case.expected


INFO: Json = {"general.architecture": "llama", "llama.block_count": 32, "llama.context_length": 131_072}
SHOW: list[Case] = [
    Case(
        "the model file sets num_ctx",
        {
            "parameters": 'num_ctx                        16384\nstop                           "<|end|>"',
            "model_info": INFO,
        },
        Served(16_384),
    ),
    Case("num_ctx set twice: the last counts", {"parameters": "num_ctx 4096\nnum_ctx 8192"}, Served(8_192)),
    Case("no parameters: only what it could take", {"model_info": INFO}, Served(131_072, in_force=False)),
    Case("other parameters", {"parameters": "temperature 0.7", "model_info": INFO}, Served(131_072, in_force=False)),
    Case("a parameter like it", {"parameters": "my_num_ctx 9", "model_info": {}}, None),
    Case("nothing said", {"details": {"family": "llama"}}, None),
    Case("an error", {"error": "model 'x' not found"}, None),
]


@pytest.mark.parametrize("case", SHOW, ids=lambda case: case.id)
def test_ollama_show(case: Case) -> None:
    assert ollama_show_window(case.body) == case.expected


RUNNING: Json = {
    "models": [
        {"name": "qwen3:8b", "model": "qwen3:8b", "size": 6_591_830_464, "context_length": 32_768},
        {"name": "llama3.1:latest", "model": "llama3.1:latest", "size": 1, "context_length": 4_096},
    ]
}


@pytest.mark.parametrize(
    ("model", "expected"),
    [("llama3.1", Served(4_096)), ("Qwen3:8b", Served(32_768)), ("qwen3", None), ("gemma3", None)],
)
def test_ollama_running(model: str, expected: Served | None) -> None:
    assert ollama_running_window(RUNNING, model) == expected


ROWS: list[Case] = [
    Case(
        "vLLM",
        {"id": "m", "object": "model", "owned_by": "vllm", "root": "org/m", "max_model_len": 32_768},
        Served(32_768),
    ),
    Case("SGLang", {"id": "m", "owned_by": "sglang", "root": "m", "max_model_len": 40_960}, Served(40_960)),
    Case(
        "llama.cpp",
        {"id": "m.gguf", "owned_by": "llamacpp", "meta": {"n_ctx_train": 131_072, "n_ctx": 16_384, "n_vocab": 9}},
        Served(16_384),
    ),
    Case("llama.cpp, as trained", {"id": "m.gguf", "meta": {"n_ctx_train": 131_072}}, Served(131_072, in_force=False)),
    Case(
        "LM Studio, loaded",
        {"id": "m", "type": "llm", "state": "loaded", "max_context_length": 131_072, "loaded_context_length": 8_192},
        Served(8_192),
    ),
    Case(
        "LM Studio, not loaded",
        {"id": "m", "type": "llm", "state": "not-loaded", "max_context_length": 131_072},
        Served(131_072, in_force=False),
    ),
    Case(
        "LM Studio, instances",
        {
            "type": "llm",
            "key": "org/m",
            "loaded_instances": [{"id": "org/m", "config": {"context_length": 4_096, "eval_batch_size": 512}}],
            "max_context_length": 131_072,
        },
        Served(4_096),
    ),
    Case(
        "LM Studio, no instance",
        {"type": "llm", "key": "org/m", "loaded_instances": [], "max_context_length": 131_072},
        Served(131_072, in_force=False),
    ),
    Case(
        "OpenRouter",
        {
            "id": "org/m",
            "canonical_slug": "org/m-2026",
            "context_length": 163_840,
            "top_provider": {"context_length": 64_000, "max_completion_tokens": None, "is_moderated": False},
        },
        Served(64_000),
    ),
    Case(
        "OpenRouter, not routed",
        {"id": "m", "context_length": 9_000, "top_provider": {"context_length": None}},
        Served(9_000),
    ),
    Case("Groq", {"id": "m", "owned_by": "Meta", "active": True, "context_window": 131_072}, Served(131_072)),
    Case("Anthropic", {"type": "model", "id": "m", "max_input_tokens": 200_000, "max_tokens": 64_000}, Served(200_000)),
    Case("Google", {"name": "models/m", "inputTokenLimit": 1_048_576, "outputTokenLimit": 65_536}, Served(1_048_576)),
    Case(
        "GitHub Copilot",
        {"id": "m", "capabilities": {"limits": {"max_context_window_tokens": 128_000, "max_prompt_tokens": 64_000}}},
        Served(128_000),
    ),
    Case("Mistral", {"id": "m", "max_context_length": 32_768}, Served(32_768, in_force=False)),
    Case("OpenAI", {"id": "m", "object": "model", "created": 1, "owned_by": "openai"}, None),
    Case("zero", {"id": "m", "max_model_len": 0}, None),
    Case("a text", {"id": "m", "max_model_len": "32768"}, Served(32_768)),
    Case("not an object", "m", None),
]


@pytest.mark.parametrize("case", ROWS, ids=lambda case: case.id)
def test_row(case: Case) -> None:
    assert row_window(case.body) == case.expected


def test_every_field_has_a_sample() -> None:
    def says(body: Json, path: tuple[str, ...]) -> bool:
        for name in path:
            body = body.get(name) if isinstance(body, dict) else None
        return body is not None

    assert [path for path, _, _ in ROW_FIELDS if not any(says(case.body, path) for case in ROWS)] == []


TWO: Json = {"object": "list", "data": [{"id": "org/A", "max_model_len": 1_000}, {"id": "b", "max_model_len": 2_000}]}
LISTINGS: list[tuple[str, Json, str, Served | None]] = [
    ("by id", TWO, "b", Served(2_000)),
    ("case does not matter", TWO, "ORG/a", Served(1_000)),
    ("not listed", TWO, "c", None),
    (
        "by the path it was started with",
        {"data": [{"id": "x", "root": "org/m", "max_model_len": 9}, {"id": "y"}]},
        "org/m",
        Served(9),
    ),
    (
        "a single model answers to any name",
        {"data": [{"id": "m.gguf", "meta": {"n_ctx": 512}}]},
        "my-model",
        Served(512),
    ),
    (
        "under models",
        {"models": [{"key": "m", "loaded_instances": [], "max_context_length": 7}]},
        "m",
        Served(7, in_force=False),
    ),
    ("Google's names", {"models": [{"name": "models/m", "inputTokenLimit": 8}, {"name": "models/n"}]}, "m", Served(8)),
    ("bare", [{"id": "m", "context_length": 5}, "noise"], "m", Served(5)),
    ("empty", {"data": []}, "m", None),
    ("an error", {"error": {"message": "unauthorized"}}, "m", None),
    ("nothing", None, "m", None),
]


@pytest.mark.parametrize(
    ("body", "model", "expected"), [case[1:] for case in LISTINGS], ids=[case[0] for case in LISTINGS]
)
def test_listing(body: Json, model: str, expected: Served | None) -> None:
    assert listing_window(body, model) == expected


SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-5, 10_000), st.floats(), st.sampled_from(("", "x", "8192")))
KEYS = st.sampled_from(
    (
        "data",
        "models",
        "id",
        "meta",
        "n_ctx",
        "context_length",
        "loaded_instances",
        "config",
        "parameters",
        "model_info",
    )
)
BODIES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=8,
)


@given(BODIES)
@settings(max_examples=200, deadline=None)
def test_whatever_a_server_sends_is_a_possible_window_or_nothing(body: Json) -> None:
    answers = (
        llama_cpp_window(body),
        ollama_show_window(body),
        ollama_running_window(body, "x"),
        listing_window(body, "x"),
        row_window(body),
    )
    assert all(answer is None or answer.context > 0 for answer in answers)

"""Wrong windows that other programs had, and the ones local servers hide."""

import pytest

from everlong.core import Budget, Json
from everlong.windows import (
    Registry,
    Served,
    bundled,
    listing_window,
    llama_cpp_window,
    ollama_running_window,
    ollama_show_window,
    window,
)
from everlong.windows.sources.models_dev import parse_models_dev

SOURCES: list[tuple[str, str, dict[str, int], int, str]] = [
    ("the user knows best", "deepseek-v4-flash", {"override": 32_768, "learned": 9, "served": 9}, 32_768, "user"),
    ("an overflow told the truth", "deepseek-v4-flash", {"learned": 65_536, "served": 131_072}, 65_536, "learned"),
    ("the server says", "deepseek-v4-flash", {"served": 131_072}, 131_072, "served"),
    ("the tables", "deepseek-v4-flash", {}, 1_000_000, "registry"),
    ("nobody", "some-model-nobody-lists", {}, 128_000, "default"),
]


@pytest.mark.parametrize(("model", "given", "context", "source"), [c[1:] for c in SOURCES], ids=[c[0] for c in SOURCES])
def test_C1_the_source_is_ranked_and_shown(model: str, given: dict[str, int], context: int, source: str) -> None:
    answer = window(model, **given)  # type: ignore[arg-type]
    assert (answer.context, answer.source) == (context, source)


@pytest.mark.parametrize("provider", ["my-company", "vllm", "ollama", "custom", "http://10.0.0.7:8000"])
def test_C1_a_custom_endpoint_does_not_take_the_hosted_figure(provider: str) -> None:
    answer = window("deepseek-v4-flash", provider=provider)
    assert (answer.context, answer.source, answer.known, answer.matched) == (128_000, "default", False, "")
    assert ("deepseek (models.dev)", 1_000_000) in answer.conflicts


def test_C1_a_custom_endpoint_in_the_name_counts_too() -> None:
    assert not window("my-company/deepseek-v4-flash").known


def test_C1_a_custom_endpoint_is_not_given_more_than_the_model_takes_anywhere() -> None:
    answer = window("gpt-4", provider="my-company")
    assert (answer.context, answer.known) == (8_192, False)


def test_C1_a_custom_endpoint_listens_to_its_user_and_its_server() -> None:
    assert window("deepseek-v4-flash", provider="my-company", override=32_768).context == 32_768
    assert window("deepseek-v4-flash", provider="my-company", served=65_536).source == "served"


def test_C1_a_reseller_has_its_own_figure() -> None:
    assert window("deepseek-chat", provider="openrouter").context == 128_000
    assert window("deepseek-chat", provider="deepseek").context == 1_000_000


@pytest.mark.parametrize("figure", [0, -1, None])
def test_C1_figures_that_say_nothing_are_not_taken_for_windows(figure: int | None) -> None:
    assert window("gpt-4o", learned=figure, served=figure).source == "registry"
    body: Json = {"openai": {"models": {"gpt-9": {"limit": {"context": figure, "output": figure}}}}}
    answer = window("gpt-9", registry=parse_models_dev(body, "2026-07-02"))
    assert (answer.context, answer.known, answer.output) == (128_000, False, None)


def test_C1_a_16k_model_without_an_output_limit_has_a_usable_budget() -> None:
    body: Json = {"openai": {"models": {"gpt-9": {"limit": {"context": 16_384}}}}}
    answer = window("gpt-9", registry=parse_models_dev(body, "2026-07-02"))
    assert answer.output is None
    assert Budget.of(answer.context, max_output=answer.output).available >= answer.context // 2


def test_C6_no_listed_model_is_left_without_room() -> None:
    registry: Registry = bundled()
    for entry in registry:
        answer = window(entry.id, provider=entry.provider, registry=registry)
        budget = Budget.of(answer.context, max_output=answer.output)
        assert budget.available >= answer.context // 2, answer
        assert budget.reply >= min(256, answer.context // 4), answer


SERVERS: list[tuple[str, Served | None, int]] = [
    (
        "llama.cpp, per slot",
        llama_cpp_window({"default_generation_settings": {"n_ctx": 4_096}, "total_slots": 4}),
        4_096,
    ),
    (
        "Ollama, model file",
        ollama_show_window({"parameters": "num_ctx 4096", "model_info": {"qwen3.context_length": 40_960}}),
        4_096,
    ),
    (
        "Ollama, loaded",
        ollama_running_window({"models": [{"name": "qwen3:8b", "context_length": 4_096}]}, "qwen3:8b"),
        4_096,
    ),
    ("vLLM", listing_window({"data": [{"id": "qwen3", "max_model_len": 32_768}]}, "qwen3"), 32_768),
    (
        "LM Studio",
        listing_window({"data": [{"id": "q", "max_context_length": 131_072, "loaded_context_length": 8_192}]}, "q"),
        8_192,
    ),
]


@pytest.mark.parametrize(("served", "context"), [case[1:] for case in SERVERS], ids=[case[0] for case in SERVERS])
def test_C2_the_window_a_local_server_runs_with_is_read(served: Served | None, context: int) -> None:
    assert served == Served(context, in_force=True)
    assert window("qwen3:8b", provider="local", served=context).source == "served"


def test_C2_what_the_model_could_take_is_not_taken_for_what_the_server_gives() -> None:
    show = ollama_show_window({"parameters": "temperature 0.6", "model_info": {"qwen3.context_length": 40_960}})
    assert show == Served(40_960, in_force=False)

"""What the documents ask of the model registry, on the bundled snapshot."""

import pytest

from everlong.windows import bundled, window

#: The figures of the snapshot of 2026-07-02; they change with it. Window and largest answer, in tokens.
FAMILIES: dict[str, list[tuple[str, int, int | None]]] = {
    "Claude": [
        ("claude-opus-4-5", 200_000, 64_000),
        ("claude-sonnet-4-5", 200_000, 64_000),
        ("claude-haiku-4-5", 200_000, 64_000),
        ("claude-opus-4-8", 1_000_000, 128_000),
        ("claude-sonnet-5", 1_000_000, 128_000),
        ("claude-3-5-sonnet-20241022", 200_000, 8_192),
    ],
    "GPT": [
        ("gpt-4", 8_192, 8_192),
        ("gpt-4o", 128_000, 16_384),
        ("gpt-4o-mini", 128_000, 16_384),
        ("gpt-4.1", 1_047_576, 32_768),
        ("gpt-5", 400_000, 128_000),
        ("gpt-5.5", 1_050_000, 128_000),
        ("o3", 200_000, 100_000),
    ],
    "DeepSeek": [
        ("deepseek-chat", 1_000_000, 384_000),
        ("deepseek-reasoner", 1_000_000, 384_000),
        ("deepseek-v4-flash", 1_000_000, 384_000),
        ("deepseek-v4-pro", 1_000_000, 384_000),
    ],
    "Gemini": [
        ("gemini-2.5-pro", 1_048_576, 65_536),
        ("gemini-2.5-flash", 1_048_576, 65_536),
        ("gemini-3-pro-preview", 1_048_576, 65_536),
        ("gemini-3.5-flash", 1_048_576, 65_536),
    ],
    "Qwen": [
        ("qwen-max", 32_768, 8_192),
        ("qwen-plus", 1_000_000, 32_768),
        ("qwen3-max", 262_144, 65_536),
        ("qwen3-coder-plus", 1_048_576, 65_536),
        ("qwen3-32b", 131_072, 16_384),
    ],
    "Kimi": [
        ("kimi-k2-0905-preview", 262_144, 262_144),
        ("kimi-k2-thinking", 262_144, 262_144),
        ("kimi-k2.5", 262_144, 262_144),
        ("kimi-k2.6", 262_144, 262_144),
    ],
    "MiniMax": [
        ("MiniMax-M2", 196_608, 128_000),
        ("MiniMax-M2.5", 204_800, 131_072),
        ("MiniMax-M3", 1_000_000, 128_000),
    ],
    "GLM": [
        ("glm-4.5", 131_072, 98_304),
        ("glm-4.6", 204_800, 131_072),
        ("glm-4.7", 204_800, 131_072),
        ("glm-5", 204_800, 131_072),
    ],
}
FIGURES = [figure for family in FAMILIES.values() for figure in family]


@pytest.mark.parametrize(("model", "context", "output"), FIGURES, ids=[figure[0] for figure in FIGURES])
def test_N1_1_3_the_families_are_covered(model: str, context: int, output: int | None) -> None:
    answer = window(model)
    assert (answer.context, answer.output, answer.source, answer.known) == (context, output, "registry", True)


@pytest.mark.parametrize("family", FAMILIES, ids=list(FAMILIES))
def test_N1_1_3_each_family_has_windows_outputs_and_prices_at_its_maker(family: str) -> None:
    for model, _, _ in FAMILIES[family]:
        answer = window(model)
        assert answer.date
        assert answer.prices.input is not None
        assert answer.prices.output is not None


SPELLINGS = [
    "anthropic/claude-opus-4-5",
    "claude-opus-4-5-20251101",
    "Claude-Opus-4.5",
    "openrouter/anthropic/claude-opus-4.5",
    "us.anthropic.claude-opus-4-5-20251101-v1:0",
    "claude-opus-4-5@20251101",
    "vertex_ai/claude-opus-4-5@20251101",
    "azure/claude-opus-4-5",
    "claude-opus-4-5:thinking",
]


@pytest.mark.parametrize("model", SPELLINGS)
def test_N1_1_3_matching_is_fuzzy(model: str) -> None:
    assert window(model).context == 200_000


def test_N1_1_3_an_unknown_model_has_128_000_and_is_flagged() -> None:
    answer = window("some-model-nobody-lists")
    assert (answer.context, answer.source, answer.known) == (128_000, "default", False)


def test_N1_1_3_a_name_inside_a_word_does_not_match() -> None:
    assert window("gpt-4o-mini").matched == "gpt-4o-mini"
    assert window("gpt-4-foo").matched == "gpt-4"
    assert not window("gpt-4foo").known


def test_N1_1_3_deepseek_chat_tells_todays_figure_and_the_conflict() -> None:
    answer = window("deepseek-chat")
    assert (answer.context, answer.provider, answer.table) == (1_000_000, "deepseek", "models.dev")
    assert answer.conflicts[0] == ("deepseek (litellm)", 131_072)
    assert ("openrouter (models.dev)", 128_000) in answer.conflicts


PRECEDENCE: list[tuple[str, dict[str, int], int, str]] = [
    ("override beats all", {"override": 50_000, "learned": 1, "served": 2}, 50_000, "user"),
    ("an override of 0 too", {"override": 0, "learned": 1, "served": 2}, 0, "user"),
    ("learned beats served", {"learned": 60_000, "served": 70_000}, 60_000, "learned"),
    ("served beats registry", {"served": 70_000}, 70_000, "served"),
    ("registry", {}, 200_000, "registry"),
]


@pytest.mark.parametrize(
    ("given", "context", "source"), [case[1:] for case in PRECEDENCE], ids=[c[0] for c in PRECEDENCE]
)
def test_N3_2_override_beats_registry_beats_default(given: dict[str, int], context: int, source: str) -> None:
    answer = window("claude-opus-4-5", **given)  # type: ignore[arg-type]
    assert (answer.context, answer.source, answer.known) == (context, source, True)


def test_N3_2_the_default_is_128_000() -> None:
    assert window("some-model-nobody-lists").context == 128_000
    assert window("some-model-nobody-lists", override=0).context == 0


def test_CB_3_exact_then_prefix_then_the_default_of_the_preset() -> None:
    exact, prefix = window("gpt-4o", default=96_000), window("gpt-4o-of-next-year", default=96_000)
    unknown = window("some-model-nobody-lists", default=96_000)
    assert (exact.context, exact.matched) == (128_000, "gpt-4o")
    assert (prefix.context, prefix.matched) == (128_000, "gpt-4o")
    assert (unknown.context, unknown.known) == (96_000, False)


def test_CB_3_the_snapshot_is_built_in_and_dated() -> None:
    registry = bundled()
    assert len(registry) > 5_000
    assert {table for table, date in registry.snapshots if date} == {"models.dev", "litellm"}

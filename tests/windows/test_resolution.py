"""Which of several figures counts, and what is told beside it."""

from dataclasses import FrozenInstanceError

import pytest
from hypothesis import given, settings, strategies as st

from everlong.core import Budget
from everlong.errors import InputError
from everlong.windows.entries import NO_PRICES, Prices
from everlong.windows.registry import Registry
from everlong.windows.resolution import Window, window
from tests.windows.tables import JULY, SMALL, row


def test_a_registry_window_tells_where_it_is_from() -> None:
    assert window("Anthropic/Claude-Opus-4.5", registry=SMALL) == Window(
        model="Anthropic/Claude-Opus-4.5",
        context=200_000,
        source="registry",
        known=True,
        matched="claude-opus-4-5",
        provider="anthropic",
        table="models.dev",
        date=JULY,
        output=64_000,
        prices=Prices(input=5.0, cache_read=0.5),
    )


def test_an_unknown_model_gets_the_default_and_is_flagged() -> None:
    assert window("nonsense", registry=SMALL) == Window(
        model="nonsense", context=128_000, source="default", known=False, prices=NO_PRICES
    )


def test_a_stated_window_keeps_output_and_prices_and_shows_what_it_was_chosen_over() -> None:
    answer = window("gpt-4o", override=50_000, learned=60_000, served=70_000, registry=SMALL)
    assert (answer.context, answer.source, answer.known, answer.date) == (50_000, "user", True, "")
    assert (answer.output, answer.prices.output) == (16_384, 10.0)
    assert answer.conflicts[:3] == (("learned", 60_000), ("served", 70_000), ("openai (models.dev)", 128_000))


def test_conflicts_leave_out_those_who_agree() -> None:
    answer = window("gpt-4o", learned=128_000, served=128_000, registry=SMALL)
    assert (answer.context, answer.source) == (128_000, "learned")
    assert answer.conflicts == (("azure (models.dev)", 126_000), ("openrouter (models.dev)", 125_000))


def test_a_prompt_limit_is_told_apart_and_is_no_conflict() -> None:
    answer = window("gpt-5", registry=SMALL)
    assert (answer.context, answer.input, answer.prompt) == (400_000, 272_000, 272_000)
    assert answer.conflicts == ()


@pytest.mark.parametrize("figures", [{}, {"served": 128_000}, {"learned": 100_000}, {"override": 90_000}], ids=str)
@pytest.mark.parametrize("model", ["gpt-4o", "a-model-of-ones-own"])
def test_a_learned_prompt_limit_counts_wherever_the_window_comes_from(model: str, figures: dict[str, int]) -> None:
    assert window(model, prompt=50_000, **figures).prompt == 50_000


def test_a_stated_window_has_no_prompt_limit_from_the_tables() -> None:
    answer = window("gpt-5", served=300_000, registry=SMALL)
    assert (answer.input, answer.prompt) == (None, 300_000)


def test_figures_that_the_answering_table_lacks_come_from_the_same_provider() -> None:
    registry = Registry(
        (
            row("openai", "gpt-9", 500_000),
            row("openai", "gpt-9", table="litellm", input=400_000, output=9_000, usd_input=1.0),
            row("openrouter", "openai/gpt-9", 300_000, output=1_000, usd_input=7.0),
        )
    )
    answer = window("gpt-9", registry=registry)
    assert (answer.context, answer.output, answer.prices.input) == (500_000, 9_000, 1.0)


def test_an_inferred_limit_says_so() -> None:
    answer = window("glm-5", registry=Registry((row("zai", "glm-5", 200_000, inferred=True),)))
    assert (answer.context, answer.table) == (200_000, "models.dev, inferred")


def test_a_negative_override_is_a_mistake_of_the_user() -> None:
    with pytest.raises(InputError, match="-1"):
        window("gpt-4o", override=-1, registry=SMALL)


def test_a_window_does_not_change() -> None:
    with pytest.raises(FrozenInstanceError):
        window("gpt-4o", registry=SMALL).context = 1  # type: ignore[misc]


FIGURE = st.one_of(st.none(), st.integers(-10, 300_000))


@given(
    model=st.sampled_from(("gpt-4o", "deepseek/deepseek-chat", "nonsense", "")),
    provider=st.sampled_from(("", "openrouter", "my-endpoint", "ollama")),
    override=st.one_of(st.none(), st.integers(0, 300_000)),
    learned=FIGURE,
    asked=FIGURE,
    served=FIGURE,
)
@settings(max_examples=200, deadline=None)
def test_the_first_that_speaks_counts(
    model: str, provider: str, override: int | None, learned: int | None, asked: int | None, served: int | None
) -> None:
    answer = window(
        model, provider=provider, override=override, learned=learned, asked=asked, served=served, registry=SMALL
    )
    expected = {
        "user": override,
        "learned": learned if learned and learned > 0 else None,
        "asked": asked if asked and asked > 0 else None,
        "served": served if served and served > 0 else None,
    }
    spoken = [(source, figure) for source, figure in expected.items() if figure is not None]
    if spoken:
        assert (answer.source, answer.context) == spoken[0]
    else:
        assert answer.source in ("registry", "default")
        assert answer.known == (answer.source == "registry")
    assert all(figure != answer.context for _, figure in answer.conflicts)
    assert Budget.of(answer.context, max_output=answer.output).available > 0 or answer.context < 10

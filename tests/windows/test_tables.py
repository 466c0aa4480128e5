"""Putting two tables together: what is filled in, what is dropped, what is kept once."""

from everlong.windows.entries import Entry
from everlong.windows.registry import Registry
from everlong.windows.sources.litellm import LITELLM
from everlong.windows.tables import assembled
from tests.windows.tables import MAY, row


def both(models_dev: list[Entry], litellm: list[Entry]) -> list[Entry]:
    return list(assembled([Registry(tuple(models_dev)), Registry(tuple(litellm))]))


def prompt(provider: str, model: str, tokens: int) -> Entry:
    return row(provider, model, None, input=tokens, table=LITELLM, date=MAY)


def test_a_row_without_limits_takes_those_of_the_same_model_and_says_so() -> None:
    found = both([row("openai", "gpt-5"), row("aihubmix", "gpt-5", 400_000, input=272_000, output=128_000)], [])
    (own,) = (entry for entry in found if entry.provider == "openai")
    assert (own.context, own.input, own.output, own.inferred) == (400_000, 272_000, 128_000, True)


def test_the_makers_prompt_limit_decides_between_windows() -> None:
    listed = [row("openai", "gpt-5"), row("a", "gpt-5", 100_000), row("b", "gpt-5", 400_000, input=272_000)]
    found = both(listed, [prompt("openai", "gpt-5", 272_000)])
    assert next(e.context for e in found if e.provider == "openai" and e.table != LITELLM) == 400_000


def test_without_a_maker_most_decide() -> None:
    listed = [row("x", "odd"), row("a", "odd", 8_192), row("b", "odd", 32_768), row("c", "odd", 32_768)]
    assert next(entry.context for entry in both(listed, []) if entry.provider == "x") == 32_768


def test_what_has_no_window_or_a_tiny_one_is_dropped() -> None:
    assert both([row("openai", "tiny", 512), row("openai", "none")], [prompt("openai", "small", 1_000)]) == []


def test_regions_of_one_provider_are_one_row() -> None:
    listed = [row("amazon-bedrock", f"{region}anthropic.claude-x", 200_000) for region in ("us.", "", "eu.")]
    assert [entry.id for entry in both(listed, [])] == ["anthropic.claude-x"]

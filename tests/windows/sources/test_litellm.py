"""Reading litellm's table: what is taken, what is left out, and that nothing it holds can break the reading."""

import pytest
from hypothesis import given, settings, strategies as st

from everlong.core import Json
from everlong.windows.sources.litellm import parse_litellm

DAY = "2026-11-09"


def facts(**more: Json) -> dict[str, Json]:
    return {"litellm_provider": "openai", "mode": "chat", "max_input_tokens": 128_000, **more}


#: A table, and the (provider, id) of the rows that are taken.
CASES: list[tuple[str, Json, list[tuple[str, str]]]] = [
    ("a chat model", {"gpt-4o": facts()}, [("openai", "gpt-4o")]),
    ("no mode", {"gpt-4o": facts(mode=None)}, [("openai", "gpt-4o")]),
    ("provider in front", {"deepseek/d-1": facts(litellm_provider="deepseek")}, [("deepseek", "d-1")]),
    ("another name of the provider in front", {"gemini/g": facts(litellm_provider="gemini")}, [("google", "g")]),
    ("somebody else in front", {"meta/l-3": facts(litellm_provider="groq")}, [("groq", "meta/l-3")]),
    ("not for chat", {"m": facts(mode="moderation"), "text-embedding-3": facts()}, []),
    ("a pattern", {"openai/*": facts()}, []),
    ("no provider", {"m": facts(litellm_provider=None)}, []),
    ("the sample", {"sample_spec": {"mode": "one of: chat", "max_input_tokens": "tokens"}}, []),
    ("not rows", {"a": 1, "b": [facts()], "c": None}, []),
    ("no table", [facts()], []),
    ("nothing", None, []),
]


@pytest.mark.parametrize(("body", "taken"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_which_rows_are_taken(body: Json, taken: list[tuple[str, str]]) -> None:
    assert [(entry.provider, entry.id) for entry in parse_litellm(body, DAY)] == taken


def test_figures_are_a_prompt_limit_and_prices_a_million() -> None:
    row = facts(
        max_output_tokens=16_384,
        input_cost_per_token=2.5e-06,
        output_cost_per_token=1e-05,
        cache_read_input_token_cost=1.25e-06,
        cache_creation_input_token_cost="free",
    )
    (entry,) = parse_litellm({"gpt-4o": row}, DAY)
    assert (entry.context, entry.input, entry.output, entry.window) == (None, 128_000, 16_384, 128_000)
    assert entry.prices.input == 2.5
    assert entry.prices.output == 10
    assert entry.prices.cache_read == 1.25
    assert entry.prices.cache_write is None
    assert (entry.table, entry.date) == ("litellm", DAY)


VALUES = st.one_of(st.none(), st.booleans(), st.integers(-5, 10**9), st.floats(), st.sampled_from(["", "chat", "x"]))
FIELDS = st.sampled_from(
    ["litellm_provider", "mode", "max_input_tokens", "max_output_tokens", "input_cost_per_token", "other"]
)


@given(st.dictionaries(st.sampled_from(["gpt-4o", "", "/", "a/b", "openai/"]), st.dictionaries(FIELDS, VALUES)))
@settings(max_examples=100, deadline=None)
def test_whatever_stands_in_the_rows_figures_can_be_true(body: Json) -> None:
    for entry in parse_litellm(body, DAY):
        assert entry.provider
        assert 0 <= entry.window <= 16_000_000
        assert entry.usd_input is None or entry.usd_input >= 0

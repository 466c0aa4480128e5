"""Which entry answers a name."""

import pytest
from hypothesis import given, settings, strategies as st

from everlong.windows.entries import Entry
from everlong.windows.registry import Registry
from everlong.windows.sources.litellm import LITELLM
from tests.windows.tables import JULY, MAY, SMALL, row

ANSWERS = [
    ("a bare name is the maker's", "claude-opus-4-5", "", 200_000),
    ("case does not matter", "Claude-Opus-4-5", "", 200_000),
    ("a dot is a dash", "claude-opus-4.5", "", 200_000),
    ("the maker in front", "anthropic/claude-opus-4-5", "", 200_000),
    ("the reseller in front", "venice/claude-opus-4-5", "", 190_000),
    ("the reseller beside it", "claude-opus-4-5", "venice", 190_000),
    ("a reseller and a publisher in front", "openrouter/deepseek/deepseek-chat", "", 128_000),
    ("a tag the reseller does not list", "openrouter/deepseek/deepseek-chat:free", "", 128_000),
    ("Bedrock with region", "us.anthropic.claude-opus-4-5-20251101-v1:0", "", 199_000),
    ("Bedrock without region", "anthropic.claude-opus-4-5-20251101-v1:0", "", 199_000),
    ("Bedrock with its name in front", "bedrock/eu.anthropic.claude-opus-4-5-20251101-v1:0", "", 199_000),
    ("a Bedrock profile", "arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-opus-4-5", "", 199_000),
    ("Vertex", "vertex_ai/claude-opus-4-5@20251101", "", 198_000),
    ("Vertex's spelling alone is the maker's", "claude-opus-4-5@20251101", "", 200_000),
    ("a date that is not listed", "claude-opus-4-5-20260101", "", 200_000),
    ("no date where only dates are listed: the newest", "claude-3-5-sonnet", "", 201_000),
    ("latest", "claude-3-5-sonnet-latest", "", 201_000),
    ("an Azure model", "azure/gpt-4o", "", 126_000),
    ("an Azure deployment", "azure/prod-gpt-4o-eu", "", 126_000),
    ("a fine-tuned model", "ft:gpt-4o-mini:org::id", "", 127_000),
    ("longest prefix", "gpt-4o-mini-high", "", 127_000),
    ("not a prefix inside a word", "gpt-4omni-x", "", None),
    ("a prefix that ends with a word", "gpt-4-foo", "", 8_192),
    ("a named provider without the model", "venice/gpt-4o", "", 128_000),
    ("a path of resources", "projects/p/publishers/google/models/gpt-4o", "", 128_000),
    ("a publisher that is no provider: what most say", "nousresearch/hermes-4-70b", "", 131_072),
    ("what most say", "hermes-4-70b", "", 131_072),
    ("a server of one's own that is listed", "ollama/llama3.1:8b", "", 8_192),
    ("its name alone", "llama3.1:8b", "", 8_192),
    ("one plain word is no prefix", "mistral-huge", "", None),
    ("nothing like it", "nonsense", "", None),
    ("nothing at all", "", "", None),
]


@pytest.mark.parametrize(("model", "provider", "window"), [a[1:] for a in ANSWERS], ids=[a[0] for a in ANSWERS])
def test_lookup(model: str, provider: str, window: int | None) -> None:
    found = SMALL.lookup(model, provider)
    assert (found and found.entry.window) == window
    assert found is None or found.applies


HINTS = [
    ("an endpoint no table knows", "deepseek-v4-flash", "my-endpoint"),
    ("such an endpoint in front", "my-proxy/deepseek-v4-flash", ""),
    ("a server of one's own", "deepseek-v4-flash", "vllm"),
    ("such a server in front", "vllm/deepseek-ai/DeepSeek-V4-Flash", ""),
    ("a server of one's own that lists other models", "deepseek-v4-flash", "ollama"),
    ("a file that people run themselves", "nousresearch/DeepSeek-V4-Flash-GGUF", ""),
    ("such a file alone", "deepseek-v4-flash-q4.gguf", ""),
]


@pytest.mark.parametrize(("model", "provider"), [hint[1:] for hint in HINTS], ids=[hint[0] for hint in HINTS])
def test_where_the_place_is_unknown_the_name_is_only_a_hint(model: str, provider: str) -> None:
    found = SMALL.lookup(model, provider)
    assert found is not None
    assert (found.entry.provider, found.applies) == ("deepseek", False)


def test_others_are_everyone_for_a_bare_name_and_the_provider_alone_for_a_named_one() -> None:
    bare, named = SMALL.lookup("deepseek-chat"), SMALL.lookup("deepseek/deepseek-chat")
    assert bare is not None
    assert named is not None
    assert {other.claimant for other in bare.others} == {"deepseek (litellm)", "openrouter (models.dev)"}
    assert {other.claimant for other in named.others} == {"deepseek (litellm)"}


def test_rows_without_a_window_answer_nothing() -> None:
    assert Registry((row("openai", "gpt-9", None, usd_input=1.0),)).lookup("gpt-9") is None


def test_find_looks_for_every_word_and_lists_makers_first() -> None:
    assert [entry.provider for entry in SMALL.find("chat DEEPSEEK")] == ["deepseek", "deepseek", "openrouter"]
    assert SMALL.find("openrouter gpt") == [row("openrouter", "openai/gpt-4o", 125_000)]
    assert SMALL.find("no such model") == []
    assert len(SMALL.find("")) == len(SMALL) == len(list(SMALL))


def test_snapshots_name_each_table_and_date() -> None:
    assert SMALL.snapshots == (("litellm", MAY), ("models.dev", JULY))


OLD = row("openai", "gpt-4o", 128_000, output=16_384, usd_input=5.0, usd_output=15.0)
MERGES = [
    ("newer figures win", [row("openai", "gpt-4o", 256_000, usd_input=2.5, date="2026-08-01")], (256_000, 16_384, 2.5)),
    ("older figures do not", [row("openai", "gpt-4o", 64_000, usd_input=9.0, date=MAY)], (128_000, 16_384, 5.0)),
    ("the same day counts as newer", [row("openai", "gpt-4o", 130_000)], (130_000, 16_384, 5.0)),
    ("another table is another voice", [row("openai", "gpt-4o", 64_000, table=LITELLM)], (128_000, 16_384, 5.0)),
    ("spelling does not matter", [row("openai", "GPT-4o", 256_000, date="2026-08-01")], (256_000, 16_384, 5.0)),
    ("a new model is added", [row("openai", "gpt-9", 9_000)], (128_000, 16_384, 5.0)),
]


@pytest.mark.parametrize(("rows", "expected"), [merge[1:] for merge in MERGES], ids=[merge[0] for merge in MERGES])
def test_merged(rows: list[Entry], expected: tuple[int, int, float]) -> None:
    merged = Registry((OLD,)).merged(Registry(tuple(rows)))
    found = merged.lookup("gpt-4o")
    assert found is not None
    assert (found.entry.window, found.entry.output, found.entry.usd_input) == expected
    assert found.entry.usd_output == 15.0
    assert all(merged.lookup(entry.id) for entry in rows)


def test_a_refreshed_row_takes_the_place_of_an_inferred_one() -> None:
    guess, fact = row("zai", "glm-5", 200_000, inferred=True), row("zai", "glm-5", 204_800, date="2026-08-01")
    (entry,) = Registry((guess,)).merged(Registry((fact,)))
    assert (entry.window, entry.inferred) == (204_800, False)
    (kept,) = Registry((guess,)).merged(Registry((row("zai", "glm-5", None, usd_input=1.0, date="2026-08-01"),)))
    assert (kept.window, kept.usd_input, kept.inferred) == (200_000, 1.0, True)


PROVIDERS, NAMES = ("openai", "openrouter", "my-endpoint", "ollama"), ("gpt-4", "gpt-4o", "gpt-4-mini", "x/gpt-4o:free")
ROWS = st.builds(row, st.sampled_from(PROVIDERS), st.sampled_from(NAMES), st.integers(1_000, 9_000))


@given(st.lists(ROWS, max_size=6), st.sampled_from(NAMES), st.sampled_from(("", *PROVIDERS)))
@settings(max_examples=200, deadline=None)
def test_the_answer_is_always_one_of_the_entries_and_does_not_depend_on_their_order(
    rows: list[Entry], name: str, provider: str
) -> None:
    distinct = list({(entry.provider, entry.id): entry for entry in rows}.values())
    found = Registry(tuple(distinct)).lookup(name, provider)
    backwards = Registry(tuple(reversed(distinct))).lookup(name, provider)
    assert (found and found.entry.window) == (backwards and backwards.entry.window)
    if found is not None:
        assert found.entry in distinct
        assert found.entry not in found.others
    own = [entry for entry in distinct if entry.provider == provider and entry.id == name]
    assert not own or (found is not None and found.entry == own[0])

"""Usage in every provider's shape gives the same figures, and what cannot be true is turned away."""

import pytest
from hypothesis import given, settings, strategies as st

from everlong.core import Json
from everlong.wire.usage import STYLES, Usage, merged, plausible, read_usage

SHAPES = [
    pytest.param(
        {"prompt_tokens": 9_000, "completion_tokens": 700, "total_tokens": 9_700},
        Usage(prompt=9_000, output=700),
        id="openai, nothing cached",
    ),
    pytest.param(
        {
            "prompt_tokens": 9_000,
            "completion_tokens": 700,
            "prompt_tokens_details": {"cached_tokens": 8_000},
            "completion_tokens_details": {"reasoning_tokens": 500},
        },
        Usage(prompt=9_000, cached=8_000, output=700, reasoning=500),
        id="openai, cached and thinking inside",
    ),
    pytest.param(
        {
            "prompt_tokens": 9_000,
            "completion_tokens": 200,
            "total_tokens": 9_700,
            "completion_tokens_details": {"reasoning_tokens": 500},
        },
        Usage(prompt=9_000, output=700, reasoning=500),
        id="xai, thinking beside",
    ),
    pytest.param(
        {"prompt_tokens": 100, "completion_tokens": 30, "completion_tokens_details": {"reasoning_tokens": 500}},
        Usage(prompt=100, output=530, reasoning=500),
        id="thinking larger than the output was beside it",
    ),
    pytest.param(
        {"prompt_tokens": 9_000, "completion_tokens": 7, "prompt_tokens_details": None},
        Usage(prompt=9_000, output=7),
        id="details that are null",
    ),
    pytest.param(
        {"prompt_tokens": 9_000, "completion_tokens": 7, "cached_tokens": 8_000},
        Usage(prompt=9_000, cached=8_000, output=7),
        id="kimi",
    ),
    pytest.param(
        {"prompt_tokens": 1_000, "completion_tokens": 7, "cache_read_input_tokens": 8_000},
        Usage(prompt=9_000, cached=8_000, output=7),
        id="a proxy that leaves the cached out",
    ),
    pytest.param(
        {
            "prompt_tokens": 5_000,
            "completion_tokens": 7,
            "total_tokens": 9_007,
            "cache_read_input_tokens": 3_000,
            "cache_creation_input_tokens": 1_000,
        },
        Usage(prompt=9_000, cached=3_000, cache_written=1_000, output=7),
        id="the total tells that the cached stand beside",
    ),
    pytest.param(
        {
            "input_tokens": 9_000,
            "input_tokens_details": {"cached_tokens": 8_000},
            "output_tokens": 700,
            "output_tokens_details": {"reasoning_tokens": 500},
            "total_tokens": 9_700,
        },
        Usage(prompt=9_000, cached=8_000, output=700, reasoning=500),
        id="responses",
    ),
    pytest.param(
        {"input_tokens": 9_000, "cached_input_tokens": 8_000, "output_tokens": 700, "reasoning_output_tokens": 500},
        Usage(prompt=9_000, cached=8_000, output=700, reasoning=500),
        id="codex session",
    ),
    pytest.param(
        {
            "input_tokens": 500,
            "cache_read_input_tokens": 8_000,
            "cache_creation_input_tokens": 500,
            "cache_creation": {"ephemeral_5m_input_tokens": 500},
            "output_tokens": 700,
        },
        Usage(prompt=9_000, cached=8_000, cache_written=500, output=700),
        id="anthropic",
    ),
    pytest.param(
        {"input_tokens": 9_000, "output_tokens": 700}, Usage(prompt=9_000, output=700), id="anthropic, no cache"
    ),
    pytest.param(
        {
            "promptTokenCount": 8_900,
            "toolUsePromptTokenCount": 100,
            "cachedContentTokenCount": 8_000,
            "candidatesTokenCount": 200,
            "thoughtsTokenCount": 500,
        },
        Usage(prompt=9_000, cached=8_000, output=700, reasoning=500),
        id="gemini",
    ),
    pytest.param(
        {"inputTokens": 1_000, "outputTokens": 700, "totalTokens": 1_700, "cacheReadInputTokens": 8_000},
        Usage(prompt=9_000, cached=8_000, output=700),
        id="bedrock",
    ),
    pytest.param(
        {
            "prompt_tokens": 9_000,
            "completion_tokens": 700,
            "prompt_cache_hit_tokens": 8_000,
            "prompt_cache_miss_tokens": 1_000,
            "completion_tokens_details": {"reasoning_tokens": 500},
        },
        Usage(prompt=9_000, cached=8_000, output=700, reasoning=500),
        id="deepseek",
    ),
    pytest.param(
        {"billed_units": {"input_tokens": 5.0}, "tokens": {"input_tokens": 71.0, "output_tokens": 418.0}},
        Usage(prompt=71, output=418),
        id="cohere, floats, and more than is billed",
    ),
    pytest.param(
        {"input": 1_000, "output": 700, "cacheRead": 8_000, "cacheWrite": 0},
        Usage(prompt=9_000, cached=8_000, output=700),
        id="pi session",
    ),
    pytest.param({"prompt_eval_count": 26, "eval_count": 298, "done": True}, Usage(prompt=26, output=298), id="ollama"),
    pytest.param(
        {"prompt_n": 1_000, "cache_n": 8_000, "predicted_n": 7},
        Usage(prompt=9_000, cached=8_000, output=7),
        id="llama.cpp timings",
    ),
    pytest.param(
        {"tokens_evaluated": 9_000, "tokens_predicted": 7, "tokens_cached": 9_006},
        Usage(prompt=9_000, output=7),
        id="llama.cpp completion",
    ),
]


@pytest.mark.parametrize(("raw", "expected"), SHAPES)
def test_every_shape_gives_the_same_figures(raw: Json, expected: Usage) -> None:
    assert read_usage(raw) == expected
    assert read_usage({"id": "x", "choices": [], "usage": raw}) == expected


def test_every_style_has_a_shape() -> None:
    read = {
        style.name for style in STYLES for shape in SHAPES if any(_has(shape.values[0], mark) for mark in style.mark)
    }
    assert read == {style.name for style in STYLES}


def _has(raw: object, path: str) -> bool:
    for key in path.split("."):
        raw = raw.get(key) if isinstance(raw, dict) else None
    return raw is not None


PLACES = [
    pytest.param(
        {"type": "message_start", "message": {"usage": {"input_tokens": 9, "output_tokens": 1}}},
        9,
        id="anthropic start",
    ),
    pytest.param(
        {"type": "response.completed", "response": {"usage": {"input_tokens": 9, "output_tokens": 1}}},
        9,
        id="responses event",
    ),
    pytest.param({"usageMetadata": {"promptTokenCount": 9}, "candidates": []}, 9, id="gemini"),
    pytest.param({"meta": {"tokens": {"input_tokens": 9, "output_tokens": 1}}}, 9, id="cohere v1"),
    pytest.param({"content": "hi", "timings": {"prompt_n": 4, "cache_n": 5, "predicted_n": 1}}, 9, id="llama.cpp"),
    pytest.param({"model": "m", "prompt_eval_count": 9, "eval_count": 1}, 9, id="ollama"),
    pytest.param(
        {"usage": {"prompt_tokens": 9}, "timings": {"prompt_n": 4, "cache_n": 5}}, 9, id="usage before timings"
    ),
]


@pytest.mark.parametrize(("raw", "prompt"), PLACES)
def test_usage_is_found_where_each_format_keeps_it(raw: Json, prompt: int) -> None:
    usage = read_usage(raw)
    assert usage is not None
    assert usage.prompt == prompt


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(None, id="nothing"),
        pytest.param("usage", id="a text"),
        pytest.param([], id="a list"),
        pytest.param({}, id="an empty object"),
        pytest.param({"usage": None, "choices": []}, id="a chunk before the last"),
        pytest.param({"usage": {"total_tokens": 252}}, id="a total says nothing of the prompt"),
    ],
)
def test_no_usage_is_not_zero_usage(raw: Json) -> None:
    assert read_usage(raw) is None


def test_the_format_decides_between_shapes_that_look_alike() -> None:
    both = {"input_tokens": 1_000, "cache_read_input_tokens": 8_000, "input_tokens_details": {"cached_tokens": 0}}
    read = {hint: read_usage(both, hint) for hint in ("", "openai-responses", "anthropic", "no such format")}
    assert {hint: usage.prompt for hint, usage in read.items() if usage} == {
        "": 1_000,
        "openai-responses": 1_000,
        "anthropic": 9_000,
        "no such format": 1_000,
    }


def test_the_events_of_one_stream_are_merged() -> None:
    start = read_usage(
        {"message": {"usage": {"input_tokens": 1_000, "cache_read_input_tokens": 8_000, "output_tokens": 1}}}
    )
    end = read_usage({"type": "message_delta", "usage": {"output_tokens": 700}})
    assert start is not None
    assert end is not None
    assert merged(start, end) == Usage(prompt=9_000, cached=8_000, output=700)


JUNK = st.one_of(
    st.none(), st.booleans(), st.integers(-10, 10**20), st.floats(), st.just("12"), st.just([1]), st.just({"x": 1})
)
FIELDS = sorted({path for style in STYLES for path in (*style.prompt, *style.cached, *style.output, *style.reasoning)})


@settings(deadline=None)
@given(fields=st.dictionaries(st.sampled_from(FIELDS), JUNK, max_size=6))
def test_parts_are_never_larger_than_their_whole_whatever_a_server_sends(fields: dict[str, Json]) -> None:
    usage = read_usage(fields)
    if usage is not None:
        assert 0 <= usage.cached + usage.cache_written <= usage.prompt
        assert 0 <= usage.reasoning <= usage.output


IMPLAUSIBLE = [
    pytest.param(Usage(prompt=200_001), None, False, id="above the window"),
    pytest.param(Usage(prompt=675_947_905), None, False, id="a sentinel"),
    pytest.param(Usage(), None, False, id="nothing reported"),
    pytest.param(Usage(prompt=100, output=200_001), None, False, id="a reply larger than the window"),
    pytest.param(Usage(prompt=100, cached=101), None, False, id="more cached than sent"),
    pytest.param(Usage(prompt=120_000), 10_000, False, id="twelve calls added up"),
    pytest.param(Usage(prompt=200_000, cached=199_000, output=10), None, True, id="full to the brim"),
    pytest.param(Usage(prompt=15_000), 10_000, True, id="an estimate may be off"),
    pytest.param(Usage(prompt=1_500), 20, True, id="a short message with a long tool list"),
]


@pytest.mark.parametrize(("usage", "estimate", "expected"), IMPLAUSIBLE)
def test_what_cannot_be_one_call_is_turned_away(usage: Usage, estimate: int | None, expected: bool) -> None:
    assert plausible(usage, 200_000, estimate=estimate) is expected

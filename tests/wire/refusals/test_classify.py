"""Wrapped, coded, silent, hostile: whatever form an error has, it is read the same and gives the right exception."""

import json

import pytest
from hypothesis import given, settings, strategies as st

from everlong.errors import (
    ContextOverflow,
    MalformedHistory,
    MediaRefused,
    ParameterRefused,
    ProviderError,
    RateLimited,
    ReplyLimitExceeded,
)
from everlong.wire.refusals import Kind, as_error, classify
from everlong.wire.refusals.error_text import HEAD, TAIL
from everlong.wire.refusals.signs import PARAMETER_SIGNS, RefusalSign

ANTHROPIC_BODY = {
    "type": "error",
    "error": {"type": "invalid_request_error", "message": "prompt is too long: 200997 tokens > 200000 maximum"},
}
WRAPPED = [
    pytest.param(ANTHROPIC_BODY, id="the body itself"),
    pytest.param([ANTHROPIC_BODY], id="in a list"),
    pytest.param(json.dumps(ANTHROPIC_BODY), id="as text"),
    pytest.param("400 " + json.dumps(ANTHROPIC_BODY), id="after a status"),
    pytest.param(f"Error code: 400 - {ANTHROPIC_BODY}", id="python sdk"),
    pytest.param(
        f"litellm.BadRequestError: ContextWindowExceededError: AnthropicException - {json.dumps(ANTHROPIC_BODY)}",
        id="litellm",
    ),
    pytest.param(
        {"error": {"code": 400, "message": json.dumps(ANTHROPIC_BODY), "status": "INVALID_ARGUMENT"}}, id="vertex"
    ),
    pytest.param({"error": {"message": json.dumps({"error": json.dumps(ANTHROPIC_BODY)})}}, id="three deep"),
    pytest.param(
        {"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": json.dumps(ANTHROPIC_BODY)}}},
        id="openrouter",
    ),
    pytest.param({"a": [{"b": {"c": [{"d": ANTHROPIC_BODY}]}}]}, id="deep object"),
    pytest.param(json.dumps(ANTHROPIC_BODY)[:-2], id="cut short"),
    pytest.param("[" * 500 + json.dumps(ANTHROPIC_BODY), id="not json at all"),
]


@pytest.mark.parametrize("error", WRAPPED)
def test_a_wrapped_error_is_read_as_the_bare_one(error: object) -> None:
    refusal = classify(error)  # type: ignore[arg-type]
    assert (refusal.kind, refusal.limit, refusal.requested) == (Kind.OVERFLOW, 200_000, 200_997)
    assert refusal.message == "prompt is too long: 200997 tokens > 200000 maximum"


QUOTED = 'the model "m" isn\'t there, see "docs"'
QUOTED_BODY = {"error": {"message": QUOTED, "type": "invalid_request_error"}}


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(QUOTED, id="bare"),
        pytest.param(QUOTED_BODY, id="the body itself"),
        pytest.param(json.dumps(QUOTED_BODY), id="as text"),
        pytest.param("400 " + json.dumps(QUOTED_BODY), id="after a status"),
        pytest.param({"error": json.dumps({"message": QUOTED})}, id="in a field"),
        pytest.param(f"Error code: 400 - {QUOTED_BODY}", id="python sdk"),
    ],
)
def test_a_message_does_not_end_at_its_first_quote(error: object) -> None:
    assert classify(error, status=400).message == QUOTED  # type: ignore[arg-type]


def test_the_fields_of_llama_cpp_are_read_where_its_words_are_new() -> None:
    body = {
        "error": {
            "code": 400,
            "message": "no",
            "type": "exceed_context_size_error",
            "n_prompt_tokens": 4016,
            "n_ctx": 2048,
        }
    }
    for form in (body, json.dumps(body), f"Error code: 400 - {body}"):
        refusal = classify(form)
        assert (refusal.kind, refusal.limit, refusal.requested, refusal.status) == (Kind.OVERFLOW, 2_048, 4_016, 400)


def test_the_part_asked_for_the_reply_is_told_apart() -> None:
    refusal = classify(
        "This endpoint's maximum context length is 32768 tokens. However, you requested about 275841 tokens "
        "(8841 of text "
        "input, 11000 of tool input, 256000 in the output)."
    )
    assert (refusal.limit, refusal.requested, refusal.reply) == (32_768, 275_841, 256_000)


# --- codes and statuses -----------------------------------------------------------------------

CODED = [
    pytest.param({"error": {"code": "context_length_exceeded", "message": "too much"}}, Kind.OVERFLOW, id="openai"),
    pytest.param({"error": {"code": "1261", "message": "新的说法"}}, Kind.OVERFLOW, id="glm"),
    pytest.param({"error": {"code": 1210, "message": "API 调用参数有误"}}, Kind.OTHER, id="glm parameters"),
    pytest.param({"error": {"code": "model_max_prompt_tokens_exceeded", "message": "no"}}, Kind.OVERFLOW, id="copilot"),
    pytest.param({"error": {"code": "tokens_limit_reached", "message": "no"}}, Kind.OVERFLOW, id="github models"),
    pytest.param({"stop_reason": "model_context_window_exceeded"}, Kind.OVERFLOW, id="stop reason"),
    pytest.param({"type": "invalid_request_message_order", "message": "no"}, Kind.MALFORMED_HISTORY, id="mistral"),
    pytest.param({"error": "context_overflow"}, Kind.OVERFLOW, id="bare word"),
    pytest.param(
        {"error": {"code": "context_length_exceeded", "message": "rate limit hint: send less"}},
        Kind.OVERFLOW,
        id="code wins",
    ),
]


@pytest.mark.parametrize(("error", "kind"), CODED)
def test_a_code_leaves_no_doubt(error: object, kind: Kind) -> None:
    assert classify(error).kind is kind  # type: ignore[arg-type]


def test_a_code_can_be_given_beside_the_error() -> None:
    assert classify("something went wrong", code="context_length_exceeded").kind is Kind.OVERFLOW


STATUSES = [
    pytest.param("", 400, Kind.OVERFLOW, id="400 without a body"),
    pytest.param("400 status code (no body)", None, Kind.OVERFLOW, id="400 said in words"),
    pytest.param("413 status code (no body)", None, Kind.TOO_LARGE, id="413 said in words"),
    pytest.param(None, 413, Kind.TOO_LARGE, id="413"),
    pytest.param("<html><h1>413 Request Entity Too Large</h1></html>", 413, Kind.TOO_LARGE, id="nginx"),
    pytest.param("slow down", 429, Kind.RATE_LIMIT, id="429"),
    pytest.param("", 500, Kind.OTHER, id="500"),
    pytest.param("", 503, Kind.OTHER, id="503"),
    pytest.param("", None, Kind.OTHER, id="nothing at all"),
    pytest.param("Bad Request", 400, Kind.OTHER, id="400 with a word is not silent"),
]


@pytest.mark.parametrize(("error", "status", "kind"), STATUSES)
def test_the_status_decides_where_nothing_else_does(error: str | None, status: int | None, kind: Kind) -> None:
    refusal = classify(error, status=status)
    assert refusal.kind is kind
    assert refusal.message


# --- what only looks like it ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "figures"),
    [
        pytest.param(
            "413 Request too large for model `openai/gpt-oss-120b` in organization `org_x` service tier `on_demand` on "
            "tokens per minute (TPM): Limit 8000, Requested 8098, please reduce your message size and try again.",
            (8_000, 8_098),
            id="groq",
        ),
        pytest.param(
            "Request too large for gpt-4o in organization org-z on tokens per min (TPM): Limit 30000, Requested "
            "132819. The "
            "input or output tokens must be reduced in order to run successfully.",
            (30_000, 132_819),
            id="openai",
        ),
        pytest.param(
            "429 Rate limit reached on requests per minute (RPM): Limit 300, Requested 1. Also on tokens per "
            "minute (TPM): "
            "Limit 8000, Requested 8098.",
            (8_000, 8_098),
            id="the pair in tokens decides",
        ),
    ],
)
def test_more_than_the_account_may_ever_send_is_a_ceiling(text: str, figures: tuple[int, int]) -> None:
    refusal = classify(text, status=429)
    assert (refusal.kind, (refusal.limit, refusal.requested)) == (Kind.CEILING, figures)
    assert refusal.smaller_may_pass
    error = as_error(refusal)
    assert isinstance(error, ContextOverflow)
    assert error.ceiling


@settings(deadline=None)
@given(limit=st.integers(1_000, 100_000), requested=st.integers(1_000, 200_000))
def test_a_request_within_the_allowance_is_a_rate_limit_and_one_above_is_not(limit: int, requested: int) -> None:
    refusal = classify(f"Rate limit reached on tokens per min (TPM): Limit {limit}, Used 900, Requested {requested}.")
    assert refusal.kind is (Kind.CEILING if requested > limit else Kind.RATE_LIMIT)


# --- strange and hostile errors ---------------------------------------------------------------

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(
        [
            "",
            "\ud83d",
            "\\ud83d\\",
            "\x00\x1b[31m",
            '{"message":',
            "prompt is too long",
            "context_length_exceeded",
            "上下文过长",
        ]
    )
)
ERRORS = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["error", "message", "code", "type", "status", "n_ctx", "x"]), inner, max_size=3
        )
    ),
    max_leaves=8,
)


@settings(deadline=None, max_examples=150)
@given(error=ERRORS, status=st.none() | st.integers(-1, 999))
def test_any_error_gives_one_printable_line(error: object, status: int | None) -> None:
    refusal = classify(error, status=status)  # type: ignore[arg-type]
    assert refusal.message
    assert len(refusal.message) <= 300
    assert refusal.message.encode("utf-8").decode("utf-8").isprintable()
    assert isinstance(as_error(refusal), ProviderError)


@pytest.mark.parametrize(
    "hostile",
    [
        pytest.param("prompt is too long: " * 600_000, id="a sign repeated"),
        pytest.param("total number of tokens cannot exceed 1 " * 300_000, id="a sign that almost fits"),
        pytest.param("\\" * 10_000_000, id="backslashes"),
        pytest.param('{"message":"' * 900_000, id="open quotes"),
        pytest.param("1," * 5_000_000, id="digits"),
        pytest.param("content_filter prompt " * 500_000, id="gaps"),
        pytest.param([{"message": "x" * 1_000}] * 1_000_000, id="a million entries"),
    ],
)
def test_ten_million_characters_are_no_burden(hostile: object) -> None:
    assert len(classify(hostile).message) <= 300  # type: ignore[arg-type]


def test_only_the_head_and_the_tail_of_a_text_are_read() -> None:
    sentence = " prompt is too long: 213462 tokens > 200000 maximum "
    filler = "lorem ipsum " * 5_000
    assert classify(sentence + filler).limit == 200_000
    assert classify(filler + sentence).limit == 200_000
    assert classify(filler + sentence + filler).kind is Kind.OTHER
    assert len(sentence) < TAIL < HEAD < len(filler)


# --- exceptions -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("prompt is too long: 213462 tokens > 200000 maximum", ContextOverflow, id="overflow"),
        pytest.param("413 Request Entity Too Large", ContextOverflow, id="bytes"),
        pytest.param("`max_tokens` must be at most 4096", ReplyLimitExceeded, id="reply"),
        pytest.param("Unexpected role 'user' after role 'tool'", MalformedHistory, id="shape"),
        pytest.param("Too many images in request. Max is 500.", MediaRefused, id="pictures"),
        pytest.param("`temperature` is deprecated for this model.", ParameterRefused, id="parameter"),
        pytest.param("429 Too Many Requests", RateLimited, id="rate"),
        pytest.param("Incorrect API key provided", ProviderError, id="anything else"),
    ],
)
def test_each_kind_has_its_exception(text: str, expected: type[ProviderError]) -> None:
    error = as_error(classify(text, status=400))
    assert type(error) is expected
    assert str(error) == text
    assert error.status == 400


@pytest.mark.parametrize("sign", PARAMETER_SIGNS, ids=lambda sign: sign.sample[:40])
def test_the_parameter_that_was_refused_is_named(sign: RefusalSign) -> None:
    error = as_error(classify({"error": {"message": sign.sample}}, status=400))
    assert isinstance(error, ParameterRefused)
    assert error.parameter == sign.parameter


def test_the_exception_carries_the_figures() -> None:
    error = as_error(classify("prompt is too long: 213462 tokens > 200000 maximum", status=400))
    assert isinstance(error, ContextOverflow)
    assert (error.limit, error.requested, error.provider, error.ceiling) == (200_000, 213_462, "anthropic", False)
    reply = as_error(classify("max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens"))
    assert isinstance(reply, ReplyLimitExceeded)
    assert reply.limit == 64_000

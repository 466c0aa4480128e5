"""Every wording is known by its own sample and in the variants that really arrive, with its figures."""

import pytest
from hypothesis import given, settings, strategies as st

from everlong.wire.refusals import Kind, classify
from everlong.wire.refusals.error_text import read_error
from everlong.wire.refusals.overflow import SIGNS, OverflowSign, believable, overflow_in
from everlong.wire.refusals.shape_signs import SHAPE_SIGNS
from everlong.wire.refusals.signs import PARAMETER_SIGNS, REPLY_SIGNS, SIZE_SIGNS, VETO_SIGNS, RefusalSign

OTHER_SIGNS = (*SHAPE_SIGNS, *REPLY_SIGNS, *PARAMETER_SIGNS, *SIZE_SIGNS, *VETO_SIGNS)


def _named(sign: OverflowSign | RefusalSign) -> str:
    return f"{sign.provider}: {sign.sample[:40]}"


@pytest.mark.parametrize("sign", SIGNS, ids=_named)
def test_every_overflow_sign_knows_its_sample_and_its_figures(sign: OverflowSign) -> None:
    found = overflow_in(read_error(sign.sample).text)
    assert found is not None
    assert found.sign is sign
    refusal = classify(sign.sample)
    assert (refusal.kind, refusal.limit, refusal.requested) == (Kind.OVERFLOW, sign.limit, sign.requested)


@pytest.mark.parametrize("sign", OTHER_SIGNS, ids=_named)
def test_every_other_sign_knows_its_sample(sign: RefusalSign) -> None:
    refusal = classify(sign.sample)
    assert (refusal.kind, refusal.provider, refusal.limit) == (sign.kind, sign.provider, sign.limit)


def test_the_tables_are_as_long_as_promised() -> None:
    assert len({sign.sample for sign in SIGNS}) >= 100
    assert sum(1 for sign in SIGNS if sign.limit is not None) >= 50
    assert sum(1 for sign in SHAPE_SIGNS if sign.kind is Kind.MALFORMED_HISTORY) >= 30


# --- the same wordings as they really arrive --------------------------------------------------

ARRIVED = [
    pytest.param(
        "This model's maximum context length is 4097 tokens. However, your messages resulted in 4238 tokens "
        "(4143 in the "
        "messages, 95 in the functions). Please reduce the length of the messages or functions.",
        (4_097, 4_238),
        id="openai with functions",
    ),
    pytest.param(
        "This model's maximum context length is 16385 tokens. However, you requested 17300 tokens (13000 in the "
        "messages, "
        "300 in the functions, and 4000 in the completion).",
        (16_385, 17_300),
        id="azure with functions",
    ),
    pytest.param(
        "ValueError: This model's maximum context length is 16384 tokens. However, you requested 122946 tokens "
        "(112946 in "
        "the messages, 10000 in the completion).",
        (16_384, 122_946),
        id="old vllm",
    ),
    pytest.param(
        "This model's maximum context length is 1,048,576 tokens. However, you requested 2,000 output tokens and your "
        "prompt contains 1,047,000 input tokens, for a total of 1,049,000 tokens.",
        (1_048_576, 1_049_000),
        id="separators",
    ),
    pytest.param(
        "input length and max_tokens exceed context limit (i.e 156321 + 48384 > 200000)", (200_000, 204_705), id="i.e"
    ),
    pytest.param(
        "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 4292. Try using a shorter "
        "prompt, or enabling prompt truncating.",
        (4_081, 4_292),
        id="cohere prompt",
    ),
    pytest.param(
        "Message: The input token count exceeds the maximum number of tokens allowed 1048576., Status: "
        "INVALID_ARGUMENT",
        (1_048_576, None),
        id="vertex without brackets",
    ),
    pytest.param(
        "OpenAI API error: 400 <400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 983616]",
        (983_616, None),
        id="dashscope through an sdk",
    ),
    pytest.param(
        "prompt (8500 tokens) exceeds the available context size (8192 tokens)", (8_192, 8_500), id="llama prompt"
    ),
    pytest.param(
        "request (130000 tokens) exceeds available context size (131072 tokens)",
        (131_072, None),
        id="a request below its limit was misread",
    ),
    pytest.param(
        '400 " Trying to keep the first 6000 tokens when context the overflows. However, the model is loaded with '
        'context length of only 4096 tokens and cannot continue. Error Data: n/a"',
        (4_096, 6_000),
        id="lm studio",
    ),
    pytest.param(
        "error, status code: 400, message: Invalid request: Your request exceeded model token limit: 262144 "
        "(requested: 291351)",
        (262_144, 291_351),
        id="kimi with status",
    ),
    pytest.param("Your prompt is longer than the model's context length of 2048.", (2_048, None), id="longer than"),
    pytest.param("AI_APICallError: Prompt is too long", (None, None), id="bare anthropic"),
    pytest.param("ERROR: THIS MODEL'S MAXIMUM CONTEXT LENGTH IS 1024.", (1_024, None), id="shouted"),
    pytest.param("API Error: 400 Prompt exceeds maximum context length", (None, None), id="mlx-serve"),
    pytest.param(
        "'max_tokens' is too large: 2,000. This model's maximum context length is 1,000,000 tokens and your "
        "request has 999,500 input tokens (2,000 > 1,000,000 - 999,500).",
        (1_000_000, 1_001_500),
        id="vllm commas",
    ),
    pytest.param("上下文超出限制", (None, None), id="zh exceeded"),
    pytest.param("请求失败：上下文长度超过模型支持的最大值", (None, None), id="zh length"),
    pytest.param("智谱：输入文本长度超出限制，请压缩上下文", (None, None), id="zh input"),
    pytest.param(
        "This model\u2019s maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
        (8_192, 9_000),
        id="typographic apostrophe",
    ),
    pytest.param(
        "The model returned the following errors: input length and `max_tokens` exceed context limit: 196395 + "
        "64000 > 204698, decrease input length or `max_tokens` and try again\n\nError: Request was throttled or "
        "rate limited. Contact AWS support to request a quota increase.",
        (204_698, 260_395),
        id="figures stand against words of rates",
    ),
]


@pytest.mark.parametrize(("text", "figures"), ARRIVED)
def test_variants_are_recognised_with_their_figures(text: str, figures: tuple[int | None, int | None]) -> None:
    refusal = classify(text, status=400)
    assert (refusal.kind, (refusal.limit, refusal.requested)) == (Kind.OVERFLOW, figures)


# --- figures ----------------------------------------------------------------------------------


@settings(deadline=None)
@given(
    limit=st.none() | st.integers(-5, 10**12),
    requested=st.none() | st.integers(-5, 10**12),
    reply=st.none() | st.integers(0, 10**12),
)
def test_believed_figures_can_be_true_together(limit: int | None, requested: int | None, reply: int | None) -> None:
    figures = believable(limit, requested, reply)
    assert figures.limit in (limit, None)
    assert figures.requested in (requested, None)
    if figures.limit is not None and figures.requested is not None:
        assert figures.limit <= figures.requested
    if figures.reply is not None:
        assert figures.requested is not None
        assert figures.reply <= figures.requested


@settings(deadline=None)
@given(limit=st.integers(1_000, 10_000_000), over=st.integers(1, 1_000_000), grouped=st.booleans())
def test_any_figures_are_read_as_they_were_written(limit: int, over: int, grouped: bool) -> None:
    write = (lambda number: f"{number:,}") if grouped else str
    refusal = classify(f"prompt is too long: {write(limit + over)} tokens > {write(limit)} maximum")
    assert (refusal.limit, refusal.requested) == (limit, limit + over)


def test_the_code_of_minimax_is_no_window() -> None:
    assert classify("invalid params, context window exceeds limit (2013)").limit is None

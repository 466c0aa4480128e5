"""N1-3.1 and N3-10: overflow errors of every provider are recognised, and nothing else is taken for one."""

import pytest

from everlong.errors import ContextOverflow, EverlongError, ProviderError
from everlong.wire import as_error, classify
from everlong.wire.refusals.overflow import SIGNS
from everlong.wire.refusals.signs import Kind

PROVIDERS = (
    "anthropic", "ark", "azure", "bedrock", "bedrock-nova", "cerebras", "codex", "cohere", "copilot", "dashscope",
    "ds4", "fireworks", "gemini", "github-models", "glm", "kimi", "litellm", "llama.cpp", "lm-studio", "minimax",
    "mistral", "moonshot", "ollama", "openai", "openai-responses", "openrouter", "sglang", "siliconflow", "tgi",
    "vertex", "vllm", "watsonx", "xai",
)  # fmt: skip


@pytest.mark.parametrize("provider", PROVIDERS)
def test_N1_3_1_overflow_of_every_provider_is_recognised(provider: str) -> None:
    samples = [sign.sample for sign in SIGNS if sign.provider == provider]
    assert samples
    for sample in samples:
        assert isinstance(as_error(classify(sample, status=400)), ContextOverflow)


OTHER_ERRORS = [
    pytest.param(
        "request reached organization TPD rate limit, current: 1506556, limit: 1500000", 429, id="tokens a day"
    ),
    pytest.param(
        "This request would exceed your organization's rate limit of 30,000 input tokens per minute.",
        429,
        id="anthropic tpm",
    ),
    pytest.param(
        "Rate limit reached for gpt-4o on requests per min (RPM): Limit 500, Used 500, Requested 1.", 429, id="rpm"
    ),
    pytest.param(
        "413 Request too large on tokens per minute (TPM): Limit 8000, please reduce your message size.",
        413,
        id="tpm without a size",
    ),
    pytest.param(
        "ThrottlingException: Too many tokens, please wait before trying again.", 429, id="bedrock throttling"
    ),
    pytest.param("Too many tokens per day, please wait before trying again.", 429, id="bedrock daily tokens"),
    pytest.param("You exceeded your current quota, please check your plan and billing details.", 429, id="quota"),
    pytest.param(
        "429 RESOURCE_EXHAUSTED: Quota exceeded for metric generate_content_free_tier_input_token_count, limit: 250000",
        429,
        id="gemini quota",
    ),
    pytest.param("Your credit balance is too low to access the Anthropic API.", 400, id="credit"),
    pytest.param(
        "This request requires more credits, or fewer max_tokens. You requested up to 64000 tokens, but can only "
        "afford 1200.",
        402,
        id="openrouter credit",
    ),
    pytest.param("Model context window too small (minimum is 128k tokens)", 400, id="window too small"),
    pytest.param("Context window too small: minimum is 1000 tokens", 400, id="minimum"),
    pytest.param("Reasoning is mandatory for this endpoint and cannot be disabled.", 400, id="reasoning"),
    pytest.param("503 Service Unavailable", 503, id="unavailable"),
    pytest.param(
        '{"error":{"message":"Loading model","type":"unavailable_error","code":503}}', 503, id="llama.cpp loading"
    ),
    pytest.param('{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}', 529, id="overloaded"),
    pytest.param("Incorrect API key provided: sk-****. You can find your API key at the dashboard.", 401, id="api key"),
    pytest.param(
        'Error rendering prompt with jinja template: "Cannot apply filter upper to type UndefinedValue".',
        400,
        id="jinja",
    ),
    pytest.param(
        "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
        400,
        id="content filter",
    ),
    pytest.param(
        "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with "
        "length 150 instead.",
        400,
        id="tools",
    ),
    pytest.param("The maximum number of tools is 128; too many tokens are spent on them", 400, id="tools, in words"),
    pytest.param(
        "Invalid 'tools[1].function.description': string too long. Expected a string with maximum length 1024, "
        "but got a string with length 1103 instead.",
        400,
        id="description",
    ),
    pytest.param("Invalid 'metadata.key': string too long. Expected at most 64 characters.", 400, id="metadata"),
    pytest.param("`max_tokens` must be at most 4096", 400, id="max_tokens"),
    pytest.param(
        "max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens for claude-sonnet-4",
        400,
        id="anthropic reply",
    ),
    pytest.param(
        "max_tokens is too large: 6000. This model supports at most 4096 completion tokens, whereas you provided 6000.",
        400,
        id="openai reply",
    ),
    pytest.param("The maximum tokens you requested exceeds the model limit of 4096.", 400, id="bedrock reply"),
    pytest.param("Output token limit reached for this request", 400, id="output limit"),
    pytest.param(
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        400,
        id="parameter",
    ),
    pytest.param("Unknown parameter: 'context_window'.", 400, id="a parameter of that name"),
    pytest.param(
        {
            "detail": [
                {"loc": ["body", "context_length"], "msg": "Input should be a valid integer", "type": "int_parsing"}
            ]
        },
        422,
        id="validation",
    ),
    pytest.param(
        "stop_reason: Input should be 'end_turn', 'max_tokens' or 'model_context_window_exceeded'",
        400,
        id="a list of values",
    ),
    pytest.param("The model `gpt-9` does not exist or you do not have access to it.", 404, id="no such model"),
    pytest.param("The long context beta is not yet available for this subscription.", 400, id="long context beta"),
    pytest.param("messages: text content blocks must be non-empty", 400, id="empty block"),
    pytest.param("API 调用参数有误，请检查文档", 400, id="zh parameters"),
    pytest.param("账户余额不足，请充值", 402, id="zh balance"),
    pytest.param("请求过于频繁，请稍后再试", 429, id="zh rate"),
    pytest.param("Hello, how can I help you with your context window?", None, id="plain words"),
]


@pytest.mark.parametrize(("error", "status"), OTHER_ERRORS)
def test_N1_3_1_other_errors_are_not_taken_for_overflow(error: object, status: int | None) -> None:
    refusal = classify(error, status=status)  # type: ignore[arg-type]
    assert not refusal.smaller_may_pass, refusal
    assert not isinstance(as_error(refusal), ContextOverflow)


def test_N3_10_overflow_is_caught_before_the_general_error() -> None:
    caught = []
    for text in ("prompt is too long: 213462 tokens > 200000 maximum", "Incorrect API key provided"):
        try:
            raise as_error(classify(text, status=400))
        except ContextOverflow as overflow:
            caught.append(("overflow", overflow.limit))
        except ProviderError as error:
            caught.append(("general", error.status))
    assert caught == [("overflow", 200_000), ("general", 400)]


def test_N3_10_other_errors_keep_their_words_and_their_status() -> None:
    refusal = classify({"error": {"message": "The model `x` does not exist.", "code": "model_not_found"}}, status=404)
    error = as_error(refusal)
    assert (refusal.kind, type(error), str(error), error.status) == (
        Kind.OTHER,
        ProviderError,
        "The model `x` does not exist.",
        404,
    )
    assert isinstance(error, EverlongError)

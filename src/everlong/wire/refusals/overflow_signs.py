"""Wordings of overflows at hosted services: one row per wording, each with its sample.

Samples are real texts with changed ids; if only a pattern is known, the sample is the shortest sentence of that form.

In a pattern `<limit>`, `<below>` (a limit that is itself too much), `<requested>`, `<prompt>`, `<reply>` and `<over>`
stand for a number and `…` for a short stretch of anything; letters match in any case. `limit` and `requested` are the
figures that the row must read from its own sample, None if the sample has none: the sample is the test.

Rows go from specific to general. To support a new wording, add its row.
"""

from dataclasses import dataclass

__all__ = ["HOSTED_SIGNS", "OverflowSign"]


@dataclass(frozen=True, slots=True)
class OverflowSign:
    """One wording of an overflow. `sure` means overflow even if the rest of the error is about rates or filters."""

    provider: str
    pattern: str
    sample: str
    limit: int | None = None
    requested: int | None = None
    sure: bool = False


#: Services on the internet, and the proxies in front of them.
HOSTED_SIGNS: tuple[OverflowSign, ...] = (
    OverflowSign(
        "openai",
        r"maximum context length is <limit> tokens\. However, your messages resulted in <requested> tokens",
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 140004 tokens. "
        "Please reduce the length of the messages.",
        128_000,
        140_004,
    ),
    OverflowSign(
        "openai",
        r"maximum context length is <limit> tokens\. However, you requested <requested> tokens \(<prompt> in the "
        r"messages, (?:\d+ in the functions, and )?<reply> in",
        "This model's maximum context length is 8192 tokens. However, you requested 8334 tokens (338 in the messages, "
        "7996 in the completion). Please reduce the length of the messages or completion.",
        8_192,
        8_334,
    ),
    OverflowSign(
        "openai-completions",
        r"maximum context length is <limit> tokens, however you requested <requested> tokens \(<prompt> in your "
        r"prompt; <reply> for",
        "This model's maximum context length is 4097 tokens, however you requested 4231 tokens (3975 in your "
        "prompt; 256 "
        "for the completion). Please reduce your prompt; or completion length.",
        4_097,
        4_231,
    ),
    OverflowSign(
        "openai",
        r"input tokens exceed the configured limit of <limit> tokens(?:\. Your messages resulted in <requested>)?",
        "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 509178 tokens. Please "
        "reduce the length of the messages.",
        272_000,
        509_178,
    ),
    OverflowSign(
        "openai-responses",
        r"exceeds the context window",
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
    ),
    OverflowSign(
        "anthropic",
        r"prompt is too long: <requested> tokens > <limit> maximum",
        "prompt is too long: 213462 tokens > 200000 maximum",
        200_000,
        213_462,
    ),
    OverflowSign(
        "anthropic",
        r"input length and .?max_tokens.? exceed context limit\W{1,3}(?:i\.e\.? )?<prompt> \+ <reply> > <limit>",
        "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length or "
        "`max_tokens` and try again",
        200_000,
        209_573,
    ),
    OverflowSign(
        "anthropic",
        r"extra usage is required for long context requests",
        '{"type":"error","error":{"type":"rate_limit_error","message":"Extra usage is required for long context '
        'requests."}}',
        sure=True,
    ),
    OverflowSign(
        "anthropic",
        r"request size exceeds (?:the )?model context window",
        "Request size exceeds model context window",
    ),
    OverflowSign(
        "bedrock-titan",
        r"too many input tokens\. max input tokens: <limit>, request input token count: <requested>",
        "ValidationException: 400 Bad Request: Too many input tokens. Max input tokens: 8192, request input "
        "token count: "
        "11135",
        8_192,
        11_135,
    ),
    OverflowSign(
        "bedrock-nova",
        r"number of input tokens exceeds maximum length",
        "ValidationException: The model returned the following errors: Input Tokens Exceeded: Number of input tokens "
        "exceeds maximum length. Please update the input to try again.",
    ),
    OverflowSign(
        "bedrock-llama",
        r"maximum context length is <limit> tokens\. Please reduce the length of the prompt",
        "ValidationException: This model's maximum context length is 8192 tokens. Please reduce the length of "
        "the prompt",
        8_192,
    ),
    OverflowSign("bedrock", r"input is too long for requested model", "Input is too long for requested model."),
    OverflowSign(
        "bedrock",
        r"ValidationException…input token count exceeds the maximum number of input tokens",
        "ValidationException: Input token count exceeds the maximum number of input tokens",
    ),
    OverflowSign(
        "bedrock",
        r"ModelStreamErrorException…input is too long",
        "ModelStreamErrorException: Input is too long for this model",
    ),
    OverflowSign(
        "gemini",
        r"input token count \(<requested>\) exceeds the maximum number of tokens allowed \(<limit>\)",
        "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
        1_048_575,
        1_196_265,
    ),
    OverflowSign(
        "gemini",
        r"input token count exceeds the maximum number of tokens allowed \(?<limit>",
        "The input token count exceeds the maximum number of tokens allowed (1048576).",
        1_048_576,
    ),
    OverflowSign(
        "gemini",
        r"input token count exceeds the maximum number of tokens allowed",
        "The input token count exceeds the maximum number of tokens allowed.",
    ),
    OverflowSign(
        "vertex",
        r"input token count is <requested> but (?:the )?model only supports up to <limit>",
        "Unable to submit request because the input token count is 1251952 but model only supports up to "
        "1048576. Reduce "
        "the input token count and try again.",
        1_048_576,
        1_251_952,
    ),
    OverflowSign(
        "vertex",
        r"model supports up to <limit> input tokens, but received <requested> tokens",
        "400 The model supports up to 8192 input tokens, but received 9534 tokens.",
        8_192,
        9_534,
    ),
    OverflowSign(
        "vertex",
        r"(?:input exceeds|invalid_argument)…maximum number of tokens",
        "HTTP 404: INVALID_ARGUMENT: input exceeds the maximum number of tokens",
    ),
    OverflowSign(
        "xai",
        r"maximum prompt length is <limit> but the request contains <requested> tokens",
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
        131_072,
        537_812,
    ),
    OverflowSign(
        "cerebras",
        r"current length is <requested> while limit is <limit>",
        "Please reduce the length of the messages or completion. Current length is 42328 while limit is 40000",
        40_000,
        42_328,
    ),
    OverflowSign(
        "mistral",
        r"prompt contains <requested> tokens…too large for model with <limit> maximum context length",
        "Prompt contains 65673 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
        32_768,
        65_673,
    ),
    OverflowSign(
        "openrouter",
        r"maximum context length is <limit> tokens\. However, you requested about <requested> tokens(?: "
        r"\([^)]{0,80}?<reply> in the output)?",
        "This endpoint's maximum context length is 32768 tokens. However, you requested about 42832 tokens "
        "(42832 of text "
        'input). Please reduce the length of either one, or use the "middle-out" transform to compress your prompt '
        "automatically.",
        32_768,
        42_832,
    ),
    OverflowSign(
        "openrouter-poolside",
        r"input length <requested> exceeds the maximum allowed input length of <limit> tokens",
        "Input length 131393 exceeds the maximum allowed input length of 131040 tokens.",
        131_040,
        131_393,
    ),
    OverflowSign(
        "copilot",
        r"prompt token count of <requested> exceeds the limit of <limit>",
        "prompt token count of 51808 exceeds the limit of 12288",
        12_288,
        51_808,
    ),
    OverflowSign(
        "github-models",
        r"request body too large for [\w./-]{1,60} model\. Max size: <limit> tokens",
        "413 Request body too large for gpt-4o model. Max size: 8000 tokens.",
        8_000,
    ),
    OverflowSign(
        "kimi",
        r"exceeded model token limit: <limit> \(requested: <requested>\)",
        "Invalid request: Your request exceeded model token limit: 262144 (requested: 291351)",
        262_144,
        291_351,
    ),
    OverflowSign("kimi", r"exceeded model token limit", "Your request exceeded model token limit"),
    OverflowSign("moonshot", r"input token length too long", "Invalid request: Input token length too long"),
    OverflowSign(
        "minimax", r"context window exceeds limit", "invalid params, context window exceeds limit (2013)"
    ),  # 2013 is the code for any bad parameter, not a figure
    OverflowSign("minimax", r"^token limit$", '{"base_resp":{"status_code":1039,"status_msg":"token limit"}}'),
    OverflowSign(
        "glm",
        r"tokens? in request more than max tokens? allowed",
        '{"error":{"code":"1210","message":"tokens in request more than max tokens allowed"}}',
    ),
    OverflowSign(
        "glm", r"prompt exceeds max(?:imum)? length", '{"error":{"code":"1261","message":"Prompt exceeds max length"}}'
    ),
    OverflowSign(
        "dashscope",
        r"range of input length should be \[\d+, <limit>\]",
        "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 202745]",
        202_745,
    ),
    OverflowSign(
        "ark",
        r"input length <requested> exceeds the maximum length <limit>",
        "Error code: 400 - {'error': {'code': 'InvalidParameter', 'message': 'Input length 203743 exceeds the maximum "
        "length 202752'}}",
        202_752,
        203_743,
    ),
    OverflowSign(
        "ark",
        r"total tokens of image and text exceed max message tokens",
        "Total tokens of image and text exceed max message tokens.",
    ),
    OverflowSign(
        "siliconflow",
        r"length of prompt_tokens \(<requested>\) must be less than max_seq_len \(<limit>\)",
        "length of prompt_tokens (57535) must be less than max_seq_len (32768).",
        32_768,
        57_535,
    ),
    OverflowSign(
        "siliconflow",
        r"number of input tokens \(<requested>\) has exceeded max_prompt_tokens \(<limit>\)",
        "number of input tokens (167594) has exceeded max_prompt_tokens (163840) limit.",
        163_840,
        167_594,
    ),
    OverflowSign(
        "cohere",
        r"total number of tokens…cannot exceed <limit> - received <requested>",
        "too many tokens: total number of tokens (prompt and prediction) cannot exceed 2048 - received 6354. Try "
        "using a "
        "shorter prompt or a smaller max_tokens value.",
        2_048,
        6_354,
    ),
    OverflowSign(
        "cohere",
        r"size limit exceeded by <over> tokens…limit for this model is <limit> tokens",
        "too many tokens: size limit exceeded by 11326 tokens. Try using shorter or fewer inputs. The limit for this "
        "model is 128000 tokens.",
        128_000,
        139_326,
    ),
    OverflowSign(
        "cohere",
        r"total tokens exceeds? (?:the )?model's (?:max(?:imum)?(?: limit)?|limit)(?: of <limit>)?",
        "total tokens exceeds the model's maximum limit of 4096",
        4_096,
    ),
    OverflowSign(
        "fireworks",
        r"prompt is too long: <requested>, model maximum context length: <limit>",
        "The prompt is too long: 143517, model maximum context length: 131071",
        131_071,
        143_517,
    ),
    OverflowSign(
        "replicate",
        r"max input length is <limit> tokens, but you supplied <requested> tokens",
        "Your input is too long. Max input length is 4096 tokens, but you supplied 5441 tokens.",
        4_096,
        5_441,
    ),
    OverflowSign(
        "watsonx",
        r"number of input tokens <requested> cannot exceed the total tokens limit <limit>",
        "the number of input tokens 8521 cannot exceed the total tokens limit 8192 for this model",
        8_192,
        8_521,
    ),
    OverflowSign(
        "salesforce",
        r"input tokens exceed model token limit",
        "Request input tokens exceed model token limit. Reduce the input size.",
    ),
    OverflowSign(
        "azure",
        r"content_filter…(?:prompt|input)…(?:too long|exceed)",
        "content_filter: the prompt is too long to be checked",
        sure=True,
    ),
    OverflowSign(
        "codex",
        r"(?:ran out of (?:room|space)…context window|context window…ran out of (?:room|space))",
        "Codex ran out of room in the model's context window. Start a new thread or clear earlier history before "
        "retrying.",
    ),
)

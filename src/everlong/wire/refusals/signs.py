"""Wordings of refusals for reasons other than the window: one row per wording, each with a real sample.

Patterns are written as in `overflow_signs`. A row's `kind` says what would help: a repaired history, fewer
pictures, a shorter reply, a smaller body, waiting, or nothing that we can do.
"""

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["PARAMETER_SIGNS", "REPLY_SIGNS", "SIZE_SIGNS", "VETO_SIGNS", "Kind", "RefusalSign"]


class Kind(StrEnum):
    """Why a provider refused, by what would make it accept."""

    OVERFLOW = "overflow"  # more tokens than the window: send fewer
    TOO_LARGE = "too large"  # more bytes or characters than it accepts: send fewer
    CEILING = "ceiling"  # more tokens than the account may ever send at once: send fewer; waiting does not help
    REPLY_LIMIT = "reply limit"  # the requested reply is longer than the model can write: ask for less
    MALFORMED_HISTORY = "malformed history"  # calls, results, roles, signatures: repair
    PARAMETER = "parameter"  # the model does not accept it, or its value: leave it out
    MEDIA = "media"  # too many images, or too large: leave some out
    RATE_LIMIT = "rate limit"  # too much for now: wait
    OTHER = "other"  # nothing we can fix: report it


@dataclass(frozen=True, slots=True)
class RefusalSign:
    """One wording. `limit` is what the row must read from its sample; `parameter` is the refused parameter."""

    kind: Kind
    provider: str
    pattern: str
    sample: str
    limit: int | None = None
    parameter: str = ""


def _large(provider: str, pattern: str, sample: str, limit: int | None = None) -> RefusalSign:
    return RefusalSign(Kind.TOO_LARGE, provider, pattern, sample, limit)


def _reply(provider: str, pattern: str, sample: str, limit: int | None = None) -> RefusalSign:
    return RefusalSign(Kind.REPLY_LIMIT, provider, pattern, sample, limit)


def _parameter(provider: str, name: str, pattern: str, sample: str) -> RefusalSign:
    return RefusalSign(Kind.PARAMETER, provider, pattern, sample, parameter=name)


def _wait(provider: str, pattern: str, sample: str) -> RefusalSign:
    return RefusalSign(Kind.RATE_LIMIT, provider, pattern, sample)


def _other(provider: str, pattern: str, sample: str) -> RefusalSign:
    return RefusalSign(Kind.OTHER, provider, pattern, sample)


#: The requested reply is too long. This is independent of the window: a shorter history would not help.
REPLY_SIGNS: tuple[RefusalSign, ...] = (
    _reply(
        "anthropic",
        r"max_tokens: \d+ > <limit>, which is the maximum allowed number of output tokens",
        "max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens for claude-sonnet-4-20250514",
        64_000,
    ),
    _reply(
        "openai",
        r"model supports at most <limit> completion tokens",
        "max_tokens is too large: 6000. This model supports at most 4096 completion tokens, whereas you provided 6000.",
        4_096,
    ),
    _reply(
        "gemini",
        r"maxOutputTokens value of \d+ but the supported range is from \d+ \(inclusive\) to <below>",
        "Unable to submit request because it has a maxOutputTokens value of 100000 but the supported range is from 1 "
        "(inclusive) to 8193 (exclusive).",
        8_192,
    ),
    _reply(
        "bedrock",
        r"maximum tokens you requested exceeds? the model limit of <limit>",
        "The maximum tokens you requested exceeds the model limit of 4096. Try again with a maximum tokens value that "
        "is lower than 4096.",
        4_096,
    ),
    _reply(
        "dashscope",
        r"range of max_tokens should be \[\d+, <limit>\]",
        "InternalError.Algo.InvalidParameter: Range of max_tokens should be [1, 8192]",
        8_192,
    ),
    _reply(
        "deepseek",
        r"valid range of max_tokens is \[\d+, <limit>\]",
        "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]",
        8_192,
    ),
    _reply(
        "ark",
        r"max_(?:completion_)?tokens.…expected a value <= <limit>",
        "The parameter `max_completion_tokens` specified in the request are not valid: integer above maximum value, "
        "expected a value <= 12288, but got 16384 instead.",
        12_288,
    ),
    _reply(
        "shared",
        r"max_(?:completion_|output_|new_)?tokens. ?(?:must be|should be|is limited to)…(?:at most|less than or "
        r"equal to|<=) ?<limit>",
        "`max_tokens` must be at most 4096",
        4_096,
    ),
    _reply(
        "shared",
        r"\b(?:output|completion)[ _]tokens? limit\b|max_?(?:output|completion)_?tokens is (?:above|too large)",
        "Output token limit reached for this request",
    ),
)

#: A parameter that the model does not accept, or not with this value. It can be left out, because the answer matters
#: more.
PARAMETER_SIGNS: tuple[RefusalSign, ...] = (
    _parameter(
        "openai",
        "temperature",
        r"unsupported (?:value|parameter): '?temperature",
        "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is "
        "supported.",
    ),
    _parameter(
        "openai",
        "top_p",
        r"unsupported (?:value|parameter): '?top_?p",
        "Unsupported parameter: 'top_p' is not supported with this model.",
    ),
    _parameter(
        "anthropic",
        "top_p",
        r"temperature.{1,3} and .{1,3}top_p.{1,3} cannot both be specified",
        "`temperature` and `top_p` cannot both be specified for this model. Please use only one.",
    ),
    _parameter(
        "anthropic",
        "temperature",
        r"temperature.? may only be set to 1|temperature: input should be (?:less|greater) than or equal to",
        "`temperature` may only be set to 1 when thinking is enabled.",
    ),
    _parameter(
        "anthropic",
        "top_p",
        r"top_p.? (?:must be (?:greater|less)|may only be)…when thinking is",
        "`top_p` must be greater than or equal to 0.95 or unset when thinking is enabled.",
    ),
    _parameter(
        "moonshot",
        "temperature",
        r"invalid temperature: only",
        "invalid temperature: only 1 is allowed for this model",
    ),
    _parameter(
        "shared",
        "temperature",
        r"temperature.{0,3} (?:is )?(?:not supported|deprecated|not allowed|unsupported)",
        "`temperature` is deprecated for this model.",
    ),
    _parameter(
        "shared",
        "top_p",
        r"top_p.{0,3} (?:is )?(?:not supported|deprecated|not allowed|unsupported)",
        "`top_p` is not supported for this model",
    ),
)

#: The body is too large, in bytes or characters.
SIZE_SIGNS: tuple[RefusalSign, ...] = (
    _large(
        "openai",
        r"invalid '(?:input|(?:messages|input)[^']{1,80}\.(?:content|output|text|arguments)[^']{0,20})': string too",
        "Invalid 'messages[1].content': string too long. "
        "Expected a string with maximum length 1048576, but got a string with length 1540820 instead.",
    ),
    _large(
        "anthropic",
        r"request exceeds the maximum (?:allowed )?(?:size|number of bytes)|request_too_large",
        '413 {"error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}',
    ),
    _large(
        "anthropic",
        r"total text bytes: <requested> > <limit>",
        "messages: too many total text bytes: 9013541 > 9000000",
        9_000_000,
    ),
    _large("anthropic", r"too many total text bytes|total text bytes", "messages: too many total text bytes"),
    _large(
        "gemini",
        r"request payload size exceeds the limit: <limit> bytes",
        "Request payload size exceeds the limit: 20971520 bytes.",
        20_971_520,
    ),
    _large("gemini", r"request payload size exceeds the limit", "Request payload size exceeds the limit"),
    _large("nginx", r"request entity too large|content too large|payload too large", "413 Request Entity Too Large"),
    _large("shared", r"request body (?:is )?too large|请求体?过大", "http: request body too large"),
)

#: Wordings that are never an overflow, whatever else the error says.
VETO_SIGNS: tuple[RefusalSign, ...] = (
    _other(
        "openai",
        r"insufficient_quota|exceeded your current quota",
        "You exceeded your current quota, please check your plan and billing details.",
    ),
    _other(
        "shared",
        r"\bbilling\b|credit balance|insufficient (?:credits|balance|funds)|payment required|余额不足|额度不足|欠费",
        "Your credit balance is too low to access the API. Please go to Plans & Billing to upgrade.",
    ),
    _other(
        "openclaw",
        r"context window…(?:too small|minimum is)",
        "Model context window too small (minimum is 128k tokens)",
    ),
    _other(
        "openrouter",
        r"reasoning is (?:mandatory|required)",
        "Reasoning is mandatory for this endpoint and cannot be disabled.",
    ),
    _other(
        "lm-studio",
        r"jinja|prompt template|chat template",
        'Error rendering prompt with jinja template: "Cannot apply filter '
        'upper to type UndefinedValue". You can override the prompt template in model settings.',
    ),
    _other(
        "azure",
        r"content[_ ](?:filter|management|policy)|ResponsibleAIPolicyViolation",
        "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
    ),
    _other(
        "openai",
        r"maximum number of (?:tools|functions)|'?tools'?: array too long",
        "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with "
        "length 150 instead.",
    ),
    _other(
        "openai",
        r"invalid '(?!messages|input)[^']{1,80}': string too long",
        "Invalid 'tools[1].function.description': string too long. "
        "Expected a string with maximum length 1024, but got a string with length 1103 instead.",
    ),
    _other(
        "shared",
        r"unknown parameter|unrecognized (?:request )?argument|unsupported (?:parameter|value)|extra inputs are "
        r"not permitted",
        "Unknown parameter: 'context_window'.",
    ),
    _other(
        "pydantic",
        r"input should be|must be one of|should be a valid|field required|must be (?:a )?positive",
        "stop_reason: Input should be 'end_turn', 'max_tokens' or 'model_context_window_exceeded'",
    ),
    _other(
        "letta",
        r"possible causes:",
        "The request was rejected. Possible causes: input exceeds the model's maximum context "
        "length, or the request contains invalid parameters.",
    ),
    _wait(
        "shared",
        r"rate[ _-]limit|ratelimit(?!-)|too many (?:concurrent )?requests",
        "429 Too Many Requests: request exceeds rate limit",
    ),
    _wait("shared", r"请求过于频繁|限流|频率(?:超限|限制)|访问量过大|负载过高", "请求过于频繁，请稍后再试"),
    _wait(
        "shared",
        r"(?:tokens|requests) per (?:min|minute|hour|day)|\b[TR]P[MD]\b",
        "tokens per minute (TPM): Limit 8000, please reduce",
    ),
    _wait(
        "bedrock",
        r"\bthrottl|wait before trying again",
        "ThrottlingException: Too many tokens, please wait before trying again.",
    ),
    _wait(
        "gemini",
        r"resource[_ ]?(?:has been )?exhausted|quota|配额",
        "429 RESOURCE_EXHAUSTED: Resource has been exhausted (e.g. check quota).",
    ),
    _wait("bedrock", r"^service unavailable:", "Service unavailable: too many tokens in flight, try later"),
    _wait("anthropic", r"\boverloaded", '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}'),
)

"""Reasons of refusals that a person can act on: fix the key, pay, wait, choose another model, fix the address.

`classify` says what would make a request acceptable; this module says why one was refused if no other request would be
accepted. One row per wording, each with a real sample. Patterns are written as in `overflow_signs`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from everlong.wire.refusals.overflow import compiled

__all__ = ["REASON_SIGNS", "Reason", "ReasonSign", "is_web_page", "reason_of", "seconds_to_wait"]


class Reason(StrEnum):
    """Why a provider did not answer, in one word. The last five are about the connection."""

    KEY = "key"  # the key is missing, wrong, or not allowed to do this
    QUOTA = "quota"  # the budget is spent
    RATE = "rate"  # too many requests or tokens for now
    OVERLOADED = "overloaded"  # the provider itself is overloaded
    MODEL = "model"  # there is no such model
    PATH = "path"  # there is nothing at that path
    PAGE = "page"  # a web page instead of an answer
    FILTERED = "filtered"  # the prompt or the answer is not allowed there
    REGION = "region"  # not available in this country or network
    SERVER = "server"  # the server failed
    MOVED = "moved"  # it redirects elsewhere
    NO_NAME = "no name"  # the server's name has no address
    CLOSED = "closed"  # nothing listens at the address
    SLOW = "slow"  # no answer in time
    TLS = "tls"  # its certificate is not accepted
    LOST = "lost"  # the connection ended in the middle of an answer


@dataclass(frozen=True, slots=True)
class ReasonSign:
    """One wording of a reason."""

    reason: Reason
    provider: str
    pattern: str
    sample: str


def _filtered(provider: str, pattern: str, sample: str) -> ReasonSign:
    return ReasonSign(Reason.FILTERED, provider, pattern, sample)


def _model(provider: str, pattern: str, sample: str) -> ReasonSign:
    return ReasonSign(Reason.MODEL, provider, pattern, sample)


def _key(provider: str, pattern: str, sample: str) -> ReasonSign:
    return ReasonSign(Reason.KEY, provider, pattern, sample)


def _quota(provider: str, pattern: str, sample: str) -> ReasonSign:
    return ReasonSign(Reason.QUOTA, provider, pattern, sample)


REASON_SIGNS: tuple[ReasonSign, ...] = (
    _filtered(
        "azure",
        r"content[_ ](?:filter|management|policy)|ResponsibleAIPolicyViolation",
        "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
    ),
    _filtered(
        "openai",
        r"rejected as a result of our safety system|violat\w+…usage polic",
        "Your request was rejected as a result of our safety system.",
    ),
    _filtered(
        "dashscope",
        r"may contain inappropriate content|data_?inspection_?failed",
        "<400> InternalError.Algo.DataInspectionFailed: Input data may contain inappropriate content.",
    ),
    _filtered("deepseek", r"content exists risk", "Content Exists Risk"),
    _filtered(
        "zhipuai",
        r"不安全或敏感内容|内容违规|敏感词",
        "系统检测到输入或生成内容可能包含不安全或敏感内容，请您避免输入易产生敏感内容的提示语，感谢您的配合。",
    ),
    _filtered(
        "gemini",
        r"prompt was blocked|block_?reason",
        "The prompt was blocked due to SAFETY",
    ),
    ReasonSign(
        Reason.REGION,
        "openai",
        r"(?:country|region|location)…(?:not supported|unsupported)|unsupported_country",
        "Country, region, or territory not supported",
    ),
    ReasonSign(
        Reason.REGION,
        "gemini",
        r"user location is not supported",
        "User location is not supported for the API use.",
    ),
    _model(
        "openai", r"model_not_found|model…does not exist", "The model `gpt-9` does not exist or you do not have access."
    ),
    _model(
        "anthropic",
        r"not_found_error\b…model|^model: \S+$",
        '{"type":"error","error":{"type":"not_found_error","message":"model: claude-9-opus"}}',
    ),
    _model(
        "gemini",
        r"models/\S+ is not (?:found|supported)",
        "models/gemini-9 is not found for API version v1beta, or is not supported for generateContent.",
    ),
    _model("ollama", r"model \S+ not found", 'model "llama9" not found, try pulling it first'),
    _model("openrouter", r"not a valid model id|no endpoints found for", "acme/none is not a valid model ID"),
    _model("mistral", r"invalid model:|invalid_model", "Invalid model: mistral-none"),
    _model("deepseek", r"model not exist|模型不存在", "Model Not Exist"),
    _model(
        "groq",
        r"model\b…\b(?:decommissioned|deprecated|retired|shut down)",
        "The model `llama2-70b-4096` has been decommissioned and is no longer supported.",
    ),
    _model(
        "lm-studio", r"no models? (?:is |are )?loaded", "No models loaded. Please load a model in the developer page."
    ),
    _quota(
        "openai",
        r"insufficient_quota|exceeded your current quota",
        "You exceeded your current quota, please check your plan and billing details.",
    ),
    _quota(
        "shared",
        r"\bbilling\b|credit balance|insufficient (?:credits|balance|funds)|payment required|余额不足|额度不足|欠费",
        "Your credit balance is too low to access the API. Please go to Plans & Billing to upgrade.",
    ),
    _key("openai", r"incorrect api key|invalid_api_key", "Incorrect API key provided: sk-12***90."),
    _key(
        "openai",
        r"didn't provide an api key|no api key|api key (?:is )?(?:required|missing)|missing api key",
        "You didn't provide an API key. You need to provide your API key in an Authorization header.",
    ),
    _key(
        "anthropic",
        r"invalid x-api-key|authentication_error",
        '{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}',
    ),
    _key(
        "gemini",
        r"api[_ ]key (?:not valid|expired|invalid)|api_key_invalid",
        "API key not valid. Please pass a valid API key.",
    ),
    _key("groq", r"invalid api[ _-]?key", "Invalid API Key"),
    _key("deepseek", r"authentication fails", "Authentication Fails, Your api key: ****1234 is invalid"),
    _key("kimi", r"invalid authentication", "Invalid Authentication"),
    _key("openrouter", r"no auth credentials found", "No auth credentials found"),
    _key("zhipuai", r"令牌已过期|身份验证失败|验证不正确", "令牌已过期或验证不正确"),
    ReasonSign(
        Reason.OVERLOADED,
        "anthropic",
        r"\boverloaded|负载过高|访问量过大",
        '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}',
    ),
)

#: The reason by status, if no wording was understood.
STATUSES: Mapping[int, Reason] = MappingProxyType(
    {
        401: Reason.KEY,
        402: Reason.QUOTA,
        403: Reason.KEY,
        404: Reason.PATH,
        405: Reason.PATH,
        408: Reason.SLOW,
        429: Reason.RATE,
        503: Reason.OVERLOADED,
        504: Reason.SLOW,
        529: Reason.OVERLOADED,
    }
)
SERVER_ERRORS = 500
PAGE = re.compile(
    r"\s*(?:<\?xml[^>]{0,200}>\s*)?(?:<!--.{0,400}?-->\s*)?<(?:!doctype html|html|head|body)\b", re.I | re.S
)
#: "try again in 7.66s", "retryDelay": "23s", "retry after 30 seconds", "in 1m30s"
WAIT = re.compile(
    r"(?:try again|retrydelay|retry|wait)\W{0,6}(?:in|after|for)?\W{0,4}"
    r"(?:(\d{1,4})m(?!s|in))?(\d{1,6}(?:\.\d{1,6})?)? ?(ms|s|sec|second|minute)?",
    re.I,
)
LONGEST_WAIT = 86_400.0


def is_web_page(text: str) -> bool:
    """Return whether a body is a web page. Example: "<!DOCTYPE html>…" -> True"""
    return PAGE.match(text) is not None


def seconds_to_wait(text: str) -> float | None:
    """Return how long a refusal asks to wait. Example: "Please try again in 1m30.5s." -> 90.5"""
    for match in WAIT.finditer(text):
        minutes, figure, unit = match.groups()
        if not unit or not (minutes or figure):
            continue
        seconds = float(figure or 0) * {"ms": 0.001, "minute": 60.0}.get(unit.lower(), 1.0) + 60 * int(minutes or 0)
        return min(seconds, LONGEST_WAIT)
    return None


def reason_of(text: str, status: int | None, after: float | None = None) -> Reason | None:
    """Return why a request was refused, by its text, otherwise by its status; None if neither tells.

    Some providers call a rate limit a quota; if the error says how long to wait, it is a rate limit.
    """
    for sign in REASON_SIGNS:
        if compiled(sign.pattern).search(text):
            return Reason.RATE if sign.reason is Reason.QUOTA and after is not None else sign.reason
    if status is not None and status >= SERVER_ERRORS:
        return STATUSES.get(status, Reason.SERVER)
    return STATUSES.get(status or 0)
